//! Validation of a version's metadata: missing and invalid values.

use std::collections::HashMap;

use super::definition::{FieldKind, FieldType};
use super::fields::{Content, Field, Fields};
use super::registry::Registry;

/// A collection's requirements on a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Whether it must have a value.
    pub is_required: bool,
    /// Whether it is used.
    pub is_included: bool,
    /// Whether the form of a new dataset includes it, if the collection states that.
    pub is_on_create: Option<bool>,
}

/// A collection's requirements on fields, by field name.
#[derive(Debug, Clone, Default)]
pub struct Levels(pub HashMap<String, Level>);

impl Levels {
    /// Returns whether a field must have a value.
    pub fn is_required(&self, field: &FieldType) -> bool {
        self.0
            .get(&field.name)
            .map_or(field.is_required, |it| it.is_included && (it.is_required || field.is_required))
    }

    /// Returns whether the form of a new dataset includes a field.
    pub fn is_on_create(&self, field: &FieldType) -> bool {
        let said = self.0.get(&field.name).and_then(|it| it.is_on_create);
        said.unwrap_or(field.is_on_create)
    }

    /// Returns whether a field is used.
    pub fn is_included(&self, field: &FieldType) -> bool {
        self.0.get(&field.name).is_none_or(|it| it.is_included)
    }
}

/// An invalid or missing value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Name of the field.
    pub field: String,
    /// What is wrong, for display.
    pub message: String,
    /// The value; empty if it is missing.
    pub value: String,
}

/// Returns the faults as one text, in the form of Dataverse's error message.
pub fn validation_message(faults: &[Fault]) -> String {
    let list: Vec<String> =
        faults.iter().map(|it| format!("{} (Invalid value:{})", it.message, it.value)).collect();
    format!("Validation Failed: {}.", list.join(", "))
}

/// Returns the faults of a version's metadata. `blocks` are the indices of the blocks that the collection uses: only
/// their fields can be missing.
pub fn validate(registry: &Registry, fields: &Fields, levels: &Levels, blocks: &[usize]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, ty) in registry.fields().iter().enumerate() {
        if ty.parent.is_none() && blocks.contains(&ty.block) {
            check_missing(registry, fields.get(at), ty, levels, &mut faults);
        }
    }
    for field in &fields.0 {
        check_values(registry, field, &mut faults);
        check_box(registry, field, &mut faults);
    }
    faults
}

/// The field whose values are geographic bounding boxes.
const BOX: &str = "geographicBoundingBox";
/// Its parts.
const BOX_PARTS: [&str; 4] = ["westLongitude", "eastLongitude", "northLatitude", "southLatitude"];

/// Checks that each box has either no coordinates, or four valid ones in the right order.
fn check_box(registry: &Registry, field: &Field, faults: &mut Vec<Fault>) {
    let ty = registry.at(field.at);
    let Content::Compounds(boxes) = &field.content else { return };
    if ty.name != BOX {
        return;
    }
    for parts in boxes {
        let part = |name: &str| {
            let found = parts.iter().find(|it| registry.at(it.at).name == name)?;
            match &found.content {
                Content::Texts(list) => list.first().map(|it| it.trim()).filter(|it| !it.is_empty()),
                Content::Compounds(_) => None,
            }
        };
        let texts = BOX_PARTS.map(part);
        if texts.iter().all(Option::is_none) {
            continue;
        }
        let number =
            |text: Option<&str>| text.and_then(|it| it.parse::<f64>().ok()).filter(|it| it.is_finite());
        let is_right = match texts.map(number) {
            [Some(west), Some(east), Some(north), Some(south)] => {
                south <= north && (west <= east || crosses_180(west, east))
            }
            _ => false,
        };
        if !is_right {
            let what = "has invalid coordinates. East must be greater than West and North must be greater than South. Missing values are NOT allowed.";
            let value = texts.map(Option::unwrap_or_default).join(", ");
            faults.push(Fault {
                field: ty.name.clone(),
                message: format!("{} {what}", registry.display_name(ty)),
                value,
            });
        }
    }
}

/// Returns whether a box that begins at `west` lies across the 180th meridian. One that would be wider than half of the
/// globe is taken for a box whose sides were exchanged.
fn crosses_180(west: f64, east: f64) -> bool {
    (0.0..=180.0).contains(&west) && (-180.0..=0.0).contains(&east) && east + 360.0 - west < 180.0
}

fn missing(ty: &FieldType, message: String) -> Fault {
    Fault { field: ty.name.clone(), message, value: String::new() }
}

fn check_missing(
    registry: &Registry,
    field: Option<&Field>,
    ty: &FieldType,
    levels: &Levels,
    faults: &mut Vec<Fault>,
) {
    if !ty.is_compound() {
        if field.is_none() && levels.is_required(ty) {
            faults.push(missing(ty, format!("{} is required.", registry.display_name(ty))));
        }
        return;
    }
    let required: Vec<&FieldType> =
        ty.children.iter().map(|at| registry.at(*at)).filter(|it| levels.is_required(it)).collect();
    let is_parent_required = levels.is_required(ty);
    let empty = [Vec::new()];
    let values: &[Vec<Field>] = match field.map(|it| &it.content) {
        Some(Content::Compounds(list)) => list,
        _ if is_parent_required => &empty,
        _ => return,
    };
    if required.is_empty() && field.is_none() {
        faults.push(missing(ty, format!("{} is required.", registry.display_name(ty))));
    }
    for children in values {
        for child in &required {
            let is_there = children.iter().any(|it| registry.at(it.at).name == child.name);
            if is_there {
                continue;
            }
            let name = registry.display_name(child);
            let message = match is_parent_required {
                true => format!("{name} is required."),
                false => format!(
                    "{name} is required if you choose to enter a value in any of the optional {} fields.",
                    ty.title
                ),
            };
            faults.push(missing(child, message));
        }
    }
}

fn check_values(registry: &Registry, field: &Field, faults: &mut Vec<Fault>) {
    let ty = registry.at(field.at);
    match &field.content {
        Content::Compounds(list) => list.iter().flatten().for_each(|it| check_values(registry, it, faults)),
        Content::Texts(list) => {
            for value in list.iter().filter(|_| !ty.is_controlled) {
                let Some(what) = fault_of(ty.kind, value) else { continue };
                let message = format!("{} {value}  {what}", registry.display_name(ty));
                faults.push(Fault { field: ty.name.clone(), message, value: value.clone() });
            }
        }
    }
}

fn fault_of(kind: FieldKind, value: &str) -> Option<&'static str> {
    let value = value.trim();
    let (is_right, fault) = match kind {
        FieldKind::Text | FieldKind::Textbox | FieldKind::None => return None,
        FieldKind::Date => (is_date(value), "is not a valid date. \"yyyy\" is a supported format."),
        FieldKind::Email => (is_email(value), "is not a valid email address."),
        FieldKind::Url => (is_url(value), "is not a valid URL."),
        FieldKind::Float => (value.parse::<f64>().is_ok_and(f64::is_finite), "is not a valid number."),
        FieldKind::Int => (value.parse::<i64>().is_ok(), "is not a valid integer."),
    };
    (!is_right).then_some(fault)
}

/// Returns whether Dataverse accepts a text as a date: `y`, `y-M`, `y-M-d` with a year of at most four digits, followed
/// by `AD` or `BC`; `[yyyy?]`; `y-M-dTHH:mm:ss`, also with milliseconds and a zone, or a blank instead of the T.
pub fn is_date(text: &str) -> bool {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        return is_date(inner.strip_suffix('?').unwrap_or(inner));
    }
    if let Some(year) = text.strip_suffix("BC").or_else(|| text.strip_suffix("AD")) {
        let year = year.trim();
        return !year.is_empty() && (is_plain_date(year) || year.bytes().all(|it| it.is_ascii_digit()));
    }
    match text.split_once(['T', ' ']) {
        Some((date, time)) => is_plain_date(date) && date.matches('-').count() == 2 && is_time(time),
        None => is_plain_date(text.strip_prefix('-').unwrap_or(text)),
    }
}

fn digits(text: &str, most: usize) -> Option<u32> {
    let is_number = (1..=most).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

fn is_plain_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let year = parts.next().and_then(|it| digits(it, 4));
    let month = parts.next().map(|it| digits(it, 2).filter(|it| (1..=12).contains(it)));
    let day = parts.next().map(|it| digits(it, 2));
    let Some(year) = year else { return false };
    match (month, day, parts.next()) {
        (None, None, None) => true,
        (Some(Some(_)), None, None) => true,
        (Some(Some(month)), Some(Some(day)), None) => {
            let month = u8::try_from(month).ok().and_then(|it| time::Month::try_from(it).ok());
            let year = i32::try_from(year).unwrap_or(0);
            month.is_some_and(|month| (1..=u32::from(month.length(year))).contains(&day))
        }
        _ => false,
    }
}

fn is_time(text: &str) -> bool {
    let text = text.trim_end_matches('Z');
    let text = text.split_once('+').map_or(text, |it| it.0);
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let parts: Vec<Option<u32>> = clock.split(':').map(|it| digits(it, 2)).collect();
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|it| it.is_ascii_digit());
    let is_clock = match parts[..] {
        [Some(hour), Some(minute)] => hour < 24 && minute < 60,
        [Some(hour), Some(minute), Some(second)] => hour < 24 && minute < 60 && second < 61,
        _ => false,
    };
    is_clock && is_fraction
}

/// Returns whether a text is an e-mail address: a name, one `@`, and a host name of labels.
pub fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.rsplit_once('@') else { return false };
    let is_name = !name.is_empty()
        && name.len() <= 64
        && !name.starts_with('.')
        && !name.ends_with('.')
        && !name.contains("..")
        && name.chars().all(|it| it.is_alphanumeric() || "!#$%&'*+/=?^_`{|}~.-".contains(it));
    let labels: Vec<&str> = host.split('.').collect();
    let is_label = |it: &&str| {
        !it.is_empty()
            && !it.starts_with('-')
            && !it.ends_with('-')
            && it.chars().all(|it| it.is_alphanumeric() || it == '-')
    };
    let is_host = (2 <= labels.len() || host == "localhost") && labels.iter().all(is_label);
    is_name && is_host && !text.contains(char::is_whitespace)
}

/// Returns whether a text is an absolute URL with a web scheme and a host.
pub fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_scheme = ["http", "https", "ftp"].iter().any(|it| scheme.eq_ignore_ascii_case(it));
    is_scheme && !host.is_empty() && !text.contains(char::is_whitespace) && host != "." && host != ":"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fields::Reading;
    use super::*;

    fn faults(json: serde_json::Value) -> Vec<String> {
        let registry = Registry::shipped();
        let fields =
            Fields::read(&registry, &json!({"citation": {"fields": json}}), Reading::Lenient).unwrap();
        validate(&registry, &fields, &Levels::default(), &[0]).into_iter().map(|it| it.message).collect()
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(
            faults(json!([])),
            [
                "Title is required.",
                "Author Name is required.",
                "Point of Contact E-mail is required.",
                "Description Text is required.",
                "Subject is required."
            ]
        );
        let producer = json!([{"typeName": "producer", "value": [
            {"producerAffiliation": {"typeName": "producerAffiliation", "value": "x"}}]}]);
        let text = "Producer Name is required if you choose to enter a value in any of the optional Producer fields.";
        assert!(faults(producer).contains(&text.to_owned()));
    }

    #[test]
    fn values_are_checked() {
        let contact = json!([{"typeName": "datasetContact", "value": [
            {"datasetContactEmail": {"typeName": "datasetContactEmail", "value": "nobody"}}]}]);
        let text = "Point of Contact E-mail nobody  is not a valid email address.";
        assert!(faults(contact).contains(&text.to_owned()));
    }

    #[test]
    fn boxes_have_four_numbers_in_their_places() {
        for (west, east, north, south, is_right) in [
            ("-73", "-70", "43", "42", true),
            ("7.5", "7.5", "60", "60", true),
            ("", "", "", "", true),
            ("-60", "-70", "43", "42", false),
            // Across the 180th meridian, unless that would be most of the globe.
            ("175", "-175", "43", "42", true),
            ("180", "-180", "43", "42", true),
            ("175", "-175", "41", "42", false),
            ("10", "-10", "43", "42", false),
            ("190", "-175", "43", "42", false),
            ("-73", "-70", "41", "42", false),
            ("-73", "", "43", "42", false),
            ("-73", "east", "43", "42", false),
        ] {
            let part = |name: &str, value: &str| json!({"typeName": name, "value": value});
            let given = json!([{"typeName": BOX, "value": [{
                "westLongitude": part("westLongitude", west), "eastLongitude": part("eastLongitude", east),
                "northLatitude": part("northLatitude", north), "southLatitude": part("southLatitude", south)}]}]);
            let n_faults = faults(given).iter().filter(|it| it.contains("has invalid coordinates")).count();
            assert_eq!(n_faults == 0, is_right, "{west} {east} {north} {south}");
        }
    }

    #[test]
    fn dates() {
        for text in [
            "2026",
            "15-01-01",
            "2026-02",
            "2024-02-29",
            "44 BC",
            "[1850?]",
            "2026-01-02T03:04:05",
            "2026-01-02T03:04:05.678Z",
        ] {
            assert!(is_date(text), "{text}");
        }
        for text in
            ["", "20266", "2026-13", "2025-02-29", "yesterday", "1/2/2026", "2026-01-02T", "2026-01T03:04:05"]
        {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn addresses() {
        assert!(is_email("a.b@example.org") && !is_email("a@b@c") && !is_email("a@b") && !is_email("@x.org"));
        assert!(is_url("https://x.org/a?b") && !is_url("x.org") && !is_url("http://") && !is_url("htp://x"));
    }
}
