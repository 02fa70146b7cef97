//! DOI normalisation: one spelling per DOI, so that a citation dump, a catalogue and a request can be
//! compared byte for byte.
//!
//! The rules, in order (ISO 26324 for the form and the case folding; the prefixes are those that
//! Crossref, DataCite and library catalogues are seen to write):
//!
//! 1. The bytes must be UTF-8. White space, control characters, the byte order mark and zero-width
//!    characters are trimmed at both ends.
//! 2. Percent escapes are decoded once if **every** `%` starts a valid escape and the result is UTF-8
//!    without control characters. Otherwise every `%` stays what it is: it is legal in a DOI.
//! 3. Prefixes are cut in any case and any nesting: `https://`, `http://`, then `doi.org/`, `dx.doi.org/`,
//!    `www.doi.org/`; `info:doi/`, `urn:doi:`, `doi:`, `doi` followed by a space.
//! 4. Letters become lower case, beyond ASCII too: DOIs are equal up to ASCII case, and OpenCitations
//!    lowers all of Unicode, so joining with its dumps asks for the same.
//! 5. Valid is `10.<digits>[.<digits>…]/<at least one character>`, at most [`DOI_LEN_MAX_BYTES`] long,
//!    without control characters or white space other than single inner spaces (a few registered DOIs have them).
//!
//! Values typed by people ([`Dirt::Cut`]) also lose quotes and opening brackets at the start, and junk at the end,
//! repeatedly until nothing is left to cut: `. , : ; * " '` and typographic quotes, `/epdf`, and a closing `) ] } >`
//! that nothing opens. Dumps are read with [`Dirt::Keep`]: a final dot can be part of a registered DOI, and a
//! registrar's own list is authoritative.

use std::fmt;

/// Longest DOI accepted, in bytes after normalisation. The longest registered ones are a few hundred.
pub const DOI_LEN_MAX_BYTES: usize = 1024;

/// Characters that may precede a DOI that was cut out of text.
const OPENING: [char; 11] = ['"', '\'', '`', '“', '„', '‘', '«', '(', '[', '{', '<'];

/// What to do with junk at the end of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dirt {
    /// The value is a registrar's: nothing at the end is junk.
    Keep,
    /// The value was typed or cut out of text: final punctuation and unopened brackets are removed.
    Cut,
}

/// A DOI in the one spelling that this crate compares and stores.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Doi(String);

impl Doi {
    /// Normalises a value of a dump or of a request: see the rules of this module.
    ///
    /// # Errors
    /// [`DoiError`] says why the value is not a DOI.
    pub fn parse(raw: &str) -> Result<Self, DoiError> {
        Self::parse_with(raw, Dirt::Keep)
    }

    /// Normalises a value of a catalogue, removing junk at the end.
    ///
    /// # Errors
    /// [`DoiError`] says why the value is not a DOI.
    pub fn parse_dirty(raw: &str) -> Result<Self, DoiError> {
        Self::parse_with(raw, Dirt::Cut)
    }

    /// Normalises with the given treatment of the end.
    ///
    /// # Errors
    /// [`DoiError`] says why the value is not a DOI.
    pub fn parse_with(raw: &str, dirt: Dirt) -> Result<Self, DoiError> {
        let mut text = Vec::with_capacity(raw.len());
        normalise_into(raw.as_bytes(), dirt, &mut text)?;
        // The bytes are UTF-8: they come out of a `str` in whole characters.
        String::from_utf8(text).map(Self).map_err(|_| DoiError::NotUtf8)
    }

    /// Returns the normalised text, `10.…`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Doi {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Why a value is not a DOI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DoiError {
    /// Nothing is left after trimming.
    #[error("is empty")]
    Empty,
    /// The bytes are not UTF-8.
    #[error("is not UTF-8; is the file in Latin-1?")]
    NotUtf8,
    /// Longer than [`DOI_LEN_MAX_BYTES`].
    #[error("is longer than {DOI_LEN_MAX_BYTES} bytes")]
    TooLong,
    /// Does not begin with `10.` and a number.
    #[error("does not begin with 10.<number>")]
    NoPrefix,
    /// Nothing follows the prefix.
    #[error("has no '/' with text behind it after 10.<number>")]
    NoSuffix,
    /// Control characters or white space within.
    #[error("has a control character or white space within")]
    Control,
}

/// Appends the normalised form of `raw` to `out`; on an error `out` is as it was.
///
/// # Errors
/// [`DoiError`] says why the value is not a DOI.
pub fn normalise_into(raw: &[u8], dirt: Dirt, out: &mut Vec<u8>) -> Result<(), DoiError> {
    if is_plain(raw) && (dirt == Dirt::Keep || !ends_with_junk(raw)) {
        check(raw)?;
        out.extend_from_slice(raw);
        return Ok(());
    }
    let text = str::from_utf8(raw).map_err(|_| DoiError::NotUtf8)?;
    let decoded = percent_decoded(trim(text));
    let whole = decoded.as_deref().unwrap_or(trim(text));
    let bare = match dirt {
        Dirt::Keep => cut_prefixes(whole),
        Dirt::Cut => cut_prefixes(whole.trim_start_matches(OPENING)),
    };
    let mut lower = bare.to_lowercase();
    if dirt == Dirt::Cut {
        lower.truncate(without_junk(&lower).len());
    }
    check(lower.as_bytes())?;
    if lower.chars().any(is_forbidden) {
        return Err(DoiError::Control);
    }
    out.extend_from_slice(lower.as_bytes());
    Ok(())
}

/// Returns whether it is normalised already, apart from its form: true for nearly every row of a dump, at the
/// cost of one pass.
fn is_plain(raw: &[u8]) -> bool {
    raw.starts_with(b"10.")
        && raw.iter().all(|&byte| byte > b' ' && byte < 0x7f && byte != b'%' && !byte.is_ascii_uppercase())
}

fn ends_with_junk(raw: &[u8]) -> bool {
    str::from_utf8(raw).is_ok_and(|text| without_junk(text).len() < text.len())
}

/// Checks the form `10.<digits>[.<digits>…]/<suffix>` and the length.
fn check(text: &[u8]) -> Result<(), DoiError> {
    if text.is_empty() {
        return Err(DoiError::Empty);
    }
    if DOI_LEN_MAX_BYTES < text.len() {
        return Err(DoiError::TooLong);
    }
    let registrant = text.strip_prefix(b"10.").ok_or(DoiError::NoPrefix)?;
    let slash = memchr::memchr(b'/', registrant);
    let number = &registrant[..slash.unwrap_or(registrant.len())];
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    if !number.split(|&byte| byte == b'.').all(is_number) {
        return Err(DoiError::NoPrefix);
    }
    match slash {
        Some(at) if at + 1 < registrant.len() => Ok(()),
        _ => Err(DoiError::NoSuffix),
    }
}

fn is_forbidden(letter: char) -> bool {
    letter.is_control() || (letter.is_whitespace() && letter != ' ')
}

fn is_trimmed(letter: char) -> bool {
    letter.is_whitespace()
        || letter.is_control()
        || matches!(letter, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}')
}

fn trim(text: &str) -> &str {
    text.trim_matches(is_trimmed)
}

/// Decodes percent escapes; `None` if there is nothing to decode or the text does not look percent-encoded as
/// a whole.
fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            decoded.push(hex_digit(*after.first()?)? << 4 | hex_digit(*after.get(1)?)?);
            rest = &after[2..];
        } else {
            decoded.push(byte);
            rest = after;
        }
    }
    String::from_utf8(decoded).ok().filter(|it| !it.chars().any(char::is_control))
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Removes every leading prefix, in any case; trims between them.
fn cut_prefixes(text: &str) -> &str {
    const PREFIXES: [&str; 9] =
        ["https://", "http://", "www.", "dx.", "doi.org/", "info:doi/", "urn:doi:", "doi:", "doi "];
    let mut rest = trim(text);
    while let Some(prefix) = PREFIXES.iter().find(|prefix| starts_with_fold(rest, prefix)) {
        rest = trim(&rest[prefix.len()..]);
    }
    rest
}

fn starts_with_fold(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

/// Returns `text` without junk at the end of a typed value.
fn without_junk(text: &str) -> &str {
    let mut rest = text.trim_end_matches(is_trimmed);
    while let Some(shorter) = one_junk_less(rest) {
        rest = shorter.trim_end_matches(is_trimmed);
    }
    rest
}

fn one_junk_less(text: &str) -> Option<&str> {
    const PUNCTUATION: [char; 16] =
        ['.', ',', ':', ';', '*', '"', '\'', '`', '”', '“', '„', '’', '‘', '»', '«', '\u{fffd}'];
    if let Some(shorter) = text.strip_suffix(PUNCTUATION) {
        return Some(shorter);
    }
    if let Some(shorter) = text.strip_suffix("/epdf") {
        return Some(shorter);
    }
    [('(', ')'), ('[', ']'), ('{', '}'), ('<', '>')].into_iter().find_map(|(open, close)| {
        let shorter = text.strip_suffix(close)?;
        (text.matches(open).count() < text.matches(close).count()).then_some(shorter)
    })
}
