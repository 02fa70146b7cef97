//! Mail-domain groups: users with a confirmed address of one of their domains are in the group.
//! `/api/admin/groups/domain`.

use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View, Weight};
use regex::RegexBuilder;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::users::User;
use crate::{envelope, groups, stored};

/// Mail-domain groups by number: body is a [`DomainGroup`].
pub(crate) static DOMAIN_GROUP: Kind = Kind {
    columns: &[
        Column::one("alias", Type::Text),
        Column::many("domains", Type::Text),
        Column::one("regex", Type::Boolean),
    ],
    indexes: &[Index::unique(&["alias"])],
    ..Kind::named("dataverse_domain_group")
};

/// Maximum number of domains, or patterns, per group.
const DOMAINS: usize = 200;
/// Maximum size of a compiled pattern, in bytes.
const PATTERN_BYTES: usize = 1 << 16;
/// Prefix of these groups as assignees.
pub(super) const PREFIX: &str = "&mail/";

/// A mail-domain group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DomainGroup {
    /// Number.
    id: i64,
    /// Short name: the group is `&mail/{alias}`.
    alias: String,
    /// Name.
    pub name: String,
    /// Its purpose.
    #[serde(default)]
    description: String,
    /// Domains in lower case; patterns for whole domains if `regex` is set.
    domains: Vec<String>,
    /// Whether `domains` are patterns.
    #[serde(default)]
    regex: bool,
}

impl DomainGroup {
    fn identifier(&self) -> String {
        format!("{PREFIX}{}", self.alias)
    }

    fn json(&self) -> Value {
        json!({
            "identifier": self.identifier(), "id": self.id, "alias": self.alias, "name": self.name,
            "description": self.description, "domains": self.domains, "regex": self.regex,
        })
    }

    fn matches(&self, domain: &str) -> bool {
        self.domains.iter().any(|it| pattern(it).is_ok_and(|it| it.is_match(domain)))
    }
}

/// Compiles a pattern that must match whole domains. Errors: an invalid pattern, or one that is too large.
fn pattern(text: &str) -> Result<regex::Regex, regex::Error> {
    RegexBuilder::new(&format!("^(?:{text})$")).case_insensitive(true).size_limit(PATTERN_BYTES).build()
}

/// Returns the groups that a user is in. Unconfirmed addresses do not count: they may be anybody's.
pub(super) fn of(view: &mut View<'_>, user: Option<&User>) -> Result<Vec<String>, ApiError> {
    let Some(user) = user.filter(|it| it.email_last_confirmed.is_some()) else { return Ok(Vec::new()) };
    let Some((_, domain)) = user.email.rsplit_once('@') else { return Ok(Vec::new()) };
    let domain = domain.to_lowercase();
    let is_pattern = Expr::Is("regex".into(), true.into());
    let named = Expr::Is("domains".into(), domain.as_str().into());
    let query = Query::filter(Expr::Or(vec![named, is_pattern]));
    let found: Vec<DomainGroup> = stored::find(view, &DOMAIN_GROUP, &query)?;
    Ok(found.iter().filter(|it| !it.regex || it.matches(&domain)).map(DomainGroup::identifier).collect())
}

/// Returns the group with that short name.
pub(super) fn by_alias(view: &mut View<'_>, alias: &str) -> Result<Option<DomainGroup>, ApiError> {
    let found = view.first(&DOMAIN_GROUP, Expr::Is("alias".into(), alias.into()))?;
    found.as_ref().map(stored::parsed).transpose()
}

fn named(view: &mut View<'_>, alias: &str) -> Result<DomainGroup, ApiError> {
    by_alias(view, alias)?.ok_or_else(|| ApiError::not_found(format!("Group {alias} not found")))
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/admin/groups/domain", list)
        .post("/admin/groups/domain", create)
        .put("/admin/groups/domain/{alias}", replace)
        .get("/admin/groups/domain/{alias}", show)
        .delete("/admin/groups/domain/{alias}", delete)
}

async fn list(call: Call) -> Answer {
    let all = |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let all: Vec<DomainGroup> = stored::find(view, &DOMAIN_GROUP, &Query::filter(Expr::All))?;
        Ok(all.iter().map(DomainGroup::json).collect())
    };
    envelope::ok(call.db().read(Weight::Scan, all).await?)
}

/// Parses a group without its number. Errors: 400 that names the invalid part.
fn read(body: &Map<String, Value>) -> Result<DomainGroup, ApiError> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (alias, name) = (text("alias"), text("name"));
    if name.trim().is_empty() {
        return Err(ApiError::bad_request("Field 'name' is mandatory"));
    }
    if alias.is_empty() || !groups::is_alias(&alias) {
        return Err(ApiError::bad_request("alias must be letters, digits, '-' and '_'"));
    }
    let is_pattern = body.get("regex").and_then(Value::as_bool).unwrap_or(false);
    let given = body.get("domains").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if given.is_empty() || DOMAINS < given.len() {
        return Err(ApiError::bad_request(format!("domains must be a list of 1 to {DOMAINS} domains")));
    }
    let mut domains = Vec::new();
    for it in given {
        let text = it.as_str().unwrap_or_default();
        let is_domain = text.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.'));
        match is_pattern {
            true => {
                pattern(text).map_err(|error| {
                    ApiError::bad_request(format!("{text:?} is no pattern of domains: {error}"))
                })?;
                domains.push(text.to_owned());
            }
            false if !text.is_empty() && is_domain => domains.push(text.to_lowercase()),
            false => return Err(ApiError::bad_request(format!("{it} is no domain"))),
        }
    }
    Ok(DomainGroup { id: 0, alias, name, description: text("description"), domains, regex: is_pattern })
}

async fn create(mut call: Call) -> Answer {
    let group = read(&call.object().await?)?;
    let ids = call.ids(1).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<DomainGroup, ApiError> {
        let mut ids = ids;
        if by_alias(txn, &group.alias)?.is_some() {
            return Err(ApiError::conflict(format!("Group {} already exists", group.alias)));
        }
        let group = DomainGroup { id: ids.next()?, ..group.clone() };
        stored::insert(txn, &DOMAIN_GROUP, &group.id.to_string(), &group)?;
        Ok(group)
    };
    let group = call.db().write(write).await?;
    envelope::created(&format!("/admin/groups/domain/{}", group.alias), group.json())
}

async fn replace(mut call: Call) -> Answer {
    let alias = call.param("alias").to_owned();
    let mut body = call.object().await?;
    body.insert("alias".to_owned(), alias.into());
    let group = read(&body)?;
    let write = move |txn: &mut Txn<'_>| -> Result<DomainGroup, ApiError> {
        let before = named(txn, &group.alias)?;
        let group = DomainGroup { id: before.id, ..group.clone() };
        stored::put(txn, &DOMAIN_GROUP, &group.id.to_string(), &group)?;
        Ok(group)
    };
    let group = call.db().write(write).await?;
    envelope::created(&format!("/admin/groups/domain/{}", group.alias), group.json())
}

async fn show(call: Call) -> Answer {
    let alias = call.param("alias").to_owned();
    envelope::ok(call.db().read(Weight::Point, move |view| named(view, &alias)).await?.json())
}

async fn delete(call: Call) -> Answer {
    let alias = call.param("alias").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let group = named(txn, &alias)?;
        groups::forget(txn, &group.identifier())?;
        txn.delete(&DOMAIN_GROUP, &group.id.to_string())?;
        Ok(group.alias)
    };
    let alias = call.db().write(write).await?;
    envelope::message(format!("Group {alias} deleted."))
}
