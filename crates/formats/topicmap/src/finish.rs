//! The end of building: references follow merged topics, duplicates are folded until nothing changes, violations
//! are refused (ISO 13250-2, sections 5 and 6).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use crate::builder::Builder;
use crate::model::{Association, Item, Name, Occurrence, Role, Topic, TopicId, TopicMap, Variant};

/// Why a map is invalid: two different things are declared to be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// One topic reifies two things that are not the same.
    #[error("the topic {topic} reifies both {first} and {second}; a topic can stand for one thing only")]
    Reifier {
        /// An identity of the topic.
        topic: String,
        /// One of the things.
        first: String,
        /// The other.
        second: String,
    },
    /// One item identifier on two things that are not the same.
    #[error("the item identifier {iri} is on both {first} and {second}")]
    ItemIdentifier {
        /// The identifier.
        iri: String,
        /// One of the things.
        first: String,
        /// The other.
        second: String,
    },
}

impl Builder {
    /// Returns the finished map: merged, folded, checked.
    pub fn finish(mut self) -> Result<TopicMap, Conflict> {
        loop {
            self.follow_merges();
            let mut same = Vec::new();
            fold(&mut self.map, &mut same);
            if same.is_empty() {
                break;
            }
            for (one, other) in same {
                self.merge(one, other);
            }
        }
        let map = self.close_ranks();
        check(&map)?;
        Ok(map)
    }

    /// Replaces every reference by the topic that remains.
    fn follow_merges(&mut self) {
        let standing: Vec<TopicId> = (0..self.parents().len())
            .map(|at| self.find(TopicId(u32::try_from(at).unwrap_or(u32::MAX))))
            .collect();
        each_reference(&mut self.map, |id| *id = standing[id.index()]);
    }

    /// Removes the merged topics and renumbers the others.
    fn close_ranks(self) -> TopicMap {
        let mut numbers = vec![TopicId(0); self.parents().len()];
        let mut n_kept = 0;
        for (at, &parent) in self.parents().iter().enumerate() {
            if parent as usize == at {
                numbers[at] = TopicId(n_kept);
                n_kept += 1;
            }
        }
        let parents = self.parents().to_vec();
        let mut map = self.map;
        let mut at = 0;
        map.topics.retain(|_| {
            at += 1;
            parents[at - 1] as usize == at - 1
        });
        each_reference(&mut map, |id| *id = numbers[id.index()]);
        for topic in &mut map.topics {
            for list in
                [&mut topic.subject_identifiers, &mut topic.subject_locators, &mut topic.item_identifiers]
            {
                list.sort();
                list.dedup();
            }
        }
        map
    }
}

/// Calls `change` with every reference to a topic; scopes are sorted again afterwards.
fn each_reference(map: &mut TopicMap, mut change: impl FnMut(&mut TopicId)) {
    let item = |it: &mut Item, change: &mut dyn FnMut(&mut TopicId)| {
        if let Some(reifier) = &mut it.reifier {
            change(reifier);
        }
        it.item_identifiers.sort();
        it.item_identifiers.dedup();
    };
    let scope = |it: &mut Vec<TopicId>, change: &mut dyn FnMut(&mut TopicId)| {
        it.iter_mut().for_each(change);
        it.sort_unstable();
        it.dedup();
    };
    item(&mut map.item, &mut change);
    for topic in &mut map.topics {
        for name in &mut topic.names {
            change(&mut name.kind);
            scope(&mut name.scope, &mut change);
            item(&mut name.item, &mut change);
            for variant in &mut name.variants {
                scope(&mut variant.scope, &mut change);
                item(&mut variant.item, &mut change);
            }
        }
        for occurrence in &mut topic.occurrences {
            change(&mut occurrence.kind);
            scope(&mut occurrence.scope, &mut change);
            item(&mut occurrence.item, &mut change);
        }
    }
    for association in &mut map.associations {
        change(&mut association.kind);
        scope(&mut association.scope, &mut change);
        item(&mut association.item, &mut change);
        for role in &mut association.roles {
            change(&mut role.kind);
            change(&mut role.player);
            item(&mut role.item, &mut change);
        }
    }
}

/// Topics that prove to be one, because the things they reify are one.
type Same = Vec<(TopicId, TopicId)>;

fn fold(map: &mut TopicMap, same: &mut Same) {
    for topic in &mut map.topics {
        fold_list(&mut topic.names, name_key, |kept, gone| {
            fold_item(&mut kept.item, gone.item, same);
            kept.variants.extend(gone.variants);
        });
        for name in &mut topic.names {
            fold_list(&mut name.variants, variant_key, |kept, gone| {
                fold_item(&mut kept.item, gone.item, same);
            });
        }
        fold_list(&mut topic.occurrences, occurrence_key, |kept, gone| {
            fold_item(&mut kept.item, gone.item, same);
        });
    }
    for association in &mut map.associations {
        fold_list(&mut association.roles, role_key, |kept, gone| fold_item(&mut kept.item, gone.item, same));
        association.roles.sort_by_key(role_key);
    }
    fold_list(&mut map.associations, association_key, |kept, gone| {
        fold_item(&mut kept.item, gone.item, same);
        // Both have the same roles, in the same order.
        for (kept, gone) in kept.roles.iter_mut().zip(gone.roles) {
            fold_item(&mut kept.item, gone.item, same);
        }
    });
}

fn fold_item(kept: &mut Item, gone: Item, same: &mut Same) {
    match (kept.reifier, gone.reifier) {
        (Some(one), Some(other)) if one != other => same.push((one, other)),
        (None, other) => kept.reifier = other,
        _ => {}
    }
    kept.item_identifiers.extend(gone.item_identifiers);
    kept.item_identifiers.sort();
    kept.item_identifiers.dedup();
}

/// Keeps the first of those with equal keys and passes the others to it.
fn fold_list<T, K: Hash + Eq>(list: &mut Vec<T>, key: impl Fn(&T) -> K, mut fold: impl FnMut(&mut T, T)) {
    if list.len() < 2 {
        return;
    }
    let mut places: HashMap<K, usize> = HashMap::with_capacity(list.len());
    let mut kept: Vec<T> = Vec::with_capacity(list.len());
    for it in std::mem::take(list) {
        match places.entry(key(&it)) {
            Entry::Occupied(place) => fold(&mut kept[*place.get()], it),
            Entry::Vacant(place) => {
                place.insert(kept.len());
                kept.push(it);
            }
        }
    }
    *list = kept;
}

fn name_key(it: &Name) -> (String, TopicId, Vec<TopicId>) {
    (it.value.clone(), it.kind, it.scope.clone())
}

fn variant_key(it: &Variant) -> (String, String, Vec<TopicId>) {
    (it.value.clone(), it.datatype.clone(), it.scope.clone())
}

fn occurrence_key(it: &Occurrence) -> (String, String, TopicId, Vec<TopicId>) {
    (it.value.clone(), it.datatype.clone(), it.kind, it.scope.clone())
}

fn role_key(it: &Role) -> (TopicId, TopicId) {
    (it.kind, it.player)
}

fn association_key(it: &Association) -> (TopicId, Vec<TopicId>, Vec<(TopicId, TopicId)>) {
    (it.kind, it.scope.clone(), it.roles.iter().map(role_key).collect())
}

fn check(map: &TopicMap) -> Result<(), Conflict> {
    let mut reified: HashMap<TopicId, String> = HashMap::new();
    let mut identified: HashMap<&str, String> = HashMap::new();
    for topic in &map.topics {
        for iri in &topic.item_identifiers {
            identified.insert(iri, format!("the topic {}", identity(topic)));
        }
    }
    let mut check = |item: &'_ Item, say: &dyn Fn() -> String| -> Result<(), Conflict> {
        if let Some(reifier) = item.reifier {
            match reified.entry(reifier) {
                Entry::Occupied(first) => {
                    return Err(Conflict::Reifier {
                        topic: identity(map.topic(reifier)),
                        first: first.get().clone(),
                        second: say(),
                    });
                }
                Entry::Vacant(place) => {
                    place.insert(say());
                }
            }
        }
        for iri in &item.item_identifiers {
            if let Some(first) = identified.get(iri.as_str()) {
                return Err(Conflict::ItemIdentifier {
                    iri: iri.clone(),
                    first: first.clone(),
                    second: say(),
                });
            }
        }
        Ok(())
    };
    check(&map.item, &|| "the topic map".to_owned())?;
    // Identifiers of things that are not topics are compared with each other below: the closure borrows the table.
    each_item(map, &mut check)?;
    let mut seen: HashMap<&str, String> = HashMap::new();
    for iri in &map.item.item_identifiers {
        seen.insert(iri, "the topic map".to_owned());
    }
    each_item(map, &mut |item, say| {
        for iri in &item.item_identifiers {
            if let Some(first) = seen.insert(iri.as_str(), say()) {
                return Err(Conflict::ItemIdentifier { iri: iri.clone(), first, second: say() });
            }
        }
        Ok(())
    })
}

type Say<'s> = &'s dyn Fn() -> String;

fn each_item<'m>(
    map: &'m TopicMap,
    visit: &mut dyn FnMut(&'m Item, Say<'_>) -> Result<(), Conflict>,
) -> Result<(), Conflict> {
    for topic in &map.topics {
        for name in &topic.names {
            visit(&name.item, &|| format!("the name {:?} of {}", name.value, identity(topic)))?;
            for variant in &name.variants {
                visit(&variant.item, &|| format!("the variant {:?} of {}", variant.value, identity(topic)))?;
            }
        }
        for it in &topic.occurrences {
            visit(&it.item, &|| format!("the occurrence {:?} of {}", it.value, identity(topic)))?;
        }
    }
    for it in &map.associations {
        let say = || format!("an association of type {}", identity(map.topic(it.kind)));
        visit(&it.item, &say)?;
        for role in &it.roles {
            visit(&role.item, &|| format!("the role of {} in {}", identity(map.topic(role.player)), say()))?;
        }
    }
    Ok(())
}

/// Returns the name of a topic for errors.
fn identity(topic: &Topic) -> String {
    topic
        .subject_identifiers
        .first()
        .or(topic.subject_locators.first())
        .or(topic.item_identifiers.first())
        .cloned()
        .unwrap_or_else(|| {
            topic.names.first().map_or("without identity".to_owned(), |it| format!("{:?}", it.value))
        })
}
