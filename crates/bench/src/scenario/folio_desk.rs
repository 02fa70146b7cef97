//! `folio-desk`: check-out and check-in at the desks of a library, as the published check-in/check-out script does.
//!
//! Each of N users at a desk checks an item out by barcode and in again, over and over, with the reads that the pages
//! of the desk make around it and the `OPTIONS` that a browser sends before each. An import that runs on the server
//! meanwhile is detected and named in the step.

mod library;
pub(super) mod times;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use http::Method;
use serde_json::{Value, json};

use self::library::{Item, PATRON_GROUP, Patron};
use self::times::Times;
use super::folio::{FolioArgs, Session};
use super::{CommonArgs, Scale};
use crate::client::Request;
use crate::error::BenchError;
use crate::load::{Group, Load, Loops, Script, Step, User, Work};
use crate::published;
use crate::report::markdown::in_words;
use crate::result::Table;
use crate::runner::{Finished, Runner};
use crate::scenario::folio_desk::library::listed;
use crate::stop::Stop;
use crate::verdict::{ms, thousands};

pub(super) use self::library::Library;

/// A service point that every FOLIO has.
const SERVICE_POINT: &str = "3a40852d-49fd-4df2-a1f9-6e2641a6e91f";

/// The requests of the script, by their place in [`Script::flows`].
const CHECK_OUT: usize = 0;
const CHECK_IN: usize = 1;
const READS: usize = 2;
const PREFLIGHT: usize = 3;
/// The timed transactions; figures for the first one were published.
pub(super) const WHOLE_CHECK_OUT: &str = "a check-out with its reads";
const WHOLE_CHECK_IN: &str = "a check-in with its reads";
const CHECK_OUT_ALONE: &str = "the request of a check-out";
const CHECK_IN_ALONE: &str = "the request of a check-in";
pub(super) const TIMED: [&str; 4] = [WHOLE_CHECK_OUT, CHECK_OUT_ALONE, WHOLE_CHECK_IN, CHECK_IN_ALONE];
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
    /// Items of each user, checked out in turn.
    #[arg(long, default_value_t = 20)]
    pub items: usize,
    /// Send only the check-outs and check-ins, without the reads and `OPTIONS` around them.
    #[arg(long)]
    pub bare: bool,
    /// Pause of a user after each item, in milliseconds; not part of any transaction's time.
    #[arg(long, default_value_t = 0)]
    pub think_ms: u64,
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
    let header = ["step", "transaction", "p50", "p95", "measured", "published"].map(str::to_owned).to_vec();
    let mut table = Table { title: "Transactions".to_owned(), rows: vec![header], summary: String::new() };
    for n_desks in args.desks() {
        let beside = session.is_import_running().await?;
        let times = Times::default();
        let what = if beside { "beside an import" } else { "no import" };
        let habit = Habit { is_bare: args.bare, think: Duration::from_millis(args.think_ms) };
        let group = desks(session, library, n_desks, habit, &times);
        let step = desk_step(runner, n_desks, what, vec![group]);
        let measured = times::measure(runner, &step, &times).await?;
        for (transaction, took) in TIMED.iter().filter_map(|it| Some((*it, measured.get(it)?))) {
            let published =
                published::folio_check_out_ms(n_desks, beside).filter(|_| transaction == WHOLE_CHECK_OUT);
            if transaction == if args.bare { CHECK_OUT_ALONE } else { WHOLE_CHECK_OUT } {
                table.summary = format!("{transaction} at {n_desks} desks: p95 {}", ms(took.p95_ms));
            }
            table.rows.push(vec![
                step.name.clone(),
                transaction.to_owned(),
                ms(took.p50_ms),
                ms(took.p95_ms),
                thousands(took.n as u64),
                published.map_or("–".to_owned(), |it| in_words(it, ms)),
            ]);
        }
    }
    runner.result.tables.push(table);
    Ok(())
}

/// Returns a step of desks and concurrent groups.
pub(super) fn desk_step(runner: &Runner, n_desks: usize, import: &str, groups: Vec<Group>) -> Step {
    let labels = [("desks", n_desks.to_string()), ("import", import.to_owned())];
    Step {
        name: format!("{n_desks} desks, {import}"),
        labels: labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        warmup: runner.timing.warmup,
        measured: runner.timing.measured,
        groups,
    }
}

/// How users at desks work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habit {
    /// Without the reads and `OPTIONS` around check-out and check-in.
    pub(super) is_bare: bool,
    /// Pause after each item.
    pub(super) think: Duration,
}

/// Returns users at desks, who check out and check in until the step is over.
pub(super) fn desks(
    session: &Session,
    library: &Library,
    n_desks: usize,
    habit: Habit,
    times: &Times,
) -> Group {
    Group {
        name: String::new(),
        load: Load::Closed { ramp_up: Duration::ZERO, loops: Loops::UntilEnd, think: habit.think },
        connections: n_desks,
        work: Work::Script(script(session, library, habit.is_bare, times)),
    }
}

/// Returns the script of one item checked out and in.
fn script(session: &Session, library: &Library, is_bare: bool, times: &Times) -> Script {
    let desk = Arc::new(Desk { session: session.clone(), library: library.clone(), is_bare });
    let times = times.clone();
    Script {
        flows: FLOWS.iter().map(|it| (*it).to_owned()).collect(),
        body: Arc::new(move |user, pass| {
            let (desk, times) = (Arc::clone(&desk), times.clone());
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
        let began = Instant::now();
        self.read(user, &self.before_lending(patron, item)).await?;
        let sent = Instant::now();
        let body = json!({
            "itemBarcode": item.barcode, "userBarcode": patron.barcode, "servicePointId": SERVICE_POINT,
        });
        self.post(user, CHECK_OUT, "/circulation/check-out-by-barcode", &body).await?;
        times.add(CHECK_OUT_ALONE, sent, sent.elapsed());
        self.read(user, &after_lending(patron)).await?;
        self.note_whole(times, WHOLE_CHECK_OUT, began);

        let began = Instant::now();
        self.read(user, &self.before_taking_back(item)).await?;
        let now = time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339);
        let sent = Instant::now();
        let body = json!({
            "itemBarcode": item.barcode, "servicePointId": SERVICE_POINT, "checkInDate": now.unwrap_or_default(),
        });
        self.post(user, CHECK_IN, "/circulation/check-in-by-barcode", &body).await?;
        times.add(CHECK_IN_ALONE, sent, sent.elapsed());
        self.read(user, &after_taking_back(patron, item)).await?;
        self.note_whole(times, WHOLE_CHECK_IN, began);
        Ok(())
    }

    fn note_whole(&self, times: &Times, what: &'static str, began: Instant) {
        if !self.is_bare {
            times.add(what, began, began.elapsed());
        }
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

    /// Returns the requests of the check-out page, the patron, the item.
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

    /// Returns the requests of the check-in page and the item.
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
