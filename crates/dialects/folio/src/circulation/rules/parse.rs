//! Parser of the rules.

use super::tokens::{Line, Token, lines};
use super::{Condition, Criterion, N_CRITERIA, Policies, PolicyKind, Priority, Rule, Rules, RulesFault};

impl Rules {
    /// Parses the rules.
    ///
    /// Errors: the first syntax error, with its position.
    pub(crate) fn parse(text: &str) -> Result<Self, RulesFault> {
        let lines = lines(text)?;
        let [first, rest @ ..] = lines.as_slice() else {
            return Err(no_priority(1, 1, "nothing"));
        };
        // The fallback may follow the priorities on the same line.
        let (first, fallback) = first.split_before("fallback-policy");
        let first = &first;
        let priorities = priorities(first)?;
        let mut reader = Reader { rules: Vec::new(), fallback: None, above: Vec::new() };
        for line in fallback.iter().chain(rest) {
            reader.line(line)?;
        }
        let Some((fallback, n_before)) = reader.fallback else {
            let last = rest.last().unwrap_or(first);
            return Err(last.fault(last.end, "the line `fallback-policy: l … r … n … o … i …` is missing"));
        };
        let place = (fallback.line, 1);
        let misplaced = match priorities.last() {
            Some(Priority::FirstLine) if n_before != reader.rules.len() => "after the last rule",
            Some(Priority::LastLine) if n_before != 0 => "before the first rule",
            _ => return Ok(Self::sorted(reader.rules, fallback, &priorities)),
        };
        let how = if misplaced.starts_with("after") { "first-line" } else { "last-line" };
        let message = format!("with {how} priority the fallback-policy must stand {misplaced}");
        Err(RulesFault { line: place.0, column: place.1, message })
    }
}

fn no_priority(line: usize, column: usize, found: &str) -> RulesFault {
    let message =
        format!("expected the priority line first, e.g. `priority: t, s, c, b, a, m, g`; found {found}");
    RulesFault { line, column, message }
}

/// The tokens of a line, consumed one by one.
struct Cursor<'a> {
    line: &'a Line<'a>,
    next: usize,
}

impl<'a> Cursor<'a> {
    fn of(line: &'a Line<'a>) -> Self {
        Self { line, next: 0 }
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.line.tokens.get(self.next).copied()
    }

    fn take_if(&mut self, text: &str) -> bool {
        let is_it = self.peek().is_some_and(|it| it.text == text);
        self.next += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, text: &str) -> Result<(), RulesFault> {
        if self.take_if(text) { Ok(()) } else { Err(self.unexpected(&format!("`{text}`"))) }
    }

    fn word(&mut self, expected: &str) -> Result<Token<'a>, RulesFault> {
        match self.peek().filter(Token::is_word) {
            Some(token) => {
                self.next += 1;
                Ok(token)
            }
            None => Err(self.unexpected(expected)),
        }
    }

    fn unexpected(&self, expected: &str) -> RulesFault {
        match self.peek() {
            Some(token) => self
                .line
                .fault(token.column, format!("mismatched input '{}' expecting {expected}", token.text)),
            None => self.line.fault(self.line.end, format!("the line ends, expecting {expected}")),
        }
    }
}

/// Parses `priority: t, s, c, b, a, m, g`, `priority: first-line`, or a list of `criterium(…)`, `number-of-criteria`
/// and one of `first-line` and `last-line`, which comes last.
fn priorities(line: &Line<'_>) -> Result<Vec<Priority>, RulesFault> {
    let mut cursor = Cursor::of(line);
    if !cursor.take_if("priority") {
        let found = cursor.peek().map_or_else(String::new, |it| format!("`{}`", it.text));
        return Err(no_priority(line.number, 1 + line.indent, &found));
    }
    cursor.expect(":")?;
    if cursor.peek().is_some_and(|it| Criterion::of_letter(it.text).is_some()) {
        let letters = letters(&mut cursor)?;
        end_of_line(&cursor)?;
        return Ok(vec![Priority::Criterion(letters), Priority::NumberOfCriteria, Priority::LastLine]);
    }
    let mut list = Vec::new();
    loop {
        let place = cursor.peek().map_or(line.end, |it| it.column);
        let word = cursor.word("`criterium(…)`, `number-of-criteria`, `first-line` or `last-line`")?;
        let priority = match word.text {
            "criterium" => {
                cursor.expect("(")?;
                let letters = letters(&mut cursor)?;
                cursor.expect(")")?;
                Priority::Criterion(letters)
            }
            "number-of-criteria" => Priority::NumberOfCriteria,
            "first-line" => Priority::FirstLine,
            "last-line" => Priority::LastLine,
            other => {
                return Err(line.fault(
                    place,
                    format!(
                        "mismatched input '{other}' expecting `criterium(…)`, `number-of-criteria`, \
                         `first-line` or `last-line`"
                    ),
                ));
            }
        };
        let is_last = matches!(priority, Priority::FirstLine | Priority::LastLine);
        list.push(priority);
        if is_last {
            end_of_line(&cursor)?;
            return Ok(list);
        }
        cursor.expect(",")?;
    }
}

/// Parses all seven letters, each once, separated by commas.
fn letters(cursor: &mut Cursor<'_>) -> Result<Vec<Criterion>, RulesFault> {
    let mut list = Vec::new();
    while list.len() < N_CRITERIA {
        if !list.is_empty() {
            cursor.expect(",")?;
        }
        let token = cursor.word("one of the letters t, s, c, b, a, m, g")?;
        match Criterion::of_letter(token.text) {
            Some(it) if list.contains(&it) => {
                return Err(cursor
                    .line
                    .fault(token.column, format!("the letter {} occurs twice", it.letter())));
            }
            Some(it) => list.push(it),
            None => {
                let message = format!(
                    "mismatched input '{}' expecting one of the letters t, s, c, b, a, m, g",
                    token.text
                );
                return Err(cursor.line.fault(token.column, message));
            }
        }
    }
    Ok(list)
}

fn end_of_line(cursor: &Cursor<'_>) -> Result<(), RulesFault> {
    if cursor.peek().is_none() { Ok(()) } else { Err(cursor.unexpected("the end of the line")) }
}

/// The parser's state.
struct Reader {
    rules: Vec<Rule>,
    /// The fallback line and the number of rules before it.
    fallback: Option<(Rule, usize)>,
    /// Lines under which the next may be indented: (indent, conditions in effect there).
    above: Vec<(usize, Vec<Condition>)>,
}

impl Reader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), RulesFault> {
        let mut cursor = Cursor::of(line);
        if cursor.take_if("fallback-policy") {
            return self.fallback(line, cursor);
        }
        let mut conditions = self.inherited(line)?;
        loop {
            conditions.push(condition(&mut cursor)?);
            if !cursor.take_if("+") {
                break;
            }
        }
        self.above.push((line.indent, conditions.clone()));
        if cursor.peek().is_none() {
            return Ok(());
        }
        let (policies, columns) = policies(&mut cursor)?;
        self.rules.push(Rule { line: line.number, columns, conditions, policies });
        Ok(())
    }

    fn fallback(&mut self, line: &Line<'_>, mut cursor: Cursor<'_>) -> Result<(), RulesFault> {
        if line.indent != 0 || self.fallback.is_some() {
            let message = "one fallback-policy line is allowed, and without spaces before it";
            return Err(line.fault(line.indent + 1, message));
        }
        let (policies, columns) = policies(&mut cursor)?;
        let rule = Rule { line: line.number, columns, conditions: Vec::new(), policies };
        self.fallback = Some((rule, self.rules.len()));
        self.above.clear();
        Ok(())
    }

    /// Returns the conditions of the line under which this one is indented. A line with a smaller indent than the
    /// previous one must have the indent of an earlier line.
    fn inherited(&mut self, line: &Line<'_>) -> Result<Vec<Condition>, RulesFault> {
        let mut closed = None;
        while self.above.last().is_some_and(|(indent, _)| line.indent <= *indent) {
            closed = self.above.pop().map(|(indent, _)| indent);
        }
        let is_between = closed.is_some_and(|indent| indent != line.indent);
        let is_indented_below_nothing = self.above.is_empty() && line.indent != 0;
        if is_between || is_indented_below_nothing {
            let message = "the indentation is that of no line above it";
            return Err(line.fault(line.indent + 1, message));
        }
        Ok(self.above.last().map_or_else(Vec::new, |(_, conditions)| conditions.clone()))
    }
}

/// Parses a letter and its values: `g staff faculty`, `m !dvd`, `s all`.
fn condition(cursor: &mut Cursor<'_>) -> Result<Condition, RulesFault> {
    const EXPECTED: &str = "a criterium: one of the letters g, m, t, a, b, c, s";
    let Some(criterium) = cursor.peek().and_then(|it| Criterion::of_letter(it.text)) else {
        return Err(cursor.unexpected(EXPECTED));
    };
    cursor.next += 1;
    let mut condition = Condition { criterium, among: Vec::new(), except: Vec::new() };
    if cursor.take_if("all") {
        return Ok(condition);
    }
    loop {
        let is_negated = cursor.take_if("!");
        let value = cursor.word("a value, `!` and a value, or `all`")?.text.to_owned();
        if is_negated {
            condition.except.push(value)
        } else {
            condition.among.push(value)
        }
        if cursor.peek().is_none_or(|it| matches!(it.text, "+" | ":")) {
            return Ok(condition);
        }
    }
}

/// Parses `: l … r … n … o … i …`, each once, in any order.
fn policies(cursor: &mut Cursor<'_>) -> Result<(Policies, [usize; 5]), RulesFault> {
    cursor.expect(":")?;
    let mut ids: [Option<String>; 5] = Default::default();
    let mut columns = [0; 5];
    while let Some(token) = cursor.peek() {
        let kind = PolicyKind::ALL.iter().find(|(letter, _)| token.text.chars().eq([*letter]));
        let Some((letter, kind)) = kind else {
            return Err(cursor.unexpected("a policy: one of the letters l, r, n, o, i"));
        };
        cursor.next += 1;
        let id = cursor.word("the id of a policy")?;
        if ids[kind.place()].is_some() {
            return Err(cursor.line.fault(token.column, format!("Only one policy of type {letter} allowed")));
        }
        ids[kind.place()] = Some(id.text.to_owned());
        columns[kind.place()] = id.column;
    }
    let mut all: [String; 5] = Default::default();
    for (letter, kind) in PolicyKind::ALL {
        let Some(id) = ids[kind.place()].take() else {
            let message = format!("Must contain one of each policy type, missing type {letter}");
            return Err(cursor.line.fault(cursor.line.end, message));
        };
        all[kind.place()] = id;
    }
    Ok((Policies(all), columns))
}
