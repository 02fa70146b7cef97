//! Runs the parsed document: statements become topics, names, occurrences and associations, templates are
//! expanded.

use std::collections::HashMap;
use std::rc::Rc;

use super::parse::parse;
use super::syntax::{Assertion, Block, Document, Statement, Tail, Template, Term};
use crate::builder::IdentityKind::{ItemIdentifier, SubjectIdentifier, SubjectLocator};
use crate::error::{Error, Place};
use crate::format::Format;
use crate::iri::{self, datatype, model};
use crate::model::{Association, Item, Name, Occurrence, Role, TopicId, Variant};
use crate::session::Session;
use crate::text;

pub(crate) fn read(bytes: &[u8], base: &str, session: &mut Session<'_>) -> Result<(), Error> {
    let is_outermost = session.is_outermost();
    let mut runner =
        Runner { session, templates: HashMap::new(), included: Vec::new(), n_wildcards: 0, depth: 0 };
    runner.document(bytes, vec![iri::decode(base)], is_outermost)
}

/// What a variable stands for.
#[derive(Debug, Clone)]
enum Value {
    Topic(TopicId),
    /// A subject identifier or a value of type anyURI.
    Iri(String),
    SubjectLocator(String),
    ItemIdentifier(String),
    Literal(String, String),
}

/// The scope of statements: the document they are in, what their variables and wildcards mean.
struct Scope {
    /// The document, then those that include it, from the inside out.
    documents: Rc<Vec<String>>,
    variables: HashMap<String, Value>,
    wildcards: HashMap<String, TopicId>,
}

/// A template and the documents that its identifiers are resolved in.
type Defined = (Rc<Template>, Rc<Vec<String>>);

struct Runner<'s, 'l> {
    session: &'s mut Session<'l>,
    /// By name and number of parameters.
    templates: HashMap<(String, usize), Defined>,
    included: Vec<String>,
    n_wildcards: u64,
    depth: usize,
}

impl Runner<'_, '_> {
    fn document(&mut self, bytes: &[u8], documents: Vec<String>, may_reify: bool) -> Result<(), Error> {
        let first = Place::new(&documents[0], 1);
        let declared = declared_encoding(bytes);
        let text =
            text::decode(bytes, declared.as_deref(), encoding_rs::UTF_8, self.session.is_strict, &first)?;
        let Document { statements, templates } = parse(&text, &documents[0], self.session.limits.depth_max)?;
        let documents = Rc::new(documents);
        for template in templates {
            let place = Place::new(&documents[0], template.line);
            let key = (template.name.clone(), template.parameters.len());
            let name = key.0.clone();
            if self.templates.insert(key, (Rc::new(template), Rc::clone(&documents))).is_some() {
                return Err(place.fault(format!(
                    "the template {name} is defined for the second time with as many parameters"
                )));
            }
        }
        let mut scope = Scope { documents, variables: HashMap::new(), wildcards: HashMap::new() };
        for (statement, line) in &statements {
            let place = Place::new(&scope.documents[0], *line);
            match statement {
                Statement::Reifier(term) => {
                    let topic = self.topic(term, &mut scope, &place)?;
                    if may_reify {
                        self.session.builder.reify_map(topic);
                    }
                }
                Statement::Include(address) => {
                    if self.included.contains(address) || scope.documents.contains(address) {
                        continue;
                    }
                    self.included.push(address.clone());
                    if let Some(bytes) = self.session.include(address, &place)? {
                        let mut documents = vec![address.clone()];
                        documents.extend_from_slice(&scope.documents);
                        self.document(&bytes, documents, false)?;
                        self.session.included();
                    }
                }
                Statement::MergeMap(address, syntax) => {
                    let name =
                        syntax.as_deref().map_or("ctm", |it| it.rsplit(['/', '#']).next().unwrap_or(it));
                    let format = Format::named(name).ok_or_else(|| {
                        place.fault(format!(
                            "the syntax {} is not known",
                            syntax.as_deref().unwrap_or_default()
                        ))
                    })?;
                    self.session.merge_as(format, address, &[], &place)?;
                }
                statement => self.statement(statement, &mut scope, &place)?,
            }
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement, scope: &mut Scope, place: &Place) -> Result<(), Error> {
        self.session.count_statement(place)?;
        match statement {
            Statement::Topic(block) => {
                self.block(block, scope, place)?;
            }
            Statement::Association { kind, roles, tail } => {
                let kind = self.topic(kind, scope, place)?;
                let mut made = Vec::with_capacity(roles.len());
                for role in roles {
                    let kind = self.topic(&role.kind, scope, place)?;
                    let player = self.topic(&role.player, scope, place)?;
                    let item = self.item(role.reifier.as_ref(), scope, place)?;
                    made.push(Role { kind, player, item });
                }
                let (themes, item) = self.tail(tail, scope, place)?;
                let association = Association { kind, scope: themes, roles: made, item };
                self.session.builder.add_association(association);
            }
            Statement::Invocation { name, arguments } => {
                let arguments = self.arguments(arguments, scope, place)?;
                self.invoke(name, arguments, place)?;
            }
            Statement::Reifier(_) | Statement::Include(_) | Statement::MergeMap(..) => {
                return Err(place.fault("this may not stand in a template"));
            }
        }
        Ok(())
    }

    fn arguments(&mut self, terms: &[Term], scope: &mut Scope, place: &Place) -> Result<Vec<Value>, Error> {
        terms.iter().map(|it| self.value(it, scope, place)).collect()
    }

    fn invoke(&mut self, name: &str, arguments: Vec<Value>, place: &Place) -> Result<(), Error> {
        let key = (name.to_owned(), arguments.len());
        let Some((template, documents)) = self.templates.get(&key).cloned() else {
            return Err(
                place.fault(format!("no template {name} with {} parameters is defined", arguments.len()))
            );
        };
        self.depth += 1;
        if self.depth > self.session.limits.depth_max {
            return Err(place.fault(format!(
                "templates invoke each other more than {} deep; does {name} invoke itself?",
                self.session.limits.depth_max
            )));
        }
        let variables = template.parameters.iter().cloned().zip(arguments).collect();
        let mut scope = Scope { documents, variables, wildcards: HashMap::new() };
        for (statement, line) in &template.body {
            let place = Place::new(&scope.documents[0], *line);
            self.statement(statement, &mut scope, &place)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn block(&mut self, block: &Block, scope: &mut Scope, place: &Place) -> Result<TopicId, Error> {
        let topic = match &block.subject {
            Some(term) => self.topic(term, scope, place)?,
            None => self.anonymous(None, scope),
        };
        for (assertion, line) in &block.assertions {
            let place = Place::new(&place.document, *line);
            self.session.count_statement(&place)?;
            self.assertion(topic, assertion, scope, &place)?;
        }
        Ok(topic)
    }

    fn assertion(
        &mut self,
        topic: TopicId,
        assertion: &Assertion,
        scope: &mut Scope,
        place: &Place,
    ) -> Result<(), Error> {
        match assertion {
            Assertion::Identity(term) => match self.value(term, scope, place)? {
                Value::SubjectLocator(iri) if !matches!(term, Term::Variable(_)) => {
                    self.session.builder.identify(topic, SubjectLocator, &iri);
                }
                Value::ItemIdentifier(iri) if !matches!(term, Term::Variable(_)) => {
                    self.session.builder.identify(topic, ItemIdentifier, &iri);
                }
                Value::Iri(iri) => self.session.builder.identify(topic, SubjectIdentifier, &iri),
                _ => {
                    return Err(
                        place.fault("the variable stands for no IRI, as a subject identifier must be")
                    );
                }
            },
            Assertion::IsA(term) => {
                let kind = self.topic(term, scope, place)?;
                self.session.builder.add_instance(topic, kind);
            }
            Assertion::KindOf(term) => {
                let kind = self.topic(term, scope, place)?;
                self.session.builder.add_subtype(topic, kind);
            }
            Assertion::Name { kind, value, tail, variants } => {
                let kind = match kind {
                    Some(term) => self.topic(term, scope, place)?,
                    None => self.session.builder.subject(model::TOPIC_NAME),
                };
                let Value::Literal(value, _) = self.value(value, scope, place)? else {
                    return Err(place.fault("a name is no text"));
                };
                let (themes, item) = self.tail(tail, scope, place)?;
                let mut name = Name { value, kind, scope: themes, variants: Vec::new(), item };
                for (value, tail, line) in variants {
                    let place = Place::new(&place.document, *line);
                    let (value, datatype) = self.literal(value, scope, &place)?;
                    let (mut themes, item) = self.tail(tail, scope, &place)?;
                    if !self.session.is_wider(&themes, &name.scope) {
                        self.session.complain(
                            &place,
                            "a variant has no theme of its own, beside those of its name",
                        )?;
                    }
                    themes.extend_from_slice(&name.scope);
                    name.variants.push(Variant { value, datatype, scope: themes, item });
                }
                self.session.builder.add_name(topic, name);
            }
            Assertion::Occurrence { kind, value, tail } => {
                let kind = self.topic(kind, scope, place)?;
                let (value, datatype) = self.literal(value, scope, place)?;
                let (themes, item) = self.tail(tail, scope, place)?;
                let occurrence = Occurrence { value, datatype, kind, scope: themes, item };
                self.session.builder.add_occurrence(topic, occurrence);
            }
            Assertion::Invocation { name, arguments } => {
                let mut all = vec![Value::Topic(topic)];
                all.extend(self.arguments(arguments, scope, place)?);
                self.invoke(name, all, place)?;
            }
        }
        Ok(())
    }

    fn tail(&mut self, tail: &Tail, scope: &mut Scope, place: &Place) -> Result<(Vec<TopicId>, Item), Error> {
        let themes = tail.scope.iter().map(|it| self.topic(it, scope, place)).collect::<Result<_, _>>()?;
        let item = self.item(tail.reifier.as_ref(), scope, place)?;
        Ok((themes, item))
    }

    fn item(&mut self, reifier: Option<&Term>, scope: &mut Scope, place: &Place) -> Result<Item, Error> {
        let reifier = match reifier {
            Some(term) => Some(self.topic(term, scope, place)?),
            None => None,
        };
        Ok(Item { reifier, item_identifiers: Vec::new() })
    }

    /// Returns the text and datatype of a value.
    fn literal(&mut self, term: &Term, scope: &mut Scope, place: &Place) -> Result<(String, String), Error> {
        match self.value(term, scope, place)? {
            Value::Literal(text, kind) => Ok((text, kind)),
            Value::Iri(iri) => Ok((iri, datatype::ANY_URI.to_owned())),
            _ => Err(place.fault("a topic stands where a value is expected")),
        }
    }

    fn topic(&mut self, term: &Term, scope: &mut Scope, place: &Place) -> Result<TopicId, Error> {
        match self.value(term, scope, place)? {
            Value::Topic(topic) => Ok(topic),
            Value::Iri(iri) => Ok(self.session.builder.topic(SubjectIdentifier, &iri)),
            Value::SubjectLocator(iri) => Ok(self.session.builder.topic(SubjectLocator, &iri)),
            Value::ItemIdentifier(iri) => Ok(self.session.builder.topic(ItemIdentifier, &iri)),
            Value::Literal(text, _) => {
                Err(place.fault(format!("{text:?} is a value; a topic is expected here")))
            }
        }
    }

    fn value(&mut self, term: &Term, scope: &mut Scope, place: &Place) -> Result<Value, Error> {
        let iri_of = |value: Value| match value {
            Value::Iri(iri) => Ok(iri),
            _ => Err(place.fault("= and ^ are followed by an IRI; the variable stands for none")),
        };
        Ok(match term {
            Term::Identifier(name) => Value::Topic(self.named(name, scope)),
            Term::Iri(iri) => Value::Iri(iri.clone()),
            Term::SubjectLocator(inner) => Value::SubjectLocator(iri_of(self.value(inner, scope, place)?)?),
            Term::ItemIdentifier(inner) => Value::ItemIdentifier(iri_of(self.value(inner, scope, place)?)?),
            Term::Variable(name) => scope
                .variables
                .get(name)
                .cloned()
                .ok_or_else(|| place.fault(format!("the variable ${name} is not bound here")))?,
            Term::Wildcard(None) => Value::Topic(self.anonymous(None, scope)),
            Term::Wildcard(Some(name)) => match scope.wildcards.get(name) {
                Some(&topic) => Value::Topic(topic),
                None => {
                    let topic = self.anonymous(Some(name), scope);
                    scope.wildcards.insert(name.clone(), topic);
                    Value::Topic(topic)
                }
            },
            Term::Embedded(block) => Value::Topic(self.block(block, scope, place)?),
            Term::Literal(text, kind) => Value::Literal(text.clone(), kind.clone()),
        })
    }

    /// Returns the topic with a name: its identifier in its document and in those that include it.
    fn named(&mut self, name: &str, scope: &Scope) -> TopicId {
        let mut topic = None;
        for document in scope.documents.iter() {
            let iri = format!("{}#{name}", iri::document(document));
            match topic {
                None => topic = Some(self.session.builder.topic(ItemIdentifier, &iri)),
                Some(topic) => self.session.builder.identify(topic, ItemIdentifier, &iri),
            }
        }
        topic.unwrap_or_else(|| self.session.builder.add_topic())
    }

    /// Creates a topic that nothing else can refer to: `$__1`, or `$__1.name`, in the outermost document.
    fn anonymous(&mut self, name: Option<&str>, scope: &Scope) -> TopicId {
        self.n_wildcards += 1;
        let document = scope.documents.last().map_or("", String::as_str);
        let mut iri = format!("{}#$__{}", iri::document(document), self.n_wildcards);
        if let Some(name) = name {
            iri.push('.');
            iri.push_str(name);
        }
        self.session.builder.topic(ItemIdentifier, &iri)
    }
}

/// Reads `%encoding "utf-8"` at the beginning.
fn declared_encoding(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii_start();
    let rest = bytes.strip_prefix(b"%encoding")?.trim_ascii_start().strip_prefix(b"\"")?;
    let end = rest.iter().take(64).position(|&it| it == b'"')?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}
