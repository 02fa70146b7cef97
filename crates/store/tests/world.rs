//! A simulated world: servers on one folder, clients that reach them over a network, workers that share jobs by leases,
//! a clock, a disk, backups and failures. A seed decides the order of events; a model tells what must be there.
//!
//! - The network holds requests and answers; it delivers them in any order, more than once, or never. Clients without
//!   an answer retry, on any server.
//! - The world sets the clock (`pinakes_test_support::clock`), forward and back.
//! - The disk keeps what was flushed and any part of the rest (`pinakes_test_support::power`). When the power fails all
//!   servers die; after the restart they find one of the possible disks. When the machine is lost, the last backup is
//!   restored.
//!
//! Each step is complete before the next one begins, so the same seed gives the same run with the same result of each
//! step. Concurrency of the engine's threads is tested in `src/sqlite/simulation.rs`.
//!
//! `PINAKES_SIMULATION_SEED` selects another run, `PINAKES_SIMULATION_STEPS` is its length; both are printed on
//! failure.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pinakes_store::{
    Catalogue, Column, Expr, Facet, Index, Kind, Lease, Limits, Location, StoreError, Tenant, Txn, Type,
};
use pinakes_test_support::clock;
use pinakes_test_support::power::{Dice, Recording, number};
use serde_json::{Value as Json, json};

pinakes_test_support::record_flushes!();
pinakes_test_support::set_clock!();

/// A sum and the changes that it consists of. Some have no place: it is null, or absent.
static SUM: Kind = Kind {
    columns: &[Column::one("place", Type::Text), Column::one("n", Type::Integer)],
    indexes: &[Index::on(&["place"])],
    facets: &[Facet::values("place")],
    class_fields: &["group"],
    ..Kind::named("sum")
};
/// The result of a job.
static RESULT: Kind = Kind {
    columns: &[Column::one("turn", Type::Integer)],
    facets: &[Facet::values("turn")],
    ..Kind::named("result")
};
static KINDS: &[&Kind] = &[&SUM, &RESULT];

const TENANT: &str = "t";
const QUEUE: &str = "jobs";
const N_SERVERS: usize = 3;
const N_CLIENTS: usize = 6;
const N_WORKERS: usize = 4;
const N_SUMS: usize = 12;
/// Concurrent jobs: hardly more than workers, so that they compete for them.
const N_JOBS: usize = 6;
/// Maximum number of messages in the network.
const N_MESSAGES: usize = 40;
const PLACES: [Option<&str>; 4] = [None, Some("fen"), Some("loam"), Some("reef")];

/// A client's request.
#[derive(Debug, Clone)]
enum Request {
    Read,
    /// Adds to the record if it still has the version.
    Add {
        change: String,
        version: u64,
    },
}

#[derive(Debug, Clone)]
enum Answer {
    /// The version of the record, and the changes that it consists of.
    Found(u64, Vec<String>),
    Added,
    /// Somebody else has changed the record.
    Conflict,
}

#[derive(Debug, Clone)]
enum Message {
    Request { client: usize, attempt: u64, server: usize, sum: usize, request: Request },
    Answer { client: usize, attempt: u64, answer: Answer },
}

/// A client: adds one change after another to records.
#[derive(Debug, Default)]
struct Client {
    /// The current change: the record and the change's name.
    change: Option<(usize, String)>,
    n_changes: u64,
    /// Answers to earlier attempts are ignored.
    attempt: u64,
}

/// The expected state of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Job {
    turn: u64,
    until_ms: i64,
    is_held: bool,
}

/// The expected content.
#[derive(Debug, Clone, Default)]
struct Model {
    sums: BTreeMap<usize, (u64, Vec<String>)>,
    jobs: BTreeMap<String, Job>,
    results: BTreeMap<String, u64>,
}

/// A server on the folder.
struct Server {
    catalogue: Catalogue,
    tenant: Tenant,
}

struct World {
    dice: Dice,
    root: tempfile::TempDir,
    n_folders: usize,
    folder: PathBuf,
    recording: Option<Recording>,
    servers: Vec<Server>,
    network: Vec<Message>,
    clients: Vec<Client>,
    workers: Vec<Option<Lease>>,
    n_jobs: usize,
    model: Model,
    backup: Option<(PathBuf, Model)>,
    trace: Vec<String>,
}

fn id(sum: usize) -> String {
    format!("sum-{sum:02}")
}

fn body(sum: usize, changes: &[String]) -> Json {
    let mut body = json!({"n": changes.len(), "changes": changes, "group": sum % 3});
    match PLACES[(sum + changes.len()) % PLACES.len()] {
        Some(place) => body["place"] = place.into(),
        // A null place is no place either.
        None if changes.len().is_multiple_of(2) => body["place"] = Json::Null,
        None => {}
    }
    body
}

fn changes_of(body: &Json) -> Vec<String> {
    body["changes"].as_array().into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

fn open(folder: &Path) -> Result<Server, StoreError> {
    let limits = Limits { log_bytes: 64 << 10, index_pause_ms: 20, ..Limits::default() };
    let catalogue = Catalogue::open(Location::Folder(folder.to_owned()), KINDS, limits)?;
    let tenant = catalogue.tenant_or_new(TENANT)?;
    Ok(Server { catalogue, tenant })
}

/// Returns the differences between a tenant and the model.
fn differences(tenant: &Tenant, model: &Model) -> Result<Vec<String>, StoreError> {
    let mut faults = tenant.check()?;
    let mut compare = |what: &str, is: String, must: String| {
        if is != must {
            faults.push(format!("{what} is {is}, must be {must}"));
        }
    };
    tenant.read_blocking(|view| {
        for (sum, (version, changes)) in &model.sums {
            let found = view.get(&SUM, &id(*sum))?;
            let is = match &found {
                Some(it) => format!("{} {}", it.version, it.json()?),
                None => "nowhere".to_owned(),
            };
            compare(&id(*sum), is, format!("{version} {}", body(*sum, changes)));
        }
        compare(
            "the number of sums",
            view.count(&SUM, &Expr::All)?.to_string(),
            model.sums.len().to_string(),
        );
        let mut places = BTreeMap::new();
        for (sum, (_, changes)) in &model.sums {
            if let Some(place) = body(*sum, changes)["place"].as_str() {
                *places.entry(place.to_owned()).or_insert(0_u64) += 1;
            }
        }
        let counted = view.facets(&SUM, &Expr::All, &["place"])?.pop().unwrap_or_default();
        let counted: BTreeMap<String, u64> = counted.into_iter().map(|it| (it.value, it.n_records)).collect();
        compare("the facet of places", format!("{counted:?}"), format!("{places:?}"));
        let n_nowhere = view.count(&SUM, &Expr::Is("place".into(), pinakes_store::Value::Null))?;
        let must = model.sums.len() as u64 - places.values().sum::<u64>();
        compare("the number of those without a place", n_nowhere.to_string(), must.to_string());
        for (job, turn) in &model.results {
            let found = view.get(&RESULT, job)?.map(|it| it.json()).transpose()?;
            compare(
                &format!("the result of {job}"),
                format!("{found:?}"),
                format!("{:?}", Some(json!({"turn": turn}))),
            );
        }
        let n_results = view.count(&RESULT, &Expr::All)?;
        compare("the number of results", n_results.to_string(), model.results.len().to_string());
        let jobs = view.jobs(QUEUE, 10_000)?;
        let jobs: BTreeMap<String, Job> = jobs
            .into_iter()
            .map(|it| (it.id, Job { turn: it.turn, until_ms: it.until_ms, is_held: it.owner.is_some() }))
            .collect();
        compare("the queue", format!("{jobs:?}"), format!("{:?}", model.jobs));
        Ok::<_, StoreError>(())
    })?;
    Ok(faults)
}

impl World {
    fn new(seed: u64) -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("0");
        fs::create_dir(&folder).unwrap();
        let mut world = Self {
            dice: Dice::new(seed),
            root,
            n_folders: 1,
            folder,
            recording: None,
            servers: Vec::new(),
            network: Vec::new(),
            clients: (0..N_CLIENTS).map(|_| Client::default()).collect(),
            workers: vec![None; N_WORKERS],
            n_jobs: 0,
            model: Model::default(),
            backup: None,
            trace: Vec::new(),
        };
        world.come_up();
        for sum in 0..N_SUMS {
            world.write(0, move |txn| txn.insert(&SUM, &id(sum), &body(sum, &[])).map(drop)).unwrap();
            world.model.sums.insert(sum, (1, Vec::new()));
        }
        world
    }

    fn new_folder(&mut self) -> PathBuf {
        self.n_folders += 1;
        self.root.path().join((self.n_folders - 1).to_string())
    }

    /// Starts all servers.
    fn come_up(&mut self) {
        self.recording = Some(Recording::begin(&self.folder, |_| false, |_| false).unwrap());
        for n in 0..N_SERVERS {
            match open(&self.folder) {
                Ok(server) => self.servers.push(server),
                Err(error) => panic!("server {n} does not start: {error}; {}", self.last_steps()),
            }
        }
    }

    /// Kills all servers, with their workers and all messages to them. What they still write goes into a folder that
    /// nobody reads any more.
    fn go_down(&mut self) {
        self.recording = None;
        self.servers.clear();
        self.workers.fill(None);
        self.network.retain(|it| matches!(it, Message::Answer { .. }));
    }

    fn note(&mut self, what: String) {
        self.trace.push(what);
    }

    fn last_steps(&self) -> String {
        let from = self.trace.len().saturating_sub(12);
        format!("steps before: {:?}", &self.trace[from..])
    }

    fn write<R: Send + 'static>(
        &self,
        server: usize,
        closure: impl FnMut(&mut Txn<'_>) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        self.servers[server].tenant.write_blocking(closure)
    }

    fn compare(&self, tenant: &Tenant, when: &str) {
        let found = differences(tenant, &self.model).unwrap_or_else(|error| vec![error.to_string()]);
        assert!(found.is_empty(), "{when}: {found:?}; {}", self.last_steps());
    }

    fn step(&mut self) {
        match self.dice.below(100) {
            0..=29 => self.deliver(),
            30..=54 => self.ask(),
            55..=74 => self.work(),
            75..=82 => self.let_time_pass(),
            83..=87 => self.queue(),
            88..=91 => self.look(),
            92..=93 => self.restart_one(),
            94..=96 => self.back_up(),
            97..=98 => self.lose_power(),
            _ => self.lose_the_machine(),
        }
    }

    fn send(&mut self, message: Message) {
        if self.network.len() < N_MESSAGES {
            self.network.push(message);
        }
    }

    /// Lets a client begin a change, or retry after it has waited long enough.
    fn ask(&mut self) {
        let client = self.dice.below(N_CLIENTS);
        let (sum, server) = (self.dice.below(N_SUMS), self.dice.below(N_SERVERS));
        let own = &mut self.clients[client];
        if own.change.is_none() {
            own.change = Some((sum, format!("{client}-{}", own.n_changes)));
            own.n_changes += 1;
        }
        own.attempt += 1;
        let (attempt, sum) = (own.attempt, own.change.as_ref().map_or(sum, |it| it.0));
        self.send(Message::Request { client, attempt, server, sum, request: Request::Read });
        self.note(format!("client {client} asks server {server}"));
    }

    /// Delivers a message, perhaps keeping a copy, or loses one.
    fn deliver(&mut self) {
        if self.network.is_empty() {
            return;
        }
        let at = self.dice.below(self.network.len());
        let fate = self.dice.below(10);
        let message = if fate < 2 { self.network[at].clone() } else { self.network.swap_remove(at) };
        if fate == 9 {
            self.note("a message is lost".to_owned());
            return;
        }
        match message {
            Message::Request { client, attempt, server, sum, request } => {
                let answer = self.serve(server, sum, request);
                self.note(format!("server {server} answers client {client}: {answer:?}"));
                self.send(Message::Answer { client, attempt, answer });
            }
            Message::Answer { client, attempt, answer } => self.hear(client, attempt, answer),
        }
    }

    fn serve(&mut self, server: usize, sum: usize, request: Request) -> Answer {
        let (version, changes) = self.model.sums[&sum].clone();
        match request {
            Request::Read => {
                let found = self.servers[server].tenant.read_blocking(|view| {
                    let record = view.get(&SUM, &id(sum))?;
                    record.map(|it| Ok::<_, StoreError>((it.version, changes_of(&it.json()?)))).transpose()
                });
                let found = found.ok().flatten();
                let must = Some((version, changes.clone()));
                assert_eq!(found, must, "a read of {}; {}", id(sum), self.last_steps());
                Answer::Found(version, changes)
            }
            Request::Add { change, version: expected } => {
                let added = change.clone();
                let done = self.write(server, move |txn| {
                    let Some(record) = txn.get(&SUM, &id(sum))? else { return Ok(None) };
                    let mut changes = changes_of(&record.json()?);
                    if record.version != expected || changes.contains(&added) {
                        return Ok(Some(false));
                    }
                    changes.push(added.clone());
                    txn.update(&SUM, &id(sum), &body(sum, &changes)).map(|_| Some(true))
                });
                let must = version == expected && !changes.contains(&change);
                assert_eq!(done.ok().flatten(), Some(must), "a change of {}; {}", id(sum), self.last_steps());
                if !must {
                    return Answer::Conflict;
                }
                if let Some(sum) = self.model.sums.get_mut(&sum) {
                    sum.0 += 1;
                    sum.1.push(change);
                }
                Answer::Added
            }
        }
    }

    /// Delivers an answer to a client.
    fn hear(&mut self, client: usize, attempt: u64, answer: Answer) {
        let server = self.dice.below(N_SERVERS);
        let own = &mut self.clients[client];
        let Some((sum, change)) = own.change.clone().filter(|_| own.attempt == attempt) else { return };
        match answer {
            Answer::Added => own.change = None,
            // An earlier answer, which was lost, had confirmed the change.
            Answer::Found(_, changes) if changes.contains(&change) => own.change = None,
            Answer::Found(version, _) => {
                let request = Request::Add { change, version };
                self.send(Message::Request { client, attempt, server, sum, request });
            }
            Answer::Conflict => {
                own.attempt += 1;
                let attempt = own.attempt;
                self.send(Message::Request { client, attempt, server, sum, request: Request::Read });
            }
        }
        self.note(format!("client {client} hears"));
    }

    fn let_time_pass(&mut self) {
        let ms = match self.dice.below(8) {
            0 => -(self.dice.below(5_000) as i64),
            1 => self.dice.below(60_000) as i64,
            _ => self.dice.below(2_000) as i64,
        };
        clock::pass(ms);
        self.note(format!("{ms} ms pass"));
    }

    fn queue(&mut self) {
        if N_JOBS <= self.model.jobs.len() {
            return;
        }
        let (server, job) = (self.dice.below(N_SERVERS), format!("job-{:04}", self.n_jobs));
        self.n_jobs += 1;
        let name = job.clone();
        let is_new = self.write(server, move |txn| txn.queue_job(QUEUE, &name)).unwrap();
        assert!(is_new, "{job}; {}", self.last_steps());
        self.model.jobs.insert(job.clone(), Job { turn: 0, until_ms: clock::now_ms(), is_held: false });
        self.note(format!("{job} is queued"));
    }

    /// Lets a worker take a job, or act on the one that it has, which may be another's by now.
    fn work(&mut self) {
        let (worker, server) = (self.dice.below(N_WORKERS), self.dice.below(N_SERVERS));
        let for_ms = 500 + self.dice.below(4_000) as u32;
        let now = clock::now_ms();
        let Some(lease) = self.workers[worker].clone() else {
            let taken =
                self.write(server, move |txn| txn.take_lease(QUEUE, &format!("w{worker}"), for_ms)).unwrap();
            let free = self.model.jobs.iter().filter(|it| it.1.until_ms <= now);
            let next = free.min_by_key(|(id, job)| (job.until_ms, (*id).clone())).map(|it| it.0.clone());
            let is = taken.as_ref().map(|it| it.id.clone());
            assert_eq!(is, next, "a worker takes a job; {}", self.last_steps());
            if let (Some(lease), Some(job)) = (&taken, next.and_then(|it| self.model.jobs.get_mut(&it))) {
                *job = Job { turn: job.turn + 1, until_ms: now + i64::from(for_ms), is_held: true };
                assert_eq!((lease.turn, lease.until_ms), (job.turn, job.until_ms));
            }
            self.note(format!("worker {worker} takes {is:?}"));
            self.workers[worker] = taken;
            return;
        };
        let is_held = self.model.jobs.get(&lease.id).is_some_and(|it| it.is_held && it.turn == lease.turn);
        let (what, held, id) = (self.dice.below(6), lease.clone(), lease.id.clone());
        if 3 < what {
            self.note(format!("worker {worker} is busy with {id}"));
            return;
        }
        let done = self.write(server, move |txn| match what {
            0 => txn.renew_lease(&held, for_ms).map(Some),
            1 => txn.release_lease(&held, for_ms).map(|()| None),
            _ => {
                txn.insert(&RESULT, &held.id, &json!({"turn": held.turn}))?;
                txn.finish_job(&held).map(|()| None)
            }
        });
        let is_lost = match &done {
            Ok(_) => false,
            Err(StoreError::LeaseLost { .. }) => true,
            // The present owner was quicker.
            Err(StoreError::Duplicate { .. }) => self.model.results.contains_key(&id),
            Err(error) => panic!("{id}: {error}; {}", self.last_steps()),
        };
        assert_eq!(is_lost, !is_held, "{lease:?}; {}", self.last_steps());
        self.workers[worker] = done.ok().flatten();
        if is_held {
            let until_ms = now + i64::from(for_ms);
            match what {
                0 => drop(
                    self.model.jobs.insert(id.clone(), Job { turn: lease.turn, until_ms, is_held: true }),
                ),
                1 => drop(
                    self.model.jobs.insert(id.clone(), Job { turn: lease.turn, until_ms, is_held: false }),
                ),
                _ => {
                    self.model.jobs.remove(&id);
                    self.model.results.insert(id.clone(), lease.turn);
                }
            }
        }
        self.note(format!("worker {worker} with {id}: {what}, held: {is_held}"));
    }

    fn look(&mut self) {
        let server = self.dice.below(N_SERVERS);
        self.compare(&self.servers[server].tenant, "a look");
        self.note(format!("server {server} is looked at"));
    }

    /// Shuts one server down in order and restarts it, while the others continue.
    fn restart_one(&mut self) {
        let server = self.dice.below(N_SERVERS);
        let old = self.servers.remove(server);
        old.catalogue.close();
        drop(old);
        self.servers.insert(server, open(&self.folder).unwrap());
        self.note(format!("server {server} restarts"));
    }

    fn back_up(&mut self) {
        let (server, folder) = (self.dice.below(N_SERVERS), self.new_folder());
        fs::create_dir_all(folder.join("tenants")).unwrap();
        let to = folder.join(format!("tenants/{TENANT}.sqlite"));
        self.servers[server].tenant.backup(&to).unwrap();
        if let Some((old, _)) = self.backup.replace((folder, self.model.clone())) {
            fs::remove_dir_all(old).unwrap();
        }
        self.note(format!("server {server} is backed up"));
    }

    fn lose_power(&mut self) {
        let ((), moment) = self.recording.as_ref().expect("a disk").fail(|| ()).unwrap();
        let old = std::mem::replace(&mut self.folder, PathBuf::new());
        self.go_down();
        self.folder = self.new_folder();
        // A separate generator: how many choices there are depends on the engine's threads.
        let mut dice = Dice::new(self.dice.below(usize::MAX) as u64);
        moment.disk(&self.folder, &mut dice).unwrap();
        fs::remove_dir_all(old).unwrap();
        self.come_up();
        self.compare(&self.servers[0].tenant, "a power failure");
        self.note("power failed".to_owned());
    }

    /// Everything since the last backup is lost, and nothing else.
    fn lose_the_machine(&mut self) {
        let Some((backup, model)) = self.backup.take() else { return };
        let old = std::mem::replace(&mut self.folder, backup);
        self.go_down();
        fs::remove_dir_all(old).unwrap();
        self.model = model;
        self.come_up();
        self.compare(&self.servers[0].tenant, "a backup in its place");
        self.note("the machine is lost".to_owned());
    }
}

/// There is only one clock: runs are sequential.
static CLOCK: Mutex<()> = Mutex::new(());

/// Runs a simulation; returns its trace.
fn live(seed: u64, n_steps: usize) -> Vec<String> {
    let _clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let mut world = World::new(seed);
    for step in 0..n_steps {
        let from = world.trace.len();
        let stepped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.step()));
        if let Err(cause) = stepped {
            eprintln!("seed {seed}, step {step}, after {:?}", world.trace.get(from.saturating_sub(1)));
            std::panic::resume_unwind(cause);
        }
    }
    world.look();
    world.trace
}

#[test]
fn a_life_agrees_with_the_model() {
    let n_steps = usize::try_from(number("PINAKES_SIMULATION_STEPS", 10_000)).unwrap();
    let trace = live(number("PINAKES_SIMULATION_SEED", 20_261_126), n_steps);
    for what in
        ["client", "server", "worker", "job", "a message is lost", "power failed", "the machine is lost", "-"]
    {
        assert!(trace.iter().any(|it| it.starts_with(what)), "no step was {what:?}: a longer life is needed");
    }
    assert!(trace.iter().any(|it| it.ends_with("held: false")), "no lease was lost: a longer life is needed");
}

#[test]
fn the_same_seed_is_the_same_life() {
    // The clock does not appear in traces, and both runs continue from its present time.
    assert_eq!(live(5, 300), live(5, 300));
}
