//! Reads JTM 1.0 and 1.1.

use serde_json::{Map, Value};

use crate::builder::IdentityKind::{self, ItemIdentifier, SubjectIdentifier, SubjectLocator};
use crate::error::{Error, Place};
use crate::iri::{self, datatype, model};
use crate::model::{Association, Item, Name, Occurrence, Role, TopicId, Variant};
use crate::session::Session;
use crate::text;

type Object = Map<String, Value>;

struct Reader<'s, 'l> {
    session: &'s mut Session<'l>,
    base: &'s str,
    is_1_1: bool,
    prefixes: Vec<(String, String)>,
    /// Where the reader is, as `topics[3].names[0]`.
    path: Vec<String>,
}

pub(crate) fn read(bytes: &[u8], base: &str, session: &mut Session<'_>) -> Result<(), Error> {
    let whole = Place::new(base, 0);
    let text = text::decode(bytes, None, encoding_rs::UTF_8, session.is_strict, &whole)?;
    let root: Value = serde_json::from_str(&text)
        .map_err(|error| Place::new(base, error.line() as u64).fault(format!("is no JSON: {error}")))?;
    let Value::Object(root) = root else { return Err(whole.fault("is no JSON object")) };
    let mut reader = Reader { session, base, is_1_1: false, prefixes: Vec::new(), path: Vec::new() };
    reader.is_1_1 = match root.get("version") {
        None => false,
        Some(Value::String(it)) if it == "1.0" => false,
        Some(Value::String(it)) if it == "1.1" => true,
        Some(other) => {
            return Err(reader.fault(format!("the version is {other}; expected \"1.0\" or \"1.1\"")));
        }
    };
    reader.read_prefixes(&root)?;
    let kind = reader.text(&root, "item_type")?.map(str::to_ascii_lowercase);
    match kind.as_deref() {
        Some("topicmap") => reader.map(&root),
        Some("topic") => reader.topic(&root),
        Some("association") => reader.association(&root),
        Some("name") => {
            let topic = reader.parent(&root)?;
            let name = reader.name(&root)?;
            reader.session.builder.add_name(topic, name);
            Ok(())
        }
        Some("occurrence") => {
            let topic = reader.parent(&root)?;
            let occurrence = reader.occurrence(&root)?;
            reader.session.builder.add_occurrence(topic, occurrence);
            Ok(())
        }
        Some(other) => Err(reader.fault(format!(
            "item_type is {other:?}; expected topicmap, topic, name, occurrence or association"
        ))),
        None => Err(reader.fault("item_type is missing")),
    }
}

impl Reader<'_, '_> {
    fn fault(&self, reason: impl std::fmt::Display) -> Error {
        let place = Place::new(self.base, 0);
        if self.path.is_empty() {
            return place.fault(reason.to_string());
        }
        place.fault(format!("{}: {reason}", self.path.join(".")))
    }

    fn read_prefixes(&mut self, root: &Object) -> Result<(), Error> {
        let Some(prefixes) = root.get("prefixes").filter(|it| !it.is_null()) else { return Ok(()) };
        if !self.is_1_1 {
            return Err(self.fault("prefixes are of version 1.1, not of 1.0"));
        }
        let Value::Object(prefixes) = prefixes else { return Err(self.fault("prefixes is no object")) };
        for (prefix, iri) in prefixes {
            let Value::String(iri) = iri else {
                return Err(self.fault(format!("the prefix {prefix} is bound to no string")));
            };
            if prefix == "xsd" && iri != datatype::BASE {
                return Err(
                    self.fault(format!("the prefix xsd is bound to {iri}; it is always {}", datatype::BASE))
                );
            }
            self.prefixes.push((prefix.clone(), iri.clone()));
        }
        Ok(())
    }

    /// Visits the objects of a list; a missing list and null are empty.
    fn each(
        &mut self,
        of: &Object,
        key: &str,
        mut visit: impl FnMut(&mut Self, &Object) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (at, it) in self.list(of, key)?.iter().enumerate() {
            self.path.push(format!("{key}[{at}]"));
            self.session.count_statement(&Place::new(self.base, 0))?;
            let Value::Object(it) = it else { return Err(self.fault("is no object")) };
            visit(self, it)?;
            self.path.pop();
        }
        Ok(())
    }

    fn list<'v>(&self, of: &'v Object, key: &str) -> Result<&'v [Value], Error> {
        match of.get(key) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(other) => Err(self.fault(format!("{key} is {}; expected a list", kind_of(other)))),
        }
    }

    fn texts<'v>(&self, of: &'v Object, key: &str) -> Result<Vec<&'v str>, Error> {
        let list = self.list(of, key)?;
        list.iter()
            .map(|it| {
                it.as_str()
                    .ok_or_else(|| self.fault(format!("{key} holds {}; expected strings", kind_of(it))))
            })
            .collect()
    }

    fn text<'v>(&self, of: &'v Object, key: &str) -> Result<Option<&'v str>, Error> {
        match of.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(it)) => Ok(Some(it)),
            Some(other) => Err(self.fault(format!("{key} is {}; expected a string", kind_of(other)))),
        }
    }

    fn required<'v>(&self, of: &'v Object, key: &str) -> Result<&'v str, Error> {
        self.text(of, key)?.ok_or_else(|| self.fault(format!("{key} is missing")))
    }

    /// Reads an IRI, or `[prefix:local]` in version 1.1.
    fn locator(&self, text: &str) -> Result<String, Error> {
        let Some(inner) = text.strip_prefix('[').filter(|_| self.is_1_1) else {
            return Ok(iri::locator(self.base, text));
        };
        let (prefix, local) = inner
            .strip_suffix(']')
            .and_then(|it| it.split_once(':'))
            .ok_or_else(|| self.fault(format!("{text:?} is no [prefix:local]")))?;
        let bound = self.prefixes.iter().find(|it| it.0 == prefix).map(|it| it.1.as_str());
        let bound = match prefix {
            "xsd" => Some(datatype::BASE),
            _ => bound,
        };
        let bound =
            bound.ok_or_else(|| self.fault(format!("the prefix {prefix:?} is not declared in prefixes")))?;
        Ok(iri::locator(self.base, &format!("{bound}{local}")))
    }

    fn reference(&mut self, text: &str) -> Result<TopicId, Error> {
        let (kind, iri) = match text.get(..3) {
            Some("si:") => (SubjectIdentifier, &text[3..]),
            Some("sl:") => (SubjectLocator, &text[3..]),
            Some("ii:") => (ItemIdentifier, &text[3..]),
            _ => {
                return Err(
                    self.fault(format!("the reference {text:?} begins with none of si:, sl: and ii:"))
                );
            }
        };
        let iri = self.locator(iri)?;
        Ok(self.session.builder.topic(kind, &iri))
    }

    fn required_reference(&mut self, of: &Object, key: &str) -> Result<TopicId, Error> {
        let text = self.required(of, key)?;
        self.reference(text)
    }

    fn references(&mut self, of: &Object, key: &str) -> Result<Vec<TopicId>, Error> {
        let texts = self.texts(of, key)?;
        texts.into_iter().map(|it| self.reference(it)).collect()
    }

    fn item(&mut self, of: &Object) -> Result<Item, Error> {
        let reifier = match self.text(of, "reifier")? {
            Some(text) => Some(self.reference(text)?),
            None => None,
        };
        let identifiers = self.texts(of, "item_identifiers")?;
        let item_identifiers =
            identifiers.into_iter().map(|it| self.locator(it)).collect::<Result<_, _>>()?;
        Ok(Item { reifier, item_identifiers })
    }

    fn map(&mut self, it: &Object) -> Result<(), Error> {
        let item = self.item(it)?;
        for iri in item.item_identifiers {
            self.session.builder.identify_map(iri);
        }
        if let Some(reifier) = item.reifier.filter(|_| self.session.is_outermost()) {
            self.session.builder.reify_map(reifier);
        }
        self.each(it, "topics", Self::topic)?;
        self.each(it, "associations", Self::association)
    }

    fn topic(&mut self, it: &Object) -> Result<(), Error> {
        let topic = self.session.builder.add_topic();
        let mut has_identity = false;
        for (key, kind) in [
            ("item_identifiers", ItemIdentifier),
            ("subject_identifiers", SubjectIdentifier),
            ("subject_locators", SubjectLocator),
        ] {
            for text in self.texts(it, key)? {
                self.identify(topic, kind, text)?;
                has_identity = true;
            }
        }
        if !has_identity {
            return Err(self.fault(
                "the topic has none of item_identifiers, subject_identifiers and subject_locators; it needs one",
            ));
        }
        self.each(it, "names", |reader, it| {
            let name = reader.name(it)?;
            reader.session.builder.add_name(topic, name);
            Ok(())
        })?;
        self.each(it, "occurrences", |reader, it| {
            let occurrence = reader.occurrence(it)?;
            reader.session.builder.add_occurrence(topic, occurrence);
            Ok(())
        })?;
        let kinds = self.references(it, "instance_of")?;
        if !kinds.is_empty() && !self.is_1_1 {
            let place = Place::new(self.base, 0);
            self.session.complain(&place, "instance_of is of version 1.1, not of 1.0")?;
        }
        for kind in kinds {
            self.session.builder.add_instance(topic, kind);
        }
        Ok(())
    }

    fn identify(&mut self, topic: TopicId, kind: IdentityKind, text: &str) -> Result<(), Error> {
        let iri = self.locator(text)?;
        self.session.builder.identify(topic, kind, &iri);
        Ok(())
    }

    /// Returns the topic of a separate name or occurrence: its references' topics, merged.
    fn parent(&mut self, it: &Object) -> Result<TopicId, Error> {
        let parents = self.references(it, "parent")?;
        let Some((&first, others)) = parents.split_first() else {
            return Err(self.fault("parent is missing: the references to the topic that this belongs to"));
        };
        for &other in others {
            self.session.builder.merge(first, other);
        }
        Ok(first)
    }

    fn name(&mut self, it: &Object) -> Result<Name, Error> {
        let value = self.required(it, "value")?.to_owned();
        let kind = match self.text(it, "type")? {
            Some(text) => self.reference(text)?,
            None => self.session.builder.subject(model::TOPIC_NAME),
        };
        let scope = self.references(it, "scope")?;
        let item = self.item(it)?;
        let mut variants = Vec::new();
        self.each(it, "variants", |reader, it| {
            variants.push(reader.variant(it, &scope)?);
            Ok(())
        })?;
        Ok(Name { value, kind, scope, variants, item })
    }

    fn variant(&mut self, it: &Object, of_name: &[TopicId]) -> Result<Variant, Error> {
        let (value, datatype) = self.value(it)?;
        let mut scope = self.references(it, "scope")?;
        if !self.session.is_wider(&scope, of_name) {
            let error = self.fault("the variant has no theme of its own, beside those of its name");
            self.session.complain(&error.place, error.reason)?;
        }
        scope.extend_from_slice(of_name);
        let item = self.item(it)?;
        Ok(Variant { value, datatype, scope, item })
    }

    fn value(&mut self, it: &Object) -> Result<(String, String), Error> {
        let value = self.required(it, "value")?;
        let datatype = match self.text(it, "datatype")? {
            Some(text) => self.locator(text)?,
            None => datatype::STRING.to_owned(),
        };
        let value = match datatype.as_str() {
            datatype::ANY_URI => self.locator(value)?,
            _ => value.to_owned(),
        };
        Ok((value, datatype))
    }

    fn occurrence(&mut self, it: &Object) -> Result<Occurrence, Error> {
        let (value, datatype) = self.value(it)?;
        let kind = self.required_reference(it, "type")?;
        let scope = self.references(it, "scope")?;
        let item = self.item(it)?;
        Ok(Occurrence { value, datatype, kind, scope, item })
    }

    fn association(&mut self, it: &Object) -> Result<(), Error> {
        let kind = self.required_reference(it, "type")?;
        let scope = self.references(it, "scope")?;
        let item = self.item(it)?;
        let mut roles = Vec::new();
        self.each(it, "roles", |reader, it| {
            let player = reader.required_reference(it, "player")?;
            let kind = reader.required_reference(it, "type")?;
            let item = reader.item(it)?;
            roles.push(Role { kind, player, item });
            Ok(())
        })?;
        if roles.is_empty() {
            return Err(self.fault("the association has no roles"));
        }
        self.session.builder.add_association(Association { kind, scope, roles, item });
        Ok(())
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
