//! Reads of one statement, of many callers on one connection.
//!
//! A closure that promises few records is run to find out what it asks first; that statement is handed to a lane,
//! and the closure runs again over the answer. A lane is a thread with a connection: it sends all that wait in one
//! flight, records by id as one statement for all of them, so that a thousand callers cost a thousandth of the
//! round trips each. A closure that asks for a second statement needs a snapshot and is read elsewhere.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row as PgRow, Statement};

use super::pool::Pool;
use super::session::numbered;
use crate::session::{Cell, Row};
use crate::{Result, StoreError};

/// Statements sent in one flight at most.
const FLIGHT: usize = 256;
/// Flights under way at most: what comes meanwhile waits for the next, and goes together.
const FLIGHTS: usize = 2;
/// How long a lane without work stays.
const IDLE: Duration = Duration::from_secs(60);
/// How long after the server's own bound an answer is still waited for.
const GRACE: Duration = Duration::from_secs(2);
/// What the statements that read a record by its id end in; and by a set of ids.
const BY_ID: &str = "WHERE r.id = ?1";
const BY_IDS: &str = "WHERE r.id = ANY(?1)";
/// How often declarations have changed.
const DECLARED: &str = "SELECT value FROM meta WHERE name = 'declared'";
/// Column of the id in them.
const ID_COLUMN: usize = 1;

/// The first statement of a closure, and the answer to it once it is there.
#[derive(Default)]
pub(crate) struct Asked {
    first: Option<(String, Vec<Cell>)>,
    answer: Option<Vec<Arc<PgRow>>>,
    has_more: bool,
    /// See [`Asked::require_declared`].
    declared: Option<i64>,
}

impl Asked {
    /// Hands the rows of the answer to `visit`, or notes what is asked.
    pub(crate) fn rows(
        &mut self,
        sql: &str,
        values: &[Cell],
        mut visit: impl FnMut(Row<'_, '_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        match (&self.first, &self.answer) {
            (Some((first, of)), Some(rows)) if first == sql && of == values => {
                for row in rows {
                    if visit(Row::Postgres(row))?.is_break() {
                        break;
                    }
                }
                return Ok(());
            }
            (None, _) => self.first = Some((sql.to_owned(), values.to_vec())),
            _ => self.has_more = true,
        }
        Err(StoreError::Conflict("the read waits for its answer".to_owned()))
    }

    /// The answer means what it seems to if declarations have changed so often.
    pub(crate) fn require_declared(&mut self, declared: i64) {
        self.declared = Some(declared);
    }

    /// Whatever is no read.
    pub(crate) fn refuse<T>(&mut self) -> Result<T> {
        self.has_more = true;
        Err(StoreError::Conflict("a read does not change anything".to_owned()))
    }

    /// Whether the closure cannot be answered by one statement.
    pub(super) fn has_more(&self) -> bool {
        self.has_more
    }

    /// Whether it asked for anything.
    pub(super) fn is_waiting(&self) -> bool {
        self.first.is_some()
    }
}

/// A statement on its way.
struct Question {
    sql: String,
    values: Vec<Cell>,
    /// How often declarations may have changed.
    declared: Option<i64>,
    answer: oneshot::Sender<Answer>,
}

/// What the lane says.
enum Answer {
    Rows(Vec<Arc<PgRow>>),
    /// The statement was refused: the ordinary way tells why.
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

    /// Has the statement answered; `false` when the lane cannot, and the read must go another way.
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

    /// The way to the lane's thread, which is started when there is none.
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

    /// Lets the lane end when it has answered what waits.
    pub(super) fn close(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Serves until the connection is lost, or nothing was asked for a while.
fn run(pool: &Pool, schema: &str, mut questions: mpsc::Receiver<Question>) -> Result<()> {
    let mut session = pool.connect_once(schema)?;
    // The same few statements with other values: planning them anew for each would cost more than running them.
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

/// Questions that one statement answers.
enum Group {
    /// With the statement that tells how often declarations had changed once it was answered, where that matters.
    One(Statement, Option<Statement>, Question),
    /// Records by id: each id with those who ask for it.
    ById(Statement, Vec<(String, Question)>),
}

/// What is prepared, by its text.
type Statements = RefCell<HashMap<String, Statement>>;

/// Puts questions together and prepares their statements. One that cannot be prepared goes another way.
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

/// Sends all questions at once and answers each when its rows are there. Tells whether the database was late.
///
/// Preparing is part of the flight: nobody may wait for one answer without taking those before it, since the
/// connection reads no further than to an answer that is not taken.
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
            // It is sent after the question: what had not changed by then had not before.
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
                // The ordinary way tells why.
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
                // Whoever has gone away needs no answer.
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
    // Whoever has gone away needs no answer.
    drop(to.send(answer));
}
