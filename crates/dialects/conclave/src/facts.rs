//! What the data model of topic maps says and the members of a topic have no place for: types and themes as topics,
//! datatypes, variants, reifiers, item identifiers, and associations as they are.
//!
//! A fact names the member that it was projected to and holds as long as that member is there: an edit of the member
//! changes the value, and a member that is removed takes its facts along. So what is shown and edited is what is
//! exported. Native topics, made here, have no facts.

use pinakes_store::{Txn, View};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{ConclaveError, Result};
use crate::kinds::MAP;
use crate::model::{DEFAULT_SCOPE, LABEL, Occurrence, Topic};
use crate::projection::{joined, text_of};

/// A topic that a fact refers to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Ref {
    /// By its id in the map; it need not exist.
    Topic(String),
    /// By a subject identifier of a topic of which nothing else is said, such as those of the data model.
    Subject {
        /// The identifier.
        si: String,
    },
}

/// What stands for a statement, and its identifiers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ItemFact {
    /// The topic that stands for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reifier: Option<Ref>,
    /// Item identifiers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) identifiers: Vec<String>,
}

impl ItemFact {
    fn is_empty(&self) -> bool {
        *self == ItemFact::default()
    }

    /// Adds what another says of the same statement; two reifiers are one topic.
    fn unite(&mut self, other: ItemFact, same: &mut Same) {
        match (&self.reifier, other.reifier) {
            (Some(one), Some(other)) if *one != other => same.push((one.clone(), other)),
            (None, other) => self.reifier = other,
            _ => {}
        }
        self.identifiers.extend(other.identifiers);
        self.identifiers.sort();
        self.identifiers.dedup();
    }
}

/// The member that a fact is about, by its key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Member {
    /// A metadata.
    Metadata {
        /// Its scope.
        scope: String,
        /// Its name.
        name: String,
    },
    /// An occurrence.
    Occurrence {
        /// Its scope.
        scope: String,
        /// Its role.
        role: String,
        /// Its behaviour.
        behaviour: String,
        /// Its reference.
        reference: String,
    },
}

/// A name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NameFact {
    /// Where its value is.
    pub(crate) at: Member,
    /// Its type; none: that of names that state none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ty: Option<Ref>,
    /// Its themes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scope: Vec<Ref>,
    /// Its variants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) variants: Vec<VariantFact>,
    /// Its reifier and identifiers.
    #[serde(default, skip_serializing_if = "ItemFact::is_empty")]
    pub(crate) item: ItemFact,
}

/// A variant of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VariantFact {
    /// Its value.
    pub(crate) value: String,
    /// Its datatype.
    pub(crate) datatype: String,
    /// Its themes, those of the name among them, in order.
    pub(crate) scope: Vec<Ref>,
    /// The metadata that it is shown as too: a sort key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<Member>,
    /// Its reifier and identifiers.
    #[serde(default, skip_serializing_if = "ItemFact::is_empty")]
    pub(crate) item: ItemFact,
}

/// An occurrence of the data model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ValueFact {
    /// Where its value is.
    pub(crate) at: Member,
    /// Its type.
    pub(crate) ty: Ref,
    /// Its datatype.
    pub(crate) datatype: String,
    /// Its themes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scope: Vec<Ref>,
    /// Its reifier and identifiers.
    #[serde(default, skip_serializing_if = "ItemFact::is_empty")]
    pub(crate) item: ItemFact,
}

/// An association in which the topic plays a role. Every player keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AssociationFact {
    /// Its type.
    pub(crate) ty: Ref,
    /// Its themes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scope: Vec<Ref>,
    /// Its roles, in order.
    pub(crate) roles: Vec<RoleFact>,
    /// The metadata that it is, where there is one role alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<Member>,
    /// Its reifier and identifiers.
    #[serde(default, skip_serializing_if = "ItemFact::is_empty")]
    pub(crate) item: ItemFact,
}

/// A role in an association.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RoleFact {
    /// Its type.
    pub(crate) ty: Ref,
    /// Who plays it.
    pub(crate) player: Ref,
    /// Its reifier and identifiers.
    #[serde(default, skip_serializing_if = "ItemFact::is_empty")]
    pub(crate) item: ItemFact,
}

/// What is said of a map itself: what stands for it, and its identifiers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfMap(pub(crate) ItemFact);

impl OfMap {
    /// As it is stored; most maps have nothing of it.
    pub fn stored(view: &mut View<'_>, name: &str) -> Result<Self> {
        let Some(record) = view.get(&MAP, name)? else { return Ok(Self::default()) };
        let damaged = |error: serde_json::Error| ConclaveError::damaged(error.to_string());
        let mut body: Value = serde_json::from_slice(&record.body).map_err(damaged)?;
        serde_json::from_value(body["item"].take()).map(Self).map_err(damaged)
    }

    /// Adds what a map says that is read into this one. The first gives it its reifier; identifiers come from all, as
    /// with maps that merge others.
    pub(crate) fn put(txn: &mut Txn<'_>, name: &str, mut item: ItemFact) -> Result<()> {
        if item.is_empty() {
            return Ok(());
        }
        let before = Self::stored(txn, name)?.0;
        item.reifier = before.reifier.or(item.reifier);
        item.identifiers.extend(before.identifiers);
        item.identifiers.sort();
        item.identifiers.dedup();
        txn.put(&MAP, name, &json!({"key": name, "item": item}))?;
        Ok(())
    }
}

/// All facts of a topic.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Whether the topic came from a map of elsewhere: it is exported with the identities it has, and no other.
    pub(crate) is_foreign: bool,
    /// Ids of topics that were merged into this one: facts of others may still use them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) former_ids: Vec<String>,
    /// Names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) names: Vec<NameFact>,
    /// Occurrences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) values: Vec<ValueFact>,
    /// Associations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) associations: Vec<AssociationFact>,
}

/// Topics that prove to be one, because what they stand for is one.
pub(crate) type Same = Vec<(Ref, Ref)>;

impl Facts {
    /// Adds those of a topic that is one with this. Statements that are equal become one.
    pub(crate) fn unite(&mut self, other: Facts, same: &mut Same) {
        self.is_foreign &= other.is_foreign;
        self.former_ids.extend(other.former_ids);
        for it in other.names {
            let is_same =
                |known: &&mut NameFact| known.at == it.at && known.ty == it.ty && known.scope == it.scope;
            match self.names.iter_mut().find(is_same) {
                Some(known) => {
                    known.item.unite(it.item, same);
                    for variant in it.variants {
                        let is_same = |known: &&mut VariantFact| {
                            (&known.value, &known.datatype, &known.scope)
                                == (&variant.value, &variant.datatype, &variant.scope)
                        };
                        match known.variants.iter_mut().find(is_same) {
                            Some(known) => known.item.unite(variant.item, same),
                            None => known.variants.push(variant),
                        }
                    }
                }
                None => self.names.push(it),
            }
        }
        for it in other.values {
            let is_same = |known: &&mut ValueFact| {
                (&known.at, &known.ty, &known.datatype, &known.scope)
                    == (&it.at, &it.ty, &it.datatype, &it.scope)
            };
            match self.values.iter_mut().find(is_same) {
                Some(known) => known.item.unite(it.item, same),
                None => self.values.push(it),
            }
        }
        let mut places: std::collections::HashMap<AssociationKey, usize> =
            self.associations.iter().enumerate().map(|(at, it)| (it.key(), at)).collect();
        for it in other.associations {
            let key = it.key();
            if let Some(&at) = places.get(&key) {
                let known = &mut self.associations[at];
                known.item.unite(it.item, same);
                for role in it.roles {
                    let is_same = |known: &&mut RoleFact| known.ty == role.ty && known.player == role.player;
                    if let Some(known) = known.roles.iter_mut().find(is_same) {
                        known.item.unite(role.item, same);
                    }
                }
            } else {
                places.insert(key, self.associations.len());
                self.associations.push(it);
            }
        }
    }

    /// Ids of all topics that are referred to.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        let mut out: Vec<&Ref> = Vec::new();
        for it in &self.names {
            out.extend(it.ty.iter().chain(&it.scope).chain(&it.item.reifier));
            for variant in &it.variants {
                out.extend(variant.scope.iter().chain(&variant.item.reifier));
            }
        }
        for it in &self.values {
            out.extend(std::iter::once(&it.ty).chain(&it.scope).chain(&it.item.reifier));
        }
        for it in &self.associations {
            out.extend(std::iter::once(&it.ty).chain(&it.scope).chain(&it.item.reifier));
            for role in &it.roles {
                out.extend([&role.ty, &role.player].into_iter().chain(&role.item.reifier));
            }
        }
        out.into_iter().filter_map(|it| match it {
            Ref::Topic(id) => Some(id.as_str()),
            Ref::Subject { .. } => None,
        })
    }

    /// Keeps variants of scopes that may be seen. All other facts go with the members that they are about.
    pub(crate) fn retain_variants(&mut self, may_see: impl Fn(&str) -> bool) {
        for name in &mut self.names {
            name.variants.retain(|it| {
                let is_shown_as = match &it.at {
                    Some(Member::Metadata { scope, .. } | Member::Occurrence { scope, .. }) => may_see(scope),
                    None => true,
                };
                is_shown_as && may_see(&joined(it.scope.iter().map(text_of)))
            });
        }
    }

    /// Facts of a metadata that has another name now.
    pub(crate) fn renamed(&mut self, from: &Member, to: &Member) {
        let names = self.names.iter_mut().map(|it| &mut it.at);
        let values = self.values.iter_mut().map(|it| &mut it.at);
        for at in names.chain(values).filter(|it| *it == from) {
            at.clone_from(to);
        }
        let variants = self.names.iter_mut().flat_map(|it| &mut it.variants).map(|it| &mut it.at);
        let associations = self.associations.iter_mut().map(|it| &mut it.at);
        for at in variants.chain(associations).filter(|it| it.as_ref() == Some(from)) {
            *at = Some(to.clone());
        }
    }
}

/// What makes two associations equal.
type AssociationKey = (Ref, Vec<Ref>, Vec<(Ref, Ref)>);

impl AssociationFact {
    fn key(&self) -> AssociationKey {
        let mut roles: Vec<(Ref, Ref)> =
            self.roles.iter().map(|it| (it.ty.clone(), it.player.clone())).collect();
        roles.sort();
        (self.ty.clone(), self.scope.clone(), roles)
    }
}

impl Topic {
    /// Makes one topic of two: takes all that `gone` owns. Members of one key and different values are both kept: the
    /// metadata that comes has `second` behind its name, or the next number.
    ///
    /// Gives the topics that prove to be one by this.
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
                // A name says by that it is the label that it is a name.
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
