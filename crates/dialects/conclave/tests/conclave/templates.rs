//! Templates of a site that override the built-in ones.

use http::HeaderMap;
use pinakes_conclave::Settings;

use crate::engine::Engine;
use crate::server::{Failure, Server};

async fn page(server: &Server, path: &str) -> Result<(String, HeaderMap), Failure> {
    let (_, headers, body) =
        server.send("nobody", "GET", path, HeaderMap::new(), String::new().into()).await?;
    Ok((String::from_utf8(body)?, headers))
}

/// One template of the site is used and the others stay built-in; its values are escaped; the page's tag changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_replaces_a_template() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let text = "{% extends \"layout.html\" %}{% block content %}<h1 class=\"ours\">Our {{ page.title }}</h1>\
                {{ page.body }}{% endblock %}";
    std::fs::write(folder.path().join("topic.html"), text)?;
    let mut tags = Vec::new();
    for templates in [std::path::PathBuf::new(), folder.path().to_owned()] {
        let is_ours = templates != std::path::PathBuf::new();
        let server = Server::start_with(Engine::Sqlite, |it| Settings { templates, ..it }).await?;
        let topic = serde_json::json!({
            "id": "a", "metadata": [{"name": "label", "value": "<b>A</b>"}],
            "occurrences": [{"role": "wiki", "behaviour": "markdown", "string-data": "*word*"}],
        });
        let path = "/topics/v1/default/topics";
        server.send("editor", "POST", path, HeaderMap::new(), topic.to_string().into()).await?;
        let (html, headers) = page(&server, "/t/default/a").await?;
        assert_eq!(html.contains("<h1 class=\"ours\">Our &lt;b&gt;A&lt;/b&gt;</h1>"), is_ours, "{html}");
        assert!(html.starts_with("<!doctype html>") && html.contains("<em>word</em>"), "{html}");
        tags.push(headers.get("etag").cloned());
        let (html, _) = page(&server, "/conclave/default/search?q=a").await?;
        assert!(!html.contains("class=\"ours\""), "the other templates are the built-in ones: {html}");
    }
    assert_ne!(tags[0], tags[1], "a cache must not keep the page of the former template");
    Ok(())
}

/// An invalid template is reported with its name and line when the server starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_that_is_none_is_refused() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("search.html"), "<p>\n{% if %}</p>")?;
    let templates = folder.path().to_owned();
    let started = Server::start_with(Engine::Sqlite, |it| Settings { templates, ..it }).await;
    let error = started.err().ok_or("it started")?.to_string();
    assert!(error.contains("search.html") && error.contains(":2"), "{error}");
    Ok(())
}
