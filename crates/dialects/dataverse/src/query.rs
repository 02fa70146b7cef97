//! The parameters of a request.

use std::ops::Deref;

use pinakes_http::Parameters;

use crate::error::ApiError;

/// The parameters behind `?`, or a form.
#[derive(Debug, Clone, Default)]
pub struct Query(Parameters);

impl Deref for Query {
    type Target = Parameters;

    fn deref(&self) -> &Parameters {
        &self.0
    }
}

impl Query {
    /// From the text behind `?`, or a form.
    pub fn parse(text: &str) -> Self {
        Self(Parameters::parse(text))
    }

    /// Returns whether a parameter is `true`, or what stands for it when it is not given.
    pub fn boolean(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |it| it.eq_ignore_ascii_case("true"))
    }

    /// Returns a whole number; `None` when it is not given.
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
