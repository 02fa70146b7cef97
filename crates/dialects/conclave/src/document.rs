//! The documents that clients see: JSON and XML of a topic and its members (section 2 of the contract).

use serde_json::{Map, Value, json};

use crate::error::{ConclaveError, Result};
use crate::markup::Resolver;
use crate::markup::gallery::Descriptor;
use crate::model::{Arc, Metadata, Occurrence, Topic};
use crate::names::{DEFAULT_SCOPE, LABEL, SELF};

/// Returns a topic as JSON. With a resolver, occurrences include the HTML that they are rendered as.
pub(crate) fn topic(topic: &Topic, resolver: Option<&Resolver<'_>>) -> Value {
    let mut out = json!({
        "_type": "topic",
        "id": topic.id,
        "label": topic.label,
        "metadata": topic.metadata.iter().map(|it| metadata(&topic.id, it)).collect::<Vec<_>>(),
        "associations": topic.arcs.iter().map(|it| arc(&topic.id, it)).collect::<Vec<_>>(),
        "occurrences":
            topic.occurrences.iter().map(|it| occurrence(&topic.id, it, resolver)).collect::<Vec<_>>(),
    });
    for (name, list) in [
        ("subject-identifiers", &topic.subject_identifiers),
        ("subject-locators", &topic.subject_locators),
        ("item-identifiers", &topic.item_identifiers),
    ] {
        if !list.is_empty() {
            out[name] = json!(list);
        }
    }
    out
}

/// Returns a topic as a line of NDJSON.
pub fn line(it: &Topic) -> String {
    format!("{}\n", topic(it, None))
}

/// Returns a metadata entry as JSON.
pub(crate) fn metadata(parent: &str, it: &Metadata) -> Value {
    json!({"_type": "metadata", "for": parent, "scope": it.scope, "name": it.name, "value": it.value})
}

/// Returns an arc as JSON.
pub(crate) fn arc(parent: &str, it: &Arc) -> Value {
    json!({
        "_type": "association", "parent": parent, "type": it.ty, "scope": it.scope, "reference": it.reference,
        "role": it.role, "id": it.id, "label": it.label(DEFAULT_SCOPE),
        "metadata": it.metadata.iter().map(|inner| metadata(&it.id, inner)).collect::<Vec<_>>(),
    })
}

/// Returns an occurrence as JSON.
pub(crate) fn occurrence(parent: &str, it: &Occurrence, resolver: Option<&Resolver<'_>>) -> Value {
    let mut out = json!({
        "_type": "occurrence", "for": parent, "scope": it.scope, "role": it.role, "behaviour": it.behaviour,
        "reference": it.reference,
    });
    match &it.base64 {
        Some(data) => out["data-base64"] = json!(data),
        None => out["string-data"] = json!(it.data),
    }
    if let Some(files) = resolver.and_then(|resolver| resolver.files(it)) {
        out["resolved-model"] = json!({"files": files.iter().map(Descriptor::to_json).collect::<Vec<_>>()});
    } else if let Some(html) = resolver.and_then(|resolver| resolver.html(it)) {
        out["resolved-model"] = json!({"text-data": html});
    }
    out
}

/// A JSON object all of whose keys must be read.
struct Taking<'v> {
    what: &'static str,
    object: &'v Map<String, Value>,
    known: Vec<&'static str>,
}

impl<'v> Taking<'v> {
    fn of(what: &'static str, value: &'v Value) -> Result<Self> {
        let object = value.as_object();
        let object =
            object.ok_or_else(|| ConclaveError::bad_request(format!("{what}: expected an object")))?;
        let mut out = Self { what, object, known: Vec::new() };
        match out.text("_type")? {
            Some(ty) if ty != what => {
                Err(ConclaveError::bad_request(format!("_type is {ty:?}; expected {what:?}")))
            }
            _ => Ok(out),
        }
    }

    fn text(&mut self, key: &'static str) -> Result<Option<&'v str>> {
        self.known.push(key);
        match self.object.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ConclaveError::bad_request(format!("{}: {key} is no string", self.what))),
        }
    }

    fn required(&mut self, key: &'static str) -> Result<String> {
        let what = self.what;
        let text = self.text(key)?.filter(|it| !it.is_empty());
        text.map(str::to_owned).ok_or_else(|| ConclaveError::bad_request(format!("{what}: {key} is missing")))
    }

    fn scope(&mut self) -> Result<String> {
        Ok(self.text("scope")?.filter(|it| !it.is_empty()).unwrap_or(DEFAULT_SCOPE).to_owned())
    }

    fn list(&mut self, key: &'static str) -> Result<&'v [Value]> {
        self.known.push(key);
        match self.object.get(key) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => Err(ConclaveError::bad_request(format!("{}: {key} is no list", self.what))),
        }
    }

    fn texts(&mut self, key: &'static str) -> Result<Vec<String>> {
        let what = self.what;
        let text = |it: &Value| it.as_str().map(str::to_owned);
        let list = self.list(key)?.iter().map(text).collect::<Option<Vec<_>>>();
        list.ok_or_else(|| ConclaveError::bad_request(format!("{what}: {key} holds what is no string")))
    }

    /// Checks that the parent stated by a member, if any, is the expected one.
    fn agrees(&mut self, key: &'static str, parent: &str) -> Result<()> {
        match self.text(key)? {
            Some(stated) if stated != parent => Err(ConclaveError::bad_request(format!(
                "{}: {key} is {stated:?}, but it belongs to {parent:?}",
                self.what
            ))),
            _ => Ok(()),
        }
    }

    fn end(mut self) -> Result<()> {
        self.known.push("label");
        match self.object.keys().find(|it| !self.known.contains(&it.as_str())) {
            None => Ok(()),
            Some(key) => Err(ConclaveError::bad_request(format!(
                "{}: the key {key:?} is not known; known are {}",
                self.what,
                self.known.join(", ")
            ))),
        }
    }
}

/// Parses a topic. `new_id` generates ids for arcs that state none.
pub(crate) fn read_topic(
    value: &Value,
    map: &str,
    id: &str,
    new_id: &mut dyn FnMut() -> String,
) -> Result<Topic> {
    let mut taking = Taking::of("topic", value)?;
    taking.agrees("id", id)?;
    let mut out = Topic::new(map, id);
    for it in taking.list("metadata")? {
        out.metadata.push(read_metadata(it, Some(id))?.1);
    }
    for it in taking.list("associations")? {
        out.arcs.push(read_arc(it, Some(id), new_id)?.1);
    }
    for it in taking.list("occurrences")? {
        let (_, occurrence, _) = read_occurrence(it, Some(id))?;
        out.occurrences.retain(|it| !it.has_key_of(&occurrence));
        out.occurrences.push(occurrence);
    }
    out.subject_identifiers = taking.texts("subject-identifiers")?;
    out.subject_locators = taking.texts("subject-locators")?;
    out.item_identifiers = taking.texts("item-identifiers")?;
    let label = taking.text(LABEL)?;
    taking.end()?;
    out.label = out.label_in(DEFAULT_SCOPE).to_owned();
    match label {
        // The label follows from the metadata; a stated label must be equal to it.
        Some(stated) if stated != out.label => Err(ConclaveError::bad_request(format!(
            "topic: label is {stated:?}, but its metadata make it {:?}; set the metadata named label",
            out.label
        ))),
        _ => Ok(out),
    }
}

/// Parses a metadata entry: its parent, and the entry.
pub(crate) fn read_metadata(value: &Value, parent: Option<&str>) -> Result<(String, Metadata)> {
    let mut taking = Taking::of("metadata", value)?;
    let parent = parent_of(&mut taking, "for", parent)?;
    let (scope, name) = (taking.scope()?, taking.required("name")?);
    let value = taking.text("value")?.unwrap_or_default().to_owned();
    taking.end()?;
    Ok((parent, Metadata { scope, name, value }))
}

/// Parses an arc: its parent, and the arc.
pub(crate) fn read_arc(
    value: &Value,
    parent: Option<&str>,
    new_id: &mut dyn FnMut() -> String,
) -> Result<(String, Arc)> {
    let mut taking = Taking::of("association", value)?;
    let parent = parent_of(&mut taking, "parent", parent)?;
    let id = taking.text("id")?.filter(|it| !it.is_empty()).map_or_else(new_id, str::to_owned);
    let (ty, scope) = (taking.required("type")?, taking.scope()?);
    let (reference, role) = (taking.required("reference")?, taking.required("role")?);
    let mut metadata = Vec::new();
    for it in taking.list("metadata")? {
        metadata.push(read_metadata(it, Some(&id))?.1);
    }
    let label = taking.text(LABEL)?;
    if let (true, Some(label)) = (metadata.is_empty(), label.filter(|it| *it != reference)) {
        metadata.push(Metadata {
            scope: DEFAULT_SCOPE.to_owned(),
            name: LABEL.to_owned(),
            value: label.to_owned(),
        });
    }
    taking.end()?;
    Ok((parent, Arc { id, ty, scope, reference, role, metadata }))
}

/// Parses an occurrence: its parent, the occurrence, and whether data was stated.
pub(crate) fn read_occurrence(value: &Value, parent: Option<&str>) -> Result<(String, Occurrence, bool)> {
    let mut taking = Taking::of("occurrence", value)?;
    let parent = parent_of(&mut taking, "for", parent)?;
    let (scope, role) = (taking.scope()?, taking.required("role")?);
    let behaviour = taking.required("behaviour")?;
    let reference = taking.text("reference")?.filter(|it| !it.is_empty()).unwrap_or(SELF).to_owned();
    let (text, base64) = (taking.text("string-data")?, taking.text("data-base64")?.map(str::to_owned));
    taking.known.push("resolved-model");
    let has_data = text.is_some() || base64.is_some();
    let data = text.unwrap_or_default().to_owned();
    taking.end()?;
    let mut out = Occurrence { scope, role, behaviour, reference, data, base64 };
    if out.base64.is_some() {
        let bytes = out.bytes();
        out.set_bytes(bytes);
    }
    Ok((parent, out, has_data))
}

fn parent_of(taking: &mut Taking<'_>, key: &'static str, parent: Option<&str>) -> Result<String> {
    match parent {
        Some(parent) => taking.agrees(key, parent).map(|()| parent.to_owned()),
        None => taking.required(key),
    }
}

/// Returns a topic as XML.
pub(crate) fn topic_xml(topic: &Topic, resolver: Option<&Resolver<'_>>) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    element(&mut out, "topic", &[("id", &topic.id), ("label", &topic.label)]);
    out.push_str("<metadata>");
    topic.metadata.iter().for_each(|it| metadata_xml(&mut out, &topic.id, it));
    out.push_str("</metadata><associations>");
    for it in &topic.arcs {
        let label = it.label(DEFAULT_SCOPE);
        let attributes = [
            ("parent", topic.id.as_str()),
            ("type", &it.ty),
            ("scope", &it.scope),
            ("reference", &it.reference),
            ("role", &it.role),
            ("id", &it.id),
            ("label", label),
        ];
        element(&mut out, "association", &attributes);
        out.push_str("<metadata>");
        it.metadata.iter().for_each(|inner| metadata_xml(&mut out, &it.id, inner));
        out.push_str("</metadata></association>");
    }
    out.push_str("</associations><occurrences>");
    for it in &topic.occurrences {
        let attributes = [
            ("for", topic.id.as_str()),
            ("scope", &it.scope),
            ("role", &it.role),
            ("behaviour", &it.behaviour),
            ("reference", &it.reference),
        ];
        element(&mut out, "occurrence", &attributes);
        match &it.base64 {
            Some(data) => out.push_str(&format!("<data-base64>{data}</data-base64>")),
            None => {
                out.push_str("<string-data encoding=\"Unicode (UTF-8)\">");
                cdata(&mut out, &it.data);
                out.push_str("</string-data>");
            }
        }
        if let Some(files) = resolver.and_then(|resolver| resolver.files(it)) {
            out.push_str("<resolved-model><files>");
            for file in files.iter() {
                let attributes = file.attributes();
                element(
                    &mut out,
                    "file",
                    &attributes.each_ref().map(|(name, value)| (*name, value.as_str())),
                );
                out.push_str("</file>");
            }
            out.push_str("</files></resolved-model>");
        } else if let Some(html) = resolver.and_then(|resolver| resolver.html(it)) {
            out.push_str("<resolved-model><text-data>");
            cdata(&mut out, &html);
            out.push_str("</text-data></resolved-model>");
        }
        out.push_str("</occurrence>");
    }
    out.push_str("</occurrences></topic>\n");
    out
}

fn metadata_xml(out: &mut String, parent: &str, it: &Metadata) {
    element(
        out,
        "metadata",
        &[("for", parent), ("scope", &it.scope), ("name", &it.name), ("value", &it.value)],
    );
    out.push_str("</metadata>");
}

fn element(out: &mut String, name: &str, attributes: &[(&str, &str)]) {
    out.push('<');
    out.push_str(name);
    for (key, value) in attributes {
        out.push_str(&format!(" {key}=\""));
        for it in value.chars() {
            match it {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\t' | '\n' | '\r' => out.push_str(&format!("&#{};", u32::from(it))),
                it if it.is_control() => out.push('\u{FFFD}'),
                it => out.push(it),
            }
        }
        out.push('"');
    }
    out.push('>');
}

/// Writes text as a CDATA section: replaces characters that XML cannot hold, and splits the end marker where it occurs
/// in the text.
fn cdata(out: &mut String, text: &str) {
    let is_bad = |it: char| it.is_control() && !matches!(it, '\t' | '\n' | '\r');
    out.push_str("<![CDATA[");
    out.push_str(&text.replace(is_bad, "\u{FFFD}").replace("]]>", "]]]]><![CDATA[>"));
    out.push_str("]]>");
}
