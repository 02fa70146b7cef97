//! OAI-PMH 2.0 at `/oai`: the published datasets as a repository. The protocol itself is `pinakes_oai_pmh`'s.

use http::{HeaderValue, Method, StatusCode};
use pinakes_http::answer;
use pinakes_oai_pmh::{
    Deletions, Fault, Format, Granularity, Header, Identity, Metadata, Page, Record, Repository, Selection,
    Site, TokenForm,
};
use pinakes_store::{Query, View, Weight};

use super::list::List;
use super::members::{self, MEMBER, Member};
use crate::app::{Call, Dataverse};
use crate::asker::Asker;
use crate::blocks::Registry;
use crate::datasets::wanted::is_dataset_kept_from;
use crate::datasets::{self, Dataset, version};
use crate::error::{Answer, ApiError};
use crate::exports::serve::written;
use crate::exports::xml::DECLARATION;
use crate::exports::{EXPORTERS, Exporter, exporter};
use crate::{query, stored};

/// Formats offered to harvesters, by the name of the export.
const FORMATS: [&str; 5] = ["oai_dc", "oai_ddi", "oai_datacite", "Datacite", "dataverse_json"];
/// 2000-01-01: no dataset here is older.
const EARLIEST_MS: i64 = 946_684_800_000;

/// Answers a harvester.
pub(super) async fn provide(mut call: Call) -> Answer {
    let given = match call.method == Method::POST {
        true => query::Query::parse(&call.text().await?),
        false => call.query.clone(),
    };
    let enabled = |view: &mut View<'_>| crate::site_settings::is_true(view, ":OAIServerEnabled", true);
    if !call.db().read(Weight::Point, enabled).await? {
        return Err(ApiError::not_found("The OAI server is switched off: :OAIServerEnabled."));
    }
    let (app, site_url) = (call.app.clone(), call.site_url());
    let registry = app.registry(call.db()).await?;
    let site = Site {
        base_url: format!("{site_url}/oai"),
        now_ms: app.now_ms(),
        granularity: Granularity::Second,
        // Harvesters check records for a second XML declaration, by its usual quotes.
        declaration: "<?xml version='1.0' encoding='UTF-8'?>",
        // They also send tokens as they came, without encoding them.
        tokens: TokenForm::Packed,
        n_records: app.settings.oai_records.into(),
        n_headers: app.settings.oai_identifiers.into(),
    };
    let read = move |view: &mut View<'_>| {
        let mut datasets = Datasets { view, app: &app, registry: &registry, site_url: &site_url };
        let given: Vec<(&str, &str)> = given.pairs().collect();
        Ok::<_, ApiError>(pinakes_oai_pmh::answer(&site, &mut datasets, &given)?.xml)
    };
    let xml = call.db().read(Weight::Scan, read).await?;
    Ok(answer::bytes(StatusCode::OK, HeaderValue::from_static("text/xml;charset=UTF-8"), xml))
}

/// The published datasets.
struct Datasets<'a, 'v> {
    view: &'a mut View<'v>,
    app: &'a Dataverse,
    registry: &'a Registry,
    site_url: &'a str,
}

fn format(name: &str) -> Option<Format> {
    let exporter = EXPORTERS.iter().find(|it| it.name == name)?;
    let [namespace, schema, _] = exporter.schema.unwrap_or(["dataverse_json", "dataverse_json", ""]);
    Some(Format { prefix: exporter.name, schema, namespace })
}

/// A member with its datestamp.
struct Dated {
    changed_ms: i64,
    member: Member,
}

impl Dated {
    /// Returns a member with its datestamp. One whose time cannot be read is left out, and the log names it.
    fn of(member: Member) -> Option<Self> {
        let changed_ms = member.changed_ms();
        if changed_ms.is_none() {
            let (pid, set, changed) = (&member.pid, &member.set, &member.changed);
            tracing::warn!(%pid, %set, %changed, "a dataset is left out of OAI-PMH: its time cannot be read");
        }
        Some(Self { changed_ms: changed_ms?, member })
    }

    fn header(&self, sets: Vec<String>, is_deleted: bool) -> Header {
        Header { identifier: self.member.pid.clone(), changed_ms: self.changed_ms, sets, is_deleted }
    }
}

fn sets_of<'m>(members: impl IntoIterator<Item = &'m Dated>) -> Vec<String> {
    members.into_iter().map(|it| it.member.set.clone()).filter(|it| !it.is_empty()).collect()
}

impl Datasets<'_, '_> {
    /// Returns the entries of a dataset in the sets; if it is in none, its entry among all published datasets.
    fn members(&mut self, pid: &str) -> Result<Vec<Dated>, ApiError> {
        let found: Vec<Member> = stored::find_by(self.view, &MEMBER, "pid", pid)?;
        if !found.is_empty() {
            return Ok(found.into_iter().filter_map(Dated::of).collect());
        }
        let Some(dataset) = datasets::by_pid(self.view, pid)? else { return Ok(Vec::new()) };
        let Some(released) = &dataset.released else { return Ok(Vec::new()) };
        if is_dataset_kept_from(self.view, &Asker::default(), &dataset)? {
            return Ok(Vec::new());
        }
        let version = version::of_dataset(self.view, &dataset, released.version)?;
        Ok(Dated::of(Member::of_none(&dataset, &version)).into_iter().collect())
    }

    /// Returns a member as a record: a deleted one if its dataset is no longer published, or hidden.
    fn whole(&mut self, dated: &Dated, prefix: &str, sets: Vec<String>) -> Result<Record, ApiError> {
        let member = &dated.member;
        let dataset = datasets::by_pid(self.view, &member.pid)?;
        let is_kept = match &dataset {
            Some(it) => is_dataset_kept_from(self.view, &Asker::default(), it)?,
            None => false,
        };
        let metadata = match (dataset, exporter(prefix)) {
            (Some(dataset), Some(exporter)) if !member.deleted && !is_kept => {
                self.metadata(&dataset, exporter)?
            }
            _ => None,
        };
        Ok(Record { header: dated.header(sets, metadata.is_none()), metadata })
    }

    /// Returns the description of a dataset; `None` if it is not published.
    fn metadata(
        &mut self,
        dataset: &Dataset,
        exporter: &'static Exporter,
    ) -> Result<Option<Metadata>, ApiError> {
        let Some(released) = &dataset.released else { return Ok(None) };
        if exporter.media_type == "application/json" {
            let url = format!(
                "{}/api/datasets/export?exporter={}&persistentId={}",
                self.site_url, exporter.name, dataset.pid
            );
            return Ok(Some(Metadata::Elsewhere { attribute: "directApiCall", url }));
        }
        let version = version::of_dataset(self.view, dataset, released.version)?;
        let text = written(self.view, self.app, self.registry, self.site_url, dataset, &version, exporter)?;
        Ok(Some(Metadata::Xml(text.strip_prefix(DECLARATION).unwrap_or(&text).to_owned())))
    }
}

impl Repository for Datasets<'_, '_> {
    type Error = ApiError;

    fn identity(&mut self) -> Result<Identity, ApiError> {
        let name = datasets::show::publisher(self.view)?;
        let mail = &self.app.settings.system_email;
        Ok(Identity {
            name: format!("{name} Dataverse OAI Archive"),
            mail: if mail.is_empty() { "nobody@localhost".to_owned() } else { mail.clone() },
            earliest_ms: EARLIEST_MS,
            deletions: Deletions::Transient,
        })
    }

    fn formats(&self) -> Vec<Format> {
        FORMATS.into_iter().filter_map(format).collect()
    }

    fn formats_of(&mut self, identifier: &str) -> Result<Option<Vec<Format>>, ApiError> {
        let members = self.members(identifier)?;
        Ok(members.first().map(|_| self.formats()))
    }

    fn sets(&mut self) -> Result<Vec<pinakes_oai_pmh::Set>, ApiError> {
        let sets = members::all_sets(self.view)?.into_iter();
        let set = |it: members::Set| pinakes_oai_pmh::Set {
            name: it.name.clone(),
            spec: it.name,
            description: it.description,
        };
        Ok(sets.map(set).collect())
    }

    fn record(&mut self, identifier: &str, prefix: &str) -> Result<Option<Record>, ApiError> {
        let members = self.members(identifier)?;
        let Some(first) = members.first() else { return Ok(None) };
        self.whole(first, prefix, sets_of(&members)).map(Some)
    }

    fn list(&mut self, selection: &Selection<'_>) -> Result<Option<Page>, ApiError> {
        let mut after: Option<i64> = match selection.place.map(str::parse) {
            None => None,
            Some(Ok(place)) => Some(place),
            Some(Err(_)) => return Ok(None),
        };
        let list = List::of(self.view, selection)?;
        let mut page = Page { n_all: self.view.count(list.kind, &list.filter)?, ..Page::default() };
        // A page on which there is nothing to show is passed over.
        while page.records.is_empty() {
            let query = Query { after, ..Query::filter(list.filter.clone()) };
            let mut found = self.view.find(list.kind, &query.window(0, selection.n_max + 1))?;
            let has_more = selection.n_max < found.len() as u64;
            found.truncate(usize::try_from(selection.n_max).unwrap_or(usize::MAX));
            page.n_passed += found.len() as u64;
            after = found.last().map(pinakes_store::Record::cursor);
            for record in &found {
                let Some(dated) = list.member(self.view, record)?.and_then(Dated::of) else { continue };
                let sets = sets_of([&dated]);
                page.records.push(match selection.is_whole {
                    true => self.whole(&dated, selection.prefix, sets)?,
                    false => Record { header: dated.header(sets, dated.member.deleted), metadata: None },
                });
            }
            if !has_more {
                return Ok(Some(page));
            }
        }
        page.next = after.map(|it| it.to_string());
        Ok(Some(page))
    }

    /// The sentences that clients check.
    fn sentence(&self, fault: &Fault) -> String {
        match fault {
            Fault::NoVerb => "No argument 'verb' found".to_owned(),
            Fault::UnknownVerb(name) => format!("Unknown verb '{name}'"),
            Fault::RepeatedVerb(names) => format!("Verb must be singular, given: '[{}]'", names.join(", ")),
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_whose_time_cannot_be_read_is_left_out() {
        let dated = |changed: &str| Dated::of(Member { changed: changed.to_owned(), ..Member::default() });
        assert_eq!(dated("2026-02-01T10:00:01Z").map(|it| it.changed_ms), Some(1_769_940_001_000));
        assert!(dated("").is_none());
        assert!(dated("in spring").is_none());
    }
}
