//! Account management, for members of `site.account_groups` in the default tenant. The accounts are those of that
//! tenant.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use pinakes_accounts::{Password, User, sign_in, user};
use pinakes_store::{Direction, Expr, Query, Value as Stored, Weight};
use serde::Serialize;
use serde_json::json;

use crate::account::{Outcome, PASSWORD_CHARACTERS_MIN, day};
use crate::app::{Site, Visitor};
use crate::deposit::gone_on;
use crate::error::{Result, SiteError};
use crate::fields::{Fields, encoded};
use crate::record::Link;

/// Number of accounts on one page.
const PAGE: u64 = 50;
/// The last page that can be requested.
const PAGES_MAX: u64 = 10_000;

/// An account in the list.
#[derive(Serialize)]
struct Row {
    link: Link,
    email: String,
    groups: String,
    strategy: String,
    is_active: bool,
}

impl Site {
    /// Says whether the visitor may manage accounts.
    pub(crate) fn manages_accounts(&self, visitor: &Visitor) -> bool {
        visitor.db.tenant().name() == self.context.tenants().default
            && !visitor.caller.is_anonymous()
            && visitor.caller.is_in_any(&self.settings.account_groups)
    }

    fn expect_manager(&self, visitor: &Visitor) -> Result<()> {
        match self.manages_accounts(visitor) {
            true => Ok(()),
            false if visitor.caller.is_anonymous() => Err(SiteError::SignIn),
            false => Err(SiteError::Forbidden),
        }
    }
}

/// `GET /site/users?q=&page=`
pub(crate) async fn list(State(site): State<Site>, visitor: Visitor, fields: Fields) -> Result<Response> {
    let page = listed(&site, &visitor, &fields, Outcome::default()).await;
    site.shown(&visitor, page)
}

async fn listed(site: &Site, visitor: &Visitor, fields: &Fields, outcome: Outcome) -> Result<Response> {
    site.expect_manager(visitor)?;
    let words = fields.text("q").to_owned();
    let number = fields.text("page").parse::<u64>().unwrap_or(1).clamp(1, PAGES_MAX);
    let filter = match words.as_str() {
        "" => Expr::All,
        it => Expr::Or(vec![
            Expr::Prefix("username".into(), it.to_owned()),
            Expr::Is("email".into(), Stored::Text(it.to_owned())),
            Expr::Is("groups".into(), Stored::Text(it.to_owned())),
        ]),
    };
    let query = Query::filter(filter.clone()).sorted("username", Direction::Ascending);
    let query = query.window((number - 1) * PAGE, PAGE);
    let read = move |view: &mut pinakes_store::View<'_>| {
        Ok::<_, pinakes_accounts::AccountsError>((user::find(view, &query)?, user::count(view, &filter)?))
    };
    let (found, n_all) = visitor.db.read(Weight::Scan, read).await?;
    let row = |it: &User| Row {
        link: Link::to(it.username.clone(), format!("/site/users/{}", encoded(&it.id))),
        email: it.email.clone().unwrap_or_default(),
        groups: it.groups.join(", "),
        strategy: sign_in::strategy(it).to_owned(),
        is_active: it.active,
    };
    let rows: Vec<Row> = found.iter().map(row).collect();
    let page_at = |n: u64| format!("/site/users?q={}&page={n}", encoded(&words));
    let next = (number * PAGE < n_all && number < PAGES_MAX).then(|| page_at(number + 1));
    let status = outcome.status();
    let (new, is_wrong) = (fields.text("username"), outcome.fault_key.is_some() || outcome.refused.is_some());
    let page = json!({
        "title_key": "users", "q": words, "rows": rows, "n_all": n_all, "next": next,
        "previous": (1 < number).then(|| page_at(number - 1)), "outcome": outcome,
        "new": if is_wrong { json!({"username": new, "email": fields.text("email"), "groups": fields.text("groups")}) }
               else { json!({"username": "", "email": "", "groups": ""}) },
        "password_min": PASSWORD_CHARACTERS_MIN,
    });
    site.page(visitor, status, "users.html", page)
}

/// `POST /site/users`: creates an account.
pub(crate) async fn create(State(site): State<Site>, visitor: Visitor, body: Body) -> Result<Response> {
    let page = created(&site, &visitor, body).await;
    site.shown(&visitor, page)
}

async fn created(site: &Site, visitor: &Visitor, body: Body) -> Result<Response> {
    let sent = site.form(visitor, body).await?;
    visitor.proven(&sent)?;
    site.expect_manager(visitor)?;
    let password = match sent.exact("password") {
        "" => None,
        text if text.chars().count() < PASSWORD_CHARACTERS_MIN => {
            return listed(site, visitor, &sent, Outcome::fault("fault_password_short")).await;
        }
        text => match Password::new(text) {
            Ok(password) => Some(password),
            Err(error) => return listed(site, visitor, &sent, Outcome::of(error)?).await,
        },
    };
    let accounts = site.context.accounts();
    let mut new = accounts.new_user(sent.text("username"));
    new.email = filled(sent.text("email"));
    new.groups = words(sent.text("groups"));
    match accounts.create(visitor.db.tenant(), new, password).await {
        Ok(user) => Ok(gone_on(&format!("/site/users/{}", encoded(&user.id)))),
        Err(error) => listed(site, visitor, &sent, Outcome::of(error)?).await,
    }
}

fn filled(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|it| !it.is_empty())
}

/// Returns the distinct names in a text, separated by spaces, commas or line breaks.
fn words(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in text.split([' ', ',', '\n', '\r', '\t']).filter(|it| !it.is_empty()) {
        if !out.iter().any(|it| it == word) {
            out.push(word.to_owned());
        }
    }
    out
}

/// `GET /site/users/{id}`
pub(crate) async fn page(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response> {
    let page = shown(&site, &visitor, &id, Outcome::default()).await;
    site.shown(&visitor, page)
}

async fn shown(site: &Site, visitor: &Visitor, id: &str, outcome: Outcome) -> Result<Response> {
    site.expect_manager(visitor)?;
    let it = found(visitor, id).await?;
    let tokens = site.tokens_of(visitor, &it.id).await?;
    let status = outcome.status();
    let page = json!({
        "title_key": "users", "id": it.id, "username": it.username, "display_name": it.display_name,
        "email": it.email, "groups": it.groups.join("\n"), "permissions": it.permissions.join("\n"),
        "is_global": it.global, "is_active": it.active, "strategy": sign_in::strategy(&it),
        "has_password": it.password.is_some(), "made": day(it.created_at_ms), "changed": day(it.updated_at_ms),
        "tokens": tokens, "outcome": outcome, "is_self": is_self(visitor, &it.id),
        "password_min": PASSWORD_CHARACTERS_MIN,
    });
    site.page(visitor, status, "user.html", page)
}

async fn found(visitor: &Visitor, id: &str) -> Result<User> {
    let wanted = id.to_owned();
    let found = visitor.db.read(Weight::Point, move |view| user::by_id(view, &wanted)).await?;
    found.ok_or(SiteError::NotFound)
}

fn is_self(visitor: &Visitor, id: &str) -> bool {
    visitor.caller.user.as_ref().is_some_and(|it| it.id == id)
}

/// `POST /site/users/{id}`
pub(crate) async fn act(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response> {
    let page = acted(&site, &visitor, &id, body).await;
    site.shown(&visitor, page)
}

async fn acted(site: &Site, visitor: &Visitor, id: &str, body: Body) -> Result<Response> {
    let sent = site.form(visitor, body).await?;
    visitor.proven(&sent)?;
    site.expect_manager(visitor)?;
    let it = found(visitor, id).await?;
    let outcome = match sent.text("action") {
        "save" => save(site, visitor, &it, &sent).await?,
        "password" => site.set_password(visitor, &it.id, &sent).await?,
        "remove-token" => site.remove_token(visitor, &it.id, sent.text("token")).await?,
        _ => return Err(SiteError::NotFound),
    };
    shown(site, visitor, id, outcome).await
}

/// Applies the form to an account. Visitors cannot lock themselves out: their own account stays active and keeps a
/// group that may manage accounts.
async fn save(site: &Site, visitor: &Visitor, it: &User, sent: &Fields) -> Result<Outcome> {
    let (is_active, groups) = (sent.text("active") == "yes", words(sent.text("groups")));
    let stays = is_active && groups.iter().any(|it| site.settings.account_groups.contains(it));
    let held_by_all = site.context.accounts().everyone();
    let is_managing_anyway = site.settings.account_groups.iter().any(|it| held_by_all.contains(it));
    if is_self(visitor, &it.id) && !(stays || is_active && is_managing_anyway) {
        return Ok(Outcome::fault("fault_own_account"));
    }
    let (email, display_name) = (filled(sent.text("email")), filled(sent.text("display_name")));
    let (permissions, is_global) = (words(sent.text("permissions")), sent.text("global") == "yes");
    let change = move |user: &mut User| {
        user.email = email.clone();
        user.display_name = display_name.clone();
        user.groups = groups.clone();
        user.permissions = permissions.clone();
        (user.active, user.global) = (is_active, is_global);
    };
    match site.context.accounts().change(visitor.db.tenant(), &it.id, change).await {
        Ok(_) => Ok(Outcome::done("account_saved")),
        Err(error) => Outcome::of(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_once_however_they_are_divided() {
        assert_eq!(words(" a, b\r\na  c,,"), ["a", "b", "c"]);
        assert!(words("  ").is_empty());
        assert_eq!((filled(""), filled("x")), (None, Some("x".to_owned())));
    }
}
