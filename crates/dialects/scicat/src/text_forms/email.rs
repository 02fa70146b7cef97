//! E-mail addresses, and host names, which occur in URLs too.

/// Maximum length of an address in characters.
const MAX_ADDRESS_CHARS: usize = 254;
/// Maximum length of the part before the `@` in bytes.
const MAX_USER_BYTES: usize = 64;
/// Maximum length of a host name in bytes.
const MAX_HOST_BYTES: usize = 254;
/// Maximum length of a label of a host name in characters.
const MAX_LABEL_CHARS: usize = 63;

/// Says whether `text` is an e-mail address with a fully qualified host: `a@b.ch`, not `a@b`, `A <a@b.ch>` or
/// `a@[1.2.3.4]`.
pub fn is_email(text: &str) -> bool {
    if MAX_ADDRESS_CHARS < n_utf16(text) {
        return false;
    }
    let Some((user, host)) = text.rsplit_once('@') else { return false };
    if MAX_USER_BYTES < user.len() || MAX_HOST_BYTES < host.len() || !is_host_name(host) {
        return false;
    }
    if user.starts_with('"') && user.ends_with('"') {
        return is_quoted_user(user.get(1..user.len() - 1).unwrap_or_default());
    }
    user.split('.').all(|part| !part.is_empty() && part.chars().all(is_user_char))
}

/// Says whether `host` is a fully qualified domain name: at least two labels, the last one not numeric.
pub(super) fn is_host_name(host: &str) -> bool {
    let labels: Vec<&str> = host.split('.').collect();
    let [_, .., last] = labels.as_slice() else { return false };
    is_top_level(last) && labels.iter().all(|label| is_label(label))
}

fn is_top_level(label: &str) -> bool {
    let is_letter = |it: char| {
        it.is_ascii_alphabetic() || matches!(it, '\u{a1}'..='\u{a8}') || ('\u{aa}' <= it && is_wide(it))
    };
    let is_punycode_char = |it: char| it.is_ascii_alphanumeric() || it == '-';
    let is_name = 2 <= n_utf16(label) && label.chars().all(is_letter);
    let is_punycode = || match label.get(..2) {
        Some(start) => {
            start.eq_ignore_ascii_case("xn") && 4 <= label.len() && label[2..].chars().all(is_punycode_char)
        }
        None => false,
    };
    (is_name || is_punycode()) && !label.contains(char::is_whitespace)
}

fn is_label(label: &str) -> bool {
    let is_allowed =
        |it: char| it.is_ascii_alphanumeric() || it == '-' || (is_beyond_latin1(it) && !is_full_width(it));
    !label.is_empty()
        && n_utf16(label) <= MAX_LABEL_CHARS
        && label.chars().all(is_allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn is_user_char(it: char) -> bool {
    it.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(it) || ('\u{a1}' <= it && is_wide(it))
}

/// Checks the part between quotes: printable or control characters, others after a backslash.
fn is_quoted_user(user: &str) -> bool {
    let is_plain = |it: char| match it {
        '\\' | '"' | '\0' => false,
        '\u{1}'..='\u{7f}' => true,
        other => '\u{a0}' <= other && is_wide(other) || other.is_whitespace(),
    };
    let is_escaped = |it: char| match it {
        '\0' | '\n' => false,
        '\u{1}'..='\u{7f}' => true,
        other => '\u{a0}' <= other && is_wide(other),
    };
    let mut chars = user.chars();
    while let Some(it) = chars.next() {
        let holds = if it == '\\' { chars.next().is_some_and(is_escaped) } else { is_plain(it) };
        if !holds {
            return false;
        }
    }
    true
}

/// Says whether a character is in the original's ranges beyond ASCII. These are written for UTF-16 and exclude the
/// surrogates and private use, and thereby all characters beyond the basic plane.
fn is_wide(it: char) -> bool {
    matches!(it, '\u{a0}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{ffef}')
}

/// Says whether a character is U+00A1 or above; beyond the basic plane both surrogates are in the range.
fn is_beyond_latin1(it: char) -> bool {
    '\u{a1}' <= it
}

fn is_full_width(it: char) -> bool {
    matches!(it, '\u{ff01}'..='\u{ff5e}')
}

fn n_utf16(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}
