//! Resumption tokens. They hold the arguments of the list and where its next page begins, so that a server keeps nothing
//! between two requests, and a token stays good as long as the repository knows the place.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::repository::OAI_DC_PREFIX;

/// What separates the parts of a token is encoded within them.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'/');
/// Maximum length of a token, in bytes.
const MAX_BYTES: usize = 4096;

/// How tokens look to harvesters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenForm {
    /// As parameters: `after=17&cursor=2`. Harvesters must encode it, as the standard demands of them.
    Plain,
    /// The same in base64, whose characters need no encoding in a URL.
    Packed,
}

/// Where a list continues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Token {
    /// The place as the repository names it.
    pub(crate) place: String,
    /// Number of records in the pages before.
    pub(crate) n_before: u64,
    pub(crate) prefix: String,
    pub(crate) set: Option<String>,
    pub(crate) from: Option<String>,
    pub(crate) until: Option<String>,
}

impl Token {
    /// Writes the token.
    pub(crate) fn write(&self, form: TokenForm) -> String {
        let mut text = format!("after={}&cursor={}", encoded(&self.place), self.n_before);
        // The format that every repository has goes without saying.
        let prefix = Some(&self.prefix).filter(|it| *it != OAI_DC_PREFIX);
        for (name, value) in [
            ("metadataPrefix", prefix),
            ("set", self.set.as_ref()),
            ("from", self.from.as_ref()),
            ("until", self.until.as_ref()),
        ] {
            if let Some(value) = value {
                text.push_str(&format!("&{name}={}", encoded(value)));
            }
        }
        match form {
            TokenForm::Plain => text,
            TokenForm::Packed => URL_SAFE_NO_PAD.encode(text),
        }
    }

    /// Reads a token; `None` if it was not written here.
    pub(crate) fn parse(text: &str, form: TokenForm) -> Option<Self> {
        if MAX_BYTES < text.len() {
            return None;
        }
        let text = match form {
            TokenForm::Plain => text.to_owned(),
            TokenForm::Packed => String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?,
        };
        let (mut after, mut cursor, mut prefix) = (None, None, None);
        let (mut set, mut from, mut until) = (None, None, None);
        for part in text.split('&') {
            let (name, value) = part.split_once('=')?;
            let value = percent_decode_str(value).decode_utf8().ok()?.into_owned();
            let field = match name {
                "after" => &mut after,
                "cursor" => &mut cursor,
                "metadataPrefix" => &mut prefix,
                "set" => &mut set,
                "from" => &mut from,
                "until" => &mut until,
                _ => return None,
            };
            if field.replace(value).is_some() {
                return None;
            }
        }
        Some(Self {
            place: after?,
            n_before: cursor?.parse().ok()?,
            prefix: prefix.unwrap_or_else(|| OAI_DC_PREFIX.to_owned()),
            set,
            from,
            until,
        })
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_as_written() {
        let plain =
            Token { place: "17".into(), n_before: 2, prefix: OAI_DC_PREFIX.into(), ..Token::default() };
        assert_eq!(plain.write(TokenForm::Plain), "after=17&cursor=2");
        let full = Token {
            place: "a&b=%ä".into(),
            n_before: 3,
            prefix: "marc21".into(),
            set: Some("a:b".into()),
            from: Some("2026-01-31".into()),
            until: Some("2026-01-31".into()),
        };
        assert_eq!(
            full.write(TokenForm::Plain),
            "after=a%26b%3D%25%C3%A4&cursor=3&metadataPrefix=marc21&set=a:b&from=2026-01-31&until=2026-01-31"
        );
        for form in [TokenForm::Plain, TokenForm::Packed] {
            for token in [&plain, &full] {
                assert_eq!(Token::parse(&token.write(form), form).as_ref(), Some(token), "{form:?}");
            }
        }
    }

    #[test]
    fn other_texts_are_no_tokens() {
        let long = format!("after={}&cursor=1", "a".repeat(MAX_BYTES));
        for text in [
            "",
            "after=1",
            "cursor=1",
            "after=1&cursor=-1",
            "after=1&cursor=1&",
            "after=1&after=1&cursor=1",
            "after=1&cursor=1&other=1",
            "after=%ff&cursor=1",
            &long,
        ] {
            assert_eq!(Token::parse(text, TokenForm::Plain), None, "{text}");
        }
        assert_eq!(Token::parse("after=1&cursor=1", TokenForm::Packed), None);
    }
}
