//! The `filter` of v3 lists: `{"where":…,"fields":…,"include":…,"limits":…}` (section 4.2 of the contract).

use http::{HeaderMap, StatusCode};
use pinakes_store::{Direction, Expr, Kind, Order, Path, Query};
use serde_json::{Map, Value};

use crate::app::{QueryText, json_parameter};
use crate::condition::{self, Language};
use crate::error::ScicatError;
use crate::projection::Projection;

/// Number of rows of a v3 list if the request does not say.
pub const DEFAULT_LIMIT: u64 = 100;
/// Number of rows of a v3 list for `limit: 0`.
const LIMIT_FOR_ZERO: u64 = 10;

/// A parsed filter.
#[derive(Debug, Clone)]
pub struct Filter {
    /// The condition.
    pub condition: Expr,
    /// The fields to show.
    pub fields: Projection,
    /// The relations to include.
    pub include: Vec<Include>,
    /// How many rows to skip and to return, and their order.
    pub window: Window,
}

/// A section of a sorted list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Number of rows to skip.
    pub skip: u64,
    /// Maximum number of rows to return.
    pub limit: u64,
    /// The sort; empty for insertion order.
    pub order: Vec<Order>,
}

/// A relation to include.
#[derive(Debug, Clone)]
pub struct Include {
    /// Its name.
    pub relation: String,
    /// The requested section or fields of the related rows.
    pub scope: Option<Value>,
}

impl Default for Window {
    fn default() -> Self {
        Self { skip: 0, limit: DEFAULT_LIMIT, order: Vec::new() }
    }
}

impl Default for Filter {
    /// Returns a filter that matches everything, in the default window.
    fn default() -> Self {
        Self {
            condition: Expr::All,
            fields: Projection::Everything,
            include: Vec::new(),
            window: Window::default(),
        }
    }
}

impl Filter {
    /// Returns the filter's query over the rows that `visible` allows.
    pub fn query(&self, visible: Expr) -> Query {
        Query {
            filter: visible.and(self.condition.clone()),
            order: self.window.order.clone(),
            skip: self.window.skip,
            limit: Some(self.window.limit),
            after: None,
        }
    }
}

/// Returns the filter text of a request: from the query or, for old clients, from a header of that name.
///
/// Errors: 400 in shape E2 if both are present.
pub fn text<'a>(
    name: &str,
    query: &'a QueryText,
    headers: &'a HeaderMap,
) -> Result<Option<&'a str>, ScicatError> {
    let in_query = query.get(name).filter(|it| !it.is_empty());
    let in_headers = headers.get(name).and_then(|it| it.to_str().ok()).filter(|it| !it.is_empty());
    if in_query.is_some() && in_headers.is_some() {
        return Err(ScicatError::short(
            StatusCode::BAD_REQUEST,
            "Using two different types(query and headers) of filters is not supported and can result with inconsistencies",
        ));
    }
    Ok(in_query.or(in_headers))
}

/// Parses a filter over `kind`; without one, everything matches, in the default window.
pub fn parse(text: Option<&str>, kind: &Kind) -> Result<Filter, ScicatError> {
    let value = match text {
        None => Value::Object(Map::new()),
        Some(text) => json_parameter("filter", text)?,
    };
    from_value(&value, kind)
}

/// Parses a filter from a JSON value, such as the scope of an include.
pub fn from_value(value: &Value, kind: &Kind) -> Result<Filter, ScicatError> {
    let empty = Map::new();
    let filter = match value {
        Value::Object(map) => map,
        Value::Null => &empty,
        other => {
            return Err(ScicatError::bad_request(format!("the filter must be an object, found {other}")));
        }
    };
    let condition = match filter.get("where") {
        None | Some(Value::Null) => Expr::All,
        Some(Value::Object(map)) => condition::parse(&with_new_names(map, kind), kind, Language::LoopBack)?,
        Some(other) => {
            return Err(ScicatError::bad_request(format!("where must be an object, found {other}")));
        }
    };
    Ok(Filter {
        condition,
        fields: Projection::parse(filter.get("fields").unwrap_or(&Value::Null))?,
        include: includes(filter.get("include"))?,
        window: window(filter.get("limits"), kind)?,
    })
}

/// Names that fields of datasets had before they became lists.
const OLD_NAMES: [(&str, &str); 5] = [
    ("proposalId", "proposalIds"),
    ("sampleId", "sampleIds"),
    ("instrumentId", "instrumentIds"),
    ("principalInvestigator", "principalInvestigators"),
    ("investigator", "principalInvestigators"),
];

/// Returns the current name of a field. A name is only old in a kind that has the list: samples still have a
/// `proposalId`.
fn new_name<'a>(field: &'a str, kind: &Kind) -> &'a str {
    let known = OLD_NAMES.iter().find(|(old, new)| *old == field && kind.column_named(new).is_some());
    known.map_or(field, |(_, new)| new)
}

fn with_new_names(condition: &Map<String, Value>, kind: &Kind) -> Map<String, Value> {
    condition.iter().map(|(name, value)| (new_name(name, kind).to_owned(), value.clone())).collect()
}

/// Parses `{"limit":10,"skip":0,"order":"creationTime:desc,size:asc"}`.
///
/// Errors: 400 for a limit that is negative or a text, and for an order that is not a text.
pub fn window(limits: Option<&Value>, kind: &Kind) -> Result<Window, ScicatError> {
    let empty = Map::new();
    let limits = match limits {
        None | Some(Value::Null) => return Ok(Window::default()),
        Some(Value::Object(map)) => map,
        Some(Value::Array(_)) => &empty,
        Some(other) => {
            return Err(ScicatError::bad_request(format!("limits must be an object, found {other}")));
        }
    };
    let limit =
        number(limits, "limit")?.map_or(DEFAULT_LIMIT, |it| if it == 0 { LIMIT_FOR_ZERO } else { it });
    let order = match limits.get("order") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) if MAX_SORT_FIELDS < text.split(',').count() => {
            return Err(too_many_sort_fields());
        }
        Some(Value::String(text)) => order(text, kind),
        Some(other) => {
            return Err(ScicatError::bad_request(format!("limits.order must be a string, found {other}")));
        }
    };
    Ok(Window { skip: number(limits, "skip")?.unwrap_or(0), limit, order })
}

/// Maximum number of sort fields; more would not change any sensible sort.
pub(crate) const MAX_SORT_FIELDS: usize = 16;

pub(crate) fn too_many_sort_fields() -> ScicatError {
    ScicatError::bad_request(format!("the list is sorted by more than {MAX_SORT_FIELDS} fields"))
}

fn number(limits: &Map<String, Value>, name: &str) -> Result<Option<u64>, ScicatError> {
    match limits.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match (value.as_u64(), value.as_f64()) {
            (Some(number), _) => Ok(Some(number)),
            (None, Some(real)) if 0.0 <= real && real.fract() == 0.0 && real < 9e15 => Ok(Some(real as u64)),
            _ => Err(ScicatError::bad_request(format!(
                "limits.{name} must be a whole number that is not negative, found {value}"
            ))),
        },
    }
}

/// Parses `creationTime:desc,size:asc`; a part without a direction is ignored.
pub fn order(text: &str, kind: &Kind) -> Vec<Order> {
    let part = |it: &str| {
        let (field, direction) = it.trim().rsplit_once(':')?;
        let direction = match direction.trim().to_ascii_lowercase().as_str() {
            "asc" | "ascending" | "1" => Direction::Ascending,
            "desc" | "descending" | "-1" => Direction::Descending,
            _ => return None,
        };
        Some(Order { path: Path::dotted(sorted_field(field.trim(), kind)), direction })
    };
    text.split(',').filter_map(part).collect()
}

/// Returns the field to sort by: for `_id`, the field that repeats the id, as it has an index.
fn sorted_field<'a>(field: &'a str, kind: &Kind) -> &'a str {
    match (field, kind.id_path) {
        ("_id", Some(id_path)) => id_path,
        _ => new_name(field, kind),
    }
}

fn includes(include: Option<&Value>) -> Result<Vec<Include>, ScicatError> {
    let one = |it: &Value| match it {
        Value::String(relation) => Ok(Include { relation: relation.clone(), scope: None }),
        Value::Object(map) => match map.get("relation") {
            Some(Value::String(relation)) => {
                Ok(Include { relation: relation.clone(), scope: map.get("scope").cloned() })
            }
            _ => Err(ScicatError::bad_request("an include needs a relation")),
        },
        other => {
            Err(ScicatError::bad_request(format!("an include must be a name or an object, found {other}")))
        }
    };
    match include {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => list.iter().map(one).collect(),
        Some(single) => Ok(vec![one(single)?]),
    }
}
