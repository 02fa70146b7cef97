//! A new graph under the same name is served at once, even under load; an invalid one changes nothing.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::server::{Content, Failure, Server, build_graph, untimed};

/// Number of citing works in the two graphs: enough that answers from the second one are streamed.
const N_CITING: [usize; 2] = [3, 400];

fn content(n_citing: usize) -> Content {
    let edges: String = (0..n_citing).map(|it| format!("10.2/{n_citing}-{it:04}\t10.1/a\n")).collect();
    Content { edges, graph_ids: "a\t10.1/a\n".to_owned(), ..Content::default() }
}

/// Puts a file in place of the server's graph.
fn put(server: &Server, file: &Path) -> Result<(), Failure> {
    let beside = server.folder.path().join("next");
    fs::copy(file, &beside)?;
    Ok(fs::rename(beside, server.folder.path().join("graph"))?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_graph_is_swapped_in() -> Result<(), Failure> {
    let server = Server::start(&content(N_CITING[0]), |_| {}).await?;
    let count = async || -> Result<serde_json::Value, Failure> {
        Ok(server.get("/id/a").await?.json()?["extra"]["unmatched_cited_count"].take())
    };
    assert_eq!(count().await?, N_CITING[0]);
    let other = tempfile::tempdir_in(server.folder.path())?;
    put(&server, &build_graph(other.path(), &content(N_CITING[1]))?)?;
    assert_eq!(count().await?, N_CITING[1]);
    fs::remove_file(server.folder.path().join("graph"))?;
    assert_eq!(count().await?, N_CITING[1]);
    server.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_graph_that_is_broken_is_refused_and_the_old_one_stays() -> Result<(), Failure> {
    let server = Server::start(&content(N_CITING[1]), |_| {}).await?;
    let good = fs::read(server.folder.path().join("graph"))?;
    let before = untimed(&server.get("/id/a").await?.body);
    let broken = server.folder.path().join("broken");
    let cut = [0, 1, 20, 200, good.len() / 2, good.len() - 1].map(|len| good[..len].to_vec());
    let longer = [&good[..], b"x"].concat();
    for bytes in cut.into_iter().chain([longer, b"nonsense".repeat(100)]) {
        fs::write(&broken, &bytes)?;
        let told = pinakes_citations::Graph::open(&broken).err().map(|it| it.to_string());
        let told = told.ok_or_else(|| format!("{} bytes were opened", bytes.len()))?;
        assert!(told.contains("build") && told.contains("broken"), "what to do is not told: {told}");
        put(&server, &broken)?;
        server.reload.now();
        assert_eq!(untimed(&server.get("/id/a").await?.body), before);
    }
    fs::write(&broken, &good)?;
    put(&server, &broken)?;
    assert_eq!(untimed(&server.get("/id/a").await?.body), before);
    server.stop().await
}

/// Overwriting the file instead of renaming does not crash the server and empties no answer; the new graph is served
/// once it is complete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_graph_written_over_in_place_is_served_when_it_is_whole() -> Result<(), Failure> {
    let server = Server::start(&content(N_CITING[1]), |settings| settings.copy_first = true).await?;
    let other = tempfile::tempdir()?;
    let new = fs::read(build_graph(other.path(), &content(N_CITING[0]))?)?;
    let before = untimed(&server.get("/id/a").await?.body);
    let path = server.folder.path().join("graph");
    for len in [0, 100, new.len() / 2, new.len() - 1] {
        fs::write(&path, &new[..len])?;
        server.reload.now();
        assert_eq!(untimed(&server.get("/id/a").await?.body), before, "{len} bytes are there");
    }
    // The right length, but not yet the right content.
    let mut torn = new.clone();
    torn.last_chunk_mut::<200>().ok_or("a small graph")?.fill(0x55);
    fs::write(&path, &torn)?;
    server.reload.now();
    assert_eq!(untimed(&server.get("/id/a").await?.body), before);
    fs::write(&path, &new)?;
    server.reload.now();
    let count = server.get("/id/a").await?.json()?["extra"]["unmatched_cited_count"].take();
    assert_eq!(count, N_CITING[0]);
    server.stop().await
}

/// The same while the copy is made in the background, as servers do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_made_beside_is_served_in_the_end() -> Result<(), Failure> {
    let server = Server::start(&content(N_CITING[1]), |_| {}).await?;
    let other = tempfile::tempdir()?;
    let new = build_graph(other.path(), &content(N_CITING[0]))?;
    put(&server, &new)?;
    let count = async || -> Result<serde_json::Value, Failure> {
        Ok(server.get("/id/a").await?.json()?["extra"]["unmatched_cited_count"].take())
    };
    assert_eq!(count().await?, N_CITING[0]);
    // Longer than before, so that the mapped part stays readable no matter when the copy is made.
    let longer = build_graph(other.path(), &content(N_CITING[1]))?;
    fs::write(server.folder.path().join("graph"), fs::read(longer)?)?;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while count().await? != N_CITING[1] {
        assert!(std::time::Instant::now() < deadline, "the new graph was never served");
        tokio::task::yield_now().await;
    }
    server.stop().await
}

/// While the graph changes repeatedly, every answer is complete and comes from one of the two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swaps_under_load_fail_nobody() -> Result<(), Failure> {
    const N_CLIENTS: usize = 4;
    const N_SWAPS: usize = 24;
    /// Number of answers between two replacements, so that both graphs are read.
    const N_ANSWERS: usize = 12;
    let server = Arc::new(Server::start(&content(N_CITING[0]), |_| {}).await?);
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    let mut graphs = Vec::new();
    let mut expected = Vec::new();
    for (folder, n_citing) in folders.iter().zip(N_CITING) {
        let graph = build_graph(folder.path(), &content(n_citing))?;
        put(&server, &graph)?;
        expected.push(untimed(&server.get("/id/a").await?.body));
        graphs.push(graph);
    }
    assert_ne!(expected[0], expected[1]);
    let expected = Arc::new(expected);
    let (is_over, n_answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..N_CLIENTS)
        .map(|_| {
            let (server, expected) = (server.clone(), expected.clone());
            let (is_over, n_answers) = (is_over.clone(), n_answers.clone());
            tokio::spawn(async move {
                let mut seen = [0_usize; 2];
                while !is_over.load(Ordering::Relaxed) {
                    let answer = server.get("/id/a").await?;
                    let body = untimed(&answer.body);
                    let which = expected.iter().position(|it| *it == body);
                    seen[which.ok_or_else(|| format!("{}: {body}", answer.status))?] += 1;
                    n_answers.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, Failure>(seen)
            })
        })
        .collect();
    let mut wanted = 0;
    for swap in 0..N_SWAPS {
        put(&server, &graphs[swap % 2])?;
        server.reload.now();
        wanted += N_ANSWERS;
        // A client that fails ends, and its error is reported below.
        while n_answers.load(Ordering::Relaxed) < wanted && !clients.iter().any(|it| it.is_finished()) {
            tokio::task::yield_now().await;
        }
    }
    is_over.store(true, Ordering::Relaxed);
    let mut seen = [0; 2];
    for client in clients {
        let counts = client.await??;
        seen = [seen[0] + counts[0], seen[1] + counts[1]];
    }
    assert!(seen.iter().all(|it| 0 < *it), "{seen:?}");
    Arc::into_inner(server).ok_or("a client still holds the server")?.stop().await
}
