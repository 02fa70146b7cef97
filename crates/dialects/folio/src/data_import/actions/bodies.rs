//! From MARC to the bodies of records, and what a mapping profile sets in them.

use pinakes_marc::{Field, Record};
use serde_json::{Map, Value};

use crate::data_import::engine::{Case, Engine, StepError};
use crate::data_import::fields::Source;
use crate::data_import::mapping::{self, Reference, Rules};
use crate::data_import::tree::Action;
use crate::platform::dates;
use crate::source_records::marc;

/// Normalises a bibliographic record before it is mapped.
pub(super) fn tidy_bib(record: &mut Record) {
    marc::keep_control_number(record);
    record.remove("003");
    marc::normalise_oclc(record);
}

/// Maps a bibliographic record to the properties of an instance, without the hrid, which is assigned when it is stored.
pub(super) fn mapped_bib(rules: &Rules, record: &Record, reference: &Reference) -> Map<String, Value> {
    let mut body = mapping::instance(rules, record, reference);
    body.shift_remove("hrid");
    body
}

/// Maps a bibliographic record as it arrived.
pub(crate) fn made_of_bib(rules: &Rules, mut record: Record, reference: &Reference) -> Map<String, Value> {
    tidy_bib(&mut record);
    mapped_bib(rules, &record, reference)
}

/// Removes the links to authorities.
pub(super) fn strip_links(record: &mut Record) {
    const LINKABLE: [&str; 22] = [
        "100", "110", "111", "130", "240", "600", "610", "611", "630", "650", "651", "655", "700", "710",
        "711", "730", "800", "810", "811", "830", "648", "647",
    ];
    for field in &mut record.fields {
        if let Field::Data(field) = field
            && LINKABLE.iter().any(|it| field.tag == **it)
        {
            field.remove('9');
        }
    }
}

/// Maps a changed MARC record to its instance; properties that do not come from MARC are kept.
pub(crate) fn remapped(
    rules: &Rules,
    record: &Record,
    reference: &Reference,
    old: &Value,
) -> Map<String, Value> {
    let mut body = mapping::instance(rules, record, reference);
    const OWN: [&str; 11] = [
        "id",
        "hrid",
        "statusId",
        "statisticalCodeIds",
        "administrativeNotes",
        "natureOfContentTermIds",
        "catalogedDate",
        "tags",
        "previouslyHeld",
        "discoverySuppress",
        "staffSuppress",
    ];
    for name in OWN {
        if let Some(value) = old.get(name).filter(|_| !body.contains_key(name) || name == "hrid") {
            body.insert(name.to_owned(), value.clone());
        }
    }
    body
}

/// Renames `materialType.id` and the like, which mapping profiles set, to the stored form, e.g. `materialTypeId`.
pub(crate) fn unfold(body: &mut Map<String, Value>) {
    for name in
        ["materialType", "permanentLoanType", "temporaryLoanType", "permanentLocation", "temporaryLocation"]
    {
        if let Some(id) = body.get(name).and_then(|it| it.get("id")).cloned() {
            body.shift_remove(name);
            body.insert(format!("{name}Id"), id);
        }
    }
}

/// Returns a copy of the record for each field with the tag, each with only that one of these fields.
pub(crate) fn occurrences(record: &Record, tag: Option<&str>) -> Vec<Record> {
    let places: Vec<usize> = match tag {
        None => Vec::new(),
        Some(tag) => {
            let is_it = |(at, field): (usize, &Field)| (*field.tag() == *tag).then_some(at);
            record.fields.iter().enumerate().filter_map(is_it).collect()
        }
    };
    if places.len() < 2 {
        return vec![record.clone()];
    }
    let one = |place: &usize| {
        let fields = record.fields.iter().enumerate();
        let kept =
            fields.filter(|(at, _)| at == place || !places.contains(at)).map(|(_, field)| field.clone());
        Record { leader: record.leader, fields: kept.collect() }
    };
    places.iter().map(one).collect()
}

/// Returns a copy of the record without the other fields that have the tag of the field at a position.
pub(super) fn with_one_field(record: &Record, position: usize) -> Record {
    let Some(tag) = record.fields.get(position).map(Field::tag) else { return record.clone() };
    let fields = record.fields.iter().enumerate();
    let kept = fields.filter(|(at, field)| *at == position || field.tag() != tag);
    Record { leader: record.leader, fields: kept.map(|(_, field)| field.clone()).collect() }
}

/// Sets the fields that an action's mapping names, from the record of the case.
pub(super) fn apply_fields(
    engine: &Engine<'_, '_, '_>,
    case: &Case<'_>,
    action: &Action,
    body: &mut Map<String, Value>,
) -> Result<(), StepError> {
    apply_to(engine, &case.record, action, body)
}

/// Sets the fields that an action's mapping names.
pub(super) fn apply_to(
    engine: &Engine<'_, '_, '_>,
    record: &Record,
    action: &Action,
    body: &mut Map<String, Value>,
) -> Result<(), StepError> {
    let today = dates::rmb(engine.now_ms);
    let today = today.get(..10).unwrap_or_default();
    let source = Source { record, reference: &engine.setup.reference, today };
    action.fields.iter().try_for_each(|it| it.apply(body, &source)).map_err(StepError::Record)
}

/// Says that there is no such collection.
pub(super) fn missing(what: &str) -> StepError {
    StepError::Record(format!("this server keeps no {what}"))
}

/// Returns where the record is in what was sent.
pub(super) fn place<'c>(case: &'c Case<'_>) -> &'c str {
    &case.prepared.incoming.place
}
