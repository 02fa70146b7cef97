//! Conditions as MongoDB and LoopBack write them, turned into the store's [`Expr`] (section 4.2 of the contract).

use std::cell::Cell;

use pinakes_store::{End, Expr, Kind, Path, Pattern, Type, Value};
use serde_json::{Map, Value as Json};

use crate::dates;
use crate::error::ScicatError;

/// Which operators a filter may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// v3: LoopBack's words (`inq`, `like`, …) and MongoDB's with `$`.
    LoopBack,
    /// v4: only MongoDB's with `$`.
    Mongo,
}

/// Deepest nesting of a condition.
const MAX_DEPTH: usize = 32;
/// Most values in one list of a condition.
const MAX_VALUES: usize = 100_000;
/// Most comparisons in the conditions of one request.
const MAX_CONDITIONS: usize = 500;
/// Most regular expressions in the conditions of one request: each may take a megabyte and is tried on every record.
const MAX_PATTERNS: usize = 32;

/// What the conditions of one request may still hold.
#[derive(Debug)]
pub struct Budget {
    conditions_left: Cell<usize>,
    patterns_left: Cell<usize>,
}

impl Default for Budget {
    /// That of a request of which nothing was read.
    fn default() -> Self {
        Self { conditions_left: Cell::new(MAX_CONDITIONS), patterns_left: Cell::new(MAX_PATTERNS) }
    }
}

impl Budget {
    /// Takes one comparison. Errors: 400 when there were too many.
    pub(crate) fn take_condition(&self) -> Result<(), ScicatError> {
        take(&self.conditions_left, || format!("the filter holds more than {MAX_CONDITIONS} conditions"))
    }

    fn take_pattern(&self) -> Result<(), ScicatError> {
        take(&self.patterns_left, || format!("the filter holds more than {MAX_PATTERNS} regular expressions"))
    }
}

fn take(left: &Cell<usize>, message: impl Fn() -> String) -> Result<(), ScicatError> {
    left.set(left.get().checked_sub(1).ok_or_else(|| ScicatError::bad_request(message()))?);
    Ok(())
}

/// A condition over the fields of `kind`. An empty object is all records.
///
/// Errors: 400 in shape E1 that names the operator or value, or the bound that is passed.
pub fn parse(condition: &Map<String, Json>, kind: &Kind, language: Language) -> Result<Expr, ScicatError> {
    parse_within(condition, kind, language, &Budget::default())
}

/// As [`parse`], for a request with several conditions, which share what is left.
pub(crate) fn parse_within(
    condition: &Map<String, Json>,
    kind: &Kind,
    language: Language,
    budget: &Budget,
) -> Result<Expr, ScicatError> {
    Reader { kind, language, budget }.object(condition, &[], MAX_DEPTH)
}

struct Reader<'a> {
    kind: &'a Kind,
    language: Language,
    budget: &'a Budget,
}

impl Reader<'_> {
    fn object(
        &self,
        condition: &Map<String, Json>,
        at: &[String],
        depth: usize,
    ) -> Result<Expr, ScicatError> {
        if depth == 0 {
            return Err(ScicatError::bad_request(format!(
                "the filter is nested deeper than {MAX_DEPTH} levels"
            )));
        }
        let mut parts = Vec::with_capacity(condition.len());
        for (name, value) in condition {
            parts.push(self.member(name, value, at, depth - 1)?);
        }
        Ok(parts.into_iter().fold(Expr::All, Expr::and))
    }

    fn member(&self, name: &str, value: &Json, at: &[String], depth: usize) -> Result<Expr, ScicatError> {
        let is_word = self.language == Language::LoopBack;
        match name {
            "$and" => Ok(Expr::And(self.list(name, value, at, depth)?)),
            "$or" => Ok(Expr::Or(self.list(name, value, at, depth)?)),
            "$nor" => Ok(Expr::Not(Box::new(Expr::Or(self.list(name, value, at, depth)?)))),
            "and" if is_word => Ok(Expr::And(self.list(name, value, at, depth)?)),
            "or" if is_word => Ok(Expr::Or(self.list(name, value, at, depth)?)),
            "$expr" | "$where" | "$jsonSchema" | "$comment" | "$text" => Err(ScicatError::bad_request(
                format!("the operator {name} is not supported; use field conditions"),
            )),
            operator if operator.starts_with('$') => {
                Err(ScicatError::bad_request(format!("unknown top level operator: {operator}")))
            }
            field => {
                let mut steps = at.to_vec();
                steps.extend(field.split('.').map(str::to_owned));
                self.field(&steps, value, depth)
            }
        }
    }

    fn list(&self, name: &str, value: &Json, at: &[String], depth: usize) -> Result<Vec<Expr>, ScicatError> {
        let items = value.as_array().filter(|it| !it.is_empty());
        let items =
            items.ok_or_else(|| ScicatError::bad_request(format!("{name} must be a nonempty array")))?;
        let part = |it: &Json| match it {
            Json::Object(map) => self.object(map, at, depth),
            other => Err(ScicatError::bad_request(format!(
                "{name} entries need to be full objects, found {other}"
            ))),
        };
        items.iter().map(part).collect()
    }

    fn field(&self, steps: &[String], value: &Json, depth: usize) -> Result<Expr, ScicatError> {
        self.budget.take_condition()?;
        let path = Path::steps(steps.iter().cloned());
        match value {
            Json::Object(operators) if self.has_operators(operators) => {
                self.operators(&path, operators, depth)
            }
            other => self.equal(&path, other),
        }
    }

    fn has_operators(&self, map: &Map<String, Json>) -> bool {
        let is_word = |name: &str| self.language == Language::LoopBack && WORDS.contains(&name);
        map.keys().any(|name| name.starts_with('$') || is_word(name))
    }

    fn operators(
        &self,
        path: &Path,
        operators: &Map<String, Json>,
        depth: usize,
    ) -> Result<Expr, ScicatError> {
        let mut parts = Vec::new();
        for (name, value) in operators {
            self.budget.take_condition()?;
            let canonical = match name.as_str() {
                "inq" => "$in",
                "nin" => "$nin",
                "gt" => "$gt",
                "gte" => "$gte",
                "lt" => "$lt",
                "lte" => "$lte",
                other => other,
            };
            parts.push(match canonical {
                "$eq" => self.equal(path, value)?,
                "$ne" => not(self.equal(path, value)?),
                "$in" => self.any_of(name, path, value)?,
                "$nin" => not(self.any_of(name, path, value)?),
                "$gt" | "$gte" | "$lt" | "$lte" => self.range(canonical, path, value),
                "$exists" => {
                    let exists = Expr::Exists(path.clone());
                    if is_truthy(value) { exists } else { not(exists) }
                }
                "$regex" => pattern(path, value, operators.get("$options"), self.budget)?,
                "$options" => Expr::All,
                "options" if operators.contains_key("like") => Expr::All,
                "like" => pattern(path, value, operators.get("options"), self.budget)?,
                "ilike" => pattern(path, value, Some(&Json::from("i")), self.budget)?,
                "$not" => not(self.field_not(path, value, depth)?),
                "$elemMatch" => self.element(path, value, depth)?,
                "$all" => self.all_of(path, value)?,
                "$size" => match value.as_u64() {
                    Some(n) => Expr::Size(path.clone(), n),
                    None => return Err(wrong("$size", "a whole number", value)),
                },
                unknown => return Err(ScicatError::bad_request(format!("unknown operator: {unknown}"))),
            });
        }
        Ok(parts.into_iter().fold(Expr::All, Expr::and))
    }

    fn field_not(&self, path: &Path, value: &Json, depth: usize) -> Result<Expr, ScicatError> {
        match value {
            Json::Object(map) if 0 < depth => self.operators(path, map, depth - 1),
            other => Err(wrong("$not", "an object of operators", other)),
        }
    }

    fn element(&self, path: &Path, value: &Json, depth: usize) -> Result<Expr, ScicatError> {
        let Json::Object(map) = value else { return Err(wrong("$elemMatch", "an object", value)) };
        let untyped = Reader { kind: &NO_KIND, language: self.language, budget: self.budget };
        let inner = if self.has_operators(map) {
            untyped.operators(&Path::steps(Vec::<String>::new()), map, depth.saturating_sub(1))?
        } else {
            untyped.object(map, &[], depth.saturating_sub(1))?
        };
        Ok(Expr::Element(path.clone(), Box::new(inner)))
    }

    fn all_of(&self, path: &Path, value: &Json) -> Result<Expr, ScicatError> {
        let Json::Array(items) = value else { return Err(wrong("$all", "a list", value)) };
        if items.is_empty() {
            return Ok(Expr::Nothing);
        }
        let part = |it| {
            self.budget.take_condition()?;
            self.equal(path, it)
        };
        Ok(Expr::And(items.iter().map(part).collect::<Result<_, _>>()?))
    }

    fn any_of(&self, name: &str, path: &Path, value: &Json) -> Result<Expr, ScicatError> {
        let Json::Array(items) = value else { return Err(wrong(name, "a list", value)) };
        if MAX_VALUES < items.len() {
            return Err(ScicatError::bad_request(format!(
                "{name} holds {} values, at most {MAX_VALUES}",
                items.len()
            )));
        }
        let (mut values, mut others) = (Vec::with_capacity(items.len()), Vec::new());
        for item in items {
            match self.values(path, item).as_slice() {
                [one] => values.push(one.clone()),
                many => values.extend(many.iter().cloned()),
            }
            if let Json::Object(map) = item
                && map.contains_key("$regex")
            {
                others.push(pattern(path, &map["$regex"], map.get("$options"), self.budget)?);
            }
        }
        let any = if values.is_empty() { Expr::Nothing } else { Expr::In(path.clone(), values) };
        Ok(if others.is_empty() {
            any
        } else {
            others.push(any);
            Expr::Or(others)
        })
    }

    fn equal(&self, path: &Path, value: &Json) -> Result<Expr, ScicatError> {
        let mut values = self.values(path, value);
        Ok(match values.pop() {
            Some(one) if values.is_empty() => Expr::Is(path.clone(), one),
            Some(last) => {
                values.push(last);
                Expr::In(path.clone(), values)
            }
            None => Expr::Nothing,
        })
    }

    fn range(&self, operator: &str, path: &Path, value: &Json) -> Expr {
        let one = |value: Value| match operator {
            "$gt" => Expr::Range(path.clone(), End::Excluded(value), End::Open),
            "$gte" => Expr::Range(path.clone(), End::Included(value), End::Open),
            "$lt" => Expr::Range(path.clone(), End::Open, End::Excluded(value)),
            _ => Expr::Range(path.clone(), End::Open, End::Included(value)),
        };
        let mut parts: Vec<Expr> = self.values(path, value).into_iter().map(one).collect();
        match parts.pop() {
            Some(only) if parts.is_empty() => only,
            Some(last) => {
                parts.push(last);
                Expr::Or(parts)
            }
            None => Expr::Nothing,
        }
    }

    /// The values that a JSON value may stand for at a path: text that begins like a date is a point in time
    /// for dates, and, where no type is declared, either.
    fn values(&self, path: &Path, value: &Json) -> Vec<Value> {
        let Json::String(text) = value else { return vec![plain(value)] };
        let ty =
            if self.kind.is_id(path) { Some(Type::Text) } else { self.kind.column_of(path).map(|it| it.ty) };
        let instant = || begins_like_date(text).then(|| dates::parse_ms(text)).flatten().map(Value::Instant);
        match ty {
            Some(Type::Instant) => vec![instant().unwrap_or_else(|| Value::Text(text.clone()))],
            Some(_) => vec![Value::Text(text.clone())],
            None => [Some(Value::Text(text.clone())), instant()].into_iter().flatten().collect(),
        }
    }
}

/// For conditions inside elements of lists, which have no declared columns.
static NO_KIND: Kind = Kind::named("none");

/// LoopBack's operators.
const WORDS: [&str; 8] = ["inq", "nin", "gt", "gte", "lt", "lte", "like", "ilike"];

/// A JSON value as a value of a condition.
pub fn plain(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(it) => Value::Boolean(*it),
        Json::String(text) => Value::Text(text.clone()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Value::Integer(integer),
            (None, Some(real)) => Value::Real(real),
            (None, None) => Value::Json(value.clone()),
        },
        other => Value::Json(other.clone()),
    }
}

/// A regular expression on a path, from its text and flags.
///
/// Errors: 400 for an invalid expression, and when the request already held too many.
pub fn pattern(path: &Path, text: &Json, flags: Option<&Json>, budget: &Budget) -> Result<Expr, ScicatError> {
    budget.take_pattern()?;
    let (Json::String(text), flags) = (text, flags.and_then(Json::as_str).unwrap_or_default()) else {
        return Err(wrong("$regex", "a string", text));
    };
    let pattern = Pattern::new(text, flags).map_err(|error| ScicatError::bad_request(error.to_string()))?;
    Ok(Expr::Regex(path.clone(), pattern))
}

fn begins_like_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digits = |range: std::ops::Range<usize>| bytes[range].iter().all(u8::is_ascii_digit);
    10 <= bytes.len()
        && is_digits(0..4)
        && bytes[4] == b'-'
        && is_digits(5..7)
        && bytes[7] == b'-'
        && is_digits(8..10)
}

fn not(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}

/// JavaScript's truth.
fn is_truthy(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Bool(it) => *it,
        Json::Number(number) => number.as_f64() != Some(0.0),
        Json::String(text) => !text.is_empty(),
        _ => true,
    }
}

fn wrong(operator: &str, expected: &str, found: &Json) -> ScicatError {
    ScicatError::bad_request(format!("{operator} needs {expected}, found {found}"))
}
