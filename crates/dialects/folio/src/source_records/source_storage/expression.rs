//! The expressions by which clients search MARC records: `p_05 = 'c'` about the leader, `035.a ^= '(OCoLC)'` about fields,
//! joined by `and`, `or` and parentheses.

mod in_store;

use std::ops::ControlFlow;

use pinakes_store::{Expr, Query, View};
use serde_json::{Map, Value};

use super::SOURCE_RECORD;
use crate::platform::error::FolioError;
use crate::platform::limits::{MARC_CONDITIONS, MARC_NESTING};
use crate::source_records::marc::MarcPath;

/// A search by two expressions.
#[derive(Debug)]
pub(super) struct Search {
    filter: Expr,
    conditions: Vec<Expression>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Expression {
    All(Vec<Self>),
    Any(Vec<Self>),
    Is(Condition),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    place: Place,
    comparison: Comparison,
    value: String,
}

/// What a condition looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// `p_05`: a character of the leader.
    Leader(usize),
    /// `001.value`.
    Control(String),
    /// `005.03_02`: characters of a control field, from the first on, and how many.
    Characters(String, usize, usize),
    /// `005.date`: the first eight characters.
    Date(String),
    /// `999.ind1`: the first or the second indicator.
    Indicator(String, &'static str),
    /// `035.a`.
    Subfield(String, char),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Begins,
    /// `is 'present'`, `is 'absent'`.
    Is,
    From,
    To,
    In,
}

impl Search {
    /// Reads `leaderSearchExpression`, `fieldsSearchExpression`, `deleted` and `suppressFromDiscovery`. Errors: 400.
    pub(super) fn of(body: &Map<String, Value>) -> Result<Self, FolioError> {
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().trim();
        let mut conditions = Vec::new();
        for name in ["leaderSearchExpression", "fieldsSearchExpression"] {
            if !text(name).is_empty() {
                let fault = |fault: String| FolioError::bad_request(format!("{name}: {fault}"));
                conditions.push(parse(text(name), name.starts_with("leader")).map_err(fault)?);
            }
        }
        let flag = |name: &str| body.get(name).and_then(Value::as_bool);
        let current = Expr::Is("state".into(), "ACTUAL".into());
        let current = match flag("deleted") {
            Some(true) => Expr::Or(vec![current, Expr::Is("state".into(), "DELETED".into())]),
            _ => current,
        };
        let mut all = vec![Expr::Is("recordType".into(), "MARC_BIB".into()), current];
        if let Some(is_suppressed) = flag("suppressFromDiscovery") {
            all.push(Expr::Is("additionalInfo.suppressDiscovery".into(), is_suppressed.into()));
        }
        all.extend(conditions.iter().map(Expression::in_store));
        Ok(Self { filter: Expr::And(all), conditions })
    }

    /// Passes each matching record to `visit`.
    pub(super) fn for_each(
        &self,
        view: &mut View<'_>,
        mut visit: impl FnMut(&Value) -> ControlFlow<()>,
    ) -> Result<(), FolioError> {
        view.for_each_body(&SOURCE_RECORD, &Query::filter(self.filter.clone()), |_, body| {
            let content = body.pointer("/parsedRecord/content").unwrap_or(&Value::Null);
            match self.conditions.iter().all(|it| it.holds(content)) {
                true => visit(&body),
                false => ControlFlow::Continue(()),
            }
        })?;
        Ok(())
    }
}

impl Expression {
    fn holds(&self, content: &Value) -> bool {
        match self {
            Self::All(list) => list.iter().all(|it| it.holds(content)),
            Self::Any(list) => list.iter().any(|it| it.holds(content)),
            Self::Is(it) => it.holds(content),
        }
    }
}

impl Condition {
    fn holds(&self, content: &Value) -> bool {
        let found = self.place.values_in(content);
        match self.comparison {
            Comparison::Is => found.is_empty() == (self.value == "absent"),
            _ => found.iter().any(|it| self.fits(it)),
        }
    }

    fn fits(&self, found: &str) -> bool {
        let value = self.value.as_str();
        match self.comparison {
            Comparison::Equal => found == value,
            Comparison::NotEqual => found != value,
            Comparison::Begins => found.starts_with(value),
            Comparison::From => value <= found,
            Comparison::To => found <= value,
            Comparison::In => {
                value.split_once('-').is_some_and(|(from, to)| from.trim() <= found && found <= to.trim())
            }
            Comparison::Is => false,
        }
    }
}

impl Place {
    fn read(text: &str, is_leader: bool) -> Option<Self> {
        if is_leader {
            let at: usize = text.strip_prefix("p_")?.parse().ok()?;
            return (at < 24).then_some(Self::Leader(at));
        }
        let (tag, part) = text.split_once('.')?;
        if tag.len() != 3 || !tag.bytes().all(|it| it.is_ascii_alphanumeric()) {
            return None;
        }
        let tag = tag.to_owned();
        let mut signs = part.chars();
        match part {
            "value" => Some(Self::Control(tag)),
            "date" => Some(Self::Date(tag)),
            "ind1" => Some(Self::Indicator(tag, "ind1")),
            "ind2" => Some(Self::Indicator(tag, "ind2")),
            _ => match (signs.next()?, signs.next()) {
                (code, None) => Some(Self::Subfield(tag, code)),
                _ => {
                    let (from, n) = part.split_once('_')?;
                    Some(Self::Characters(tag, from.parse().ok()?, n.parse().ok()?))
                }
            },
        }
    }

    fn values_in(&self, content: &Value) -> Vec<String> {
        let part = |text: &str, from: usize, n: usize| -> Option<String> {
            let found: String = text.chars().skip(from).take(n).collect();
            (found.chars().count() == n).then_some(found)
        };
        let control = |tag: &str| -> Vec<String> {
            let path = MarcPath::new(tag, "*", "*", "");
            path.values_in(content).into_iter().map(str::to_owned).collect()
        };
        match self {
            Self::Leader(at) => {
                let leader = content.get("leader").and_then(Value::as_str).unwrap_or_default();
                part(leader, *at, 1).into_iter().collect()
            }
            Self::Control(tag) => control(tag),
            Self::Characters(tag, from, n) => {
                control(tag).iter().filter_map(|it| part(it, *from, *n)).collect()
            }
            Self::Date(tag) => control(tag).iter().filter_map(|it| part(it, 0, 8)).collect(),
            Self::Indicator(tag, name) => {
                let fields = content.get("fields").and_then(Value::as_array).into_iter().flatten();
                let found = fields.filter_map(|it| it.get(tag.as_str())?.get(*name)?.as_str());
                found.map(|it| if it == " " { "#" } else { it }.to_owned()).collect()
            }
            Self::Subfield(tag, code) => {
                let path = MarcPath::new(tag, "*", "*", code.encode_utf8(&mut [0; 4]));
                path.values_in(content).into_iter().map(str::to_owned).collect()
            }
        }
    }
}

/// Splits an expression into parentheses, words and quoted texts; quoted texts keep their first quote.
fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let n_bytes = match first {
            '(' | ')' => 1,
            '\'' => {
                let end = rest[1..].find('\'').ok_or_else(|| format!("{rest:?} has no closing quote"))?;
                found.push(rest[..=end].to_owned());
                rest = rest[end + 2..].trim_start();
                continue;
            }
            _ => rest.find(|it: char| it.is_whitespace() || "()'".contains(it)).unwrap_or(rest.len()),
        };
        let word = &rest[..n_bytes];
        let comparison = ["not=", "^=", "="].into_iter().find(|it| word.ends_with(it)).unwrap_or_default();
        let place = &word[..n_bytes - comparison.len()];
        found.extend([place, comparison].into_iter().filter(|it| !it.is_empty()).map(str::to_owned));
        rest = rest[n_bytes..].trim_start();
    }
    Ok(found)
}

/// Parses an expression; `and` binds more strongly than `or`.
fn parse(text: &str, is_leader: bool) -> Result<Expression, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, n_conditions: 0, is_leader };
    let parsed = parser.any(0)?;
    match parser.tokens {
        [] => Ok(parsed),
        [next, ..] => Err(format!("{next:?} is not expected there")),
    }
}

/// Parses a text as an expression about the leader and as one about fields, and evaluates both on a record.
#[cfg(any(fuzzing, test))]
pub(crate) fn try_on(text: &str, content: &Value) {
    for is_leader in [true, false] {
        if let Ok(expression) = parse(text, is_leader) {
            expression.holds(content);
        }
    }
}

struct Parser<'a> {
    tokens: &'a [String],
    n_conditions: usize,
    is_leader: bool,
}

impl Parser<'_> {
    fn takes(&mut self, word: &str) -> bool {
        match self.tokens.split_first() {
            Some((first, rest)) if first.eq_ignore_ascii_case(word) => {
                self.tokens = rest;
                true
            }
            _ => false,
        }
    }

    fn next(&mut self) -> Result<String, String> {
        let (first, rest) = self.tokens.split_first().ok_or("the expression ends too early")?;
        self.tokens = rest;
        Ok(first.clone())
    }

    fn any(&mut self, depth: usize) -> Result<Expression, String> {
        let mut list = vec![self.all(depth)?];
        while self.takes("or") {
            list.push(self.all(depth)?);
        }
        Ok(if list.len() == 1 { list.remove(0) } else { Expression::Any(list) })
    }

    fn all(&mut self, depth: usize) -> Result<Expression, String> {
        let mut list = vec![self.one(depth)?];
        while self.takes("and") {
            list.push(self.one(depth)?);
        }
        Ok(if list.len() == 1 { list.remove(0) } else { Expression::All(list) })
    }

    fn one(&mut self, depth: usize) -> Result<Expression, String> {
        if self.takes("(") {
            if MARC_NESTING <= depth {
                return Err(format!("more than {MARC_NESTING} parentheses are open"));
            }
            let inner = self.any(depth + 1)?;
            return if self.takes(")") { Ok(inner) } else { Err("a parenthesis is not closed".to_owned()) };
        }
        self.n_conditions += 1;
        if MARC_CONDITIONS < self.n_conditions {
            return Err(format!("there are more than {MARC_CONDITIONS} conditions"));
        }
        let place = self.next()?;
        let expected = if self.is_leader { "p_05" } else { "035.a, 001.value, 999.ind1 or 005.03_02" };
        let place = Place::read(&place, self.is_leader)
            .ok_or_else(|| format!("{place:?} is no place, expected e.g. {expected}"))?;
        let word = self.next()?;
        let comparison = match word.to_ascii_lowercase().as_str() {
            "=" => Comparison::Equal,
            "not=" => Comparison::NotEqual,
            "^=" => Comparison::Begins,
            "is" => Comparison::Is,
            "from" => Comparison::From,
            "to" => Comparison::To,
            "in" => Comparison::In,
            _ => return Err(format!("{word:?} is no comparison: =, not=, ^=, is, from, to or in is")),
        };
        let value = self.next()?;
        let value = value.strip_prefix('\'').ok_or_else(|| format!("{value:?} is not in quotes"))?;
        Ok(Expression::Is(Condition { place, comparison, value: value.to_owned() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn expressions_are_about_leader_and_fields() {
        let content = json!({"leader": "00714cam a2200205 a 4500", "fields": [
            {"001": "393893"}, {"005": "20141107001016.0"},
            {"035": {"ind1": " ", "ind2": " ", "subfields": [{"a": "(OCoLC)63611770"}]}},
            {"999": {"ind1": "f", "ind2": "f", "subfields": [{"i": "x"}]}},
        ]});
        for (text, is_leader, expected) in [
            ("p_05 = 'c' and p_06 = 'a'", true, true),
            ("p_05 not= 'c'", true, false),
            ("p_05 = 'd' or p_06 = 'a' and p_07 = 'm'", true, true),
            ("(p_05 = 'd' or p_06 = 'a') and p_07 = 's'", true, false),
            ("001.value = '393893' and 005.value ^= '2014110'", false, true),
            ("035.ind1 = '#' and 005.03_02 = '41'", false, true),
            ("005.date from '20141107' and 005.date to '20141107'", false, true),
            ("005.date in '20141108-20200114'", false, false),
            ("999.ind1 = 'f' and 050.a is 'absent'", false, true),
            ("035.a is 'absent'", false, false),
            ("035.a ^= '(OCoLC)'", false, true),
            ("035.a='(OCoLC)1'", false, false),
        ] {
            let holds = parse(text, is_leader).map(|it| it.holds(&content));
            assert_eq!(holds, Ok(expected), "{text}");
        }
    }

    proptest::proptest! {
        /// The store must find at least the records for which an expression holds.
        #[test]
        fn the_store_finds_all_for_which_an_expression_holds(
            place in proptest::sample::select(vec![
                "001.value", "001.00_02", "001.01_02", "001.02_01", "001.date", "001.150_02", "001.60_40", "245.ind1", "245.a", "245.6",
            ]),
            comparison in proptest::sample::select(vec!["=", "not=", "^=", "is", "from", "to", "in"]),
            value in "[#a\u{e9}&. -]{0,3}|[ab]{7,9}|present|absent|a-b|# - a",
            texts in proptest::collection::vec("[#a\u{e9}&. -]{0,4}|[ab]{7,9}", 0..3),
        ) {
            let mut fields: Vec<Value> = texts.iter().map(|it| json!({"001": it})).collect();
            let field = |it: &String| json!({"245": {"ind1": it, "ind2": " ", "subfields": [{"a": it}, {"6": it}]}});
            fields.extend(texts.iter().map(field));
            let leader = texts.join("");
            let content = json!({"leader": leader, "fields": fields});
            let body = json!({"parsedRecord": {"content": content}});
            for (text, is_leader) in
                [(format!("{place} {comparison} '{value}'"), false), (format!("p_01 {comparison} '{value}'"), true)]
            {
                let expression = parse(&text, is_leader).expect("an expression");
                let is_found = pinakes_store::matches(&expression.in_store(), &body);
                proptest::prop_assert!(is_found || !expression.holds(&content), "{text}: {body}");
            }
        }
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in [
            "035.a",
            "035.a = x",
            "035.a = 'x",
            "03.a = 'x'",
            "(035.a = 'x'",
            "035.a ~ 'x'",
            "p_05 = 'c'",
            ")",
        ] {
            assert!(parse(text, false).is_err(), "{text}");
        }
        assert!(parse("p_24 = 'c'", true).is_err());
        assert!(parse(&format!("{}035.a = 'x'", "(".repeat(100)), false).is_err());
    }
}
