//! schema.org as JSON-LD, for search engines.

use serde_json::{Map, Value, json};

use crate::exports::source::{Source, is_organization, person, plain, text};

/// Writes the format `schema.org`.
pub fn schema_org(source: &Source<'_>) -> String {
    json(source).to_string()
}

/// Returns the object.
pub fn json(source: &Source<'_>) -> Value {
    let metadata = source.metadata();
    let version = source.version();
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| {
        let is_empty = value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_str().is_some_and(|it| it.is_empty() && name != "dateModified");
        if !is_empty {
            map.insert(name.to_owned(), value);
        }
    };
    put("@context", "http://schema.org".into());
    put("@type", "Dataset".into());
    put("@id", source.pid_url().into());
    put("identifier", source.pid_url().into());
    put("name", source.title().into());
    let people = authors(source);
    put("creator", people.clone().into());
    put("author", people.into());
    put("datePublished", source.publication_date().into());
    put("dateModified", source.release_date().into());
    let number = version["versionNumber"].as_i64().map_or_else(|| "DRAFT".to_owned(), |it| it.to_string());
    put("version", number.into());
    let descriptions: Vec<Value> = metadata
        .children("dsDescription", "dsDescriptionValue")
        .into_iter()
        .map(|it| plain(it).into())
        .collect();
    match &descriptions[..] {
        [one] => put("description", one.clone()),
        _ => put("description", descriptions.into()),
    }
    let keywords: Vec<&str> = metadata
        .many("subject")
        .into_iter()
        .chain(metadata.children("topicClassification", "topicClassValue"))
        .chain(metadata.children("keyword", "keywordValue"))
        .collect();
    put("keywords", keywords.into());
    put("citation", citations(source).into());
    let periods = metadata.compounds("timePeriodCovered");
    let period = |start: Option<&str>, end: Option<&str>| match (start, end) {
        (None, None) => None,
        (start, end) => Some(Value::from(format!("{}/{}", start.unwrap_or(".."), end.unwrap_or("..")))),
    };
    let periods: Vec<Value> = periods
        .iter()
        .filter_map(|it| period(it.get("timePeriodCoveredStart"), it.get("timePeriodCoveredEnd")))
        .collect();
    put("temporalCoverage", periods.into());
    match source.license() {
        Some((_, uri)) => put("license", uri.into()),
        None => put("license", source.terms_url().into()),
    }
    let catalog = json!({"@type": "DataCatalog", "name": source.publisher, "url": source.site_url});
    put("includedInDataCatalog", catalog);
    let publisher = json!({"@type": "Organization", "name": source.publisher});
    put("publisher", publisher.clone());
    put("provider", publisher);
    put("funder", funders(source).into());
    put("spatialCoverage", places(source).into());
    put("distribution", source.files().iter().map(|it| download(source, it)).collect::<Vec<_>>().into());
    map.into()
}

fn authors(source: &Source<'_>) -> Vec<Value> {
    let author = |it: &crate::blocks::fields::Compound<'_>| {
        let name = it.get("authorName").unwrap_or_default();
        let scheme = it.get("authorIdentifierScheme").unwrap_or_default();
        let is_person = !is_organization(name) || scheme == "ORCID";
        let mut json = json!({"@type": if is_person { "Person" } else { "Organization" }});
        if let Some((family, given)) = person(name) {
            json["givenName"] = given.into();
            json["familyName"] = family.into();
        }
        if let Some(affiliation) = it.get("authorAffiliation") {
            json["affiliation"] = json!({"@type": "Organization", "name": affiliation});
        }
        if let Some(identifier) = it.get("authorIdentifier").filter(|_| scheme == "ORCID") {
            let bare = identifier.rsplit('/').next().unwrap_or(identifier);
            let url = format!("https://orcid.org/{bare}");
            json["sameAs"] = url.as_str().into();
            json["@id"] = url.as_str().into();
            json["identifier"] = url.into();
        }
        json["name"] = name.into();
        json
    };
    source.metadata().compounds("author").iter().map(author).collect()
}

fn citations(source: &Source<'_>) -> Vec<Value> {
    let works = source.metadata().compounds("publication");
    let work = |it: &crate::blocks::fields::Compound<'_>| {
        let citation = it.get("publicationCitation")?;
        let mut json = json!({"@type": "CreativeWork", "name": citation});
        let url = it.get("publicationURL").map(str::to_owned).or_else(|| {
            let number = it.get("publicationIDNumber")?;
            (it.get("publicationIDType") == Some("doi")).then(|| format!("https://doi.org/{number}"))
        });
        if let Some(url) = url {
            json["@id"] = url.as_str().into();
            json["identifier"] = url.as_str().into();
            json["url"] = url.into();
        }
        Some(json)
    };
    works.iter().filter_map(work).collect()
}

fn funders(source: &Source<'_>) -> Vec<Value> {
    let metadata = source.metadata();
    let funders = metadata
        .compounds("contributor")
        .into_iter()
        .filter(|it| it.get("contributorType") == Some("Funder"))
        .filter_map(|it| it.get("contributorName"));
    let mut names: Vec<&str> = Vec::new();
    for name in funders.chain(metadata.children("grantNumber", "grantNumberAgency")) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.into_iter().map(|it| json!({"@type": "Organization", "name": it})).collect()
}

fn places(source: &Source<'_>) -> Vec<Value> {
    let place = |it: &crate::blocks::fields::Compound<'_>| {
        let parts = ["city", "state", "country", "otherGeographicCoverage"];
        let text = parts.into_iter().filter_map(|name| it.get(name)).collect::<Vec<_>>().join(", ");
        (!text.is_empty()).then(|| Value::from(text))
    };
    source.metadata().compounds("geographicCoverage").iter().filter_map(place).collect()
}

fn download(source: &Source<'_>, file: &Value) -> Value {
    let data_file = &file["dataFile"];
    let mut json = json!({
        "@type": "DataDownload",
        "name": file["label"],
        "encodingFormat": data_file["contentType"],
        "contentSize": data_file["filesize"],
    });
    let description = plain(text(file, "description"));
    if !description.is_empty() {
        json["description"] = description.into();
    }
    if source.is_open(file) {
        json["contentUrl"] = format!("{}/api/access/datafile/{}", source.site_url, data_file["id"]).into();
    }
    json
}
