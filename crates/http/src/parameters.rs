//! The parameters behind `?`, and forms, which have the same syntax (`application/x-www-form-urlencoded`).

use percent_encoding::percent_decode_str;

/// Names and decoded values, in order. A name may come more than once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Parses the text behind `?`, or the body of a form. A `+` is a space. Broken percent-encoding is kept as it is,
    /// and bytes that are not UTF-8 become U+FFFD.
    pub fn parse(text: &str) -> Self {
        let decode =
            |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let split = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        };
        Self(pairs.map(split).collect())
    }

    /// Returns all names and values, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs().find(|it| it.0 == name).map(|it| it.1)
    }

    /// Returns the first value of a name, unless it is empty.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|it| !it.is_empty())
    }

    /// Returns all values of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs().filter(move |it| it.0 == name).map(|it| it.1)
    }

    /// Returns whether a parameter is `true`, in any case.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|it| it.eq_ignore_ascii_case("true"))
    }

    /// Returns these, followed by others.
    #[must_use]
    pub fn followed_by(mut self, others: &Parameters) -> Self {
        self.0.extend_from_slice(&others.0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_decoded_in_order() {
        let parameters = Parameters::parse("a=1&b+c=%C3%A4+x&&a=&flag&%zz=%ff&d==");
        let expected = [("a", "1"), ("b c", "ä x"), ("a", ""), ("flag", ""), ("%zz", "\u{fffd}"), ("d", "=")];
        assert_eq!(parameters.pairs().collect::<Vec<_>>(), expected);
        assert_eq!(parameters.all("a").collect::<Vec<_>>(), ["1", ""]);
        assert_eq!(
            (parameters.get("flag"), parameters.filled("flag"), parameters.get("e")),
            (Some(""), None, None)
        );
        assert!(Parameters::parse("x=TRUE").is_true("x") && !parameters.is_true("a"));
        let both = Parameters::parse("a=1").followed_by(&Parameters::parse("a=2"));
        assert_eq!(both, Parameters::parse("a=1&a=2"));
    }
}
