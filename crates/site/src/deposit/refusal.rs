//! Where on the form the faults belong that Dataverse finds: its refusals are one text that names fields as people read them.

use super::description::{Block, Field, Kind};
use super::form::{Faults, Form, Row};

/// How the refusal of metadata begins.
const BEGINNING: &str = "Validation Failed: ";
/// What stands between a fault and the value that is at fault.
const VALUE: &str = " (Invalid value:";

/// A fault of a refusal, and the value that is at fault.
type Said<'m> = (&'m str, &'m str);

/// The faults of a refusal; nothing of one that is about no fields.
fn said(message: &str) -> Vec<Said<'_>> {
    let Some(mut rest) = message.strip_prefix(BEGINNING) else { return Vec::new() };
    let mut found = Vec::new();
    while let Some((fault, behind)) = rest.split_once(VALUE) {
        let (value, next) = behind.split_once("), ").unwrap_or_else(|| {
            let whole = behind.strip_suffix(").").or_else(|| behind.strip_suffix(')'));
            (whole.unwrap_or(behind), "")
        });
        found.push((fault, value));
        rest = next;
    }
    found
}

/// What a fault is, for a field of this name: what it lacks, or a value that cannot be so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Missing,
    Wrong,
    /// Of the whole of a compound value.
    Whole,
}

fn sort_of(fault: &str, value: &str, name: &str) -> Option<Sort> {
    let rest = fault.strip_prefix(name)?.strip_prefix(' ')?;
    if rest == "is required." || rest.starts_with("is required if ") {
        return Some(Sort::Missing);
    }
    if !value.is_empty() && rest.strip_prefix(value).is_some_and(|it| it.trim_start().starts_with("is not "))
    {
        return Some(Sort::Wrong);
    }
    rest.starts_with("has ").then_some(Sort::Whole)
}

/// The inputs of a field that a fault is about.
fn inputs(field: &Field, rows: &[Row], at_cell: usize, sort: Sort, value: &str) -> Vec<String> {
    let cell = &field.cells()[at_cell];
    let is_meant = |row: &Row| match sort {
        Sort::Missing => row[at_cell].is_empty() && row.iter().any(|it| !it.is_empty()),
        Sort::Wrong => row[at_cell].iter().any(|it| it == value.trim()),
        Sort::Whole => false,
    };
    let found: Vec<String> =
        rows.iter().enumerate().filter(|it| is_meant(it.1)).map(|it| field.input(it.0, cell)).collect();
    match sort {
        Sort::Missing if found.is_empty() => vec![field.input(0, cell)],
        _ => found,
    }
}

/// Key of the sentence that says the same in the visitor's language; none where Dataverse's own is shown.
fn key_of(sort: Sort, kind: Kind) -> Option<&'static str> {
    match (sort, kind) {
        (Sort::Missing, _) => Some("fault_missing"),
        (Sort::Wrong, Kind::Date) => Some("fault_date"),
        (Sort::Wrong, Kind::Email) => Some("fault_email"),
        (Sort::Wrong, Kind::Url) => Some("fault_address"),
        (Sort::Wrong, Kind::Decimal) => Some("fault_number"),
        (Sort::Wrong, Kind::Whole) => Some("fault_whole_number"),
        _ => None,
    }
}

/// The faults of a refusal by the inputs that they are about, and what is about none; `words` gives the sentence of a key.
pub(super) fn places(
    message: &str,
    blocks: &[Block],
    form: &Form,
    words: impl Fn(&str) -> String,
) -> (Faults, Option<String>) {
    let mut faults = Faults::new();
    let mut others: Vec<&str> = Vec::new();
    let fields = || blocks.iter().flat_map(|it| &it.fields);
    let list = said(message);
    for (fault, value) in &list {
        let mut is_placed = false;
        for field in fields() {
            if sort_of(fault, value, &field.display_name) == Some(Sort::Whole) && field.is_compound() {
                faults.insert(field.name.clone(), (*fault).to_owned());
                is_placed = true;
            }
            for (at, cell) in field.cells().iter().enumerate() {
                let sort = sort_of(fault, value, &cell.display_name);
                let Some(sort) = sort.filter(|it| *it != Sort::Whole) else { continue };
                for input in inputs(field, form.rows(field), at, sort, value) {
                    let sentence = key_of(sort, cell.kind).map_or_else(|| (*fault).to_owned(), &words);
                    faults.insert(input, sentence);
                    is_placed = true;
                }
            }
            // A compound field that must have a value, though none of its parts must.
            if field.is_compound() && sort_of(fault, value, &field.display_name) == Some(Sort::Missing) {
                faults.insert(field.name.clone(), words("fault_missing"));
                is_placed = true;
            }
        }
        if !is_placed {
            others.push(fault);
        }
    }
    if list.is_empty() {
        // Other refusals name a field as its block does.
        let is_named = |it: &&Field| message.contains(&format!("'{}'", it.name));
        match fields().find(|it| it.cells().iter().any(|cell| is_named(&cell))) {
            Some(field) => drop(faults.insert(field.name.clone(), message.to_owned())),
            None => others.push(message),
        }
    }
    (faults, (!others.is_empty()).then(|| others.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deposit::description::tests::block;
    use crate::fields::Fields;
    use serde_json::json;

    #[test]
    fn faults_stand_by_the_inputs_that_they_are_about() {
        let blocks = [block()];
        let sent = "title/rows=1&title/0=&author/rows=3&author/0/authorName=A&author/1/authorIdentifier=x\
            &words/rows=1&words/0=&subject/rows=1&size/rows=1&size/0=1),+2";
        let form = Form::of_sent(&Fields::parse(sent), &blocks);
        for (message, expected, other) in [
            (
                "Validation Failed: title is required. (Invalid value:), size 7  is not a valid integer. (Invalid value:7).",
                json!({"title/0": "fault_missing"}),
                Some("size 7  is not a valid integer."),
            ),
            (
                "Validation Failed: Author Name is required if you choose to enter a value in any of the optional author fields. (Invalid value:).",
                json!({"author/1/authorName": "fault_missing"}),
                None,
            ),
            (
                "Validation Failed: author is required. (Invalid value:).",
                json!({"author": "fault_missing"}),
                None,
            ),
            (
                "Validation Failed: size 1), 2  is not a valid integer. (Invalid value:1), 2).",
                json!({}),
                Some("size 1), 2  is not a valid integer."),
            ),
            (
                "Validation Failed: author has invalid coordinates. (Invalid value:1, 2).",
                json!({"author": "author has invalid coordinates."}),
                None,
            ),
            (
                "Value 'Spells' does not exist in type 'subject'",
                json!({"subject": "Value 'Spells' does not exist in type 'subject'"}),
                None,
            ),
            (
                "Internal version timestamp is outdated",
                json!({}),
                Some("Internal version timestamp is outdated"),
            ),
        ] {
            let (faults, rest) = places(message, &blocks, &form, str::to_owned);
            assert_eq!((json!(faults), rest.as_deref()), (expected, other), "{message}");
        }
        let form = Form::of_sent(&Fields::parse("size/rows=1&size/0=+7,5&words/rows=0"), &blocks);
        let message = "Validation Failed: size 7,5  is not a valid integer. (Invalid value:7,5).";
        assert_eq!(
            json!(places(message, &blocks, &form, str::to_owned).0),
            json!({"size/0": "fault_whole_number"})
        );
    }
}
