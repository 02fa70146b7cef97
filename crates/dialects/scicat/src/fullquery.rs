//! The `fields` of `fullquery` and `fullfacet`, which the frontend's search form sends (sections 4.3 and
//! 4.4).

use pinakes_store::{End, Expr, Kind, Path, TextQuery, Type, Value};
use serde_json::{Map, Value as Json};

use crate::condition::{self, Budget, Language, plain};
use crate::dates;
use crate::error::ScicatError;
use crate::rights::Rights;
use crate::scientific;

/// How records of one kind are searched.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// The kind.
    pub kind: &'static Kind,
    /// The field of the body that holds quantities.
    pub quantities: &'static str,
    /// The key of `fields` whose value is a list of conditions on quantities.
    pub quantity_key: &'static str,
}

/// A parsed search.
#[derive(Debug, Clone)]
pub struct Found {
    /// The condition, including access rights.
    pub condition: Expr,
    /// Quantities to convert for display: (key, unit).
    pub units: Vec<(String, String)>,
}

/// Parses `fields` into a condition, limited to what the caller may find: anonymous callers find published
/// records; users find records of their own groups, or all published ones if `isPublished` is requested.
pub fn parse(fields: &Map<String, Json>, search: &Search, rights: &Rights) -> Result<Found, ScicatError> {
    let found = unrestricted(fields, search)?;
    Ok(Found { condition: access(fields, rights).and(found.condition), ..found })
}

/// Parses like [`parse`], without a limit to what the caller may find: for records with visibility rules of their own.
pub(crate) fn unrestricted(fields: &Map<String, Json>, search: &Search) -> Result<Found, ScicatError> {
    let mut found = Found { condition: Expr::All, units: Vec::new() };
    let budget = Budget::default();
    for (name, value) in fields {
        budget.take_condition()?;
        let part = member(name, value, search, &mut found.units, &budget)?;
        found.condition = found.condition.and(part);
    }
    Ok(found)
}

fn access(fields: &Map<String, Json>, rights: &Rights) -> Expr {
    let published = Expr::Is("isPublished".into(), Value::Boolean(true));
    if rights.caller().is_anonymous() {
        return published;
    }
    let asks_published = fields.get("isPublished").and_then(Json::as_bool) == Some(true);
    if rights.sees_all() || asks_published { Expr::All } else { rights.in_own_groups() }
}

fn member(
    name: &str,
    value: &Json,
    search: &Search,
    units: &mut Vec<(String, String)>,
    budget: &Budget,
) -> Result<Expr, ScicatError> {
    match name {
        "text" => match value.as_str().map(str::trim) {
            Some(text) if !text.is_empty() => words(text).map(Expr::Text),
            _ => Ok(Expr::All),
        },
        "mode" => match value {
            Json::Object(map) => {
                let renamed = renamed(map, search.kind);
                condition::parse_within(&renamed, search.kind, Language::LoopBack, budget)
            }
            Json::Null => Ok(Expr::All),
            other => Err(ScicatError::bad_request(format!("mode must be an object, found {other}"))),
        },
        "userGroups" => Ok(match groups(value) {
            // Naming groups only narrows what the caller may see; it never widens it.
            Some(groups) => Expr::Or(vec![
                Expr::In("ownerGroup".into(), groups.clone()),
                Expr::In("accessGroups".into(), groups),
            ]),
            None => Expr::All,
        }),
        "isPublished" => match value {
            Json::Bool(it) => Ok(Expr::Is("isPublished".into(), Value::Boolean(*it))),
            Json::Null => Ok(Expr::All),
            other => Err(ScicatError::bad_request(format!("isPublished must be a boolean, found {other}"))),
        },
        "metadataKey" | "metadataKeys" => Ok(Expr::All),
        "sharedWith" | "ownerGroup" | "accessGroups" => match groups(value) {
            Some(values) => Ok(Expr::In(name.into(), values)),
            None => field(name, value, search.kind, budget),
        },
        name if name == search.quantity_key => quantities(value, search.quantities, units, budget),
        name => field(name, value, search.kind, budget),
    }
}

/// Renames conditions on `_id` to the field that repeats the id, as it has an index.
fn renamed(mode: &Map<String, Json>, kind: &Kind) -> Map<String, Json> {
    let id_path = kind.id_path.unwrap_or("_id");
    let name = |it: &String| if it == "_id" { id_path.to_owned() } else { it.clone() };
    mode.iter().map(|(key, value)| (name(key), value.clone())).collect()
}

fn groups(value: &Json) -> Option<Vec<Value>> {
    match value {
        Json::String(one) => Some(vec![Value::Text(one.clone())]),
        Json::Array(list) if !list.is_empty() => Some(list.iter().map(plain).collect()),
        Json::Object(map) => groups(map.get("$in")?),
        _ => None,
    }
}

fn field(name: &str, value: &Json, kind: &Kind, budget: &Budget) -> Result<Expr, ScicatError> {
    let path = Path::dotted(name);
    let ty = kind.column_of(&path).map(|column| column.ty);
    match value {
        Json::Null => Ok(Expr::All),
        Json::Array(list) if list.is_empty() => Ok(Expr::All),
        Json::Array(list) => Ok(Expr::In(path, list.iter().map(plain).collect())),
        Json::Object(map) if map.contains_key("begin") || map.contains_key("end") => period(&path, map),
        Json::Object(map) if map.contains_key("min") || map.contains_key("max") => Ok(span(&path, map)),
        Json::Object(map) => {
            let condition: Map<String, Json> =
                [(name.to_owned(), Json::Object(map.clone()))].into_iter().collect();
            condition::parse_within(&condition, kind, Language::LoopBack, budget)
        }
        Json::String(text) if ty == Some(Type::Instant) => Ok(match dates::parse_ms(text) {
            Some(ms) => Expr::Is(path, Value::Instant(ms)),
            None => Expr::Nothing,
        }),
        other => Ok(Expr::Is(path, plain(other))),
    }
}

fn period(path: &Path, map: &Map<String, Json>) -> Result<Expr, ScicatError> {
    let end = |name: &str| match map.get(name) {
        None | Some(Json::Null) => Ok(End::Open),
        Some(Json::String(text)) if text.is_empty() => Ok(End::Open),
        Some(Json::String(text)) => match dates::parse_ms(text) {
            Some(ms) => Ok(End::Included(Value::Instant(ms))),
            None => Err(ScicatError::bad_request(format!("{name} is no date: {text:?}"))),
        },
        Some(other) => Err(ScicatError::bad_request(format!("{name} must be a date, found {other}"))),
    };
    Ok(range(path, end("begin")?, end("end")?))
}

fn span(path: &Path, map: &Map<String, Json>) -> Expr {
    let end = |name: &str| match map.get(name) {
        None | Some(Json::Null) => End::Open,
        Some(value) => End::Included(plain(value)),
    };
    range(path, end("min"), end("max"))
}

fn range(path: &Path, lower: End, upper: End) -> Expr {
    if lower == End::Open && upper == End::Open { Expr::All } else { Expr::Range(path.clone(), lower, upper) }
}

/// Maximum number of words and phrases in a text search.
const MAX_WORDS: usize = 100;

/// Parses `neutron "silicon wafer" -test`: words, phrases in quotes, and excluded words.
///
/// Errors: 400 for too many of them.
pub(crate) fn words(text: &str) -> Result<TextQuery, ScicatError> {
    if MAX_WORDS < text.split_whitespace().count() {
        return Err(ScicatError::bad_request(format!("text holds more than {MAX_WORDS} words")));
    }
    let mut query = TextQuery::default();
    for (index, part) in text.split('"').enumerate() {
        let part = part.trim();
        if index % 2 == 1 && !part.is_empty() {
            query.phrases.push(part.to_owned());
            continue;
        }
        for word in part.split_whitespace() {
            match word.strip_prefix('-') {
                Some(word) if !word.is_empty() => query.without.push(word.to_owned()),
                _ => query.words.push(word.to_owned()),
            }
        }
    }
    Ok(query)
}

/// Parses the list of conditions on quantities, each `{"lhs","relation","rhs","unit"}`; all of them must be
/// satisfied.
fn quantities(
    value: &Json,
    field: &str,
    units: &mut Vec<(String, String)>,
    budget: &Budget,
) -> Result<Expr, ScicatError> {
    let Json::Array(list) = value else {
        return if value.is_null() {
            Ok(Expr::All)
        } else {
            Err(ScicatError::bad_request(format!("scientific conditions must be a list, found {value}")))
        };
    };
    let mut all = Expr::All;
    for item in list {
        all = all.and(quantity(item, field, units, budget)?);
    }
    Ok(all)
}

fn quantity(
    item: &Json,
    field: &str,
    units: &mut Vec<(String, String)>,
    budget: &Budget,
) -> Result<Expr, ScicatError> {
    budget.take_condition()?;
    let lhs = item.get("lhs").and_then(Json::as_str).unwrap_or_default();
    let relation = item.get("relation").and_then(Json::as_str).unwrap_or_default();
    let rhs = item.get("rhs").unwrap_or(&Json::Null);
    let unit = item.get("unit").and_then(Json::as_str).filter(|it| !it.is_empty());
    if lhs.is_empty() {
        return Err(ScicatError::bad_request(format!("a scientific condition needs lhs, found {item}")));
    }
    let places = Places::of(field, lhs);
    match (relation, unit) {
        ("EQUAL_TO_STRING", _) => Ok(places.any(&places.bare, |path| Expr::Is(path, plain(rhs)))),
        ("CONTAINS_STRING", _) => contains(&places, rhs, budget),
        (
            "EQUAL_TO_NUMERIC"
            | "GREATER_THAN"
            | "LESS_THAN"
            | "GREATER_THAN_OR_EQUAL"
            | "LESS_THAN_OR_EQUAL"
            | "RANGE",
            Some(unit),
        ) => {
            units.push((lhs.to_owned(), unit.to_owned()));
            with_unit(&places, relation, rhs, unit)
        }
        ("EQUAL_TO_NUMERIC" | "RANGE", None) => compared(&places, &places.value_only, relation, rhs, |it| it),
        ("GREATER_THAN" | "LESS_THAN" | "GREATER_THAN_OR_EQUAL" | "LESS_THAN_OR_EQUAL", None) => {
            compared(&places, &places.bare, relation, rhs, |it| it)
        }
        _ => Ok(Expr::All),
    }
}

/// Paths where a quantity's value may be found: dots in the key are part of it, or lead into nested objects.
struct Places {
    /// The key itself, `.v` and `.value`.
    bare: Vec<Path>,
    /// Only `.value`.
    value_only: Vec<Path>,
    /// (`valueSI`, `unitSI`).
    si: Vec<(Path, Path)>,
}

impl Places {
    fn of(field: &str, key: &str) -> Self {
        let mut bases = vec![vec![field.to_owned(), key.to_owned()]];
        if key.contains('.') {
            bases.push(std::iter::once(field).chain(key.split('.')).map(str::to_owned).collect());
        }
        let below =
            |base: &Vec<String>, name: &str| Path::steps(base.iter().cloned().chain([name.to_owned()]));
        Self {
            bare: bases
                .iter()
                .flat_map(|base| [Path::steps(base.iter().cloned()), below(base, "v"), below(base, "value")])
                .collect(),
            value_only: bases.iter().map(|base| below(base, "value")).collect(),
            si: bases.iter().map(|base| (below(base, "valueSI"), below(base, "unitSI"))).collect(),
        }
    }

    fn any(&self, paths: &[Path], test: impl Fn(Path) -> Expr) -> Expr {
        Expr::Or(paths.iter().cloned().map(test).collect())
    }
}

fn contains(places: &Places, rhs: &Json, budget: &Budget) -> Result<Expr, ScicatError> {
    let Some(text) = rhs.as_str() else { return Ok(Expr::Nothing) };
    let literal = Json::from(regex::escape(text));
    let parts: Result<Vec<Expr>, _> = places
        .bare
        .iter()
        .map(|path| condition::pattern(path, &literal, Some(&Json::from("i")), budget))
        .collect();
    Ok(Expr::Or(parts?))
}

fn with_unit(places: &Places, relation: &str, rhs: &Json, unit: &str) -> Result<Expr, ScicatError> {
    let si = |value: f64| scientific::condition_in_si(value, unit).unwrap_or((value, unit.to_owned()));
    let unit_si = si(0.0).1;
    let parts: Result<Vec<Expr>, ScicatError> = places
        .si
        .iter()
        .map(|(value, unit)| {
            let value = compared(places, std::slice::from_ref(value), relation, rhs, |it| si(it).0)?;
            Ok(value.and(Expr::Is(unit.clone(), Value::Text(unit_si.clone()))))
        })
        .collect();
    Ok(Expr::Or(parts?))
}

fn compared(
    places: &Places,
    paths: &[Path],
    relation: &str,
    rhs: &Json,
    convert: impl Fn(f64) -> f64,
) -> Result<Expr, ScicatError> {
    let number = |value: &Json| value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    if relation == "RANGE" {
        let ends = rhs.as_array().map(Vec::as_slice);
        let Some([low, high]) = ends else {
            return Err(ScicatError::bad_request(format!("RANGE needs rhs [min, max], found {rhs}")));
        };
        let (Some(low), Some(high)) = (number(low), number(high)) else {
            return Err(ScicatError::bad_request(format!("RANGE needs two numbers, found {rhs}")));
        };
        let (low, high) = (Value::Real(convert(low)), Value::Real(convert(high)));
        return Ok(places
            .any(paths, |path| Expr::Range(path, End::Excluded(low.clone()), End::Excluded(high.clone()))));
    }
    let value = match number(rhs) {
        Some(number) => Value::Real(convert(number)),
        None => plain(rhs),
    };
    Ok(places.any(paths, |path| match relation {
        "GREATER_THAN" => Expr::Range(path, End::Excluded(value.clone()), End::Open),
        "GREATER_THAN_OR_EQUAL" => Expr::Range(path, End::Included(value.clone()), End::Open),
        "LESS_THAN" => Expr::Range(path, End::Open, End::Excluded(value.clone())),
        "LESS_THAN_OR_EQUAL" => Expr::Range(path, End::Open, End::Included(value.clone())),
        _ => Expr::Is(path, value.clone()),
    }))
}
