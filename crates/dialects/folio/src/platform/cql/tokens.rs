//! The tokens of a query.

use crate::platform::cql::tree::{CqlError, Relation};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind {
    Open,
    Close,
    Slash,
    Relation(Relation),
    Word(String),
    Quoted(String),
}

#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) at: usize,
}

/// Splits a query into tokens. Errors: a quote that is not closed.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, CqlError> {
    let mut list = Vec::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, it)| *it);
        let kind = match (character, next) {
            (it, _) if it.is_whitespace() => continue,
            ('(', _) => TokenKind::Open,
            (')', _) => TokenKind::Close,
            ('/', _) => TokenKind::Slash,
            ('=', Some('=')) => two(&mut characters, Relation::Exact),
            ('<', Some('>')) => two(&mut characters, Relation::Different),
            ('<', Some('=')) => two(&mut characters, Relation::LessOrEqual),
            ('>', Some('=')) => two(&mut characters, Relation::GreaterOrEqual),
            ('=', _) => TokenKind::Relation(Relation::Words),
            ('<', _) => TokenKind::Relation(Relation::Less),
            ('>', _) => TokenKind::Relation(Relation::Greater),
            ('"', _) => {
                let mut word = String::new();
                loop {
                    match characters.next() {
                        Some((_, '"')) => break TokenKind::Quoted(word),
                        Some((_, '\\')) => {
                            word.push('\\');
                            word.extend(characters.next().map(|(_, it)| it));
                        }
                        Some((_, it)) => word.push(it),
                        None => {
                            return Err(CqlError { reason: "a quote that is not closed".to_owned(), at });
                        }
                    }
                }
            }
            (first, _) => {
                let mut word = String::new();
                push_bare(&mut word, first, &mut characters);
                while let Some((_, it)) = characters.peek().copied() {
                    if it.is_whitespace() || matches!(it, '(' | ')' | '/' | '=' | '<' | '>' | '"') {
                        break;
                    }
                    characters.next();
                    push_bare(&mut word, it, &mut characters);
                }
                TokenKind::Word(word)
            }
        };
        list.push(Token { kind, at });
    }
    Ok(list)
}

type Characters<'a> = std::iter::Peekable<std::str::CharIndices<'a>>;

fn two(characters: &mut Characters<'_>, relation: Relation) -> TokenKind {
    characters.next();
    TokenKind::Relation(relation)
}

/// Appends a character to a bare word; a backslash includes the next character.
fn push_bare(word: &mut String, character: char, characters: &mut Characters<'_>) {
    word.push(character);
    if character == '\\' {
        word.extend(characters.next().map(|(_, it)| it));
    }
}
