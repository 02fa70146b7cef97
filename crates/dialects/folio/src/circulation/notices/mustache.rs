//! Templates of notices and slips: mustache, to the extent that FOLIO's template engine supports it. `{{a.b}}` escapes
//! HTML, `{{{a.b}}}` does not, `{{#list}}…{{/list}}` repeats its content or shows it if the value is present,
//! `{{^it}}…{{/it}}` shows it if it is not.

use serde_json::Value;

/// Maximum nesting depth of sections.
const DEPTH_MAX: usize = 16;

/// Why a template cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateFault {
    #[error("`{{{{` at byte {0} has no end")]
    Unclosed(usize),
    #[error("the section `{0}` has no end")]
    OpenSection(String),
    #[error("`{{{{/{0}}}}}` ends no section")]
    StrayEnd(String),
    #[error("sections are nested deeper than {DEPTH_MAX}")]
    TooDeep,
    #[error("the text would be longer than {0} bytes")]
    TooLong(usize),
}

#[derive(Debug)]
enum Part<'a> {
    Text(&'a str),
    Value { name: &'a str, is_raw: bool },
    Section { name: &'a str, is_inverted: bool, parts: Vec<Part<'a>> },
}

/// Renders a template for a context, to at most `max_bytes`.
pub(crate) fn render(template: &str, context: &Value, max_bytes: usize) -> Result<String, TemplateFault> {
    let mut reader = Reader { text: template, at: 0 };
    let parts = reader.parts(None, 0)?;
    let mut out = String::new();
    write(&parts, &mut vec![context], &mut out, max_bytes)?;
    Ok(out)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn parts(&mut self, section: Option<&str>, depth: usize) -> Result<Vec<Part<'a>>, TemplateFault> {
        if DEPTH_MAX < depth {
            return Err(TemplateFault::TooDeep);
        }
        let mut parts = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(start) = rest.find("{{") else {
                parts.push(Part::Text(rest));
                self.at = self.text.len();
                return match section {
                    Some(name) => Err(TemplateFault::OpenSection(name.to_owned())),
                    None => Ok(parts),
                };
            };
            parts.push(Part::Text(&rest[..start]));
            let (open, close) = if rest[start..].starts_with("{{{") { ("{{{", "}}}") } else { ("{{", "}}") };
            let inside = start + open.len();
            let Some(len) = rest[inside..].find(close) else {
                return Err(TemplateFault::Unclosed(self.at + start));
            };
            let tag = rest[inside..inside + len].trim();
            self.at += inside + len + close.len();
            let name = tag.get(1..).unwrap_or_default().trim();
            match tag.chars().next() {
                _ if open == "{{{" => parts.push(Part::Value { name: tag, is_raw: true }),
                Some('!') => {}
                Some('&') => parts.push(Part::Value { name, is_raw: true }),
                Some('#' | '^') => {
                    let is_inverted = tag.starts_with('^');
                    let inner = self.parts(Some(name), depth + 1)?;
                    parts.push(Part::Section { name, is_inverted, parts: inner });
                }
                Some('/') if section == Some(name) => return Ok(parts),
                Some('/') => return Err(TemplateFault::StrayEnd(name.to_owned())),
                _ => parts.push(Part::Value { name: tag, is_raw: false }),
            }
        }
    }
}

/// Looks a name up in the innermost context that has it.
fn find<'a>(contexts: &[&'a Value], name: &str) -> Option<&'a Value> {
    if name == "." {
        return contexts.last().copied();
    }
    contexts.iter().rev().find_map(|it| crate::platform::json::at(it, name))
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    }
}

fn write(
    parts: &[Part<'_>],
    contexts: &mut Vec<&Value>,
    out: &mut String,
    max_bytes: usize,
) -> Result<(), TemplateFault> {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Value { name, is_raw } => {
                let text = match find(contexts, name) {
                    Some(Value::String(text)) => text.clone(),
                    None | Some(Value::Null) => String::new(),
                    Some(other) => other.to_string(),
                };
                if *is_raw { out.push_str(&text) } else { escape(&text, out) }
            }
            Part::Section { name, is_inverted, parts } => {
                let value = find(contexts, name);
                match value {
                    _ if *is_inverted && !value.is_some_and(is_something) => {
                        write(parts, contexts, out, max_bytes)?;
                    }
                    Some(Value::Array(list)) => {
                        for one in list {
                            contexts.push(one);
                            let written = write(parts, contexts, out, max_bytes);
                            contexts.pop();
                            written?;
                        }
                    }
                    Some(value) if is_something(value) => {
                        contexts.push(value);
                        let written = write(parts, contexts, out, max_bytes);
                        contexts.pop();
                        written?;
                    }
                    _ => {}
                }
            }
        }
        if max_bytes < out.len() {
            return Err(TemplateFault::TooLong(max_bytes));
        }
    }
    Ok(())
}

fn escape(text: &str, out: &mut String) {
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(template: &str, expected: &str) {
        let context = json!({
            "user": {"firstName": "Ann", "note": "<b>"}, "n": 3, "none": [],
            "loans": [{"item": {"title": "One"}}, {"item": {"title": "Two"}}],
        });
        let found = render(template, &context, 1_000).unwrap_or_else(|it| format!("fault: {it}"));
        assert_eq!(found, expected, "{template}");
    }

    #[test]
    fn templates() {
        check("Dear {{user.firstName}}, {{ n }}", "Dear Ann, 3");
        check("{{user.note}} {{{user.note}}} {{&user.note}}", "&lt;b&gt; <b> <b>");
        check("{{#loans}}{{item.title}} for {{user.firstName}}; {{/loans}}", "One for Ann; Two for Ann; ");
        check("{{^none}}nothing{{/none}}{{#none}}x{{/none}}{{! a remark }}", "nothing");
        check("{{missing.at.all}}", "");
        check("{{user", "fault: `{{` at byte 0 has no end");
        check("{{#loans}}", "fault: the section `loans` has no end");
        check("a{{/loans}}", "fault: `{{/loans}}` ends no section");
        check(&"{{#n}}".repeat(20), "fault: sections are nested deeper than 16");
        check(&"x".repeat(2_000), "fault: the text would be longer than 1000 bytes");
    }
}
