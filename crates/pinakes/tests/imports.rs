//! Imports MARC records into a server that is killed (SIGKILL) in the middle, several times: every import ends after a
//! restart, nothing is duplicated, nothing is missing.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const TENANT: &str = "library";
const PASSWORD: &str = "admin-of-tests";
/// "Default - Create SRS MARC Authority".
const AUTHORITIES: &str = "6eefa4c6-bbf7-4845-ad82-de7fc5abd0e3";
/// Longest wait for an answer, and for an import; a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(120);
/// Records of the uploaded file: enough that a debug build is still importing them when it is killed.
const N_IN_FILE: usize = 3_000;
/// Records that are sent by chunks, and records of a chunk.
const N_SENT: usize = 600;
const N_IN_CHUNK: usize = 100;

/// Returns an authority record in ISO 2709.
fn authority(n: usize) -> String {
    let fields = [
        ("001", format!("n{n:08}")),
        ("010", format!("  \u{1f}an  {n:08} ")),
        ("100", format!("1 \u{1f}aExample {n},\u{1f}d1835-")),
    ];
    let (mut directory, mut data) = (String::new(), String::new());
    for (tag, text) in fields {
        directory.push_str(&format!("{tag}{:04}{:05}", text.len() + 1, data.len()));
        data.push_str(&format!("{text}\u{1e}"));
    }
    let base = 24 + directory.len() + 1;
    let length = base + data.len() + 1;
    format!("{length:05}nz  a22{base:05}n  4500{directory}\u{1e}{data}\u{1d}")
}

fn run(arguments: &[&str], input: &str) -> Outcome {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pinakes"))
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().ok_or("no input")?.write_all(input.as_bytes())?;
    let done = child.wait_with_output()?;
    done.status.success().then_some(()).ok_or_else(|| format!("{arguments:?}: {done:?}").into())
}

struct Server {
    child: Child,
    address: String,
    token: String,
}

impl Server {
    /// Starts the server and logs in.
    fn start(data: &str) -> Outcome<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pinakes"))
            .args(["serve", "--data", data, "--listen", "127.0.0.1:0"])
            .env_clear()
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut lines = output.lines();
        let address = loop {
            let line = lines.next().ok_or("the server ended before it listened")??;
            if let Some((_, address)) = line.split_once("listens on http://") {
                break address.trim().to_owned();
            }
        };
        // Its later output must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        let mut server = Self { child, address, token: String::new() };
        let login = json!({"username": "admin", "password": PASSWORD}).to_string();
        let (status, body) = server.ask("POST", "/authn/login", login.as_bytes())?;
        assert_eq!(status, 201, "{body}");
        server.token = body["okapiToken"].as_str().ok_or("no token")?.to_owned();
        Ok(server)
    }

    fn ask(&self, method: &str, path: &str, body: &[u8]) -> Outcome<(u16, Value)> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // HTTP/1.0: the answer ends with the connection.
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nX-Okapi-Tenant: {TENANT}\r\nX-Okapi-Token: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            self.token,
            body.len()
        )?;
        stream.write_all(body)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| format!("cut off: {answer:?}"))?;
        let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
        Ok((status, serde_json::from_str(body).unwrap_or_else(|_| body.into())))
    }

    fn get(&self, path: &str) -> Outcome<Value> {
        let (status, body) = self.ask("GET", path, b"")?;
        assert_eq!(status, 200, "{path}: {body}");
        Ok(body)
    }

    fn post(&self, path: &str, body: &Value, wanted: u16) -> Outcome<Value> {
        let (status, answer) = self.ask("POST", path, body.to_string().as_bytes())?;
        assert_eq!(status, wanted, "{path}: {answer}");
        Ok(answer)
    }

    /// Waits until a job has done so many records, and returns how many it has done then.
    fn reached(&self, job: &str, n_records: u64) -> Outcome<u64> {
        let begun = Instant::now();
        loop {
            let body = self.get(&format!("/change-manager/jobExecutions/{job}"))?;
            let current = body["progress"]["current"].as_u64().unwrap_or(0);
            if n_records <= current || is_over(&body) {
                return Ok(current);
            }
            assert!(begun.elapsed() < PATIENCE, "the job stands still: {body}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn ended(&self, job: &str) -> Outcome<Value> {
        let begun = Instant::now();
        loop {
            let body = self.get(&format!("/change-manager/jobExecutions/{job}"))?;
            if is_over(&body) {
                return Ok(body);
            }
            assert!(begun.elapsed() < PATIENCE, "the job does not end: {body}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends SIGKILL: nothing is finished, nothing is flushed.
    fn kill(mut self) -> Outcome {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Checks that each record of a job is there once, as source record, as authority and in the log.
    fn check(&self, job: &str, numbers: std::ops::Range<usize>) -> Outcome {
        let n_records = numbers.len();
        let sources = self.get(&format!(
            "/source-storage/records?recordType=MARC_AUTHORITY&snapshotId={job}&limit=10000"
        ))?;
        let sources = sources["records"].as_array().ok_or("no records")?;
        let orders: BTreeSet<u64> = sources.iter().filter_map(|it| it["order"].as_u64()).collect();
        assert_eq!((sources.len(), orders.len()), (n_records, n_records));
        let wanted: BTreeSet<String> = numbers.map(|n| format!("n{n:08}")).collect();
        let list = self.get("/authority-storage/authorities?limit=10000")?;
        let list = list["authorities"].as_array().ok_or("no authorities")?;
        let names = list.iter().filter_map(|it| it["naturalId"].as_str());
        let mut found: Vec<&str> = names.filter(|it| wanted.contains(*it)).collect();
        found.sort_unstable();
        assert!(
            found.iter().copied().eq(wanted.iter().map(String::as_str)),
            "authorities are missing or twice"
        );
        let log = self.get(&format!("/metadata-provider/jobLogEntries/{job}?limit=1"))?;
        assert_eq!(log["totalRecords"], n_records);
        let summary = self.get(&format!("/metadata-provider/jobSummary/{job}"))?;
        assert_eq!(summary["authoritySummary"]["totalCreatedEntities"], n_records);
        assert_eq!(summary["totalErrors"], 0);
        Ok(())
    }
}

fn is_over(job: &Value) -> bool {
    matches!(job["status"].as_str(), Some("COMMITTED" | "ERROR" | "CANCELLED"))
}

fn chunk(n: usize, is_last: bool) -> Value {
    let first = N_IN_FILE + n * N_IN_CHUNK;
    let records: Vec<Value> = (0..N_IN_CHUNK)
        .map(|at| json!({"record": authority(first + at), "order": n * N_IN_CHUNK + at}))
        .collect();
    json!({"id": format!("00000000-0000-4000-8000-{n:012}"), "initialRecords": records, "recordsMetadata": {
        "last": is_last, "counter": (n + 1) * N_IN_CHUNK, "total": N_SENT, "contentType": "MARC_RAW"}})
}

#[test]
fn imports_end_after_servers_were_killed() -> Outcome {
    let place = tempfile::tempdir()?;
    let data = place.path().join("data").display().to_string();
    run(&["tenant", "add", TENANT, "--data", &data], "")?;
    let admin = ["user", "add", "admin", "--group", "admin", "--tenant", TENANT, "--data", &data];
    run(&admin, &format!("{PASSWORD}\n"))?;

    // A file, killed at the beginning, in the middle and near the end.
    let mut server = Server::start(&data)?;
    let made = json!({"fileDefinitions": [{"name": "big.mrc", "size": 1, "uiKey": "k"}]});
    let made = server.post("/data-import/uploadDefinitions", &made, 201)?;
    let (definition, file) = (&made["id"], &made["fileDefinitions"][0]);
    let definition = definition.as_str().ok_or("no id")?;
    let job = file["jobExecutionId"].as_str().ok_or("no job")?;
    let path = format!("/data-import/uploadDefinitions/{definition}");
    let content: String = (0..N_IN_FILE).map(authority).collect();
    let file = format!("{path}/files/{}", file["id"].as_str().ok_or("no file")?);
    assert_eq!(server.ask("POST", &file, content.as_bytes())?.0, 200);
    let process = json!({"uploadDefinition": {"id": definition},
        "jobProfileInfo": {"id": AUTHORITIES, "name": "x", "dataType": "MARC"}});
    server.post(&format!("{path}/processFiles?defaultMapping=false"), &process, 204)?;
    let mut n_kills_at_work = 0;
    for part in [0, 1, 2] {
        let current = server.reached(job, part * N_IN_FILE as u64 / 3 + 1)?;
        n_kills_at_work += u32::from(current < N_IN_FILE as u64);
        server.kill()?;
        server = Server::start(&data)?;
    }
    assert!(0 < n_kills_at_work, "the import was over before anything was killed");
    let ended = server.ended(job)?;
    assert_eq!(ended["status"], "COMMITTED", "{ended}");
    assert_eq!(ended["progress"]["current"], N_IN_FILE);
    server.check(job, 0..N_IN_FILE)?;

    // Chunks: acknowledged ones are there, repeated ones are recognised.
    let new =
        server.post("/change-manager/jobExecutions", &json!({"sourceType": "ONLINE", "files": []}), 201)?;
    let job = new["parentJobExecutionId"].as_str().ok_or("no job")?;
    let path = format!("/change-manager/jobExecutions/{job}");
    let (status, answer) = server.ask(
        "PUT",
        &format!("{path}/jobProfile"),
        json!({"id": AUTHORITIES, "name": "x", "dataType": "MARC"}).to_string().as_bytes(),
    )?;
    assert_eq!(status, 200, "{answer}");
    let n_chunks = N_SENT / N_IN_CHUNK;
    for n in 0..n_chunks {
        server.post(&format!("{path}/records"), &chunk(n, n + 1 == n_chunks), 204)?;
        if n == n_chunks / 2 {
            server.kill()?;
            server = Server::start(&data)?;
            server.post(&format!("{path}/records"), &chunk(n, false), 400)?;
        }
    }
    let ended = server.ended(job)?;
    assert_eq!(ended["status"], "COMMITTED", "{ended}");
    server.check(job, N_IN_FILE..N_IN_FILE + N_SENT)?;
    server.kill()?;
    run(&["check", "--data", &data], "")?;
    Ok(())
}
