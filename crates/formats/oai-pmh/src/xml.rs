//! Texts within XML.

/// Appends a text, escaped for content and for attributes in double quotes; characters not allowed in XML 1.0, and
/// other control characters, are dropped.
pub(crate) fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(character),
            it if it.is_control() || matches!(it, '\u{fffe}' | '\u{ffff}') => {}
            it => out.push(it),
        }
    }
}

/// Returns a text, escaped for content and for attributes in double quotes; characters not allowed in XML 1.0, and other
/// control characters, are dropped.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape(text, &mut out);
    out
}

/// Appends an element with a text.
pub(crate) fn leaf(name: &str, text: &str, out: &mut String) {
    around(name, out, |out| escape(text, out));
}

/// Appends an element around what is written within.
pub(crate) fn around(name: &str, out: &mut String, within: impl FnOnce(&mut String)) {
    out.push('<');
    out.push_str(name);
    out.push('>');
    within(out);
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

/// Appends an attribute.
pub(crate) fn attribute(name: &str, value: &str, out: &mut String) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    escape(value, out);
    out.push('"');
}
