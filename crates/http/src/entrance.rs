//! How a request enters a dialect: where its clients put their token, and which header names their tenant.
//!
//! Each dialect declares an [`Entrance`] with its mount; the places used by other dialects' clients mean nothing
//! there.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE};
use http::request::Parts;
use percent_encoding::percent_decode_str;

use crate::refusal::Refusal;

/// Where the clients of a dialect put the token and the tenant's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entrance {
    /// Where a token may be. Tokens in headers and cookies must all agree; the query is used only if there is none.
    pub tokens: &'static [TokenPlace],
    /// Headers that name the tenant, in order of precedence, lower case.
    pub tenant_headers: &'static [&'static str],
}

impl Default for Entrance {
    /// `Authorization: Bearer`, and `x-pinakes-tenant`.
    fn default() -> Self {
        Self { tokens: &[TokenPlace::Bearer], tenant_headers: &[TENANT_HEADER] }
    }
}

/// The header by which clients of any dialect may name a tenant.
pub const TENANT_HEADER: &str = "x-pinakes-tenant";

/// A place for a token. Names of headers are lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenPlace {
    /// `Authorization: Bearer T` (the scheme in any case), or the bare token without a scheme.
    Bearer,
    /// A header of its own, e.g. `x-okapi-token: T`.
    Header(&'static str),
    /// A cookie.
    Cookie(&'static str),
    /// A parameter of the query, with or without the scheme: `?access_token=Bearer%20T`.
    Query(&'static str),
}

impl TokenPlace {
    fn name(self) -> &'static str {
        match self {
            Self::Bearer => "Authorization",
            Self::Header(name) => name,
            Self::Cookie(_) => "cookie",
            Self::Query(_) => "query",
        }
    }
}

/// Returns the token of a request.
///
/// Errors: [`Refusal::TwoTokens`] when headers and cookies carry different ones.
pub fn token_of<'a>(parts: &'a Parts, entrance: &Entrance) -> Result<Option<Cow<'a, str>>, Refusal> {
    let mut found = None::<&str>;
    for place in entrance.tokens {
        let token = match place {
            TokenPlace::Bearer => bearer(parts),
            TokenPlace::Header(name) => text(parts, name).filter(|it| !it.is_empty()),
            TokenPlace::Cookie(name) => cookie(&parts.headers, name),
            TokenPlace::Query(_) => None,
        };
        match (found, token) {
            (Some(first), Some(token)) if first != token => {
                let names: Vec<_> = entrance.tokens.iter().map(|it| it.name()).collect();
                return Err(Refusal::TwoTokens(names.join(", ")));
            }
            (None, Some(_)) => found = token,
            _ => {}
        }
    }
    Ok(found.map(Cow::Borrowed).or_else(|| {
        entrance.tokens.iter().find_map(|it| match it {
            TokenPlace::Query(name) => query(parts, name),
            _ => None,
        })
    }))
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

/// Returns the first cookie of a name that is not empty (RFC 6265, section 5.4).
pub fn cookie<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let pairs = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
    let mut named = pairs.flat_map(|it| it.split(';')).filter_map(|pair| pair.trim().split_once('='));
    named.find(|(name, value)| *name == wanted && !value.is_empty()).map(|(_, value)| value)
}

fn query<'a>(parts: &'a Parts, wanted: &str) -> Option<Cow<'a, str>> {
    let mut pairs = parts.uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == wanted)?;
    let value = percent_decode_str(value).decode_utf8().ok()?;
    let token = strip_scheme(&value);
    if token.is_empty() {
        return None;
    }
    Some(if token.len() == value.len() { value } else { Cow::Owned(token.to_owned()) })
}

/// Removes the scheme. `+` stands for a space in queries.
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

    /// As permissive as all dialects together.
    const OPEN: Entrance = Entrance {
        tokens: &[
            TokenPlace::Bearer,
            TokenPlace::Header("x-okapi-token"),
            TokenPlace::Cookie("folioAccessToken"),
            TokenPlace::Query("access_token"),
        ],
        tenant_headers: &[],
    };

    fn token(uri: &str, headers: &[(&str, &str)]) -> Option<String> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).ok()?.into_parts();
        match token_of(&parts, &OPEN) {
            Ok(found) => found.map(Cow::into_owned),
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
    fn a_place_that_is_not_declared_is_not_looked_at() -> Result<(), Box<dyn std::error::Error>> {
        let request = Request::builder().uri("/?access_token=q").header("x-okapi-token", "h").body(())?;
        assert_eq!(token_of(&request.into_parts().0, &Entrance::default())?, None);
        Ok(())
    }

    #[test]
    fn two_tokens_are_refused() {
        let two = token("/", &[("x-okapi-token", "a"), ("cookie", "folioAccessToken=b")]);
        assert!(two.is_some_and(|it| it.contains("two different tokens")));
    }
}
