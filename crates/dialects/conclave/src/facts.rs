//! Parts of the topic map data model that the members of a topic cannot express: types and themes as topics, datatypes,
//! variants, reifiers, item identifiers, and complete associations.
//!
//! A fact names the member that it was projected to and exists as long as that member does: editing the member changes
//! the value, and removing it removes its facts. So what is exported is what is shown and edited. Native topics,
//! created here, have no facts.

use pinakes_store::{Txn, View};
use pinakes_topicmap::iri::model;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{ConclaveError, Result};
use crate::kinds::MAP;
use crate::names::DEFAULT_SCOPE;

/// A reference from a fact to a topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Ref {
    /// By its id in the map; it need not exist.
    Topic(String),
    /// By a subject identifier of a topic about which nothing else is stated, such as those of the data model.
    Subject {
        /// The identifier.
        si: String,
    },
}

/// The reifier and the identifiers of a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ItemFact {
    /// The topic that reifies it.
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

    /// Adds the reifier and identifiers of an equal statement; two reifiers are the same topic.
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

/// The key of the member that a fact is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Member {
    /// A metadata entry.
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
    /// The member that holds its value.
    pub(crate) at: Member,
    /// Its type; `None` for the type of names that state none.
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
    /// Its themes, including those of the name, in order.
    pub(crate) scope: Vec<Ref>,
    /// The metadata entry that shows it as well: a sort key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<Member>,
    /// Its reifier and identifiers.
    #[serde(default, skip_serializing_if = "ItemFact::is_empty")]
    pub(crate) item: ItemFact,
}

/// An occurrence of the data model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ValueFact {
    /// The member that holds its value.
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

/// An association in which the topic plays a role. Every player stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AssociationFact {
    /// Its type.
    pub(crate) ty: Ref,
    /// Its themes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scope: Vec<Ref>,
    /// Its roles, in order.
    pub(crate) roles: Vec<RoleFact>,
    /// The metadata entry that represents it, if it has only one role.
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
    /// The topic that plays it.
    pub(crate) player: Ref,
    /// Its reifier and identifiers.
    #[serde(default, skip_serializing_if = "ItemFact::is_empty")]
    pub(crate) item: ItemFact,
}

/// Statements about a map itself: its reifier and identifiers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfMap(pub(crate) ItemFact);

impl OfMap {
    /// Reads them from the store; most maps have none.
    pub fn stored(view: &mut View<'_>, name: &str) -> Result<Self> {
        let Some(record) = view.get(&MAP, name)? else { return Ok(Self::default()) };
        let damaged = |error: serde_json::Error| ConclaveError::damaged(error.to_string());
        let mut body: Value = serde_json::from_slice(&record.body).map_err(damaged)?;
        serde_json::from_value(body["item"].take()).map(Self).map_err(damaged)
    }

    /// Adds the statements of a map that is imported into this one. The first map determines the reifier; identifiers
    /// are collected from all, as for maps that merge others.
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
    /// Whether the topic came from another map: it is exported with exactly the identities it has.
    pub(crate) is_foreign: bool,
    /// Ids of topics that were merged into this one: facts of other topics may still use them.
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

/// Pairs of topics that turn out to be one, because their subjects are the same.
pub(crate) type Same = Vec<(Ref, Ref)>;

impl Facts {
    /// Adds the facts of a topic that is merged with this one. Equal statements become one.
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

    /// Returns the ids of all topics that the facts refer to.
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

    /// Keeps only variants in scopes that may be seen. All other facts are removed with the members that they are
    /// about.
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

    /// Updates the facts about a member whose key was changed.
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

/// Key by which associations are compared.
type AssociationKey = (Ref, Vec<Ref>, Vec<(Ref, Ref)>);

impl AssociationFact {
    fn key(&self) -> AssociationKey {
        let mut roles: Vec<(Ref, Ref)> =
            self.roles.iter().map(|it| (it.ty.clone(), it.player.clone())).collect();
        roles.sort();
        (self.ty.clone(), self.scope.clone(), roles)
    }
}

pub(crate) const OWN: &str = "urn:conclave:";

/// Returns the short name under which members use a subject identifier of Conclave or of the data model.
pub(crate) fn short(si: &str) -> &str {
    match si.strip_prefix(OWN) {
        Some(own) => own.split_once(':').map_or(own, |it| it.1),
        None => si.strip_prefix(model::BASE).unwrap_or(si),
    }
}

/// Returns the text by which the members of other topics refer to a topic.
pub(crate) fn text_of(it: &Ref) -> &str {
    match it {
        Ref::Topic(id) => id,
        Ref::Subject { si } => crate::facts::short(si),
    }
}

/// Returns the scope of a member that stands for some themes.
pub(crate) fn joined<'p>(parts: impl Iterator<Item = &'p str>) -> String {
    let mut parts: Vec<&str> = parts.collect();
    parts.sort_unstable();
    if parts.is_empty() { DEFAULT_SCOPE.to_owned() } else { parts.join("::") }
}
