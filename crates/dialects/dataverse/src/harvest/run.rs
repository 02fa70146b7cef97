//! A run of a client: the list of records, page by page.

use pinakes_http::Db;
use pinakes_store::{Expr, Lease, Query, Txn, View, Weight};

use super::take_in::{self, Record};
use super::{CLIENT, Client, fetch};
use crate::app::Dataverse;
use crate::error::ApiError;
use crate::stored;
use crate::xml_tree::Element;

/// The queue of runs; jobs have the names of their clients.
pub(super) const QUEUE: &str = "dataverse-harvest";
/// Time without a sign of life after which another server takes over a run, in milliseconds.
const LEASE_MS: u32 = 300_000;
/// Maximum number of pages in one run.
const PAGES: usize = 100_000;

/// Starts a queued run.
pub(super) fn begin(app: &Dataverse, db: &Db, name: &str) {
    let (app, db, name) = (app.clone(), db.clone(), name.to_owned());
    tokio::spawn(async move {
        if let Err(error) = run(&app, &db, &name).await {
            tracing::error!(client = name, error = error.message, "a run of a harvesting client was aborted");
        }
    });
}

/// Resumes runs that a server abandoned.
pub(crate) async fn resume(app: &Dataverse, db: &Db) -> Result<(), ApiError> {
    let read = |view: &mut View<'_>| stored::find::<Client>(view, &CLIENT, &Query::filter(Expr::All));
    let all: Vec<Client> = db.read(Weight::Scan, read).await?;
    for client in all.iter().filter(|it| it.in_progress) {
        begin(app, db, &client.nick_name);
    }
    Ok(())
}

/// Counts of one run.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    n_harvested: u64,
    n_deleted: u64,
    n_failed: u64,
}

async fn run(app: &Dataverse, db: &Db, name: &str) -> Result<(), ApiError> {
    let (wanted, owner) = (name.to_owned(), uuid::Uuid::new_v4().to_string());
    let take = move |txn: &mut Txn<'_>| -> Result<_, ApiError> {
        let lease = txn.take_lease_of(QUEUE, &wanted, &owner, LEASE_MS)?;
        lease.map(|lease| Ok::<_, ApiError>((lease, super::named(txn, &wanted)?))).transpose()
    };
    let Some((mut lease, client)) = db.write(take).await? else { return Ok(()) };
    let began = app.now();
    let mut counts = Counts::default();
    let fault = pages(app, db, &client, &mut lease, &mut counts).await.err();
    let name = name.to_owned();
    let finish = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        txn.finish_job(&lease)?;
        let Some(mut client) = stored::get::<Client>(txn, &CLIENT, &name)? else { return Ok(()) };
        client.in_progress = false;
        let outcome = &mut client.outcome;
        outcome.last = Some(began.clone());
        (outcome.n_harvested, outcome.n_deleted) = (counts.n_harvested, counts.n_deleted);
        outcome.n_failed = counts.n_failed;
        outcome.result = Some(match &fault {
            Some(fault) => format!("FAILED: {}", fault.message),
            None if counts.n_failed != 0 => "PARTIAL".to_owned(),
            None => "SUCCESS".to_owned(),
        });
        if fault.is_none() {
            outcome.last_successful = Some(began.clone());
            if counts.n_harvested + counts.n_deleted != 0 {
                outcome.last_non_empty = Some(began.clone());
            }
        }
        stored::put(txn, &CLIENT, &name, &client)
    };
    db.write(finish).await
}

/// Processes all pages of the list. Errors: the provider does not answer, or reports an error.
async fn pages(
    app: &Dataverse,
    db: &Db,
    client: &Client,
    lease: &mut Lease,
    counts: &mut Counts,
) -> Result<(), ApiError> {
    let mut token: Option<String> = None;
    for _ in 0..PAGES {
        let page = page(client, token.as_deref()).await.map_err(ApiError::internal)?;
        for record in page.records {
            let is_deletion = record.is_deleted;
            match take_in::take(app, db, client, record).await {
                Ok(true) if is_deletion => counts.n_deleted += 1,
                Ok(true) => counts.n_harvested += 1,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(client = client.nick_name, error = error.message, "a record was skipped");
                    counts.n_failed += 1;
                }
            }
        }
        let held = lease.clone();
        let renew = move |txn: &mut Txn<'_>| Ok::<_, ApiError>(txn.renew_lease(&held, LEASE_MS)?);
        *lease = db.write(renew).await?;
        match page.token {
            Some(next) if token.as_ref() == Some(&next) => {
                return Err(ApiError::internal("the provider gives the same page again and again"));
            }
            Some(next) => token = Some(next),
            None => return Ok(()),
        }
    }
    Err(ApiError::internal(format!("the provider's list has more than {PAGES} pages")))
}

/// Some records, and the token for the next ones.
struct Page {
    records: Vec<Record>,
    token: Option<String>,
}

async fn page(client: &Client, token: Option<&str>) -> Result<Page, String> {
    let mut parameters = vec![("verb", "ListRecords")];
    // Every provider supports dates without a time.
    let since = client.outcome.last_successful.as_deref().and_then(|it| it.get(..10));
    match token {
        Some(token) => parameters.push(("resumptionToken", token)),
        None => {
            parameters.push(("metadataPrefix", &client.metadata_format));
            parameters.extend(client.set.as_deref().map(|it| ("set", it)));
            parameters.extend(since.map(|it| ("from", it)));
        }
    }
    let bytes = fetch::get(&client.harvest_url, &parameters, client.custom_headers.as_deref()).await?;
    read(&bytes)
}

/// Parses an answer to `ListRecords`. Errors: it is invalid, or the provider reports an error.
fn read(bytes: &[u8]) -> Result<Page, String> {
    let root = Element::read(bytes).map_err(|fault| format!("the provider's answer is no XML: {fault}"))?;
    if root.name != "OAI-PMH" {
        return Err(format!("the provider's answer is {}; expected OAI-PMH", root.name));
    }
    if let Some(error) = root.all("error").first() {
        return match error.attribute("code") {
            "noRecordsMatch" => Ok(Page { records: Vec::new(), token: None }),
            code => Err(format!("the provider refuses: {code} {}", error.plain())),
        };
    }
    let list = root.all("ListRecords");
    let list = list.first().ok_or("the provider's answer has no ListRecords")?;
    let records = list.all("record").into_iter().filter_map(Record::of).collect();
    let token = list.all("resumptionToken").first().map(|it| it.plain()).filter(|it| !it.is_empty());
    Ok(Page { records, token })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read() {
        let page = read(
            b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><ListRecords>\
              <record><header><identifier>doi:10.1/A</identifier><datestamp>2026-01-31T00:00:00Z</datestamp></header>\
              <metadata><oai_dc:dc xmlns:oai_dc='x'><dc:title xmlns:dc='y'>T</dc:title></oai_dc:dc></metadata></record>\
              <record><header status='deleted'><identifier>doi:10.1/B</identifier></header></record>\
              <resumptionToken> next </resumptionToken></ListRecords></OAI-PMH>",
        )
        .unwrap();
        let found: Vec<(&str, bool)> =
            page.records.iter().map(|it| (it.identifier.as_str(), it.is_deleted)).collect();
        assert_eq!(found, [("doi:10.1/A", false), ("doi:10.1/B", true)]);
        assert_eq!(page.token.as_deref(), Some("next"));
    }

    #[test]
    fn refusals_are_told() {
        let answer = |inner: &str| read(format!("<OAI-PMH>{inner}</OAI-PMH>").as_bytes());
        assert!(answer("<error code='noRecordsMatch'/>").unwrap().records.is_empty());
        for (inner, part) in [
            ("<error code='badArgument'>no such set</error>", "badArgument no such set"),
            ("<Identify/>", "no ListRecords"),
        ] {
            assert!(answer(inner).err().unwrap().contains(part), "{inner}");
        }
        assert!(read(b"<html/>").err().unwrap().contains("expected OAI-PMH"));
        assert!(read(b"nothing").is_err());
    }
}
