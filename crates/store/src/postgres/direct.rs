//! Single-statement reads of many callers on one connection.
//!
//! A closure that promises few records is run first to find out which statement it needs; that statement is passed to a
//! lane, and the closure runs again on the result. A lane is a thread with a connection: it sends all waiting
//! statements in one flight, and reads by id as one statement for all of them, so that of a thousand callers each costs
//! a thousandth of the round trips. A closure that needs a second statement needs a snapshot and is read elsewhere.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row as PgRow, Statement};

use super::asked::Asked;
use super::pool::Pool;
use super::session::numbered;
use crate::cell::Cell;
use crate::{Result, StoreError};

/// Maximum number of statements in one flight.
const FLIGHT: usize = 256;
/// Maximum number of concurrent flights: later statements wait and are sent together in the next one.
const FLIGHTS: usize = 2;
/// How long an idle lane stays open.
const IDLE: Duration = Duration::from_secs(60);
/// How long to wait for an answer beyond the server's own time limit.
const GRACE: Duration = Duration::from_secs(2);
/// Endings of the statements that read a record by its id, and records by a set of ids.
const BY_ID: &str = "WHERE r.id = ?1";
const BY_IDS: &str = "WHERE r.id = ANY(?1)";
/// Reads how often declarations have changed.
const DECLARED: &str = "SELECT value FROM meta WHERE name = 'declared'";
/// Column of the id in these statements.
const ID_COLUMN: usize = 1;

/// A statement to be sent.
struct Question {
    sql: String,
    values: Vec<Cell>,
    /// How often declarations may have changed.
    declared: Option<i64>,
    answer: oneshot::Sender<Answer>,
}

/// The lane's answer.
enum Answer {
    Rows(Vec<Arc<PgRow>>),
    /// The statement was refused: the ordinary way reports why.
    Elsewhere,
    /// The database did not answer in time.
    Late,
}

/// The lane of a tenant; its thread runs while there is work.
pub(super) struct Lane {
    pool: Arc<Pool>,
    schema: String,
    sender: Mutex<Option<mpsc::Sender<Question>>>,
    n_most: usize,
}

impl Lane {
    pub(super) fn new(pool: Arc<Pool>, schema: &str, n_most: usize) -> Self {
        Self { pool, schema: schema.to_owned(), sender: Mutex::default(), n_most: n_most.max(FLIGHT) }
    }

    /// Executes the statement; `false` when the lane cannot, and the read must go another way.
    ///
    /// Errors: the database does not answer in time.
    pub(super) async fn answer(&self, asked: &mut Asked) -> Result<bool> {
        let Some((sql, values)) = asked.first.clone() else { return Ok(false) };
        let (answer, receiver) = oneshot::channel();
        let Some(sender) = self.sender() else { return Ok(false) };
        let declared = asked.declared;
        if sender.try_send(Question { sql, values, declared, answer }).is_err() {
            return Ok(false);
        }
        drop(sender);
        match receiver.await {
            Ok(Answer::Rows(rows)) => asked.answer = Some(rows),
            Ok(Answer::Late) => {
                return Err(StoreError::Unavailable("the database did not answer in time".to_owned()));
            }
            Ok(Answer::Elsewhere) | Err(_) => {}
        }
        Ok(asked.answer.is_some())
    }

    /// Returns the channel to the lane's thread, starting the thread if there is none.
    fn sender(&self) -> Option<mpsc::Sender<Question>> {
        let mut place = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = place.as_ref().filter(|it| !it.is_closed()) {
            return Some(sender.clone());
        }
        let (sender, receiver) = mpsc::channel(self.n_most);
        let (pool, schema) = (self.pool.clone(), self.schema.clone());
        let work = move || {
            if let Err(error) = run(&pool, &schema, receiver) {
                tracing::debug!(%error, schema, "a lane of reads ended");
            }
        };
        std::thread::Builder::new().name("store-reader".to_owned()).spawn(work).ok()?;
        *place = Some(sender.clone());
        Some(sender)
    }

    /// Lets the lane end once it has answered the waiting statements.
    pub(super) fn close(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Serves until the connection is lost or the lane has been idle for a while.
fn run(pool: &Pool, schema: &str, mut questions: mpsc::Receiver<Question>) -> Result<()> {
    let mut session = pool.connect_once(schema)?;
    // The same few statements run with different values: planning them each time would cost more than running them.
    session.batch("SET plan_cache_mode = force_generic_plan")?;
    let bound = pool.statement_timeout().saturating_add(GRACE);
    session.serve(async |client| serve(client, &mut questions, bound).await)
}

async fn serve(client: &Client, questions: &mut mpsc::Receiver<Question>, bound: Duration) {
    let statements = RefCell::default();
    let mut flights = FuturesUnordered::new();
    let mut waiting = Vec::new();
    loop {
        tokio::select! {
            n = questions.recv_many(&mut waiting, FLIGHT), if flights.len() < FLIGHTS => {
                if n == 0 {
                    break;
                }
                flights.push(fly(client, &statements, std::mem::take(&mut waiting), bound));
            }
            Some(is_late) = flights.next(), if !flights.is_empty() => {
                if is_late {
                    return;
                }
            }
            () = tokio::time::sleep(IDLE), if flights.is_empty() => break,
        }
    }
    while flights.next().await.is_some_and(|is_late| !is_late) {}
}

/// Questions answered by one statement.
enum Group {
    /// Where it matters, with a statement that then reads how often declarations have changed.
    One(Statement, Option<Statement>, Question),
    /// Records by id: each id with those who asked for it.
    ById(Statement, Vec<(String, Question)>),
}

/// Prepared statements, by their SQL.
type Statements = RefCell<HashMap<String, Statement>>;

/// Groups questions and prepares their statements. One that cannot be prepared goes another way.
async fn group(client: &Client, statements: &Statements, questions: Vec<Question>) -> Vec<Group> {
    let (mut groups, mut by_id) = (Vec::new(), BTreeMap::<String, Vec<(String, Question)>>::new());
    for question in questions {
        match (question.sql.strip_suffix(BY_ID), question.values.as_slice()) {
            (Some(start), [Cell::Text(id)]) if start.starts_with("SELECT r.key, r.id,") => {
                by_id.entry(format!("{start}{BY_IDS}")).or_default().push((id.clone(), question));
            }
            _ => {
                groups.extend(alone(client, statements, question).await);
            }
        }
    }
    for (sql, mut list) in by_id {
        match list.len() {
            1 => {
                let Some((_, question)) = list.pop() else { continue };
                groups.extend(alone(client, statements, question).await);
            }
            _ => {
                if let Some(statement) = prepared(client, statements, &sql).await {
                    groups.push(Group::ById(statement, list));
                }
            }
        }
    }
    groups
}

async fn alone(client: &Client, statements: &Statements, question: Question) -> Option<Group> {
    let statement = prepared(client, statements, &question.sql).await?;
    let declared = match question.declared {
        Some(_) => Some(prepared(client, statements, DECLARED).await?),
        None => None,
    };
    Some(Group::One(statement, declared, question))
}

async fn prepared(client: &Client, statements: &Statements, sql: &str) -> Option<Statement> {
    let known = statements.borrow().get(sql).cloned();
    if known.is_some() {
        return known;
    }
    let statement = client.prepare(&numbered(sql)).await.ok()?;
    statements.borrow_mut().insert(sql.to_owned(), statement.clone());
    Some(statement)
}

/// Sends all questions at once and answers each when its rows arrive. Returns whether the database was late.
///
/// Preparing is part of the flight: no task may wait for one answer without consuming those before it, since the
/// connection reads no further than an answer that is not consumed.
async fn fly(client: &Client, statements: &Statements, questions: Vec<Question>, bound: Duration) -> bool {
    let grouped = tokio::time::timeout(bound, group(client, statements, questions)).await;
    let Ok(groups) = grouped else { return true };
    let answers = groups.into_iter().map(|group| answer(client, group, bound));
    futures_util::future::join_all(answers).await.contains(&true)
}

async fn answer(client: &Client, group: Group, bound: Duration) -> bool {
    match group {
        Group::One(statement, declared, question) => {
            let values: Vec<&(dyn ToSql + Sync)> =
                question.values.iter().map(|it| it as &(dyn ToSql + Sync)).collect();
            let query = client.query(&statement, &values);
            // It is sent after the question: what has not changed by then had not changed before.
            let look = async {
                let Some(declared) = &declared else { return Ok(None) };
                let row = client.query_opt(declared, &[]).await?;
                row.map_or(Ok(Some(0)), |it| it.try_get(0).map(Some))
            };
            let asked = tokio::time::timeout(bound, join(query, look)).await;
            let is_late = asked.is_err();
            let is_other =
                matches!(&asked, Ok((_, found)) if found.as_ref().ok() != Some(&question.declared));
            if is_other {
                // The ordinary way reports why.
                drop(question.answer.send(Answer::Elsewhere));
                return is_late;
            }
            let asked = asked.map(|it| it.0);
            give(question.answer, asked.map(|rows| rows.map(|it| it.into_iter().map(Arc::new).collect())));
            is_late
        }
        Group::ById(statement, list) => {
            let mut ids: Vec<&str> = list.iter().map(|it| it.0.as_str()).collect();
            ids.sort_unstable();
            ids.dedup();
            let values: [&(dyn ToSql + Sync); 1] = [&ids];
            let asked = tokio::time::timeout(bound, client.query(&statement, &values)).await;
            let (is_late, is_refused) = (asked.is_err(), matches!(asked, Ok(Err(_))));
            let rows = asked.ok().and_then(std::result::Result::ok).unwrap_or_default();
            let with_id = rows.into_iter().filter_map(|row| Some((row.try_get(ID_COLUMN).ok()?, row)));
            let by_id: HashMap<String, Arc<PgRow>> =
                with_id.map(|(id, row): (String, PgRow)| (id, Arc::new(row))).collect();
            for (id, question) in list {
                let answer = match (is_late, is_refused) {
                    (true, _) => Answer::Late,
                    (_, true) => Answer::Elsewhere,
                    _ => Answer::Rows(by_id.get(&id).cloned().into_iter().collect()),
                };
                // A caller that has gone away needs no answer.
                drop(question.answer.send(answer));
            }
            is_late
        }
    }
}

fn give(
    to: oneshot::Sender<Answer>,
    asked: std::result::Result<
        std::result::Result<Vec<Arc<PgRow>>, tokio_postgres::Error>,
        tokio::time::error::Elapsed,
    >,
) {
    let answer = match asked {
        Ok(Ok(rows)) => Answer::Rows(rows),
        Ok(Err(_)) => Answer::Elsewhere,
        Err(_) => Answer::Late,
    };
    // A caller that has gone away needs no answer.
    drop(to.send(answer));
}
