//! Conversion between topics and the topic maps data model (section 16 of the contract).
//!
//! Concepts that Conclave has and the model lacks get identifiers that begin with `urn:conclave:`. Exporting topics and
//! importing the result gives the same topics. Concepts of the model that the members of topics cannot express are kept
//! in [`crate::Facts`], so importing a map and exporting it gives the same map.

mod from;
mod to;

pub(crate) use from::{Projection, native_id};
pub use to::to_map;
pub(crate) use to::{beside, part_to_map};
const MAP: &str = "urn:conclave:map:";
const SOURCE: &str = "urn:conclave:source";
const DATA: &str = "urn:conclave:data";
const BASE64: &str = "urn:conclave:base64";
const REFERENCE: &str = "urn:conclave:reference";
const DANGLING: &str = "urn:conclave:dangling:";
/// Name of metadata that is generated here from facts.
const GROUP: &str = "tm::group";
/// See [`GROUP`].
const REIFIES: &str = "tm::reifies";

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::OfMap;
    use crate::model::{Arc, Occurrence, Topic, set};
    use crate::names::{DEFAULT_SCOPE, LABEL, SELF};
    use pinakes_topicmap::{Format, Options, TopicMap, read, write};

    fn from_map(map: &TopicMap, name: &str, base: &str) -> Vec<Topic> {
        let projection = Projection::new(map, name, base, &HashMap::new(), &mut |_| Ok(false));
        projection.unwrap().topics().into_values().collect()
    }

    fn occurrence(role: &str, behaviour: &str, reference: &str, data: &str) -> Occurrence {
        Occurrence { data: data.to_owned(), ..Occurrence::new(role, behaviour, reference) }
    }

    /// Topics -> XTM or JTM -> topics must give the same topics.
    #[test]
    fn native_topics_come_back_as_they_were() {
        let mut arts = Topic::new("default", "Top/Arts & 50% <x>");
        arts.set(DEFAULT_SCOPE, LABEL, "Arts");
        arts.set("es::sales", LABEL, "Artes");
        arts.set("sales::es", "description", "two\nlines <b>");
        arts.set(DEFAULT_SCOPE, "keywords", "");
        arts.subject_identifiers.push("https://doi.org/10.5072/x".to_owned());
        arts.occurrences.push(occurrence("wiki", "markdown", SELF, "# text\r\n*here*"));
        arts.occurrences.push(occurrence("link", "url", "http://example.org/", "{\"title\":\"x\"}"));
        arts.occurrences.push(occurrence("link", "topic", "Top/Music", ""));
        let mut binary = occurrence("image", "image", SELF, "");
        binary.set_bytes(vec![0xFF, 0, 1]);
        arts.occurrences.push(binary);
        let arc = |id: &str, reference: &str, label: Option<&str>| {
            let mut metadata = Vec::new();
            if let Some(label) = label {
                set(&mut metadata, DEFAULT_SCOPE, LABEL, label.to_owned());
                set(&mut metadata, "es", "position", "1".to_owned());
            }
            Arc {
                id: id.to_owned(),
                ty: "category".to_owned(),
                scope: DEFAULT_SCOPE.to_owned(),
                reference: reference.to_owned(),
                role: "narrow".to_owned(),
                metadata,
            }
        };
        arts.arcs.push(arc("Top/Arts~1", "Top/Music", Some("Music")));
        arts.arcs.push(arc("a-uuid", "Top/Missing", None));
        let mut music = Topic::new("default", "Top/Music");
        music.arcs.push(arc("another", "Top/Arts & 50% <x>", None));
        let mut topics = vec![arts, music];
        topics.iter_mut().for_each(Topic::put_in_order);
        let map = to_map(&topics, &OfMap::default()).unwrap();
        for format in [Format::Xtm, Format::Jtm] {
            let mut bytes = Vec::new();
            write(format, &map, "", &mut bytes).unwrap();
            let again = read(format, &bytes, Options::new("file:///export")).unwrap().map;
            let mut back = from_map(&again, "default", "file:///export");
            back.iter_mut().for_each(Topic::put_in_order);
            back.sort_by(|one, other| one.id.cmp(&other.id));
            assert_eq!(back, topics, "{format:?}");
        }
    }
}
