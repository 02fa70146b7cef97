//! The dumps of the Open Directory (section 17 of the contract): categories are topics, links their occurrences.

use std::collections::BTreeMap;
use std::io::BufRead;

use pinakes_topicmap::dmoz::{self, ArcKind, Category, Dump, Entry};
use serde_json::json;

use crate::error::Result;
use crate::import::streaming::{Dmoz, Streaming};
use crate::model::{Arc, Occurrence, Topic, set};
use crate::names::{DEFAULT_SCOPE, LABEL, SELF};

/// Reads a dump of categories.
pub(super) fn structure(input: impl BufRead, reading: &mut Streaming<'_>) -> Result<()> {
    let mut reader = dmoz::Reader::new(input, reading.document, Dump::Structure);
    while let Some(entry) = reader.next_entry()? {
        if let Entry::Category(it) = entry
            && !it.id.is_empty()
        {
            let topic = category(reading.map, it, reading.how);
            reading.put(reader.line(), topic)?;
        }
    }
    Ok(())
}

/// Reads a dump of links: occurrences of their categories.
pub(super) fn content(input: impl BufRead, reading: &mut Streaming<'_>) -> Result<()> {
    let mut reader = dmoz::Reader::new(input, reading.document, Dump::Content);
    let (map, how) = (reading.map, reading.how);
    let mut kinds: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut n_links: BTreeMap<String, usize> = BTreeMap::new();
    while let Some(entry) = reader.next_entry()? {
        match entry {
            Entry::Category(it) if !it.id.is_empty() => {
                // Pages come after their category.
                kinds.clear();
                n_links.clear();
                for (kind, url) in &it.links {
                    kinds.insert((it.id.clone(), url.clone()), kind.clone());
                }
                let mut topic = Topic::new(map, &it.id);
                topic.set(DEFAULT_SCOPE, LABEL, dmoz::label_of(&it.id));
                if let Some(catid) = it.catid {
                    topic.set(DEFAULT_SCOPE, "catid", catid);
                }
                reading.put(reader.line(), topic)?;
            }
            Entry::Page(it) if !it.category.is_empty() => {
                let n_seen = n_links.entry(it.category.clone()).or_insert(0);
                *n_seen += 1;
                if how.n_links_max > 0 && *n_seen > how.n_links_max {
                    continue;
                }
                let kind = kinds.get(&(it.category.clone(), it.url.clone()));
                let mut topic = Topic::new(map, &it.category);
                topic.set(DEFAULT_SCOPE, LABEL, dmoz::label_of(&it.category));
                let role = kind.map_or("link", String::as_str);
                topic.occurrences.push(link(
                    role,
                    it.url,
                    &it.title,
                    &it.description,
                    it.priority.as_deref(),
                ));
                reading.put(reader.line(), topic)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the occurrence for a page that a category links to.
pub(super) fn link(
    role: &str,
    url: String,
    title: &str,
    description: &str,
    priority: Option<&str>,
) -> Occurrence {
    let mut data = json!({"title": title, "description": description});
    if let Some(priority) = priority {
        data["priority"] = json!(priority);
    }
    Occurrence { data: data.to_string(), ..Occurrence::new(role, "url", &url) }
}

/// Returns the topic for a category (section 17 of the contract).
fn category(map: &str, it: Category, how: Dmoz) -> Topic {
    let cut = |text: String| if how.is_seed { text.chars().take(50).collect() } else { text };
    let mut topic = Topic::new(map, &it.id);
    let title = it.title.filter(|title| title != "Top" || it.id == "Top");
    let label = title.map_or_else(|| dmoz::label_of(&it.id), |title| title.replace('_', " "));
    topic.set(DEFAULT_SCOPE, LABEL, cut(label));
    for (name, text) in [
        ("catid", it.catid),
        ("description", it.description.map(|text| without_tags(&text))),
        ("last-update", it.last_update),
        ("dispname", it.display_name),
    ] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            topic.set(DEFAULT_SCOPE, name, cut(text));
        }
    }
    for (number, arc) in it.arcs.into_iter().enumerate() {
        if how.is_seed && (arc.group.is_some() || arc.kind == ArcKind::Language) {
            continue;
        }
        let (ty, role) = match arc.kind {
            ArcKind::Narrow => ("category", "narrow".to_owned()),
            ArcKind::Related => ("navigation", "related".to_owned()),
            ArcKind::Symbolic => ("similar", arc.label.clone().unwrap_or_else(|| "symbolic".to_owned())),
            ArcKind::Language => ("language", arc.label.clone().unwrap_or_else(|| "language".to_owned())),
        };
        let mut metadata = Vec::new();
        set(&mut metadata, DEFAULT_SCOPE, LABEL, cut(dmoz::label_of(&arc.target)));
        if let Some(group) = arc.group {
            set(&mut metadata, DEFAULT_SCOPE, "position", group.to_string());
        }
        topic.arcs.push(Arc {
            id: format!("{}~{}", it.id, number + 1),
            ty: ty.to_owned(),
            scope: DEFAULT_SCOPE.to_owned(),
            reference: arc.target,
            role: cut(role),
            metadata,
        });
    }
    for address in it.newsgroups {
        topic.occurrences.push(Occurrence::new("newsgroup", "url", &address));
    }
    if how.is_seed {
        let data = "This topic came with the directory.".to_owned();
        topic.occurrences.push(Occurrence { data, ..Occurrence::new("wiki", "markdown", SELF) });
    }
    topic
}

/// Returns the text of a description that may contain HTML.
pub(super) fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_tag = false;
    for it in text.chars() {
        match it {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            it if !is_tag => out.push(it),
            _ => {}
        }
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}
