//! Calls to other servers: actions of jobs and registrations of DOIs, against fake servers of the test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use pinakes_scicat::jobs::actions;
use pinakes_scicat::{KINDS, Settings};
use pinakes_store::Expr;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::server::{Failure, Server, site};

/// Maximum wait for a request to arrive.
const PATIENCE: Duration = Duration::from_secs(20);

const DATASET: &str = r#"{"type":"raw","ownerGroup":"group1","owner":"o","contactEmail":"a@b.ch","sourceFolder":"/data/1","creationTime":"2020-01-15T08:00:00Z","principalInvestigator":"P I","creationLocation":"/ESS","pid":"PID.pfx/1"}"#;

/// A server that answers each connection with the next of these answers and reports what it received.
pub(crate) struct Fake {
    pub(crate) port: u16,
    seen: Receiver<String>,
}

impl Fake {
    fn start(
        answers: Vec<&'static str>,
        talk: fn(TcpStream, &str) -> std::io::Result<String>,
    ) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let (tell, seen) = channel();
        std::thread::spawn(move || {
            for (answer, stream) in answers.into_iter().zip(listener.incoming()) {
                let told =
                    stream.and_then(|it| talk(it, answer)).unwrap_or_else(|error| format!("failed: {error}"));
                if tell.send(told).is_err() {
                    return;
                }
            }
        });
        Ok(Self { port, seen })
    }

    pub(crate) fn http(answers: Vec<&'static str>) -> Result<Self, Failure> {
        Self::start(answers, http_exchange)
    }

    pub(crate) fn next(&self) -> Result<String, Failure> {
        Ok(self.seen.recv_timeout(PATIENCE)?)
    }
}

/// Reads a request with its body and sends an answer with this status and text.
fn http_exchange(stream: TcpStream, answer: &str) -> std::io::Result<String> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (status, text) = answer.split_once(' ').unwrap_or((answer, ""));
    // After the status of a redirect comes its target.
    let (location, text) =
        if status.starts_with('3') { (format!("Location: {text}\r\n"), "") } else { (String::new(), text) };
    let length = text.len();
    write!(
        &stream,
        "HTTP/1.1 {status} Said\r\n{location}Content-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )?;
    Ok(format!("{head}\n{}", String::from_utf8_lossy(&body)))
}

/// Receives one mail and returns the dialogue.
fn smtp_exchange(mut stream: TcpStream, greeting: &str) -> std::io::Result<String> {
    let reader = BufReader::new(stream.try_clone()?);
    let (mut said, mut in_data) = (String::new(), false);
    write!(stream, "{greeting}\r\n")?;
    for line in reader.lines() {
        let line = line?;
        said.push_str(&line);
        said.push('\n');
        let answer = match line.as_str() {
            "." if in_data => {
                in_data = false;
                "250 taken"
            }
            _ if in_data => continue,
            "DATA" => {
                in_data = true;
                "354 go on"
            }
            "QUIT" => {
                write!(stream, "221 bye\r\n")?;
                break;
            }
            _ => "250 ok",
        };
        write!(stream, "{answer}\r\n")?;
    }
    Ok(said)
}

/// Returns the settings of a site with one job type, `do`, whose actions are given in YAML.
fn with_actions(create: &str, update: &str) -> Result<Settings, Failure> {
    let file = format!(
        "configVersion: v9\njobs: [{{jobType: do, create: {{auth: '#authenticated', actions: {create}}}, \
         update: {{auth: '#jobOwnerUser', actions: {update}}}}}]"
    );
    let (version, job_types) = actions::read_file(&file)?;
    let settings = Settings { job_types, job_config_version: version.unwrap_or_default(), ..site() };
    Ok(settings.checked()?)
}

const JOB: &str = r#"user1 POST /api/v4/jobs
{"type":"do","ownerUser":"user1","ownerGroup":"group1","jobParams":{"copies":"two","datasetList":[{"pid":"PID.pfx/1","files":[]}]}}"#;

async fn server(settings: Settings) -> Result<Server, Failure> {
    let server = Server::start(Engine::Sqlite, settings).await?;
    assert_eq!(server.json(&format!("ingestor POST /api/v3/datasets\n{DATASET}")).await?.0, 201);
    Ok(server)
}

#[tokio::test]
async fn jobs_are_judged_before_they_are_stored() -> Result<(), Failure> {
    let refusal = |message: &str| json!({"status": 400, "message": message});
    for (actions, status, answer) in [
        (r#"[{actionType: validate, request: {"jobParams.copies": {enum: [one, two]}}}]"#, 201, Value::Null),
        (
            r#"[{actionType: validate, request: {"jobParams.copies": {const: one}}}]"#,
            400,
            refusal("Invalid request. Invalid value for 'jobParams.copies'"),
        ),
        (
            r#"[{actionType: validate, request: {"jobParams.colour": {}}}]"#,
            400,
            refusal("Invalid request. Requires 'jobParams.colour'"),
        ),
        (
            r#"[{actionType: validate, datasets: {"datasetlifecycle.archivable": {const: true}}}]"#,
            201,
            Value::Null,
        ),
        (
            r#"[{actionType: validate, datasets: {isPublished: {const: true}}}]"#,
            400,
            refusal("Invalid request. Invalid value for 'isPublished'"),
        ),
        (
            r#"[{actionType: switch, phase: validate, property: "request.jobParams.copies", cases: [
                {match: one, actions: []},
                {regex: "/^TW/i", actions: [{actionType: error, status: 418, message: "not {{request.jobParams.copies}}"}]},
                {actions: []}]}]"#,
            418,
            json!({"status": 418, "message": "not two"}),
        ),
        (
            r#"[{actionType: switch, phase: all, property: "datasets[0].ownerGroup", cases: [
                {schema: {const: group1}, actions: [{actionType: error, message: "of {{datasets.[0].pid}}"}]}]}]"#,
            400,
            refusal("of PID.pfx/1"),
        ),
        (
            r#"[{actionType: log, init: ready, validate: "{{request.type}}", performJob: "{{job.id}}"}]"#,
            201,
            Value::Null,
        ),
    ] {
        let server = server(with_actions(actions, "[]")?).await?;
        let (found, body) = server.json(JOB).await?;
        assert_eq!(found, status, "{actions}: {body}");
        if answer != Value::Null {
            assert_eq!(body, answer, "{actions}");
        }
        let n_stored = u64::from(status == 201);
        assert_eq!(server.json("admin GET /api/v4/jobs/count").await?.1["count"], n_stored, "{actions}");
    }
    Ok(())
}

#[tokio::test]
async fn urls_are_called_when_a_job_is_stored() -> Result<(), Failure> {
    let fake = Fake::http(vec!["200 fine", "204 "])?;
    let port = fake.port;
    let create = format!(
        r#"[{{actionType: url, url: "http://127.0.0.1:{port}/jobs/{{{{urlencode job.id}}}}", method: POST,
            headers: {{x-owner: "{{{{job.ownerUser}}}}"}}, body: {{about: "{{{{job.type}}}}", n: 1}}}}]"#
    );
    let update = format!(
        r#"[{{actionType: url, url: "http://127.0.0.1:{port}/{{{{request.statusCode}}}}?now={{{{job.statusCode}}}}"}}]"#
    );
    let server = server(with_actions(&create, &update)?).await?;
    let (status, job) = server.json(JOB).await?;
    assert_eq!((status, &job["configVersion"]), (201, &json!("v9")));
    let id = job["id"].as_str().ok_or("no id")?;
    let seen = fake.next()?;
    assert!(seen.starts_with(&format!("POST /jobs/{id} HTTP/1.1\r\n")), "{seen}");
    assert!(
        seen.contains("x-owner: user1\r\n") && seen.contains("content-type: application/json\r\n"),
        "{seen}"
    );
    assert!(seen.ends_with("\n{\"about\":\"do\",\"n\":1}"), "{seen}");
    let patch = format!("user1 PATCH /api/v4/jobs/{id}\n{{\"statusCode\":\"done\",\"statusMessage\":\"m\"}}");
    assert_eq!(server.json(&patch).await?.0, 200);
    let seen = fake.next()?;
    assert!(seen.starts_with("GET /done?now=done HTTP/1.1\r\n"), "{seen}");
    Ok(())
}

#[tokio::test]
async fn an_action_that_fails_is_told_unless_ignored() -> Result<(), Failure> {
    let fake = Fake::http(vec!["500 out of order", "500 out of order"])?;
    let port = fake.port;
    let action =
        |more: &str| format!(r#"[{{actionType: url, url: "http://127.0.0.1:{port}/?token=hush"{more}}}]"#);
    let once = Settings { job_action_attempts: 1, ..with_actions(&action(""), "[]")? };
    let failing = server(once).await?;
    let (status, body) = failing.json(JOB).await?;
    let message = format!(
        "The job was stored, but an action failed: url: 127.0.0.1:{port} answered 500 Internal Server Error: out of order"
    );
    assert_eq!((status, body), (500, json!({"status": 500, "message": message})));
    assert_eq!(failing.json("admin GET /api/v4/jobs/count").await?.1["count"], 1);
    assert_eq!(n_waiting(&failing).await?, 0, "given up");
    let ignoring = server(with_actions(&action(", ignoreErrors: true"), "[]")?).await?;
    assert_eq!(ignoring.json(JOB).await?.0, 201);
    assert_eq!(n_waiting(&ignoring).await?, 0, "ignored");
    Ok(())
}

/// Returns the number of entries with actions that are still to be done.
async fn n_waiting(server: &Server) -> Result<u64, Failure> {
    let kind = KINDS.iter().find(|it| it.name == "scicat_job_action").copied().ok_or("no such kind")?;
    let counted = server.tenant.read(pinakes_store::Weight::Point, move |view| view.count(kind, &Expr::All));
    counted.await.map_err(|error: pinakes_store::StoreError| error.into())
}

/// Waits until no entry is left.
async fn all_done(server: &Server) -> Result<(), Failure> {
    let end = Instant::now() + PATIENCE;
    while n_waiting(server).await? != 0 {
        if end < Instant::now() {
            return Err("entries are left".into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// An action that fails temporarily is retried, starting with the one that failed; the job is accepted anyway.
#[tokio::test]
async fn an_action_that_fails_for_now_is_tried_again() -> Result<(), Failure> {
    let fake = Fake::http(vec!["200 ", "503 not now", "429 slowly", "200 ", "200 "])?;
    let call = |name: &str| {
        format!(
            r#"{{actionType: url, url: "http://127.0.0.1:{}/{name}?for={{{{job.id}}}}&by={{{{request.ownerUser}}}}&of={{{{datasets.[0].ownerGroup}}}}"}}"#,
            fake.port
        )
    };
    let create = format!("[{}, {}, {}]", call("first"), call("second"), call("third"));
    let settings = Settings { job_action_wait_ms: 10, ..with_actions(&create, "[]")? };
    let server = server(settings).await?;
    let (status, job) = server.json(JOB).await?;
    assert_eq!(status, 201, "{job}");
    assert_eq!(n_waiting(&server).await?, 1);
    let id = job["id"].as_str().ok_or("no id")?;
    for name in ["first", "second", "second", "second", "third"] {
        let seen = fake.next()?;
        assert!(
            seen.starts_with(&format!("GET /{name}?for={id}&by=user1&of=group1 HTTP/1.1\r\n")),
            "{name}: {seen}"
        );
    }
    all_done(&server).await
}

/// Actions that would fail again, or have been attempted often enough, are not retried.
#[tokio::test]
async fn an_action_is_given_up() -> Result<(), Failure> {
    let fake = Fake::http(vec!["404 no such queue", "500 a", "500 b", "500 c", "200 "])?;
    let create = format!(r#"[{{actionType: url, url: "http://127.0.0.1:{}/{{{{job.id}}}}"}}]"#, fake.port);
    let settings =
        Settings { job_action_wait_ms: 10, job_action_attempts: 3, ..with_actions(&create, &create)? };
    let server = server(settings).await?;
    let (status, refused) = server.json(JOB).await?;
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(status == 500 && message.ends_with("answered 404 Not Found: no such queue"), "{refused}");
    fake.next()?;
    assert_eq!(n_waiting(&server).await?, 0);

    let id = server.json("user1 GET /api/v4/jobs").await?.1[0]["id"].as_str().ok_or("no job")?.to_owned();
    let patch = format!("user1 PATCH /api/v4/jobs/{id}\n{{\"statusCode\":\"s\",\"statusMessage\":\"m\"}}");
    assert_eq!(server.json(&patch).await?.0, 200);
    for _ in 0..3 {
        assert!(fake.next()?.starts_with(&format!("GET /{id} HTTP/1.1\r\n")));
    }
    all_done(&server).await?;
    // The next request belongs to another job.
    let (status, job) = server.json(JOB).await?;
    assert_eq!(status, 201, "{job}");
    assert!(
        fake.next()?.starts_with(&format!("GET /{} HTTP/1.1\r\n", job["id"].as_str().unwrap_or_default()))
    );
    Ok(())
}

#[tokio::test]
async fn mails_are_sent() -> Result<(), Failure> {
    let fake = Fake::start(vec!["220 here"], smtp_exchange)?;
    let folder = tempfile::tempdir()?;
    let template = folder.path().join("mail.html");
    std::fs::write(&template, "<p>{{job.type}} of {{request.jobParams.copies}} &amp; {{job.ownerUser}}</p>")?;
    let create = format!(
        r#"[{{actionType: email, to: "{{{{job.contactEmail}}}}, b@site.ch", subject: "Job {{{{job.type}}}}",
            bodyTemplateFile: "{}"}}]"#,
        template.display()
    );
    let settings = Settings {
        smtp_host: "127.0.0.1".to_owned(),
        smtp_port: fake.port,
        email_from: "SciCat <scicat@site.ch>".to_owned(),
        ..with_actions(&create, "[]")?
    };
    let server = server(settings).await?;
    assert_eq!(server.json(JOB).await?.0, 201);
    let said = fake.next()?;
    for part in [
        "MAIL FROM:<scicat@site.ch>",
        "RCPT TO:<user1@your.site>",
        "RCPT TO:<b@site.ch>",
        "Subject: Job do",
        "<p>do of two &amp; user1</p>",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    Ok(())
}

const PUBLICATION: &str = r#"{"title":"T","abstract":"A","datasetPids":["PID.pfx/1"],"metadata":{"publisher":{"name":"P"},"publicationYear":2026,"creators":[{"name":"N"}]}}"#;

#[tokio::test]
async fn dois_are_registered() -> Result<(), Failure> {
    let fake = Fake::http(vec!["422 no such prefix", "201 ", "200 ", "200 "])?;
    let settings = Settings {
        register_doi_uri: format!("http://127.0.0.1:{}/dois", fake.port),
        doi_username: "SITE".to_owned(),
        doi_password: "hush".into(),
        public_url_prefix: "https://doi.site/".to_owned(),
        ..site()
    };
    let server = server(settings).await?;
    let (status, made) = server.json(&format!("admin POST /api/v4/publisheddata\n{PUBLICATION}")).await?;
    assert_eq!(status, 201, "{made}");
    let doi = made["doi"].as_str().ok_or("no doi")?;
    let path = doi.replace('/', "%2F");
    let register = format!("admin POST /api/v4/publisheddata/{path}/register");
    assert_eq!(server.json(&register).await?.0, 400, "still private");
    assert_eq!(server.json(&format!("admin POST /api/v4/publisheddata/{path}/publish")).await?.0, 201);

    let (status, refused) = server.json(&register).await?;
    let server_name = format!("127.0.0.1:{}", fake.port);
    let message = format!(
        "The DOI could not be registered: {server_name} answered 422 Unprocessable Entity: no such prefix"
    );
    assert_eq!((status, &refused["message"]), (502, &json!(message)));
    fake.next()?;
    assert_eq!(server.json(&format!("admin GET /api/v4/publisheddata/{path}")).await?.1["status"], "public");

    let (status, registered) = server.json(&register).await?;
    assert_eq!((status, &registered["status"]), (201, &json!("registered")));
    let seen = fake.next()?;
    assert!(seen.starts_with(&format!("PUT /dois/{doi} HTTP/1.1\r\n")), "{seen}");
    // The Base64 of SITE:hush
    assert!(seen.contains("authorization: Basic U0lURTpodXNo\r\n"), "{seen}");
    let sent: Value = serde_json::from_str(seen.split_once("\n\n").ok_or("no body")?.1.trim())?;
    assert_eq!(sent["data"]["attributes"]["event"], "publish");
    assert_eq!(sent["data"]["attributes"]["titles"], json!([{"title": "T"}]));

    let resync = format!("admin POST /api/v4/publisheddata/{path}/resync\n{{\"title\":\"U\"}}");
    assert_eq!(server.json(&resync).await?.0, 201);
    assert!(fake.next()?.contains("\"titles\":[{\"title\":\"U\"}]"));
    let (status, _) = server.json(&format!("user2 POST /api/v3/publisheddata/{path}/register")).await?;
    assert_eq!(status, 403, "nobody else registers it");
    Ok(())
}

/// Redirects are not followed: neither for a registration with the site's credentials nor for a job's URL.
#[tokio::test]
async fn redirects_are_not_followed() -> Result<(), Failure> {
    let elsewhere = Fake::http(vec!["200 "])?;
    let answer: &'static str = format!("307 http://127.0.0.1:{}/landed", elsewhere.port).leak();
    let fake = Fake::http(vec![answer, answer])?;
    let create = format!(r#"[{{actionType: url, url: "http://127.0.0.1:{}/called"}}]"#, fake.port);
    let settings = Settings {
        register_doi_uri: format!("http://127.0.0.1:{}/dois", fake.port),
        doi_username: "SITE".to_owned(),
        doi_password: "hush".into(),
        job_action_attempts: 1,
        ..with_actions(&create, "[]")?
    };
    let server = server(settings).await?;
    let (_, made) = server.json(&format!("admin POST /api/v4/publisheddata\n{PUBLICATION}")).await?;
    let path = made["doi"].as_str().ok_or("no doi")?.replace('/', "%2F");
    assert_eq!(server.json(&format!("admin POST /api/v4/publisheddata/{path}/publish")).await?.0, 201);
    let (status, refused) = server.json(&format!("admin POST /api/v4/publisheddata/{path}/register")).await?;
    assert_eq!(status, 502, "{refused}");
    assert!(fake.next()?.starts_with("PUT /dois/"));
    let (status, refused) = server.json(JOB).await?;
    assert_eq!(status, 500, "{refused}");
    assert!(fake.next()?.starts_with("GET /called "));
    assert!(elsewhere.seen.try_recv().is_err(), "a redirect was followed");
    Ok(())
}

/// A schema is fetched only from hosts that the site allows, and once for many datasets; no request is sent to other
/// hosts.
#[tokio::test]
async fn metadata_are_held_against_schemas_of_allowed_hosts() -> Result<(), Failure> {
    // Trailing blanks do not invalidate the schema, but these exceed the size limit of an answer.
    let large: &'static str = format!("200 {{}}{}", " ".repeat(2 << 20)).leak();
    let fake = Fake::http(vec![
        r#"200 {"type":"object","properties":{"title":{"type":"string"}}}"#,
        "404 none",
        large,
    ])?;
    let host = format!("127.0.0.1:{}", fake.port);
    let settings = Settings { scientific_metadata_schema_hosts: vec![host.clone()], ..site() };
    let server = Server::start(Engine::Sqlite, settings).await?;
    let url = format!("http://{host}/schema.json");
    let dataset = |schema: &str, metadata: Value| {
        let mut body: Value = serde_json::from_str(DATASET).unwrap_or_default();
        body["scientificMetadataSchema"] = schema.into();
        body["scientificMetadata"] = metadata;
        body["pid"] = Value::Null;
        format!("ingestor POST /api/v3/datasets\n{body}")
    };
    for (schema, metadata, expected) in [
        (url.as_str(), json!({"title": "T"}), true),
        (url.as_str(), json!({"title": false}), false),
        ("http://127.0.0.1:1/schema.json", json!({"title": "T"}), false),
        ("https://elsewhere.example.org/schema.json", json!({"title": "T"}), false),
    ] {
        let (status, made) = server.json(&dataset(schema, metadata.clone())).await?;
        assert_eq!(
            (status, &made["scientificMetadataValid"]),
            (201, &json!(expected)),
            "{schema} {metadata}"
        );
    }
    assert!(fake.next()?.starts_with("GET /schema.json HTTP/1.1\r\n"));
    let (_, made) = server.json(&dataset(&url, json!({"title": "T"}))).await?;
    let pid = made["pid"].as_str().ok_or("no pid")?.replace('/', "%2F");
    for (changes, expected) in [
        (r#"{"description":"d"}"#, true),
        (r#"{"scientificMetadata":{"title":1}}"#, false),
        (r#"{"scientificMetadata":{"title":"U"}}"#, true),
        (r#"{"scientificMetadataSchema":"http://127.0.0.1:1/x.json"}"#, false),
    ] {
        let (status, changed) =
            server.json(&format!("admin PATCH /api/v3/datasets/{pid}\n{changes}")).await?;
        assert_eq!((status, &changed["scientificMetadataValid"]), (200, &json!(expected)), "{changes}");
    }
    for path in ["none.json", "large.json", "a/../schema.json"] {
        let (_, made) = server.json(&dataset(&format!("http://{host}/{path}"), json!({}))).await?;
        assert_eq!(made["scientificMetadataValid"], false, "{path}");
    }
    Ok(())
}
