//! The instances of a tenant as a repository of OAI-PMH.

use pinakes_oai_pmh::{Fault, Format, Identity, Page, Record, Repository, Selection, Set};
use pinakes_store::{Direction, Expr, Query, Record as Stored, View};

use super::described::{Form, Manner, SET, described};
use super::listed;
use crate::inventory::harvested::{GONE, changed_ms};
use crate::inventory::instances::INSTANCES;
use crate::platform::error::FolioError;
use crate::platform::values::parse_uuid;

/// The instances as one reader sees them.
pub(super) struct Instances<'a, 'v> {
    pub(super) view: &'a mut View<'v>,
    pub(super) manner: &'a Manner,
    /// Name of the repository, unless the tenant has set one.
    pub(super) name: &'a str,
    pub(super) mail: &'a str,
    pub(super) now_ms: i64,
}

impl Instances<'_, '_> {
    /// Returns the record with an identifier, or what a deleted one left behind.
    fn found(&mut self, identifier: &str) -> Result<Option<Stored>, FolioError> {
        let Some(id) = identifier.strip_prefix(&self.manner.prefix).and_then(parse_uuid) else {
            return Ok(None);
        };
        match self.view.get(&INSTANCES.kind, &id)? {
            Some(record) => Ok(Some(record)),
            None => Ok(self.view.get(&GONE, &id)?),
        }
    }
}

impl Repository for Instances<'_, '_> {
    type Error = FolioError;

    fn identity(&mut self) -> Result<Identity, FolioError> {
        let by_date =
            Query::filter(Expr::All).sorted("metadata.updatedDate", Direction::Ascending).window(0, 1);
        let earliest = match self.view.find(&INSTANCES.kind, &by_date)?.first() {
            Some(record) => changed_ms(&record.json()?),
            None => self.now_ms,
        };
        let config = &self.manner.config;
        let host = self.manner.prefix.split(':').nth(1).unwrap_or_default();
        let mail = match (&config.mail, self.mail) {
            (Some(mail), _) => mail.clone(),
            (None, "") => format!("noreply@{host}"),
            (None, mail) => mail.to_owned(),
        };
        Ok(Identity {
            name: config.repository.as_deref().unwrap_or(self.name).to_owned(),
            mail,
            earliest_ms: earliest,
            deletions: config.deletions,
        })
    }

    fn formats(&self) -> Vec<Format> {
        Form::offered()
    }

    fn formats_of(&mut self, identifier: &str) -> Result<Option<Vec<Format>>, FolioError> {
        Ok(self.found(identifier)?.map(|_| Form::offered()))
    }

    fn sets(&mut self) -> Result<Vec<Set>, FolioError> {
        Ok(vec![Set { spec: SET.to_owned(), name: SET.to_owned(), description: String::new() }])
    }

    fn record(&mut self, identifier: &str, prefix: &str) -> Result<Option<Record>, FolioError> {
        let Some(found) = self.found(identifier)? else { return Ok(None) };
        let instance = listed::with_newest(self.view, found.json()?)?;
        described(self.view, &instance, self.manner, Form::named(prefix), true)
    }

    fn list(&mut self, selection: &Selection<'_>) -> Result<Option<Page>, FolioError> {
        listed::page(self.view, selection, self.manner)
    }

    /// The sentences of mod-oai-pmh, where they are known.
    fn sentence(&self, fault: &Fault) -> String {
        match fault {
            Fault::NoVerb => "Bad verb. Verb '' is not implemented".to_owned(),
            Fault::UnknownVerb(name) => format!("Bad verb. Verb '{name}' is not implemented"),
            Fault::UnknownArgument(verb, name) => format!("Verb '{}', illegal argument: {name}", verb.name()),
            Fault::RepeatedArgument(verb, name) => {
                format!("Verb '{}', argument '{name}' is given more than once", verb.name())
            }
            Fault::NotAlone(verb, name) => format!(
                "Verb '{}', argument '{name}' is exclusive, no others maybe specified with it.",
                verb.name()
            ),
            Fault::MissingArgument(_, name) => format!("Missing required parameter: {name}"),
            Fault::MixedGranularity(..) => {
                "Invalid date range: 'from' must have the same granularity as 'until'.".to_owned()
            }
            Fault::Reversed(..) => {
                "Invalid date range: 'from' must be less than or equal to 'until'.".to_owned()
            }
            Fault::NothingFound => "There is no any record found matching search criteria".to_owned(),
            other => other.to_string(),
        }
    }
}
