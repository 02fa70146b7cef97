//! The date of a topic, and the links by which the topics that point at another are read newest first.

use crate::kinds::UNIT;

/// Number of bytes of a timestamp that are compared.
const COMPARED_MAX_BYTES: usize = 64;

/// Returns the part of a timestamp that is compared.
pub(crate) fn compared(timestamp: &str) -> &str {
    let end = (0..=COMPARED_MAX_BYTES.min(timestamp.len())).rev().find(|at| timestamp.is_char_boundary(*at));
    &timestamp[..end.unwrap_or_default()]
}

/// Returns a text for a date: the later the date, the smaller the text. The bytes are inverted; the end is greater than
/// all of them, so that a date comes after those that continue it.
pub(crate) fn backwards(date: &str) -> String {
    let mut out: String = date.bytes().map(|it| format!("{:02x}", !it)).collect();
    out.push('~');
    out
}

/// Returns the target of the link of a dated topic that an arc produces, from that of the arc: it ends in the date,
/// backwards. It begins with a separator, so that such links do not lie among those of the arcs.
pub(crate) fn target(of_arc: &str, date: &str) -> String {
    format!("{}{UNIT}{}", beginning(of_arc), backwards(date))
}

/// Returns what the target of such a link begins with, from the target of the arc or its beginning.
pub(crate) fn beginning(target: &str) -> String {
    format!("{UNIT}{target}")
}

/// Returns the target of such a link without its date.
pub(crate) fn without_date(target: &str) -> &str {
    target.rsplit_once(UNIT).map_or(target, |it| it.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_dates_come_first() {
        let mut dates = ["2026-02-01", "2026", "2025-12-31", "2026-02-01T08:00", "é", "~"];
        dates.sort_by_key(|it| backwards(it));
        assert_eq!(dates, ["é", "~", "2026-02-01T08:00", "2026-02-01", "2026", "2025-12-31"]);
    }

    #[test]
    fn a_date_is_cut_between_characters() {
        let most = "x".repeat(COMPARED_MAX_BYTES - 1);
        assert_eq!(compared(&format!("{most}é")), most);
        assert_eq!(compared("2026"), "2026");
    }
}
