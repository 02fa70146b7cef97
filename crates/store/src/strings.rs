//! Every string of a JSON document, each once, without building the document.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The strings of `json` at any depth, one a line; keys are no strings of the document. A string that came before
/// is left out: scientific metadata repeats its units hundreds of times, and a search finds a word once or never.
pub(crate) fn unique_strings(json: &[u8]) -> serde_json::Result<String> {
    let mut collected = Collected::default();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    Collect(&mut collected).deserialize(&mut deserializer)?;
    Ok(collected.text)
}

#[derive(Default)]
struct Collected {
    text: String,
    seen: HashSet<u64>,
}

impl Collected {
    fn add(&mut self, text: &str) {
        use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
        // Two strings of one hash would hide one of them from searches: at 64 bits and thousands of strings a
        // document, this does not happen.
        if self.seen.insert(BuildHasherDefault::<DefaultHasher>::default().hash_one(text)) {
            self.text.push_str(text);
            self.text.push('\n');
        }
    }
}

struct Collect<'a>(&'a mut Collected);

impl<'de> DeserializeSeed<'de> for Collect<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Collect<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.add(text);
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Collect(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(Collect(&mut *self.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::unique_strings;

    #[test]
    fn takes_values_of_any_depth_once_and_no_keys() {
        let json = br#"{"k":"a","n":[1,2.5,null,true,{"u":"mm","v":{"u":"mm","x":"\u00e9"}}],"b":"a"}"#;
        assert_eq!(unique_strings(json).unwrap(), "a\nmm\n\u{e9}\n");
    }
}
