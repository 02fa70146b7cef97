//! Matches on fields of many stored MARC records, by all that a match profile can say.

use serde_json::{Value, json};

use super::{BIBS, record};
use crate::engine::Engine;
use crate::server::{Failure, Server};

/// More than a match considers, and so many that the search index is asked.
const N_RECORDS: u32 = 1_100;
const LCCN: &str = "c858e4f2-2b6b-4385-842b-60732ee14abb";
const ISBN: &str = "8261054f-be78-422d-bd51-4ed9f33c3422";

fn book(n: u32) -> String {
    record(
        'a',
        &[
            ("001", &format!("b{n}")),
            ("008", "800101s1980    xxu           000 0 eng d"),
            ("010", &format!("$alc{n:06}")),
            ("020", &format!("$a97800000{n:05}")),
            ("024", &format!("$a(OCoLC)ocm{n:06}")),
            ("040", "$aDLC"),
            ("245", &format!("$aBook {n}, and a longer title")),
        ],
    )
}

/// A match on a subfield of the stored and the incoming record.
fn on(tag: &str, criterion: &str, qualifier: &Value) -> Value {
    let mut expression = json!({"dataValueType": "VALUE_FROM_RECORD", "fields": [{"label": "field", "value": tag},
        {"label": "indicator1", "value": " "}, {"label": "indicator2", "value": " "}, {"label": "recordSubfield", "value": "a"}]});
    if !qualifier.is_null() {
        expression["qualifier"] = qualifier.clone();
    }
    json!({"incomingRecordType": "MARC_BIBLIOGRAPHIC", "existingRecordType": "MARC_BIBLIOGRAPHIC", "matchCriterion": criterion,
        "incomingMatchExpression": expression, "existingMatchExpression": expression})
}

/// A match of a part of an instance's identifiers of a type with 020 $a.
fn on_identifiers(type_id: &str) -> Value {
    let mut details = on("020", "EXISTING_VALUE_CONTAINS_INCOMING_VALUE", &json!(null));
    details["existingRecordType"] = json!("INSTANCE");
    details["existingMatchExpression"] = json!({"dataValueType": "VALUE_FROM_RECORD", "fields": [
        {"label": "field", "value": "instance.identifiers[].value"}, {"label": "identifierTypeId", "value": type_id}]});
    details
}

impl Server {
    async fn made(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let (status, made) =
            self.json(&format!("librarian POST /data-import-profiles/{path}\n{body}")).await?;
        assert_eq!(status, 201, "{made}");
        assert!(made["id"].is_string(), "{made}");
        Ok(made["id"].clone())
    }

    /// Creates a profile that catalogues the instance which the last of some matches, each below the one before, finds.
    async fn cataloguing(&self, name: &str, matches: &[Value]) -> Result<String, Failure> {
        let mapping = json!({"profile": {"name": name, "incomingRecordType": "MARC_BIBLIOGRAPHIC", "existingRecordType": "INSTANCE",
            "mappingDetails": {"name": "instance", "recordType": "INSTANCE", "marcMappingDetails": [], "mappingFields": [
                {"name": "statusId", "enabled": "true", "path": "instance.statusId", "value": "\"Cataloged\""}]}}, "addedRelations": []});
        let mapping = self.made("mappingProfiles", &mapping).await?;
        let action = json!({"profile": {"name": name, "action": "UPDATE", "folioRecord": "INSTANCE"}, "addedRelations": [
            {"masterProfileId": null, "masterProfileType": "ACTION_PROFILE", "detailProfileId": mapping,
             "detailProfileType": "MAPPING_PROFILE", "order": 0}]});
        let action = self.made("actionProfiles", &action).await?;
        let (mut above, mut relations) = (json!(null), Vec::new());
        for (n, details) in matches.iter().enumerate() {
            let body = json!({"profile": {"name": format!("{name} {n}"), "incomingRecordType": "MARC_BIBLIOGRAPHIC",
                "existingRecordType": "MARC_BIBLIOGRAPHIC", "matchDetails": [details]}, "addedRelations": []});
            let made = self.made("matchProfiles", &body).await?;
            let is_first = above.is_null();
            let mut relation = json!({"masterProfileId": above, "masterProfileType": if is_first { "JOB_PROFILE" } else { "MATCH_PROFILE" },
                "detailProfileId": made, "detailProfileType": "MATCH_PROFILE", "order": 0});
            if !is_first {
                relation["reactTo"] = json!("MATCH");
            }
            relations.push(relation);
            above = made;
        }
        relations.push(
            json!({"masterProfileId": above, "masterProfileType": "MATCH_PROFILE", "detailProfileId": action,
            "detailProfileType": "ACTION_PROFILE", "order": 0, "reactTo": "MATCH"}),
        );
        let body = json!({"profile": {"name": name, "dataType": "MARC"}, "addedRelations": relations});
        Ok(self.made("jobProfiles", &body).await?.as_str().expect("an id").to_owned())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_is_found_whatever_is_compared() -> Result<(), Failure> {
    for engine in Engine::all() {
        find_one_of_many(engine).await?;
    }
    Ok(())
}

async fn find_one_of_many(engine: Engine) -> Result<(), Failure> {
    let server = Server::start(engine).await?;
    let job = server.upload("all.mrc", (0..N_RECORDS).map(book).collect::<String>(), BIBS).await?;
    assert_eq!(server.ended(&job).await?["status"], "COMMITTED");
    let digits = json!({"qualifierType": "BEGINS_WITH", "qualifierValue": "(OCoLC)", "comparisonPart": "NUMERICS_ONLY"});
    let no = json!(null);
    let exact = |tag| on(tag, "EXACTLY_MATCHES", &no);
    let title = |criterion| on("245", criterion, &no);
    // The last records, which a list of a thousand would lack.
    for (n, (name, matches, fields)) in [
        ("one", vec![exact("020")], [("020", "$a9780000001090"), ("040", "$aDLC")]),
        ("one of all", vec![exact("020"), exact("040")], [("020", "$a9780000001091"), ("040", "$aDLC")]),
        (
            "digits",
            vec![on("024", "EXACTLY_MATCHES", &digits)],
            [("024", "$a(OCoLC)001092"), ("040", "$aDLC")],
        ),
        (
            "begin",
            vec![title("EXISTING_VALUE_BEGINS_WITH_INCOMING_VALUE")],
            [("245", "$aBook 1093,"), ("040", "$aDLC")],
        ),
        (
            "end",
            vec![title("EXISTING_VALUE_CONTAINS_INCOMING_VALUE")],
            [("245", "$a1094, and"), ("040", "$aDLC")],
        ),
        (
            "part",
            vec![title("INCOMING_VALUE_CONTAINS_EXISTING_VALUE")],
            [("245", "$aA Book 1095, and a longer title, again"), ("040", "$aDLC")],
        ),
        ("identifiers of the type", vec![on_identifiers(LCCN)], [("020", "$ac001096"), ("040", "$aDLC")]),
    ]
    .into_iter()
    .enumerate()
    {
        let of_title = format!("/instance-storage/instances?query=title==%22Book%20{}*%22", 1_090 + n);
        let (_, list) = server.json(&format!("librarian GET {of_title}")).await?;
        let id = list["instances"][0]["id"].as_str().expect("an id");
        let profile = server.cataloguing(name, &matches).await?;
        let file = record('a', &fields);
        let job = server.upload(&format!("{n}.mrc"), file, &profile).await?;
        let ended = server.ended(&job).await?;
        assert_eq!(ended["status"], "COMMITTED", "{name}: {ended}");
        let (_, summary) = server.json(&format!("librarian GET /metadata-provider/jobSummary/{job}")).await?;
        assert_eq!(summary["instanceSummary"]["totalUpdatedEntities"], 1, "{name}: {summary}");
        let (_, instance) = server.json(&format!("librarian GET /instance-storage/instances/{id}")).await?;
        assert!(instance["statusId"].is_string(), "{name}: {instance}");
    }
    let profile = server.cataloguing("identifiers of another type", &[on_identifiers(ISBN)]).await?;
    let job =
        server.upload("other.mrc", record('a', &[("020", "$ac001097"), ("040", "$aDLC")]), &profile).await?;
    server.ended(&job).await?;
    let (_, summary) = server.json(&format!("librarian GET /metadata-provider/jobSummary/{job}")).await?;
    assert_eq!(summary["sourceRecordSummary"]["totalDiscardedEntities"], 1, "{summary}");
    Ok(())
}
