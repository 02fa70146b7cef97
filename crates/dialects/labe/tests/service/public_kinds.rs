//! Records of other dialects count as held if the operator says so; otherwise they do not exist here.

use pinakes_store::StoreError;
use serde_json::json;

use crate::server::{Content, Failure, Server, THING};

async fn started(public_kinds: &[&str]) -> Result<Server, Failure> {
    let content = Content { edges: "10.1/a\t10.1/b\n".to_owned(), ..Content::default() };
    let server = Server::start(&content, |settings| {
        settings.public_kinds = public_kinds.iter().map(|it| (*it).to_owned()).collect();
    })
    .await?;
    server.catalogue.tenant("default")?.write_blocking(|txn| -> Result<(), StoreError> {
        txn.insert(&THING, "thing/1", &json!({"name": "<A>", "about": {"doi": "10.1/a"}}))?;
        txn.insert(&THING, "thing/2", &json!({"name": "B", "about": {"doi": "https://doi.org/10.1/B"}}))?;
        Ok(())
    })?;
    Ok(server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn public_records_are_held() -> Result<(), Failure> {
    let server = started(&["toy_thing"]).await?;
    assert_eq!(server.get("/doi/10.1/a").await?.header("location"), Some("/id/thing/1"));
    let answer = server.get("/id/thing/2").await?;
    assert!(
        answer.body.contains(r#""cited":[{"name":"\u003cA\u003e","about":{"doi":"10.1/a"}}]"#),
        "{}",
        answer.body
    );
    let filtered = server.get("/id/thing/2?i=DE-14").await?.json()?;
    assert_eq!(filtered["extra"]["unmatched_cited_count"], 1);
    server.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_others_do_not_exist() -> Result<(), Failure> {
    let server = started(&[]).await?;
    assert_eq!(server.get("/doi/10.1/a").await?.status, 404);
    assert_eq!(server.get("/id/thing/1").await?.status, 404);
    server.stop().await
}

#[tokio::test]
async fn a_kind_that_is_not_there_is_told() {
    let content = Content { edges: "10.1/a\t10.1/b\n".to_owned(), ..Content::default() };
    let started =
        Server::start(&content, |settings| settings.public_kinds = vec!["toy_thin".to_owned()]).await;
    let told = started.err().map(|it| it.to_string());
    let expected = "labe.public_kinds: there is no kind \"toy_thin\"; known are labe_document, toy_thing";
    assert_eq!(told.as_deref(), Some(expected));
}
