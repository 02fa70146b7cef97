//! Instances as records of OAI-PMH: their headers, and descriptions in Dublin Core and MARCXML.

use pinakes_oai_pmh::{Deletions, Format, Header, Metadata, Record, escaped};
use pinakes_store::View;
use serde_json::Value;

use super::config::{Config, Sources, Suppressed};
use super::marc;
use crate::inventory::harvested::changed_ms;
use crate::platform::error::FolioError;
use crate::platform::json::text_at;

/// The set of all records, the only one.
pub(super) const SET: &str = "all";

/// A metadata format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Dublin Core, for every instance.
    Dc,
    /// The source record, for instances that have one.
    Marc21,
    /// The source record with holdings and items.
    Withholdings,
}

impl Form {
    const ALL: [Self; 3] = [Self::Dc, Self::Marc21, Self::Withholdings];

    const fn format(self) -> Format {
        match self {
            Self::Dc => Format::OAI_DC,
            Self::Marc21 => MARC21,
            Self::Withholdings => MARC21_WITHHOLDINGS,
        }
    }

    /// Returns the format of a prefix that is offered.
    pub(super) fn named(prefix: &str) -> Self {
        Self::ALL.into_iter().find(|it| it.format().prefix == prefix).unwrap_or(Self::Dc)
    }

    /// Returns all formats, as they are offered.
    pub(super) fn offered() -> Vec<Format> {
        Self::ALL.map(Self::format).to_vec()
    }
}

const MARC21: Format = Format {
    prefix: "marc21",
    schema: "http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd",
    namespace: "http://www.loc.gov/MARC21/slim",
};
const MARC21_WITHHOLDINGS: Format = Format { prefix: "marc21_withholdings", ..MARC21 };

/// How records of a tenant are written.
#[derive(Debug, Clone)]
pub(super) struct Manner {
    /// Prefix of record identifiers: `oai:host:tenant/`.
    pub(super) prefix: String,
    pub(super) config: Config,
}

/// Returns an instance as a record, with a description if `is_whole`; `None` if the tenant's settings exclude it.
pub(super) fn described(
    view: &mut View<'_>,
    instance: &Value,
    manner: &Manner,
    form: Form,
    is_whole: bool,
) -> Result<Option<Record>, FolioError> {
    let config = &manner.config;
    let id = text_at(instance, "id").unwrap_or_default();
    let is_made = config.sources != Sources::Records
        && text_at(instance, "source").is_some_and(|it| !it.eq_ignore_ascii_case("marc"))
        && text_at(instance, "title").is_some();
    let mut record = match form {
        Form::Dc => None,
        _ if is_made => Some(marc::made(instance)),
        _ => marc::source(view, id)?,
    };
    // In MARC the leader says whether the record is deleted; an instance without a record counts as deleted.
    let is_gone = match (&record, form) {
        (Some(record), _) => record.leader.status() == 'd',
        (None, Form::Dc) => false,
        (None, _) => true,
    };
    let is = |name: &str| instance.get(name) == Some(&true.into());
    let is_suppressed = is("discoverySuppress");
    let is_deleted = is_gone || is("deleted") || is_suppressed && config.suppressed == Suppressed::Deleted;
    let is_passed_over = is_deleted && config.deletions == Deletions::No
        || !is_deleted && is_suppressed && config.suppressed == Suppressed::Skipped;
    if is_passed_over {
        return Ok(None);
    }
    let header = Header {
        identifier: format!("{}{id}", manner.prefix),
        changed_ms: changed_ms(instance),
        sets: vec![SET.to_owned()],
        is_deleted,
    };
    if !is_whole || is_deleted {
        return Ok(Some(Record { header, metadata: None }));
    }
    let text = match &mut record {
        None => dublin_core(instance, config.suppressed == Suppressed::Shown),
        Some(record) => {
            let told = (config.suppressed == Suppressed::Shown).then_some(is_suppressed);
            if form == Form::Withholdings {
                marc::add_holdings(view, record, id, told.is_some())?;
            }
            if let Some(is_suppressed) = told {
                marc::tell_suppressed(record, is_suppressed);
            }
            marc::shown(record)
        }
    };
    Ok(Some(Record { header, metadata: Some(Metadata::Xml(text)) }))
}

/// Formats an instance in Dublin Core; if suppressed ones are shown, its rights say whether it is suppressed.
fn dublin_core(instance: &Value, tells_suppressed: bool) -> String {
    let mut text = String::from(
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd\">",
    );
    let mut add = |element: &str, value: Option<&str>| {
        if let Some(value) = value.filter(|it| !it.is_empty()) {
            text.push_str(&format!("<dc:{element}>{}</dc:{element}>", escaped(value)));
        }
    };
    add("title", text_at(instance, "title"));
    let list =
        |name: &str| instance.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for it in list("contributors") {
        let element = if it.get("primary") == Some(&true.into()) { "creator" } else { "contributor" };
        add(element, text_at(it, "name"));
    }
    for it in list("subjects") {
        add("subject", text_at(it, "value"));
    }
    for it in list("notes").iter().filter(|it| it.get("staffOnly") != Some(&true.into())) {
        add("description", text_at(it, "note"));
    }
    for it in list("publication") {
        add("publisher", text_at(it, "publisher"));
        add("date", text_at(it, "dateOfPublication"));
    }
    for it in list("physicalDescriptions") {
        add("format", it.as_str());
    }
    for it in list("identifiers") {
        add("identifier", text_at(it, "value"));
    }
    for it in list("electronicAccess") {
        add("identifier", text_at(it, "uri"));
    }
    for it in list("languages") {
        add("language", it.as_str());
    }
    if tells_suppressed {
        let is_suppressed = instance.get("discoverySuppress") == Some(&true.into());
        let rights = if is_suppressed { "discovery suppressed" } else { "discovery not suppressed" };
        text.push_str(&format!("<dc:rights>{rights}</dc:rights>"));
    }
    text.push_str("</oai_dc:dc>");
    text
}
