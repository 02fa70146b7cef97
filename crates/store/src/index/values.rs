//! Bulk reading of a column's values for many documents: a call for each document would cost more than its value.

use tantivy::columnar::Column;

use super::set::Set;

/// Documents whose values are read in one step.
pub(super) const STEP_DOCS: usize = 4_096;

/// Calls `visit` with each value of the documents of a set, in their order.
pub(super) fn each_value<T>(column: &Column<T>, set: &Set, mut visit: impl FnMut(u32, T))
where
    T: PartialOrd + Copy + Default + std::fmt::Debug + Send + Sync + 'static,
{
    let mut docs = Vec::with_capacity(STEP_DOCS);
    let (mut owners, mut rows, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut left = set.iter();
    loop {
        docs.clear();
        docs.extend(left.by_ref().take(STEP_DOCS));
        if docs.is_empty() {
            return;
        }
        owners.clear();
        rows.clear();
        column.row_ids_for_docs(&docs, &mut owners, &mut rows);
        values.clear();
        values.resize(rows.len(), T::default());
        column.values.get_vals(&rows, &mut values);
        for (doc, value) in owners.iter().zip(&values) {
            visit(*doc, *value);
        }
    }
}
