//! Where a request carries its token: `Authorization: Bearer`, FOLIO's header and cookie, or the query
//! parameter of old SciCat clients.

use std::borrow::Cow;

use http::header::{AUTHORIZATION, COOKIE};
use http::request::Parts;
use percent_encoding::percent_decode_str;

use crate::refusal::Refusal;

/// FOLIO's header for a token.
const OKAPI_TOKEN: &str = "x-okapi-token";
/// FOLIO's cookie for a token.
const FOLIO_COOKIE: &str = "folioAccessToken";
/// SciCat's query parameter for a token.
const QUERY_TOKEN: &str = "access_token";

/// A token and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials<'a> {
    /// `Authorization: Bearer T` (the scheme in any case), or a bare token that SciCat clients send there.
    Bearer(&'a str),
    /// `x-okapi-token: T`.
    OkapiHeader(&'a str),
    /// Cookie `folioAccessToken=T`.
    Cookie(&'a str),
    /// `?access_token=T` or `?access_token=Bearer%20T`.
    Query(Cow<'a, str>),
}

impl<'a> Credentials<'a> {
    /// The token.
    pub fn into_token(self) -> Cow<'a, str> {
        match self {
            Self::Bearer(token) | Self::OkapiHeader(token) | Self::Cookie(token) => Cow::Borrowed(token),
            Self::Query(token) => token,
        }
    }
}

/// The token of a request. The query is looked at only when no header or cookie carries one.
///
/// Errors: [`Refusal::TwoTokens`] when headers and cookie carry different ones.
pub fn of(parts: &Parts) -> Result<Option<Credentials<'_>>, Refusal> {
    let bearer = bearer(parts).map(Credentials::Bearer);
    let okapi = text(parts, OKAPI_TOKEN).filter(|it| !it.is_empty()).map(Credentials::OkapiHeader);
    let cookie = cookie(parts).map(Credentials::Cookie);
    let mut found = None::<Credentials<'_>>;
    for it in [bearer, okapi, cookie].into_iter().flatten() {
        match &found {
            None => found = Some(it),
            Some(first) if first.clone().into_token() != it.into_token() => {
                return Err(Refusal::TwoTokens("Authorization, x-okapi-token, cookie"));
            }
            Some(_) => {}
        }
    }
    Ok(found.or_else(|| query(parts).map(Credentials::Query)))
}

fn text<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts.headers.get(name)?.to_str().ok().map(str::trim)
}

fn bearer(parts: &Parts) -> Option<&str> {
    let value = text(parts, AUTHORIZATION.as_str())?;
    let token = match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        Some(_) => return None,
        None if value.eq_ignore_ascii_case("bearer") => return None,
        None => value,
    };
    Some(token).filter(|it| !it.is_empty())
}

fn cookie(parts: &Parts) -> Option<&str> {
    let pairs = parts.headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
    let named = pairs.flat_map(|it| it.split(';')).filter_map(|pair| pair.trim().split_once('='));
    named.filter(|(name, value)| *name == FOLIO_COOKIE && !value.is_empty()).map(|(_, value)| value).next()
}

fn query(parts: &Parts) -> Option<Cow<'_, str>> {
    let pairs = parts.uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.filter(|(name, _)| *name == QUERY_TOKEN).map(|(_, value)| value).next()?;
    let value = percent_decode_str(value).decode_utf8().ok()?;
    let token = strip_scheme(&value);
    if token.is_empty() {
        return None;
    }
    Some(if token.len() == value.len() { value } else { Cow::Owned(token.to_owned()) })
}

/// `+` stands for a space in queries.
fn strip_scheme(value: &str) -> &str {
    let scheme = value.get(..7).filter(|it| it[..6].eq_ignore_ascii_case("bearer"));
    match scheme {
        Some(scheme) if scheme.ends_with([' ', '+']) => value[7..].trim(),
        _ => value.trim(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;
    use proptest::prelude::*;

    fn token(uri: &str, headers: &[(&str, &str)]) -> Option<String> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).ok()?.into_parts();
        match of(&parts) {
            Ok(found) => found.map(|it| it.into_token().into_owned()),
            Err(error) => Some(error.to_string()),
        }
    }

    #[test]
    fn tokens_are_found_where_clients_put_them() {
        let t = Some("t.t.t".to_owned());
        assert_eq!(token("/", &[("authorization", "Bearer t.t.t")]), t);
        assert_eq!(token("/", &[("authorization", "bearer  t.t.t ")]), t);
        assert_eq!(token("/", &[("authorization", "t.t.t")]), t);
        assert_eq!(token("/", &[("x-okapi-token", "t.t.t")]), t);
        assert_eq!(token("/", &[("cookie", "a=b; folioAccessToken=t.t.t; c=d")]), t);
        assert_eq!(token("/?a=b&access_token=t.t.t", &[]), t);
        assert_eq!(token("/?access_token=Bearer%20t.t.t", &[]), t);
        assert_eq!(token("/?access_token=Bearer+t.t.t", &[]), t);
        assert_eq!(token("/?access_token=x", &[("authorization", "Bearer t.t.t")]), t);
        assert_eq!(token("/", &[("x-okapi-token", "t.t.t"), ("cookie", "folioAccessToken=t.t.t")]), t);
    }

    #[test]
    fn what_is_no_token_is_none() {
        for uri in
            ["/", "/?access_token=", "/?access_token", "/?access_token=%ff", "/?access_token=Bearer%20"]
        {
            assert_eq!(token(uri, &[]), None, "{uri}");
        }
        for value in ["Basic dXNlcjpwYXNz", "Bearer", "Bearer ", ""] {
            assert_eq!(token("/", &[("authorization", value)]), None, "{value}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_headers_and_queries_do_not_panic(
            query in r"[a-z_=&%+0-9 ]{0,40}",
            value in "[ -~\u{e9}]{0,40}",
            cookie in "[ -~]{0,60}",
        ) {
            token(&format!("/?access_token=Bearer{query}"), &[("authorization", &value), ("cookie", &cookie)]);
            token(&format!("/?access_token={query}"), &[("x-okapi-token", &value)]);
        }
    }

    #[test]
    fn two_tokens_are_refused() {
        let two = token("/", &[("x-okapi-token", "a"), ("cookie", "folioAccessToken=b")]);
        assert!(two.is_some_and(|it| it.contains("two different tokens")));
    }
}
