//! The parameter `i`: the institution whose holdings are requested, by its ISIL (ISO 15511).

use crate::error::LabeError;

/// Maximum number of letters in the country part.
const COUNTRY_LEN_MAX: usize = 4;
/// Maximum number of characters in the institution's part.
const UNIT_LEN_MAX: usize = 11;

/// Returns the institution that a query names; `None` if it names none.
///
/// The first `i` counts. A pair with an unescaped `;` or an invalid escape is ignored, as Go's server does.
///
/// # Errors
/// [`LabeError::Isil`] for a value that is not an ISIL.
pub(crate) fn of_query(query: Option<&str>) -> Result<Option<String>, LabeError> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.contains(';'));
    let mut values = pairs.filter_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name)? == "i").then(|| decoded(value))?
    });
    match values.next() {
        None => Ok(None),
        Some(value) if value.is_empty() => Ok(None),
        Some(value) if is_isil(&value) => Ok(Some(value)),
        Some(_) => Err(LabeError::Isil),
    }
}

/// Checks the format: `DE-14`, `DE-Gla1`, `US-NNC`.
fn is_isil(text: &str) -> bool {
    let Some((country, unit)) = text.split_once('-') else { return false };
    let is_unit_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b':' | b'-');
    (1..=COUNTRY_LEN_MAX).contains(&country.len())
        && country.bytes().all(|byte| byte.is_ascii_uppercase())
        && (1..=UNIT_LEN_MAX).contains(&unit.len())
        && unit.bytes().all(is_unit_byte)
}

fn decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_escape =
        |at: usize| bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    if memchr::memchr_iter(b'%', bytes).any(|at| !is_escape(at)) {
        return None;
    }
    let text = text.replace('+', " ");
    Some(percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_isil_counts() {
        for (query, expected) in [
            ("", Ok(None)),
            ("i=", Ok(None)),
            ("i=DE-14", Ok(Some("DE-14"))),
            ("x=1&i=US-NNC&i=DE-15", Ok(Some("US-NNC"))),
            ("i=&i=DE-15", Ok(None)),
            ("%69=DE%2D14", Ok(Some("DE-14"))),
            ("i=DE-14;x", Ok(None)),
            ("i=DE-%zz", Ok(None)),
            ("i=de-14", Err(())),
            ("i=DE-", Err(())),
            ("i=DE-14%0A", Err(())),
            ("i=ABCDE-1", Err(())),
            ("i=DE-123456789012", Err(())),
        ] {
            let found = of_query(Some(query)).map_err(|_| ());
            assert_eq!(found.as_ref().map(Option::as_deref), expected.as_ref().map(|it| *it), "{query}");
        }
    }
}
