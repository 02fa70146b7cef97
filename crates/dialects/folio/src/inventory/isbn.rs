//! ISBN in its forms: ten or thirteen digits, with hyphens or without.

use http::StatusCode;
use pinakes_store::{Expr, Pattern, TextQuery, Value, View};
use serde_json::json;

use super::instances::INSTANCES;
use crate::app::{Call, json_answer};
use crate::cql::{Clause, Relation};
use crate::error::{Answer, FolioError};
use crate::permissions::Access;
use crate::routes::Routes;

/// Adds the routes of `/isbn`.
pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .get("/isbn/convertTo10", Access::to("isbn-utils.convert-to-10.get"), |call| convert(call, 10))
        .get("/isbn/convertTo13", Access::to("isbn-utils.convert-to-13.get"), |call| convert(call, 13))
        .get("/isbn/validator", Access::to("isbn-utils.validator.get"), validate)
}

/// `?isbn=`: the form with that many digits, without hyphens. Errors: 400 for what is no ISBN, or has no such form.
async fn convert(call: Call, n_digits: usize) -> Answer {
    let given = call.query.get("isbn").unwrap_or_default();
    let found = valid(given).and_then(|it| it.into_iter().find(|it| it.len() == n_digits));
    let Some(found) = found else {
        return Err(FolioError::bad_request(format!("ISBN value {given} is invalid")));
    };
    Ok(json_answer(StatusCode::OK, &json!({"isbn": found.to_ascii_uppercase()})))
}

/// `?isbn=`: whether the last digit is what the others make it.
async fn validate(call: Call) -> Answer {
    let given = call.query.get("isbn").unwrap_or_default();
    Ok(json_answer(StatusCode::OK, &json!({"isValid": valid(given).is_some()})))
}

/// The forms of an ISBN whose last digit is right.
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

/// Where instances have them.
const PATH: &str = "identifiers.value";

/// The condition that an instance has an ISBN, however it is written there and in the query. `None` for what is no whole
/// ISBN: it is looked for as words are.
pub(super) fn condition(view: &mut View<'_>, clause: &Clause) -> Result<Option<Expr>, FolioError> {
    let is_equality = matches!(clause.relation, Relation::Words | Relation::Exact | Relation::All);
    let Some(forms) = clause.term.literal().as_deref().and_then(forms).filter(|_| is_equality) else {
        return Ok(None);
    };
    // As most write it: one word, found by the index.
    let text = |phrase: &String| {
        let query = TextQuery { phrases: vec![phrase.clone()], ..TextQuery::default() };
        Expr::Text(query)
    };
    let values = forms.iter().map(|it| Value::Folded(it.clone())).collect();
    let mut plain: Vec<Expr> = forms.iter().map(text).collect();
    plain.push(Expr::In(PATH.into(), values));
    let plain = Expr::Or(plain);
    if view.first(&INSTANCES.kind, plain.clone())?.is_some() {
        return Ok(Some(plain));
    }
    // With hyphens anywhere.
    let hyphened = |form: &String| form.chars().map(String::from).collect::<Vec<_>>().join("[- ]?");
    let each: Vec<String> = forms.iter().map(hyphened).collect();
    let pattern = Pattern::new(&format!("(?:^|[^0-9])(?:{})(?:[^0-9x]|$)", each.join("|")), "f")?;
    Ok(Some(Expr::Regex(PATH.into(), pattern)))
}

/// The forms of an ISBN without hyphens, in lower case; `None` for a text that is not an ISBN.
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

/// The thirteenth digit.
fn check_13(twelve: &str) -> char {
    let digits = twelve.bytes().map(|it| u32::from(it - b'0'));
    let sum: u32 = digits.enumerate().map(|(at, digit)| if at % 2 == 0 { digit } else { 3 * digit }).sum();
    char::from_digit((10 - sum % 10) % 10, 10).unwrap_or('0')
}

/// The tenth character.
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
        assert_eq!(forms("a title"), None);
        assert_eq!(valid("0-306-40615-2").map(|it| it.len()), Some(2));
        assert_eq!(valid("0-306-40615-3"), None);
        assert_eq!(valid("978-0-306-40615-8"), None);
    }
}
