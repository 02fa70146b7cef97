//! Scientific metadata: quantities and their SI values.
//!
//! A quantity is an object with a value and a unit: a key that starts with `v` and one that starts with `u`, neither
//! ending in `SI`, the last of each. When it is written it gets `valueSI` and `unitSI`, which searches compare. Objects
//! that are not quantities are searched inside; lists are left alone. Sources: sections 4.4 to 4.6 of the `SciCat`
//! contract.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use pinakes_store::{Fields, Texts, Tree};
use pinakes_units::Unit;
use serde_json::{Map, Number, Value};

const VALUE_SI: &str = "valueSI";
const UNIT_SI: &str = "unitSI";

/// Maximum nesting that is searched for quantities.
const MAX_DEPTH: usize = 64;

/// Separates a key from its human-readable name where both are counted together.
const NAME_MARK: char = '\u{1}';
/// Maximum length of a human-readable name that is kept with its key, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// Significant digits of a value that is converted for an answer.
const N_ANSWER_DIGITS: usize = 3;

/// Integers up to this are written without a fraction: 2^53, above which doubles cannot represent every integer.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Sets `valueSI` and `unitSI` of every quantity in `metadata`, replacing existing ones. They are removed from a
/// quantity whose unit is empty: searches would find them although they are wrong.
///
/// An unknown unit, and a value that is not a number, are copied as SI value and unit.
pub fn enrich(metadata: &mut Map<String, Value>) {
    let mut fields = Fields::of(metadata);
    enrich_fields(&mut fields);
    *metadata = fields.into_map();
}

/// Converts the quantity at the top-level key `key` to the unit `unit_text`: value and unit are replaced, the value
/// with three significant digits; `valueSI` and `unitSI` stay. Does nothing if it is not a quantity or cannot be
/// converted.
pub fn show_in_unit(metadata: &mut Map<String, Value>, key: &str, unit_text: &str) {
    let Some(Value::Object(object)) = metadata.get_mut(key) else { return };
    if let Some((value_key, shown, unit_key, unit)) = in_unit(&Fields::of(object), unit_text) {
        object.insert(value_key, shown);
        object.insert(unit_key, unit.into());
    }
}

/// Returns key and content of a quantity's value and unit after conversion.
fn in_unit(quantity: &Fields<'_>, unit_text: &str) -> Option<(String, Value, String, String)> {
    let ((value_key, value), (unit_key, unit)) = members_of_quantity(quantity)?;
    let to = pinakes_units::unit(unit_text)?;
    let from = pinakes_units::unit(unit)?;
    let shown = converted(value, &|it| from.convert(it, &to).map_or(f64::NAN, round_to_answer))?;
    is_free_of_null(&shown)
        .then(|| (value_key.to_owned(), shown.into(), unit_key.to_owned(), to.text().to_owned()))
}

/// Converts a number in unit `unit_text` to SI for a search condition; returns it with the SI unit's text, or `None` if
/// the unit is unknown.
pub fn condition_in_si(value: f64, unit_text: &str) -> Option<(f64, String)> {
    pinakes_units::to_si(value, unit_text)
}

/// Adds the dotted keys of `metadata`, in order: quantities, lists and plain values by their key, objects by the keys
/// inside (`parent.child`). Keys on the original's junk list are left out. A key that is reached in two ways is added
/// twice. If its object has a `human_name`, the key is followed by `NAME_MARK` and that name.
pub fn add_keys(metadata: &Fields<'_>, keys: &mut Texts) {
    add_keys_inside(metadata, &mut String::new(), keys, MAX_DEPTH);
}

/// Does what [`enrich`] does.
pub(crate) fn enrich_fields(metadata: &mut Fields<'_>) {
    enrich_inside(metadata, MAX_DEPTH);
}

fn enrich_inside(object: &mut Fields<'_>, depth: usize) {
    for inner in object.values_mut().filter_map(Tree::as_object_mut) {
        if let Some((value, unit)) = quantity(inner) {
            if unit.is_empty() {
                inner.remove(VALUE_SI);
                inner.remove(UNIT_SI);
            } else {
                let (value_si, unit_si) = in_si(value, unit);
                inner.set(VALUE_SI, value_si);
                inner.set(UNIT_SI, Tree::Text(Cow::Owned(unit_si)));
            }
        } else if 0 < depth {
            enrich_inside(inner, depth - 1);
        }
    }
}

/// Returns value and unit of an object that is a quantity. An object whose `u` key does not hold a text (a `user`, say)
/// is not a quantity.
fn quantity<'o, 't>(object: &'o Fields<'t>) -> Option<(&'o Tree<'t>, &'o str)> {
    members_of_quantity(object).map(|(value, unit)| (value.1, unit.1))
}

/// Returns value and unit of a quantity with their keys.
#[expect(clippy::type_complexity, reason = "two members")]
fn members_of_quantity<'o, 't>(
    object: &'o Fields<'t>,
) -> Option<((&'o str, &'o Tree<'t>), (&'o str, &'o str))> {
    let (mut value, mut unit) = (None, None);
    for (key, inner) in object.iter() {
        match key.as_bytes().first() {
            Some(b'v') if !key.ends_with("SI") => value = Some((key, inner)),
            Some(b'u') if !key.ends_with("SI") => unit = Some((key, inner)),
            _ => {}
        }
    }
    let (unit_key, unit) = unit?;
    Some((value?, (unit_key, unit.as_text()?)))
}

fn in_si<'t>(value: &Tree<'t>, unit_text: &str) -> (Tree<'t>, String) {
    let unit = pinakes_units::unit(unit_text);
    let known = unit.as_deref().and_then(|unit| Some((unit, unit.si_text()?)));
    let in_si = known.and_then(|(unit, si_text)| Some((value_in_si(value, unit)?, si_text.to_owned())));
    in_si.unwrap_or_else(|| (value.clone(), unit_text.to_owned()))
}

fn value_in_si(value: &Tree<'_>, unit: &Unit) -> Option<Tree<'static>> {
    converted(value, &|it| unit.value_to_si(it))
}

/// Applies `convert` to a number, a numeric text or a list of these. `None` for anything else.
fn converted(value: &Tree<'_>, convert: &impl Fn(f64) -> f64) -> Option<Tree<'static>> {
    match value {
        Tree::List(items) => {
            let each = items.iter().map(|it| Some(json_number(convert(number(it)?))));
            each.collect::<Option<_>>().map(Tree::List)
        }
        single => Some(json_number(convert(number(single)?))),
    }
}

fn number(value: &Tree<'_>) -> Option<f64> {
    match value {
        Tree::Number(number) => number.as_f64(),
        Tree::Text(text) => numeric_text(text),
        _ => None,
    }
}

/// Parses a text of decimal digits as a number. Rust would also accept `inf` and `nan`.
fn numeric_text(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_decimal = text.bytes().all(|it| it.is_ascii_digit() || b"+-.eE".contains(&it));
    text.parse().ok().filter(|_| is_decimal)
}

/// Returns a double as JSON: integers without a fraction, as JavaScript writes them; `null` for values that JSON cannot
/// represent.
fn json_number(value: f64) -> Tree<'static> {
    if value.fract() == 0.0 && value.abs() <= MAX_EXACT_INTEGER {
        // Exact, as the value is within the limit.
        #[expect(clippy::cast_possible_truncation, reason = "integral and within 2^53")]
        return Tree::Number(Number::from(value as i64));
    }
    Number::from_f64(value).map_or(Tree::Null, Tree::Number)
}

/// Rounds to three significant digits, halves away from zero, based on the shortest decimal representation of the
/// value.
fn round_to_answer(value: f64) -> f64 {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return value };
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|it| it - b'0').collect();
    let Ok(exponent) = exponent.parse::<i32>() else { return value };
    let sign = if value < 0.0 { "-" } else { "" };
    let kept = digits.iter().take(N_ANSWER_DIGITS).fold(0_u32, |sum, digit| sum * 10 + u32::from(*digit));
    let is_rounded_up = digits.get(N_ANSWER_DIGITS).is_some_and(|it| 5 <= *it);
    let rounded = kept + u32::from(is_rounded_up);
    let n_kept = i32::try_from(digits.len().min(N_ANSWER_DIGITS)).unwrap_or(1);
    format!("{sign}{rounded}e{}", exponent - n_kept + 1).parse().unwrap_or(value)
}

fn is_free_of_null(value: &Tree<'_>) -> bool {
    match value {
        Tree::List(items) => items.iter().all(is_free_of_null),
        single => *single != Tree::Null,
    }
}

fn add_keys_inside(object: &Fields<'_>, path: &mut String, keys: &mut Texts, depth: usize) {
    for (key, inner) in object.iter() {
        let n_before = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
        match inner {
            Tree::Object(inner) if 0 < depth && !is_leaf(inner) => {
                add_keys_inside(inner, path, keys, depth - 1);
            }
            _ if is_junk(path) => {}
            Tree::Object(inner) => {
                if let Some(name) = human_name(inner) {
                    path.push(NAME_MARK);
                    path.push_str(name);
                }
                keys.push(path);
            }
            _ => keys.push(path),
        }
        path.truncate(n_before);
    }
}

/// Returns the human-readable name of what an object holds.
fn human_name<'o>(object: &'o Fields<'_>) -> Option<&'o str> {
    let (_, name) = object.iter().find(|(key, _)| *key == "human_name")?;
    name.as_text().filter(|it| !it.is_empty() && it.len() <= MAX_NAME_BYTES && !it.contains(NAME_MARK))
}

/// Splits an entry of [`add_keys`] into key and human-readable name; the name is empty if there is none.
pub(crate) fn key_and_name(counted: &str) -> (&str, &str) {
    counted.split_once(NAME_MARK).unwrap_or((counted, ""))
}

fn is_leaf(object: &Fields<'_>) -> bool {
    object.iter().any(|(key, _)| key == "value" || key == "v") || quantity(object).is_some()
}

fn is_junk(key: &str) -> bool {
    static JUNK: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| ["_date", "runNumber"].map(|it| Finder::new(it.as_bytes())));
    JUNK.iter().any(|it| it.find(key.as_bytes()).is_some())
}
