//! Licences and terms of versions: parsing and output (section 4.2 of the contract).

use pinakes_store::{Expr, Query, View};
use serde_json::{Map, Value, json};

use crate::datasets::Version;
use crate::error::ApiError;
use crate::licenses::{self, LICENSE, License};
use crate::{envelope, site_settings, stored};

/// Custom terms of use, which replace a licence.
pub(crate) const CUSTOM: [&str; 8] = [
    "termsOfUse",
    "confidentialityDeclaration",
    "specialPermissions",
    "restrictions",
    "citationRequirements",
    "depositorRequirements",
    "conditions",
    "disclaimer",
];
/// Terms of access to restricted files.
pub(crate) const ACCESS: [&str; 7] = [
    "termsOfAccess",
    "dataAccessPlace",
    "originalArchive",
    "availabilityStatus",
    "contactForAccess",
    "sizeOfCollection",
    "studyCompletion",
];

/// Sets the named terms to those of a body; removes those that it does not state.
pub(crate) fn put_texts(version: &mut Version, body: &Map<String, Value>, names: &[&str]) {
    for name in names {
        version.terms.remove(*name);
        if let Some(text) = body.get(*name).and_then(Value::as_str).filter(|it| !it.is_empty()) {
            version.terms.insert((*name).to_owned(), text.into());
        }
    }
}

/// Returns whether the site allows custom terms of use in place of a licence.
pub(crate) fn allows_custom(view: &mut View<'_>) -> Result<bool, ApiError> {
    site_settings::is_true(view, ":AllowCustomTermsOfUse", true)
}

/// Parses licence and terms of a version's body. Where the site does not allow custom terms, the default licence takes
/// their place.
///
/// Errors: 400 for a licence that does not exist or is not active.
pub(crate) fn read(
    view: &mut View<'_>,
    version: &mut Version,
    body: &Map<String, Value>,
) -> Result<(), ApiError> {
    put_texts(version, body, &CUSTOM);
    put_texts(version, body, &ACCESS);
    if let Some(asked) = body.get("fileAccessRequest").and_then(Value::as_bool) {
        version.file_access_request = asked;
    }
    let keeps_custom = version.terms.keys().any(|it| CUSTOM.contains(&it.as_str())) && allows_custom(view)?;
    version.license = match body.get("license") {
        None | Some(Value::Null) if keeps_custom => None,
        None | Some(Value::Null) => default_license(view)?,
        Some(value) => Some(named(view, value)?.id),
    };
    if version.license.is_some() {
        for name in CUSTOM {
            version.terms.remove(name);
        }
    }
    Ok(())
}

fn default_license(view: &mut View<'_>) -> Result<Option<i64>, ApiError> {
    let all: Vec<License> = stored::find(view, &LICENSE, &Query::filter(Expr::All))?;
    Ok(all.into_iter().find(|it| it.is_default).map(|it| it.id))
}

/// Returns the licence that a body names: an object with name or URI, or a text that is either.
fn named(view: &mut View<'_>, value: &Value) -> Result<License, ApiError> {
    let refuse = |text: String| Err(ApiError::bad_request(format!("Error parsing Json: {text}")));
    let (name, uri) = match value {
        Value::String(text) => (Some(text.as_str()), None),
        Value::Object(map) => {
            (map.get("name").and_then(Value::as_str), map.get("uri").and_then(Value::as_str))
        }
        _ => return refuse("Invalid or unsupported license section submitted.".to_owned()),
    };
    let found = match (name, uri) {
        (Some(name), _) => match licenses::by_name(view, name)? {
            Some(it) => Some(it),
            None => licenses::by_uri(view, name)?,
        },
        (None, Some(uri)) => licenses::by_uri(view, uri)?,
        (None, None) => return refuse("Invalid or unsupported license section submitted.".to_owned()),
    };
    let shown = name.or(uri).unwrap_or_default();
    match found {
        Some(license) if uri.is_some_and(|it| name.is_some() && it != license.uri) => {
            refuse(format!("Invalid or unsupported license: {shown}"))
        }
        Some(license) if license.active => Ok(license),
        Some(_) => refuse(format!("Invalid license: {shown}")),
        None => refuse(format!("Invalid or unsupported license: {shown}")),
    }
}

/// Adds licence and terms to a version's JSON: the licence or the custom terms, then the terms of access.
pub(crate) fn put_json(
    view: &mut View<'_>,
    version: &Version,
    map: &mut Map<String, Value>,
) -> Result<(), ApiError> {
    match version.license {
        Some(id) => {
            if let Some(license) = licenses::by_id(view, id)? {
                map.insert("license".into(), license_json(&license));
            }
        }
        None => {
            for name in CUSTOM {
                if let Some(text) = version.terms.get(name) {
                    map.insert(name.to_owned(), text.clone());
                }
            }
        }
    }
    for name in ACCESS {
        if let Some(text) = version.terms.get(name) {
            map.insert(name.to_owned(), text.clone());
        }
    }
    map.insert("fileAccessRequest".into(), version.file_access_request.into());
    Ok(())
}

/// Returns a licence as JSON for versions.
pub(crate) fn license_json(it: &License) -> Value {
    Value::Object(envelope::object(json!({
        "name": it.name,
        "uri": it.uri,
        "iconUri": it.icon_url,
        "rightsIdentifier": it.rights_identifier,
        "rightsIdentifierScheme": it.rights_identifier_scheme,
        "schemeUri": it.scheme_uri,
        "languageCode": it.language_code,
    })))
}

/// Returns whether a version has a licence or terms of use, so that it can be published.
pub(crate) fn are_valid(version: &Version) -> bool {
    version.license.is_some() || version.terms.contains_key("termsOfUse")
}
