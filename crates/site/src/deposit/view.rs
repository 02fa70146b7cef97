//! The blocks of the form as its template shows them: each field by its sort, with what it says and what is wrong with it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::description::{Block, Field, Kind};
use super::form::{Faults, Form, Row};
use crate::language::Language;

/// Choices beyond which a list of them is scrolled.
const CHOICES_MAX: usize = 20;

/// The texts of a language.
type Words = BTreeMap<&'static str, &'static str>;

/// What is around the fields: language and texts, what was typed, what is wrong, and which field has got more rows.
pub(super) struct View<'a> {
    pub(super) language: Language,
    pub(super) form: &'a Form,
    pub(super) faults: &'a Faults,
    pub(super) more: &'a str,
}

impl View<'_> {
    /// The blocks: what stands at once, and what stands behind "more".
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

    /// What is wrong, with the names of the fields, in their order; for the list above the form.
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

    /// The name of something and its language: ours where we have one, else Dataverse's, which is English.
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

    /// One input.
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
            // An input of one line would lose what divides the lines.
            (None, Kind::Text) => ("text", "text"),
            (None, _) if text.contains('\n') || (field.is_compound() && cell.is_multiple) => ("text", "text"),
            (None, Kind::Email) => ("line", "email"),
            (None, Kind::Url) => ("line", "url"),
            (None, Kind::Whole) => ("line", "numeric"),
            (None, Kind::Decimal) => ("line", "decimal"),
            (None, Kind::Line | Kind::Date) => ("line", "text"),
        };
        let offered = cell.choices.as_deref().filter(|_| !cell.is_typed()).unwrap_or_default();
        // What is said and is not offered any more is kept.
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
