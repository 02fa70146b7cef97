//! Information about the server: `/api/info`.

use http::{HeaderValue, Method, StatusCode};
use pinakes_store::{View, Weight};
use serde_json::json;

use crate::app::Call;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{envelope, site_settings};

/// The version of Dataverse whose API is implemented.
const VERSION: &str = "6.11";
/// Maximum size of an archive of several files, in bytes, unless `:ZipDownloadLimit` overrides it.
const ZIP_LIMIT_BYTES: u64 = 104_857_600;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/info/version", version)
        .elsewhere(Method::GET, "/api", version)
        .get("/info/server", server)
        .get("/info/apiTermsOfUse", api_terms)
        .get("/info/applicationTermsOfUse", application_terms)
        .get("/info/zipDownloadLimit", zip_limit)
        .get("/info/settings/incompleteMetadataViaApi", incomplete_metadata)
        .get("/info/settings/customization/{type}", customization)
        .get("/info/settings/{name}", setting)
}

async fn version(_: Call) -> Answer {
    envelope::ok(json!({"version": VERSION, "build": env!("CARGO_PKG_VERSION")}))
}

async fn server(call: Call) -> Answer {
    let url = call.site_url();
    let host = url.split_once("://").map_or(url.as_str(), |it| it.1);
    envelope::message(host.split([':', '/']).next().unwrap_or(host))
}

async fn setting_value(call: &Call, name: &'static str) -> Result<Option<String>, ApiError> {
    call.db().read(Weight::Point, move |view| site_settings::get(view, name)).await
}

async fn api_terms(call: Call) -> Answer {
    let text = setting_value(&call, ":ApiTermsOfUse").await?;
    envelope::message(
        text.unwrap_or_else(|| "There are no API Terms of Use for this Dataverse installation.".into()),
    )
}

async fn application_terms(call: Call) -> Answer {
    let language = call.query.filled("lang").map(str::to_owned);
    let find = move |view: &mut View<'_>| -> Result<Option<String>, ApiError> {
        let of_language = match &language {
            Some(it) => site_settings::get(view, &format!(":ApplicationTermsOfUse/lang/{it}"))?,
            None => None,
        };
        match of_language {
            Some(text) => Ok(Some(text)),
            None => site_settings::get(view, ":ApplicationTermsOfUse"),
        }
    };
    let text = call.db().read(Weight::Point, find).await?;
    envelope::message(
        text.unwrap_or_else(|| "There are no Terms of Use for this Dataverse installation.".into()),
    )
}

async fn zip_limit(call: Call) -> Answer {
    let text = setting_value(&call, ":ZipDownloadLimit").await?;
    envelope::ok(text.and_then(|it| it.parse().ok()).unwrap_or(ZIP_LIMIT_BYTES))
}

async fn incomplete_metadata(call: Call) -> Answer {
    envelope::ok(call.app.settings.incomplete_metadata)
}

/// Settings that are public.
const OPEN: [&str; 6] = [
    ":MaxEmbargoDurationInMonths",
    ":DatasetPublishPopupCustomText",
    ":PublishDatasetDisclaimerText",
    ":DatasetSubmitForReviewPopupCustomText",
    ":SubmitForReviewDatasetDisclaimerText",
    ":ApplicationTermsOfUse",
];

async fn setting(call: Call) -> Answer {
    let name = call.param("name").to_owned();
    let missing = ApiError::not_found(format!("Setting {name} not found"));
    if !OPEN.contains(&name.as_str()) {
        return Err(missing);
    }
    let value = call.db().read(Weight::Point, move |view| site_settings::get(view, &name)).await?;
    envelope::message(value.ok_or(missing)?)
}

/// Files that customise the site's pages: type, setting with the path, content type.
const CUSTOMIZATIONS: [(&str, &str, &str); 6] = [
    ("homePage", ":HomePageCustomizationFile", "text/html"),
    ("header", ":HeaderCustomizationFile", "text/html"),
    ("footer", ":FooterCustomizationFile", "text/html"),
    ("style", ":StyleCustomizationFile", "text/css"),
    ("analytics", ":WebAnalyticsCode", "text/html"),
    ("logo", ":LogoCustomizationFile", "image/png"),
];
/// Maximum size of such a file, in bytes.
const CUSTOMIZATION_BYTES: u64 = 4 << 20;

/// Answers with a file whose path an administrator set. The path of a logo may also be relative to the folder `docroot`
/// next to the server's working directory.
async fn customization(call: Call) -> Answer {
    let wanted = call.param("type");
    let Some((_, setting, content_type)) = CUSTOMIZATIONS.iter().find(|it| it.0 == wanted) else {
        let types: Vec<&str> = CUSTOMIZATIONS.iter().map(|it| it.0).collect();
        return Err(ApiError::bad_request(format!(
            "Customization type unknown or missing. Must be one of the following: [{}]",
            types.join(", ")
        )));
    };
    let missing = || ApiError::not_found(format!("{setting} not found."));
    let path = setting_value(&call, setting).await?.ok_or_else(missing)?;
    let is_logo = wanted == "logo";
    let read = tokio::task::spawn_blocking(move || {
        let beside = format!("../docroot{path}");
        let path = if is_logo && std::path::Path::new(&beside).is_file() { beside } else { path };
        let n_bytes = std::fs::metadata(&path)?.len();
        if CUSTOMIZATION_BYTES < n_bytes {
            return Err(std::io::Error::other("too large"));
        }
        std::fs::read(&path)
    });
    let bytes = read.await.ok().and_then(Result::ok).ok_or_else(missing)?;
    Ok(pinakes_http::answer::bytes(StatusCode::OK, HeaderValue::from_static(content_type), bytes))
}
