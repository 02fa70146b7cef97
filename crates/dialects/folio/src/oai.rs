//! `/oai/records`: OAI-PMH 2.0 over instances, in Dublin Core and MARCXML (section 12 of the contract; mod-oai-pmh).
//!
//! Lists are paged in the order in which records were created; a resumption token says where the next page begins, so
//! that a harvest never misses a record that existed when it began. Suppressed records and those marked as deleted are
//! listed as a header that says so; instances that were deleted leave such a header behind ([`GONE`]), listed at the
//! end.

pub(crate) mod config;
mod marc;
pub(crate) mod sets;

use std::fmt::Write as _;

use axum::response::Response;
use http::header::HOST;
use http::{HeaderValue, StatusCode};
use pinakes_http::answer;
use pinakes_store::{End, Expr, Kind, Query, Record, Value as StoreValue, View, Weight};
use serde_json::Value;

use crate::inventory::harvested::{CHANGED, GONE, changed_ms};
use crate::inventory::instances::INSTANCES;
use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{QueryText, parse_uuid};
use config::{Config, Deletions, Sources, Suppressed};

const XML: HeaderValue = HeaderValue::from_static("text/xml;charset=UTF-8");
/// A metadata format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Dublin Core, for every instance.
    Dc,
    /// The source record, for instances that have one.
    Marc21,
    /// The source record with holdings and items.
    Withholdings,
}

impl Format {
    const ALL: [Self; 3] = [Self::Dc, Self::Marc21, Self::Withholdings];

    const fn prefix(self) -> &'static str {
        match self {
            Self::Dc => "oai_dc",
            Self::Marc21 => "marc21",
            Self::Withholdings => "marc21_withholdings",
        }
    }

    fn named(prefix: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.prefix() == prefix)
    }

    /// Returns its schema and namespace.
    const fn schema(self) -> [&'static str; 2] {
        match self {
            Self::Dc => [
                "http://www.openarchives.org/OAI/2.0/oai_dc.xsd",
                "http://www.openarchives.org/OAI/2.0/oai_dc/",
            ],
            Self::Marc21 | Self::Withholdings => [
                "http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd",
                "http://www.loc.gov/MARC21/slim",
            ],
        }
    }
}

/// The built-in set of all records.
const SET: &str = "all";

/// Adds the route.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.get("/oai/records", Access::to("oai-pmh.records.collection.get"), serve).with(sets::routes)
}

/// A mistake in a harvester's request: OAI-PMH's code and a sentence.
struct Refused(&'static str, String);

/// A parsed request.
#[derive(Clone)]
struct Asked {
    verb: String,
    query: QueryText,
    /// `http://host/oai/records`.
    base: String,
    /// Prefix of record identifiers: `oai:host:tenant/`.
    prefix: String,
    config: Config,
}

/// A verb's optional arguments, its required ones, and the exclusive one.
type Arguments = (&'static [&'static str], &'static [&'static str], &'static str);

fn arguments(verb: &str) -> Option<Arguments> {
    const LIST: Arguments = (&["from", "until", "set"], &["metadataPrefix"], "resumptionToken");
    match verb {
        "Identify" => Some((&[], &[], "")),
        "ListMetadataFormats" => Some((&["identifier"], &[], "")),
        "ListSets" => Some((&[], &[], "resumptionToken")),
        "ListRecords" | "ListIdentifiers" => Some(LIST),
        "GetRecord" => Some((&[], &["identifier", "metadataPrefix"], "")),
        _ => None,
    }
}

/// Refuses arguments that a verb does not take, and missing required ones.
fn check_arguments(asked: &Asked) -> Result<(), Refused> {
    let verb = asked.verb.as_str();
    let Some((optional, required, exclusive)) = arguments(verb) else {
        return Err(Refused("badVerb", format!("Bad verb. Verb '{verb}' is not implemented")));
    };
    let given: Vec<&str> = asked.query.pairs().map(|it| it.0).filter(|it| *it != "verb").collect();
    let bad = |message: String| Err(Refused("badArgument", message));
    for name in &given {
        if !optional.contains(name) && !required.contains(name) && *name != exclusive {
            return bad(format!("Verb '{verb}', illegal argument: {name}"));
        }
        if 1 < given.iter().filter(|it| *it == name).count() {
            return bad(format!("Verb '{verb}', argument '{name}' is given more than once"));
        }
    }
    if !exclusive.is_empty() && given.contains(&exclusive) {
        return match given.len() {
            1 => Ok(()),
            _ => bad(format!(
                "Verb '{verb}', argument '{exclusive}' is exclusive, no others maybe specified with it."
            )),
        };
    }
    match required.iter().find(|it| asked.query.get(it).is_none_or(str::is_empty)) {
        Some(name) => bad(format!("Missing required parameter: {name}")),
        None => Ok(()),
    }
}

async fn serve(call: Call) -> Answer {
    let host = call.headers.get(HOST).and_then(|it| it.to_str().ok()).unwrap_or("localhost").to_owned();
    let name = host.split(':').next().unwrap_or_default().to_owned();
    let config = call.db().read(Weight::Scan, Config::of).await?;
    if !config.is_enabled {
        let message = "OAI-PMH service is disabled";
        return Err(FolioError::text(StatusCode::SERVICE_UNAVAILABLE, message));
    }
    let base = config.base_url.clone().unwrap_or_else(|| format!("{}/oai/records", call.origin));
    let asked = Asked {
        verb: call.query.get("verb").unwrap_or_default().to_owned(),
        query: call.query.clone(),
        base,
        prefix: format!("oai:{name}:{}/", call.asker.tenant()),
        config,
    };
    if let Err(refused) = check_arguments(&asked) {
        return Ok(document(&call, &asked, Err(refused)));
    }
    let done = match asked.verb.as_str() {
        "Identify" => identify(&call, &asked).await?,
        "ListMetadataFormats" => formats(&call, &asked).await?,
        "ListSets" => {
            Ok(format!("<ListSets><set><setSpec>{SET}</setSpec><setName>{SET}</setName></set></ListSets>"))
        }
        "ListRecords" | "ListIdentifiers" => list(&call, &asked).await?,
        "GetRecord" => one(&call, &asked).await?,
        _ => Err(Refused("badVerb", "Bad verb. Verb is not specified or not one that is known".to_owned())),
    };
    Ok(document(&call, &asked, done))
}

/// Wraps the result of a verb into a complete answer.
fn document(call: &Call, asked: &Asked, done: Result<String, Refused>) -> Response {
    let status = done.as_ref().err().map_or(StatusCode::OK, |it| asked.config.status(it.0));
    let mut request = String::from("<request");
    if done.is_ok() {
        for name in ["verb", "identifier", "metadataPrefix", "from", "until", "set", "resumptionToken"] {
            if let Some(value) = asked.query.get(name) {
                // Writing to a string cannot fail.
                let _ = write!(request, " {name}=\"{}\"", escaped(value));
            }
        }
    }
    let body = done.unwrap_or_else(|Refused(code, reason)| {
        format!("<error code=\"{code}\">{}</error>", escaped(&reason))
    });
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ \
         http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\"><responseDate>{}</responseDate>{request}>{}</request>{body}</OAI-PMH>",
        dates::seconds(call.app.now_ms()),
        escaped(&asked.base),
    );
    answer::bytes(status, XML, text)
}

async fn identify(call: &Call, asked: &Asked) -> Result<Result<String, Refused>, FolioError> {
    let earliest = call
        .db()
        .read(Weight::Scan, |view| {
            let by_date = Query::filter(Expr::All)
                .sorted("metadata.updatedDate", pinakes_store::Direction::Ascending)
                .window(0, 1);
            view.find(&INSTANCES.kind, &by_date)
        })
        .await?;
    let earliest = match earliest.first() {
        Some(record) => stamp(&record.json()?),
        None => dates::seconds(call.app.now_ms()),
    };
    let host = asked.prefix.split(':').nth(1).unwrap_or_default();
    let mail = match (&asked.config.mail, call.app.settings.oai_admin_email.as_str()) {
        (Some(mail), _) => mail.clone(),
        (None, "") => format!("noreply@{host}"),
        (None, mail) => mail.to_owned(),
    };
    let (days, seconds) = ("YYYY-MM-DD", "YYYY-MM-DDThh:mm:ssZ");
    let granularity = if asked.config.has_days_only { days } else { seconds };
    let earliest = if asked.config.has_days_only { earliest[..10].to_owned() } else { earliest };
    Ok(Ok(format!(
        "<Identify><repositoryName>{}</repositoryName><baseURL>{}</baseURL><protocolVersion>2.0</protocolVersion>\
         <adminEmail>{}</adminEmail><earliestDatestamp>{earliest}</earliestDatestamp>\
         <deletedRecord>{}</deletedRecord><granularity>{granularity}</granularity></Identify>",
        escaped(asked.config.repository.as_deref().unwrap_or(call.asker.tenant())),
        escaped(&asked.base),
        escaped(&mail),
        asked.config.deletions.name(),
    )))
}

async fn formats(call: &Call, asked: &Asked) -> Result<Result<String, Refused>, FolioError> {
    if let Some(identifier) = asked.query.get("identifier")
        && found(call, asked, identifier).await?.is_none()
    {
        return Ok(Err(Refused("idDoesNotExist", format!("{identifier} is not known"))));
    }
    let list: String = Format::ALL
        .iter()
        .map(|format| {
            let [schema, namespace] = format.schema();
            format!(
                "<metadataFormat><metadataPrefix>{}</metadataPrefix><schema>{schema}</schema>\
                 <metadataNamespace>{namespace}</metadataNamespace></metadataFormat>",
                format.prefix()
            )
        })
        .collect();
    Ok(Ok(format!("<ListMetadataFormats>{list}</ListMetadataFormats>")))
}

/// Returns the record with an identifier, or what a deleted one left behind.
async fn found(call: &Call, asked: &Asked, identifier: &str) -> Result<Option<Record>, FolioError> {
    let Some(id) = identifier.strip_prefix(&asked.prefix).and_then(parse_uuid) else { return Ok(None) };
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        match view.get(&INSTANCES.kind, &id)? {
            Some(record) => Ok(Some(record)),
            None => Ok(view.get(&GONE, &id)?),
        }
    };
    call.db().read(Weight::Scan, read).await
}

async fn one(call: &Call, asked: &Asked) -> Result<Result<String, Refused>, FolioError> {
    let (Some(identifier), Some(format)) = (asked.query.get("identifier"), asked.query.get("metadataPrefix"))
    else {
        return Ok(Err(Refused("badArgument", "identifier and metadataPrefix are required".to_owned())));
    };
    let Some(format) = Format::named(format) else { return Ok(Err(unknown_format(format))) };
    let Some(record) = found(call, asked, identifier).await? else {
        return Ok(Err(Refused("idDoesNotExist", format!("{identifier} is not known"))));
    };
    let identifier = identifier.to_owned();
    let asked = asked.clone();
    let read = move |view: &mut View<'_>| {
        let record = with_newest(view, record.json()?)?;
        shown(view, &record, &asked, Whole::Record, format)
    };
    let shown = call.db().read(Weight::Scan, read).await?;
    if shown.is_empty() {
        return Ok(Err(Refused("idDoesNotExist", format!("{identifier} is not known"))));
    }
    Ok(Ok(format!("<GetRecord>{shown}</GetRecord>")))
}

fn unknown_format(format: &str) -> Refused {
    let known = Format::ALL.map(Format::prefix).join(", ");
    Refused("cannotDisseminateFormat", format!("the format {format} is not known; {known} are"))
}

/// The scope of a list, from the request or its resumption token.
struct Window {
    format: Format,
    from: Option<String>,
    until: Option<String>,
    after: Option<i64>,
    phase: Phase,
    n_before: u64,
}

/// What a list goes through, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Instances by their own dates; all of them if no dates are requested.
    There,
    /// Instances by the dates of their holdings, items and source records, if those are newer.
    Changed,
    /// The traces of deleted instances.
    Gone,
}

impl Phase {
    const ALL: [Self; 3] = [Self::There, Self::Changed, Self::Gone];

    fn kind(self) -> &'static Kind {
        match self {
            Self::There => &INSTANCES.kind,
            Self::Changed => &CHANGED,
            Self::Gone => &GONE,
        }
    }

    /// Returns its mark in a resumption token.
    const fn mark(self) -> Option<&'static str> {
        match self {
            Self::There => None,
            Self::Changed => Some("changed"),
            Self::Gone => Some("gone"),
        }
    }
}

impl Window {
    fn of(query: &QueryText) -> Result<Self, Refused> {
        let Some(token) = query.get("resumptionToken") else { return Self::first(query) };
        let bad =
            || Refused("badResumptionToken", "the resumption token is not one that was given".to_owned());
        let parts = QueryText::parse(token);
        let after = parts.get("after").and_then(|it| it.parse().ok()).ok_or_else(bad)?;
        let n_before = parts.get("cursor").and_then(|it| it.parse().ok()).ok_or_else(bad)?;
        let text = |name: &str| parts.get(name).map(str::to_owned);
        let format = match parts.get("metadataPrefix") {
            None => Format::Dc,
            Some(name) => Format::named(name).ok_or_else(bad)?,
        };
        let is_marked = |phase: &Phase| phase.mark().is_some_and(|mark| parts.get(mark).is_some());
        let phase = Phase::ALL.into_iter().find(is_marked).unwrap_or(Phase::There);
        let after = Some(after).filter(|it| 0 <= *it);
        Ok(Self { format, from: text("from"), until: text("until"), after, phase, n_before })
    }

    fn first(query: &QueryText) -> Result<Self, Refused> {
        let format = match query.get("metadataPrefix") {
            None => return Err(Refused("badArgument", "metadataPrefix is required".to_owned())),
            Some(name) => Format::named(name).ok_or_else(|| unknown_format(name))?,
        };
        if query.get("set").is_some_and(|it| it != SET) {
            return Err(Refused("noRecordsMatch", "there is no such set".to_owned()));
        }
        let text = |name: &str| query.get(name).map(str::to_owned);
        let window = Self {
            format,
            from: text("from"),
            until: text("until"),
            after: None,
            phase: Phase::There,
            n_before: 0,
        };
        let is_date = |it: &Option<String>| it.as_deref().is_none_or(|it| dates::parse_ms(it).is_some());
        if !is_date(&window.from) || !is_date(&window.until) {
            return Err(Refused(
                "badArgument",
                "from and until must be dates, YYYY-MM-DDThh:mm:ssZ".to_owned(),
            ));
        }
        if let (Some(from), Some(until)) = (&window.from, &window.until) {
            let bad = |message: &str| Err(Refused("badArgument", message.to_owned()));
            if from.len() != until.len() {
                return bad("Invalid date range: 'from' must have the same granularity as 'until'.");
            }
            if dates::parse_ms(until) < dates::parse_ms(from) {
                return bad("Invalid date range: 'from' must be less than or equal to 'until'.");
            }
        }
        Ok(window)
    }

    /// Checks whether dates are requested.
    fn is_bounded(&self) -> bool {
        self.from.is_some() || self.until.is_some()
    }

    fn filter(&self, sources: Sources) -> Expr {
        let from = self.from.as_deref().and_then(dates::parse_ms);
        // The end is inclusive: a day, or a second, ends when the next one begins.
        let until = self.until.as_deref().and_then(|text| {
            dates::parse_ms(text).map(|ms| ms + if text.len() == 10 { 86_400_000 } else { 1_000 })
        });
        let low = from.map_or(End::Open, |ms| End::Included(StoreValue::Instant(ms)));
        let high = until.map_or(End::Open, |ms| End::Excluded(StoreValue::Instant(ms)));
        let shown = match self.format {
            Format::Dc => Expr::All,
            _ => {
                let is_marc = Expr::Is("source".into(), StoreValue::Folded("marc".to_owned()));
                match sources {
                    Sources::Records => is_marc,
                    Sources::Both => Expr::All,
                    Sources::Inventory => Expr::Not(Box::new(is_marc)),
                }
            }
        };
        match (from, until) {
            (None, None) => shown,
            _ => Expr::Range("metadata.updatedDate".into(), low, high).and(shown),
        }
    }

    /// Builds the token of the next page: it begins after the record at `after`; -1 stands for the start of a phase.
    fn token(&self, after: i64, phase: Phase, n_before: u64) -> String {
        let mut token = format!("after={after}&cursor={n_before}");
        if let Some(mark) = phase.mark() {
            token.push_str(&format!("&{mark}=1"));
        }
        if self.format != Format::Dc {
            token.push_str(&format!("&metadataPrefix={}", self.format.prefix()));
        }
        for (name, value) in [("from", &self.from), ("until", &self.until)] {
            if let Some(value) = value {
                token.push_str(&format!("&{name}={value}"));
            }
        }
        token
    }
}

async fn list(call: &Call, asked: &Asked) -> Result<Result<String, Refused>, FolioError> {
    let window = match Window::of(&asked.query) {
        Ok(window) => window,
        Err(refused) => return Ok(Err(refused)),
    };
    let page = asked.config.page_records.unwrap_or(call.app.settings.oai_page_records).max(1);
    let (filter, format, is_bounded) =
        (window.filter(asked.config.sources), window.format, window.is_bounded());
    let begin = (window.phase, window.after);
    let whole = if asked.verb == "ListRecords" { Whole::Record } else { Whole::Header };
    let with = asked.clone();
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let (mut phase, mut after) = begin;
        let (mut text, mut n_passed) = (String::new(), 0);
        let next = loop {
            let (listed, next) = page_of(view, &filter, phase, after, page, is_bounded)?;
            n_passed += listed.len();
            for (record, phase) in &listed {
                if let Some(it) = told(view, record, *phase, is_bounded)? {
                    text.push_str(&shown(view, &it, &with, whole, format)?);
                }
            }
            // A page with nothing to show is skipped: an answer contains at least one record.
            match next {
                Some(next) if text.is_empty() => {
                    (phase, after) = (next.0, Some(next.1).filter(|it| 0 <= *it))
                }
                next => break next,
            }
        };
        let mut total = 0;
        for phase in Phase::ALL.into_iter().filter(|it| is_bounded || *it != Phase::Changed) {
            total += view.count(phase.kind(), &filter)?;
        }
        Ok((text.is_empty(), n_passed, next, text, total))
    };
    let (is_empty, n_listed, next, text, total) = call.db().read(Weight::Scan, read).await?;
    if is_empty && window.n_before == 0 {
        return Ok(Err(Refused(
            "noRecordsMatch",
            "There is no any record found matching search criteria".to_owned(),
        )));
    }
    let mut body = format!("<{}>{text}", asked.verb);
    let n_sent = window.n_before + n_listed as u64;
    if next.is_some() || 0 < window.n_before {
        let token = next.map_or_else(String::new, |(phase, after)| window.token(after, phase, n_sent));
        let (before, token) = (window.n_before, escaped(&token));
        body.push_str(&format!(
            "<resumptionToken completeListSize=\"{total}\" cursor=\"{before}\">{token}</resumptionToken>"
        ));
    }
    body.push_str(&format!("</{}>", asked.verb));
    Ok(Ok(body))
}

/// Returns the records of a page in the order of the phases, and where the next page begins: after the record at that
/// position; -1 stands for the start of a phase.
#[expect(clippy::type_complexity, reason = "records with their phase, and a place")]
fn page_of(
    view: &mut View<'_>,
    filter: &Expr,
    begin: Phase,
    after: Option<i64>,
    page: u64,
    is_bounded: bool,
) -> Result<(Vec<(Record, Phase)>, Option<(Phase, i64)>), FolioError> {
    let bound = usize::try_from(page).unwrap_or(usize::MAX);
    let mut listed: Vec<(Record, Phase)> = Vec::new();
    for phase in Phase::ALL.into_iter().skip_while(|it| *it != begin) {
        if bound < listed.len() || phase == Phase::Changed && !is_bounded {
            continue;
        }
        let after = after.filter(|_| phase == begin);
        let rest = page + 1 - listed.len() as u64;
        let query = Query { after, ..Query::filter(filter.clone()).window(0, rest) };
        listed.extend(view.find(phase.kind(), &query)?.into_iter().map(|it| (it, phase)));
    }
    let next = listed.get(bound).map(|it| it.1);
    listed.truncate(bound);
    let place = listed.last().map(|(record, phase)| if next == Some(*phase) { record.cursor() } else { -1 });
    Ok((listed, next.zip(place)))
}

/// Returns the instance of a record in a phase, with the date of its newest change; `None` if another phase lists it.
fn told(
    view: &mut View<'_>,
    record: &Record,
    phase: Phase,
    is_bounded: bool,
) -> Result<Option<Value>, FolioError> {
    let own = record.json()?;
    match phase {
        Phase::Gone => Ok(Some(own)),
        Phase::There => {
            let dated = with_newest(view, own.clone())?;
            // By its newest change it belongs to another window, or is listed as changed.
            Ok(Some(dated).filter(|it| !is_bounded || changed_ms(it) == changed_ms(&own)))
        }
        Phase::Changed => {
            let Some(instance) = view.get(&INSTANCES.kind, &record.id)? else { return Ok(None) };
            let instance = instance.json()?;
            let is_newer = changed_ms(&instance) < changed_ms(&own);
            if is_newer { Ok(Some(with_newest(view, instance)?)) } else { Ok(None) }
        }
    }
}

/// Returns an instance with the date of its newest change, including those of holdings, items and source record.
fn with_newest(view: &mut View<'_>, mut instance: Value) -> Result<Value, FolioError> {
    let id = text_at(&instance, "id").unwrap_or_default().to_owned();
    let Some(noted) = view.get(&CHANGED, &id)? else { return Ok(instance) };
    let noted = noted.json()?;
    if changed_ms(&instance) < changed_ms(&noted)
        && let Some(metadata) = instance.get_mut("metadata").and_then(Value::as_object_mut)
    {
        let date = noted.pointer("/metadata/updatedDate").cloned().unwrap_or_default();
        metadata.insert("updatedDate".to_owned(), date);
    }
    Ok(instance)
}

/// Which part of a record is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    /// Its header only.
    Header,
    /// Header and description.
    Record,
}

/// Returns when an instance was last changed.
fn stamp(instance: &Value) -> String {
    dates::seconds(changed_ms(instance))
}

/// Formats a record, or only its header; empty if the tenant's settings exclude it.
fn shown(
    view: &mut View<'_>,
    instance: &Value,
    asked: &Asked,
    whole: Whole,
    format: Format,
) -> Result<String, FolioError> {
    let id = text_at(instance, "id").unwrap_or_default();
    let is_made = asked.config.sources != Sources::Records
        && text_at(instance, "source").is_some_and(|it| !it.eq_ignore_ascii_case("marc"))
        && text_at(instance, "title").is_some();
    let mut record = match format {
        Format::Dc => None,
        _ if is_made => Some(marc::made(instance)),
        _ => marc::source(view, id)?,
    };
    // In MARC the leader says whether the record is deleted; an instance without a record counts as deleted.
    let is_gone = match (&record, format) {
        (Some(record), _) => record.leader.status() == 'd',
        (None, Format::Dc) => false,
        (None, _) => true,
    };
    let is = |name: &str| instance.get(name) == Some(&true.into());
    let is_suppressed = is("discoverySuppress");
    let is_deleted =
        is_gone || is("deleted") || is_suppressed && asked.config.suppressed == Suppressed::Deleted;
    let is_passed_over = is_deleted && asked.config.deletions == Deletions::Untold
        || !is_deleted && is_suppressed && asked.config.suppressed == Suppressed::Skipped;
    if is_passed_over {
        return Ok(String::new());
    }
    let status = if is_deleted { " status=\"deleted\"" } else { "" };
    let stamp = stamp(instance);
    let header = format!(
        "<header{status}><identifier>{}</identifier><datestamp>{}</datestamp><setSpec>{SET}</setSpec></header>",
        escaped(&format!("{}{id}", asked.prefix)),
        if asked.config.has_days_only { &stamp[..10] } else { stamp.as_str() },
    );
    if whole == Whole::Header {
        return Ok(header);
    }
    if is_deleted {
        return Ok(format!("<record>{header}</record>"));
    }
    let described = match &mut record {
        None => dublin_core(instance, asked.config.suppressed == Suppressed::Shown),
        Some(record) => {
            let told = (asked.config.suppressed == Suppressed::Shown).then_some(is_suppressed);
            if format == Format::Withholdings {
                marc::add_holdings(view, record, id, told.is_some())?;
            }
            if let Some(is_suppressed) = told {
                marc::tell_suppressed(record, is_suppressed);
            }
            marc::shown(record)
        }
    };
    Ok(format!("<record>{header}<metadata>{described}</metadata></record>"))
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

/// Escapes text for XML: markup characters are replaced, characters not allowed in XML 1.0 are dropped.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(character),
            it if it.is_control() || matches!(it, '\u{fffe}' | '\u{ffff}') => {}
            it => out.push(it),
        }
    }
    out
}
