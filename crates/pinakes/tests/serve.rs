//! `pinakes serve` and `pinakes demo` as processes: what they print, how they answer, how they stop.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    address: String,
    /// What was printed up to the address.
    printed: String,
}

impl Server {
    fn start(arguments: &[&str]) -> Outcome<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pinakes"))
            .args(arguments)
            .env_clear()
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut printed = String::new();
        loop {
            let mut line = String::new();
            if output.read_line(&mut line)? == 0 {
                return Err(format!("no address in: {printed}").into());
            }
            printed.push_str(&line);
            if let Some((_, address)) = line.split_once("listens on http://") {
                return Ok(Self { child, output, address: address.trim().to_owned(), printed });
            }
        }
    }

    /// Status line and body of a GET.
    fn get(&self, path: &str) -> Outcome<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no head")?;
        Ok(format!("{} {body}", head.lines().next().unwrap_or_default()))
    }

    fn signal(&self, signal: &str) -> Outcome {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status()?;
        assert!(sent.success());
        Ok(())
    }

    /// Sends a signal, and returns everything printed until the end and the exit code.
    fn stop(mut self, signal: &str) -> Outcome<(String, Option<i32>)> {
        self.signal(signal)?;
        let mut rest = String::new();
        self.output.read_to_string(&mut rest)?;
        Ok((format!("{}{rest}", self.printed), self.child.wait()?.code()))
    }
}

#[test]
fn it_serves_and_stops_at_sigterm_and_sigint() -> Outcome {
    let place = tempfile::tempdir()?;
    let data = place.path().join("data").display().to_string();
    for signal in ["-TERM", "-INT"] {
        let server = Server::start(&["serve", "--data", &data, "--listen", "127.0.0.1:0"])?;
        assert_eq!(server.get("/api/v3/datasets/count")?, "HTTP/1.1 200 OK {\"count\":0}");
        assert!(server.get("/health/ready")?.starts_with("HTTP/1.1 200"));
        assert!(server.get("/api/v3/testing/Dataset")?.starts_with("HTTP/1.1 404"));
        let (printed, code) = server.stop(signal)?;
        assert_eq!(code, Some(0), "{printed}");
        for part in [
            "scicat   /api/v3 /api/v4 /explorer /explorer-json",
            "/metrics",
            "stopped; all answers under way were finished",
        ] {
            assert!(printed.contains(part), "{part:?} in {printed}");
        }
    }
    Ok(())
}

#[test]
fn a_busy_address_is_told() -> Outcome {
    let place = tempfile::tempdir()?;
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let refused = Command::new(env!("CARGO_BIN_EXE_pinakes"))
        .args(["serve", "--data", &place.path().join("data").display().to_string(), "--listen", &address])
        .output()?;
    assert_eq!(refused.status.code(), Some(1));
    let error = String::from_utf8(refused.stderr)?;
    assert!(
        error.contains(&format!("{address} cannot be listened on; choose another with --listen")),
        "{error}"
    );
    Ok(())
}

#[test]
fn a_demo_is_full_of_records() -> Outcome {
    let server = Server::start(&["demo", "--listen", "127.0.0.1:0"])?;
    assert_eq!(server.get("/api/v3/datasets/count")?, "HTTP/1.1 200 OK {\"count\":46}");
    let work = server.get("/site/work/10.5555/demo.1")?;
    assert!(work.starts_with("HTTP/1.1 200") && work.contains("10.5555/demo.0"), "{work}");
    for (scope, found) in
        [("deposits", "Tide gauge readings"), ("datasets", "mantid-files"), ("titles", "Sign in")]
    {
        let page = server.get(&format!("/site/search?in={scope}"))?;
        assert!(page.starts_with("HTTP/1.1 200") && page.contains(found), "{scope}: {page}");
    }
    let folder = server.printed.clone();
    assert!(folder.starts_with("sample records loaded: dataset: 50 new; origdatablock: 9 new"), "{folder}");
    let (printed, code) = server.stop("-TERM")?;
    assert_eq!(code, Some(0));
    for part in [
        "and 1000 library titles",
        "/ in a browser",
        "ada-demo",
        "curl 'http://127.0.0.1:",
        "/api/v3/datasets/fullquery",
    ] {
        assert!(printed.contains(part), "{part:?} in {printed}");
    }
    let data = printed.lines().find_map(|it| it.trim().strip_prefix("data")).ok_or("no folder")?;
    assert!(!std::path::Path::new(data.trim()).exists(), "the temporary folder is removed");
    Ok(())
}

#[test]
fn a_backup_is_taken_while_it_serves() -> Outcome {
    let place = tempfile::tempdir()?;
    let path = |name: &str| place.path().join(name).display().to_string();
    let server = Server::start(&["serve", "--data", &path("data"), "--listen", "127.0.0.1:0"])?;
    let run = |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_pinakes")).args(arguments).output();
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/demo/samples.ndjson");
    assert!(run(&["import", "scicat", demo, "--data", &path("data")])?.status.success());
    assert!(run(&["backup", &path("backup"), "--data", &path("data")])?.status.success());
    assert!(run(&["restore", &path("backup"), "--data", &path("restored")])?.status.success());
    let exported = run(&["export", "--kind", "sample", "--data", &path("restored")])?;
    assert_eq!(exported.stdout.iter().filter(|it| **it == b'\n').count(), 14);
    assert_eq!(server.stop("-TERM")?.1, Some(0));
    Ok(())
}

/// `citations update` and SIGHUP under load: every answer is that of one of the two releases, the new one is taken up,
/// and a truncated graph changes nothing.
#[test]
fn a_hangup_takes_up_a_new_graph() -> Outcome {
    const OLD: &str = "HTTP/1.1 200 OK [\n    {\n        \"count\": \"1\"\n    }\n]";
    const NEW: &str = "HTTP/1.1 200 OK [\n    {\n        \"count\": \"2\"\n    }\n]";
    const PATH: &str = "/index/v1/citation-count/10.1/a";
    let place = tempfile::tempdir()?;
    let path = |name: &str| place.path().join(name).display().to_string();
    let run = |arguments: &[&str]| -> Outcome {
        let done = Command::new(env!("CARGO_BIN_EXE_pinakes")).args(arguments).output()?;
        done.status.success().then_some(()).ok_or_else(|| format!("{arguments:?}: {done:?}").into())
    };
    std::fs::write(path("old.tsv"), "10.1/b\t10.1/a\n")?;
    std::fs::write(path("new.tsv"), "10.1/b\t10.1/a\n10.1/c\t10.1/a\n")?;
    run(&["citations", "build", "--edges", &path("old.tsv"), "--out", &path("graph")])?;
    // Only the signal makes it check.
    let settings = format!("[labe]\ngraph = {:?}\ngraph_check_ms = 86400000\n", path("graph"));
    std::fs::write(path("pinakes.toml"), settings)?;
    let (config, data) = (path("pinakes.toml"), path("data"));
    let server = Server::start(&["serve", "--config", &config, "--data", &data, "--listen", "127.0.0.1:0"])?;
    assert_eq!(server.get(PATH)?.trim_end(), OLD);
    run(&["citations", "update", "--edges", &path("new.tsv"), "--out", &path("graph")])?;
    let begun = std::time::Instant::now();
    assert_eq!(server.get(PATH)?.trim_end(), OLD);
    server.signal("-HUP")?;
    loop {
        let answer = server.get(PATH)?;
        match answer.trim_end() {
            NEW => break,
            OLD => assert!(begun.elapsed() < PATIENCE, "the new graph never came"),
            other => return Err(format!("neither of the two: {other}").into()),
        }
    }
    let whole = std::fs::read(path("graph"))?;
    std::fs::write(path("cut"), &whole[..whole.len() / 2])?;
    std::fs::rename(path("cut"), path("graph"))?;
    server.signal("-HUP")?;
    for _ in 0..20 {
        assert_eq!(server.get(PATH)?.trim_end(), NEW);
    }
    assert_eq!(server.stop("-TERM")?.1, Some(0));
    let refused = Command::new(env!("CARGO_BIN_EXE_pinakes"))
        .args(["serve", "--config", &config, "--data", &data, "--listen", "127.0.0.1:0"])
        .output()?;
    let told = String::from_utf8(refused.stderr)?;
    assert!(told.contains("labe.graph: ") && told.contains("copy it again"), "{told}");
    Ok(())
}
