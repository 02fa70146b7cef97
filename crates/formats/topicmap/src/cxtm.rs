//! CXTM: the canonical text of a topic map, by which two maps are compared (ISO/IEC 13250-4).

use std::cmp::Ordering;
use std::io::{self, Write};

use crate::iri::{self, datatype};
use crate::model::{Item, Topic, TopicId, TopicMap};
use crate::xml::escape;

/// Writes the canonical form. `base` is the IRI of the document that the map was read from: locators below it are
/// written relative to it.
pub(crate) fn write(map: &TopicMap, base: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer::new(map, base);
    writer.map();
    out.write_all(writer.out.as_bytes())
}

/// The sort key of topics: three lists of sorted locators.
type TopicKey = [Vec<String>; 3];

struct Writer<'m> {
    map: &'m TopicMap,
    base: String,
    /// Number of each topic in the output, from 1.
    numbers: Vec<usize>,
    keys: Vec<TopicKey>,
    out: String,
}

impl<'m> Writer<'m> {
    fn new(map: &'m TopicMap, base: &str) -> Writer<'m> {
        let base = iri::decode(base);
        let base = base.split(['#', '?']).next().unwrap_or_default();
        let base = base.strip_suffix('/').unwrap_or(base).to_owned();
        let keys: Vec<TopicKey> = map
            .topics
            .iter()
            .map(|it| {
                [&it.subject_identifiers, &it.subject_locators, &it.item_identifiers]
                    .map(|list| locators(&base, list))
            })
            .collect();
        let mut order: Vec<usize> = (0..map.topics.len()).collect();
        order.sort_by(|&one, &other| {
            let pairs = keys[one].iter().zip(&keys[other]);
            pairs.map(|(one, other)| by_size(one, other)).find(|it| it.is_ne()).unwrap_or(Ordering::Equal)
        });
        let mut numbers = vec![0; order.len()];
        for (at, topic) in order.into_iter().enumerate() {
            numbers[topic] = at + 1;
        }
        Writer { map, base, numbers, keys, out: String::new() }
    }

    fn number(&self, topic: TopicId) -> usize {
        self.numbers[topic.index()]
    }

    fn scope_key(&self, scope: &[TopicId]) -> Vec<usize> {
        let mut key: Vec<usize> = scope.iter().map(|&it| self.number(it)).collect();
        key.sort_unstable();
        key
    }

    fn map(&mut self) {
        let map = self.map;
        let reifier = self.reifier(&map.item);
        self.out.push_str(&format!("<topicMap{reifier}>\n"));
        self.identifiers(&map.item);

        // Associations: type, roles, scope.
        let mut associations: Vec<_> = map
            .associations
            .iter()
            .map(|it| {
                let mut roles: Vec<_> = it
                    .roles
                    .iter()
                    .map(|role| (self.number(role.player), self.number(role.kind), role))
                    .collect();
                roles.sort_by_key(|it| (it.0, it.1));
                let key: Vec<(usize, usize)> = roles.iter().map(|it| (it.0, it.1)).collect();
                (self.number(it.kind), key, self.scope_key(&it.scope), roles, it)
            })
            .collect();
        associations.sort_by(|one, other| {
            let scopes = by_size(&one.2, &other.2);
            one.0.cmp(&other.0).then_with(|| by_size(&one.1, &other.1)).then(scopes)
        });

        // Roles that each topic plays: type, association, role.
        let mut played: Vec<Vec<(usize, usize, usize)>> = vec![Vec::new(); map.topics.len()];
        for (at, association) in associations.iter().enumerate() {
            for (place, (_, kind, role)) in association.3.iter().enumerate() {
                played[role.player.index()].push((*kind, at + 1, place + 1));
            }
        }
        let mut order: Vec<usize> = (0..map.topics.len()).collect();
        order.sort_by_key(|&it| self.numbers[it]);
        for topic in order {
            played[topic].sort_unstable();
            self.topic(topic, &played[topic]);
        }
        for (at, (kind, _, scope, roles, it)) in associations.iter().enumerate() {
            let reifier = self.reifier(&it.item);
            self.out.push_str(&format!("<association number=\"{}\"{reifier}>\n", at + 1));
            self.out.push_str(&format!("<type topicref=\"{kind}\"></type>\n"));
            for (place, (player, kind, role)) in roles.iter().enumerate() {
                let reifier = self.reifier(&role.item);
                self.out.push_str(&format!("<role number=\"{}\"{reifier}>\n", place + 1));
                self.out.push_str(&format!("<player topicref=\"{player}\"></player>\n"));
                self.out.push_str(&format!("<type topicref=\"{kind}\"></type>\n"));
                self.identifiers(&role.item);
                self.out.push_str("</role>\n");
            }
            self.scope(scope);
            self.identifiers(&it.item);
            self.out.push_str("</association>\n");
        }
        self.out.push_str("</topicMap>\n");
    }

    fn topic(&mut self, topic: usize, played: &[(usize, usize, usize)]) {
        let map = self.map;
        let it: &Topic = &map.topics[topic];
        self.out.push_str(&format!("<topic number=\"{}\">\n", self.numbers[topic]));
        let lists = std::mem::take(&mut self.keys[topic]);
        for (element, list) in ["subjectIdentifiers", "subjectLocators", "itemIdentifiers"].iter().zip(lists)
        {
            self.locators(element, &list);
        }
        self.names(it);
        let mut occurrences: Vec<_> = it
            .occurrences
            .iter()
            .map(|it| {
                (self.value(&it.value, &it.datatype), self.number(it.kind), self.scope_key(&it.scope), it)
            })
            .collect();
        occurrences.sort_by(|one, other| {
            one.0
                .cmp(&other.0)
                .then_with(|| one.3.datatype.cmp(&other.3.datatype))
                .then(one.1.cmp(&other.1))
                .then_with(|| by_size(&one.2, &other.2))
        });
        for (at, (value, kind, scope, it)) in occurrences.iter().enumerate() {
            let reifier = self.reifier(&it.item);
            self.out.push_str(&format!("<occurrence number=\"{}\"{reifier}>\n", at + 1));
            self.element("value", value);
            self.element("datatype", &it.datatype);
            self.out.push_str(&format!("<type topicref=\"{kind}\"></type>\n"));
            self.scope(scope);
            self.identifiers(&it.item);
            self.out.push_str("</occurrence>\n");
        }
        for (_, association, role) in played {
            self.out.push_str(&format!(
                "<rolePlayed ref=\"association.{association}.role.{role}\"></rolePlayed>\n"
            ));
        }
        self.out.push_str("</topic>\n");
    }

    fn names(&mut self, topic: &Topic) {
        let mut names: Vec<_> =
            topic.names.iter().map(|it| (self.number(it.kind), self.scope_key(&it.scope), it)).collect();
        names.sort_by(|one, other| {
            one.2.value.cmp(&other.2.value).then(one.0.cmp(&other.0)).then_with(|| by_size(&one.1, &other.1))
        });
        for (at, (kind, scope, it)) in names.iter().enumerate() {
            let reifier = self.reifier(&it.item);
            self.out.push_str(&format!("<name number=\"{}\"{reifier}>\n", at + 1));
            self.element("value", &it.value);
            self.out.push_str(&format!("<type topicref=\"{kind}\"></type>\n"));
            self.scope(scope);
            let mut variants: Vec<_> = it
                .variants
                .iter()
                .map(|it| (self.value(&it.value, &it.datatype), self.scope_key(&it.scope), it))
                .collect();
            variants.sort_by(|one, other| {
                one.0
                    .cmp(&other.0)
                    .then_with(|| one.2.datatype.cmp(&other.2.datatype))
                    .then_with(|| by_size(&one.1, &other.1))
            });
            for (at, (value, scope, it)) in variants.iter().enumerate() {
                let reifier = self.reifier(&it.item);
                self.out.push_str(&format!("<variant number=\"{}\"{reifier}>\n", at + 1));
                self.element("value", value);
                self.element("datatype", &it.datatype);
                self.scope(scope);
                self.identifiers(&it.item);
                self.out.push_str("</variant>\n");
            }
            self.identifiers(&it.item);
            self.out.push_str("</name>\n");
        }
    }

    fn value(&self, value: &str, datatype: &str) -> String {
        match datatype {
            datatype::ANY_URI => normalised(&self.base, value),
            datatype::INTEGER => canonical_integer(value),
            datatype::DECIMAL => canonical_decimal(value),
            _ => value.to_owned(),
        }
    }

    fn element(&mut self, name: &str, text: &str) {
        self.out.push_str(&format!("<{name}>"));
        escape(text, &mut self.out);
        self.out.push_str(&format!("</{name}>\n"));
    }

    fn scope(&mut self, numbers: &[usize]) {
        if numbers.is_empty() {
            return;
        }
        self.out.push_str("<scope>\n");
        for number in numbers {
            self.out.push_str(&format!("<scopingTopic topicref=\"{number}\"></scopingTopic>\n"));
        }
        self.out.push_str("</scope>\n");
    }

    fn reifier(&self, item: &Item) -> String {
        item.reifier.map_or(String::new(), |it| format!(" reifier=\"{}\"", self.number(it)))
    }

    fn identifiers(&mut self, item: &Item) {
        let list = locators(&self.base, &item.item_identifiers);
        self.locators("itemIdentifiers", &list);
    }

    fn locators(&mut self, element: &str, list: &[String]) {
        if list.is_empty() {
            return;
        }
        self.out.push_str(&format!("<{element}>\n"));
        for it in list {
            self.element("locator", it);
        }
        self.out.push_str(&format!("</{element}>\n"));
    }
}

fn locators(base: &str, list: &[String]) -> Vec<String> {
    let mut out: Vec<String> = list.iter().map(|it| normalised(base, it)).collect();
    out.sort();
    out
}

/// Orders smaller lists first, then element by element.
fn by_size<T: Ord>(one: &[T], other: &[T]) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

/// Returns a locator without the part it shares with the base.
fn normalised(base: &str, locator: &str) -> String {
    let rest = match locator.strip_prefix(base) {
        Some(rest) => rest,
        None => {
            let n_shared = base.bytes().zip(locator.bytes()).take_while(|(one, other)| one == other).count();
            let shared = &locator.as_bytes()[..n_shared];
            // A slash is a character of its own in UTF-8, so the cut is between characters.
            shared.iter().rposition(|&it| it == b'/').map_or(locator, |slash| &locator[slash..])
        }
    };
    rest.strip_prefix('/').unwrap_or(rest).to_owned()
}

fn canonical_integer(value: &str) -> String {
    let (sign, digits) = signed(value);
    if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_digit()) {
        return value.to_owned();
    }
    match digits.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits => format!("{sign}{digits}"),
    }
}

fn canonical_decimal(value: &str) -> String {
    let (sign, number) = signed(value);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && part.is_empty() || !whole.bytes().chain(part.bytes()).all(|it| it.is_ascii_digit())
    {
        return value.to_owned();
    }
    let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
    let or_zero = |it| if str::is_empty(it) { "0" } else { it };
    let sign = if whole.is_empty() && part.is_empty() { "" } else { sign };
    format!("{sign}{}.{}", or_zero(whole), or_zero(part))
}

fn signed(value: &str) -> (&'static str, &str) {
    match value.trim() {
        it if it.starts_with('-') => ("-", &it[1..]),
        it => ("", it.strip_prefix('+').unwrap_or(it)),
    }
}
