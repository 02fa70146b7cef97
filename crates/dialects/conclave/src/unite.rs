//! Merging of two topics that turned out to be one.

use crate::facts::{Facts, ItemFact, Member, NameFact, Same};
use crate::model::{Occurrence, Topic};
use crate::names::{DEFAULT_SCOPE, LABEL};

impl Topic {
    /// Merges `gone` into this topic, which takes all its members. Where members have the same key and different
    /// values, both are kept: the incoming metadata gets `second` appended to its name, or the next number.
    ///
    /// Returns the pairs of topics that turn out to be one by this.
    pub(crate) fn absorb(&mut self, mut gone: Topic, second: &str) -> Same {
        use std::collections::{HashMap, HashSet};

        let mut facts = gone.facts.take().map(|it| *it).unwrap_or_default();
        let mut values: HashMap<(String, String), String> = HashMap::new();
        for it in &self.metadata {
            values.insert((it.scope.clone(), it.name.clone()), it.value.clone());
        }
        for mut it in gone.metadata {
            let before = Member::Metadata { scope: it.scope.clone(), name: it.name.clone() };
            let first = std::iter::once(second.to_owned());
            let mut suffixes = first.chain((2_u64..).map(|it| it.to_string()));
            let name = it.name.clone();
            let is_known = loop {
                match values.get(&(it.scope.clone(), it.name.clone())) {
                    None => break false,
                    Some(value) if *value == it.value => break true,
                    Some(_) => it.name = format!("{name}-{}", suffixes.next().unwrap_or_default()),
                }
            };
            if it.name != name {
                let now = Member::Metadata { scope: it.scope.clone(), name: it.name.clone() };
                facts.renamed(&before, &now);
                // A name is recognised by being the label; under another name it needs a fact.
                let is_known = facts.names.iter().any(|it| it.at == now);
                if facts.is_foreign && name == LABEL && it.scope == DEFAULT_SCOPE && !is_known {
                    facts.names.push(NameFact {
                        at: now,
                        ty: None,
                        scope: Vec::new(),
                        variants: Vec::new(),
                        item: ItemFact::default(),
                    });
                }
            }
            if !is_known {
                values.insert((it.scope.clone(), it.name.clone()), it.value.clone());
                self.metadata.push(it);
            }
        }
        type ArcKey = (String, String, String, String);
        let key = |it: &crate::model::Arc| -> ArcKey {
            (it.ty.clone(), it.role.clone(), it.scope.clone(), it.reference.clone())
        };
        let mut arcs: HashSet<ArcKey> = self.arcs.iter().map(key).collect();
        for mut arc in gone.arcs {
            if arc.reference == gone.id {
                self.id.clone_into(&mut arc.reference);
            }
            if self.id != gone.id
                && let Some(rest) = arc.id.strip_prefix(&format!("{}~", gone.id))
            {
                arc.id = format!("{}~{}~{rest}", self.id, gone.id);
            }
            if arcs.insert(key(&arc)) {
                self.arcs.push(arc);
            }
        }
        let mut occurrences: HashSet<[String; 4]> = self.occurrences.iter().map(Occurrence::key).collect();
        for it in gone.occurrences {
            if occurrences.insert(it.key()) {
                self.occurrences.push(it);
            }
        }
        self.subject_identifiers.extend(gone.subject_identifiers);
        self.subject_locators.extend(gone.subject_locators);
        self.item_identifiers.extend(gone.item_identifiers);
        let mut same = Same::new();
        if self.id != gone.id {
            facts.former_ids.push(gone.id);
        }
        if self.facts.is_some() || facts != Facts::default() {
            self.facts.get_or_insert_default().unite(facts, &mut same);
        }
        same
    }
}
