//! A new graph under the same name is served at once; a broken one changes nothing.

use std::fs;

use crate::server::{Content, Failure, Server, build_graph};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_graph_is_swapped_in() -> Result<(), Failure> {
    let ids = "a\t10.1/a\n".to_owned();
    let old = Content { edges: "10.1/a\t10.1/b\n".to_owned(), graph_ids: ids.clone(), ..Content::default() };
    let new = Content {
        edges: "10.1/a\t10.1/b\n10.1/a\t10.1/c\n".to_owned(),
        graph_ids: ids,
        ..Content::default()
    };
    let server = Server::start(&old, |_| {}).await?;
    let count = async || -> Result<serde_json::Value, Failure> {
        Ok(server.get("/id/a").await?.json()?["extra"]["unmatched_citing_count"].take())
    };
    assert_eq!(count().await?, 1);
    let other = tempfile::tempdir_in(server.folder.path())?;
    let built = build_graph(other.path(), &new)?;
    fs::rename(built, server.folder.path().join("graph"))?;
    assert_eq!(count().await?, 2);
    fs::write(other.path().join("broken"), "nonsense")?;
    fs::rename(other.path().join("broken"), server.folder.path().join("graph"))?;
    assert_eq!(count().await?, 2);
    fs::remove_file(server.folder.path().join("graph"))?;
    assert_eq!(count().await?, 2);
    server.stop().await
}
