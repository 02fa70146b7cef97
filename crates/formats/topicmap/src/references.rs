//! Shared by writers: how a topic is referred to, and which associations only state the type of a topic.

use std::collections::HashMap;

use crate::builder::IdentityKind::{self, ItemIdentifier, SubjectIdentifier, SubjectLocator};
use crate::iri::model;
use crate::model::{Association, Item, TopicId, TopicMap};

/// Returns the identity by which a topic is referred to: the first subject identifier, else subject locator,
/// else item identifier. `None` for a topic without any, which a finished map of one of the readers never
/// contains.
pub(crate) fn of(map: &TopicMap, id: TopicId) -> Option<(IdentityKind, &str)> {
    let it = map.topic(id);
    let lists = [
        (SubjectIdentifier, &it.subject_identifiers),
        (SubjectLocator, &it.subject_locators),
        (ItemIdentifier, &it.item_identifiers),
    ];
    lists.into_iter().find_map(|(kind, list)| Some((kind, list.first()?.as_str())))
}

/// Returns the types of each topic, taken from the associations that state nothing else, and the other
/// associations.
pub(crate) fn instances(map: &TopicMap) -> (HashMap<TopicId, Vec<TopicId>>, Vec<&Association>) {
    let subjects =
        [model::TYPE_INSTANCE, model::INSTANCE, model::TYPE].map(|it| map.by_subject_identifier(it));
    let (mut types, mut others) = (HashMap::<_, Vec<_>>::new(), Vec::new());
    let [Some(type_instance), Some(instance), Some(kind)] = subjects else {
        return (types, map.associations.iter().collect());
    };
    for it in &map.associations {
        let is_plain = it.kind == type_instance && it.scope.is_empty() && it.item == Item::default();
        let player = |of: TopicId| {
            it.roles
                .iter()
                .find(|role| role.kind == of && role.item == Item::default())
                .map(|role| role.player)
        };
        match (player(instance), player(kind)) {
            (Some(instance), Some(kind)) if is_plain && it.roles.len() == 2 => {
                types.entry(instance).or_default().push(kind);
            }
            _ => others.push(it),
        }
    }
    (types, others)
}
