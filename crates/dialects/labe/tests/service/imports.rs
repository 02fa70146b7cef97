//! Documents from files in all packings; bad lines are reported and skipped.

use std::fs;
use std::io::Write as _;

use pinakes_labe::DOCUMENT;
use pinakes_labe::import::{Existing, LINE_LEN_MAX_BYTES, Loaded, Reader, load as load_file, prepare};
use proptest::prelude::*;

use crate::server::{Content, Failure, Server, load};

const EDGES: &str = "10.1/a\t10.1/b\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_and_tables_plain_and_packed() -> Result<(), Failure> {
    let server = Server::start(&Content { edges: EDGES.to_owned(), ..Content::default() }, |_| {}).await?;
    let lines = "{\"id\":\"a\",\"doi_str_mv\":\"10.1/A\"}\n\n[]\n{\"id\":1}\nnonsense\n\tx\n";
    let table = "b\t{\"doi_str_mv\":[\"10.1/b\"], \"t\": 1}\r\nbad\t{\nc\tnull";
    let path = server.folder.path().join("lines.gz");
    let mut gzip = flate2::write::GzEncoder::new(fs::File::create(&path)?, flate2::Compression::fast());
    gzip.write_all(lines.as_bytes())?;
    gzip.finish()?;
    let (loaded, told) = load(&server.catalogue, &path)?;
    assert_eq!(loaded, Loaded { n_made: 1, n_bad: 4, ..Loaded::default() });
    assert_eq!(told.iter().map(|it| &it[..2]).collect::<Vec<_>>(), ["3:", "4:", "5:", "6:"]);
    let path = server.folder.path().join("table.tsv");
    fs::write(&path, format!("\u{feff}{table}"))?;
    let (loaded, told) = load(&server.catalogue, &path)?;
    assert_eq!((loaded.n_made, loaded.n_bad, told.len()), (1, 2, 2));
    let answer = server.get("/doi/10.1/A").await?;
    assert_eq!(answer.header("location"), Some("/id/a"));
    let document = server.get("/id/a").await?.json()?;
    assert_eq!(document["doi"], "10.1/A");
    assert_eq!(document["citing"], serde_json::json!([{"doi_str_mv": ["10.1/b"], "t": 1}]));
    server.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_there_stays_or_is_replaced() -> Result<(), Failure> {
    let server = Server::start(&Content { edges: EDGES.to_owned(), ..Content::default() }, |_| {}).await?;
    let path = server.folder.path().join("documents");
    fs::write(&path, "{\"id\":\"a\"}\n")?;
    let tenant = server.catalogue.tenant("default")?;
    let mut n_made = Vec::new();
    for existing in [Existing::Keep, Existing::Keep, Existing::Replace] {
        let loaded = load_file(&tenant, &path, existing, &mut |_| {})?;
        n_made.push((loaded.n_made, loaded.n_kept, loaded.n_replaced));
    }
    assert_eq!(n_made, [(1, 0, 0), (0, 1, 0), (0, 0, 1)]);
    assert_eq!(tenant.check()?, Vec::<String>::new());
    server.stop().await
}

/// More lines than fit into the batches in flight: they are loaded in the order of the file, including
/// repeated ids.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_batches_keep_the_order_of_the_file() -> Result<(), Failure> {
    const LINES: u64 = 50_000;
    let server = Server::start(&Content { edges: EDGES.to_owned(), ..Content::default() }, |_| {}).await?;
    let path = server.folder.path().join("documents");
    let line = |n: u64| match n % 1_000 {
        0 => "nonsense\n".to_owned(),
        1 => format!("{{\"id\":\"again\",\"line\":{n}}}\n"),
        _ => format!("{{\"id\":\"{n}\",\"line\":{n}}}\n"),
    };
    fs::write(&path, (1..=LINES).map(line).collect::<String>())?;
    let (loaded, told) = load(&server.catalogue, &path)?;
    let n_bad = LINES / 1_000;
    let n_replaced = LINES / 1_000 - 1;
    assert_eq!(loaded, Loaded { n_made: LINES - n_bad - n_replaced, n_replaced, n_bad, n_kept: 0 });
    let bad: Vec<String> = (1..=n_bad).map(|it| format!("{}:", it * 1_000)).collect();
    assert_eq!(
        told.iter().map(|it| it.split_inclusive(':').next().unwrap_or_default()).collect::<Vec<_>>(),
        bad
    );
    let again = server.catalogue.tenant("default")?.read_blocking(|view| view.get(&DOCUMENT, "again"))?;
    let body = again.ok_or("no document")?.json()?;
    assert_eq!(body["text"], format!("{{\"id\":\"again\",\"line\":{}}}", LINES - 999));
    server.stop().await
}

/// A truncated file is reported; what precedes the end is loaded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_packed_file_that_is_cut_gives_what_it_has() -> Result<(), Failure> {
    let server = Server::start(&Content { edges: EDGES.to_owned(), ..Content::default() }, |_| {}).await?;
    let path = server.folder.path().join("lines.gz");
    let lines: String =
        (0..30_000).map(|n| format!("{{\"id\":\"{n}\",\"noise\":\"{:x}\"}}\n", n * n)).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(lines.as_bytes())?;
    let packed = gzip.finish()?;
    fs::write(&path, &packed[..packed.len() - 9])?;
    let tenant = server.catalogue.tenant("default")?;
    let failure = load_file(&tenant, &path, Existing::Keep, &mut |_| {}).expect_err("the file is cut");
    assert!(failure.to_string().contains("lines.gz"), "{failure}");
    let n = tenant.read_blocking(|view| view.count(&DOCUMENT, &pinakes_store::Expr::All))?;
    assert!((29_000..=30_000).contains(&n), "{n}");
    server.stop().await
}

#[test]
fn a_line_that_never_ends_costs_itself_only() {
    let long = vec![b'x'; LINE_LEN_MAX_BYTES + 1];
    let text = [&b"one\n"[..], &long, b"\nthree"].concat();
    let mut reader = Reader::new(text.as_slice());
    let mut seen = Vec::new();
    while let Ok(Some((line, bytes))) = reader.next_line() {
        seen.push((line, bytes.map(<[u8]>::to_vec)));
    }
    assert_eq!(seen, [(1, Some(b"one".to_vec())), (2, None), (3, Some(b"three".to_vec()))]);
}

proptest! {
    #[test]
    fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = prepare(&line);
        let _ = prepare(&[b"{\"id\":\"x\",\"doi_str_mv\":", &line[..], b"}"].concat());
    }
}
