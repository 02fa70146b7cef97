//! The options of a search for instances that are no fields of theirs (mod-search): `itemTags`, `publicNotes`,
//! `cql.allItems`. A clause about one is written as conditions on fields.

use crate::platform::cql::{Clause, Modifier, Node, Relation, Term, everything};

/// Options that stand for several fields, or for one of related records.
const FIELDS: [(&str, &[&str]); 22] = [
    ("cql.all", &["keyword", "holdings.keyword", "items.keyword"]),
    ("cql.allInstances", &["keyword"]),
    ("cql.allHoldings", &["holdings.keyword"]),
    ("cql.allItems", &["items.keyword"]),
    (
        "authorityId",
        &[
            "contributors.authorityId",
            "subjects.authorityId",
            "alternativeTitles.authorityId",
            "series.authorityId",
        ],
    ),
    ("holdingsTags", &["holdings.tags.tagList"]),
    ("holdingTags", &["holdings.tags.tagList"]),
    ("holdingsTypeId", &["holdings.holdingsTypeId"]),
    ("holdingsIdentifiers", &["holdings.id", "holdings.hrid", "holdings.formerIds"]),
    ("holdingIdentifiers", &["holdings.id", "holdings.hrid", "holdings.formerIds"]),
    ("holdingsFullCallNumbers", &["holdings.callNumber"]),
    ("itemTags", &["items.tags.tagList"]),
    ("items.tags", &["items.tags.tagList"]),
    ("item.tags", &["items.tags.tagList"]),
    (
        "itemIdentifiers",
        &["items.id", "items.hrid", "items.barcode", "items.accessionNumber", "items.formerIds"],
    ),
    ("holdings.fullCallNumber", &["holdings.callNumber"]),
    ("itemFullCallNumbers", &[CALL_NUMBER]),
    ("items.fullCallNumber", &[CALL_NUMBER]),
    ("item.fullCallNumber", &[CALL_NUMBER]),
    ("callNumber", &[CALL_NUMBER]),
    ("items.effectiveCallNumberComponents", &[CALL_NUMBER]),
    ("item.effectiveCallNumberComponents", &[CALL_NUMBER]),
];

const CALL_NUMBER: &str = "items.effectiveCallNumberComponents.callNumber";

/// Options for the notes that are not for staff only.
const PUBLIC_NOTES: [(&str, &[&str]); 4] = [
    ("publicNotes", &["notes"]),
    ("holdingsPublicNotes", &["holdings.notes"]),
    ("holdingPublicNotes", &["holdings.notes"]),
    ("itemPublicNotes", &["items.notes", "items.circulationNotes"]),
];

/// The type of alternative titles that `uniformTitle` stands for.
const UNIFORM_TITLE: &str = "30512027-cdc9-4c79-af75-1565b3bd888d";

/// Writes the options in a condition on instances as conditions on fields.
pub(super) fn resolved(node: Node) -> Node {
    node.with_clauses(&meant)
}

fn meant(clause: Clause) -> Node {
    let is = |name: &str| clause.index.eq_ignore_ascii_case(name);
    if let Some((_, fields)) = FIELDS.iter().find(|it| is(it.0)) {
        return combined(&clause, fields.iter().map(|it| about(&clause, it)).collect());
    }
    if let Some((_, lists)) = PUBLIC_NOTES.iter().find(|it| is(it.0)) {
        return combined(&clause, lists.iter().map(|it| public_note(&clause, it)).collect());
    }
    if is("uniformTitle") {
        let field = "alternativeTitleTypeId";
        return Node::Clause(of_element(&clause, "alternativeTitles", field, UNIFORM_TITLE));
    }
    if is("shared") {
        // Nothing is shared between tenants.
        let is_wanted = clause.term.literal().is_some_and(|it| it.eq_ignore_ascii_case("false"));
        return if is_wanted { everything() } else { nothing() };
    }
    Node::Clause(clause)
}

/// Writes `sourceFileId==NULL` in a condition on headings as the absence of a source file.
pub(super) fn of_headings(node: Node) -> Node {
    node.with_clauses(&|clause| {
        let is_file =
            ["sourceFileId", "authoritySourceFileId"].iter().any(|it| it.eq_ignore_ascii_case(&clause.index));
        if !is_file || clause.term.literal().as_deref() != Some("NULL") {
            return Node::Clause(clause);
        }
        let present = Clause { relation: Relation::Words, term: Term::new(""), ..clause };
        Node::Negation(Box::new(Node::Clause(present)))
    })
}

/// Combines the conditions that a clause stands for: one of them is to hold, and all of them if the clause excludes.
fn combined(clause: &Clause, parts: Vec<Node>) -> Node {
    let excludes = clause.relation == Relation::Different;
    let joint = |a, b| {
        let (a, b) = (Box::new(a), Box::new(b));
        if excludes { Node::And(a, b) } else { Node::Or(a, b) }
    };
    parts.into_iter().reduce(joint).unwrap_or_else(nothing)
}

fn about(clause: &Clause, index: &str) -> Node {
    Node::Clause(Clause { index: index.to_owned(), ..clause.clone() })
}

/// A clause about the elements of a list whose `field` is `value`.
fn of_element(clause: &Clause, list: &str, field: &str, value: &str) -> Clause {
    let only = Modifier { name: field.to_owned(), value: Some((Relation::Exact, Term::new(value))) };
    let mut modifiers = clause.modifiers.clone();
    modifiers.push(only);
    Clause { index: list.to_owned(), modifiers, ..clause.clone() }
}

/// A note is public if it says so, or if it says nothing.
fn public_note(clause: &Clause, list: &str) -> Node {
    let marked = |value| Box::new(Node::Clause(of_element(clause, list, "staffOnly", value)));
    let unmarked = Node::Not(Box::new(about(clause, list)), marked("true"));
    Node::Or(marked("false"), Box::new(unmarked))
}

fn nothing() -> Node {
    Node::Negation(Box::new(everything()))
}
