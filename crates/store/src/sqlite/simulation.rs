//! Simulated operation of one tenant's file: bursts of writes, loads, long readers, backups, kills, power failures,
//! disks that fail a flush, and restarts. A seed decides their order; a model tells what must be there.
//!
//! The engine's threads run freely, but they interact only where the simulation lets them: the writer is held while a
//! burst is queued, and every flush waits for a decision. So the same seed gives the same run with the same result of
//! each step, which one of the tests checks; the other compares the results with the model.
//!
//! After a failure the disk is one of those that are possible then: all flushed sectors, and any of the others. What is
//! read must be the complete state after some commit, no earlier than the last acknowledged one.
//!
//! `PINAKES_SIMULATION_SEED` selects another run, `PINAKES_SIMULATION_STEPS` is its length; both are printed on
//! failure.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use pinakes_test_support::power::{Dice, found, number};
use serde_json::{Value as Json, json};

use super::flush::Flusher;
use super::opened::{shared, tenant_of};
use super::{Sqlite, create};
use crate::tenant::{Engine, Loading};
use crate::{
    Column, Direction, Expr, Facet, Index, Kind, Limits, Query, Result, StoreError, Tenant, Text, TextQuery,
    Txn, Type, View, index,
};

static THING: Kind = Kind {
    columns: &[Column::one("name", Type::Text), Column::many("tags", Type::Text)],
    indexes: &[Index::unique(&["name"]), Index::on(&["tags"])],
    facets: &[Facet::values("tags")],
    class_fields: &["group"],
    text: Text::AllStrings,
    ..Kind::named("thing")
};
static KINDS: &[&Kind] = &[&THING];

/// Number of records that the steps use: few, so that steps collide, and enough for a search index.
const N_IDS: usize = 300;
const N_NAMES: usize = 500;
const N_FIRST: usize = 250;
const TAGS: [&str; 5] = ["dune", "fen", "loam", "reef", "scree"];
/// Maximum number of writes in a burst: fewer than the writer wakes up for while a flush is under way.
const BURST: usize = 8;

/// The expected content, by id.
type Model = BTreeMap<String, Json>;

/// A change, and whether it must be refused, which the model knows.
#[derive(Debug, Clone)]
enum Op {
    Insert(String, Json),
    Put(String, Json),
    Delete(String),
    /// Two records, and whether the closure refuses after writing both.
    Pair([(String, Json); 2], bool),
    /// One record is deleted, another created.
    Move(String, (String, Json)),
}

fn refused() -> StoreError {
    StoreError::Query("refused by the simulation".to_owned())
}

impl Op {
    fn rolled(dice: &mut Dice) -> Self {
        let id = |dice: &mut Dice| format!("r{:03}", dice.below(N_IDS));
        let record = |dice: &mut Dice| (id(dice), body(dice));
        match dice.below(10) {
            0..=2 => {
                let (id, body) = record(dice);
                Self::Insert(id, body)
            }
            3..=5 => {
                let (id, body) = record(dice);
                Self::Put(id, body)
            }
            6 | 7 => Self::Delete(id(dice)),
            8 => Self::Pair([record(dice), record(dice)], dice.below(2) == 0),
            _ => Self::Move(id(dice), record(dice)),
        }
    }

    fn run(&self, txn: &mut Txn<'_>) -> Result<()> {
        match self {
            Self::Insert(id, body) => txn.insert(&THING, id, body).map(drop),
            Self::Put(id, body) => txn.put(&THING, id, body).map(drop),
            Self::Delete(id) => txn.delete(&THING, id).map(drop),
            Self::Pair(records, is_refused) => {
                for (id, body) in records {
                    txn.insert(&THING, id, body)?;
                }
                if *is_refused { Err(refused()) } else { Ok(()) }
            }
            Self::Move(from, (to, body)) => {
                txn.delete(&THING, from)?.ok_or_else(refused)?;
                txn.insert(&THING, to, body).map(drop)
            }
        }
    }

    /// Applies the change to the model, which stays as it is when the change is refused. Returns whether it was
    /// applied.
    fn apply(&self, model: &mut Model) -> bool {
        let mut next = model.clone();
        let is_done = match self {
            Self::Insert(id, body) => insert(&mut next, id, body),
            Self::Put(id, body) => {
                let is_free = is_free(&next, id, body);
                next.insert(id.clone(), body.clone());
                is_free
            }
            Self::Delete(id) => {
                next.remove(id);
                true
            }
            Self::Pair(records, is_refused) => {
                records.iter().all(|(id, body)| insert(&mut next, id, body)) && !is_refused
            }
            Self::Move(from, (to, body)) => next.remove(from).is_some() && insert(&mut next, to, body),
        };
        if is_done {
            *model = next;
        }
        is_done
    }
}

fn body(dice: &mut Dice) -> Json {
    let tags: Vec<&str> = TAGS.into_iter().filter(|_| dice.below(3) == 0).collect();
    json!({
        "name": format!("n{}", dice.below(N_NAMES)), "tags": tags, "group": dice.below(4), "n": dice.below(100),
        "text": format!("word{} {}", dice.below(9), "x".repeat(dice.below(700))),
    })
}

/// Returns whether no other record has the name.
fn is_free(model: &Model, id: &str, body: &Json) -> bool {
    model.iter().all(|(other, it)| other == id || it["name"] != body["name"])
}

fn insert(model: &mut Model, id: &str, body: &Json) -> bool {
    !model.contains_key(id) && is_free(model, id, body) && model.insert(id.to_owned(), body.clone()).is_none()
}

/// The decided result of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Done,
    Fails,
}

/// The point at which flushes wait.
#[derive(Default)]
struct Gate {
    state: Mutex<AtGate>,
    changed: Condvar,
}

#[derive(Default)]
struct AtGate {
    /// Number of waiting flushes.
    n_waiting: usize,
    verdicts: Vec<Verdict>,
    /// Flushes no longer wait: each fails.
    is_broken: bool,
    /// Flushes no longer wait: each succeeds.
    is_open: bool,
    /// The part of the log that is known to be on disk.
    kept: Vec<u8>,
}

impl Gate {
    fn pass(&self, log: &Path, sync: impl Fn() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.n_waiting += 1;
        self.changed.notify_all();
        while state.verdicts.is_empty() && !state.is_broken && !state.is_open {
            state = self.changed.wait(state).unwrap();
        }
        state.n_waiting -= 1;
        let verdict = match (state.is_broken, state.is_open) {
            (true, _) => Verdict::Fails,
            (false, true) => Verdict::Done,
            (false, false) => state.verdicts.remove(0),
        };
        if verdict == Verdict::Fails {
            return Err(io::Error::other("the simulated disk failed"));
        }
        state.kept = fs::read(log)?;
        sync()
    }

    /// Waits until a flush is waiting.
    fn wait_for_flush(&self) {
        let mut state = self.state.lock().unwrap();
        while state.n_waiting == 0 {
            state = self.changed.wait(state).unwrap();
        }
    }

    fn judge(&self, verdict: Verdict) {
        self.state.lock().unwrap().verdicts.push(verdict);
        self.changed.notify_all();
    }

    fn open_for_good(&self) {
        self.state.lock().unwrap().is_open = true;
        self.changed.notify_all();
    }

    fn break_for_good(&self) {
        self.state.lock().unwrap().is_broken = true;
        self.changed.notify_all();
    }
}

/// A reader that keeps its snapshot until it is released, and the faults it then found.
struct Reader {
    release: Sender<()>,
    thread: JoinHandle<Vec<String>>,
}

/// The open file.
struct Open {
    tenant: Tenant,
    gate: Arc<Gate>,
    /// Keeps the engine from restarting the log, so that only our own flushes decide what is kept of it.
    pin: rusqlite::Connection,
    readers: Vec<Reader>,
}

fn engine(open: &Open) -> &Sqlite {
    match &open.tenant.0.engine {
        Engine::Sqlite(engine) => engine,
        Engine::Postgres(_) => panic!("no file"),
    }
}

fn log_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", path.display()))
}

fn open(path: &Path) -> Result<Open> {
    let limits = Limits { log_bytes: 1 << 40, index_pause_ms: 1, ..Limits::default() };
    let gate = Arc::new(Gate::default());
    let at_gate = gate.clone();
    let engine = Sqlite::open_with(path, shared(KINDS, limits), move |path, queue, statistics| {
        let log = log_of(path);
        let failed = |source| StoreError::Io { path: log.display().to_string(), source };
        // The engine itself flushed what the opening wrote.
        at_gate.state.lock().unwrap().kept = fs::read(&log).map_err(failed)?;
        let file = fs::File::options().write(true).open(&log).map_err(failed)?;
        let sync = move || at_gate.pass(&log, || file.sync_data());
        Ok(Flusher::with(sync, queue, statistics))
    })?;
    let pin = rusqlite::Connection::open(path)?;
    pin.execute_batch("BEGIN; SELECT * FROM meta")?;
    Ok(Open { tenant: tenant_of(engine), gate, pin, readers: Vec::new() })
}

/// Returns the differences between a snapshot and the model.
fn differences(view: &mut View<'_>, model: &Model) -> Result<Vec<String>> {
    let mut out = Vec::new();
    let mut compare = |what: &str, is: String, must: String| {
        if is != must {
            out.push(format!("{what} is {is}, must be {must}"));
        }
    };
    let all = view.find(&THING, &Query::filter(Expr::All).sorted("name", Direction::Ascending))?;
    let mut by_name: Vec<(&Json, &String)> = model.iter().map(|(id, it)| (&it["name"], id)).collect();
    by_name.sort_by_key(|it| it.0.as_str());
    let ids: Vec<&String> = all.iter().map(|it| &it.id).collect();
    compare(
        "the order by name",
        format!("{ids:?}"),
        format!("{:?}", by_name.iter().map(|it| it.1).collect::<Vec<_>>()),
    );
    for record in &all {
        let body = record.json()?;
        compare(&record.id, body.to_string(), model.get(&record.id).unwrap_or(&Json::Null).to_string());
    }
    compare("the number of all", view.count(&THING, &Expr::All)?.to_string(), model.len().to_string());
    let counted = view.facets(&THING, &Expr::All, &["tags"])?.pop().unwrap_or_default();
    let counted: BTreeMap<String, u64> = counted.into_iter().map(|it| (it.value, it.n_records)).collect();
    let mut expected = BTreeMap::new();
    for tag in model.values().flat_map(|it| it["tags"].as_array().into_iter().flatten()) {
        *expected.entry(tag.as_str().unwrap_or_default().to_owned()).or_insert(0_u64) += 1;
    }
    compare("the facet of tags", format!("{counted:?}"), format!("{expected:?}"));
    let mut same = |what: String, filter: Expr, is_meant: &dyn Fn(&Json) -> bool| -> Result<()> {
        let found = view.find(&THING, &Query::filter(filter))?;
        let found: BTreeSet<&str> = found.iter().map(|it| it.id.as_str()).collect();
        let meant: BTreeSet<&str> =
            model.iter().filter(|it| is_meant(it.1)).map(|(id, _)| id.as_str()).collect();
        compare(&what, format!("{found:?}"), format!("{meant:?}"));
        Ok(())
    };
    for tag in TAGS {
        let has = |it: &Json| it["tags"].as_array().is_some_and(|it| it.contains(&tag.into()));
        same(format!("tag {tag}"), Expr::Is("tags".into(), tag.into()), &has)?;
    }
    for group in 0..4_i64 {
        same(format!("group {group}"), Expr::Is("group".into(), group.into()), &|it| it["group"] == group)?;
    }
    for n in 0..9 {
        let word = format!("word{n}");
        let query = TextQuery { phrases: vec![word.clone()], ..TextQuery::default() };
        let has = |it: &Json| it["text"].as_str().is_some_and(|it| it.split(' ').any(|it| it == word));
        same(format!("word {n}"), Expr::Text(query), &has)?;
    }
    for n in [7_i64, 42] {
        same(format!("n = {n}"), Expr::Is("n".into(), n.into()), &|it| it["n"] == n)?;
    }
    Ok(out)
}

/// A simulation: the file, its expected content, and the trace.
struct Life {
    dice: Dice,
    folder: tempfile::TempDir,
    /// Each opening after a failure uses a copy of its own.
    n_disks: usize,
    path: PathBuf,
    open: Option<Open>,
    /// The acknowledged state.
    sure: Model,
    /// The states after the commits since then, in order.
    later: Vec<Model>,
    trace: Vec<String>,
    faults: Vec<String>,
}

impl Life {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0").join("t.sqlite");
        fs::create_dir(folder.path().join("0")).unwrap();
        create(&path).unwrap();
        let open = Some(open(&path).unwrap());
        let mut life = Self {
            dice: Dice::new(seed),
            folder,
            n_disks: 1,
            path,
            open,
            sure: Model::new(),
            later: Vec::new(),
            trace: Vec::new(),
            faults: Vec::new(),
        };
        let first = (0..N_FIRST).map(|n| {
            let mut body = body(&mut life.dice);
            body["name"] = format!("n{n}").into();
            Op::Insert(format!("r{n:03}"), body)
        });
        let first = first.collect();
        life.load_all(first);
        life.sure = life.now().clone();
        life.later.clear();
        life
    }

    fn open(&self) -> &Open {
        self.open.as_ref().expect("it is open between steps")
    }

    fn now(&self) -> &Model {
        self.later.last().unwrap_or(&self.sure)
    }

    fn note(&mut self, what: String) {
        self.trace.push(what);
    }

    fn step(&mut self) {
        match self.dice.below(40) {
            0..=15 => self.burst(),
            16..=19 => self.load(),
            20..=23 => self.read(),
            24 | 25 => self.begin_reading(),
            26 | 27 => self.end_reading(),
            28 => self.check(),
            29 => self.backup(),
            30 | 31 => self.restart(),
            32..=34 => self.lose_power(),
            35 | 36 => self.kill(),
            37 | 38 => self.fail_to_flush(),
            _ => self.lose_power_in_a_burst(),
        }
    }

    /// Queues a burst of writes at once, as one batch. When this returns, its flush is waiting.
    fn submit(&mut self) -> (Vec<Op>, Vec<Loading<(), StoreError>>) {
        let ops = self.one_batch();
        let open = self.open();
        let held = engine(open).queue.hold();
        let waiting = ops.iter().map(|op| {
            let op = op.clone();
            open.tenant.write_later(move |txn: &mut Txn<'_>| op.run(txn), crate::jobs::Sharing::Any)
        });
        let waiting = waiting.collect::<Result<Vec<_>>>().unwrap();
        drop(held);
        open.gate.wait_for_flush();
        (ops, waiting)
    }

    /// Returns writes of which at most the last is refused: a batch that is rolled back and repeated ends with the
    /// write that caused it.
    fn one_batch(&mut self) -> Vec<Op> {
        let (mut model, mut ops) = (self.now().clone(), Vec::new());
        for _ in 0..1 + self.dice.below(BURST) {
            let op = Op::rolled(&mut self.dice);
            let is_done = op.apply(&mut model);
            ops.push(op);
            if !is_done {
                break;
            }
        }
        ops
    }

    /// Adds the state after a batch to those that may be found.
    fn commit(&mut self, ops: &[Op]) -> Vec<bool> {
        let mut model = self.now().clone();
        let done = ops.iter().map(|op| op.apply(&mut model)).collect();
        self.later.push(model);
        done
    }

    fn burst(&mut self) {
        let (ops, waiting) = self.submit();
        let must = self.commit(&ops);
        self.open().gate.judge(Verdict::Done);
        let is: Vec<bool> = waiting.into_iter().map(|it| it.wait().is_ok()).collect();
        if is != must {
            self.faults.push(format!("{ops:?} came to {is:?}, must come to {must:?}"));
        }
        self.sure = self.now().clone();
        self.later.clear();
        self.note(format!("burst of {}: {is:?}", ops.len()));
    }

    /// Loads records: a load is answered before it is on disk, and is durable once a later write is.
    fn load(&mut self) {
        let n = 1 + self.dice.below(3);
        for _ in 0..n {
            let ops = (0..1 + self.dice.below(BURST)).map(|_| Op::rolled(&mut self.dice)).collect();
            self.load_all(ops);
        }
        self.sure = self.now().clone();
        self.later.clear();
    }

    fn load_all(&mut self, ops: Vec<Op>) {
        let mut model = self.now().clone();
        let must = ops.iter().all(|op| op.apply(&mut model));
        let all = ops.clone();
        let loaded = self.open().tenant.load_blocking(move |txn| all.iter().try_for_each(|op| op.run(txn)));
        if loaded.is_ok() != must {
            self.faults.push(format!("a load of {ops:?} came to {loaded:?}, must come to {must}"));
        }
        if must {
            self.later.push(model);
        }
        self.note(format!("load of {}: {must}", ops.len()));
        // One flush per commit: which ones share a flush would depend on the threads.
        self.open().gate.wait_for_flush();
        self.open().gate.judge(Verdict::Done);
        self.settle();
    }

    /// Waits until no flush is under way.
    fn settle(&self) {
        while 0 < engine(self.open()).queue.n_flushing() {
            std::thread::yield_now();
        }
    }

    fn compare(&mut self, when: &str) {
        let model = self.now().clone();
        let found = self.open().tenant.read_blocking(|view| differences(view, &model));
        match found {
            Ok(found) => self.faults.extend(found.into_iter().map(|it| format!("{when}: {it}"))),
            Err(error) => self.faults.push(format!("{when}: {error}")),
        }
    }

    fn read(&mut self) {
        self.compare("a read");
        let n = self.now().len();
        self.note(format!("read {n}"));
    }

    fn begin_reading(&mut self) {
        let (release, released) = channel::<()>();
        let (began, begun) = channel::<()>();
        let (tenant, model) = (self.open().tenant.clone(), self.now().clone());
        let read = move |released: Receiver<()>| {
            tenant.read_blocking(|view| {
                view.count(&THING, &Expr::All)?;
                began.send(()).ok();
                released.recv().ok();
                differences(view, &model)
            })
        };
        let thread = std::thread::spawn(move || match read(released) {
            Ok(found) => found.into_iter().map(|it| format!("a reader that stayed: {it}")).collect(),
            Err(error) => vec![format!("a reader that stayed: {error}")],
        });
        begun.recv().ok();
        if let Some(open) = &mut self.open {
            open.readers.push(Reader { release, thread });
        }
        self.note("a reader begins".to_owned());
    }

    fn end_reading(&mut self) {
        let reader = self.open.as_mut().filter(|it| !it.readers.is_empty()).map(|it| it.readers.remove(0));
        if let Some(Reader { release, thread }) = reader {
            release.send(()).ok();
            self.faults.extend(thread.join().unwrap_or_else(|_| vec!["a reader panicked".to_owned()]));
            self.note("a reader ends".to_owned());
        }
    }

    fn end_all_reading(&mut self) {
        while self.open.as_ref().is_some_and(|it| !it.readers.is_empty()) {
            self.end_reading();
        }
    }

    fn check(&mut self) {
        let found = self.open().tenant.check().unwrap_or_else(|error| vec![error.to_string()]);
        self.faults.extend(found.into_iter().map(|it| format!("a check: {it}")));
        self.note("check".to_owned());
    }

    fn backup(&mut self) {
        let folder = self.new_disk();
        let to = folder.join("t.sqlite");
        let result = self.open().tenant.backup(&to).and_then(|()| {
            let copy = open(&to)?;
            let model = self.now().clone();
            let found = copy.tenant.read_blocking(|view| differences(view, &model))?;
            copy.gate.break_for_good();
            Ok(found)
        });
        match result {
            Ok(found) => self.faults.extend(found.into_iter().map(|it| format!("a backup: {it}"))),
            Err(error) => self.faults.push(format!("a backup: {error}")),
        }
        self.note("backup".to_owned());
    }

    /// Shuts the server down in order and restarts it.
    fn restart(&mut self) {
        self.end_all_reading();
        if let Some(Open { tenant, gate, pin, .. }) = self.open.take() {
            drop(pin);
            gate.open_for_good();
            drop(tenant);
        }
        let path = self.path.clone();
        self.come_back(&path, "a restart");
    }

    fn new_disk(&mut self) -> PathBuf {
        let folder = self.folder.path().join(self.n_disks.to_string());
        self.n_disks += 1;
        fs::create_dir(&folder).unwrap();
        folder
    }

    /// Opens the file, which must hold one of the possible states completely.
    fn come_back(&mut self, path: &Path, what: &str) {
        self.path = path.to_owned();
        let opened = match open(path) {
            Ok(opened) => opened,
            Err(error) => panic!("{what}: it does not open: {error}; {}", self.last_steps()),
        };
        let states: Vec<Model> = std::iter::once(self.sure.clone()).chain(self.later.drain(..)).collect();
        let matches = |model: &Model| {
            opened
                .tenant
                .read_blocking(|view| differences(view, model))
                .unwrap_or_else(|it| vec![it.to_string()])
        };
        let outcomes: Vec<Vec<String>> = states.iter().map(matches).collect();
        let place = outcomes.iter().rposition(Vec::is_empty);
        let found = opened.tenant.check().unwrap_or_else(|error| vec![error.to_string()]);
        self.faults.extend(found.into_iter().map(|it| format!("{what}: {it}")));
        self.open = Some(opened);
        match place {
            Some(place) => {
                self.sure.clone_from(&states[place]);
                self.note(format!("{what}: state {place} of {}", states.len()));
            }
            None => panic!("{what}: none of the states is found: {outcomes:?}; {}", self.last_steps()),
        }
    }

    fn last_steps(&self) -> String {
        let from = self.trace.len().saturating_sub(12);
        format!("steps before: {:?}; faults: {:?}", &self.trace[from..], self.faults)
    }

    /// Ends the server abruptly; its disk afterwards is a copy, whose log is what `log` makes of the durable and the
    /// written bytes.
    fn die(&mut self, what: &str, log: impl FnOnce(&mut Dice, &[u8], &[u8]) -> Vec<u8>) {
        self.end_all_reading();
        let folder = self.new_disk();
        let to = folder.join("t.sqlite");
        fs::copy(&self.path, &to).unwrap();
        let written = fs::read(log_of(&self.path)).unwrap();
        let kept = self.open().gate.state.lock().unwrap().kept.clone();
        let log = log(&mut self.dice, &kept, &written);
        fs::write(log_of(&to), log).unwrap();
        // The search index is disposable: deleted, or as it was at some moment, perhaps half written.
        if self.dice.below(3) != 0 {
            copy_folder(&index::folder_of(&self.path), &index::folder_of(&to));
        }
        if let Some(open) = self.open.take() {
            open.gate.break_for_good();
        }
        self.come_back(&to, what);
    }

    fn lose_power(&mut self) {
        self.die("power failed", |dice, kept, written| found(kept, written, dice));
    }

    /// Kills the process; what it has written outlives it.
    fn kill(&mut self) {
        self.sure = self.now().clone();
        self.later.clear();
        self.die("killed", |_, _, written| written.to_vec());
    }

    /// Commits a burst that readers see, and lets the power fail before it is on disk.
    fn lose_power_in_a_burst(&mut self) {
        let (ops, waiting) = self.submit();
        self.commit(&ops);
        self.compare("a read of what is not flushed");
        self.die("power failed in a burst", |dice, kept, written| found(kept, written, dice));
        let n_done = waiting.into_iter().filter_map(|it| it.wait().ok()).count();
        if n_done != 0 {
            self.faults.push(format!("{n_done} writes were acknowledged that were not flushed"));
        }
    }

    /// Lets a flush fail: no write is acknowledged, and nothing is written until the server restarts.
    fn fail_to_flush(&mut self) {
        let (ops, waiting) = self.submit();
        self.commit(&ops);
        self.open().gate.judge(Verdict::Fails);
        // What the model refuses is refused, and the rest is not acknowledged.
        let n_done = waiting.into_iter().filter_map(|it| it.wait().ok()).count();
        let after =
            self.open().tenant.write_blocking(|txn| txn.put(&THING, "late", &json!({"name": "late"})));
        let is_halted = self.open().tenant.failure().is_some() && matches!(after, Err(StoreError::Halted(_)));
        if n_done != 0 || !is_halted {
            self.faults.push(format!("a flush failed, {n_done} acknowledged, halted: {is_halted}"));
        }
        self.compare("a read after a flush that failed");
        match self.dice.below(2) {
            0 => self.lose_power(),
            _ => self.kill(),
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    let Ok(entries) = fs::read_dir(from) else { return };
    fs::create_dir_all(to).unwrap();
    for entry in entries.flatten() {
        // Files appear and vanish meanwhile, as in a power failure.
        let target = to.join(entry.file_name());
        match entry.file_type().is_ok_and(|it| it.is_dir()) {
            true => copy_folder(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target)),
        }
    }
}

/// Runs a simulation; returns its trace.
fn live(seed: u64, n_steps: usize) -> Vec<String> {
    let mut life = Life::new(seed);
    for step in 0..n_steps {
        life.step();
        assert!(life.faults.is_empty(), "seed {seed}, step {step}: {}", life.last_steps());
    }
    life.end_all_reading();
    life.check();
    assert!(life.faults.is_empty(), "seed {seed}, the end: {}", life.last_steps());
    if let Some(open) = life.open.take() {
        open.gate.break_for_good();
    }
    life.trace
}

#[test]
fn a_life_agrees_with_the_model() {
    let n_steps = usize::try_from(number("PINAKES_SIMULATION_STEPS", 250)).unwrap();
    let trace = live(number("PINAKES_SIMULATION_SEED", 20_261_125), n_steps);
    let has = |what: &str| trace.iter().any(|it| it.starts_with(what));
    for what in [
        "burst",
        "load",
        "a reader",
        "backup",
        "a restart",
        "power failed",
        "killed",
        "power failed in a burst",
    ] {
        assert!(has(what), "no step was {what:?}: a longer life is needed");
    }
}

#[test]
fn the_same_seed_is_the_same_life() {
    for seed in [3, 4] {
        let (one, other) = (live(seed, 60), live(seed, 60));
        assert_eq!(one, other);
    }
}
