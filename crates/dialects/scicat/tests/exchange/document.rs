//! Checks the `OpenAPI` document against the server: every operation is served, and requests and answers of the
//! exchanges conform to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use jsonschema::Validator;
use pinakes_test_support::exchange;
use serde_json::{Value, json};

use crate::cases;
use crate::engine::Engine;
use crate::server::{Failure, Server, site};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_documented_operation_is_served() -> Result<(), Failure> {
    let server = Server::start(Engine::Sqlite, site()).await?;
    let document = server.mount.openapi.clone();
    let paths = document["paths"].as_object().ok_or("no paths")?;
    let mut ids = BTreeSet::new();
    for (path, item) in paths {
        let asked = path.replace(['{', '}'], "");
        for (method, operation) in item.as_object().into_iter().flatten() {
            let mut out = String::new();
            let request = format!("nobody {} {asked}\n", method.to_uppercase());
            let body = server.ask(&request, &mut out).await?;
            assert!(!body.starts_with(b"{\"message\":\"Cannot "), "{method} {path} has no route");
            let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
            assert!(!id.is_empty() && ids.insert(id.clone()), "{method} {path}: {id:?} is another's id");
        }
    }
    assert!(230 < ids.len(), "{} operations", ids.len());
    Ok(())
}

/// The schemas of an operation's body and of its answer for each status.
struct Described {
    method: String,
    segments: Vec<String>,
    body: Option<Validator>,
    answers: BTreeMap<u16, Option<Validator>>,
}

impl Described {
    fn fits(&self, method: &str, segments: &[&str]) -> bool {
        let same =
            |(ours, asked): (&String, &&str)| ours.starts_with('{') || ours.eq_ignore_ascii_case(asked);
        self.method == method
            && self.segments.len() == segments.len()
            && self.segments.iter().zip(segments).all(same)
    }

    fn n_parameters(&self) -> usize {
        self.segments.iter().filter(|it| it.starts_with('{')).count()
    }
}

fn described(document: &Value) -> Result<Vec<Described>, Failure> {
    let components = &document["components"];
    let compile = |content: &Value| -> Result<Option<Validator>, Failure> {
        let Some(schema) = content.pointer("/content/application~1json/schema") else { return Ok(None) };
        Ok(Some(jsonschema::validator_for(&json!({"allOf": [schema], "components": components}))?))
    };
    let mut list = Vec::new();
    for (path, item) in document["paths"].as_object().ok_or("no paths")? {
        for (method, operation) in item.as_object().ok_or("no methods")? {
            let mut answers = BTreeMap::new();
            for (status, answer) in operation["responses"].as_object().ok_or("no responses")? {
                answers.insert(status.parse()?, compile(answer)?);
            }
            list.push(Described {
                method: method.to_uppercase(),
                segments: path.split('/').map(str::to_owned).collect(),
                body: compile(&operation["requestBody"])?,
                answers,
            });
        }
    }
    // Fixed words of a path take precedence over parameters, as in the router.
    list.sort_by_key(Described::n_parameters);
    Ok(list)
}

/// Returns a value without members that are null: clients treat them as absent.
fn without_null(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|_, it| !it.is_null());
                map.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

/// Returns what in one exchange does not conform to the document.
fn faults(described: &[Described], request: &str, status: u16, answer: &[u8]) -> Vec<String> {
    let (head, rest) = request.split_once('\n').unwrap_or((request, ""));
    let mut words = head.splitn(3, ' ').skip(1);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let segments: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let Some(operation) = described.iter().find(|it| it.fits(method, &segments)) else { return Vec::new() };
    let mut faults = Vec::new();
    let found = |validator: &Validator, value: Value| {
        let value = without_null(value);
        validator.iter_errors(&value).map(|it| format!("{}: {it}", it.instance_path())).next()
    };
    let body =
        rest.lines().find(|it| it.starts_with(['{', '['])).and_then(|it| serde_json::from_str(it).ok());
    // Bodies sent to `isValid` may be invalid.
    if let (Some(validator), Some(body)) = (&operation.body, body)
        && !path.ends_with("isValid")
        && let Some(fault) = found(validator, body)
    {
        faults.push(format!("body {fault}"));
    }
    match operation.answers.get(&status) {
        None => faults.push(format!("status {status}")),
        // A selection of fields may omit required ones, and an empty answer has no body to check.
        Some(Some(validator)) if !query.contains("fields") && !answer.is_empty() => {
            let fault = match serde_json::from_slice(answer) {
                Ok(value) => found(validator, value),
                Err(error) => Some(error.to_string()),
            };
            faults.extend(fault.map(|it| format!("answer {it}")));
        }
        Some(_) => {}
    }
    faults
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exchanges_are_as_documented() -> Result<(), Failure> {
    let mut all = BTreeSet::new();
    let mut n_compared = 0;
    let mut operations = None;
    for case in cases() {
        let server = Server::start(Engine::Sqlite, site()).await?;
        if operations.is_none() {
            operations = Some(described(&server.mount.openapi)?);
        }
        let Some(operations) = &operations else { continue };
        // Bodies that clients of version 4.27 sent may contain more than the document, which describes version 5,
        // allows.
        let is_old = case.file_stem().is_some_and(|it| it == "of_4_27");
        let mut answers: Vec<Value> = Vec::new();
        for request in exchange::requests(&fs::read_to_string(&case)?) {
            let request = server.filled(&request, &answers)?;
            server.clock.advance_ms(1_000);
            let mut out = String::new();
            let body = server.ask(&request, &mut out).await?;
            let status: u16 = out.split(' ').next().unwrap_or_default().parse()?;
            if (200..300).contains(&status) {
                n_compared += 1;
                let head = request.lines().next().unwrap_or_default().chars().take(120).collect::<String>();
                let mut faults = faults(operations, &request, status, &body);
                faults.retain(|it| !(is_old && it.starts_with("body ")));
                all.extend(faults.iter().map(|it| format!("{head}: {it}")));
            }
            answers.push(serde_json::from_slice(&body).unwrap_or_default());
        }
    }
    assert!(all.is_empty(), "{} faults:\n{}", all.len(), all.into_iter().collect::<Vec<_>>().join("\n"));
    assert!(250 < n_compared, "{n_compared} answers");
    Ok(())
}
