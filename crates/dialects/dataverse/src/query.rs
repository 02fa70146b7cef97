//! The parameters of a request.

use std::ops::Deref;

use pinakes_http::Parameters;

use crate::error::ApiError;

/// The query parameters, or the fields of a form.
#[derive(Debug, Clone, Default)]
pub struct Query(Parameters);

impl Deref for Query {
    type Target = Parameters;

    fn deref(&self) -> &Parameters {
        &self.0
    }
}

impl Query {
    /// Parses a query string or a form.
    pub fn parse(text: &str) -> Self {
        Self(Parameters::parse(text))
    }

    /// Returns whether a parameter is `true`; `default` if it is absent.
    pub fn boolean(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |it| it.eq_ignore_ascii_case("true"))
    }

    /// Returns a parameter as an integer; `None` if it is absent.
    ///
    /// Errors: 400 if it is not an integer.
    pub fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.filled(name) else { return Ok(None) };
        let number = text.trim().parse();
        number.map(Some).map_err(|_| {
            ApiError::bad_request(format!("The parameter {name} is {text:?}; expected a whole number."))
        })
    }
}
