//! The text of a record as a parser of XML or JSON needs it, and the mapping from a place in that text to the
//! place in the input, which differ where bytes were recoded or replaced.

use std::borrow::Cow;

use crate::cut::XmlCharset;
use crate::encoding::utf8_lossy;
use crate::problem::Fault;

/// UTF-8 text made from the bytes of a record.
pub(crate) struct RepairedText<'a> {
    pub(crate) text: Cow<'a, str>,
    n_bytes: usize,
    /// Places from which text and bytes correspond again, in order: in the text, in the bytes.
    steps: Vec<(usize, usize)>,
}

impl<'a> RepairedText<'a> {
    /// Recodes or repairs the bytes; bytes that are not UTF-8 are reported with their place.
    pub(crate) fn new(bytes: &'a [u8], charset: XmlCharset, report: impl FnMut(usize, Fault)) -> Self {
        let (text, steps) = match charset {
            XmlCharset::Utf8 => {
                let text = utf8_lossy(bytes, report);
                let steps = if matches!(text, Cow::Owned(_)) { steps_of_lossy(bytes) } else { Vec::new() };
                (text, steps)
            }
            XmlCharset::Latin1 => from_latin1(bytes),
        };
        Self { text, n_bytes: bytes.len(), steps }
    }

    /// Returns the place in the bytes for a place in the text.
    pub(crate) fn byte_of(&self, at: usize) -> usize {
        let n_before = self.steps.partition_point(|(in_text, _)| *in_text <= at);
        let (in_text, in_bytes) = n_before.checked_sub(1).map_or((0, 0), |last| self.steps[last]);
        (in_bytes + (at - in_text)).min(self.n_bytes)
    }
}

fn steps_of_lossy(bytes: &[u8]) -> Vec<(usize, usize)> {
    let (mut in_text, mut in_bytes) = (0, 0);
    let mut steps = Vec::new();
    for chunk in bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()) {
        in_text += chunk.valid().len() + char::REPLACEMENT_CHARACTER.len_utf8();
        in_bytes += chunk.valid().len() + chunk.invalid().len();
        steps.push((in_text, in_bytes));
    }
    steps
}

fn from_latin1(bytes: &[u8]) -> (Cow<'_, str>, Vec<(usize, usize)>) {
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
    let mut steps = Vec::new();
    let mut after_other = false;
    for (at, byte) in bytes.iter().enumerate() {
        if after_other && byte.is_ascii() {
            steps.push((text.len(), at));
        }
        after_other = !byte.is_ascii();
        text.push(char::from(*byte));
    }
    (text.into(), steps)
}
