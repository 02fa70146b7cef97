//! `folio-desk`: lending and taking back at the desks of a library, as the published check-in/check-out script does.
//!
//! Each of N users at a desk lends an item by barcode and takes it back, over and over, with the reads that the pages
//! of the desk make around it and the `OPTIONS` that a browser sends before each. An import that runs on the server
//! meanwhile is noticed and named in the step.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use http::Method;
use serde_json::{Value, json};

use super::folio::{FolioArgs, Session};
use super::scicat::escaped;
use super::{CommonArgs, Scale};
use crate::client::Request;
use crate::error::BenchError;
use crate::load::{Group, Load, Loops, Script, Step, User, Work};
use crate::published;
use crate::result::StepKind;
use crate::runner::{Finished, Runner};
use crate::stop::Stop;
use crate::verdict::{ms, thousands};

/// Reference data that is the same in every FOLIO.
const SERVICE_POINT: &str = "3a40852d-49fd-4df2-a1f9-6e2641a6e91f";
const LOCATION: &str = "fcd64ce1-6995-48f0-840e-89ffa2288371";
const MATERIAL_TYPE: &str = "1a54b431-2e4f-452d-9cae-9cee66c9a892";
const LOAN_TYPE: &str = "2b94c631-fca9-4892-a730-03ee529ffe27";
const INSTANCE_TYPE: &str = "30fffe0e-e985-4144-b2e2-1e8179bdb41f";
const HOLDINGS_SOURCE: &str = "f32d531e-df79-46b3-8932-cdd35f7a2264";
const PATRON_GROUP: &str = "3684a786-6671-4268-8ed0-9db82ebca60b";

/// The requests of the script, by their place in [`Script::flows`].
const CHECK_OUT: usize = 0;
const CHECK_IN: usize = 1;
const READS: usize = 2;
const PREFLIGHT: usize = 3;
/// The transaction whose time was published.
const WHOLE_CHECK_OUT: &str = "a check-out with its reads";
const FLOWS: [&str; 4] = ["check-out", "check-in", "reads of the page", "OPTIONS"];

/// Options of the scenario.
#[derive(Clone, Debug, Args)]
pub struct FolioDeskArgs {
    /// Server, scale and report.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Tenant and account.
    #[command(flatten)]
    pub folio: FolioArgs,
    /// Numbers of users at desks. Default: by scale, 5 or 1,5,20.
    #[arg(long, value_delimiter = ',')]
    pub desks: Vec<usize>,
    /// Items of each user, lent in turn.
    #[arg(long, default_value_t = 20)]
    pub items: usize,
    /// Send the lending and taking back alone, without the reads and `OPTIONS` around them.
    #[arg(long)]
    pub bare: bool,
    /// Leave the data in the server afterwards.
    #[arg(long)]
    pub keep_data: bool,
}

impl FolioDeskArgs {
    fn desks(&self) -> Vec<usize> {
        match (self.desks.is_empty(), self.common.scale) {
            (false, _) => self.desks.clone(),
            (true, Scale::Quick) => vec![5],
            (true, Scale::Seed | Scale::Full) => vec![1, 5, 20],
        }
    }
}

/// Runs the scenario and writes its report.
pub async fn run(args: &FolioDeskArgs, stop: &Stop) -> Result<Finished, BenchError> {
    let title = "FOLIO: check-out and check-in at the desks";
    let mut runner = args.common.begin("folio-desk", title, stop).await?;
    let outcome = run_on(args, &mut runner).await;
    Ok(runner.finish(outcome))
}

async fn run_on(args: &FolioDeskArgs, runner: &mut Runner) -> Result<(), BenchError> {
    let session = Session::begin(&runner.target, &args.folio).await?;
    let n_desks = args.desks().into_iter().max().unwrap_or(1);
    let mut library = Library::new();
    let outcome = match library.prepare(&session, n_desks, args.items.max(1)).await {
        Ok(()) => measure(args, runner, &session, &library).await,
        Err(error) => Err(error),
    };
    let gone = matches!(&outcome, Err(BenchError::ServerGone { .. } | BenchError::CannotConnect { .. }));
    if gone || args.keep_data {
        runner.note(format!("the data was left in the server; its barcodes begin with {}", library.tag));
        return outcome;
    }
    let n_left = library.clean(&session).await?;
    if 0 < n_left {
        runner.note(format!(
            "{n_left} records could not be removed; their barcodes begin with {}",
            library.tag
        ));
    }
    outcome
}

async fn measure(
    args: &FolioDeskArgs,
    runner: &mut Runner,
    session: &Session,
    library: &Library,
) -> Result<(), BenchError> {
    for n_desks in args.desks() {
        let beside = session.is_import_running().await?;
        let times: Times = Arc::default();
        let script = script(session, library, args.bare, &times);
        let what = if beside { "beside an import" } else { "no import" };
        let labels = [("desks", n_desks.to_string()), ("import", what.to_owned())];
        let step = Step {
            name: format!("{n_desks} desks, {what}"),
            labels: labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            warmup: runner.timing.warmup,
            measured: runner.timing.measured,
            groups: vec![Group {
                name: String::new(),
                load: Load::Closed { ramp_up: Duration::ZERO, loops: Loops::UntilEnd, think: Duration::ZERO },
                connections: n_desks,
                work: Work::Script(script),
            }],
        };
        runner.measure(&step, StepKind::Closed, None).await?;
        let times = std::mem::take(&mut *times.lock().unwrap_or_else(PoisonError::into_inner));
        for (what, mut times_ms) in times {
            times_ms.sort_by(f64::total_cmp);
            let published =
                published::folio_check_out_ms(n_desks, beside).filter(|_| what == WHOLE_CHECK_OUT);
            let published = published.map_or_else(String::new, |it| match it.low < it.high {
                true => format!("; published: {} to {}", ms(it.low), ms(it.high)),
                false => format!("; published: {}", ms(it.low)),
            });
            runner.note(format!(
                "{}, {what}: p50 {}, p95 {} ({} times, the warm-up's included){published}",
                step.name,
                ms(quantile(&times_ms, 0.5)),
                ms(quantile(&times_ms, 0.95)),
                thousands(times_ms.len() as u64)
            ));
        }
    }
    Ok(())
}

/// Times in milliseconds, by what took them.
type Times = Arc<Mutex<BTreeMap<&'static str, Vec<f64>>>>;

/// The smallest value that at least a share `q` of the sorted values does not exceed.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a position in the list")]
    let rank = (sorted.len() as f64 * q).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// One item lent and taken back.
fn script(session: &Session, library: &Library, is_bare: bool, times: &Times) -> Script {
    let desk = Arc::new(Desk { session: session.clone(), library: library.clone(), is_bare });
    let times = Arc::clone(times);
    Script {
        flows: FLOWS.iter().map(|it| (*it).to_owned()).collect(),
        body: Arc::new(move |user, pass| {
            let (desk, times) = (Arc::clone(&desk), Arc::clone(&times));
            Box::pin(async move { desk.pass(user, pass, &times).await })
        }),
    }
}

struct Desk {
    session: Session,
    library: Library,
    is_bare: bool,
}

impl Desk {
    async fn pass(&self, user: &mut User, pass: u64, times: &Times) -> Result<(), ()> {
        let patron = &self.library.patrons[user.index % self.library.patrons.len()];
        let items = &patron.items;
        #[expect(clippy::cast_possible_truncation, reason = "the rest is below the number of items")]
        let item = &items[(pass % items.len() as u64) as usize];
        let mut took = Vec::new();
        let began = Instant::now();
        self.read(user, &self.before_lending(patron, item)).await?;
        let sent = Instant::now();
        let body = json!({
            "itemBarcode": item.barcode, "userBarcode": patron.barcode, "servicePointId": SERVICE_POINT,
        });
        self.post(user, CHECK_OUT, "/circulation/check-out-by-barcode", &body).await?;
        took.push(("the request of a check-out", sent.elapsed()));
        self.read(user, &after_lending(patron)).await?;
        took.push((WHOLE_CHECK_OUT, began.elapsed()));

        let began = Instant::now();
        self.read(user, &self.before_taking_back(item)).await?;
        let now = time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339);
        let sent = Instant::now();
        let body = json!({
            "itemBarcode": item.barcode, "servicePointId": SERVICE_POINT, "checkInDate": now.unwrap_or_default(),
        });
        self.post(user, CHECK_IN, "/circulation/check-in-by-barcode", &body).await?;
        took.push(("the request of a check-in", sent.elapsed()));
        self.read(user, &after_taking_back(patron, item)).await?;
        took.push(("a check-in with its reads", began.elapsed()));

        let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
        for (what, took) in took {
            if !self.is_bare || what.starts_with("the request") {
                times.entry(what).or_default().push(took.as_secs_f64() * 1e3);
            }
        }
        Ok(())
    }

    async fn read(&self, user: &mut User, paths: &[String]) -> Result<(), ()> {
        for path in paths.iter().filter(|_| !self.is_bare) {
            self.preflight(user, path).await?;
            let request = Request::get(self.session.path(path), &self.session.headers());
            user.send(READS, request).await?;
        }
        Ok(())
    }

    async fn post(&self, user: &mut User, flow: usize, path: &str, body: &Value) -> Result<(), ()> {
        if !self.is_bare {
            self.preflight(user, path).await?;
        }
        let body = Bytes::from(body.to_string());
        user.send(flow, Request::post(self.session.path(path), &self.session.headers(), body)).await.map(drop)
    }

    async fn preflight(&self, user: &mut User, path: &str) -> Result<(), ()> {
        let headers = self.session.preflight_headers();
        let request = Request { method: Method::OPTIONS, ..Request::get(self.session.path(path), &headers) };
        user.send(PREFLIGHT, request).await.map(drop)
    }

    /// The check-out page, the patron, the item.
    fn before_lending(&self, patron: &Patron, item: &Item) -> Vec<String> {
        let (id, barcode) = (&patron.id, &patron.barcode);
        vec![
            listed("/configurations/entries", "(module==CHECKOUT and configName==other_settings)", ""),
            listed("/configurations/entries", "(module==ORG and configName==localeSettings)", ""),
            "/groups".to_owned(),
            listed(
                "/users",
                &format!(
                    "(barcode==\"{barcode}\" or externalSystemId==\"{barcode}\" or id==\"{barcode}\" or username==\"{barcode}\")"
                ),
                "",
            ),
            listed("/groups", &format!("(id=={PATRON_GROUP})"), ""),
            listed("/accounts", &format!("(userId=={id} and status.name<>Closed)"), ""),
            listed("/circulation/loans", &format!("(userId=={id} and status.name<>Closed)"), "&limit=1"),
            listed("/circulation/requests", &format!("(requesterId=={id} and status==\"Open*\")"), ""),
            listed("/proxiesfor", &format!("(userId=={id})"), ""),
            listed("/proxiesfor", &format!("(proxyUserId=={id})"), ""),
            listed("/manualblocks", &format!("(userId=={id})"), ""),
            format!("/automated-patron-blocks/{id}?limit=100"),
            listed("/inventory/items", &format!("barcode==\"{}\"", item.barcode), ""),
        ]
    }

    /// The check-in page and the item.
    fn before_taking_back(&self, item: &Item) -> Vec<String> {
        vec![
            "/groups".to_owned(),
            "/staff-slips-storage/staff-slips?limit=1000".to_owned(),
            "/service-points?limit=1000".to_owned(),
            listed("/configurations/entries", "(module==CHECKOUT and configName==other_settings)", ""),
            listed("/inventory/items", &format!("barcode==\"{}\"", item.barcode), "&limit=1000"),
        ]
    }
}

fn after_lending(patron: &Patron) -> Vec<String> {
    let id = &patron.id;
    vec![
        listed("/circulation/loans", &format!("(userId=={id} and status.name<>Closed)"), ""),
        format!("/automated-patron-blocks/{id}"),
        listed("/circulation/requests", &format!("(requesterId=={id} and status==\"Open*\")"), ""),
    ]
}

fn after_taking_back(patron: &Patron, item: &Item) -> Vec<String> {
    let (user, item) = (&patron.id, &item.id);
    vec![
        listed(
            "/circulation/requests",
            &format!(
                "(itemId=={item} and (status==\"Open - Awaiting pickup\" or status==\"Open - In transit\"))"
            ),
            "",
        ),
        listed("/lost-item-fees-policies", "cql.allRecords=1", ""),
        listed("/accounts", &format!("(userId=={user} and itemId=={item} and status.name==Open)"), ""),
        listed("/accounts", &format!("(userId=={user} or itemId=={item})"), ""),
    ]
}

fn listed(path: &str, query: &str, rest: &str) -> String {
    format!("{path}?query={}{rest}", escaped(query))
}

/// What the run put into the server.
#[derive(Debug, Clone)]
struct Library {
    /// What the run's barcodes begin with.
    tag: String,
    instance: Option<String>,
    holdings: Option<String>,
    patrons: Vec<Patron>,
}

#[derive(Debug, Clone)]
struct Patron {
    id: String,
    barcode: String,
    items: Vec<Item>,
}

#[derive(Debug, Clone)]
struct Item {
    id: String,
    barcode: String,
}

impl Library {
    fn new() -> Self {
        let tag = format!("pinakes-bench-{:x}", time::OffsetDateTime::now_utc().unix_timestamp());
        Self { tag, instance: None, holdings: None, patrons: Vec::new() }
    }

    async fn prepare(
        &mut self,
        session: &Session,
        n_patrons: usize,
        n_items: usize,
    ) -> Result<(), BenchError> {
        let instance =
            json!({"source": "FOLIO", "title": "A book for the desk", "instanceTypeId": INSTANCE_TYPE});
        let instance = session.create("/instance-storage/instances", &instance).await?;
        self.instance = Some(instance.clone());
        let holdings =
            json!({"instanceId": instance, "permanentLocationId": LOCATION, "sourceId": HOLDINGS_SOURCE});
        let holdings = session.create("/holdings-storage/holdings", &holdings).await?;
        self.holdings = Some(holdings.clone());
        for n in 0..n_patrons {
            let barcode = format!("{}-p{n}", self.tag);
            let user = json!({
                "username": barcode, "barcode": barcode, "active": true, "patronGroup": PATRON_GROUP,
                "personal": {"lastName": "Bench", "firstName": format!("{n}"), "preferredContactTypeId": "002"},
            });
            let id = session.create("/users", &user).await?;
            self.patrons.push(Patron { id, barcode, items: Vec::new() });
            for item in 0..n_items {
                let barcode = format!("{}-i{n}-{item}", self.tag);
                let body = json!({
                    "holdingsRecordId": holdings, "barcode": barcode, "materialTypeId": MATERIAL_TYPE,
                    "permanentLoanTypeId": LOAN_TYPE, "status": {"name": "Available"},
                });
                let id = session.create("/item-storage/items", &body).await?;
                self.patrons[n].items.push(Item { id, barcode });
            }
        }
        Ok(())
    }

    /// Removes what the run made, loans first; gives how many records stayed.
    async fn clean(&self, session: &Session) -> Result<u64, BenchError> {
        let mut n_left = 0;
        for patron in &self.patrons {
            n_left += remove_loans(session, patron).await?;
            for item in &patron.items {
                // The rows of check-ins; not every server lets them go.
                session
                    .try_delete(&listed("/check-in-storage/check-ins", &format!("itemId=={}", item.id), ""))
                    .await?;
                n_left += session.delete(&format!("/item-storage/items/{}", item.id)).await?;
            }
            n_left += session.delete(&format!("/users/{}", patron.id)).await?;
        }
        for (path, id) in
            [("/holdings-storage/holdings", &self.holdings), ("/instance-storage/instances", &self.instance)]
        {
            if let Some(id) = id {
                n_left += session.delete(&format!("{path}/{id}")).await?;
            }
        }
        Ok(n_left)
    }
}

/// Deletes the loans of a patron page by page.
async fn remove_loans(session: &Session, patron: &Patron) -> Result<u64, BenchError> {
    const PAGE: usize = 100;
    let path = listed("/loan-storage/loans", &format!("userId=={}", patron.id), &format!("&limit={PAGE}"));
    loop {
        let page = session.get(&path).await?;
        let ids: Vec<&str> =
            page["loans"].as_array().into_iter().flatten().filter_map(|it| it["id"].as_str()).collect();
        let mut n_left = 0;
        for id in &ids {
            n_left += session.delete(&format!("/loan-storage/loans/{id}")).await?;
        }
        if ids.is_empty() || 0 < n_left {
            return Ok(n_left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((quantile(&values, 0.5), quantile(&values, 0.95)), (50.0, 95.0));
        assert_eq!((quantile(&values[..1], 0.95), quantile(&[], 0.95)), (1.0, 0.0));
    }
}
