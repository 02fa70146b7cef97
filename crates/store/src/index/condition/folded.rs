//! Ranges of folded texts by the column that holds them, in an index without terms of folded texts.

use tantivy::columnar::TermOrdHit;

use super::{Bounds, Segment, failed};
use crate::document::storable;
use crate::index::set::Set;
use crate::index::values::each_value;
use crate::{End, Path, Result, Type, Value, fold};

impl Segment<'_> {
    /// Evaluates a range of folded texts as the engine does by its column; `None` if no column holds all texts of the
    /// path.
    pub(super) fn in_folded_column(
        &self,
        path: &Path,
        low: &End,
        high: &End,
        within: &Set,
    ) -> Result<Option<Bounds>> {
        let Some(column) = self.text_column(path, &[Type::Folded])? else { return Ok(None) };
        let n_texts = column.num_terms() as u64;
        let place = |text: &str, is_behind: bool| -> Result<u64> {
            let text = fold(text);
            Ok(match column.dictionary().term_ord_or_next(storable(&text).as_bytes()).map_err(failed)? {
                TermOrdHit::Exact(ord) => ord + u64::from(is_behind),
                TermOrdHit::Next(ord) => ord.min(n_texts),
            })
        };
        let from = match low {
            End::Included(Value::Folded(text)) => place(text, false)?,
            End::Excluded(Value::Folded(text)) => place(text, true)?,
            _ => 0,
        };
        let to = match high {
            End::Included(Value::Folded(text)) => place(text, true)?,
            End::Excluded(Value::Folded(text)) => place(text, false)?,
            _ => n_texts,
        };
        let mut found = Set::empty(self.max_doc);
        each_value(column.ords(), within, |doc, ord| {
            if (from..to).contains(&ord) {
                found.insert(doc);
            }
        });
        Ok(Some(self.said(found)))
    }
}
