//! Tests of the command as data: each `tests/data/commands/*.in` is a list of commands that are run one after
//! another in an empty folder; the `.out` beside it holds what they print and how they exit.
//!
//! `BLESS=1 cargo test -p pinakes --test commands` rewrites the answers: read the diff before the commit.
//!
//! A line of `.in` is `pinakes ARGUMENTS`, with `<<< TEXT` for its standard input; `write FILE <<< TEXT`, where
//! `\n` in the text ends a line; `same FILE FILE`; `show FILE`; `lines FILE`. In `.out`, lines of standard error
//! begin with `!`, and a line `= N` is an exit code that is not 0. Values that differ from run to run (times,
//! tokens, ids) are replaced.

use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

#[test]
fn transcripts() -> Outcome {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/commands");
    let mut n_cases = 0;
    for entry in fs::read_dir(folder)? {
        let case = entry?.path();
        if case.extension().is_some_and(|it| it == "in") {
            check(&case)?;
            n_cases += 1;
        }
    }
    assert!(0 < n_cases, "no cases found: a moved folder would pass silently");
    Ok(())
}

fn check(case: &Path) -> Outcome {
    let place = tempfile::tempdir()?;
    let mut transcript = String::new();
    for line in fs::read_to_string(case)?.lines() {
        transcript.push_str(&format!("$ {line}\n"));
        transcript.push_str(&run(line, place.path())?);
    }
    let answer = case.with_extension("out");
    if std::env::var_os("BLESS").is_some() {
        fs::write(answer, transcript)?;
        return Ok(());
    }
    let expected = fs::read_to_string(&answer).unwrap_or_default();
    assert_eq!(transcript, expected, "{}", case.display());
    Ok(())
}

/// Runs a line and returns its output.
fn run(line: &str, place: &Path) -> Outcome<String> {
    let (line, input) = line.split_once(" <<< ").unwrap_or((line, ""));
    let words = words(line);
    let (verb, arguments) = words.split_first().ok_or("an empty line")?;
    let file = |index: usize| arguments.get(index).map(|it| place.join(it)).ok_or("a file is missing");
    match verb.as_str() {
        "" | "#" => Ok(String::new()),
        "pinakes" => pinakes(arguments, input, place),
        "write" => Ok(fs::write(file(0)?, input.replace("\\n", "\n")).map(|()| String::new())?),
        "show" => Ok(plain(&fs::read_to_string(file(0)?)?)),
        "lines" => Ok(format!("{}\n", fs::read_to_string(file(0)?)?.lines().count())),
        "same" => same(&file(0)?, &file(1)?),
        other => Err(format!("{other:?} is no verb of these files").into()),
    }
}

fn same(a: &PathBuf, b: &PathBuf) -> Outcome<String> {
    Ok(if fs::read(a)? == fs::read(b)? { "the same\n".to_owned() } else { "they differ\n".to_owned() })
}

fn pinakes(arguments: &[String], input: &str, place: &Path) -> Outcome<String> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
    let arguments: Vec<String> =
        arguments.iter().map(|it| it.replace("DEMO/", &format!("{}/", demo.display()))).collect();
    let mut child = Command::new(env!("CARGO_BIN_EXE_pinakes"))
        .args(&arguments)
        .current_dir(place)
        .env_clear()
        .env("COLUMNS", "100")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // A command that does not read its input closes it.
    let _ = child.stdin.take().ok_or("no input")?.write_all(input.replace("\\n", "\n").as_bytes());
    let output = child.wait_with_output()?;
    let mut text = plain(&String::from_utf8(output.stdout)?);
    for line in plain(&String::from_utf8(output.stderr)?).lines() {
        text.push_str(format!("! {line}").trim_end());
        text.push('\n');
    }
    // Whatever a command does and however it ends, it writes its log of changes back into the file.
    let logs = logs_in(place)?;
    if !logs.is_empty() {
        return Err(format!("{arguments:?} ended with {} and left {logs:?}", output.status).into());
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => text.push_str(&format!("= {code}\n")),
        None => text.push_str("= killed\n"),
    }
    Ok(text)
}

/// Returns the logs of changes in a folder and those below it.
fn logs_in(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            logs.extend(logs_in(&path)?);
        } else if path.to_string_lossy().ends_with("-wal") {
            logs.push(path);
        }
    }
    Ok(logs)
}

/// Says that the check above sees a log where there is one: a killed command leaves it.
#[test]
fn a_log_that_is_left_is_seen() -> Outcome {
    let place = tempfile::tempdir()?;
    let mut child = Command::new(env!("CARGO_BIN_EXE_pinakes"))
        .args(["serve", "--data", "d", "--listen", "127.0.0.1:0"])
        .current_dir(place.path())
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    // Open until the end: the server would end by itself if nobody read its output.
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let listens = lines.by_ref().map_while(Result::ok).any(|line| line.contains("listens on"));
    child.kill()?;
    child.wait()?;
    assert!(listens);
    let logs = logs_in(place.path())?;
    assert_eq!(logs, [place.path().join("d/tenants/default.sqlite-wal")]);
    // The next command goes on with it, and ends without one.
    assert_eq!(run("pinakes check --data d", place.path())?, "default: sound\n");
    Ok(())
}

/// Splits a line into words; double quotes hold one together.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { vec![String::new()] } else { words }
}

/// Returns the text without parts that differ from run to run.
fn plain(text: &str) -> String {
    let demo = format!("{}/demo", env!("CARGO_MANIFEST_DIR"));
    let mut plain = String::new();
    for line in text.replace(&demo, "DEMO").lines() {
        plain.push_str(&without_rate(&without_token(line)));
        plain.push('\n');
    }
    plain
}

/// Replaces the rate in a line: `3 records in 0.1 s, 30/s; 1 left out` becomes `3 records in TIME; 1 left out`,
/// `3 documents stored, in 0.1 s` becomes `3 documents stored, in TIME`.
fn without_rate(line: &str) -> String {
    if let Some((before, after)) = line.rsplit_once(", in ")
        && after.strip_suffix(" s").is_some_and(|it| it.parse::<f64>().is_ok())
    {
        return format!("{before}, in TIME");
    }
    match (line.split_once(" in "), line.split_once("/s;")) {
        (Some((before, _)), Some((_, after))) => format!("{before} in TIME;{after}"),
        _ => match line.split_once(", ") {
            Some((before, after)) if before.starts_with("backed up") => {
                format!("{before}, N bytes{}", after.split_once("bytes").map_or("", |it| it.1))
            }
            _ => line.to_owned(),
        },
    }
}

fn without_token(line: &str) -> String {
    match line.strip_prefix("pnk_") {
        Some(_) => "pnk_TOKEN".to_owned(),
        None => line.to_owned(),
    }
}
