//! A job profile in executable form: the nodes of its snapshot, read once per job.

use serde_json::Value;

use super::criteria::{Criterion, Qualifier};
use super::fields::FieldRule;
use super::modify::Edit;
use crate::source_records::marc::MarcPath;

/// The type of a FOLIO record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Entity {
    MarcBib,
    MarcHoldings,
    MarcAuthority,
    Instance,
    Holdings,
    Item,
    Authority,
}

impl Entity {
    /// Returns its name in profiles and the log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::MarcBib => "MARC_BIBLIOGRAPHIC",
            Self::MarcHoldings => "MARC_HOLDINGS",
            Self::MarcAuthority => "MARC_AUTHORITY",
            Self::Instance => "INSTANCE",
            Self::Holdings => "HOLDINGS",
            Self::Item => "ITEM",
            Self::Authority => "AUTHORITY",
        }
    }

    /// Returns the entity with a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [
            Self::MarcBib,
            Self::MarcHoldings,
            Self::MarcAuthority,
            Self::Instance,
            Self::Holdings,
            Self::Item,
            Self::Authority,
        ]
        .into_iter()
        .find(|it| it.name() == name)
    }

    /// Returns the `recordType` of its source records; `None` if it is not a source record.
    pub(crate) const fn record_type(self) -> Option<&'static str> {
        match self {
            Self::MarcBib => Some("MARC_BIB"),
            Self::MarcHoldings => Some("MARC_HOLDING"),
            Self::MarcAuthority => Some("MARC_AUTHORITY"),
            _ => None,
        }
    }
}

/// The operation of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Update,
    Modify,
    Delete,
}

impl Verb {
    /// Returns its name in profiles and journals.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Modify => "MODIFY",
            Self::Delete => "DELETE",
        }
    }
}

/// The outcome of the parent on which a node is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum React {
    Match,
    NonMatch,
}

/// A node of the tree.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) react: Option<React>,
    pub(crate) order: i64,
    pub(crate) content: Content,
    pub(crate) children: Vec<Node>,
}

/// The content of a node.
#[derive(Debug)]
pub(crate) enum Content {
    Match(MatchSpec),
    Action(Action),
}

/// The first detail of a match profile.
#[derive(Debug)]
pub(crate) struct MatchSpec {
    /// Position among all matches of the tree.
    pub(crate) number: usize,
    pub(crate) incoming: IncomingValue,
    pub(crate) incoming_qualifier: Option<Qualifier>,
    pub(crate) existing: ExistingValue,
    pub(crate) existing_qualifier: Option<Qualifier>,
    pub(crate) existing_type: Entity,
    pub(crate) criterion: Criterion,
}

/// The source of the incoming record's value.
#[derive(Debug)]
pub(crate) enum IncomingValue {
    Marc(MarcPath),
    Static(String),
}

/// Where the compared values of stored records are.
#[derive(Debug)]
pub(crate) enum ExistingValue {
    Marc(MarcPath),
    /// Dotted path in the record, and the type that identifiers must have.
    Field {
        path: String,
        identifier_type: Option<String>,
    },
}

/// An action with its mapping.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) verb: Verb,
    pub(crate) entity: Entity,
    pub(crate) removes_9: bool,
    /// Fields of instances, holdings and items that the mapping sets.
    pub(crate) fields: Vec<FieldRule>,
    /// Edits of the MARC record.
    pub(crate) edits: Vec<Edit>,
    /// Ids of field protections that this mapping overrides.
    pub(crate) overridden: Vec<String>,
}

/// A tree in executable form.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) name: String,
    pub(crate) roots: Vec<Node>,
    pub(crate) n_matches: usize,
}

impl Tree {
    /// Parses the snapshot of a job profile. Errors: what in it is not supported, with the names of the profiles.
    pub(crate) fn read(snapshot: &Value) -> Result<Self, String> {
        let name = snapshot.pointer("/content/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut n_matches = 0;
        let roots = children(snapshot, &mut n_matches)?;
        if roots.is_empty() {
            return Err(format!(
                "The '{name}' job profile does not have any linked action or matching profiles"
            ));
        }
        Ok(Self { name, roots, n_matches })
    }

    /// Calls `visit` with every node.
    pub(crate) fn for_each<'t>(&'t self, visit: &mut impl FnMut(&'t Node)) {
        fn walk<'t>(nodes: &'t [Node], visit: &mut impl FnMut(&'t Node)) {
            for node in nodes {
                visit(node);
                walk(&node.children, visit);
            }
        }
        walk(&self.roots, visit);
    }

    /// Checks whether the tree has a matching action.
    pub(crate) fn has_action(&self, is_it: impl Fn(&Action) -> bool) -> bool {
        let mut found = false;
        self.for_each(&mut |node| {
            found |= matches!(&node.content, Content::Action(action) if is_it(action));
        });
        found
    }

    /// Checks whether the tree matches on stored MARC records of that type.
    pub(crate) fn matches_on(&self, entity: Entity) -> bool {
        let mut found = false;
        self.for_each(&mut |node| {
            found |= matches!(&node.content, Content::Match(spec) if spec.existing_type == entity);
        });
        found
    }
}

fn children(node: &Value, n_matches: &mut usize) -> Result<Vec<Node>, String> {
    let list = node.get("childSnapshotWrappers").and_then(Value::as_array).into_iter().flatten();
    let mut nodes = Vec::new();
    for child in list {
        let content = child.get("content").unwrap_or(&Value::Null);
        let content = match child.get("contentType").and_then(Value::as_str) {
            Some("MATCH_PROFILE") => {
                *n_matches += 1;
                Content::Match(match_spec(content, *n_matches - 1)?)
            }
            Some("ACTION_PROFILE") => Content::Action(action(content, child)?),
            _ => continue,
        };
        let children = match content {
            Content::Match(_) => children(child, n_matches)?,
            Content::Action(_) => Vec::new(),
        };
        let react = match child.get("reactTo").and_then(Value::as_str) {
            Some("MATCH") => Some(React::Match),
            Some("NON_MATCH") => Some(React::NonMatch),
            _ => None,
        };
        let order = child.get("order").and_then(Value::as_i64).unwrap_or(0);
        nodes.push(Node { react, order, content, children });
    }
    // The record is modified before anything is created from it.
    nodes
        .sort_by_key(|it| (it.order, !matches!(&it.content, Content::Action(it) if it.verb == Verb::Modify)));
    let first_match =
        nodes.iter().position(|it| matches!(it.content, Content::Match(_))).unwrap_or(nodes.len());
    nodes[..first_match]
        .sort_by_key(|it| !matches!(&it.content, Content::Action(it) if it.verb == Verb::Modify));
    Ok(nodes)
}

fn match_spec(profile: &Value, number: usize) -> Result<MatchSpec, String> {
    let name = profile.get("name").and_then(Value::as_str).unwrap_or_default();
    let wrong = |what: &str| format!("the match profile '{name}' {what}");
    let detail = profile.pointer("/matchDetails/0").ok_or_else(|| wrong("has no match details"))?;
    let (incoming, existing) = (detail.get("incomingMatchExpression"), detail.get("existingMatchExpression"));
    let (Some(incoming), Some(existing)) = (incoming, existing) else {
        return Err(wrong("has no expressions to compare"));
    };
    let type_name = detail
        .get("existingRecordType")
        .or_else(|| profile.get("existingRecordType"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let existing_type = Entity::named(type_name)
        .ok_or_else(|| wrong(&format!("compares with {type_name}, which is not imported")))?;
    let is_static = detail.get("incomingRecordType").and_then(Value::as_str) == Some("STATIC_VALUE")
        || incoming.get("dataValueType").and_then(Value::as_str) == Some("STATIC_VALUE");
    let incoming_value = match is_static {
        true => IncomingValue::Static(static_value(incoming)),
        false => IncomingValue::Marc(marc_path(incoming).ok_or_else(|| wrong("names no incoming field"))?),
    };
    let existing_value = match existing_type.record_type() {
        Some(_) => ExistingValue::Marc(marc_path(existing).ok_or_else(|| wrong("names no existing field"))?),
        None => field_path(existing).ok_or_else(|| wrong("names no existing field"))?,
    };
    let name = detail.get("matchCriterion").and_then(Value::as_str).unwrap_or("EXACTLY_MATCHES");
    let criterion =
        Criterion::named(name).ok_or_else(|| wrong(&format!("has the unknown criterion {name}")))?;
    Ok(MatchSpec {
        number,
        incoming: incoming_value,
        incoming_qualifier: incoming.get("qualifier").and_then(Qualifier::read),
        existing: existing_value,
        existing_qualifier: existing.get("qualifier").and_then(Qualifier::read),
        existing_type,
        criterion,
    })
}

fn static_value(expression: &Value) -> String {
    let details = expression.get("staticValueDetails").unwrap_or(&Value::Null);
    let text = |name: &str| details.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
    let number = || details.get("number").and_then(Value::as_number).map(ToString::to_string);
    let found = text("text").or_else(|| text("number")).or_else(|| text("exactDate")).map(str::to_owned);
    found.or_else(number).unwrap_or_default()
}

fn labelled<'v>(expression: &'v Value, label: &str) -> Option<&'v str> {
    let fields = expression.get("fields").and_then(Value::as_array).into_iter().flatten();
    let mut found = fields.filter(|it| it.get("label").and_then(Value::as_str) == Some(label));
    found.next()?.get("value")?.as_str()
}

fn marc_path(expression: &Value) -> Option<MarcPath> {
    let tag = labelled(expression, "field").filter(|it| it.len() == 3)?;
    let text = |label: &str| labelled(expression, label).unwrap_or_default();
    let subfield = if tag.starts_with("00") { "" } else { text("recordSubfield") };
    Some(MarcPath::new(tag, text("indicator1"), text("indicator2"), subfield))
}

/// Parses `instance.identifiers[].value` as `identifiers.value`.
fn field_path(expression: &Value) -> Option<ExistingValue> {
    let whole = labelled(expression, "field")?.replace("[]", "");
    let (_, path) = whole.split_once('.')?;
    let identifier_type = labelled(expression, "identifierTypeId").map(str::to_owned);
    Some(ExistingValue::Field { path: path.to_owned(), identifier_type })
}

fn action(profile: &Value, node: &Value) -> Result<Action, String> {
    let text = |name: &str| profile.get(name).and_then(Value::as_str).unwrap_or_default();
    let wrong = |what: String| format!("the action profile '{}' {what}", text("name"));
    let verb = match text("action") {
        "CREATE" => Verb::Create,
        "UPDATE" => Verb::Update,
        "MODIFY" => Verb::Modify,
        "DELETE" => Verb::Delete,
        other => return Err(wrong(format!("has the unknown action {other}"))),
    };
    let record = text("folioRecord");
    let entity =
        Entity::named(record).ok_or_else(|| wrong(format!("is for {record}, which is not imported")))?;
    let mapping = node
        .get("childSnapshotWrappers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|it| it.get("contentType").and_then(Value::as_str) == Some("MAPPING_PROFILE"))
        .and_then(|it| it.get("content"))
        .unwrap_or(&Value::Null);
    let list = |pointer: &str| mapping.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let fields = list("/mappingDetails/mappingFields").filter_map(FieldRule::read).collect();
    let edits = list("/mappingDetails/marcMappingDetails").filter_map(Edit::read).collect();
    let overridden = list("/marcFieldProtectionSettings")
        .filter(|it| it.get("override").and_then(Value::as_bool) == Some(true))
        .filter_map(|it| it.get("id")?.as_str().map(str::to_owned))
        .collect();
    let removes_9 = profile.get("remove9Subfields").and_then(Value::as_bool).unwrap_or(false);
    Ok(Action { verb, entity, removes_9, fields, edits, overridden })
}
