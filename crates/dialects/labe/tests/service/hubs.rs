//! Works with many citations: the answer is complete, in order, and has correct counts, even if too many documents are
//! moved to be kept in memory, so that they are read again.

use serde_json::Value;

use crate::server::{Content, Failure, Server};

const N_CITING: usize = 3_000;
/// Size of a document: all moved ones together exceed what is kept in memory.
const TITLE_BYTES: usize = 2_000;

/// Returns the content: every third citing work has no record; every second of the others is held by DE-14.
fn hub() -> Content {
    let mut content = Content { graph_ids: "hub\t10.1/hub\n".to_owned(), ..Content::default() };
    let title = "x".repeat(TITLE_BYTES);
    for number in 0..N_CITING {
        content.edges.push_str(&format!("10.2/{number:05}\t10.1/hub\n"));
        if number % 3 == 0 {
            continue;
        }
        let isil = if number % 2 == 0 { "DE-14" } else { "DE-15" };
        content.graph_ids.push_str(&format!("r{number:05}\t10.2/{number:05}\n"));
        content.documents.push_str(&format!(
            "{{\"id\":\"r{number:05}\",\"title\":\"{title}\",\"institution\":[\"{isil}\"]}}\n"
        ));
    }
    content
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|it| it["id"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_is_answered_as_a_whole() -> Result<(), Failure> {
    let server = Server::start(&hub(), |_| {}).await?;
    let (n_documents, n_held) = (N_CITING * 2 / 3, N_CITING / 3);
    let all = server.get("/id/hub").await?.json()?;
    assert_eq!(ids(&all["cited"]).len(), n_documents);
    assert!(ids(&all["cited"]).is_sorted());
    assert_eq!(all["extra"]["unmatched_cited_count"], N_CITING - n_documents);

    let filtered = server.get("/id/hub?i=DE-14").await?.json()?;
    let rest = &filtered["unmatched"]["cited"];
    assert_eq!(ids(&filtered["cited"]).len(), n_held);
    assert_eq!(rest.as_array().map(Vec::len), Some(N_CITING - n_held));
    assert_eq!(ids(rest).len(), n_documents - n_held);
    assert!(ids(rest).is_sorted());
    assert_eq!(rest[0]["doi_str_mv"], "10.2/00000");
    assert_eq!(filtered["extra"]["cited_count"], n_held);
    assert_eq!(filtered["extra"]["unmatched_cited_count"], N_CITING - n_held);

    let stats = server.get("/stats").await?.json()?;
    assert_eq!(stats["total_status_code_count"], serde_json::json!({"200": 2}));
    assert!(Some((n_documents * 2 * TITLE_BYTES) as u64) < stats["total_response_size"].as_u64(), "{stats}");
    server.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_hub_stream_sort_and_end() -> Result<(), Failure> {
    let server = Server::start(&hub(), |settings| settings.rows = 2_500).await?;
    let rows = server.get("/index/v1/citations/10.1/hub").await?.json()?;
    assert_eq!(rows.as_array().map(Vec::len), Some(2_500));
    let rows = server.get("/index/v1/citations/10.1/hub?sort=desc(citing)&page_size=2&page=3").await?;
    assert_eq!(rows.json()?[0]["citing"], "10.2/02495");
    assert!(rows.header("link").is_some_and(|it| it.contains("page=1250&page_size=2>; rel=\"last\"")));
    let table = server.get("/index/v1/citations/10.1/hub?format=csv&filter=citing:/0000").await?.body;
    assert_eq!(table.lines().count(), 11);
    server.stop().await
}
