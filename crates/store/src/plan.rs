//! Translates conditions to SQL: what columns, classes and indexes answer goes to the engine, the rest is evaluated on
//! the remaining rows.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cell::Cell;
use crate::classes::{ClassSet, Classes};
use crate::columns::many_table;
use crate::document::storable;
use crate::postgres::schema as postgres;
use crate::session::{Flavour, Session, State};
use crate::{Arity, Column, End, Expr, Kind, Path, Result, StoreError, TextQuery, Type, Value, text};

/// A query plan. Its SQL refers to the kind's table as `r`.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Conditions that all must hold.
    pub(crate) conditions: Vec<String>,
    /// Their bound values, in the order of the parameter numbers.
    pub(crate) values: Vec<Cell>,
    /// The condition without the parts that classes decide.
    pub(crate) rest: Arc<Expr>,
    /// The part that the engine could not decide.
    pub(crate) residual: Option<Arc<Expr>>,
    /// The parts of the residual that do not depend on the body.
    pub(crate) leaves: Leaves,
    /// The classes that the condition allows, when it restricts them.
    pub(crate) classes: Option<Arc<ClassSet>>,
    /// Top-level equalities on columns, for row estimates.
    pub(crate) equalities: Vec<Equality>,
    /// Top-level ranges on columns.
    pub(crate) ranges: Vec<Range>,
    /// Number of `conditions` that are ranges or beginnings: many rows may satisfy them.
    pub(crate) n_wide: usize,
    /// Number of ranges and other conditions of unknown selectivity.
    pub(crate) n_vague: u32,
    /// Whether nothing can satisfy the condition.
    pub(crate) is_empty: bool,
    /// Whether it includes a text search.
    pub(crate) has_text: bool,
}

impl Plan {
    /// Plans `filter`, which has gone through [`typed`], for `kind`.
    pub(crate) fn of(
        session: &mut Session<'_>,
        state: State,
        classes: &Classes,
        kind: &'static Kind,
        filter: &Expr,
    ) -> Result<Self> {
        let mut conjuncts = Vec::new();
        flatten(filter, &mut conjuncts);
        let (on_class, others): (Vec<_>, Vec<_>) =
            conjuncts.into_iter().partition(|it| is_on_class(kind, it));
        let mut plan = Self {
            conditions: Vec::new(),
            values: Vec::new(),
            rest: Arc::new(Expr::All),
            residual: None,
            leaves: Leaves::default(),
            classes: None,
            equalities: Vec::new(),
            ranges: Vec::new(),
            n_wide: 0,
            n_vague: 0,
            is_empty: false,
            has_text: false,
        };
        let mut compiler = Compiler { session, state, classes, kind, values: Vec::new(), has_text: false };
        if !on_class.is_empty() {
            let together = Expr::And(on_class.into_iter().cloned().collect());
            let set = compiler.classes.satisfying(compiler.session, state, kind, &together)?;
            plan.is_empty = set.numbers.is_empty();
            plan.classes = (!set.is_all).then_some(set);
        }
        plan.rest = Arc::new(match others.as_slice() {
            [] => Expr::All,
            [one] => (*one).clone(),
            many => Expr::And(many.iter().copied().cloned().collect()),
        });
        let mut residual = Vec::new();
        for conjunct in others {
            plan.note_for_estimates(kind, conjunct);
            match compiler.sql(conjunct, Logic::Filter)? {
                // Conditions are joined by AND, which binds closer than OR.
                Some(sql) if matches!(conjunct, Expr::Or(_)) => plan.conditions.push(format!("({sql})")),
                Some(sql) => {
                    if let Expr::Range(path, ..) | Expr::Prefix(path, _) = conjunct
                        && let Some(column) = kind.column_of(path).filter(|it| it.arity == Arity::One)
                    {
                        let n_values = compiler.values.len();
                        plan.ranges.push(Range {
                            column: column.name,
                            condition: plan.conditions.len(),
                            n_values,
                        });
                    }
                    plan.n_wide += usize::from(matches!(conjunct, Expr::Range(..) | Expr::Prefix(..)));
                    plan.conditions.push(sql);
                }
                None => residual.push(conjunct.clone()),
            }
        }
        plan.residual = match residual.len() {
            0 => None,
            1 => residual.pop().map(Arc::new),
            _ => Some(Arc::new(Expr::And(residual))),
        };
        if let Some(residual) = &plan.residual {
            let mut found = Vec::new();
            leaves(residual, &mut found);
            for leaf in found {
                plan.leaves.add(leaf, |leaf| compiler.sql(leaf, Logic::Strict))?;
            }
        }
        plan.values = compiler.values;
        plan.has_text = compiler.has_text;
        Ok(plan)
    }

    /// Binds `value` and returns its parameter number.
    pub(crate) fn bind(&mut self, value: Cell) -> usize {
        self.values.push(value);
        self.values.len()
    }

    fn note_for_estimates(&mut self, kind: &Kind, conjunct: &Expr) {
        let equality = match conjunct {
            Expr::Is(path, value) => Some((path, std::slice::from_ref(value))),
            Expr::In(path, values) => Some((path, values.as_slice())),
            _ => None,
        };
        match equality {
            Some((path, values)) if kind.column_of(path).is_some() => {
                self.equalities.push(Equality {
                    path: path.clone(),
                    values: values.iter().filter_map(counted_text).collect(),
                    is_counted: values.iter().all(|it| matches!(it, Value::Text(_) | Value::Boolean(_))),
                });
            }
            _ => self.n_vague += 1,
        }
    }
}

/// A top-level equality on a column.
#[derive(Debug)]
pub(crate) struct Equality {
    pub(crate) path: Path,
    /// The texts under which a facet counts the values, if there are any.
    pub(crate) values: Vec<String>,
    /// Whether a facet counts every record that has one of the values under one of `values`.
    pub(crate) is_counted: bool,
}

/// A top-level range on a column.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) column: &'static str,
    /// Its index in [`Plan::conditions`].
    pub(crate) condition: usize,
    /// Number of [`Plan::values`] that the condition needs.
    pub(crate) n_values: usize,
}

/// Returns the text under which a facet counts a value.
fn counted_text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(storable(text).into_owned()),
        Value::Boolean(it) => Some(it.to_string()),
        Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Converts texts that are compared with instant columns to instants.
pub(crate) fn typed(kind: &Kind, expr: &Expr) -> Expr {
    let is_instant = |path: &Path| kind.column_of(path).is_some_and(|it| it.ty == Type::Instant);
    let end = |end: &End| match end {
        End::Open => End::Open,
        End::Included(value) => End::Included(instant(value)),
        End::Excluded(value) => End::Excluded(instant(value)),
    };
    let each = |list: &[Expr]| list.iter().map(|it| typed(kind, it)).collect();
    match expr {
        Expr::And(list) => Expr::And(each(list)),
        Expr::Or(list) => Expr::Or(each(list)),
        Expr::Not(it) => Expr::Not(Box::new(typed(kind, it))),
        Expr::Is(path, value) if is_instant(path) => Expr::Is(path.clone(), instant(value)),
        Expr::In(path, values) if is_instant(path) => {
            Expr::In(path.clone(), values.iter().map(instant).collect())
        }
        Expr::Range(path, low, high) if is_instant(path) => Expr::Range(path.clone(), end(low), end(high)),
        other => other.clone(),
    }
}

fn instant(value: &Value) -> Value {
    match value {
        Value::Text(text) => crate::eval::instant_ms(text).map_or_else(|| value.clone(), Value::Instant),
        other => other.clone(),
    }
}

/// Maximum number of conditions decided by the engine per row: PostgreSQL returns at most 1,664 columns.
const DECIDED: usize = 1_600;

/// The conditions of the residual that only the engine can decide.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    /// The SQL that decides them, each a column of the row.
    pub(crate) decided: Vec<String>,
    /// Which of these decides a condition, by the condition's address in [`Plan::residual`].
    at: HashMap<*const Expr, usize>,
    /// Which of these decides a text query: a query may use the same words for many fields.
    of_texts: HashMap<TextQuery, usize>,
}

impl Leaves {
    /// Adds a condition; one that has no SQL never holds.
    ///
    /// Errors: [`StoreError::Query`] for too many.
    fn add<'a>(
        &mut self,
        leaf: &'a Expr,
        sql: impl FnOnce(&'a Expr) -> Result<Option<String>>,
    ) -> Result<()> {
        if let Expr::Text(text) = leaf
            && let Some(number) = self.of_texts.get(text)
        {
            self.at.insert(leaf, *number);
            return Ok(());
        }
        let Some(sql) = sql(leaf)? else { return Ok(()) };
        let number = self.decided.len();
        if number == DECIDED {
            return Err(StoreError::Query(format!(
                "the query holds more than {DECIDED} searches for words; ask for fewer words at once"
            )));
        }
        self.decided.push(sql);
        self.at.insert(leaf, number);
        if let Expr::Text(text) = leaf {
            self.of_texts.insert(text.clone(), number);
        }
        Ok(())
    }

    /// Returns whether the condition at this address holds for a row with these `decided` values.
    pub(crate) fn holds(&self, expr: &Expr, decided: &[bool]) -> bool {
        let number = self.at.get(&std::ptr::from_ref(expr));
        number.is_some_and(|it| decided.get(*it) == Some(&true))
    }
}

/// Collects the leaves of a condition that do not depend on the body.
fn leaves<'a>(expr: &'a Expr, into: &mut Vec<&'a Expr>) {
    match expr {
        Expr::And(list) | Expr::Or(list) => list.iter().for_each(|it| leaves(it, into)),
        Expr::Not(it) | Expr::Element(_, it) => leaves(it, into),
        Expr::Text(_) | Expr::Ids(_) => into.push(expr),
        _ => {}
    }
}

/// Appends the conditions that must all hold.
pub(crate) fn flatten<'a>(expr: &'a Expr, into: &mut Vec<&'a Expr>) {
    match expr {
        Expr::All => {}
        Expr::And(list) => list.iter().for_each(|it| flatten(it, into)),
        other => into.push(other),
    }
}

/// Returns whether an expression uses class fields only, so that classes decide it.
pub(crate) fn is_on_class(kind: &Kind, expr: &Expr) -> bool {
    match expr {
        Expr::And(list) | Expr::Or(list) => !list.is_empty() && list.iter().all(|it| is_on_class(kind, it)),
        Expr::Not(it) => is_on_class(kind, it),
        Expr::Is(path, value) => is_class_value(kind, path, value),
        Expr::In(path, values) => values.iter().all(|value| is_class_value(kind, path, value)),
        Expr::Range(path, ..) | Expr::Prefix(path, _) | Expr::Regex(path, _) => kind.is_class_field(path),
        _ => false,
    }
}

/// A class does not keep the order of a list, so it cannot decide a comparison with a whole list.
fn is_class_value(kind: &Kind, path: &Path, value: &Value) -> bool {
    kind.is_class_field(path) && !matches!(value, Value::Json(_))
}

/// Whether `NULL` (unknown) may stand for false.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Logic {
    /// In a filter, unknown is as good as false, and indexes stay usable.
    Filter,
    /// Below a negation, only true or false is allowed.
    Strict,
}

struct Compiler<'a, 'b> {
    session: &'a mut Session<'b>,
    state: State,
    classes: &'a Classes,
    kind: &'static Kind,
    values: Vec<Cell>,
    has_text: bool,
}

impl Compiler<'_, '_> {
    /// Returns SQL that decides `expr` exactly, or `None` when columns cannot.
    fn sql(&mut self, expr: &Expr, logic: Logic) -> Result<Option<String>> {
        let n_values = self.values.len();
        let sql = self.try_sql(expr, logic)?;
        if sql.is_none() {
            self.values.truncate(n_values);
        }
        Ok(sql)
    }

    fn try_sql(&mut self, expr: &Expr, logic: Logic) -> Result<Option<String>> {
        if is_on_class(self.kind, expr) {
            return self.class_sql(expr).map(Some);
        }
        Ok(match expr {
            Expr::All => Some("TRUE".to_owned()),
            Expr::Nothing => Some("FALSE".to_owned()),
            Expr::And(list) => self.joined(list, " AND ", "TRUE", logic)?,
            Expr::Or(list) => self.joined(list, " OR ", "FALSE", logic)?,
            Expr::Not(it) => self.sql(it, Logic::Strict)?.map(|sql| format!("NOT ({sql})")),
            Expr::Is(path, value) => self.in_sql(path, std::slice::from_ref(value), logic),
            Expr::In(path, values) => self.in_sql(path, values, logic),
            Expr::Range(path, lower, upper) => self.range_sql(path, lower, upper, logic),
            Expr::Prefix(path, prefix) => self.prefix_sql(path, prefix, logic),
            Expr::Ids(ids) => {
                let set = Cell::Set(ids.iter().map(|id| Cell::Text(id.clone())).collect());
                let n = self.bind(set);
                Some(self.session.flavour().in_set("r.id", n))
            }
            Expr::Text(_) if self.kind.text == crate::Text::None => Some("FALSE".to_owned()),
            Expr::Text(query) if self.session.flavour() == Flavour::Postgres => {
                self.has_text = true;
                let text = text::match_text(query);
                if text.is_empty() {
                    return Ok(Some("FALSE".to_owned()));
                }
                let n = self.bind(Cell::Text(text));
                Some(text::condition(n))
            }
            Expr::Text(_) => None,
            Expr::Exists(_)
            | Expr::Regex(..)
            | Expr::Word(..)
            | Expr::Element(..)
            | Expr::Size(..)
            | Expr::Joined(..) => None,
        })
    }

    fn bind(&mut self, value: Cell) -> usize {
        self.values.push(value);
        self.values.len()
    }

    fn class_sql(&mut self, expr: &Expr) -> Result<String> {
        let set = self.classes.satisfying(self.session, self.state, self.kind, expr)?;
        if set.is_all {
            return Ok("TRUE".to_owned());
        }
        let n = self.bind(Cell::Ints(set.numbers.clone()));
        Ok(self.session.flavour().in_set("r.class", n))
    }

    fn joined(&mut self, list: &[Expr], word: &str, none: &str, logic: Logic) -> Result<Option<String>> {
        let mut parts = Vec::with_capacity(list.len());
        for it in list {
            match self.sql(it, logic)? {
                Some(sql) => parts.push(format!("({sql})")),
                None => return Ok(None),
            }
        }
        Ok(Some(if parts.is_empty() { none.to_owned() } else { parts.join(word) }))
    }

    fn in_sql(&mut self, path: &Path, values: &[Value], logic: Logic) -> Option<String> {
        if values.iter().any(|value| matches!(value, Value::Null | Value::Json(_))) {
            return None;
        }
        let column = self.place(path)?;
        if !values.iter().all(|it| is_decided(column.ty(), it)) {
            return None;
        }
        let mut cells: Vec<Cell> = values.iter().filter_map(|value| cell(value, column.ty())).collect();
        cells.dedup();
        if cells.is_empty() {
            return Some("FALSE".to_owned());
        }
        let flavour = self.session.flavour();
        let one = cells.len() == 1;
        let n = match cells.pop() {
            Some(cell) if one => self.bind(cell),
            Some(cell) => {
                cells.push(cell);
                self.bind(Cell::Set(cells))
            }
            None => return None,
        };
        if let (Place::Many(many), Flavour::Postgres) = (&column, flavour) {
            let name = many.name;
            return Some(match (one, many.ty) {
                (false, _) => format!("r.\"{name}\" && ?{n}"),
                (true, ty) => format!("r.\"{name}\" @> ARRAY[?{n}::{}]", postgres::type_name(ty)),
            });
        }
        Some(column.condition(flavour, self.kind, logic, |name| {
            if one { format!("{name} = ?{n}") } else { flavour.in_set(name, n) }
        }))
    }

    fn range_sql(&mut self, path: &Path, lower: &End, upper: &End, logic: Logic) -> Option<String> {
        let column = self.place(path)?;
        let mut ends = Vec::new();
        for (end, including, excluding) in [(lower, ">=", ">"), (upper, "<=", "<")] {
            let (value, operator) = match end {
                End::Open => continue,
                End::Included(value) => (value, including),
                End::Excluded(value) => (value, excluding),
            };
            let (value, operator) = &whole_end(column.ty(), value, operator);
            match cell(value, column.ty()) {
                Some(cell) => ends.push((*operator, cell)),
                None if matches!(value, Value::Null | Value::Json(_) | Value::Instant(_)) => return None,
                None if !is_decided(column.ty(), value) => return None,
                None => return Some("FALSE".to_owned()),
            }
        }
        if ends.is_empty() {
            return None;
        }
        // Only now: a value that no statement uses would be refused.
        let ends: Vec<_> = ends.into_iter().map(|(operator, cell)| (operator, self.bind(cell))).collect();
        Some(column.condition(self.session.flavour(), self.kind, logic, |name| {
            let parts: Vec<String> =
                ends.iter().map(|(operator, n)| format!("{name} {operator} ?{n}")).collect();
            parts.join(" AND ")
        }))
    }

    fn prefix_sql(&mut self, path: &Path, prefix: &str, logic: Logic) -> Option<String> {
        let column = self.place(path)?;
        match column.ty() {
            Type::Text => {}
            Type::Instant | Type::Folded => return None,
            Type::Integer | Type::Real | Type::Boolean => return Some("FALSE".to_owned()),
        }
        let prefix: &str = &storable(prefix);
        let low = self.bind(Cell::Text(prefix.to_owned()));
        let high = text_after(prefix).map(|it| self.bind(Cell::Text(it)));
        Some(column.condition(self.session.flavour(), self.kind, logic, |name| match high {
            Some(high) => format!("{name} >= ?{low} AND {name} < ?{high}"),
            None => format!("{name} >= ?{low}"),
        }))
    }

    fn place(&self, path: &Path) -> Option<Place> {
        if self.kind.is_id(path) {
            return Some(Place::Id);
        }
        let column = self.kind.column_of(path)?;
        Some(match column.arity {
            Arity::One => Place::One(column),
            Arity::Many => Place::Many(column),
        })
    }
}

/// Where the values of a path are found.
enum Place {
    Id,
    One(&'static Column),
    Many(&'static Column),
}

impl Place {
    fn ty(&self) -> Type {
        match self {
            Self::Id => Type::Text,
            Self::One(column) | Self::Many(column) => column.ty,
        }
    }

    /// Returns the SQL that applies `test` to the column's name.
    fn condition(
        &self,
        flavour: Flavour,
        kind: &Kind,
        logic: Logic,
        test: impl Fn(&str) -> String,
    ) -> String {
        match self {
            Self::Id => test("r.id"),
            Self::One(column) => {
                let sql = test(&format!("r.\"{}\"", column.name));
                if logic == Logic::Strict { format!("({sql}) IS TRUE") } else { sql }
            }
            Self::Many(column) if flavour == Flavour::Postgres => {
                let test = test("x.value");
                format!("EXISTS (SELECT 1 FROM unnest(r.\"{}\") x (value) WHERE {test})", column.name)
            }
            Self::Many(column) => {
                let table = many_table(kind, column);
                format!("r.key IN (SELECT x.key FROM {table} x WHERE {})", test("x.value"))
            }
        }
    }
}

/// Returns whether a column of type `ty` keeps enough of the body to decide a comparison with `value`.
fn is_decided(ty: Type, value: &Value) -> bool {
    !matches!(
        (ty, value),
        (Type::Text, Value::Instant(_) | Value::Folded(_))
            | (Type::Folded, Value::Text(_) | Value::Instant(_))
            // What is an instant has become one; other texts compare with dates as texts.
            | (Type::Instant, Value::Folded(_) | Value::Text(_))
    )
}

/// Returns the cell that a column of type `ty` would hold for `value`; `None` when no such column can equal it.
fn cell(value: &Value, ty: Type) -> Option<Cell> {
    match (ty, value) {
        (Type::Text, Value::Text(text)) => Some(Cell::Text(storable(text).into_owned())),
        (Type::Integer | Type::Real, Value::Integer(number)) => Some(Cell::Int(*number)),
        (Type::Integer, Value::Real(number)) => match Cell::number(*number) {
            whole @ Cell::Int(_) => Some(whole),
            _ => None,
        },
        (Type::Real, Value::Real(number)) => Some(Cell::number(*number)),
        (Type::Boolean, Value::Boolean(it)) => Some(Cell::Int(i64::from(*it))),
        (Type::Instant, Value::Instant(ms)) => Some(Cell::Int(*ms)),
        (Type::Folded, Value::Folded(text)) => Some(Cell::Text(storable(&crate::fold(text)).into_owned())),
        (Type::Instant, Value::Text(text)) => crate::eval::instant_ms(text).map(Cell::Int),
        _ => None,
    }
}

/// Returns the equivalent end of a range over whole numbers: more than 2.5 means 3 and more.
fn whole_end(ty: Type, value: &Value, operator: &'static str) -> (Value, &'static str) {
    match (ty, value) {
        (Type::Integer, Value::Real(number)) if matches!(Cell::number(*number), Cell::Real(_)) => {
            if operator.starts_with('>') {
                (Value::Integer(number.ceil() as i64), ">=")
            } else {
                (Value::Integer(number.floor() as i64), "<=")
            }
        }
        _ => (value.clone(), operator),
    }
}

/// Returns the least text that is greater than every text with this prefix.
fn text_after(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            char::MAX => None,
            other => char::from_u32(u32::from(other) + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}
