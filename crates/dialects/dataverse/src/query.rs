//! The parameters behind `?`, and forms, which are written alike.

use percent_encoding::percent_decode_str;

use crate::error::ApiError;

/// Names and decoded values, in order. A name may come more than once.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// From the text behind `?`, or a form.
    pub fn parse(text: &str) -> Self {
        let decode =
            |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| match pair.split_once('=') {
                    Some((name, value)) => (decode(name), decode(value)),
                    None => (decode(pair), String::new()),
                })
                .collect(),
        )
    }

    /// All names and values, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The first value of a name, unless it is empty.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|it| !it.is_empty())
    }

    /// All values of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// Whether a parameter is `true`.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|it| it.eq_ignore_ascii_case("true"))
    }

    /// Whether a parameter is `true`, or what stands for it when it is not given.
    pub fn boolean(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |it| it.eq_ignore_ascii_case("true"))
    }

    /// A whole number; `None` when it is not given.
    ///
    /// Errors: 400 when it is something else.
    pub fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.filled(name) else { return Ok(None) };
        let number = text.trim().parse();
        number.map(Some).map_err(|_| {
            ApiError::bad_request(format!("The parameter {name} is {text:?}; expected a whole number."))
        })
    }
}
