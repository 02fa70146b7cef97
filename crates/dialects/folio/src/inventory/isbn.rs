//! The forms of an ISBN: ten or thirteen digits, with or without hyphens.

use http::StatusCode;
use pinakes_store::{Expr, TextQuery, Value};
use serde_json::json;

use crate::platform::app::Call;
use crate::platform::cql::{Clause, Relation};
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Adds the routes of `/isbn`.
pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .get("/isbn/convertTo10", Access::to("isbn-utils.convert-to-10.get"), |call| convert(call, 10))
        .get("/isbn/convertTo13", Access::to("isbn-utils.convert-to-13.get"), |call| convert(call, 13))
        .get("/isbn/validator", Access::to("isbn-utils.validator.get"), validate)
}

/// Converts an ISBN, `?isbn=`, to the form with that many digits, without hyphens. Errors: 400 for text that is not an
/// ISBN, or has no such form.
async fn convert(call: Call, n_digits: usize) -> Answer {
    let given = call.query.get("isbn").unwrap_or_default();
    let found = valid(given).and_then(|it| it.into_iter().find(|it| it.len() == n_digits));
    let Some(found) = found else {
        return Err(FolioError::bad_request(format!("ISBN value {given} is invalid")));
    };
    Ok(json_answer(StatusCode::OK, &json!({"isbn": found.to_ascii_uppercase()})))
}

/// Checks the check digit of an ISBN, `?isbn=`.
async fn validate(call: Call) -> Answer {
    let given = call.query.get("isbn").unwrap_or_default();
    Ok(json_answer(StatusCode::OK, &json!({"isValid": valid(given).is_some()})))
}

/// Returns the forms of an ISBN with a correct check digit.
fn valid(text: &str) -> Option<Vec<String>> {
    let plain: String = text.chars().filter(|it| !matches!(it, '-' | ' ')).collect();
    let plain = plain.to_ascii_lowercase();
    let found = forms(&plain)?;
    let is_right = match plain.len() {
        10 => check_10(&plain[..9]) == plain.chars().last()?,
        _ => check_13(&plain[..12]) == plain.chars().last()?,
    };
    is_right.then_some(found)
}

/// Path of the ISBNs in an instance.
const PATH: &str = "identifiers.value";

/// Returns the condition that an instance has an ISBN, however it is written in the record and in the query. `None` for
/// text that is not a complete ISBN, which is searched as words.
pub(super) fn condition(clause: &Clause) -> Option<Expr> {
    let is_equality = matches!(clause.relation, Relation::Words | Relation::Exact | Relation::All);
    let forms = clause.term.literal().as_deref().and_then(forms).filter(|_| is_equality)?;
    let phrase = |it: String| Expr::Text(TextQuery { phrases: vec![it], ..TextQuery::default() });
    let values = forms.iter().map(|it| Value::Folded(it.clone())).collect();
    let mut each: Vec<Expr> = forms.iter().flat_map(|it| written(it)).map(phrase).collect();
    each.push(Expr::In(PATH.into(), values));
    Some(Expr::Or(each))
}

/// Returns the ways to write an ISBN, as words: without hyphens, with the prefix separate, and in the parts of ISO
/// 2108: prefix, registration group (1 to 5 digits), registrant (1 to 7), publication (1 to 6), check digit. Which
/// division is correct depends on ranges that grow each year, so all are searched; the words of the others hardly ever
/// occur.
fn written(form: &str) -> Vec<String> {
    let (prefix, body) = form.split_at(form.len() - 10);
    let with_prefix = |rest: String| if prefix.is_empty() { rest } else { format!("{prefix} {rest}") };
    let mut ways = vec![form.to_owned(), with_prefix(body.to_owned())];
    let (nine, check) = body.split_at(9);
    for n_group in 1..=5 {
        let (group, rest) = nine.split_at(n_group);
        for n_publication in 1..=6.min(rest.len() - 1) {
            let (registrant, publication) = rest.split_at(rest.len() - n_publication);
            if registrant.len() <= 7 {
                ways.push(with_prefix(format!("{group} {registrant} {publication} {check}")));
            }
        }
    }
    ways.dedup();
    ways
}

/// Returns the forms of an ISBN without hyphens, in lower case; `None` for text that is not an ISBN.
fn forms(text: &str) -> Option<Vec<String>> {
    let plain: String = text.chars().filter(|it| !matches!(it, '-' | ' ')).collect();
    let plain = plain.to_ascii_lowercase();
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    match plain.len() {
        10 if is_digits(&plain[..9]) && (is_digits(&plain[9..]) || plain.ends_with('x')) => {
            let body = format!("978{}", &plain[..9]);
            Some(vec![format!("{body}{}", check_13(&body)), plain])
        }
        13 if is_digits(&plain) => {
            let short = plain.strip_prefix("978").map(|it| format!("{}{}", &it[..9], check_10(&it[..9])));
            Some(std::iter::once(plain).chain(short).collect())
        }
        _ => None,
    }
}

/// Returns the check digit of a thirteen-digit ISBN.
fn check_13(twelve: &str) -> char {
    let digits = twelve.bytes().map(|it| u32::from(it - b'0'));
    let sum: u32 = digits.enumerate().map(|(at, digit)| if at % 2 == 0 { digit } else { 3 * digit }).sum();
    char::from_digit((10 - sum % 10) % 10, 10).unwrap_or('0')
}

/// Returns the check character of a ten-digit ISBN.
fn check_10(nine: &str) -> char {
    let digits = nine.bytes().map(|it| u32::from(it - b'0'));
    let sum: u32 = digits.zip((2..=10).rev()).map(|(digit, weight)| digit * weight).sum();
    match (11 - sum % 11) % 11 {
        10 => 'x',
        digit => char::from_digit(digit, 10).unwrap_or('0'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_isbn_has_two_forms() {
        let of = |text: &str| forms(text).unwrap_or_default();
        assert_eq!(of("0-306-40615-2"), ["9780306406157", "0306406152"]);
        assert_eq!(of("978-0-306-40615-7"), ["9780306406157", "0306406152"]);
        assert_eq!(of("080442957X"), ["9780804429573", "080442957x"]);
        assert_eq!(of("9791034305674"), ["9791034305674"]);
        assert_eq!(forms("030640615"), None);
        let ways = written("9780306406157");
        assert_eq!(ways[..2], ["9780306406157", "978 0306406157"]);
        assert!(ways.iter().any(|it| it == "978 0 306 40615 7"), "{ways:?}");
        assert_eq!(written("0306406152").len(), 25);
        assert_eq!(forms("a title"), None);
        assert_eq!(valid("0-306-40615-2").map(|it| it.len()), Some(2));
        assert_eq!(valid("0-306-40615-3"), None);
        assert_eq!(valid("978-0-306-40615-8"), None);
    }
}
