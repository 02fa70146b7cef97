//! Reads LTM 1.3, the linear notation. Without a declaration its text is ISO 8859-1.

use crate::builder::IdentityKind::{ItemIdentifier, SubjectIdentifier, SubjectLocator};
use crate::error::{Error, Place};
use crate::format::Format;
use crate::iri::{self, datatype, model};
use crate::ltm_tokens::{Token, tokens};
use crate::model::{Association, Item, Name, Occurrence, Role, TopicId, Variant};
use crate::session::Session;
use crate::text;
use crate::words::Words;

const SORT: &str = "http://www.topicmaps.org/xtm/1.0/core.xtm#sort";
const DISPLAY: &str = "http://www.topicmaps.org/xtm/1.0/core.xtm#display";

struct Reader<'s, 'l> {
    session: &'s mut Session<'l>,
    /// The document, then those that include it, from the inside out: a topic has an identifier in each.
    documents: Vec<String>,
    /// `#BASEURI`, or the document.
    base: String,
    has_base: bool,
    prefixes: Vec<(String, crate::builder::IdentityKind, String)>,
    words: Words<Token>,
}

pub(crate) fn read(bytes: &[u8], base: &str, session: &mut Session<'_>) -> Result<(), Error> {
    read_document(bytes, vec![iri::decode(base)], session)
}

fn read_document(bytes: &[u8], documents: Vec<String>, session: &mut Session<'_>) -> Result<(), Error> {
    let document = documents[0].clone();
    let declared = declared_encoding(bytes);
    // ISO 8859-1, under the name that the web uses for its superset.
    let fallback = encoding_rs::WINDOWS_1252;
    let text =
        text::decode(bytes, declared.as_deref(), fallback, session.is_strict, &Place::new(&document, 1))?;
    let words = Words::new(&document, tokens(&text, &document, session.is_strict)?);
    let base = document.clone();
    let mut reader = Reader { session, documents, base, has_base: false, prefixes: Vec::new(), words };
    reader.document()
}

/// Reads `@"utf-8"` at the beginning.
fn declared_encoding(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii_start();
    let rest = bytes.strip_prefix(b"@")?.trim_ascii_start().strip_prefix(b"\"")?;
    let end = rest.iter().take(64).position(|&it| it == b'"')?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

impl Reader<'_, '_> {
    fn string(&mut self) -> Result<String, Error> {
        match self.words.peek() {
            Some(Token::Text(text)) => {
                let text = text.clone();
                self.words.at += 1;
                Ok(text)
            }
            _ => Err(self.words.unexpected("a string")),
        }
    }

    /// Reads a string, made absolute.
    fn address(&mut self, absolute: fn(&str, &str) -> String) -> Result<String, Error> {
        let text = self.string()?;
        Ok(absolute(&self.base, &text))
    }

    /// Reads a name without a prefix.
    fn name(&mut self) -> Result<String, Error> {
        match self.words.peek() {
            Some(Token::Name(name)) => {
                let name = name.clone();
                self.words.at += 1;
                Ok(name)
            }
            _ => Err(self.words.unexpected("a name without a prefix")),
        }
    }

    fn document(&mut self) -> Result<(), Error> {
        if self.words.takes('@') {
            self.string()?;
        }
        let mut is_first = true;
        while self.words.peek().is_some() {
            let place = self.words.place();
            self.session.count_statement(&place)?;
            match self.words.peek() {
                Some(Token::Directive(name)) => {
                    let name = name.clone();
                    self.words.at += 1;
                    self.directive(&name, is_first)?;
                }
                Some(Token::Mark('[')) => {
                    self.topic()?;
                }
                Some(Token::Mark('{')) => self.occurrence()?,
                Some(Token::Name(_) | Token::Prefixed(..)) => self.association()?,
                _ => {
                    return Err(self
                        .words
                        .unexpected("a topic, an association, an occurrence or a directive"));
                }
            }
            is_first = false;
        }
        Ok(())
    }

    fn directive(&mut self, name: &str, is_first: bool) -> Result<(), Error> {
        let place = self.words.place_before();
        match name {
            "VERSION" => {
                let version = self.string()?;
                if !is_first {
                    self.session.complain(&place, "#VERSION is not the first directive")?;
                }
                if !matches!(version.as_str(), "1.0" | "1.1" | "1.2" | "1.3") {
                    self.session.complain(&place, format!("the version is {version:?}; expected 1.3"))?;
                }
            }
            "TOPICMAP" => {
                let is_merged = !self.session.is_outermost();
                if self.words.takes('~') {
                    let name = self.name()?;
                    let (topic, identifier) = self.reified(&name);
                    self.session.builder.identify_map(identifier);
                    if !is_merged {
                        self.session.builder.reify_map(topic);
                    }
                } else {
                    let name = self.name()?;
                    let identifier = format!("{}#{name}", iri::document(&self.documents[0]));
                    self.session.builder.identify_map(identifier);
                }
            }
            "BASEURI" => {
                let base = self.string()?;
                if self.has_base {
                    return Err(place.fault("#BASEURI stands here for the second time"));
                }
                self.base = iri::resolve(&self.base, &base);
                self.has_base = true;
            }
            "PREFIX" => {
                let prefix = self.name()?;
                let kind = if self.words.takes('@') {
                    SubjectIdentifier
                } else if self.words.takes('%') {
                    SubjectLocator
                } else {
                    return Err(self.words.unexpected("@ or %"));
                };
                let iri = self.address(iri::resolve)?;
                if self.prefixes.iter().any(|it| it.0 == prefix) {
                    return Err(place.fault(format!("the prefix {prefix} is declared for the second time")));
                }
                self.prefixes.push((prefix, kind, iri));
            }
            "MERGEMAP" => {
                let address = self.address(iri::locator)?;
                let syntax = match self.words.peek() {
                    Some(Token::Text(_)) => Some(self.string()?.to_lowercase()),
                    _ => None,
                };
                let format = match &syntax {
                    None => Format::Ltm,
                    Some(name) => Format::named(name)
                        .ok_or_else(|| place.fault(format!("the syntax {name:?} is not known")))?,
                };
                self.session.merge_as(format, iri::document(&address), &[], &place)?;
            }
            "INCLUDE" => {
                let address = self.address(iri::locator)?;
                if address == self.documents[0] || self.documents.contains(&address) {
                    return Ok(());
                }
                if let Some(bytes) = self.session.include(&address, &place)? {
                    let mut documents = vec![address];
                    documents.extend_from_slice(&self.documents);
                    read_document(&bytes, documents, self.session)?;
                    self.session.included();
                }
            }
            other => return Err(place.fault(format!("the directive #{other} is not known"))),
        }
        Ok(())
    }

    /// Returns the topic with a name: its identifier in this document and in those that include it.
    fn named(&mut self, name: &str) -> TopicId {
        let documents = self.documents.clone();
        let mut identifiers = documents.iter().map(|it| format!("{}#{name}", iri::document(it)));
        let first = identifiers.next().unwrap_or_default();
        let topic = self.session.builder.topic(ItemIdentifier, &first);
        for other in identifiers {
            self.session.builder.identify(topic, ItemIdentifier, &other);
        }
        topic
    }

    fn is_reference(&self) -> bool {
        matches!(self.words.peek(), Some(Token::Name(_) | Token::Prefixed(..)))
    }

    fn reference(&mut self) -> Result<TopicId, Error> {
        match self.words.peek().cloned() {
            Some(Token::Name(name)) => {
                self.words.at += 1;
                Ok(self.named(&name))
            }
            Some(Token::Prefixed(prefix, local)) => {
                let bound = self.prefixes.iter().find(|it| it.0 == prefix);
                let (_, kind, iri) = bound.ok_or_else(|| {
                    self.words.fault(format!("the prefix {prefix} is not declared by #PREFIX"))
                })?;
                let (kind, iri) = (*kind, iri::locator(&self.base, &format!("{iri}{local}")));
                self.words.at += 1;
                Ok(self.session.builder.topic(kind, &iri))
            }
            _ => Err(self.words.unexpected("the name of a topic")),
        }
    }

    /// Returns the reifying topic, and the identifier that both then have.
    fn reified(&mut self, name: &str) -> (TopicId, String) {
        let topic = self.named(name);
        let identifier = iri::locator(&self.base, &format!("#--reified--{name}"));
        self.session.builder.identify(topic, SubjectIdentifier, &identifier);
        (topic, identifier)
    }

    fn item(&mut self) -> Result<Item, Error> {
        if !self.words.takes('~') {
            return Ok(Item::default());
        }
        let name = self.name()?;
        let (topic, identifier) = self.reified(&name);
        Ok(Item { reifier: Some(topic), item_identifiers: vec![identifier] })
    }

    /// Reads `/ theme theme`; outside of topics a name before a parenthesis is the next association.
    fn scope(&mut self, is_within_topic: bool) -> Result<Vec<TopicId>, Error> {
        let mut out = Vec::new();
        if !self.words.takes('/') {
            return Ok(out);
        }
        out.push(self.reference()?);
        while self.is_reference() {
            let is_next = self.words.is_mark(1, '(');
            if is_next && !is_within_topic {
                break;
            }
            out.push(self.reference()?);
        }
        Ok(out)
    }

    fn topic(&mut self) -> Result<TopicId, Error> {
        self.words.expect('[')?;
        let topic = self.reference()?;
        if self.words.takes(':') {
            loop {
                let kind = self.reference()?;
                self.session.builder.add_instance(topic, kind);
                if !self.is_reference() {
                    break;
                }
            }
        }
        while self.words.takes('=') {
            self.names(topic)?;
        }
        let mut n_locators = 0;
        loop {
            if self.words.takes('%') {
                let place = self.words.place();
                n_locators += 1;
                if n_locators > 1 {
                    self.session.complain(&place, "a topic has more than one subject (%)")?;
                }
                let iri = self.address(iri::locator)?;
                self.session.builder.identify(topic, SubjectLocator, &iri);
            } else if self.words.takes('@') {
                let iri = self.address(iri::locator)?;
                self.session.builder.identify(topic, SubjectIdentifier, &iri);
            } else {
                break;
            }
        }
        self.words.expect(']')?;
        Ok(topic)
    }

    /// Reads `"name"; "sort"; "display" / scope ~reifier ("variant" / scope ~reifier)`.
    fn names(&mut self, topic: TopicId) -> Result<(), Error> {
        let mut scope = self.scope(true)?;
        let value = self.string()?;
        let mut forms = Vec::new();
        for theme in [SORT, DISPLAY] {
            if !self.words.takes(';') {
                break;
            }
            if let Some(Token::Text(text)) = self.words.peek() {
                forms.push((text.clone(), theme));
                self.words.at += 1;
            }
        }
        scope.extend(self.scope(true)?);
        let item = self.item()?;
        let kind = self.session.builder.subject(model::TOPIC_NAME);
        let mut name = Name { value, kind, scope, variants: Vec::new(), item };
        for (value, theme) in forms {
            let mut scope = vec![self.session.builder.subject(theme)];
            scope.extend_from_slice(&name.scope);
            let datatype = datatype::STRING.to_owned();
            name.variants.push(Variant { value, datatype, scope, item: Item::default() });
        }
        while self.words.takes('(') {
            let place = self.words.place();
            let value = self.string()?;
            let mut scope = self.scope(true)?;
            if !self.session.is_wider(&scope, &name.scope) {
                self.session
                    .complain(&place, "a variant has no theme of its own, beside those of its name")?;
            }
            scope.extend_from_slice(&name.scope);
            let item = self.item()?;
            self.words.expect(')')?;
            name.variants.push(Variant { value, datatype: datatype::STRING.to_owned(), scope, item });
        }
        self.session.builder.add_name(topic, name);
        Ok(())
    }

    fn occurrence(&mut self) -> Result<(), Error> {
        self.words.expect('{')?;
        let topic = self.reference()?;
        self.words.expect(',')?;
        let kind = self.reference()?;
        self.words.expect(',')?;
        let (value, datatype) = match self.words.next() {
            Some(Token::Text(address)) => (iri::locator(&self.base, &address), datatype::ANY_URI),
            Some(Token::Data(data)) => (data, datatype::STRING),
            _ => {
                self.words.at -= 1;
                return Err(self.words.unexpected("an address in quotes or a text in [[ ]]"));
            }
        };
        self.words.expect('}')?;
        let scope = self.scope(false)?;
        let item = self.item()?;
        let occurrence = Occurrence { value, datatype: datatype.to_owned(), kind, scope, item };
        self.session.builder.add_occurrence(topic, occurrence);
        Ok(())
    }

    fn association(&mut self) -> Result<(), Error> {
        let kind = self.reference()?;
        self.words.expect('(')?;
        let mut roles = Vec::new();
        loop {
            let player =
                if self.words.peek() == Some(&Token::Mark('[')) { self.topic()? } else { self.reference()? };
            let kind = if self.words.takes(':') {
                self.reference()?
            } else {
                self.session.builder.subject(model::SUBJECT)
            };
            let item = self.item()?;
            roles.push(Role { kind, player, item });
            if !self.words.takes(',') {
                break;
            }
        }
        self.words.expect(')')?;
        let scope = self.scope(false)?;
        let item = self.item()?;
        self.session.builder.add_association(Association { kind, scope, roles, item });
        Ok(())
    }
}
