//! Lines and words of the rules' language, each with its position.

use super::RulesFault;

/// A word or sign, and its column counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) column: usize,
    pub(super) text: &'a str,
}

impl Token<'_> {
    /// Checks whether the token is a word rather than a sign.
    pub(super) fn is_word(&self) -> bool {
        self.text.starts_with(is_word_char)
    }
}

/// A line that is neither empty nor a comment.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub(super) number: usize,
    /// Number of spaces before the first token.
    pub(super) indent: usize,
    pub(super) tokens: Vec<Token<'a>>,
    /// Column after the last token.
    pub(super) end: usize,
}

impl Line<'_> {
    /// Builds a fault at a column of the line.
    pub(super) fn fault(&self, column: usize, message: impl Into<String>) -> RulesFault {
        RulesFault { line: self.number, column, message: message.into() }
    }
}

impl<'a> Line<'a> {
    /// Splits the line before a word; the second part becomes a line of its own. Nothing is split off if the word comes
    /// first.
    pub(super) fn split_before(&self, word: &str) -> (Line<'a>, Option<Line<'a>>) {
        let (tokens, number) = (&self.tokens, self.number);
        let at = tokens.iter().skip(1).position(|it| it.text == word).map_or(tokens.len(), |it| it + 1);
        let (before, behind) = tokens.split_at(at);
        let end = before.last().map_or(self.end, |it| it.column + it.text.chars().count());
        let rest = Line { number, indent: 0, tokens: behind.to_vec(), end: self.end };
        let first = Line { number, indent: self.indent, tokens: before.to_vec(), end };
        (first, (!behind.is_empty()).then_some(rest))
    }
}

/// Returns the lines of a text, without comments and empty lines.
pub(super) fn lines(text: &str) -> Result<Vec<Line<'_>>, RulesFault> {
    let mut list = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let said = line.find(['#', '/']).map_or(line, |at| &line[..at]);
        let line = tokens(index + 1, said)?;
        if !line.tokens.is_empty() {
            list.push(line);
        }
    }
    Ok(list)
}

fn tokens(number: usize, text: &str) -> Result<Line<'_>, RulesFault> {
    let mut line = Line { number, indent: 0, tokens: Vec::new(), end: 1 };
    let mut chars = text.char_indices().enumerate().peekable();
    while let Some((column, (start, char))) = chars.next() {
        let column = column + 1;
        let mut end = start + char.len_utf8();
        match char {
            ' ' => continue,
            '\t' => return Err(line.fault(column, "Tabulator character is not allowed, use spaces instead.")),
            ':' | '+' | '!' | ',' | '(' | ')' => {}
            it if is_word_char(it) => {
                while let Some((_, (at, it))) = chars.next_if(|(_, (_, it))| is_word_char(*it)) {
                    end = at + it.len_utf8();
                }
            }
            other => return Err(line.fault(column, format!("token recognition error at: '{other}'"))),
        }
        if line.tokens.is_empty() {
            line.indent = column - 1;
        }
        line.tokens.push(Token { column, text: &text[start..end] });
        line.end = column + text[start..end].chars().count();
    }
    Ok(line)
}

fn is_word_char(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '-' | '_')
}
