//! Answers: the document around them, and what each verb writes into it.

use crate::datestamp::{Granularity, Range};
use crate::fault::{Code, Fault};
use crate::repository::{Format, Header, Metadata, Record, Repository, Selection, Set};
use crate::request::{Request, value};
use crate::token::{Token, TokenForm};
use crate::verb::Verb;
use crate::xml;

/// Maximum number of sets in one answer.
const SETS_PAGE: usize = 100;
/// The place of a token that continues the list of sets.
const SETS_PLACE: &str = "sets";
/// Maximum number of characters of a sentence about a fault, which may repeat what was sent.
const SENTENCE_CHARS: usize = 1_000;
/// The attributes of `request`, in their order.
const ATTRIBUTES: [&str; 7] =
    ["verb", "identifier", "metadataPrefix", "from", "until", "set", "resumptionToken"];
const ROOT: &str = "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
     xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
     xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">";

/// How a repository is served.
#[derive(Debug, Clone)]
pub struct Site {
    /// Its address.
    pub base_url: String,
    /// The time of the answer, in milliseconds since 1970.
    pub now_ms: i64,
    /// How fine its dates are.
    pub granularity: Granularity,
    /// The XML declaration, before the document.
    pub declaration: &'static str,
    /// How its tokens look.
    pub tokens: TokenForm,
    /// Maximum number of records in one answer.
    pub n_records: u64,
    /// Maximum number of headers in one answer.
    pub n_headers: u64,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The document.
    pub xml: String,
    /// The code of the error that it tells.
    pub code: Option<Code>,
}

/// Why a verb gives no answer.
enum Stop<E> {
    Fault(Fault),
    Error(E),
}

impl<E> From<Fault> for Stop<E> {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Answers a request, whose arguments are decoded.
///
/// Errors: those of the repository. Whatever is wrong with the request is told in the answer.
pub fn answer<R: Repository>(
    site: &Site,
    repository: &mut R,
    given: &[(&str, &str)],
) -> Result<Answer, R::Error> {
    let done = Request::parse(given, site.granularity, site.tokens).map_err(Stop::Fault);
    let done = done.and_then(|(verb, request)| run(site, repository, verb, &request));
    let (body, code) = match done {
        Ok(body) => (body, None),
        Err(Stop::Fault(fault)) => {
            let sentence: String = repository.sentence(&fault).chars().take(SENTENCE_CHARS).collect();
            let code = fault.code();
            let error = format!("<error code=\"{}\">{}</error>", code.name(), xml::escaped(&sentence));
            (error, Some(code))
        }
        Err(Stop::Error(error)) => return Err(error),
    };
    let mut document = format!("{}{ROOT}", site.declaration);
    xml::leaf("responseDate", &Granularity::Second.stamp(site.now_ms), &mut document);
    document.push_str("<request");
    for name in ATTRIBUTES.iter().filter(|_| code.is_none()) {
        if let Some(value) = value(given, name) {
            xml::attribute(name, value, &mut document);
        }
    }
    document.push('>');
    xml::escape(&site.base_url, &mut document);
    document.push_str("</request>");
    document.push_str(&body);
    document.push_str("</OAI-PMH>");
    Ok(Answer { xml: document, code })
}

/// Returns the element of a verb.
fn run<R: Repository>(
    site: &Site,
    repository: &mut R,
    verb: Verb,
    request: &Request,
) -> Result<String, Stop<R::Error>> {
    let body = match request {
        Request::Identify => identify(site, repository)?,
        Request::Formats { identifier } => formats(repository, identifier.as_deref())?,
        Request::Sets { resumed } => sets(site, repository, resumed.as_ref())?,
        Request::Record { identifier, prefix } => one(site, repository, identifier, prefix)?,
        Request::List { is_whole, window, range, is_resumed } => {
            let list = List { window, range: *range, is_whole: *is_whole, is_resumed: *is_resumed };
            list.page(site, repository)?
        }
    };
    let mut out = String::with_capacity(body.len() + 64);
    xml::around(verb.name(), &mut out, |out| out.push_str(&body));
    Ok(out)
}

fn identify<R: Repository>(site: &Site, repository: &mut R) -> Result<String, Stop<R::Error>> {
    let identity = repository.identity().map_err(Stop::Error)?;
    let mut out = String::new();
    for (name, text) in [
        ("repositoryName", identity.name.as_str()),
        ("baseURL", &site.base_url),
        ("protocolVersion", "2.0"),
        ("adminEmail", &identity.mail),
        ("earliestDatestamp", &site.granularity.stamp(identity.earliest_ms)),
        ("deletedRecord", identity.deletions.name()),
        ("granularity", site.granularity.name()),
    ] {
        xml::leaf(name, text, &mut out);
    }
    Ok(out)
}

fn formats<R: Repository>(repository: &mut R, identifier: Option<&str>) -> Result<String, Stop<R::Error>> {
    let offered = match identifier {
        None => repository.formats(),
        Some(identifier) => {
            let found = repository.formats_of(identifier).map_err(Stop::Error)?;
            let found = found.ok_or_else(|| Fault::UnknownRecord(identifier.to_owned()))?;
            if found.is_empty() {
                return Err(Fault::NoFormats(identifier.to_owned()).into());
            }
            found
        }
    };
    let mut out = String::new();
    for Format { prefix, schema, namespace } in offered {
        xml::around("metadataFormat", &mut out, |out| {
            xml::leaf("metadataPrefix", prefix, out);
            xml::leaf("schema", schema, out);
            xml::leaf("metadataNamespace", namespace, out);
        });
    }
    Ok(out)
}

/// Returns the sets. Errors: [`Fault::NoSets`].
fn known_sets<R: Repository>(repository: &mut R) -> Result<Vec<Set>, Stop<R::Error>> {
    let sets = repository.sets().map_err(Stop::Error)?;
    if sets.is_empty() { Err(Fault::NoSets.into()) } else { Ok(sets) }
}

fn sets<R: Repository>(
    site: &Site,
    repository: &mut R,
    resumed: Option<&Token>,
) -> Result<String, Stop<R::Error>> {
    let sets = known_sets(repository)?;
    let n_before = match resumed {
        None => 0,
        Some(token) => {
            let n_before = usize::try_from(token.n_before).unwrap_or(usize::MAX);
            if token.place != SETS_PLACE || sets.len() < n_before {
                return Err(Fault::UnknownToken.into());
            }
            n_before
        }
    };
    let mut out = String::new();
    for set in sets.iter().skip(n_before).take(SETS_PAGE) {
        xml::around("set", &mut out, |out| {
            xml::leaf("setSpec", &set.spec, out);
            xml::leaf("setName", &set.name, out);
            if !set.description.is_empty() {
                out.push_str("<setDescription><oai_dc:dc xmlns:oai_dc=\"");
                out.push_str(Format::OAI_DC.namespace);
                out.push_str("\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">");
                xml::leaf("dc:description", &set.description, out);
                out.push_str("</oai_dc:dc></setDescription>");
            }
        });
    }
    let n_after = n_before + SETS_PAGE;
    let next = (n_after < sets.len()).then(|| Token {
        place: SETS_PLACE.to_owned(),
        n_before: n_after as u64,
        prefix: Format::OAI_DC.prefix.to_owned(),
        ..Token::default()
    });
    resumption(site, next.as_ref(), sets.len() as u64, n_before as u64, &mut out);
    Ok(out)
}

/// Writes the token of the next page, or an empty one at the end of a list that has several pages.
fn resumption(site: &Site, next: Option<&Token>, n_all: u64, n_before: u64, out: &mut String) {
    if next.is_none() && n_before == 0 {
        return;
    }
    out.push_str("<resumptionToken");
    xml::attribute("completeListSize", &n_all.to_string(), out);
    xml::attribute("cursor", &n_before.to_string(), out);
    out.push('>');
    if let Some(next) = next {
        xml::escape(&next.write(site.tokens), out);
    }
    out.push_str("</resumptionToken>");
}

fn is_offered<R: Repository>(repository: &R, prefix: &str) -> Result<(), Fault> {
    let known = repository.formats();
    if known.iter().any(|it| it.prefix == prefix) {
        return Ok(());
    }
    let known = known.iter().map(|it| it.prefix.to_owned()).collect();
    Err(Fault::UnknownFormat { prefix: prefix.to_owned(), known })
}

fn one<R: Repository>(
    site: &Site,
    repository: &mut R,
    identifier: &str,
    prefix: &str,
) -> Result<String, Stop<R::Error>> {
    is_offered(repository, prefix)?;
    let found = repository.record(identifier, prefix).map_err(Stop::Error)?;
    let found = found.ok_or_else(|| Fault::UnknownRecord(identifier.to_owned()))?;
    let mut out = String::new();
    record(site, &found, &mut out);
    Ok(out)
}

/// A page that is requested.
struct List<'a> {
    window: &'a Token,
    range: Range,
    is_whole: bool,
    is_resumed: bool,
}

impl List<'_> {
    /// Refuses a format or a set that does not exist. Whoever continues a list has named neither, so that its token is
    /// what is wrong.
    fn check<R: Repository>(&self, repository: &mut R) -> Result<(), Stop<R::Error>> {
        let told = |fault: Fault| if self.is_resumed { Fault::UnknownToken } else { fault };
        is_offered(repository, &self.window.prefix).map_err(told)?;
        let Some(set) = &self.window.set else { return Ok(()) };
        let sets = repository.sets().map_err(Stop::Error)?;
        match sets.iter().any(|it| it.spec == *set) {
            true => Ok(()),
            false if sets.is_empty() => Err(told(Fault::NoSets).into()),
            false => Err(told(Fault::UnknownSet(set.clone())).into()),
        }
    }

    fn page<R: Repository>(&self, site: &Site, repository: &mut R) -> Result<String, Stop<R::Error>> {
        self.check(repository)?;
        let n_before = self.window.n_before;
        let selection = Selection {
            prefix: &self.window.prefix,
            set: self.window.set.as_deref(),
            range: self.range,
            is_whole: self.is_whole,
            place: self.is_resumed.then_some(self.window.place.as_str()),
            n_max: if self.is_whole { site.n_records } else { site.n_headers }.max(1),
        };
        let page = repository.list(&selection).map_err(Stop::Error)?.ok_or(Fault::UnknownToken)?;
        if page.records.is_empty() && n_before == 0 {
            return Err(Fault::NothingFound.into());
        }
        let mut out = String::new();
        for it in &page.records {
            match self.is_whole {
                true => record(site, it, &mut out),
                false => header(site, &it.header, &mut out),
            }
        }
        let n_after = n_before.saturating_add(page.n_passed);
        let next = page.next.map(|place| Token { place, n_before: n_after, ..self.window.clone() });
        resumption(site, next.as_ref(), page.n_all, n_before, &mut out);
        Ok(out)
    }
}

fn header(site: &Site, header: &Header, out: &mut String) {
    out.push_str("<header");
    if header.is_deleted {
        xml::attribute("status", "deleted", out);
    }
    out.push('>');
    xml::leaf("identifier", &header.identifier, out);
    xml::leaf("datestamp", &site.granularity.stamp(header.changed_ms), out);
    for set in &header.sets {
        xml::leaf("setSpec", set, out);
    }
    out.push_str("</header>");
}

fn record(site: &Site, record: &Record, out: &mut String) {
    xml::around("record", out, |out| {
        header(site, &record.header, out);
        match record.metadata.as_ref().filter(|_| !record.header.is_deleted) {
            None => {}
            Some(Metadata::Xml(text)) => xml::around("metadata", out, |out| out.push_str(text)),
            Some(Metadata::Elsewhere { attribute, url }) => {
                out.push_str("<metadata");
                xml::attribute(attribute, url, out);
                out.push_str("/>");
            }
        }
    });
}
