//! Parts of a topic's page, as HTML that is escaped already.

use std::fmt::Write as _;

use crate::markup::Resolver;
use crate::model::{Arc, Topic};
use crate::text::{push_encoded, push_escaped};

/// Relations of one type and role that a page lists; the rest is a link to the list.
const LISTED_MAX: usize = 100;
/// Neighbours on the small map.
const NEIGHBOURS_MAX: usize = 12;

/// Nested lists: type, role, links.
pub(super) fn relations(topic: &Topic, scope: &str) -> String {
    let mut out = String::with_capacity(topic.arcs.len().min(LISTED_MAX) * 96 + 64);
    let mut arcs = topic.arcs.as_slice();
    // Arcs lie by type, role and label.
    while let Some(first) = arcs.first() {
        let n_of_type = arcs.iter().take_while(|it| it.ty == first.ty).count();
        let (mut of_type, rest) = arcs.split_at(n_of_type);
        out.push_str("<section class=\"relation\"><h3>");
        push_escaped(&mut out, &first.ty);
        out.push_str("</h3>");
        while let Some(first) = of_type.first() {
            let n_of_role = of_type.iter().take_while(|it| it.role == first.role).count();
            let (of_role, others) = of_type.split_at(n_of_role);
            out.push_str("<h4>");
            push_escaped(&mut out, &first.role);
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

/// The texts of a topic: its wiki occurrences, then the others under their roles.
pub(super) fn body(topic: &Topic) -> String {
    let link_base = format!("/t/{}/", topic.map);
    let resolver = Resolver { link_base: &link_base };
    let mut out = String::new();
    for it in topic.occurrences.iter().filter(|it| it.role == "wiki") {
        out.push_str(&resolver.html(it).unwrap_or_default());
    }
    let mut role = "wiki";
    for it in topic.occurrences.iter().filter(|it| it.role != "wiki").take(LISTED_MAX) {
        let Some(html) = resource(it, &resolver) else { continue };
        if it.role != role {
            if role != "wiki" {
                out.push_str("</ul></section>");
            }
            out.push_str("<section class=\"resources\"><h3>");
            push_escaped(&mut out, &it.role);
            out.push_str("</h3><ul>");
            role = &it.role;
        }
        out.push_str("<li>");
        out.push_str(&html);
        out.push_str("</li>");
    }
    if role != "wiki" {
        out.push_str("</ul></section>");
    }
    out
}

/// A resource; its data may say more about an address: title and description.
fn resource(it: &crate::model::Occurrence, resolver: &Resolver<'_>) -> Option<String> {
    if it.behaviour != "url" || it.data.is_empty() {
        return resolver.html(it);
    }
    let about: Option<serde_json::Value> = serde_json::from_str(&it.data).ok();
    let text = |name: &str| about.as_ref().and_then(|it| it.get(name)?.as_str()).filter(|it| !it.is_empty());
    let mut out = match text("title") {
        Some(title) if crate::markup::safe_link(&it.reference) => {
            let mut out = String::from("<a rel=\"nofollow noopener\" href=\"");
            push_escaped(&mut out, &it.reference);
            out.push_str("\">");
            push_escaped(&mut out, title);
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

/// A small map: the topic in the middle, some neighbours around it.
pub(super) fn neighbours(topic: &Topic, scope: &str) -> String {
    let mut seen: Vec<&str> = Vec::new();
    let mut shown: Vec<&Arc> = Vec::new();
    for arc in &topic.arcs {
        if shown.len() == NEIGHBOURS_MAX {
            break;
        }
        if arc.reference != topic.id && !seen.contains(&arc.reference.as_str()) {
            seen.push(&arc.reference);
            shown.push(arc);
        }
    }
    if shown.is_empty() {
        return String::new();
    }
    let mut out = String::with_capacity(400 + shown.len() * 320);
    out.push_str("<svg class=\"neighbours\" viewBox=\"0 0 480 300\" role=\"img\" aria-label=\"Neighbours\">");
    let n_shown = shown.len();
    let place = |at: usize| {
        let (sin, cos) = (std::f64::consts::TAU * (at as f64 + 0.5) / n_shown as f64).sin_cos();
        (240.0 + 165.0 * cos, 150.0 + 115.0 * sin)
    };
    for at in 0..n_shown {
        let (x, y) = place(at);
        let _ = write!(out, "<line x1=\"240\" y1=\"150\" x2=\"{x:.0}\" y2=\"{y:.0}\"/>");
    }
    for (at, arc) in shown.iter().enumerate() {
        let (x, y) = place(at);
        out.push_str("<a href=\"/t/");
        out.push_str(&topic.map);
        out.push('/');
        push_encoded(&mut out, &arc.reference);
        let _ = write!(
            out,
            "\"><circle cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"7\"/><text x=\"{x:.0}\" y=\"{:.0}\">",
            if y < 150.0 { y - 12.0 } else { y + 20.0 }
        );
        push_escaped(&mut out, &shortened(arc.label(scope)));
        out.push_str("</text></a>");
    }
    out.push_str("<circle class=\"self\" cx=\"240\" cy=\"150\" r=\"11\"/></svg>");
    out
}

fn shortened(label: &str) -> String {
    match label.char_indices().nth(22) {
        None => label.to_owned(),
        Some((at, _)) => format!("{}…", label[..at].trim_end()),
    }
}

/// What is said of a topic beside its label and description.
pub(super) fn facts(topic: &Topic, scope: &str) -> String {
    let mut out = String::new();
    for it in topic.metadata.iter().filter(|it| it.scope == scope || it.scope == crate::model::DEFAULT_SCOPE)
    {
        if matches!(it.name.as_str(), "label" | "description") || it.value.is_empty() {
            continue;
        }
        out.push_str("<dt>");
        push_escaped(&mut out, &it.name);
        out.push_str("</dt><dd>");
        push_escaped(&mut out, &it.value);
        out.push_str("</dd>");
    }
    out
}
