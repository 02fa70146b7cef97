//! Runs one step: client threads, their connections, the common start, the end.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::LocalSet;

use super::pace::{self, Timetable};
use super::record::{CutShort, FlowRecord, StepRecord, Window};
pub use super::worker::Live;
use super::worker::{GroupState, User};
use super::{ClientSettings, Load, Loops, Step, check_step};
use crate::client::Connection;
use crate::error::BenchError;
use crate::observe::process;
use crate::stop::Stop;
use crate::target::Target;

/// Time between the last connection being open and the first request.
const START_DELAY: Duration = Duration::from_millis(20);

/// A server that refuses connections and answers nothing for this long counts as gone.
const GONE_AFTER: Duration = Duration::from_secs(4);

/// Interval of the checks for the end of a step.
const WATCH_EVERY: Duration = Duration::from_millis(200);

/// Number of connections opened at once by each client thread.
const OPENING_AT_ONCE: usize = 128;

/// The result of a client thread.
struct ThreadRecord {
    flows: Vec<FlowRecord>,
    finished: Instant,
    cpu_s: f64,
}

/// The task of a client thread.
#[derive(Clone)]
struct ThreadTask {
    index: usize,
    target: Arc<Target>,
    settings: ClientSettings,
    groups: Arc<Vec<GroupSetup>>,
    flow_names: Arc<Vec<String>>,
    live: Arc<Live>,
    start: watch::Receiver<Option<Start>>,
    ready: mpsc::UnboundedSender<Result<(), String>>,
    stop: Stop,
}

/// A group before the start time is known.
struct GroupSetup {
    load: Load,
    work: super::Work,
    connections: usize,
    first_flow: usize,
}

/// The start signal that the threads wait for.
#[derive(Clone, Debug)]
struct Start {
    window: Window,
    groups: Arc<Vec<GroupState>>,
}

/// Runs `step` against `target` and returns the results.
///
/// Errors: a step that cannot be run, or no connection at all. A server that goes away in the middle, or
/// `stop`, is not an error: the record says so in `cut_short`.
pub async fn run_step(
    target: &Arc<Target>,
    step: &Step,
    settings: &ClientSettings,
    stop: &Stop,
    live: &Arc<Live>,
) -> Result<StepRecord, BenchError> {
    check_step(step, settings)?;
    let (setups, flow_names) = set_up(step);
    let (start_sender, start_receiver) = watch::channel(None);
    let (ready_sender, mut ready) = mpsc::unbounded_channel();
    let step_stop = Stop::default();
    let task = ThreadTask {
        index: 0,
        target: Arc::clone(target),
        settings: *settings,
        groups: Arc::new(setups),
        flow_names: Arc::new(flow_names),
        live: Arc::clone(live),
        start: start_receiver,
        ready: ready_sender,
        stop: step_stop.clone(),
    };
    let mut threads = Vec::new();
    for index in 0..settings.threads {
        threads.push(spawn_client(ThreadTask { index, ..task.clone() })?);
    }
    for _ in 0..settings.threads {
        if let Some(Err(reason)) = ready.recv().await {
            step_stop.ask();
            return Err(BenchError::CannotConnect { address: target.authority.clone(), reason });
        }
    }
    let start = begin(step, &task.groups);
    let pacers = start_pacers(&start.groups)?;
    let window = start.window;
    start_sender.send_replace(Some(start.clone()));
    let (records, cut_short) = await_threads(threads, stop, &step_stop, live, window).await?;
    for table in start.groups.iter().filter_map(|group| group.timetable.as_ref()) {
        table.close();
    }
    for pacer in pacers {
        // The pacer sleeps at most some milliseconds once its table is closed.
        let gone = |_| BenchError::Thread { what: "pacing thread", reason: "it panicked".to_owned() };
        pacer.join().map_err(gone)?;
    }
    Ok(gather(step, &start, records, cut_short, &task.flow_names))
}

fn set_up(step: &Step) -> (Vec<GroupSetup>, Vec<String>) {
    let mut names = Vec::new();
    let mut setups = Vec::new();
    for group in &step.groups {
        setups.push(GroupSetup {
            load: group.load,
            work: group.work.clone(),
            connections: group.connections,
            first_flow: names.len(),
        });
        for flow in group.work.flow_names() {
            names.push(if group.name.is_empty() { flow } else { format!("{}: {flow}", group.name) });
        }
    }
    (setups, names)
}

fn begin(step: &Step, setups: &[GroupSetup]) -> Start {
    let start = Instant::now() + START_DELAY;
    let measured_from = start + step.warmup;
    let window = Window { start, measured_from, end: measured_from + step.measured };
    let groups = setups
        .iter()
        .map(|setup| GroupState {
            load: setup.load,
            work: setup.work.clone(),
            connections: setup.connections,
            first_flow: setup.first_flow,
            n_next: AtomicU64::new(0),
            timetable: match setup.load {
                Load::Open { rate_per_s } => Some(Arc::new(Timetable::new(start, window.end, rate_per_s))),
                Load::Closed { .. } => None,
            },
        })
        .collect();
    Start { window, groups: Arc::new(groups) }
}

fn start_pacers(groups: &[GroupState]) -> Result<Vec<std::thread::JoinHandle<()>>, BenchError> {
    groups.iter().filter_map(|group| group.timetable.as_ref()).map(pace::start).collect()
}

fn spawn_client(task: ThreadTask) -> Result<oneshot::Receiver<ThreadRecord>, BenchError> {
    let (sender, receiver) = oneshot::channel();
    let failed =
        |error: std::io::Error| BenchError::Thread { what: "client thread", reason: error.to_string() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    std::thread::Builder::new()
        .name(format!("bench-client-{}", task.index))
        .spawn(move || {
            let record = LocalSet::new().block_on(&runtime, run_client(task));
            // The receiver is gone only when the step failed to start.
            let _unheard = sender.send(record);
        })
        .map_err(failed)?;
    Ok(receiver)
}

/// Runs one client thread.
async fn run_client(mut task: ThreadTask) -> ThreadRecord {
    let records: Rc<RefCell<Vec<FlowRecord>>> =
        Rc::new(RefCell::new(task.flow_names.iter().map(|name| FlowRecord::new(name)).collect()));
    let opened = open_all(&task).await;
    let report = match &opened {
        Ok(_) => Ok(()),
        Err(reason) => Err(reason.clone()),
    };
    // The receiver is gone if another thread failed.
    let _unheard = task.ready.send(report);
    let nothing = |records: &Rc<RefCell<Vec<FlowRecord>>>| ThreadRecord {
        flows: records.take(),
        finished: Instant::now(),
        cpu_s: 0.0,
    };
    let Ok(opened) = opened else { return nothing(&records) };
    let start = match task.start.wait_for(Option::is_some).await.map(|start| (*start).clone()) {
        Ok(Some(start)) => start,
        _ => return nothing(&records),
    };
    let cpu_before = tokio::task::spawn_local(cpu_at(start.window.measured_from));
    tokio::time::sleep_until(start.window.start.into()).await;
    let mut workers = FuturesUnordered::new();
    for (group, index, connection) in opened {
        let mut user = User {
            connection,
            records: Rc::clone(&records),
            live: Arc::clone(&task.live),
            window: start.window,
            late: task.settings.late,
            seed: task.settings.seed,
            first_flow: start.groups[group].first_flow,
            index,
        };
        let groups = Arc::clone(&start.groups);
        let stop = task.stop.clone();
        workers.push(tokio::task::spawn_local(async move {
            tokio::select! {
                () = user.work(&groups[group]) => {}
                () = stop.asked() => {}
            }
        }));
    }
    while workers.next().await.is_some() {}
    let finished = Instant::now();
    let cpu_before_s =
        if cpu_before.is_finished() { cpu_before.await.unwrap_or(0.0) } else { thread_cpu_s() };
    let cpu_s = (thread_cpu_s() - cpu_before_s).max(0.0);
    ThreadRecord { flows: records.take(), finished, cpu_s }
}

/// Returns the CPU time of this thread at `moment`, in seconds.
async fn cpu_at(moment: Instant) -> f64 {
    tokio::time::sleep_until(moment.into()).await;
    thread_cpu_s()
}

/// Returns the CPU time that this thread used, in seconds; 0 if the system does not report it.
fn thread_cpu_s() -> f64 {
    process::this_thread_cpu_s().unwrap_or(0.0)
}

/// Opens this thread's part of each group's connections. An error only if not one could be opened.
async fn open_all(task: &ThreadTask) -> Result<Vec<(usize, usize, Connection)>, String> {
    let mut wanted = Vec::new();
    for (group, setup) in task.groups.iter().enumerate() {
        wanted.extend(
            (0..setup.connections)
                .filter(|index| index % task.settings.threads == task.index)
                .map(|index| (group, index)),
        );
    }
    let n_wanted = wanted.len();
    let mut n_open = 0;
    let mut reason = String::new();
    let mut all = Vec::with_capacity(n_wanted);
    let mut opening = futures_util::stream::iter(wanted)
        .map(|(group, index)| async move {
            let mut connection = Connection::new(Arc::clone(&task.target), task.settings.timeout);
            let result = connection.open().await;
            (group, index, connection, result)
        })
        .buffer_unordered(OPENING_AT_ONCE);
    while let Some((group, index, connection, result)) = opening.next().await {
        match result {
            Ok(()) => n_open += 1,
            Err(failure) => reason = failure.to_string(),
        }
        all.push((group, index, connection));
    }
    if n_open == 0 && n_wanted > 0 { Err(reason) } else { Ok(all) }
}

/// Waits for the client threads; ends them early when asked to or when the server is gone.
async fn await_threads(
    threads: Vec<oneshot::Receiver<ThreadRecord>>,
    stop: &Stop,
    step_stop: &Stop,
    live: &Live,
    window: Window,
) -> Result<(Vec<ThreadRecord>, Option<CutShort>), BenchError> {
    let mut cut_short = None;
    let mut waiting: FuturesUnordered<_> = threads.into_iter().collect();
    let mut records = Vec::new();
    let mut gone = GoneWatch::new(live);
    while !waiting.is_empty() {
        tokio::select! {
            Some(record) = waiting.next() => records.push(record.map_err(|_| BenchError::Thread {
                what: "client thread",
                reason: "it panicked".to_owned(),
            })?),
            () = stop.asked(), if cut_short.is_none() => {
                cut_short = Some(CutShort::Interrupted);
                step_stop.ask();
            }
            () = tokio::time::sleep(WATCH_EVERY) => {
                if cut_short.is_none() && Instant::now() < window.end && gone.look(live) {
                    cut_short = Some(CutShort::ServerGone);
                    step_stop.ask();
                }
            }
        }
    }
    Ok((records, cut_short))
}

/// Detects that connections are refused and no answer comes any more.
struct GoneWatch {
    n_answers: u64,
    n_refused: u64,
    since: Instant,
}

impl GoneWatch {
    fn new(live: &Live) -> Self {
        Self {
            n_answers: live.n_answers.load(Ordering::Relaxed),
            n_refused: live.n_refused.load(Ordering::Relaxed),
            since: Instant::now(),
        }
    }

    /// Returns true if the server is gone.
    fn look(&mut self, live: &Live) -> bool {
        let n_answers = live.n_answers.load(Ordering::Relaxed);
        if n_answers != self.n_answers {
            *self = Self::new(live);
        }
        live.n_refused.load(Ordering::Relaxed) > self.n_refused && self.since.elapsed() >= GONE_AFTER
    }
}

fn gather(
    step: &Step,
    start: &Start,
    threads: Vec<ThreadRecord>,
    cut_short: Option<CutShort>,
    names: &[String],
) -> StepRecord {
    let mut window = start.window;
    let mut flows: Vec<FlowRecord> = names.iter().map(|name| FlowRecord::new(name)).collect();
    let mut client_cpu_s = 0.0;
    let mut finished = window.measured_from;
    for thread in threads {
        finished = finished.max(thread.finished);
        client_cpu_s += thread.cpu_s;
        for (flow, theirs) in flows.iter_mut().zip(thread.flows) {
            flow.add(theirs);
        }
    }
    let by_work = step.groups.iter().all(|group| {
        matches!(group.load, Load::Closed { loops: Loops::PerUser(_) | Loops::Together(_), .. })
    });
    if cut_short.is_some() || by_work {
        window.end = window.end.min(finished);
    }
    for group in start.groups.iter() {
        let Some(timetable) = &group.timetable else { continue };
        for due in timetable.unsent() {
            flows[group.first_flow].record_unsent(&window, due);
        }
    }
    StepRecord { window, flows, cut_short, client_cpu_s }
}
