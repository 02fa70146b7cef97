//! Ids of elements, for the versions that refer to topics by id: XTM 1.0 and 2.0.

use std::collections::HashSet;

use crate::iri;
use crate::model::{Item, TopicId, TopicMap};
use crate::xtm::names::is_nc_name;

/// An id for each topic, and more that are unused. A topic whose item identifier is in the document gets its
/// fragment as id; the others get a new id, and with it, when they are read, an additional item identifier.
pub(super) struct Ids {
    /// Prefix of the identifiers of this document's elements.
    own: String,
    used: HashSet<String>,
    topics: Vec<String>,
    n_made: usize,
}

impl Ids {
    /// Assigns the ids; `base` is the IRI of the document.
    pub(super) fn new(map: &TopicMap, base: &str) -> Ids {
        let own = format!("{}#", iri::document(&iri::decode(base)));
        let mut used = HashSet::new();
        let mut take = |list: &[String]| {
            used.extend(list.iter().filter_map(|it| it.strip_prefix(&own)).map(str::to_owned));
        };
        // A subject identifier that is the item identifier of another topic would merge both.
        for it in &map.topics {
            take(&it.item_identifiers);
            take(&it.subject_identifiers);
        }
        each_item(map, &mut |it| take(&it.item_identifiers));
        let mut ids = Ids { own, used, topics: Vec::with_capacity(map.topics.len()), n_made: 0 };
        for it in &map.topics {
            let found = it.item_identifiers.iter().find_map(|iri| ids.local(iri)).map(str::to_owned);
            let id = found.unwrap_or_else(|| ids.make("topic"));
            ids.topics.push(id);
        }
        ids
    }

    /// Returns the id of a topic's element.
    pub(super) fn of(&self, topic: TopicId) -> &str {
        &self.topics[topic.index()]
    }

    /// Returns the id that an element of this document has by this item identifier, if it is a valid id.
    pub(super) fn local<'i>(&self, item_identifier: &'i str) -> Option<&'i str> {
        item_identifier.strip_prefix(&self.own).filter(|it| is_nc_name(it))
    }

    /// Makes an id that is unused in the document.
    pub(super) fn make(&mut self, kind: &str) -> String {
        loop {
            self.n_made += 1;
            let id = format!("{kind}-{}", self.n_made);
            if !self.used.contains(&id) {
                return id;
            }
        }
    }
}

/// Visits every part of a map that may have a reifier, except roles.
pub(super) fn each_item<'m>(map: &'m TopicMap, visit: &mut dyn FnMut(&'m Item)) {
    visit(&map.item);
    for topic in &map.topics {
        for name in &topic.names {
            visit(&name.item);
            name.variants.iter().for_each(|it| visit(&it.item));
        }
        topic.occurrences.iter().for_each(|it| visit(&it.item));
    }
    map.associations.iter().for_each(|it| visit(&it.item));
}
