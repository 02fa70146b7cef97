//! Time formats of Dataverse (section 0.2 of the contract).

use time::OffsetDateTime;
use time::format_description::FormatItem;
use time::macros::format_description;

const INSTANT: &[FormatItem<'_>] = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
const DATE: &[FormatItem<'_>] = format_description!("[year]-[month]-[day]");
const LONG: &[FormatItem<'_>] =
    format_description!("[weekday repr:short] [month repr:short] [day] [hour]:[minute]:[second] UTC [year]");
const PRECISE: &[FormatItem<'_>] =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second].[subsecond digits:3]");

fn written(ms: i64, form: &[FormatItem<'_>]) -> String {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000);
    at.ok().and_then(|it| it.format(form).ok()).unwrap_or_default()
}

/// Formats milliseconds since 1970 as `2026-01-31T10:20:30Z`.
pub(crate) fn instant(ms: i64) -> String {
    written(ms, INSTANT)
}

/// Formats milliseconds since 1970 as `2026-01-31`.
pub(crate) fn date(ms: i64) -> String {
    written(ms, DATE)
}

/// Formats milliseconds since 1970 as `Sat Jan 31 10:20:30 UTC 2026`, for locks.
pub(crate) fn long(ms: i64) -> String {
    written(ms, LONG)
}

/// Formats milliseconds since 1970 as `2027-01-31 10:20:30.123`, for tokens.
pub(crate) fn precise(ms: i64) -> String {
    written(ms, PRECISE)
}

/// Parses the format of [`instant`] into milliseconds since 1970.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let at = OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).ok()?;
    i64::try_from(at.unix_timestamp_nanos() / 1_000_000).ok()
}

/// Returns whether a text is a date of the form `2026-01-31`.
pub(crate) fn is_day(text: &str) -> bool {
    text.len() == "2026-01-31".len() && parse(&format!("{text}T00:00:00Z")).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_have_four_forms() {
        let ms = 1_769_854_830_123;
        assert_eq!(instant(ms), "2026-01-31T10:20:30Z");
        assert_eq!(date(ms), "2026-01-31");
        assert_eq!(long(ms), "Sat Jan 31 10:20:30 UTC 2026");
        assert_eq!(precise(ms), "2026-01-31 10:20:30.123");
        assert_eq!(parse("2026-01-31T10:20:30Z"), Some(1_769_854_830_000));
    }
}
