//! Markdown with tables, fenced code, footnotes, definition lists and abbreviations. Links that begin with `#` lead to
//! topics. Harmless HTML within it is kept.

use std::borrow::Cow;

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::harmless;
use crate::markup::harmless::safe_link;
use crate::text::{escape, topic_href_raw};

pub(super) fn html(text: &str, link_base: &str, is_within_page: bool) -> String {
    let (abbreviations, text) = without_abbreviations(text);
    let text = &*text;
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_DEFINITION_LIST;
    let mut events: Vec<Event<'_>> =
        Parser::new_ext(text, options).map(|event| mended(event, link_base, is_within_page)).collect();
    name_headings(&mut events);
    let has_html = events.iter().any(|it| matches!(it, Event::Html(_) | Event::InlineHtml(_)));
    if !abbreviations.is_empty() {
        events = explained(events, &abbreviations);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    html::push_html(&mut out, events.into_iter());
    if has_html { harmless::html(&out) } else { out }
}

/// Maximum number of abbreviations in one text, and maximum length of one, in bytes.
const ABBREVIATIONS_MAX: usize = 200;
const ABBREVIATION_LEN_MAX_BYTES: usize = 60;

/// A short form and what it stands for.
type Abbreviation<'t> = (&'t str, &'t str);

/// Parses a line such as `*[HTML]: Hypertext Markup Language`.
fn abbreviation(line: &str) -> Option<Abbreviation<'_>> {
    let (short, long) = line.strip_prefix("*[")?.split_once("]:")?;
    let is_short = (1..=ABBREVIATION_LEN_MAX_BYTES).contains(&short.len()) && !short.contains('[');
    is_short.then(|| (short, long.trim()))
}

/// Returns the abbreviations that a text defines outside of fenced code, and the text without those lines.
fn without_abbreviations(text: &str) -> (Vec<Abbreviation<'_>>, Cow<'_, str>) {
    if !text.contains("*[") {
        return (Vec::new(), Cow::Borrowed(text));
    }
    let (mut found, mut rest) = (Vec::new(), String::with_capacity(text.len()));
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|it| bare.starts_with(it));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        match abbreviation(line.trim_end()).filter(|_| fence.is_none() && found.len() < ABBREVIATIONS_MAX) {
            Some(it) => found.push(it),
            None => rest.push_str(line),
        }
    }
    (found, Cow::Owned(rest))
}

/// Returns the events with an `<abbr>` around each abbreviation that occurs as a word.
fn explained<'t>(events: Vec<Event<'t>>, abbreviations: &[Abbreviation<'_>]) -> Vec<Event<'t>> {
    let mut out = Vec::with_capacity(events.len());
    let mut is_code = false;
    for event in events {
        match event {
            Event::Text(text) if !is_code => explain(&text, abbreviations, &mut out),
            event => {
                match &event {
                    Event::Start(Tag::CodeBlock(_)) => is_code = true,
                    Event::End(TagEnd::CodeBlock) => is_code = false,
                    _ => {}
                }
                out.push(event);
            }
        }
    }
    out
}

fn explain(text: &str, abbreviations: &[Abbreviation<'_>], out: &mut Vec<Event<'_>>) {
    let mut from = 0;
    let is_letter = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        // A word begins after a character that is not a letter.
        if !is_letter(text[..at].chars().next_back()) {
            let rest = &text[at..];
            let fits = |it: &&Abbreviation<'_>| {
                rest.strip_prefix(it.0).is_some_and(|behind| !is_letter(behind.chars().next()))
            };
            if let Some((short, long)) = abbreviations.iter().find(fits) {
                if from < at {
                    out.push(Event::Text(text[from..at].to_owned().into()));
                }
                let html = format!("<abbr title=\"{}\">{}</abbr>", escape(long), escape(short));
                out.push(Event::InlineHtml(html.into()));
                at += short.len();
                from = at;
                continue;
            }
        }
        at += next.len_utf8();
    }
    if from < text.len() {
        out.push(Event::Text(text[from..].to_owned().into()));
    }
}

/// Replaces unsafe link targets and, within a page, moves first-level headings to the second level, as the page has its
/// own.
fn mended<'t>(event: Event<'t>, link_base: &str, is_within_page: bool) -> Event<'t> {
    match event {
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let dest_url = destination(dest_url, link_base);
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
            let dest_url = destination(dest_url, link_base);
            Event::Start(Tag::Image { link_type, dest_url, title, id })
        }
        Event::Start(Tag::Heading { level, .. }) => {
            let level = if is_within_page && level == HeadingLevel::H1 { HeadingLevel::H2 } else { level };
            Event::Start(Tag::Heading { level, id: None, classes: Vec::new(), attrs: Vec::new() })
        }
        Event::End(TagEnd::Heading(HeadingLevel::H1)) if is_within_page => {
            Event::End(TagEnd::Heading(HeadingLevel::H2))
        }
        event => event,
    }
}

fn destination<'t>(href: CowStr<'t>, link_base: &str) -> CowStr<'t> {
    match href.strip_prefix('#') {
        Some("") => href,
        Some(id) => topic_href_raw(link_base, id).into(),
        None if safe_link(&href) => href,
        None => "#".into(),
    }
}

/// Gives each heading an id derived from its text.
fn name_headings(events: &mut [Event<'_>]) {
    let mut seen: Vec<String> = Vec::new();
    for at in 0..events.len() {
        if !matches!(events[at], Event::Start(Tag::Heading { .. })) {
            continue;
        }
        let mut name = String::new();
        for event in &events[at + 1..] {
            match event {
                Event::End(TagEnd::Heading(_)) => break,
                Event::Text(text) | Event::Code(text) => {
                    for it in text.chars().flat_map(char::to_lowercase) {
                        if it.is_alphanumeric() {
                            name.push(it);
                        } else if !name.ends_with('-') && !name.is_empty() {
                            name.push('-');
                        }
                    }
                }
                _ => {}
            }
        }
        let stem = name.trim_end_matches('-').to_owned();
        let mut name = stem.clone();
        let mut number = 1;
        while seen.contains(&name) && number < 1000 {
            number += 1;
            name = format!("{stem}-{number}");
        }
        if let (Event::Start(Tag::Heading { id, .. }), false) = (&mut events[at], name.is_empty()) {
            *id = Some(name.clone().into());
        }
        seen.push(name);
    }
}
