//! One working connection. A worker belongs to one client thread; its records are that thread's.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::pace::Timetable;
use super::record::{AtDueTime, Exchange, FlowRecord, Window};
use super::{Flow, Load, Loops, Script, Work};
use crate::client::{Answer, AnswerBody, Connection, Failure, Request};
use crate::generate::random::hash;

/// First pause before a refused connection is retried; doubles up to [`RETRY_MAX`].
const RETRY_FIRST: Duration = Duration::from_millis(10);

/// Longest pause before a refused connection is retried.
const RETRY_MAX: Duration = Duration::from_millis(500);

/// Counters that anybody may read while a step runs.
#[derive(Debug, Default)]
pub struct Live {
    /// Complete answers.
    pub n_answers: AtomicU64,
    /// Failures, refused connections included.
    pub n_errors: AtomicU64,
    /// Connections that could not be opened.
    pub n_refused: AtomicU64,
}

/// State shared by the workers of one group.
#[derive(Debug)]
pub(super) struct GroupState {
    pub(super) load: Load,
    pub(super) work: Work,
    pub(super) connections: usize,
    /// Position of the group's first flow among the step's records.
    pub(super) first_flow: usize,
    /// Number of the next request (unused for a script).
    pub(super) n_next: AtomicU64,
    /// For open load.
    pub(super) timetable: Option<Arc<Timetable>>,
}

/// One connection, its recorder and the conditions of the step.
pub struct User {
    pub(super) connection: Connection,
    pub(super) records: Rc<RefCell<Vec<FlowRecord>>>,
    pub(super) live: Arc<Live>,
    pub(super) window: Window,
    pub(super) late: Duration,
    pub(super) seed: u64,
    pub(super) first_flow: usize,
    /// Number of the user within its group, from 0.
    pub index: usize,
}

impl User {
    /// Sends `request` for the script's flow `flow` and records it. Returns the answer with its body if it is
    /// a success; failures are recorded already.
    pub async fn send(&mut self, flow: usize, request: Request) -> Result<Answer, ()> {
        let answer = self.exchange(self.first_flow + flow, &request, Instant::now(), AnswerBody::Keep).await;
        match answer {
            Ok(answer) if answer.is_success() => Ok(answer),
            _ => Err(()),
        }
    }

    async fn exchange(
        &mut self,
        flow: usize,
        request: &Request,
        intended: Instant,
        keep: AnswerBody,
    ) -> Result<Answer, Failure> {
        let sent = Instant::now();
        let outcome = self.connection.exchange(request, keep).await;
        let done = Instant::now();
        let exchange = Exchange {
            intended,
            sent,
            done,
            path: &request.path,
            request_bytes: request.body.len() as u64,
            outcome: &outcome,
        };
        self.records.borrow_mut()[flow].record(&self.window, &exchange);
        match &outcome {
            Ok(answer) if answer.is_success() => self.live.n_answers.fetch_add(1, Ordering::Relaxed),
            _ => self.live.n_errors.fetch_add(1, Ordering::Relaxed),
        };
        outcome
    }

    /// Opens the connection, waiting longer after each refusal. Returns false if the step ended meanwhile.
    async fn open(&mut self) -> bool {
        let mut pause = RETRY_FIRST;
        while let Err(failure) = self.connection.open().await {
            self.records.borrow_mut()[self.first_flow].record_connect_failure(&failure);
            self.live.n_errors.fetch_add(1, Ordering::Relaxed);
            self.live.n_refused.fetch_add(1, Ordering::Relaxed);
            if Instant::now() + pause >= self.window.end {
                return false;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
        }
        true
    }

    /// Works until the step is over.
    pub(super) async fn work(&mut self, group: &GroupState) {
        match (&group.work, group.load) {
            (Work::Mix(flows), Load::Open { .. }) => {
                if let Some(timetable) = &group.timetable {
                    self.work_by_timetable(group, flows, timetable).await;
                }
            }
            (Work::Mix(flows), Load::Closed { ramp_up, loops, think }) => {
                self.ramp_up(group, ramp_up).await;
                self.work_in_turn(group, flows, loops, think).await;
            }
            (Work::Script(script), Load::Closed { ramp_up, loops, think }) => {
                self.ramp_up(group, ramp_up).await;
                self.work_by_script(group, script, loops, think).await;
            }
            (Work::Script(_), Load::Open { .. }) => {} // Refused by `check_step`.
        }
    }

    async fn work_by_timetable(&mut self, group: &GroupState, flows: &[Flow], timetable: &Timetable) {
        while self.open().await {
            // The request is built before it is due: building a large body takes longer than sending it.
            let n = group.n_next.fetch_add(1, Ordering::Relaxed);
            let index = pick(flows, self.seed, n);
            let request = (flows[index].source)(n);
            let waiting_since = Instant::now();
            let Some(due) = timetable.take().await else { break };
            let at_due_time = if due < waiting_since { AtDueTime::Busy } else { AtDueTime::Idle };
            if due >= self.window.measured_from {
                let lag = Instant::now().saturating_duration_since(due);
                let record = &mut self.records.borrow_mut()[group.first_flow + index];
                record.record_lag(lag, self.late, at_due_time);
            }
            self.send_one(group, &flows[index], index, n, &request, due).await;
        }
    }

    async fn work_in_turn(&mut self, group: &GroupState, flows: &[Flow], loops: Loops, think: Duration) {
        let mut pass = 0;
        while Instant::now() < self.window.end && self.open().await {
            let Some(n) = next_pass(group, loops, pass) else { break };
            let index = pick(flows, self.seed, n);
            let request = (flows[index].source)(n);
            self.send_one(group, &flows[index], index, n, &request, Instant::now()).await;
            pass += 1;
            self.think(think).await;
        }
    }

    async fn work_by_script(&mut self, group: &GroupState, script: &Script, loops: Loops, think: Duration) {
        let mut pass = 0;
        while Instant::now() < self.window.end && self.open().await {
            if next_pass(group, loops, pass).is_none() {
                break;
            }
            // A failed request ends the pass; it is recorded, and the next pass begins.
            let _failed_pass = (script.body)(self, pass).await.is_err();
            pass += 1;
            self.think(think).await;
        }
    }

    async fn send_one(
        &mut self,
        group: &GroupState,
        flow: &Flow,
        index: usize,
        n: u64,
        request: &Request,
        intended: Instant,
    ) {
        let keep = if flow.sink.is_some() { AnswerBody::Keep } else { AnswerBody::Count };
        let outcome = self.exchange(group.first_flow + index, request, intended, keep).await;
        if let (Some(sink), Ok(answer)) = (&flow.sink, &outcome) {
            sink(n, answer);
        }
    }

    async fn ramp_up(&self, group: &GroupState, ramp_up: Duration) {
        let share = self.index as f64 / group.connections as f64;
        if !ramp_up.is_zero() {
            tokio::time::sleep(ramp_up.mul_f64(share)).await;
        }
    }

    async fn think(&self, think: Duration) {
        if !think.is_zero() {
            tokio::time::sleep(think).await;
        }
    }
}

/// Returns the number of the next request of a user in its `pass`; `None` if its work is done.
fn next_pass(group: &GroupState, loops: Loops, pass: u64) -> Option<u64> {
    if matches!(loops, Loops::PerUser(n) if pass >= n) {
        return None;
    }
    let n = group.n_next.fetch_add(1, Ordering::Relaxed);
    match loops {
        Loops::Together(total) if n >= total => None,
        _ => Some(n),
    }
}

/// Returns the flow of the n-th request: the same for the same seed, each flow by its share.
fn pick(flows: &[Flow], seed: u64, n: u64) -> usize {
    if flows.len() == 1 {
        return 0;
    }
    let total: u64 = flows.iter().map(|flow| u64::from(flow.share)).sum();
    let mut point = hash(seed, n) % total.max(1);
    for (index, flow) in flows.iter().enumerate() {
        if point < u64::from(flow.share) {
            return index;
        }
        point -= u64::from(flow.share);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    #[test]
    fn flows_come_by_their_shares() {
        let headers = Arc::new(HeaderMap::new());
        let flow = |name: &str, share| Flow {
            share,
            ..Flow::only(name, {
                let headers = Arc::clone(&headers);
                Arc::new(move |_| Request::get("/".to_owned(), &headers))
            })
        };
        let flows = [flow("often", 9), flow("never", 0), flow("seldom", 1)];
        let mut counts = [0_u32; 3];
        for n in 0..10_000 {
            counts[pick(&flows, 7, n)] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((8_700..9_300).contains(&counts[0]), "{counts:?}");
    }
}
