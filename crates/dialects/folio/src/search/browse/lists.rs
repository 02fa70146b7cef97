//! The lists that can be browsed: the records of their entries, and how they are sorted and shown.

use http::StatusCode;
use pinakes_store::{Expr, Kind, ListPlace, Txn, View, Wanted, Weight, matches};
use serde_json::{Value, json};

use crate::authorities::authority::AUTHORITIES;
use crate::authorities::listed::{HEADINGS, authorities};
use crate::inventory::holdings::HOLDINGS;
use crate::inventory::instances::INSTANCES;
use crate::inventory::items::ITEMS;
use crate::inventory::listed::{
    CALL_NUMBERS, CLASSIFICATIONS, CONTRIBUTORS, SUBJECTS, call_numbers, classifications, contributors,
    subjects,
};
use crate::platform::app::Call;
use crate::platform::collection::Collection;
use crate::platform::cql::{self, Names, Node};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::listed::{Row, Shape};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};

/// A browse list.
pub(super) struct List {
    /// Its name among the lists of the kind.
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    pub(super) permission: &'static str,
    /// Names of the field at which a query starts; the first is shown.
    pub(super) anchors: &'static [&'static str],
    /// Fields of entries that are compared as a whole.
    pub(super) whole: &'static [&'static str],
    pub(super) of: fn() -> &'static Collection,
    pub(super) shape: Shape,
    pub(super) rows: fn(&Value) -> Vec<Row>,
    /// The field of an entry with its type, for lists that can be limited to types.
    pub(super) type_field: &'static str,
    /// Fields of the records that have an entry, by which entries can be selected.
    pub(super) of_records: Names,
    /// Adds to an entry the data that is read only for entries that are shown.
    pub(super) complete: fn(&mut View<'_>, &mut Item) -> Result<(), FolioError>,
    /// Parts of the list.
    options: Options,
}

/// The path of the location of a call number.
pub(super) const LOCATION: &str = "instances.locationId";
/// Where items have it.
pub(super) const ITEM_LOCATION: &str = "effectiveLocationId";

/// Fields of the items that have a call number.
const OF_ITEMS: Names =
    Names { aliases: &[(LOCATION, ITEM_LOCATION)], whole: &[ITEM_LOCATION], ..Names::PLAIN };

const CALL_NUMBER_TYPES: Options = &[
    ("all", &[]),
    ("lc", &["95467209-6d7b-468b-94df-0f5d7ad2747d"]),
    ("dewey", &["03dd64d0-5626-4ecd-8ece-4531e0069f35"]),
    ("nlm", &["703753ab-51f2-56fb-95c5-4fef1ae5d82c"]),
    ("sudoc", &["2d0a61e2-155a-5c7f-8567-a1c0a19d4813"]),
    ("other", &["89002095-204b-5a50-95d5-8ff2c5a92722"]),
    ("local", &[]),
];
const CLASSIFICATION_TYPES: Options = &[
    ("all", &[]),
    ("lc", &["ce176ace-a53e-4b4d-aa89-725ed7b2edac", "522b68ac-f107-5774-9f90-efb3a46bc02e"]),
    ("dewey", &["42471af9-7d25-4f3a-bf78-60d29dcf463b"]),
];

const PLAIN: fn(&mut View<'_>, &mut Item) -> Result<(), FolioError> = |_, _| Ok(());

/// All lists.
pub(super) static LISTS: [List; 6] = [
    List {
        name: "headings",
        path: "/browse/authorities",
        permission: "browse.authorities.collection.get",
        anchors: &["headingRef"],
        whole: &["authRefType", "headingType", "sourceFileId", "naturalId", "source"],
        of: || &AUTHORITIES,
        shape: HEADINGS,
        rows: authorities,
        type_field: "",
        of_records: Names::PLAIN,
        complete: PLAIN,
        options: &[],
    },
    List {
        name: "contributors",
        path: "/browse/contributors/instances",
        permission: "browse.contributors.instances.collection.get",
        anchors: &["name"],
        whole: &["contributorNameTypeId", "authorityId"],
        of: || &INSTANCES,
        shape: CONTRIBUTORS,
        rows: contributors,
        type_field: "",
        of_records: Names::PLAIN,
        complete: PLAIN,
        options: &[],
    },
    List {
        name: "subjects",
        path: "/browse/subjects/instances",
        permission: "browse.subjects.instances.collection.get",
        anchors: &["value"],
        whole: &["sourceId", "typeId", "authorityId"],
        of: || &INSTANCES,
        shape: SUBJECTS,
        rows: subjects,
        type_field: "",
        of_records: Names::PLAIN,
        complete: PLAIN,
        options: &[],
    },
    List {
        name: "classifications",
        path: "/browse/classification-numbers/{option}/instances",
        permission: "browse.classification-numbers.instances.collection.get",
        anchors: &["classificationNumber", "number"],
        whole: &["classificationTypeId"],
        of: || &INSTANCES,
        shape: CLASSIFICATIONS,
        rows: classifications,
        type_field: "classificationTypeId",
        of_records: Names::PLAIN,
        complete: with_title,
        options: CLASSIFICATION_TYPES,
    },
    List {
        name: "call_numbers",
        path: "/browse/call-numbers/instances",
        permission: "browse.call-numbers.instances.collection.get",
        anchors: &["fullCallNumber", "callNumber", "itemEffectiveShelvingOrder", "typedCallNumber"],
        whole: &["callNumberTypeId"],
        of: || &ITEMS,
        shape: CALL_NUMBERS,
        rows: call_numbers,
        type_field: "callNumberTypeId",
        of_records: OF_ITEMS,
        complete: with_title,
        options: &[],
    },
    List {
        name: "call_numbers",
        path: "/browse/call-numbers/{option}/instances",
        permission: "browse.call-numbers.instances.collection.get",
        anchors: &["fullCallNumber", "callNumber", "itemEffectiveShelvingOrder"],
        whole: &["callNumberTypeId"],
        of: || &ITEMS,
        shape: CALL_NUMBERS,
        rows: call_numbers,
        type_field: "callNumberTypeId",
        of_records: OF_ITEMS,
        complete: with_title,
        options: CALL_NUMBER_TYPES,
    },
];

impl List {
    /// Returns whether a condition is decided by looking at each entry: it concerns more than their traits.
    pub(super) fn has_to_look(&self, condition: &Node) -> bool {
        mentions(condition, self.anchors) || mentions(condition, self.shape.others)
    }

    /// Separates a condition on entries from that on the records that have them.
    ///
    /// Errors: 400 where both are joined by OR.
    pub(super) fn separated(&self, condition: Option<Node>) -> Result<(Option<Node>, Expr), FolioError> {
        let names: Vec<&str> = self.of_records.aliases.iter().map(|it| it.0).collect();
        let mut of_records = Vec::new();
        let rest = condition.and_then(|it| taken(it, &names, &mut of_records));
        if rest.as_ref().is_some_and(|it| mentions(it, &names)) {
            let names = names.join(", ");
            return Err(FolioError::bad_request(format!(
                "{names} can be joined with conditions on other fields by AND and NOT, not by OR"
            )));
        }
        let kind = &(self.of)().kind;
        let mut all = Vec::new();
        for (node, is_negated) in of_records {
            let meaning = cql::meaning(&node, kind, &self.of_records, &mut |_| Ok::<_, FolioError>(None))?;
            all.push(if is_negated { Expr::Not(Box::new(meaning)) } else { meaning });
        }
        Ok((rest, if all.is_empty() { Expr::All } else { Expr::And(all) }))
    }

    /// Returns the ids of the types in a part of the list, as the tenant has chosen them; none for all. Errors: 400
    /// for an unknown part.
    pub(super) fn types(&self, view: &mut View<'_>, option: &str) -> Result<Vec<String>, FolioError> {
        let Some((name, options)) = CONFIGS.iter().find(|it| it.1 == self.options) else {
            return Ok(Vec::new());
        };
        let config = config_of(view, name, options, option)?;
        let types = config.get("typeIds").and_then(Value::as_array).into_iter().flatten();
        Ok(types.filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

/// Takes the parts out of a condition that refer to these fields alone, each with whether it is negated; returns the
/// rest.
fn taken(node: Node, names: &[&str], into: &mut Vec<(Node, bool)>) -> Option<Node> {
    match node {
        Node::And(a, b) => match (taken(*a, names, into), taken(*b, names, into)) {
            (Some(a), Some(b)) => Some(Node::And(Box::new(a), Box::new(b))),
            (a, b) => a.or(b),
        },
        Node::Not(a, b) => {
            let rest = taken(*a, names, into);
            if is_about(&b, names) {
                into.push((*b, true));
                return rest;
            }
            Some(match rest {
                Some(a) => Node::Not(Box::new(a), b),
                None => Node::Negation(b),
            })
        }
        node if is_about(&node, names) => {
            into.push((node, false));
            None
        }
        other => Some(other),
    }
}

/// Checks whether a condition refers to these fields alone.
fn is_about(node: &Node, names: &[&str]) -> bool {
    node.all_clauses(&|clause| names.iter().any(|it| it.eq_ignore_ascii_case(&clause.index)))
}

/// Checks whether a condition refers to any of these fields.
pub(super) fn mentions(node: &Node, names: &[&str]) -> bool {
    !node.all_clauses(&|clause| !names.iter().any(|it| it.eq_ignore_ascii_case(&clause.index)))
}

/// The lists whose parts a tenant can configure.
const CONFIGS: [(&str, Options); 2] =
    [("instance-classification", CLASSIFICATION_TYPES), ("instance-call-number", CALL_NUMBER_TYPES)];

/// Parts of a list by name, with the ids of their types.
type Options = &'static [(&'static str, &'static [&'static str])];

/// What a tenant has changed: `{id: "instance-classification/lc", shelvingAlgorithm, typeIds}`.
pub(crate) static CONFIG: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_browse_config") };

/// Returns a part of a list: `{id, shelvingAlgorithm, typeIds}`. Errors: 400 for an unknown part.
fn config_of(view: &mut View<'_>, list: &str, options: Options, option: &str) -> Result<Value, FolioError> {
    let Some((name, types)) = options.iter().find(|it| it.0 == option) else {
        return Err(unknown_option(options, option));
    };
    let stored = view.get(&CONFIG, &format!("{list}/{name}"))?.map(|it| it.json()).transpose()?;
    if let Some(mut stored) = stored {
        stored["id"] = (*name).into();
        return Ok(stored);
    }
    let algorithm = if *name == "all" { "default" } else { name };
    Ok(json!({"id": name, "shelvingAlgorithm": algorithm, "typeIds": types}))
}

fn unknown_option(options: &[(&str, &[&str])], found: &str) -> FolioError {
    let names: Vec<&str> = options.iter().map(|it| it.0).collect();
    FolioError::bad_request(format!("browse option {found:?} is none of {}", names.join(", ")))
}

/// Adds the title of the instance, if only one has the entry.
fn with_title(view: &mut View<'_>, item: &mut Item) -> Result<(), FolioError> {
    let Some(record) = item.record.clone().filter(|_| item.n_records == 1) else { return Ok(()) };
    let mut get = |collection: &'static Collection, id: &str| -> Result<Option<Value>, FolioError> {
        Ok(view.get(&collection.kind, id)?.map(|it| it.json()).transpose()?)
    };
    let mut instance = get(&INSTANCES, &record)?;
    if instance.is_none()
        && let Some(found) = get(&ITEMS, &record)?
        && let Some(holdings) = get(&HOLDINGS, text_at(&found, "holdingsRecordId").unwrap_or_default())?
    {
        instance = get(&INSTANCES, text_at(&holdings, "instanceId").unwrap_or_default())?;
    }
    if let Some(instance) = instance {
        item.shown["instanceTitle"] = instance.get("title").cloned().unwrap_or_default();
    }
    Ok(())
}

/// Fields of a heading's row that its entry in the list contains, so that conditions on them can be evaluated there.
pub(crate) const HEADING_FIELDS: [&str; 8] = [
    "headingRef",
    "authRefType",
    "headingType",
    "isTitleHeadingRef",
    "shared",
    "sourceFileId",
    "authoritySourceFileId",
    "naturalId",
];

/// Returns the rows of headings that satisfy a condition on [`HEADING_FIELDS`], in order, with the authority of each:
/// those in a window (skipped, and shown at most), and the total number. `condition` is the text form of `fits`, empty
/// for all rows. `is_by_group` says that it does not depend on the text or number of a heading.
pub(crate) fn headings(
    view: &mut View<'_>,
    fits: &Expr,
    condition: &str,
    is_by_group: bool,
    (skip, limit): (u64, u64),
) -> Result<(Vec<Value>, u64), FolioError> {
    let list = &LISTS[0];
    let n_after = usize::try_from(limit).unwrap_or(usize::MAX);
    let place = ListPlace { key: String::new(), is_behind: true, n_before: 0, n_after, n_skipped: skip };
    let mut has_traits = |traits: &str| matches(fits, &list.shape.told_by_traits(traits));
    let mut has = |apart: &str, traits: &str| matches(fits, &list.shape.told(apart, traits));
    let wanted = match condition {
        "" => Wanted::All,
        _ if is_by_group => Wanted::Traits(&mut has_traits),
        condition => Wanted::Entries { condition, fits: &mut has },
    };
    let found = view.browse(&AUTHORITIES.kind, list.name, &Expr::All, &place, wanted)?;
    let mut rows = Vec::new();
    for listed in found.after.into_iter().take(n_after) {
        let Some(authority) = view.get(&AUTHORITIES.kind, &listed.record)?.map(|it| it.json()).transpose()?
        else {
            continue;
        };
        let shown = (list.rows)(&authority).into_iter().find(|it| list.shape.is_of(it, &listed));
        rows.extend(shown.map(|mut it| it.shown["authority"].take()));
    }
    Ok((rows, found.n_entries))
}

/// Adds the route for the types in the parts of a list.
pub(super) fn routes(routes: Routes) -> Routes {
    routes.get("/browse/config/{option}", Access::to("browse.config.collection.get"), config).put(
        "/browse/config/{option}/{part}",
        Access::to("browse.config.item.put"),
        change_config,
    )
}

/// Returns the parts of the list that a request names.
fn options_of(call: &Call) -> Result<(&'static str, Options), FolioError> {
    let asked = call.param("option");
    CONFIGS.into_iter().find(|it| it.0 == asked).ok_or_else(|| {
        FolioError::bad_request(format!("{asked:?} is none of instance-classification, instance-call-number"))
    })
}

async fn config(call: Call) -> Answer {
    let (list, options) = options_of(&call)?;
    let read = move |view: &mut View<'_>| -> Result<Vec<Value>, FolioError> {
        options.iter().map(|it| config_of(view, list, options, it.0)).collect()
    };
    let shown = call.db().read(Weight::Point, read).await?;
    Ok(json_answer(StatusCode::OK, &json!({"configs": shown, "totalRecords": shown.len()})))
}

/// Ways to sort a part; FOLIO's names. Entries are in shelf order, whatever is chosen.
const ALGORITHMS: [&str; 7] = ["default", "lc", "dewey", "nlm", "sudoc", "other", "local"];

/// Chooses the types in a part of a list.
async fn change_config(mut call: Call) -> Answer {
    let (list, options) = options_of(&call)?;
    let part = call.param("part").to_owned();
    let body = call.object().await?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let invalid = |message: &str, key: &str, value: &str| {
        let fault = Fault::new(message).ty("RequestValidationException").code("validation_error");
        FolioError::faults(StatusCode::BAD_REQUEST, vec![fault.with(key, value)])
    };
    if text("id") != part {
        return Err(invalid("Body doesn't match path parameter", "id", text("id")));
    }
    let algorithm = text("shelvingAlgorithm");
    if !ALGORITHMS.contains(&algorithm) {
        return Err(invalid("Unexpected value", "shelvingAlgorithm", algorithm));
    }
    let given = body.get("typeIds").and_then(Value::as_array).cloned().unwrap_or_default();
    let types: Option<Vec<String>> = given.iter().map(|it| parse_uuid(it.as_str()?)).collect();
    let Some(types) = types else { return Err(invalid("Invalid type id", "typeIds", "")) };
    let config = json!({"id": part, "shelvingAlgorithm": algorithm, "typeIds": types});
    let answered = config.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        config_of(txn, list, options, &part)?;
        let id = format!("{list}/{part}");
        let mut config = config.clone();
        config["id"] = id.as_str().into();
        txn.put(&CONFIG, &id, &config)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &answered))
}

/// An entry of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) shown: Value,
    /// Id of a record that has it.
    pub(crate) record: Option<String>,
    /// Number of records that have it.
    pub(crate) n_records: u64,
}
