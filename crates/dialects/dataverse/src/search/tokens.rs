//! The parts of a query: words, phrases, names of fields, ranges, operators.

use pinakes_store::Word;

use super::{alike, moment};

/// A part of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Phrase(String),
    /// A word or phrase before a tilde, with its fuzzy match.
    Alike(String, Alike),
    /// A field's name, before its value.
    Field(String),
    Range(String, String, bool, bool),
    And,
    Or,
    Not,
    Must,
    MustNot,
    Open,
    Close,
}

/// The fuzzy match of a word or a phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Alike {
    /// Words with a similar spelling.
    Spelling(Word),
    /// The pattern for its words near each other.
    Nearness(String),
}

/// Splits a query into its parts; `now_ms` is the value of `NOW`.
///
/// Errors: what is wrong with the syntax.
pub(super) fn tokens(text: &str, now_ms: i64) -> Result<Vec<Token>, String> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&it) = characters.get(at) {
        let starts_word = at == 0 || matches!(characters[at - 1], ' ' | '(' | ':' | '+' | '-' | '!');
        match it {
            it if it.is_whitespace() => at += 1,
            '(' => {
                tokens.push(Token::Open);
                at += 1;
            }
            ')' => {
                tokens.push(Token::Close);
                at += 1;
            }
            '+' if starts_word => {
                tokens.push(Token::Must);
                at += 1;
            }
            '-' | '!' if starts_word => {
                tokens.push(Token::MustNot);
                at += 1;
            }
            '"' => {
                let (phrase, after) = quoted(&characters, at + 1)
                    .ok_or_else(|| format!("Cannot parse '{text}': a quote is opened and not closed"))?;
                at = after;
                let distance = tilde(&characters, &mut at);
                tokens.push(match distance.and_then(|it| alike::nearness(&phrase, &it)) {
                    Some(pattern) => Token::Alike(phrase, Alike::Nearness(pattern)),
                    None => Token::Phrase(phrase),
                });
                skip_boost(&characters, &mut at);
            }
            '[' | '{' => {
                let rest: String = characters[at + 1..].iter().collect();
                let end = rest.find([']', '}']);
                let end =
                    end.ok_or_else(|| format!("Cannot parse '{text}': a range is opened and not closed"))?;
                let (low, high) = rest[..end]
                    .split_once(" TO ")
                    .ok_or_else(|| format!("Cannot parse '{text}': a range is written [a TO b]"))?;
                let clean = |it: &str| moment::resolved(it.trim().trim_matches('"'), now_ms);
                let closing = rest[end..].chars().next();
                tokens.push(Token::Range(clean(low)?, clean(high)?, it == '[', closing == Some(']')));
                at += 1 + rest[..end].chars().count() + 1;
            }
            _ => {
                let (word, after, is_field) = word(&characters, at);
                at = after;
                let distance = if is_field { None } else { tilde(&characters, &mut at) };
                let spelling = distance.and_then(|it| alike::spelling(&word, &it));
                tokens.push(match (word.as_str(), spelling) {
                    (_, Some(spelling)) => Token::Alike(word, Alike::Spelling(spelling)),
                    ("AND" | "&&", _) if !is_field => Token::And,
                    ("OR" | "||", _) if !is_field => Token::Or,
                    ("NOT", _) if !is_field => Token::Not,
                    _ if is_field => Token::Field(word),
                    _ => Token::Word(word),
                });
                skip_boost(&characters, &mut at);
            }
        }
    }
    Ok(tokens)
}

fn quoted(characters: &[char], mut at: usize) -> Option<(String, usize)> {
    let mut text = String::new();
    loop {
        match characters.get(at)? {
            '"' => return Some((text, at + 1)),
            '\\' => {
                at += 1;
                text.push(*characters.get(at)?);
            }
            other => text.push(*other),
        }
        at += 1;
    }
}

/// Returns a word, or a field's name if a colon follows. A colon after a scheme such as `doi`, `hdl` or `http` is part
/// of the word.
fn word(characters: &[char], mut at: usize) -> (String, usize, bool) {
    let mut text = String::new();
    while let Some(&it) = characters.get(at) {
        match it {
            '\\' => {
                at += 1;
                text.extend(characters.get(at));
            }
            ':' => {
                let is_scheme =
                    matches!(text.as_str(), "doi" | "hdl" | "perma" | "http" | "https") || text.contains(':');
                if !is_scheme && !text.is_empty() {
                    return (text, at + 1, true);
                }
                text.push(':');
            }
            ' ' | '\t' | '\n' | '\r' | '(' | ')' | '"' | '^' => break,
            '~' if !text.is_empty() && ends_with_tilde(characters, at) => break,
            other => text.push(other),
        }
        at += 1;
    }
    (text, at.max(1), false)
}

/// Returns the number after a tilde that ends a word or a phrase; empty if there is none. A tilde within a word, as in
/// a URL, is an ordinary character.
fn tilde(characters: &[char], at: &mut usize) -> Option<String> {
    if characters.get(*at) != Some(&'~') {
        return None;
    }
    let number: String = digits(characters, *at + 1).collect();
    let end = *at + 1 + number.len();
    let is_end = characters.get(end).is_none_or(|it| it.is_whitespace() || matches!(it, '(' | ')' | '^'));
    is_end.then(|| *at = end)?;
    Some(number)
}

fn ends_with_tilde(characters: &[char], mut at: usize) -> bool {
    tilde(characters, &mut at).is_some()
}

fn skip_boost(characters: &[char], at: &mut usize) {
    if characters.get(*at) == Some(&'^') {
        *at += 1 + digits(characters, *at + 1).count();
    }
}

fn digits(characters: &[char], at: usize) -> impl Iterator<Item = char> {
    let rest = characters.get(at..).unwrap_or_default();
    rest.iter().copied().take_while(|it| it.is_ascii_digit() || *it == '.')
}
