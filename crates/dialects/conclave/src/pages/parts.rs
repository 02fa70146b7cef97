//! Parts of a topic's page, as escaped HTML.

use std::fmt::Write as _;

use std::sync::LazyLock;

use super::shown::{Leading, Shown};
use crate::markup::Resolver;
use crate::names::DEFAULT_SCOPE;
use crate::text::{push_encoded, push_escaped};

/// Maximum number of relations of one type and role on a page; a link leads to the full list.
const LISTED_MAX: usize = 100;
/// Maximum number of neighbours on the small map.
const NEIGHBOURS_MAX: usize = 12;

/// Returns a name as words: `borders-with` is "borders with".
pub(super) fn words(name: &str) -> String {
    name.replace(['-', '_'], " ")
}

/// Appends a name as words, as HTML.
fn push_words(out: &mut String, name: &str) {
    for (at, part) in name.split(['-', '_']).enumerate() {
        if at > 0 {
            out.push(' ');
        }
        push_escaped(out, part);
    }
}

/// Writes nested lists: type, role, links.
pub(super) fn relations(out: &mut String, topic: &Shown<'_>, scope: &str) {
    let mut arcs = topic.arcs.as_slice();
    // Arcs are ordered by type, role and label.
    while let Some(first) = arcs.first() {
        let n_of_type = arcs.iter().take_while(|it| it.ty == first.ty).count();
        let (mut of_type, rest) = arcs.split_at(n_of_type);
        out.push_str("<section class=\"relation\"><h3>");
        push_words(out, &first.ty);
        out.push_str("</h3>");
        while let Some(first) = of_type.first() {
            let n_of_role = of_type.iter().take_while(|it| it.role == first.role).count();
            let (of_role, others) = of_type.split_at(n_of_role);
            out.push_str("<h4>");
            push_words(out, &first.role);
            out.push_str("</h4><ul>");
            for arc in of_role.iter().take(LISTED_MAX) {
                out.push_str("<li>");
                link(out, &topic.map, arc, scope);
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
}

fn link(out: &mut String, map: &str, arc: &Leading<'_>, scope: &str) {
    out.push_str("<a href=\"/t/");
    out.push_str(map);
    out.push('/');
    push_encoded(out, &arc.reference);
    out.push_str("\">");
    push_escaped(out, arc.label(scope));
    out.push_str("</a>");
}

/// Writes the texts of a topic: its wiki occurrences.
pub(super) fn texts(out: &mut String, topic: &Shown<'_>, resolver: &Resolver<'_>) {
    let wiki = topic.occurrences.iter().filter(|it| it.role == "wiki" || it.role == "include");
    out.extend(wiki.filter_map(|it| resolver.html(it)));
}

/// Writes the other occurrences, grouped by role.
pub(super) fn resources(out: &mut String, topic: &Shown<'_>, resolver: &Resolver<'_>) {
    let mut role: Option<&str> = None;
    let others = topic.occurrences.iter().filter(|it| it.role != "wiki" && it.role != "include");
    for it in others.take(LISTED_MAX) {
        let Some(html) = resource(it, resolver) else { continue };
        if role != Some(it.role.as_str()) {
            if role.is_some() {
                out.push_str("</ul></section>");
            }
            out.push_str("<section class=\"resources\"><h3>");
            push_words(out, &it.role);
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
}

/// Returns a resource as HTML; its data may give title and description of an address.
fn resource(it: &crate::model::Occurrence, resolver: &Resolver<'_>) -> Option<String> {
    if it.behaviour != "url" {
        return resolver.html(it);
    }
    let about: Option<serde_json::Value> = serde_json::from_str(&it.data).ok();
    let text = |name: &str| about.as_ref().and_then(|it| it.get(name)?.as_str()).filter(|it| !it.is_empty());
    let mut out = match text("title") {
        title if crate::markup::harmless::safe_link(&it.reference) => {
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

/// Returns an address without `http://`, for display.
fn bare(address: &str) -> &str {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
    rest.map_or(address, |it| it.strip_prefix("www.").unwrap_or(it).trim_end_matches('/'))
}

/// Returns the arcs on the small map: the first of each type and role, then the second ones, and so on.
fn on_the_map<'t, 'b>(topic: &'t Shown<'b>) -> Vec<&'t Leading<'b>> {
    let groups: Vec<&[Leading<'b>]> = topic
        .arcs
        .chunk_by(|it, next| it.ty == next.ty && it.role == next.role)
        .take(NEIGHBOURS_MAX)
        .collect();
    let mut shown: Vec<&Leading<'b>> = Vec::with_capacity(NEIGHBOURS_MAX);
    for rank in 0..NEIGHBOURS_MAX {
        for arc in groups.iter().filter_map(|it| it.get(rank)) {
            if shown.len() == NEIGHBOURS_MAX {
                break;
            }
            let is_new = arc.reference != topic.id && !shown.iter().any(|it| it.reference == arc.reference);
            if is_new {
                shown.push(arc);
            }
        }
    }
    // Neighbours of the same type and role are placed next to each other.
    shown.sort_by(|it, other| (&it.ty, &it.role).cmp(&(&other.ty, &other.role)));
    shown
}

/// The place of a neighbour on the small map, as HTML: its line, and its circle with the beginning of its label.
struct Place {
    line: String,
    circle: String,
}

/// The places around a topic, by the number of neighbours.
static PLACES: LazyLock<Vec<Vec<Place>>> =
    LazyLock::new(|| (0..=NEIGHBOURS_MAX).map(|n| (0..n).map(|at| place(at, n)).collect()).collect());

fn place(at: usize, n_shown: usize) -> Place {
    let (sin, cos) = (std::f64::consts::TAU * (at as f64 + 0.5) / n_shown as f64).sin_cos();
    let (x, y) = (240.0 + 110.0 * cos, 160.0 + 125.0 * sin);
    // Labels are placed outside of the circle, so that none covers a line.
    let (anchor, beside) = if x < 240.0 { ("end", x - 13.0) } else { ("start", x + 13.0) };
    Place {
        line: format!("<line x1=\"240\" y1=\"160\" x2=\"{x:.0}\" y2=\"{y:.0}\"/>"),
        circle: format!(
            "\"><circle cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"7\"/><text x=\"{beside:.0}\" y=\"{:.0}\" \
             text-anchor=\"{anchor}\">",
            y + 4.0
        ),
    }
}

/// Writes a small map: the topic in the middle, some neighbours around it.
pub(super) fn neighbours(out: &mut String, topic: &Shown<'_>, scope: &str) {
    let shown = on_the_map(topic);
    let places = PLACES.get(shown.len()).filter(|it| !it.is_empty());
    let Some(places) = places else { return };
    out.push_str("<svg class=\"neighbours\" viewBox=\"0 0 480 320\" role=\"img\" aria-label=\"Neighbours\">");
    places.iter().for_each(|it| out.push_str(&it.line));
    for (place, arc) in places.iter().zip(&shown) {
        out.push_str("<a href=\"/t/");
        out.push_str(&topic.map);
        out.push('/');
        push_encoded(out, &arc.reference);
        out.push_str(&place.circle);
        push_shortened(out, arc.label(scope));
        out.push_str("</text></a>");
    }
    out.push_str("<circle class=\"self\" cx=\"240\" cy=\"160\" r=\"11\"/></svg>");
}

/// Appends the beginning of a label, as HTML.
fn push_shortened(out: &mut String, label: &str) {
    match label.char_indices().nth(16) {
        None => push_escaped(out, label),
        Some((at, _)) => {
            push_escaped(out, label[..at].trim_end());
            out.push('…');
        }
    }
}

/// Writes what is known about a topic beside its label and description.
pub(super) fn facts(out: &mut String, topic: &Shown<'_>, scope: &str) {
    for it in topic.metadata.iter().filter(|it| it.scope == scope || it.scope == DEFAULT_SCOPE) {
        if matches!(&*it.name, "label" | "description") || it.value.is_empty() {
            continue;
        }
        out.push_str("<dt>");
        push_words(out, &it.name);
        out.push_str("</dt><dd>");
        push_escaped(out, &it.value);
        out.push_str("</dd>");
    }
}
