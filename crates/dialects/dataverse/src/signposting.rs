//! The page of a dataset for machines: links in its head (Signposting), and the same links as a link set (RFC 9264).

use http::header::LINK;
use http::{HeaderValue, Method, StatusCode};
use pinakes_http::answer;
use pinakes_store::{View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::citation::Cited;
use crate::collections::named_by_record;
use crate::datasets::show::{native_json, previewed, publisher};
use crate::datasets::version::{self, title_of};
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, Dataset, Version};
use crate::envelope;
use crate::error::{Answer, ApiError};
use crate::exports::EXPORTERS;
use crate::exports::source::text;
use crate::exports::xml::Xml;
use crate::files::{self, Found};
use crate::routing::Routes;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .elsewhere(Method::GET, "/dataset.xhtml", page)
        .elsewhere(Method::GET, "/file.xhtml", file_page)
        .elsewhere(Method::GET, "/previewurl.xhtml", preview_page)
        .elsewhere(Method::GET, "/privateurl.xhtml", preview_page)
        .get("/datasets/{id}/versions/{version}/linkset", link_set)
}

/// The links of a version.
struct Links {
    page: String,
    pid_url: String,
    license: Option<String>,
    /// (URL, media type).
    described_by: Vec<(String, &'static str)>,
    /// (URL, media type).
    items: Vec<(String, String)>,
    authors: Vec<String>,
    set: String,
    title: String,
    /// Title of the page: the title of the version, and the collection's name.
    page_title: String,
    citation: String,
}

/// Maximum number of files linked in the head of a page.
const ITEMS: usize = 10;

fn links(
    view: &mut View<'_>,
    app: &crate::app::Dataverse,
    site_url: &str,
    dataset: &Dataset,
    version: &Version,
) -> Result<Links, ApiError> {
    let json = native_json(view, app, dataset, version)?;
    let shown = &json["datasetVersion"];
    let pid = &dataset.pid;
    let mut described_by = vec![(dataset.persistent_url(), "application/vnd.citationstyles.csl+json")];
    for it in EXPORTERS.iter().filter(|it| it.name != "html") {
        let url = format!("{site_url}/api/datasets/export?exporter={}&persistentId={pid}", it.name);
        described_by.push((url, it.media_type));
    }
    let files = shown["files"].as_array().cloned().unwrap_or_default();
    let open = files.iter().filter(|it| it["restricted"] != Value::Bool(true));
    let items = open.map(|it| {
        let file = &it["dataFile"];
        (format!("{site_url}/api/access/datafile/{}", file["id"]), text(file, "contentType").to_owned())
    });
    let blocks = Value::Object(version.metadata_blocks.clone());
    let authors = crate::blocks::fields::Metadata(&blocks);
    let authors = authors
        .compounds("author")
        .into_iter()
        .filter(|it| it.get("authorIdentifierScheme") == Some("ORCID"));
    let orcid = |it: &str| format!("https://orcid.org/{}", it.rsplit('/').next().unwrap_or(it));
    let number = version.friendly_number();
    let number = if number == "DRAFT" { ":draft".to_owned() } else { number };
    // Custom terms stand at a URL of their own.
    let own_terms = || {
        let path = format!("versions/{number}/customlicense?persistentId={pid}");
        shown["termsOfUse"].as_str().map(|_| format!("{site_url}/api/datasets/:persistentId/{path}"))
    };
    Ok(Links {
        page: format!("{site_url}/dataset.xhtml?persistentId={pid}"),
        pid_url: dataset.persistent_url(),
        license: shown["license"]["uri"].as_str().map(str::to_owned).or_else(own_terms),
        described_by,
        items: items.collect(),
        authors: authors.filter_map(|it| it.get("authorIdentifier").map(orcid)).collect(),
        set: format!("{site_url}/api/datasets/:persistentId/versions/{number}/linkset?persistentId={pid}"),
        page_title: format!("{} - {}", title_of(version), named_by_record(view, dataset.owner)?.name),
        title: title_of(version),
        citation: text(shown, "citation").to_owned(),
    })
}

async fn page(call: Call) -> Answer {
    let pid = call.query.get("persistentId").unwrap_or_default().to_owned();
    let wanted = call.query.filled("version").unwrap_or(":latest").to_owned();
    let (app, asker, site_url) = (call.app.clone(), call.asker.clone(), call.site_url());
    let read = move |view: &mut View<'_>| {
        let dataset = datasets::by_pid(view, &pid)?
            .ok_or_else(|| ApiError::not_found(format!("Dataset with Persistent ID {pid} not found.")))?;
        let version = version::find(view, &asker, &dataset, &wanted, version::Withdrawn::Shown)?;
        links(view, &app, &site_url, &dataset, &version)
    };
    let links = call.db().read(Weight::Point, read).await?;
    let mut head = vec![format!("<{}>;rel=\"cite-as\"", links.pid_url)];
    head.extend(links.authors.iter().map(|it| format!("<{it}>;rel=\"author\"")));
    head.extend(
        links.described_by.iter().map(|(url, kind)| format!("<{url}>;rel=\"describedby\";type=\"{kind}\"")),
    );
    if links.items.len() <= ITEMS {
        head.extend(links.items.iter().map(|(url, kind)| format!("<{url}>;rel=\"item\";type=\"{kind}\"")));
    }
    head.push("<https://schema.org/AboutPage>;rel=\"type\"".to_owned());
    head.push("<https://schema.org/Dataset>;rel=\"type\"".to_owned());
    head.extend(links.license.iter().map(|it| format!("<{it}>;rel=\"license\"")));
    head.push(format!("<{}> ; rel=\"linkset\";type=\"application/linkset+json\"", links.set));
    let mut xml = Xml::fragment();
    xml.raw("<!DOCTYPE html>")
        .open("html", &[("lang", "en")])
        .open("head", &[])
        .leaf("title", &links.page_title)
        .close();
    xml.open("body", &[]).leaf("h1", &links.title).leaf("p", &links.citation);
    let response = answer::bytes(StatusCode::OK, HTML, xml.finish());
    Ok(answer::with_header(response, LINK, &head.join(", ")))
}

/// The page of a file, by which exports name it: its label, its bytes and its dataset.
async fn file_page(call: Call) -> Answer {
    let (wanted, asker, site_url) = (files::Wanted::of_page(&call)?, call.asker.clone(), call.site_url());
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        let version = version::find(view, &asker, &found.dataset, ":latest", version::Withdrawn::Hidden)?;
        let row = found.rows.iter().find(|it| it.is_in(version.ordinal));
        let row = row.ok_or_else(|| ApiError::not_found("File could not be found."))?;
        let mut xml = Xml::fragment();
        xml.raw("<!DOCTYPE html>").open("html", &[("lang", "en")]);
        xml.open("head", &[]).leaf("title", &row.label).close();
        xml.open("body", &[]).leaf("h1", &row.label).leaf("p", &row.description);
        let bytes = format!("{site_url}/api/access/datafile/{}", found.file.id);
        xml.open("p", &[]).leaf_with("a", &[("href", &bytes)], "Download").close();
        let dataset = format!("{site_url}/dataset.xhtml?persistentId={}", found.dataset.pid);
        xml.open("p", &[]).leaf_with("a", &[("href", &dataset)], &title_of(&version)).close();
        Ok::<_, ApiError>(xml.finish())
    };
    let page = call.db().read(Weight::Point, read).await?;
    Ok(answer::bytes(StatusCode::OK, HTML, page))
}

const HTML: HeaderValue = HeaderValue::from_static("text/html;charset=UTF-8");

fn plain_page(status: StatusCode, title: &str, paragraph: &str) -> axum::response::Response {
    let mut xml = Xml::fragment();
    xml.raw("<!DOCTYPE html>")
        .open("html", &[("lang", "en")])
        .open("head", &[])
        .leaf("title", title)
        .close()
        .open("body", &[])
        .leaf("h1", title)
        .leaf("p", paragraph);
    answer::bytes(status, HTML, xml.finish())
}

/// `/previewurl.xhtml?token=`: the page of a private URL. For an anonymous one it shows only the title and a citation
/// without authors.
async fn preview_page(call: Call) -> Answer {
    let token = call.query.get("token").unwrap_or_default().to_owned();
    let read = |view: &mut View<'_>, dataset: &Dataset, version: &Version, anonymized: bool| {
        let mut cited = Cited::of(dataset, version, &publisher(view)?);
        if anonymized {
            cited.withhold_authors();
        }
        let owner = named_by_record(view, dataset.owner)?;
        Ok((format!("{} - {}", title_of(version), owner.name), cited.text()))
    };
    let Ok((title, citation)) = previewed(&call, &token, read).await else {
        let text = "The page you are looking for was not found.";
        return Ok(plain_page(StatusCode::NOT_FOUND, "404 Not Found", text));
    };
    Ok(plain_page(StatusCode::OK, &title, &citation))
}

async fn link_set(call: Call) -> Answer {
    let (app, asker, site_url) = (call.app.clone(), call.asker.clone(), call.site_url());
    let (wanted, version_text) = (Wanted::of(&call)?, call.param("version").to_owned());
    let read = move |view: &mut View<'_>| {
        let dataset = wanted.find(view)?;
        let version = version::find(view, &asker, &dataset, &version_text, version::Withdrawn::Hidden)?;
        links(view, &app, &site_url, &dataset, &version)
    };
    let links = call.db().read(Weight::Point, read).await?;
    let mut set = json!({
        "anchor": links.page,
        "cite-as": [{"href": links.pid_url}],
        "type": [{"href": "https://schema.org/AboutPage"}, {"href": "https://schema.org/Dataset"}],
        "author": links.authors.iter().map(|it| json!({"href": it})).collect::<Vec<_>>(),
        "item": links.items.iter().map(|it| json!({"href": it.0, "type": it.1})).collect::<Vec<_>>(),
        "describedby": links.described_by.iter().map(|it| json!({"href": it.0, "type": it.1})).collect::<Vec<_>>(),
    });
    if let Some(license) = &links.license {
        set["license"] = json!({"href": license});
    }
    let mut all = vec![set];
    for (url, kind) in &links.items {
        all.push(json!({"anchor": url, "collection": [{"href": links.page, "type": "text/html"}], "type": [{"href": kind}]}));
    }
    Ok(envelope::raw_json(StatusCode::OK, &json!({"linkset": all})))
}
