//! The markup of Acumen, Conclave's predecessor (section 8 of the contract). Forms and macros are left as text.

use crate::markup::harmless::safe_link;
use crate::text::{escape, topic_href};

pub(super) fn html(text: &str, link_base: &str, is_within_page: bool) -> String {
    let mut out = String::new();
    let top = if is_within_page { 2 } else { 1 };
    for block in text.replace("\r\n", "\n").split("\n\n").filter(|it| !it.trim().is_empty()) {
        block_html(block.trim_matches('\n'), link_base, top, &mut out);
    }
    out
}

/// Renders a block; `top` is the level of the highest heading.
fn block_html(block: &str, link_base: &str, top: u8, out: &mut String) {
    let lines: Vec<&str> = block.lines().collect();
    if let [line] = lines.as_slice() {
        for (marks, level) in [("=====", top), ("====", 2), ("===", 3), ("==", 4)] {
            let inner = line.trim().strip_prefix(marks).and_then(|it| it.strip_suffix(marks));
            if let Some(inner) = inner.filter(|it| !it.is_empty() && !it.starts_with('=')) {
                out.push_str(&format!("<h{level}>{}</h{level}>\n", inline(inner, link_base)));
                return;
            }
        }
    }
    if let Some(fence) = fence_of(&lines) {
        fenced(fence, &lines[1..lines.len() - 1], link_base, out);
        return;
    }
    if lines.iter().all(|it| bullet(it).is_some()) {
        list(&lines, link_base, out);
        return;
    }
    let body: Vec<String> = lines.iter().map(|it| inline(it, link_base)).collect();
    out.push_str(&format!("<p>{}</p>\n", body.join("\n")));
}

/// Returns the character of a fenced block, whose first and last line consist of three or more of it.
fn fence_of(lines: &[&str]) -> Option<char> {
    let (first, last) = (lines.first()?.trim(), lines.last()?.trim());
    let mark = first.chars().next().filter(|it| "*~#-+".contains(*it))?;
    let is_fence = |line: &str| line.len() >= 3 && line.chars().all(|it| it == mark);
    (lines.len() >= 2 && is_fence(first) && is_fence(last)).then_some(mark)
}

fn fenced(fence: char, mut lines: &[&str], link_base: &str, out: &mut String) {
    let (mut title, mut foot) = (None, None);
    if let [first, rest @ ..] = lines
        && let Some(text) = first.strip_prefix('.')
    {
        (title, lines) = (Some(text), rest);
    }
    if let [rest @ .., last] = lines
        && let Some(text) = last.strip_prefix('.')
    {
        (foot, lines) = (Some(text), rest);
    }
    match fence {
        '#' => {
            let language = title.map_or(String::new(), |it| format!(" class=\"language-{}\"", escape(it)));
            out.push_str(&format!("<pre><code{language}>{}</code></pre>\n", escape(&lines.join("\n"))));
        }
        '-' => {
            out.push_str("<table>");
            if let Some(title) = title {
                out.push_str(&format!("<caption>{}</caption>", inline(title, link_base)));
            }
            for line in lines {
                out.push_str("<tr>");
                for (at, cell) in line.split(':').enumerate() {
                    let tag = if at == 0 { "th" } else { "td" };
                    out.push_str(&format!("<{tag}>{}</{tag}>", inline(cell.trim(), link_base)));
                }
                out.push_str("</tr>");
            }
            out.push_str("</table>\n");
        }
        '+' => out.push_str(&format!("<pre>{}</pre>\n", escape(&lines.join("\n")))),
        fence => {
            let tag = if fence == '~' { "blockquote" } else { "aside" };
            out.push_str(&format!("<{tag}>"));
            if let Some(title) = title {
                out.push_str(&format!("<p><strong>{}</strong></p>", inline(title, link_base)));
            }
            let body: Vec<String> = lines.iter().map(|it| inline(it, link_base)).collect();
            out.push_str(&format!("<p>{}</p>", body.join("\n")));
            if let Some(foot) = foot {
                out.push_str(&format!("<p><small>{}</small></p>", inline(foot, link_base)));
            }
            out.push_str(&format!("</{tag}>\n"));
        }
    }
}

/// Returns depth and text of a list item: one to four asterisks and a space.
fn bullet(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches('*');
    let depth = line.len() - rest.len();
    (matches!(depth, 1..=4) && rest.starts_with(' ')).then(|| (depth, rest.trim()))
}

fn list(lines: &[&str], link_base: &str, out: &mut String) {
    let mut depth = 0;
    for (wanted, text) in lines.iter().filter_map(|it| bullet(it)) {
        while depth < wanted {
            out.push_str("<ul>");
            depth += 1;
        }
        while depth > wanted {
            out.push_str("</ul>");
            depth -= 1;
        }
        out.push_str(&format!("<li>{}</li>", inline(text, link_base)));
    }
    out.push_str(&"</ul>".repeat(depth));
    out.push('\n');
}

/// Renders text within a line: `*strong*`, `^emphasis^`, code in backquotes, links in brackets, anchors; `\` escapes a
/// character.
fn inline(line: &str, link_base: &str) -> String {
    let has_links = line.matches('[').count() == line.matches(']').count();
    let mut out = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let wrapped = |mark: char| {
            let end = after.find(mark).filter(|&it| it > 0)?;
            Some((&after[..end], &after[end + mark.len_utf8()..]))
        };
        match first {
            '\\' => {
                let next = after.chars().next();
                out.push_str(&escape(&next.map(String::from).unwrap_or_default()));
                rest = &after[next.map_or(0, char::len_utf8)..];
                continue;
            }
            '*' | '^' | '`' => {
                if let Some((inner, behind)) = wrapped(first) {
                    let tag = match first {
                        '*' => "strong",
                        '^' => "em",
                        _ => "code",
                    };
                    out.push_str(&format!("<{tag}>{}</{tag}>", escape(inner)));
                    rest = behind;
                    continue;
                }
            }
            '[' if has_links => {
                if let Some((inner, behind)) = wrapped(']') {
                    out.push_str(&link(inner, link_base));
                    rest = behind;
                    continue;
                }
            }
            '<' if after.starts_with('<') => {
                if let Some(end) = rest.find(">>") {
                    let inner = &rest[2..end];
                    let (text, name) = inner.split_once('|').unwrap_or(("", inner));
                    out.push_str(&format!("<a id=\"{}\">{}</a>", escape(name), escape(text)));
                    rest = &rest[end + 2..];
                    continue;
                }
            }
            _ => {}
        }
        out.push_str(&escape(&rest[..first.len_utf8()]));
        rest = after;
    }
    out
}

/// Renders a link: `ref`, `label|ref` or `label|parameter|ref`.
fn link(inner: &str, link_base: &str) -> String {
    let parts: Vec<&str> = inner.split('|').collect();
    let reference = parts.last().copied().unwrap_or_default();
    let label = if parts.len() > 1 { parts[0] } else { reference };
    let extension = reference.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    if matches!(extension.as_str(), "gif" | "jpg" | "jpeg" | "png" | "svg") && safe_link(reference) {
        return format!("<img src=\"{}\" alt=\"{}\" loading=\"lazy\">", escape(reference), escape(label));
    }
    if let Some(name) = reference.strip_prefix("wikipedia:") {
        let label = if parts.len() > 1 { label } else { name };
        let href = topic_href("https://en.wikipedia.org/wiki/", &name.replace(' ', "_"));
        return format!("<a href=\"{href}\">{}</a>", escape(label));
    }
    if reference.contains("://") || reference.starts_with("mailto:") {
        return match safe_link(reference) {
            true => {
                format!("<a href=\"{}\" rel=\"nofollow noopener\">{}</a>", escape(reference), escape(label))
            }
            false => escape(label),
        };
    }
    if reference.contains('@') && !reference.contains(['/', ':', ' ']) {
        return format!("<a href=\"mailto:{0}\">{1}</a>", escape(reference), escape(label));
    }
    let (base, id) = match reference.split_once("::") {
        Some((map, id)) => (format!("/t/{}/", topic_href("", map)), id),
        None => (link_base.to_owned(), reference),
    };
    let label = if parts.len() > 1 { label.to_owned() } else { spaced(id) };
    format!("<a href=\"{}\">{}</a>", topic_href(&base, id), escape(&label))
}

/// Returns the words of a name in camel case or with underscores.
fn spaced(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut was_lower = false;
    for it in name.chars() {
        if it.is_uppercase() && was_lower {
            out.push(' ');
        }
        was_lower = it.is_lowercase();
        out.push(if it == '_' { ' ' } else { it });
    }
    out
}
