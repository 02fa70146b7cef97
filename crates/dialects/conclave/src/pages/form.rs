//! The form for editing a topic: what it shows of the topic, the input, and how that changes the topic.

use minijinja::{Value, context};
use serde_json::json;

use crate::edit::Edit;
use crate::error::Result;
use crate::model::{Arc, Metadata, Occurrence, Topic};
use crate::names::{DEFAULT_SCOPE, LABEL, SELF};
use crate::text::Fields;

/// Maximum number of relations and of occurrences that the form lists for removal.
const LISTED_MAX: usize = 200;
/// Metadata with fields of their own above the others.
const NAMED: [&str; 3] = [LABEL, "description", "keywords"];

/// The contents of the form, from a topic or from user input.
#[derive(Debug, Clone, Default)]
pub(super) struct Form {
    pub(super) label: String,
    description: String,
    keywords: String,
    pub(super) text: String,
    pub(super) behaviour: String,
    /// Metadata: an empty value removes the entry.
    metadata: Vec<Metadata>,
    /// Ids of arcs to be removed.
    dropped_arcs: Vec<String>,
    /// Keys of occurrences to be removed, as [`occurrence_key`] writes them.
    dropped_occurrences: Vec<String>,
    /// Type, role and reference of a new arc.
    new_arc: [String; 3],
    /// Role, behaviour, reference and data of a new occurrence.
    new_occurrence: [String; 4],
}

/// Returns the text of a topic that the form edits.
pub(super) fn wiki_of(topic: &Topic) -> Option<&Occurrence> {
    topic.occurrences.iter().find(|it| is_wiki(it))
}

fn is_wiki(it: &Occurrence) -> bool {
    it.role == "wiki" && it.scope == DEFAULT_SCOPE && it.reference == SELF && it.base64.is_none()
}

/// Returns the key of an occurrence as the value of a field.
fn occurrence_key(it: &Occurrence) -> String {
    json!([it.scope, it.role, it.behaviour, it.reference]).to_string()
}

impl Form {
    /// Returns the form for a new topic.
    pub(super) fn blank(label: &str) -> Form {
        Form { label: label.to_owned(), behaviour: "markdown".to_owned(), ..Form::default() }
    }

    pub(super) fn of(topic: &Topic) -> Form {
        let text = |name: &str| topic.get(DEFAULT_SCOPE, name).unwrap_or_default().to_owned();
        let wiki = wiki_of(topic);
        let is_other = |it: &&Metadata| it.scope != DEFAULT_SCOPE || !NAMED.contains(&it.name.as_str());
        Form {
            label: topic.get(DEFAULT_SCOPE, LABEL).unwrap_or(&topic.id).to_owned(),
            description: text("description"),
            keywords: text("keywords"),
            text: wiki.map_or(String::new(), |it| it.data.clone()),
            behaviour: wiki.map_or("markdown", |it| &it.behaviour).to_owned(),
            metadata: topic.metadata.iter().filter(is_other).take(LISTED_MAX).cloned().collect(),
            ..Form::default()
        }
    }

    pub(super) fn read(fields: &Fields) -> Form {
        let text = |name: &str| fields.text(name).trim().to_owned();
        let all = |name: &str| -> Vec<String> { fields.all(name).map(|it| it.trim().to_owned()).collect() };
        let names = all("metadata-name").into_iter().zip(all("metadata-scope")).zip(all("metadata-value"));
        let metadata = names.filter(|((name, _), _)| !name.is_empty()).map(|((name, scope), value)| {
            let scope = if scope.is_empty() { DEFAULT_SCOPE.to_owned() } else { scope };
            Metadata { scope, name, value }
        });
        Form {
            label: text("label"),
            description: text("description"),
            keywords: text("keywords"),
            // Browsers send line breaks as CR LF.
            text: fields.text("text").replace("\r\n", "\n"),
            behaviour: if fields.text("behaviour") == "wiki" { "wiki" } else { "markdown" }.to_owned(),
            metadata: metadata.collect(),
            dropped_arcs: all("drop"),
            dropped_occurrences: all("drop-occurrence"),
            new_arc: ["add-type", "add-role", "add-reference"].map(text),
            new_occurrence: ["new-role", "new-behaviour", "new-reference", "new-data"].map(text),
        }
    }

    /// Changes a topic to the contents of the form. Members that the form does not show stay as they are.
    pub(super) fn apply(&self, edit: &mut Edit<'_, '_>, id: &str, new_arc: &str) -> Result<()> {
        let topic = edit.topic(id)?;
        let named = [(LABEL, &self.label), ("description", &self.description), ("keywords", &self.keywords)];
        let own = named.into_iter().map(|(name, value)| (DEFAULT_SCOPE, name, value));
        let others = self.metadata.iter().map(|it| (it.scope.as_str(), it.name.as_str(), &it.value));
        for (scope, name, value) in own.chain(others) {
            if value.is_empty() {
                topic.metadata.retain(|it| it.scope != scope || it.name != name);
            } else {
                topic.set(scope, name, value.clone());
            }
        }
        let at = topic.occurrences.iter().position(is_wiki);
        match at {
            Some(at) if self.text.is_empty() => {
                topic.occurrences.remove(at);
            }
            Some(at) => topic.occurrences[at].data.clone_from(&self.text),
            None if self.text.is_empty() => {}
            None => topic.occurrences.push(occurrence("wiki", &self.behaviour, SELF, &self.text)),
        }
        topic.occurrences.retain(|it| !self.dropped_occurrences.contains(&occurrence_key(it)));
        topic.arcs.retain(|it| !self.dropped_arcs.contains(&it.id));
        let or = |text: &str, fallback: &str| if text.is_empty() { fallback } else { text }.to_owned();
        let [role, behaviour, reference, data] = &self.new_occurrence;
        if !role.is_empty() {
            let it = occurrence(role, &or(behaviour, "url"), &or(reference, SELF), data);
            edit.put_occurrence(id, it, !data.is_empty())?;
        }
        let [ty, role, reference] = &self.new_arc;
        if !reference.is_empty() {
            let arc = Arc {
                id: new_arc.to_owned(),
                ty: or(ty, "navigation"),
                scope: DEFAULT_SCOPE.to_owned(),
                reference: reference.clone(),
                role: or(role, "related"),
                metadata: Vec::new(),
            };
            edit.put_arc(id, arc)?;
        }
        Ok(())
    }

    /// Returns the input for the template.
    pub(super) fn values(&self) -> Value {
        let row = |it: &Metadata| context! { scope => &it.scope, name => &it.name, value => &it.value };
        let [ty, role, reference] = &self.new_arc;
        let [new_role, behaviour, new_reference, data] = &self.new_occurrence;
        context! {
            label => &self.label, description => &self.description, keywords => &self.keywords, text => &self.text,
            behaviour => &self.behaviour, metadata => self.metadata.iter().map(row).collect::<Vec<_>>(),
            new_arc => context! { ty => ty, role => role, reference => reference },
            new_occurrence => context! {
                role => new_role, behaviour => behaviour, reference => new_reference, data => data,
            },
        }
    }

    /// Returns the members of a topic that can be removed; those selected for removal are marked.
    pub(super) fn removable(&self, topic: &Topic) -> (Vec<Value>, Vec<Value>) {
        let arc = |it: &Arc| {
            context! {
                id => &it.id, ty => super::parts::words(&it.ty), role => super::parts::words(&it.role),
                label => it.label(DEFAULT_SCOPE), is_dropped => self.dropped_arcs.contains(&it.id),
            }
        };
        let occurrence = |it: &Occurrence| {
            let key = occurrence_key(it);
            let what = if it.reference == SELF { &it.data } else { &it.reference };
            let what: String = what.chars().take(80).collect();
            let is_dropped = self.dropped_occurrences.contains(&key);
            context! { key => key, role => &it.role, behaviour => &it.behaviour, what => what, is_dropped => is_dropped }
        };
        let others = topic.occurrences.iter().filter(|it| !is_wiki(it));
        (
            topic.arcs.iter().take(LISTED_MAX).map(arc).collect(),
            others.take(LISTED_MAX).map(occurrence).collect(),
        )
    }
}

fn occurrence(role: &str, behaviour: &str, reference: &str, data: &str) -> Occurrence {
    Occurrence { data: data.to_owned(), ..Occurrence::new(role, behaviour, reference) }
}
