//! The deposit form: what people type, and the citation fields of Dataverse that it stands for. What the form does not show
//! (a second description, an identifier that is no ORCID iD, other blocks) stays as it is.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::fields::Fields;
use crate::record::{items, text};

/// Most rows of authors, contacts or publications.
const ROWS_MAX: usize = 200;
/// Rows that one press on "more rows" adds.
const MORE_ROWS: usize = 3;

/// What the form holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Form {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) authors: Vec<Author>,
    pub(crate) contacts: Vec<Contact>,
    pub(crate) subjects: Vec<String>,
    /// One a line.
    pub(crate) keywords: String,
    pub(crate) publications: Vec<Publication>,
    pub(crate) notes: String,
    /// Name of the licence; empty where terms of its own hold.
    pub(crate) license: String,
}

/// An author.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Author {
    name: String,
    affiliation: String,
    orcid: String,
}

/// Whom to write to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Contact {
    pub(crate) name: String,
    pub(crate) email: String,
}

/// A publication that the data belong to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Publication {
    citation: String,
    url: String,
}

/// The value of a citation field.
fn value<'v>(fields: &'v [Value], name: &str) -> &'v Value {
    fields.iter().find(|it| it["typeName"] == name).map_or(&Value::Null, |it| &it["value"])
}

fn child(compound: &Value, name: &str) -> String {
    text(compound, &format!("{name}/value"))
}

fn is_orcid(compound: &Value) -> bool {
    let scheme = child(compound, "authorIdentifierScheme");
    scheme.is_empty() || scheme == "ORCID"
}

impl Form {
    /// Of a version as Dataverse shows it.
    pub(crate) fn of_version(version: &Value) -> Self {
        let fields = items(version, "metadataBlocks/citation/fields");
        let rows = |name: &str| value(fields, name).as_array().cloned().unwrap_or_default();
        let author = |it: &Value| Author {
            name: child(it, "authorName"),
            affiliation: child(it, "authorAffiliation"),
            orcid: if is_orcid(it) { child(it, "authorIdentifier") } else { String::new() },
        };
        let contact = |it: &Value| Contact {
            name: child(it, "datasetContactName"),
            email: child(it, "datasetContactEmail"),
        };
        let publication = |it: &Value| Publication {
            citation: child(it, "publicationCitation"),
            url: child(it, "publicationURL"),
        };
        let texts = |it: &Value| it.as_str().map(str::to_owned);
        let keywords: Vec<String> = rows("keyword").iter().map(|it| child(it, "keywordValue")).collect();
        Self {
            title: value(fields, "title").as_str().unwrap_or_default().to_owned(),
            description: rows("dsDescription")
                .first()
                .map(|it| child(it, "dsDescriptionValue"))
                .unwrap_or_default(),
            authors: rows("author").iter().map(author).collect(),
            contacts: rows("datasetContact").iter().map(contact).collect(),
            subjects: rows("subject").iter().filter_map(texts).collect(),
            keywords: keywords.join("\n"),
            publications: rows("publication").iter().map(publication).collect(),
            notes: value(fields, "notesText").as_str().unwrap_or_default().to_owned(),
            license: text(version, "license/name"),
        }
    }

    /// Of what a browser sent.
    pub(crate) fn of_sent(sent: &Fields) -> Self {
        let long = |name: &str| sent.text(name).replace("\r\n", "\n");
        let rows = |part: &str, first: &str| {
            (0..ROWS_MAX).take_while(|at| sent.has(&format!("{part}.{at}.{first}"))).count()
        };
        let cell = |part: &str, at: usize, name: &str| sent.text(&format!("{part}.{at}.{name}")).to_owned();
        let author = |at| Author {
            name: cell("author", at, "name"),
            affiliation: cell("author", at, "affiliation"),
            orcid: cell("author", at, "orcid").trim_start_matches("https://orcid.org/").to_owned(),
        };
        let contact = |at| Contact { name: cell("contact", at, "name"), email: cell("contact", at, "email") };
        let publication = |at| Publication {
            citation: cell("publication", at, "citation"),
            url: cell("publication", at, "url"),
        };
        Self {
            title: sent.text("title").to_owned(),
            description: long("description"),
            authors: (0..rows("author", "name")).map(author).collect(),
            contacts: (0..rows("contact", "name")).map(contact).collect(),
            subjects: sent.all("subject").map(str::to_owned).collect(),
            keywords: long("keywords"),
            publications: (0..rows("publication", "citation")).map(publication).collect(),
            notes: long("notes"),
            license: sent.text("license").to_owned(),
        }
    }

    /// Empty rows to write into, of each kind; more of the kind that was asked for.
    pub(crate) fn with_empty_rows(mut self, more: &str) -> Self {
        let n = |part: &str, n_now: usize| match more {
            it if it == part => (n_now + MORE_ROWS).min(ROWS_MAX),
            "" => (n_now + 1).min(ROWS_MAX),
            _ => n_now.max(1),
        };
        self.authors.resize_with(n("author", self.authors.len()), Author::default);
        let n_contacts =
            if more == "contact" { n("contact", self.contacts.len()) } else { self.contacts.len() };
        self.contacts.resize_with(n_contacts.max(1), Contact::default);
        self.publications.resize_with(n("publication", self.publications.len()), Publication::default);
        self
    }

    /// Keys of what is missing or cannot be so.
    pub(crate) fn faults(&self) -> Vec<&'static str> {
        let mut faults = Vec::new();
        let mut check = |is_wrong: bool, key| {
            if is_wrong {
                faults.push(key);
            }
        };
        check(self.title.is_empty(), "fault_title");
        check(self.authors.iter().all(|it| it.name.is_empty()), "fault_author");
        check(
            self.authors.iter().any(|it| it.name.is_empty() && *it != Author::default()),
            "fault_author_name",
        );
        check(self.authors.iter().any(|it| !it.orcid.is_empty() && !is_orcid_id(&it.orcid)), "fault_orcid");
        check(self.contacts.iter().all(|it| it.email.is_empty()), "fault_contact");
        check(
            self.contacts.iter().any(|it| it.email.is_empty() && !it.name.is_empty()),
            "fault_contact_email",
        );
        check(self.description.is_empty(), "fault_description");
        check(self.subjects.is_empty(), "fault_subject");
        let is_web = |it: &str| it.is_empty() || it.starts_with("https://") || it.starts_with("http://");
        check(self.publications.iter().any(|it| !is_web(&it.url)), "fault_url");
        faults
    }

    /// The citation fields with what the form says in place of what they said.
    pub(crate) fn applied(&self, before: &[Value]) -> Vec<Value> {
        let mut fields = before.to_vec();
        let mut put = |name: &str, class: &str, value: Value| {
            let is_empty = value == json!("") || value.as_array().is_some_and(Vec::is_empty);
            let multiple = value.is_array();
            let field = json!({"typeName": name, "multiple": multiple, "typeClass": class, "value": value});
            match fields.iter().position(|it| it["typeName"] == name) {
                Some(at) if is_empty => drop(fields.remove(at)),
                Some(at) => fields[at] = field,
                None if is_empty => {}
                None => fields.push(field),
            }
        };
        put("title", "primitive", json!(self.title));
        put("notesText", "primitive", json!(self.notes));
        put("subject", "controlledVocabulary", json!(self.subjects));
        put("author", "compound", rows(value(before, "author"), &self.authors, Author::applied));
        put(
            "datasetContact",
            "compound",
            rows(value(before, "datasetContact"), &self.contacts, Contact::applied),
        );
        put(
            "publication",
            "compound",
            rows(value(before, "publication"), &self.publications, Publication::applied),
        );
        let mut descriptions = value(before, "dsDescription").as_array().cloned().unwrap_or_default();
        let mut first = descriptions.first().and_then(Value::as_object).cloned().unwrap_or_default();
        set(&mut first, "dsDescriptionValue", &self.description);
        match descriptions.first_mut() {
            Some(it) => *it = first.into(),
            None => descriptions.push(first.into()),
        }
        put("dsDescription", "compound", descriptions.into());
        put("keyword", "compound", self.keywords_applied(value(before, "keyword")));
        fields
    }

    /// A keyword that was there keeps its vocabulary.
    fn keywords_applied(&self, before: &Value) -> Value {
        let before = before.as_array().map_or(&[][..], Vec::as_slice);
        let mut out: Vec<Value> = Vec::new();
        for word in self.keywords.lines().map(str::trim).filter(|it| !it.is_empty()) {
            let known = before.iter().find(|it| child(it, "keywordValue") == word).cloned();
            let one = known.unwrap_or_else(|| {
                let mut map = Map::new();
                set(&mut map, "keywordValue", word);
                map.into()
            });
            if !out.contains(&one) {
                out.push(one);
            }
        }
        out.into()
    }
}

/// Four groups of four digits, the last of which may be an X.
fn is_orcid_id(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let is_digit = |(at, it): (usize, char)| it.is_ascii_digit() || (at == 15 && it == 'X');
    groups.len() == 4
        && groups.iter().all(|it| it.len() == 4)
        && groups.concat().chars().enumerate().all(is_digit)
}

/// Rows of a compound field: each begins as the one that stood in its place.
fn rows<T: Default + PartialEq>(
    before: &Value,
    now: &[T],
    applied: impl Fn(&T, &mut Map<String, Value>),
) -> Value {
    let of = |(at, it): (usize, &T)| {
        if *it == T::default() {
            return None;
        }
        let mut map = before.get(at).and_then(Value::as_object).cloned().unwrap_or_default();
        applied(it, &mut map);
        Some(Value::from(map))
    };
    now.iter().enumerate().filter_map(of).collect()
}

/// Sets one part of a compound value; an empty text takes it away.
fn set(compound: &mut Map<String, Value>, name: &str, value: &str) {
    if value.is_empty() {
        compound.remove(name);
    } else {
        let class = if name == "authorIdentifierScheme" { "controlledVocabulary" } else { "primitive" };
        let part = json!({"typeName": name, "multiple": false, "typeClass": class, "value": value});
        compound.insert(name.to_owned(), part);
    }
}

impl Author {
    fn applied(&self, map: &mut Map<String, Value>) {
        set(map, "authorName", &self.name);
        set(map, "authorAffiliation", &self.affiliation);
        if !self.orcid.is_empty() || is_orcid(&Value::from(map.clone())) {
            set(map, "authorIdentifier", &self.orcid);
            set(map, "authorIdentifierScheme", if self.orcid.is_empty() { "" } else { "ORCID" });
        }
    }
}

impl Contact {
    fn applied(&self, map: &mut Map<String, Value>) {
        set(map, "datasetContactName", &self.name);
        set(map, "datasetContactEmail", &self.email);
    }
}

impl Publication {
    fn applied(&self, map: &mut Map<String, Value>) {
        set(map, "publicationCitation", &self.citation);
        set(map, "publicationURL", &self.url);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: &str = "title=Tides&description=Levels&author.0.name=Sample%2C+Ada&author.0.affiliation=Demo\
        &author.0.orcid=https%3A%2F%2Forcid.org%2F0000-0002-1825-0097&author.1.name=&author.1.affiliation=\
        &author.1.orcid=&contact.0.name=&contact.0.email=a%40example.org&subject=Other&keywords=sea%0D%0Atide\
        &publication.0.citation=&publication.0.url=&notes=&license=CC0+1.0";

    #[test]
    fn what_was_sent_is_what_the_record_then_says() {
        let form = Form::of_sent(&Fields::parse(SENT));
        assert_eq!(form.faults(), Vec::<&str>::new());
        let fields = form.applied(&[]);
        let version =
            json!({"metadataBlocks": {"citation": {"fields": fields}}, "license": {"name": "CC0 1.0"}});
        let read = Form::of_version(&version);
        assert_eq!((read.authors.len(), read.publications.len()), (1, 0));
        assert_eq!(read.with_empty_rows(""), Form::of_version(&version).with_empty_rows(""));
        assert_eq!(Form::of_version(&version).with_empty_rows(""), form.clone().with_empty_rows("none"));
        assert!(value(&form.applied(&[]), "notesText").is_null(), "an empty field is none");
    }

    #[test]
    fn what_the_form_does_not_show_stays() {
        let part = |name: &str, value: &str| json!({"typeName": name, "multiple": false, "typeClass": "primitive", "value": value});
        let before = [
            json!({"typeName": "author", "multiple": true, "typeClass": "compound", "value": [
                {"authorName": part("authorName", "Old, A"), "authorIdentifierScheme": part("authorIdentifierScheme", "GND"),
                 "authorIdentifier": part("authorIdentifier", "12")}]}),
            json!({"typeName": "dsDescription", "multiple": true, "typeClass": "compound", "value": [
                {"dsDescriptionValue": part("dsDescriptionValue", "one"), "dsDescriptionDate": part("dsDescriptionDate", "2026")},
                {"dsDescriptionValue": part("dsDescriptionValue", "two")}]}),
            json!({"typeName": "keyword", "multiple": true, "typeClass": "compound", "value": [
                {"keywordValue": part("keywordValue", "tide"), "keywordVocabulary": part("keywordVocabulary", "LCSH")}]}),
            json!({"typeName": "series", "multiple": true, "typeClass": "compound", "value": []}),
        ];
        let mut form = Form::of_sent(&Fields::parse(SENT));
        form.authors[0].orcid.clear();
        let after = form.applied(&before);
        let author = &value(&after, "author")[0];
        assert_eq!(
            (child(author, "authorName"), child(author, "authorIdentifier")),
            ("Sample, Ada".into(), "12".into())
        );
        let description = value(&after, "dsDescription");
        assert_eq!(child(&description[0], "dsDescriptionDate"), "2026");
        assert_eq!(child(&description[1], "dsDescriptionValue"), "two");
        let keywords = value(&after, "keyword");
        assert_eq!(child(&keywords[0], "keywordValue"), "sea");
        assert_eq!(child(&keywords[1], "keywordVocabulary"), "LCSH");
        assert!(after.iter().any(|it| it["typeName"] == "series"));
    }

    #[test]
    fn what_is_missing_is_said() {
        let form = Form::of_sent(&Fields::parse(
            "author.0.name=&author.0.orcid=12&publication.0.citation=x&publication.0.url=javascript:1",
        ));
        assert_eq!(
            form.faults(),
            [
                "fault_title",
                "fault_author",
                "fault_author_name",
                "fault_orcid",
                "fault_contact",
                "fault_description",
                "fault_subject",
                "fault_url"
            ]
        );
    }

    #[test]
    fn more_rows_are_of_the_kind_that_was_asked_for() {
        let form = Form::of_sent(&Fields::parse(SENT));
        let more = form.with_empty_rows("author");
        assert_eq!((more.authors.len(), more.contacts.len(), more.publications.len()), (5, 1, 1));
    }
}
