//! Identifiers of a work other than its first DOI, and what rows of the Meta dump contribute as documents.

use serde_json::json;

use crate::server::{Content, Failure, Server};

const EDGES: &str = "citing,cited\n10.1/a,10.1/b\n10.1/c,10.1/b\n10.1/a,10.1/dot.\n";
const WORKS: &str = "id\nomid:br/0601 doi:10.1/b doi:10.1/b2 pmid:7 pmid:8\nomid:br/0602 doi:10.1/a\n";

/// Rows of the Meta dump, and documents of a catalogue.
fn documents() -> String {
    let documents = [
        json!({
            "id": "omid:br/0601 doi:10.1/b pmid:7 isbn:9780306406157 openalex:W2741 pmcid:PMC53",
            "title": "B", "pub_date": "2020-05", "type": "book",
            "author": "Peroni, Silvio [orcid:0000-0003-0530-4305 omid:ra/061]; Shotton, David [orcid:0000-0001-5506-523X]",
            "venue": "Scientometrics [issn:0138-9130 issn:1588-2861 omid:br/0699]",
        }),
        json!({"id": "second", "doi_str_mv": ["10.1/B2"], "title": "by the second DOI"}),
        json!({"id": "dotted", "doi_str_mv": "10.1/dot.", "title": "with a dot"}),
        json!({"id": "lonely", "title": "without DOI", "isbn": ["3-16-148410-0 (pbk.)"]}),
    ];
    documents.iter().map(|it| format!("{it}\n")).collect()
}

async fn started() -> Result<Server, Failure> {
    let content = Content {
        edges: EDGES.to_owned(),
        works: WORKS.to_owned(),
        graph_ids: "first\t10.1/a\n".to_owned(),
        extra_ids: "of-table\t10.1/b2\n".to_owned(),
        documents: documents(),
    };
    Server::start(&content, |_| {}).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_doi_answers_as_the_first() -> Result<(), Failure> {
    let server = started().await?;
    for id in ["doi:10.1/b", "doi:10.1/B2", "pmid:7", "pmid:8", "omid:br/0601"] {
        let answer = server.get(&format!("/index/v2/citation-count/{id}")).await?;
        assert_eq!(answer.json()?, json!([{"count": "2"}]), "{id}");
    }
    assert_eq!(server.get("/doi/10.1/B2").await?.header("location"), Some("/id/second"));
    let document = server.get("/id/second").await?.json()?;
    assert_eq!(document["doi"], "10.1/B2");
    // The other citing work, 10.1/a, has an id without a document.
    assert_eq!(document["unmatched"]["cited"], json!([{"doi_str_mv": "10.1/c"}]));
    // Records that cite the work are shown its records, whichever of its DOIs they have.
    let citing = server.get("/id/first").await?.json()?;
    let titles: Vec<_> = citing["citing"].as_array().into_iter().flatten().map(|it| &it["title"]).collect();
    assert_eq!(titles, ["B", "by the second DOI", "with a dot"]);
    server.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exact_doi_comes_before_the_trimmed_one() -> Result<(), Failure> {
    let server = started().await?;
    assert_eq!(server.get("/doi/10.1/dot.").await?.header("location"), Some("/id/dotted"));
    assert_eq!(server.get("/id/dotted").await?.json()?["extra"]["unmatched_cited_count"], 0);
    assert_eq!(server.get("/id/dotted").await?.json()?["extra"]["cited_count"], 0);
    server.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_the_meta_dump_are_indexed_whole() -> Result<(), Failure> {
    let server = started().await?;
    for path in [
        "author/orcid:0000-0003-0530-4305",
        "author/orcid:0000-0001-5506-523X",
        "author/omid:ra/061",
        "metadata/isbn:978-0-306-40615-7",
        "metadata/isbn:0306406152",
        "metadata/openalex:W2741",
        "metadata/pmcid:PMC53",
    ] {
        let rows = server.get(&format!("/meta/v1/{path}")).await?.json()?;
        assert_eq!(rows.as_array().map(Vec::len), Some(1), "{path}: {rows}");
        assert_eq!(rows[0]["title"], "B", "{path}");
    }
    let rows = server.get("/meta/v1/metadata/isbn:9783161484100").await?.json()?;
    assert_eq!((&rows[0]["id"], &rows[0]["title"]), (&json!("isbn:9783161484100"), &json!("without DOI")));
    for issn in ["0138-9130", "1588-2861"] {
        let count = server.get(&format!("/index/v2/venue-citation-count/issn:{issn}")).await?;
        assert_eq!(count.json()?, json!([{"count": "2"}]), "{issn}");
    }
    server.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_of_several_works_come_at_once() -> Result<(), Failure> {
    let server = started().await?;
    let counts = server.get("/index/v2/citation-count/doi:10.1/b__pmid:8__doi:10.9/none").await?;
    let row = |id: &str, count: &str| json!({"id": id, "count": count});
    assert_eq!(
        counts.json()?,
        json!([row("doi:10.1/b", "2"), row("pmid:8", "2"), row("doi:10.9/none", "0")])
    );
    let counts = server.get("/index/v1/reference-count/10.1/a__10.1/b").await?;
    assert_eq!(counts.json()?, json!([row("10.1/a", "2"), row("10.1/b", "0")]));
    let many = vec!["10.1/a"; 101].join("__");
    assert_eq!(server.get(&format!("/index/v1/reference-count/{many}")).await?.status, 404);
    server.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_say_how_long_they_keep() -> Result<(), Failure> {
    let server = started().await?;
    for (path, expected) in [
        ("/id/first", "public, max-age=60"),
        ("/doi/10.1/dot.", "public, max-age=60"),
        ("/index/v2/citation-count/pmid:7", "public, max-age=60"),
        ("/meta/v1/metadata/pmid:7", "public, max-age=60"),
        ("/id/none", "no-store"),
        ("/stats", "no-store"),
        ("/cache", "no-store"),
    ] {
        assert_eq!(server.get(path).await?.header("cache-control"), Some(expected), "{path}");
    }
    server.stop().await
}
