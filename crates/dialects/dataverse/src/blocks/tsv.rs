//! Parser of the tables in which metadata blocks are published: three sections of tab-separated lines, each headed by a
//! line with `#`.
//!
//! Format: Dataverse guides, "Metadata Customization". Lines may have more or fewer empty columns than their heading.

use super::definition::{FieldKind, Term};

/// Longest table that is read, in bytes.
pub const MAX_BYTES: usize = 16 << 20;

/// The contents of a table, not yet joined with the registry.
#[derive(Debug, Default)]
pub struct Table {
    /// (name, owner, display name, URI).
    pub blocks: Vec<BlockRow>,
    /// Fields.
    pub fields: Vec<FieldRow>,
    /// (field, value).
    pub terms: Vec<(String, Term)>,
}

/// A line of `#metadataBlock`.
#[derive(Debug)]
pub struct BlockRow {
    /// Name.
    pub name: String,
    /// Alias of the owner; may be empty.
    pub owner: String,
    /// Display name.
    pub display_name: String,
    /// Namespace; may be empty.
    pub uri: String,
}

/// A line of `#datasetField`.
#[derive(Debug)]
pub struct FieldRow {
    /// Name.
    pub name: String,
    /// Display name.
    pub title: String,
    /// Explanation.
    pub description: String,
    /// Placeholder of the empty input.
    pub watermark: String,
    /// Type.
    pub kind: FieldKind,
    /// Position.
    pub order: i64,
    /// How a value is displayed.
    pub display_format: String,
    /// advancedSearchField, allowControlledVocabulary, allowmultiples, facetable, displayoncreate, required.
    pub flags: [bool; 6],
    /// Name of the parent; may be empty.
    pub parent: String,
    /// Name of the block.
    pub block: String,
    /// URI of its meaning; may be empty.
    pub uri: String,
}

/// Why a table could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Error parsing metadata block in {section} part, line #{line}: {what}")]
pub struct TsvError {
    /// The section: `METADATABLOCK`, `DATASETFIELD` or `CONTROLLEDVOCABULARY`.
    pub section: &'static str,
    /// Line number, from 1.
    pub line: usize,
    /// What was found.
    pub what: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Before,
    Block,
    Field,
    Vocabulary,
}

impl Section {
    fn name(self) -> &'static str {
        match self {
            Self::Before | Self::Block => "METADATABLOCK",
            Self::Field => "DATASETFIELD",
            Self::Vocabulary => "CONTROLLEDVOCABULARY",
        }
    }
}

/// Parses a table.
///
/// Errors: the first line that is invalid, with its section and number.
pub fn parse(text: &str) -> Result<Table, TsvError> {
    let mut table = Table::default();
    let mut section = Section::Before;
    for (index, line) in text.lines().enumerate() {
        let fail =
            |section: Section, what: String| TsvError { section: section.name(), line: index + 1, what };
        if MAX_BYTES < text.len() {
            return Err(fail(section, format!("the table has {} bytes, {MAX_BYTES} are read", text.len())));
        }
        let cells: Vec<String> = line.split('\t').map(clean).collect();
        let first = cells[0].to_ascii_lowercase();
        match first.as_str() {
            "#metadatablock" => section = Section::Block,
            "#datasetfield" => section = Section::Field,
            "#controlledvocabulary" => section = Section::Vocabulary,
            _ if cells.iter().all(String::is_empty) => {}
            _ => match section {
                Section::Before => {
                    return Err(fail(section, "expected a line that begins with #metadataBlock".into()));
                }
                Section::Block => table.blocks.push(block(&cells).map_err(|what| fail(section, what))?),
                Section::Field => table.fields.push(field(&cells).map_err(|what| fail(section, what))?),
                Section::Vocabulary => table.terms.push(term(&cells).map_err(|what| fail(section, what))?),
            },
        }
    }
    Ok(table)
}

/// Returns a cell without surrounding white space and quotes.
fn clean(cell: &str) -> String {
    let cell = cell.trim_matches(|it: char| it.is_whitespace() || it == '\u{feff}');
    let inner = cell.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    inner.map_or_else(|| cell.to_owned(), |it| it.replace("\"\"", "\""))
}

fn at(cells: &[String], index: usize) -> &str {
    cells.get(index).map_or("", String::as_str)
}

fn required<'a>(cells: &'a [String], index: usize, name: &str) -> Result<&'a str, String> {
    match at(cells, index) {
        "" => Err(format!("missing '{name}' column (#{})", index + 1)),
        text => Ok(text),
    }
}

fn block(cells: &[String]) -> Result<BlockRow, String> {
    Ok(BlockRow {
        name: required(cells, 1, "name")?.to_owned(),
        owner: at(cells, 2).to_owned(),
        display_name: required(cells, 3, "displayName")?.to_owned(),
        uri: at(cells, 4).to_owned(),
    })
}

/// The columns of a field that may be empty but not absent, if a later one is needed.
const FIELD_COLUMNS: [&str; 15] = [
    "name",
    "title",
    "description",
    "watermark",
    "fieldType",
    "displayOrder",
    "displayFormat",
    "advancedSearchField",
    "allowControlledVocabulary",
    "allowmultiples",
    "facetable",
    "displayoncreate",
    "required",
    "parent",
    "metadatablock_id",
];

fn field(cells: &[String]) -> Result<FieldRow, String> {
    if let Some(name) = FIELD_COLUMNS.get(cells.len() - 1) {
        return Err(format!("missing '{name}' column (#{})", cells.len() + 1));
    }
    let kind = required(cells, 5, "fieldType")?;
    let mut flags = [false; 6];
    for (flag, index) in flags.iter_mut().zip(8..) {
        *flag = at(cells, index).eq_ignore_ascii_case("true");
    }
    Ok(FieldRow {
        name: required(cells, 1, "name")?.to_owned(),
        title: required(cells, 2, "title")?.to_owned(),
        description: at(cells, 3).to_owned(),
        watermark: at(cells, 4).to_owned(),
        kind: FieldKind::parse(kind).ok_or_else(|| format!("unknown fieldType {kind:?}"))?,
        order: number(at(cells, 6), "displayOrder")?,
        display_format: at(cells, 7).to_owned(),
        flags,
        parent: at(cells, 14).to_owned(),
        block: required(cells, 15, "metadatablock_id")?.to_owned(),
        uri: at(cells, 16).to_owned(),
    })
}

fn term(cells: &[String]) -> Result<(String, Term), String> {
    let alternates = cells.iter().skip(5).filter(|it| !it.is_empty()).cloned().collect();
    Ok((
        required(cells, 1, "DatasetField")?.to_owned(),
        Term {
            value: required(cells, 2, "Value")?.to_owned(),
            identifier: at(cells, 3).to_owned(),
            order: number(at(cells, 4), "displayOrder").unwrap_or(0),
            alternates,
        },
    ))
}

fn number(text: &str, name: &str) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| format!("{name} is {text:?}, expected a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_tables_are_read() {
        let sizes: Vec<_> = crate::blocks::SHIPPED
            .iter()
            .map(|(name, text)| parse(text).map(|it| (*name, it.fields.len(), it.terms.len())).unwrap())
            .collect();
        assert_eq!(sizes[0].1, 80);
        assert!(sizes.iter().all(|it| 0 < it.1), "{sizes:?}");
    }

    #[test]
    fn a_fault_names_its_line() {
        let text = "#metadataBlock\tname\n\tx\t\tX\n#datasetField\n\ta\tA\t\t\twhat\t1\t\t\t\t\t\t\t\t\tx\n";
        let error = parse(text).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Error parsing metadata block in DATASETFIELD part, line #4: unknown fieldType \"what\""
        );
        let short = parse("#metadataBlock\tname\n\tx\t\tX\n#datasetField\n\ta\tA\n").unwrap_err();
        assert_eq!(short.what, "missing 'description' column (#4)");
        assert_eq!(parse("name\tx").unwrap_err().line, 1);
    }
}
