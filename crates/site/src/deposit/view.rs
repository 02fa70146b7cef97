//! The blocks of the form as its template shows them: each field by its type, with its values and faults.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::description::{Block, Field, Kind};
use super::form::{Faults, Form, Row};
use crate::language::Language;

/// Number of choices above which a list of them scrolls.
const CHOICES_MAX: usize = 20;

/// The texts of a language.
type Words = BTreeMap<&'static str, &'static str>;

/// The context of the fields: language and texts, typed values, faults, and the field that got more rows.
pub(super) struct View<'a> {
    pub(super) language: Language,
    pub(super) form: &'a Form,
    pub(super) faults: &'a Faults,
    pub(super) more: &'a str,
}

impl View<'_> {
    /// Returns the blocks: the fields that are shown at once, and those under "more".
    pub(super) fn blocks(&self, blocks: &[Block]) -> Vec<Value> {
        let words = self.language.texts();
        let of = |block: &Block| {
            let (main, more): (Vec<&Field>, Vec<&Field>) = block.fields.iter().partition(|it| it.is_main());
            let is_open = |it: &&Field| self.form.says(it) || self.is_wrong(it) || self.more == it.name;
            let shown = |list: &[&Field], is_main| -> Vec<Value> {
                list.iter().map(|it| self.field(&words, it, is_main)).collect()
            };
            let (title, language) = self.named(&words, &format!("block_{}", block.name), &block.title);
            json!({
                "title": title, "lang": language, "main": shown(&main, true), "more": shown(&more, false),
                "is_open": more.iter().any(is_open),
            })
        };
        blocks.iter().filter(|it| !it.fields.is_empty()).map(of).collect()
    }

    /// Returns the faults with the names of their fields, in the order of the form; for the list above the form.
    pub(super) fn faults(&self, blocks: &[Block]) -> Vec<Value> {
        let words = self.language.texts();
        let mut list = Vec::new();
        for field in blocks.iter().flat_map(|it| &it.fields) {
            let title = self.title(&words, field).0;
            let mut note = |key: String, title: &str| {
                if let Some(sentence) = self.faults.get(&key) {
                    list.push(json!({"key": key, "title": title, "text": sentence}));
                }
            };
            note(field.name.clone(), &title);
            for at in 0..self.form.rows(field).len() {
                for cell in field.cells() {
                    let of_cell = self.title(&words, cell).0;
                    let whole =
                        if field.is_compound() { format!("{title}, {of_cell}") } else { title.clone() };
                    note(field.input(at, cell), &whole);
                }
            }
        }
        list
    }

    fn is_wrong(&self, field: &Field) -> bool {
        let begins = format!("{}/", field.name);
        self.faults.keys().any(|it| *it == field.name || it.starts_with(&begins))
    }

    /// Returns a title and its language: our own if there is one, else Dataverse's, which is English.
    fn named(&self, words: &Words, key: &str, title: &str) -> (String, &'static str) {
        match words.get(key) {
            Some(it) => ((*it).to_owned(), self.language.tag()),
            None => (title.to_owned(), Language::English.tag()),
        }
    }

    fn title(&self, words: &Words, field: &Field) -> (String, &'static str) {
        self.named(words, &format!("field_{}", field.name), &field.title)
    }

    fn field(&self, words: &Words, field: &Field, is_main: bool) -> Value {
        let (title, language) = self.title(words, field);
        let rows = self.form.rows(field);
        let row = |(at, row): (usize, &Row)| -> Vec<Value> {
            let cells = field.cells().iter().zip(row);
            cells.map(|(cell, said)| self.cell(words, field, (at, cell), said, is_main)).collect()
        };
        json!({
            "name": field.name, "title": title, "lang": language, "is_compound": field.is_compound(),
            "is_many": field.has_rows(), "is_required": field.is_required, "n_rows": rows.len(),
            "rows": rows.iter().enumerate().map(row).collect::<Vec<_>>(), "fault": self.faults.get(&field.name),
            "hint": if is_main { "" } else { &field.hint }, "is_typed": field.is_typed(),
        })
    }

    /// Returns one input.
    fn cell(
        &self,
        words: &Words,
        field: &Field,
        (at, cell): (usize, &Field),
        said: &[String],
        is_main: bool,
    ) -> Value {
        let (title, language) = self.title(words, cell);
        let name = field.input(at, cell);
        let text = said.join("\n");
        let (manner, mode) = match (&cell.choices, cell.kind) {
            (Some(_), _) if cell.is_typed() => (if cell.is_multiple { "text" } else { "line" }, "text"),
            (Some(_), _) if cell.is_multiple => ("choices", "text"),
            (Some(_), _) => ("choice", "text"),
            // A single-line input would lose the line breaks.
            (None, Kind::Text) => ("text", "text"),
            (None, _) if text.contains('\n') || (field.is_compound() && cell.is_multiple) => ("text", "text"),
            (None, Kind::Email) => ("line", "email"),
            (None, Kind::Url) => ("line", "url"),
            (None, Kind::Whole) => ("line", "numeric"),
            (None, Kind::Decimal) => ("line", "decimal"),
            (None, Kind::Line | Kind::Date) => ("line", "text"),
        };
        let offered = cell.choices.as_deref().unwrap_or_default();
        // Values that are no longer offered are kept.
        let gone = if cell.choices.is_some() { said } else { &[] };
        let gone = gone.iter().filter(|it| !offered.contains(it));
        let choices: Vec<(&String, bool)> =
            offered.iter().chain(gone).map(|it| (it, said.contains(it))).collect();
        let is_date = cell.kind == Kind::Date && cell.example.is_empty();
        let is_needed = at == 0 && is_main && field.is_required && cell.is_required;
        json!({
            "name": name, "title": title, "lang": language, "manner": manner, "mode": mode, "text": text,
            "example": if is_date { "yyyy-mm-dd" } else { &cell.example }, "fault": self.faults.get(&name),
            "is_scrolled": CHOICES_MAX < choices.len(), "choices": choices, "is_needed": is_needed,
        })
    }
}
