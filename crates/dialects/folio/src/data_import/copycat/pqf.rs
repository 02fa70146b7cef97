//! Queries in prefix notation, as profiles contain them: `@and @attr 1=7 "0140449132" @attr 1=1016 odyssey`.

use super::ber;

/// Object identifier of the attribute set Bib-1.
const BIB_1: [u32; 6] = [1, 2, 840, 10003, 3, 1];
/// Maximum number of operators and words in a query.
const WORDS_MAX: usize = 100;

/// A query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Query {
    /// A term with its attributes (type and value).
    Term(Vec<(u32, u32)>, String),
    /// Two queries combined by `and` (0), `or` (1) or `not` (2).
    Joined(u32, Box<Query>, Box<Query>),
}

/// Splits a query into words; a quoted string is one word and marked as not being an operator.
fn words(text: &str) -> Vec<(String, bool)> {
    let mut words = Vec::new();
    let mut characters = text.chars().peekable();
    while let Some(first) = characters.next() {
        if first.is_whitespace() {
            continue;
        }
        let mut word = String::new();
        let is_quoted = first == '"';
        if !is_quoted {
            word.push(first);
        }
        while let Some(character) = characters.next() {
            match character {
                '\\' if is_quoted => word.extend(characters.next()),
                '"' if is_quoted => break,
                it if !is_quoted && it.is_whitespace() => break,
                it => word.push(it),
            }
        }
        words.push((word, is_quoted));
    }
    words
}

/// Parses a query.
///
/// Errors: what was expected and what was found.
pub(super) fn read(text: &str) -> Result<Query, String> {
    let words = words(text);
    if WORDS_MAX < words.len() {
        return Err(format!("the query has {} words, at most {WORDS_MAX} are taken", words.len()));
    }
    let mut at = 0;
    let query = part(&words, &mut at)?;
    match words.get(at) {
        None => Ok(query),
        Some((word, _)) => Err(format!("nothing was expected behind the query, found {word:?}")),
    }
}

fn part(words: &[(String, bool)], at: &mut usize) -> Result<Query, String> {
    let mut attributes = Vec::new();
    loop {
        let Some((word, is_quoted)) = words.get(*at) else {
            return Err("a term was expected at the end of the query".to_owned());
        };
        *at += 1;
        match word.as_str() {
            _ if *is_quoted => return Ok(Query::Term(attributes, word.clone())),
            "@and" | "@or" | "@not" => {
                let operator = match word.as_str() {
                    "@and" => 0,
                    "@or" => 1,
                    _ => 2,
                };
                let left = part(words, at)?;
                return Ok(Query::Joined(operator, left.into(), part(words, at)?.into()));
            }
            "@attr" => {
                let pair = words.get(*at).map_or("", |it| it.0.as_str());
                *at += 1;
                let read = pair
                    .split_once('=')
                    .and_then(|(ty, value)| Some((ty.parse::<u32>().ok()?, value.parse::<u32>().ok()?)));
                attributes.push(read.ok_or_else(|| {
                    format!("@attr must be followed by a type and a value such as 1=7, found {pair:?}")
                })?);
            }
            "@attrset" => *at += 1,
            other if other.starts_with('@') => return Err(format!("{other} is not known")),
            _ => return Ok(Query::Term(attributes, word.clone())),
        }
    }
}

impl Query {
    /// Encodes it as a query of type 1.
    pub(super) fn encoded(&self) -> Vec<u8> {
        let set = ber::universal_object_id(&BIB_1);
        ber::around(21, &[ber::around(1, &[set, self.structure()])])
    }

    fn structure(&self) -> Vec<u8> {
        match self {
            Self::Term(attributes, term) => {
                let attributes: Vec<Vec<u8>> = attributes
                    .iter()
                    .map(|(ty, value)| {
                        let (ty, value) = (ber::number(*ty), ber::number(*value));
                        ber::sequence(&[ber::plain(120, &ty), ber::plain(121, &value)])
                    })
                    .collect();
                let term = ber::plain(45, term.as_bytes());
                ber::around(0, &[ber::around(102, &[ber::around(44, &attributes), term])])
            }
            Self::Joined(operator, left, right) => {
                let operator = ber::around(46, &[ber::plain(*operator, &[])]);
                ber::around(1, &[left.structure(), right.structure(), operator])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read() {
        let isbn = Query::Term(vec![(1, 7)], "0140449132".to_owned());
        assert_eq!(read("@attr 1=7 0140449132"), Ok(isbn.clone()));
        assert_eq!(read("@attrset bib-1 @attr 1=7 \"0140449132\""), Ok(isbn.clone()));
        let title = Query::Term(vec![(1, 4), (4, 1)], "the \"odyssey\"".to_owned());
        let both = Query::Joined(0, isbn.into(), title.into());
        assert_eq!(read(r#"@and @attr 1=7 0140449132 @attr 1=4 @attr 4=1 "the \"odyssey\"""#), Ok(both));
    }

    #[test]
    fn what_is_no_query_is_told() {
        for text in ["", "@attr 1", "@attr a=b x", "@and x", "x y", "@prox x y"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
