//! Markdown with tables, fenced code, footnotes and definition lists. Links that begin with `#` lead to topics. HTML within
//! it stays where it is harmless.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::{harmless, safe_link};
use crate::text::topic_href_raw;

pub(super) fn html(text: &str, link_base: &str) -> String {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_DEFINITION_LIST;
    let mut events: Vec<Event<'_>> =
        Parser::new_ext(text, options).map(|event| mended(event, link_base)).collect();
    name_headings(&mut events);
    let has_html = events.iter().any(|it| matches!(it, Event::Html(_) | Event::InlineHtml(_)));
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    html::push_html(&mut out, events.into_iter());
    if has_html { harmless::html(&out) } else { out }
}

/// Links lead where they may, and headings leave the first place to that of the page.
fn mended<'t>(event: Event<'t>, link_base: &str) -> Event<'t> {
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
            // The page has its own first heading.
            let level = if level == HeadingLevel::H1 { HeadingLevel::H2 } else { level };
            Event::Start(Tag::Heading { level, id: None, classes: Vec::new(), attrs: Vec::new() })
        }
        Event::End(TagEnd::Heading(HeadingLevel::H1)) => Event::End(TagEnd::Heading(HeadingLevel::H2)),
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

/// Gives each heading an id made of its text.
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
