//! Dates as FOLIO writes them.

use time::OffsetDateTime;

/// Formats `2026-01-31T10:20:30.123+00:00`, the time format of most modules.
pub fn rmb(ms: i64) -> String {
    format!("{}.{:03}+00:00", to_seconds(ms), ms.rem_euclid(1000))
}

/// Formats `2026-01-31T10:20:30.123000Z`, the time format of mod-entities-links.
pub fn micros(ms: i64) -> String {
    format!("{}.{:03}000Z", to_seconds(ms), ms.rem_euclid(1000))
}

/// Formats `2026-01-31T10:20:30.123Z`, the time format of circulation.
pub fn millis(ms: i64) -> String {
    format!("{}.{:03}Z", to_seconds(ms), ms.rem_euclid(1000))
}

/// Formats `2026-01-31T10:20:30Z`, the format of token expirations.
pub fn seconds(ms: i64) -> String {
    format!("{}Z", to_seconds(ms))
}

/// Formats `20260131102030.1`, the form of MARC field 005.
pub fn marc_005(ms: i64) -> String {
    let digits: String = to_seconds(ms).chars().filter(char::is_ascii_digit).collect();
    format!("{digits}.{}", ms.rem_euclid(1000) / 100)
}

/// Parses an ISO 8601 time to milliseconds since 1970; without an offset it is UTC, without a time midnight.
pub fn parse_ms(text: &str) -> Option<i64> {
    use time::format_description::well_known::Iso8601;
    let text = text.trim();
    // FOLIO's own clients send `+0000` as well as `+00:00`.
    let text = match text.len().checked_sub(5).and_then(|at| text.split_at_checked(at)) {
        Some((time, zone))
            if zone.starts_with(['+', '-'])
                && zone[1..].bytes().all(|it| it.is_ascii_digit())
                && time.contains('T') =>
        {
            format!("{time}{}:{}", &zone[..3], &zone[3..])
        }
        _ => text.to_owned(),
    };
    let with_time = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text };
    let parsed = OffsetDateTime::parse(&with_time, &Iso8601::PARSING)
        .or_else(|_| OffsetDateTime::parse(&format!("{with_time}Z"), &Iso8601::PARSING))
        .ok()?;
    i64::try_from(parsed.unix_timestamp_nanos() / 1_000_000).ok()
}

fn to_seconds(ms: i64) -> String {
    let at = OffsetDateTime::from_unix_timestamp(ms.div_euclid(1000)).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_forms() {
        let ms = 1_769_854_830_123;
        assert_eq!(rmb(ms), "2026-01-31T10:20:30.123+00:00");
        assert_eq!(micros(ms), "2026-01-31T10:20:30.123000Z");
        assert_eq!(millis(ms), "2026-01-31T10:20:30.123Z");
        assert_eq!(seconds(ms), "2026-01-31T10:20:30Z");
        assert_eq!(marc_005(ms), "20260131102030.1");
        for text in [
            rmb(ms),
            micros(ms),
            millis(ms),
            "2026-01-31T10:20:30.123+0000".into(),
            "2026-01-31T11:20:30.123+01:00".into(),
        ] {
            assert_eq!(parse_ms(&text), Some(ms), "{text}");
        }
        assert_eq!(parse_ms("2026-01-31"), Some(1_769_817_600_000));
        assert_eq!(parse_ms("tomorrow"), None);
    }
}
