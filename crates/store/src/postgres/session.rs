//! One connection to PostgreSQL, driven by the thread that uses it.
//!
//! The store's closures are synchronous, so a session blocks: it polls the connection and the answer together on a
//! runtime of its own, and no other thread is woken for this. A transaction begins in the same flight as its first
//! statement, and the statement that writes the counts is sent with the commit: a statement costs one round trip, a
//! transaction none of its own.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join;
use futures_util::{SinkExt as _, TryStreamExt};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Connection, SimpleQueryMessage, Socket, Statement};

use super::driver::{Driver, drive};
use super::errors::ends_session;
use super::stems::Stems;
use super::tls::{Stream, Tls};
use crate::cell::Cell;
use crate::error::outdated;
use crate::row::Row;
use crate::{Kind, Result, StoreError};

/// Prepared statements kept per session.
const STATEMENTS: usize = 512;
/// How long a session waits for an answer beyond the server's own time limit.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit for migrations and index builds.
const UNBOUNDED: Duration = Duration::from_secs(30 * 24 * 3600);

/// The phase of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No transaction: each statement is on its own.
    Autocommit,
    /// One statement may be on its own; a second needs the snapshot of the first.
    OneStatement,
    /// That statement has run.
    OneStatementRun,
    /// A transaction begins with the next statement.
    Due(&'static str),
    /// A transaction is under way.
    Begun,
}

/// A connection and its prepared statements.
pub(crate) struct PgSession {
    runtime: Driver,
    client: Client,
    connection: Connection<Socket, Stream>,
    statements: HashMap<String, Statement>,
    phase: Phase,
    /// Kinds whose classes were read in the current transaction.
    classes_read: HashSet<&'static str>,
    /// Deadline of the current closure.
    deadline: Option<Instant>,
    /// How long to wait for an answer.
    waiting: Duration,
    /// How long to wait for an answer in a new transaction.
    usual_waiting: Duration,
    /// Identifies the rows of counts that belong to this session.
    pub(crate) slot: i64,
    /// The schema in which it works.
    pub(super) schema: String,
    /// Whether the current transaction conflicted with another and must be retried.
    pub(super) is_conflict: bool,
    /// Whether a statement of the current transaction failed: it can only be rolled back.
    pub(super) is_failed: bool,
    /// Whether a closure that promised one statement needed more.
    pub(super) wants_snapshot: bool,
    /// Whether the connection is unusable.
    pub(super) is_broken: bool,
    /// Number of rows that the current transaction has changed; a statement without rows counts as well.
    pub(super) n_changes: u64,
    /// What a new session looks for if the commit is not acknowledged.
    pub(super) mark: Mark,
    /// The known words, shared by all sessions of the database.
    pub(super) stems: Arc<Stems>,
    /// Whether some of the records last written together existed already.
    pub(super) met_taken: bool,
    /// Of a standby: until when its replayed state is known to be recent enough.
    pub(super) recent_until: Option<Instant>,
    /// The number of declaration changes for which results are valid.
    declared: Option<i64>,
}

/// Identifies a transaction afterwards.
#[derive(Debug, Clone, Default)]
pub(super) struct Mark {
    /// Its number.
    pub(super) xid: Option<i64>,
    /// How often declarations had changed when it began.
    pub(super) declared: i64,
    /// Whether a kind was being rebuilt when it began, if its first statement asked for that.
    is_making: bool,
    /// Kind and id of the record that it last wrote.
    pub(super) written: Option<(&'static str, String)>,
}

impl Mark {
    /// Reads the result of a transaction's first statement: its number, how often declarations have changed, whether
    /// kinds are being rebuilt.
    fn begin(&mut self, begun: &[SimpleQueryMessage]) {
        self.xid = number_of(begun, 0);
        self.declared = number_of(begun, 1).unwrap_or(0);
        self.is_making = number_of(begun, 2) == Some(1);
    }
}

impl PgSession {
    /// Connects. Errors: no server responds in time, or it refuses the connection.
    pub(super) fn connect(
        config: &Config,
        tls: &Tls,
        schema: &str,
        statement_timeout: Duration,
        stems: Arc<Stems>,
    ) -> Result<Self> {
        let runtime = Driver::new()?;
        let n_hosts = u32::try_from(config.get_hosts().len().max(1)).unwrap_or(u32::MAX);
        let each = config.get_connect_timeout().copied().unwrap_or(PATIENCE);
        // The time limit of a host ends once it is connected; a server that then stays silent is given this long.
        let waiting = each.saturating_mul(n_hosts).saturating_add(each);
        let connect = async { tokio::time::timeout(waiting, config.connect(tls.clone())).await };
        let connected = runtime.block_on(connect)?;
        let (client, connection) = match connected {
            Ok(connected) => connected.map_err(StoreError::from)?,
            Err(_) => return Err(StoreError::Unavailable("the database did not answer in time".into())),
        };
        Ok(Self {
            runtime,
            client,
            connection,
            statements: HashMap::new(),
            classes_read: HashSet::new(),
            phase: Phase::Autocommit,
            deadline: None,
            waiting: statement_timeout.saturating_add(PATIENCE),
            usual_waiting: statement_timeout.saturating_add(PATIENCE),
            slot: 0,
            schema: schema.to_owned(),
            is_conflict: false,
            is_failed: false,
            wants_snapshot: false,
            is_broken: false,
            n_changes: 0,
            mark: Mark::default(),
            stems,
            met_taken: false,
            recent_until: None,
            declared: None,
        })
    }

    /// Releases what the session holds of the database as a whole, and waits briefly until that is done.
    pub(super) fn release(&mut self) {
        if !self.is_broken {
            self.start(Phase::Autocommit, None);
            self.waiting = PATIENCE;
            if let Err(error) = self.batch("SELECT pg_advisory_unlock_all()") {
                tracing::warn!(%error, "a database session ended in an error");
            }
        }
    }

    /// Gives up the current read if this is a session of a standby; see [`super::Postgres::read_lagging`].
    pub(crate) fn leave_standby(&mut self) -> bool {
        let is_standby = self.recent_until.is_some();
        self.is_conflict |= is_standby;
        is_standby
    }

    /// Announces a single statement.
    pub(super) fn expect_one(&mut self, deadline: Instant) {
        self.start(Phase::OneStatement, Some(deadline));
    }

    /// Makes the next statement begin a transaction.
    pub(super) fn begin(&mut self, begin: &'static str, deadline: Option<Instant>) {
        self.start(Phase::Due(begin), deadline);
    }

    /// Puts the session into autocommit mode.
    pub(crate) fn begin_none(&mut self) {
        self.start(Phase::Autocommit, None);
    }

    /// Waits for answers without a time limit until the next transaction.
    pub(super) fn wait_long(&mut self) {
        self.waiting = UNBOUNDED;
    }

    fn start(&mut self, phase: Phase, deadline: Option<Instant>) {
        self.phase = phase;
        self.deadline = deadline;
        self.waiting = self.usual_waiting;
        (self.is_conflict, self.is_failed, self.wants_snapshot) = (false, false, false);
        (self.n_changes, self.mark, self.declared) = (0, Mark::default(), None);
        self.classes_read.clear();
    }

    /// Returns whether the classes of a kind were read in the current snapshot, in which there will be no others.
    pub(crate) fn has_read_classes(&self, kind: &Kind) -> bool {
        self.phase == Phase::Begun && self.classes_read.contains(kind.name)
    }

    pub(crate) fn note_classes_read(&mut self, kind: &'static Kind) {
        self.classes_read.insert(kind.name);
    }

    /// Requires that declarations have changed exactly this often; otherwise what is read from here on is refused.
    ///
    /// Errors: they have changed more often; a read of one statement, which cannot tell, needs a snapshot.
    pub(crate) fn require_declared(&mut self, declared: i64) -> Result<()> {
        match self.phase {
            Phase::OneStatement | Phase::OneStatementRun => {
                self.wants_snapshot = true;
                Err(StoreError::Conflict("the read needs a snapshot".into()))
            }
            _ => {
                self.declared = Some(declared);
                if self.phase == Phase::Begun { self.look_at_mark() } else { Ok(()) }
            }
        }
    }

    /// Checks the number of declaration changes. Errors: the transaction sees another number than expected. A standby
    /// that is behind is left for the primary.
    fn look_at_mark(&mut self) -> Result<()> {
        let is_other = self.declared.is_some_and(|it| it != self.mark.declared);
        if (is_other || self.mark.is_making) && self.leave_standby() {
            return Err(StoreError::Conflict("the primary is asked instead of a standby".to_owned()));
        }
        if is_other { Err(outdated()) } else { Ok(()) }
    }

    /// Ends a read transaction, or rolls a transaction back, without waiting.
    pub(super) fn end(&mut self) {
        if self.phase == Phase::Begun {
            let Self { runtime, client, connection, .. } = self;
            let mut rollback = pin!(client.batch_execute("ROLLBACK"));
            let sent = poll_fn(|context| {
                let answered = rollback.as_mut().poll(context);
                let is_closed = drive(connection, context).is_some();
                Poll::Ready(is_closed || matches!(answered, Poll::Ready(Err(_))))
            });
            let is_broken = runtime.block_on(sent).unwrap_or(true);
            self.is_broken |= is_broken;
        }
        self.phase = Phase::Autocommit;
        self.deadline = None;
    }

    /// Commits, after a last statement sent together with the commit.
    ///
    /// Errors: [`StoreError::Conflict`] when the transaction must be retried; [`StoreError::Uncertain`] when the
    /// connection was lost during the commit.
    pub(crate) fn commit(&mut self, last: Option<(&str, &[Cell])>) -> Result<()> {
        match self.phase {
            Phase::Begun => {}
            Phase::Due(_) if last.is_some() => {}
            _ => {
                self.phase = Phase::Autocommit;
                return Ok(());
            }
        }
        let committed = match last {
            Some((sql, values)) => self.commit_with(sql, values),
            None => self.wait(|client| client.batch_execute("COMMIT")),
        };
        self.phase = Phase::Autocommit;
        self.deadline = None;
        committed.map_err(|error| match error {
            StoreError::Unavailable(reason) => StoreError::Uncertain(reason),
            other => other,
        })
    }

    /// When the last statement fails, the commit after it rolls the transaction back.
    fn commit_with(&mut self, sql: &str, values: &[Cell]) -> Result<()> {
        let statement = self.prepare(sql)?;
        self.begin_now()?;
        self.wait(async |client| {
            let parameters: Vec<&(dyn ToSql + Sync)> =
                values.iter().map(|it| it as &(dyn ToSql + Sync)).collect();
            let (last, committed) =
                join(client.execute(&statement, &parameters), client.batch_execute("COMMIT")).await;
            last?;
            committed
        })
    }

    /// Runs a statement under a savepoint, so that its failure leaves the transaction as it was.
    pub(crate) fn guarded(
        &mut self,
        sql: &str,
        values: &[Cell],
        visit: impl FnMut(Row<'_, '_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.batch("SAVEPOINT guarded")?;
        let result = self.rows(sql, values, visit);
        let is_refusal = matches!(&result, Err(StoreError::Postgres { .. }));
        if is_refusal && !self.is_conflict && !self.is_broken {
            self.undo_guarded()?;
        } else if result.is_ok() {
            self.batch("RELEASE guarded")?;
        }
        result
    }

    /// Rolls back to the savepoint set by `guarded`.
    pub(super) fn undo_guarded(&mut self) -> Result<()> {
        self.is_failed = false;
        self.batch("ROLLBACK TO guarded; RELEASE guarded")
    }

    /// Removes the time limits on the current transaction or the session.
    pub(crate) fn unbounded(&mut self) -> Result<()> {
        self.deadline = None;
        self.waiting = UNBOUNDED;
        match self.phase {
            Phase::Autocommit => self.batch("SET statement_timeout = 0; SET lock_timeout = 0"),
            _ => self.batch("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0"),
        }
    }

    /// Runs statements without values.
    pub(crate) fn batch(&mut self, sql: &str) -> Result<()> {
        self.enter()?;
        self.begin_now()?;
        self.n_changes += 1;
        self.wait(|client| client.batch_execute(sql))
    }

    /// Runs a statement and returns the number of rows it changed.
    pub(crate) fn execute(&mut self, sql: &str, values: &[Cell]) -> Result<usize> {
        let mut n = 0;
        let changed = self.run(sql, values, |_| {
            n += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(changed.map_or(n, |changed| usize::try_from(changed).unwrap_or(usize::MAX)))
    }

    /// Runs a query and passes each row to `visit` until it breaks.
    pub(crate) fn rows(
        &mut self,
        sql: &str,
        values: &[Cell],
        visit: impl FnMut(Row<'_, '_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.run(sql, values, visit).map(|_| ())
    }

    fn run(
        &mut self,
        sql: &str,
        values: &[Cell],
        mut visit: impl FnMut(Row<'_, '_>) -> Result<ControlFlow<()>>,
    ) -> Result<Option<u64>> {
        self.enter()?;
        if self.declared.is_some() && !self.statements.contains_key(sql) {
            // Where another program has changed the tables, preparing the statement fails: the caller must learn of the
            // change instead.
            self.begin_now()?;
        }
        let statement = self.prepare(sql)?;
        let begin = match self.phase {
            Phase::Due(begin) => Some(begin),
            _ => None,
        };
        let mut refused = None;
        let (mut mark, mut n_rows) = (Mark::default(), 0);
        let (declared, is_standby) = (self.declared, self.recent_until.is_some());
        let result = self.wait(async |client| {
            let parameters: Vec<&(dyn ToSql + Sync)> =
                values.iter().map(|it| it as &(dyn ToSql + Sync)).collect();
            let query = client.query_raw(&statement, parameters);
            let rows = match begin {
                Some(begin) => {
                    let (begun, rows) = join(client.simple_query(begin), query).await;
                    mark.begin(&begun?);
                    let is_other = declared.is_some_and(|it| it != mark.declared);
                    if is_other || (is_standby && mark.is_making) {
                        // The caller gets the error below: no row is read.
                        return Ok(None);
                    }
                    rows
                }
                None => query.await,
            };
            let mut rows = pin!(rows?);
            while let Some(row) = rows.try_next().await? {
                n_rows += 1;
                match visit(Row::Postgres(&row)) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) => return Ok(None),
                    Err(error) => {
                        refused = Some(error);
                        return Ok(None);
                    }
                }
            }
            Ok(rows.rows_affected())
        });
        if begin.is_some() {
            self.phase = Phase::Begun;
            self.mark = Mark { written: self.mark.written.take(), ..mark };
            if result.is_ok() {
                self.look_at_mark()?;
            }
        }
        if !sql.starts_with("SELECT") {
            let n_affected = result.as_ref().ok().copied().flatten().unwrap_or(0);
            self.n_changes += n_affected.max(n_rows);
        }
        match refused {
            Some(error) => Err(error),
            None => result,
        }
    }

    /// Copies rows in binary chunks into a table.
    pub(super) fn copy_in(
        &mut self,
        sql: &str,
        chunks: &mut dyn Iterator<Item = Result<Bytes>>,
    ) -> Result<()> {
        self.enter()?;
        let statement = self.prepare(sql)?;
        self.begin_now()?;
        self.n_changes += 1;
        let mut refused = None;
        let copied = self.wait(async |client| {
            let mut copy = pin!(client.copy_in(&statement).await?);
            for chunk in chunks {
                match chunk {
                    Ok(chunk) => copy.send(chunk).await?,
                    Err(error) => {
                        // Because it is not finished, the COPY fails as a whole.
                        refused = Some(error);
                        return Ok(());
                    }
                }
            }
            copy.finish().await.map(|_| ())
        });
        match refused {
            Some(error) => {
                self.is_failed = true;
                Err(error)
            }
            None => copied,
        }
    }

    /// Runs one statement for each of many lists of values in one flight; returns the rows of each.
    pub(crate) fn many<T>(
        &mut self,
        sql: &str,
        lists: &[Vec<Cell>],
        mut make: impl FnMut(Row<'_, '_>) -> Result<T>,
    ) -> Result<Vec<Option<T>>> {
        self.enter()?;
        let statement = self.prepare(sql)?;
        self.begin_now()?;
        self.n_changes += 1;
        let answers = self.wait(async |client| {
            let flights = lists.iter().map(|values| {
                let parameters: Vec<&(dyn ToSql + Sync)> =
                    values.iter().map(|it| it as &(dyn ToSql + Sync)).collect();
                let statement = &statement;
                async move { client.query_opt(statement, &parameters).await }
            });
            futures_util::future::try_join_all(flights).await
        })?;
        answers.iter().map(|row| row.as_ref().map(|row| make(Row::Postgres(row))).transpose()).collect()
    }

    /// Checks that another statement may run, and changes the phase.
    fn enter(&mut self) -> Result<()> {
        if self.is_broken {
            return Err(StoreError::Unavailable("the connection was lost".into()));
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(StoreError::TooLong);
        }
        match self.phase {
            Phase::OneStatement => self.phase = Phase::OneStatementRun,
            Phase::OneStatementRun => {
                self.wants_snapshot = true;
                return Err(StoreError::Conflict("the read needs a snapshot".into()));
            }
            _ => {}
        }
        Ok(())
    }

    /// Begins the transaction that is due.
    pub(super) fn begin_now(&mut self) -> Result<()> {
        if let Phase::Due(begin) = self.phase {
            let begun = self.wait(|client| client.simple_query(begin))?;
            self.phase = Phase::Begun;
            self.mark.begin(&begun);
            self.look_at_mark()?;
        }
        Ok(())
    }

    /// Prepares a statement, or returns the cached one.
    pub(super) fn prepare(&mut self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let text = numbered(sql);
        let statement = self.wait(|client| client.prepare(&text))?;
        if STATEMENTS <= self.statements.len() {
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Runs a closure that uses the client directly until it is done or the connection has ended.
    pub(super) fn serve(&mut self, serve: impl AsyncFnOnce(&Client)) -> Result<()> {
        let Self { runtime, client, connection, .. } = self;
        let mut served = pin!(serve(client));
        let both = poll_fn(|context| {
            // Received data is processed first, so that the next request is sent at once.
            let is_over = drive(connection, context).is_some();
            let is_done = served.as_mut().poll(context).is_ready();
            let is_over = is_over || is_done || drive(connection, context).is_some();
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        });
        runtime.block_on(both)
    }

    /// Polls the connection and the answer to `ask` until it arrives.
    fn wait<'s, T, F>(&'s mut self, ask: impl FnOnce(&'s Client) -> F) -> Result<T>
    where
        F: Future<Output = std::result::Result<T, tokio_postgres::Error>> + 's,
        T: 's,
    {
        let Self { runtime, client, connection, waiting, is_broken, is_conflict, is_failed, phase, .. } =
            self;
        let waiting = *waiting;
        let mut answer = pin!(ask(client));
        let both = poll_fn(|context| {
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                return Poll::Ready(Some(answer));
            }
            match drive(connection, context) {
                Some(ended) => match (answer.as_mut().poll(context), ended) {
                    (Poll::Ready(answer), _) => Poll::Ready(Some(answer)),
                    (Poll::Pending, Some(error)) => Poll::Ready(Some(Err(error))),
                    (Poll::Pending, None) => Poll::Ready(None),
                },
                None => match answer.as_mut().poll(context) {
                    Poll::Ready(answer) => Poll::Ready(Some(answer)),
                    Poll::Pending => Poll::Pending,
                },
            }
        });
        let outcome = runtime.block_on(async { tokio::time::timeout(waiting, both).await })?;
        let error = match outcome {
            Ok(Some(Ok(value))) => return Ok(value),
            Ok(Some(Err(error))) => {
                *is_broken |= ends_session(&error);
                StoreError::from(error)
            }
            Ok(None) => {
                *is_broken = true;
                StoreError::Unavailable("the database closed the connection".into())
            }
            Err(_) => {
                *is_broken = true;
                StoreError::Unavailable("the database did not answer in time".into())
            }
        };
        *is_conflict |= matches!(error, StoreError::Conflict(_));
        *is_failed |= matches!(phase, Phase::Begun | Phase::Due(_));
        Err(error)
    }
}

/// Returns a number from the result of statements sent as text, by its column, if there is one.
fn number_of(messages: &[SimpleQueryMessage], place: usize) -> Option<i64> {
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.try_get(place).ok()??.parse().ok(),
        _ => None,
    })
}

/// Returns the statement with this engine's parameter syntax: `?3` becomes `$3`. The store's statements contain no
/// other `?`.
pub(super) fn numbered(sql: &str) -> String {
    sql.replace('?', "$")
}
