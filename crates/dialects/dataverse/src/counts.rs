//! How often texts occur in records, counted from the search index.

use std::collections::BTreeMap;

use pinakes_store::{Expr, Field, Kind, View};
use serde_json::Value;

use crate::error::ApiError;

/// Returns how many records of those that satisfy a condition have each of the texts at a path, or in the list there.
pub(crate) fn of_texts(
    view: &mut View<'_>,
    kind: &'static Kind,
    filter: &Expr,
    path: &str,
) -> Result<BTreeMap<String, u64>, ApiError> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let field = Field { path: path.into(), by_day: false };
    let pointer = format!("/{}", path.replace('.', "/"));
    let mut add = |body: &Value| {
        let mut texts: Vec<&str> = match body.pointer(&pointer) {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            value => value.and_then(Value::as_str).into_iter().collect(),
        };
        texts.sort_unstable();
        texts.dedup();
        texts.into_iter().for_each(|it| *counts.entry(it.to_owned()).or_default() += 1);
    };
    let counted = view.count_values(kind, filter, &[field], &mut add)?;
    for (value, n) in counted.into_iter().flat_map(|it| it.n_records) {
        if let Ok(Value::String(text)) = serde_json::from_str(&value) {
            *counts.entry(text).or_default() += n;
        }
    }
    Ok(counts)
}
