//! Parses CTM text into statements and templates.

use super::syntax::{Assertion, Block, Document, RoleTerm, Statement, Tail, Template, Term};
use super::tokens::{Token, tokens};
use crate::error::Error;
use crate::iri::{self, datatype};
use crate::words::Words;

struct Parser<'t> {
    document: &'t str,
    prefixes: Vec<(String, String)>,
    words: Words<Token>,
    depth: usize,
    depth_max: usize,
}

pub(super) fn parse(text: &str, document: &str, depth_max: usize) -> Result<Document, Error> {
    let words = Words::new(document, tokens(text, document)?);
    let mut parser = Parser { document, prefixes: Vec::new(), words, depth: 0, depth_max };
    parser.document()
}

impl Parser<'_> {
    fn line(&self) -> u64 {
        self.words.place().line
    }

    /// Returns whether an identifier of this name comes next.
    fn is_word(&self, word: &str) -> bool {
        matches!(self.words.peek(), Some(Token::Identifier(it)) if it == word)
    }

    fn document(&mut self) -> Result<Document, Error> {
        let mut out = Document::default();
        let mut n_seen = 0;
        while let Some(token) = self.words.peek() {
            let line = self.line();
            match token {
                Token::Directive(name) => {
                    let name = name.clone();
                    self.words.at += 1;
                    if let Some(statement) = self.directive(&name, n_seen)? {
                        out.statements.push((statement, line));
                    }
                }
                Token::Mark('~') => {
                    let is_first = out
                        .statements
                        .iter()
                        .all(|it| matches!(it.0, Statement::Include(_) | Statement::MergeMap(..)));
                    if !is_first || !out.templates.is_empty() {
                        return Err(self.words.fault("the reifier of the map stands before everything else"));
                    }
                    self.words.at += 1;
                    let reifier = self.topic_term()?;
                    out.statements.push((Statement::Reifier(reifier), line));
                }
                Token::Identifier(it) if it == "def" => {
                    let template = self.template()?;
                    out.templates.push(template);
                }
                _ => {
                    let statement = self.statement()?;
                    out.statements.push((statement, line));
                }
            }
            n_seen += 1;
        }
        Ok(out)
    }

    fn directive(&mut self, name: &str, n_seen: usize) -> Result<Option<Statement>, Error> {
        match name {
            "encoding" if n_seen == 0 => {
                self.text("the name of an encoding in quotes")?;
                Ok(None)
            }
            "version" if n_seen < 2 => {
                let is_1_0 = matches!(self.words.peek(), Some(Token::Value(it, _)) if it == "1.0");
                if !is_1_0 {
                    return Err(self.words.unexpected("the version 1.0"));
                }
                self.words.at += 1;
                Ok(None)
            }
            "prefix" => {
                let prefix = match self.words.peek() {
                    Some(Token::Identifier(it)) => it.clone(),
                    _ => return Err(self.words.unexpected("a prefix")),
                };
                self.words.at += 1;
                let iri = self.iri()?;
                match self.prefixes.iter().find(|it| it.0 == prefix) {
                    Some(bound) if bound.1 != iri => {
                        return Err(self
                            .words
                            .fault(format!("the prefix {prefix} is bound to <{}> already", bound.1)));
                    }
                    Some(_) => {}
                    None => self.prefixes.push((prefix, iri)),
                }
                Ok(None)
            }
            "include" => Ok(Some(Statement::Include(self.iri()?))),
            "mergemap" => {
                let address = self.iri()?;
                let syntax = match self.words.peek() {
                    Some(Token::Iri(_) | Token::Prefixed(..)) => Some(self.iri()?),
                    _ => None,
                };
                Ok(Some(Statement::MergeMap(address, syntax)))
            }
            other => {
                self.words.at -= 1;
                Err(self.words.fault(format!("the directive %{other} is not known, or may not stand here")))
            }
        }
    }

    fn text(&mut self, expected: &str) -> Result<String, Error> {
        match self.words.peek() {
            Some(Token::Text(it)) => {
                let text = it.clone();
                self.words.at += 1;
                Ok(text)
            }
            _ => Err(self.words.unexpected(expected)),
        }
    }

    /// Reads an IRI or `prefix:local`, made absolute.
    fn iri(&mut self) -> Result<String, Error> {
        let iri = match self.words.peek() {
            Some(Token::Iri(it)) => iri::locator(self.document, it),
            Some(Token::Prefixed(prefix, local)) => {
                let bound = self.prefixes.iter().find(|it| it.0 == *prefix);
                let bound = bound.ok_or_else(|| {
                    self.words.fault(format!("the prefix {prefix} is not declared by %prefix"))
                })?;
                iri::locator(self.document, &format!("{}{local}", bound.1))
            }
            _ => return Err(self.words.unexpected("an IRI")),
        };
        self.words.at += 1;
        Ok(iri)
    }

    fn template(&mut self) -> Result<Template, Error> {
        let line = self.line();
        self.words.at += 1;
        let name = match self.words.peek() {
            Some(Token::Identifier(it)) => it.clone(),
            _ => return Err(self.words.unexpected("the name of a template")),
        };
        self.words.at += 1;
        self.words.expect('(')?;
        let mut parameters = Vec::new();
        while !self.words.takes(')') {
            if !parameters.is_empty() {
                self.words.expect(',')?;
            }
            match self.words.peek() {
                Some(Token::Variable(it)) if !parameters.contains(it) => parameters.push(it.clone()),
                _ => return Err(self.words.unexpected("a variable, each once")),
            }
            self.words.at += 1;
        }
        let mut body = Vec::new();
        while !self.is_word("end") {
            let line = self.line();
            body.push((self.statement()?, line));
        }
        self.words.at += 1;
        Ok(Template { name, parameters, body, line })
    }

    fn statement(&mut self) -> Result<Statement, Error> {
        if let (Some(Token::Identifier(name)), true) = (self.words.peek(), self.words.is_mark(1, '(')) {
            let name = name.clone();
            let start = self.words.at;
            self.words.at += 2;
            if self.words.takes(')') {
                return Ok(Statement::Invocation { name, arguments: Vec::new() });
            }
            // An association has role types, an invocation does not.
            self.argument()?;
            let is_association = self.words.is_mark(0, ':');
            self.words.at = start + 2;
            if !is_association {
                let arguments = self.arguments()?;
                return Ok(Statement::Invocation { name, arguments });
            }
            return self.association(Term::Identifier(name));
        }
        let subject = self.topic_term()?;
        if self.words.takes('(') {
            return self.association(subject);
        }
        if matches!(subject, Term::Embedded(_)) {
            return Err(self
                .words
                .unexpected("(, as an embedded topic may only stand where it is referred to"));
        }
        let mut block = Block { subject: Some(subject), assertions: Vec::new() };
        self.assertions(&mut block, '.')?;
        Ok(Statement::Topic(block))
    }

    /// Reads an association after the opening parenthesis.
    fn association(&mut self, kind: Term) -> Result<Statement, Error> {
        let mut roles = Vec::new();
        loop {
            let kind = self.topic_term()?;
            self.words.expect(':')?;
            let player = self.topic_term()?;
            let reifier = self.reifier()?;
            roles.push(RoleTerm { kind, player, reifier });
            if !self.words.takes(',') {
                break;
            }
        }
        self.words.expect(')')?;
        let tail = self.tail()?;
        Ok(Statement::Association { kind, roles, tail })
    }

    /// Reads arguments after the opening parenthesis, including the closing one.
    fn arguments(&mut self) -> Result<Vec<Term>, Error> {
        let mut out = Vec::new();
        while !self.words.takes(')') {
            if !out.is_empty() {
                self.words.expect(',')?;
            }
            out.push(self.argument()?);
        }
        Ok(out)
    }

    fn argument(&mut self) -> Result<Term, Error> {
        match self.words.peek() {
            Some(Token::Text(_) | Token::Value(..)) => self.value(),
            _ => self.topic_term(),
        }
    }

    /// Reads a literal, an IRI or a variable.
    fn value(&mut self) -> Result<Term, Error> {
        match self.words.peek() {
            Some(Token::Text(_)) => {
                let text = self.text("a value")?;
                if self.words.peek() != Some(&Token::Datatype) {
                    return Ok(Term::Literal(text, datatype::STRING.to_owned()));
                }
                self.words.at += 1;
                let kind = self.iri()?;
                let text = if kind == datatype::ANY_URI { iri::locator(self.document, &text) } else { text };
                Ok(Term::Literal(text, kind))
            }
            Some(Token::Value(text, kind)) => {
                let term = Term::Literal(text.clone(), (*kind).to_owned());
                self.words.at += 1;
                Ok(term)
            }
            Some(Token::Iri(_) | Token::Prefixed(..)) => Ok(Term::Iri(self.iri()?)),
            Some(Token::Variable(name)) => {
                let term = Term::Variable(name.clone());
                self.words.at += 1;
                Ok(term)
            }
            _ => Err(self.words.unexpected("a value")),
        }
    }

    fn topic_term(&mut self) -> Result<Term, Error> {
        match self.words.peek().cloned() {
            Some(Token::Identifier(name)) if !matches!(name.as_str(), "def" | "end") => {
                self.words.at += 1;
                Ok(Term::Identifier(name))
            }
            Some(Token::Iri(_) | Token::Prefixed(..)) => Ok(Term::Iri(self.iri()?)),
            Some(Token::Variable(name)) => {
                self.words.at += 1;
                Ok(Term::Variable(name))
            }
            Some(Token::Wildcard(name)) => {
                self.words.at += 1;
                Ok(Term::Wildcard(name))
            }
            Some(Token::Mark(mark @ ('=' | '^'))) => {
                self.words.at += 1;
                let inner = match self.words.peek() {
                    Some(Token::Variable(name)) => Term::Variable(name.clone()),
                    _ => {
                        let iri = self.iri()?;
                        self.words.at -= 1;
                        Term::Iri(iri)
                    }
                };
                self.words.at += 1;
                let inner = Box::new(inner);
                Ok(if mark == '=' { Term::SubjectLocator(inner) } else { Term::ItemIdentifier(inner) })
            }
            Some(Token::Mark('[')) => self.embedded(),
            _ => Err(self.words.unexpected("a topic")),
        }
    }

    fn embedded(&mut self) -> Result<Term, Error> {
        self.depth += 1;
        if self.depth > self.depth_max {
            return Err(self.words.fault(format!("topics are embedded more than {} deep", self.depth_max)));
        }
        self.words.expect('[')?;
        let mut block = Block { subject: None, assertions: Vec::new() };
        // `[name ...` is that topic; everything else, an IRI too, describes a topic without identity.
        let is_named = matches!(self.words.peek(), Some(Token::Identifier(_) | Token::Wildcard(_)))
            && !self.words.is_mark(1, ':')
            && !self.words.is_mark(1, '(')
            && !self.is_word("isa")
            && !self.is_word("ako");
        if is_named {
            block.subject = Some(self.topic_term()?);
        }
        self.assertions(&mut block, ']')?;
        self.depth -= 1;
        Ok(Term::Embedded(Box::new(block)))
    }

    fn assertions(&mut self, block: &mut Block, end: char) -> Result<(), Error> {
        loop {
            if self.words.takes(end) {
                return Ok(());
            }
            let line = self.line();
            let assertion = self.assertion()?;
            block.assertions.push((assertion, line));
            if !self.words.takes(';') && !self.words.is_mark(0, end) {
                return Err(self.words.unexpected(&format!("; or {end}")));
            }
        }
    }

    fn assertion(&mut self) -> Result<Assertion, Error> {
        if self.words.takes('-') {
            return self.name();
        }
        if (self.is_word("isa") || self.is_word("ako")) && !self.words.is_mark(1, ':') {
            let is_isa = self.is_word("isa");
            self.words.at += 1;
            let kind = self.topic_term()?;
            return Ok(if is_isa { Assertion::IsA(kind) } else { Assertion::KindOf(kind) });
        }
        if let (Some(Token::Identifier(name)), true) = (self.words.peek(), self.words.is_mark(1, '(')) {
            let name = name.clone();
            self.words.at += 2;
            let arguments = self.arguments()?;
            return Ok(Assertion::Invocation { name, arguments });
        }
        let term = self.topic_term()?;
        if self.words.takes(':') {
            let value = self.value()?;
            let tail = self.tail()?;
            return Ok(Assertion::Occurrence { kind: term, value, tail });
        }
        match term {
            Term::Iri(_) | Term::SubjectLocator(_) | Term::ItemIdentifier(_) | Term::Variable(_) => {
                Ok(Assertion::Identity(term))
            }
            _ => Err(self.words.unexpected(": and the value of an occurrence")),
        }
    }

    /// Reads a name after the hyphen.
    fn name(&mut self) -> Result<Assertion, Error> {
        let (mut kind, mut value) = (None, None);
        match self.words.peek() {
            Some(Token::Text(_)) => value = Some(self.value()?),
            Some(Token::Variable(_)) if !self.words.is_mark(1, ':') => value = Some(self.value()?),
            _ => {
                kind = Some(self.topic_term()?);
                self.words.expect(':')?;
            }
        }
        let value = match value {
            Some(value) => value,
            None => self.value()?,
        };
        let tail = self.tail()?;
        let mut variants = Vec::new();
        while self.words.takes('(') {
            let line = self.line();
            let value = self.value()?;
            let tail = self.tail()?;
            self.words.expect(')')?;
            variants.push((value, tail, line));
        }
        Ok(Assertion::Name { kind, value, tail, variants })
    }

    fn tail(&mut self) -> Result<Tail, Error> {
        let mut scope = Vec::new();
        if self.words.takes('@') {
            loop {
                scope.push(self.topic_term()?);
                if !self.words.takes(',') {
                    break;
                }
            }
        }
        Ok(Tail { scope, reifier: self.reifier()? })
    }

    fn reifier(&mut self) -> Result<Option<Term>, Error> {
        if self.words.takes('~') { Ok(Some(self.topic_term()?)) } else { Ok(None) }
    }
}
