//! Parts of a topic's page, as HTML that is escaped already.

use std::fmt::Write as _;

use crate::markup::Resolver;
use crate::model::{Arc, DEFAULT_SCOPE, Topic};
use crate::text::{push_encoded, push_escaped};

/// Relations of one type and role that a page lists; the rest is a link to the list.
const LISTED_MAX: usize = 100;
/// Neighbours on the small map.
const NEIGHBOURS_MAX: usize = 12;

/// A name as words: `borders-with` is "borders with".
pub(super) fn words(name: &str) -> String {
    name.replace(['-', '_'], " ")
}

/// Nested lists: type, role, links.
pub(super) fn relations(topic: &Topic, scope: &str) -> String {
    let mut out = String::with_capacity(topic.arcs.len().min(LISTED_MAX) * 96 + 64);
    let mut arcs = topic.arcs.as_slice();
    // Arcs lie by type, role and label.
    while let Some(first) = arcs.first() {
        let n_of_type = arcs.iter().take_while(|it| it.ty == first.ty).count();
        let (mut of_type, rest) = arcs.split_at(n_of_type);
        out.push_str("<section class=\"relation\"><h3>");
        push_escaped(&mut out, &words(&first.ty));
        out.push_str("</h3>");
        while let Some(first) = of_type.first() {
            let n_of_role = of_type.iter().take_while(|it| it.role == first.role).count();
            let (of_role, others) = of_type.split_at(n_of_role);
            out.push_str("<h4>");
            push_escaped(&mut out, &words(&first.role));
            out.push_str("</h4><ul>");
            for arc in of_role.iter().take(LISTED_MAX) {
                out.push_str("<li>");
                link(&mut out, &topic.map, arc, scope);
                out.push_str("</li>");
            }
            if of_role.len() > LISTED_MAX {
                let _ = write!(out, "<li class=\"more\">and {} more</li>", of_role.len() - LISTED_MAX);
            }
            out.push_str("</ul>");
            of_type = others;
        }
        out.push_str("</section>");
        arcs = rest;
    }
    out
}

fn link(out: &mut String, map: &str, arc: &Arc, scope: &str) {
    out.push_str("<a href=\"/t/");
    out.push_str(map);
    out.push('/');
    push_encoded(out, &arc.reference);
    out.push_str("\">");
    push_escaped(out, arc.label(scope));
    out.push_str("</a>");
}

/// The texts of a topic: its wiki occurrences.
pub(super) fn texts(topic: &Topic, resolver: &Resolver<'_>) -> String {
    let wiki = topic.occurrences.iter().filter(|it| it.role == "wiki" || it.role == "include");
    wiki.filter_map(|it| resolver.html(it)).collect()
}

/// The other occurrences, under their roles.
pub(super) fn resources(topic: &Topic, resolver: &Resolver<'_>) -> String {
    let mut out = String::new();
    let mut role: Option<&str> = None;
    let others = topic.occurrences.iter().filter(|it| it.role != "wiki" && it.role != "include");
    for it in others.take(LISTED_MAX) {
        let Some(html) = resource(it, resolver) else { continue };
        if role != Some(it.role.as_str()) {
            if role.is_some() {
                out.push_str("</ul></section>");
            }
            out.push_str("<section class=\"resources\"><h3>");
            push_escaped(&mut out, &words(&it.role));
            out.push_str("</h3><ul>");
            role = Some(&it.role);
        }
        out.push_str("<li>");
        out.push_str(&html);
        out.push_str("</li>");
    }
    if role.is_some() {
        out.push_str("</ul></section>");
    }
    out
}

/// A resource; its data may say more about an address: title and description.
fn resource(it: &crate::model::Occurrence, resolver: &Resolver<'_>) -> Option<String> {
    if it.behaviour != "url" {
        return resolver.html(it);
    }
    let about: Option<serde_json::Value> = serde_json::from_str(&it.data).ok();
    let text = |name: &str| about.as_ref().and_then(|it| it.get(name)?.as_str()).filter(|it| !it.is_empty());
    let mut out = match text("title") {
        title if crate::markup::safe_link(&it.reference) => {
            let mut out = String::from("<a rel=\"nofollow noopener\" href=\"");
            push_escaped(&mut out, &it.reference);
            out.push_str("\">");
            push_escaped(&mut out, title.unwrap_or_else(|| bare(&it.reference)));
            out.push_str("</a>");
            out
        }
        _ => resolver.html(it)?,
    };
    if let Some(description) = text("description") {
        out.push_str("<p>");
        push_escaped(&mut out, description);
        out.push_str("</p>");
    }
    Some(out)
}

/// An address as readers know it: without `http://`.
fn bare(address: &str) -> &str {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
    rest.map_or(address, |it| it.strip_prefix("www.").unwrap_or(it).trim_end_matches('/'))
}

/// Arcs on the small map: the first of each type and role, then the second ones, and so on.
fn on_the_map(topic: &Topic) -> Vec<&Arc> {
    let groups: Vec<&[Arc]> = topic
        .arcs
        .chunk_by(|it, next| it.ty == next.ty && it.role == next.role)
        .take(NEIGHBOURS_MAX)
        .collect();
    let mut shown: Vec<&Arc> = Vec::new();
    for rank in 0..NEIGHBOURS_MAX {
        for arc in groups.iter().filter_map(|it| it.get(rank)) {
            let is_new = arc.reference != topic.id && !shown.iter().any(|it| it.reference == arc.reference);
            if is_new && shown.len() < NEIGHBOURS_MAX {
                shown.push(arc);
            }
        }
    }
    // Neighbours of one kind lie side by side.
    shown.sort_by(|it, other| (&it.ty, &it.role).cmp(&(&other.ty, &other.role)));
    shown
}

/// A small map: the topic in the middle, some neighbours around it.
pub(super) fn neighbours(topic: &Topic, scope: &str) -> String {
    let shown = on_the_map(topic);
    if shown.is_empty() {
        return String::new();
    }
    let mut out = String::with_capacity(400 + shown.len() * 320);
    out.push_str("<svg class=\"neighbours\" viewBox=\"0 0 480 320\" role=\"img\" aria-label=\"Neighbours\">");
    let n_shown = shown.len();
    let place = |at: usize| {
        let (sin, cos) = (std::f64::consts::TAU * (at as f64 + 0.5) / n_shown as f64).sin_cos();
        (240.0 + 110.0 * cos, 160.0 + 125.0 * sin)
    };
    for at in 0..n_shown {
        let (x, y) = place(at);
        let _ = write!(out, "<line x1=\"240\" y1=\"160\" x2=\"{x:.0}\" y2=\"{y:.0}\"/>");
    }
    for (at, arc) in shown.iter().enumerate() {
        let (x, y) = place(at);
        out.push_str("<a href=\"/t/");
        out.push_str(&topic.map);
        out.push('/');
        push_encoded(&mut out, &arc.reference);
        // Labels stand outside of the circle, so that none lies over a line.
        let (anchor, beside) = if x < 240.0 { ("end", x - 13.0) } else { ("start", x + 13.0) };
        let _ = write!(
            out,
            "\"><circle cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"7\"/><text x=\"{beside:.0}\" y=\"{:.0}\" \
             text-anchor=\"{anchor}\">",
            y + 4.0
        );
        push_escaped(&mut out, &shortened(arc.label(scope)));
        out.push_str("</text></a>");
    }
    out.push_str("<circle class=\"self\" cx=\"240\" cy=\"160\" r=\"11\"/></svg>");
    out
}

fn shortened(label: &str) -> String {
    match label.char_indices().nth(16) {
        None => label.to_owned(),
        Some((at, _)) => format!("{}…", label[..at].trim_end()),
    }
}

/// What is said of a topic beside its label and description.
pub(super) fn facts(topic: &Topic, scope: &str) -> String {
    let mut out = String::new();
    let shown = |it: &&crate::model::Metadata| it.scope == scope || it.scope == DEFAULT_SCOPE;
    for it in topic.metadata.iter().filter(shown) {
        if matches!(it.name.as_str(), "label" | "description") || it.value.is_empty() {
            continue;
        }
        out.push_str("<dt>");
        push_escaped(&mut out, &words(&it.name));
        out.push_str("</dt><dd>");
        push_escaped(&mut out, &it.value);
        out.push_str("</dd>");
    }
    out
}
