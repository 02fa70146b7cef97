//! The visitor's own account: the user, their API tokens, their password.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{Method, StatusCode};
use pinakes_accounts::{AccountsError, Login, NewToken, Password, Token, User, sign_in, token, user};
use pinakes_store::Weight;
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::Fields;
use crate::record::text;

/// Minimum length of a password that is set on a page, in characters.
pub(crate) const PASSWORD_CHARACTERS_MIN: usize = 8;
/// Maximum length of a token's name, in characters.
const NAME_CHARACTERS_MAX: usize = 100;
/// Maximum lifetime of a token that expires, in days.
const DAYS_MAX: i64 = 3650;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The outcome of a form, for the page that is shown again.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Outcome {
    /// Key of the sentence that reports a success.
    pub(crate) done_key: Option<&'static str>,
    /// Key of the sentence that reports a fault.
    pub(crate) fault_key: Option<&'static str>,
    /// The error of the accounts.
    pub(crate) refused: Option<String>,
    /// A new token, shown only this once.
    pub(crate) token: Option<String>,
}

impl Outcome {
    pub(crate) fn done(key: &'static str) -> Self {
        Self { done_key: Some(key), ..Self::default() }
    }

    pub(crate) fn fault(key: &'static str) -> Self {
        Self { fault_key: Some(key), ..Self::default() }
    }

    /// Converts an error that the visitor can correct; any other error is returned.
    pub(crate) fn of(error: AccountsError) -> Result<Self> {
        match error {
            AccountsError::UsernameTaken(_)
            | AccountsError::Username { .. }
            | AccountsError::Password { .. }
            | AccountsError::TokenNameTaken { .. }
            | AccountsError::UnknownToken(_)
            | AccountsError::Busy { .. }
            | AccountsError::TooManyFailures { .. } => {
                Ok(Self { refused: Some(error.to_string()), ..Self::default() })
            }
            other => Err(other.into()),
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        let is_wrong = self.fault_key.is_some() || self.refused.is_some();
        if is_wrong { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK }
    }
}

/// A token as a page shows it.
#[derive(Debug, Serialize)]
pub(crate) struct ShownToken {
    id: String,
    name: String,
    made: String,
    ends: Option<String>,
    is_over: bool,
    groups: Option<String>,
}

/// Returns the day of a time in milliseconds since 1970.
pub(crate) fn day(ms: i64) -> String {
    let at = time::OffsetDateTime::from_unix_timestamp(ms.div_euclid(1000));
    at.map(|it| it.date().to_string()).unwrap_or_default()
}

impl ShownToken {
    fn of(token: &Token, now_ms: i64) -> Self {
        Self {
            id: token.id.clone(),
            name: token.name.clone(),
            made: day(token.created_at_ms),
            ends: token.expires_at_ms.map(day),
            is_over: token.is_expired(now_ms),
            groups: token.groups.as_ref().map(|it| it.join(", ")),
        }
    }
}

impl Site {
    /// Returns the tokens of a user.
    pub(crate) async fn tokens_of(&self, visitor: &Visitor, user: &str) -> Result<Vec<ShownToken>> {
        let (id, now_ms) = (user.to_owned(), self.context.clock().now_ms());
        let found = visitor.db.read(Weight::Scan, move |view| token::of_user(view, &id)).await?;
        Ok(found.iter().map(|it| ShownToken::of(it, now_ms)).collect())
    }

    /// Creates the token that a form describes.
    pub(crate) async fn make_token(&self, visitor: &Visitor, user: &User, sent: &Fields) -> Result<Outcome> {
        let name = sent.text("name");
        if name.is_empty() || NAME_CHARACTERS_MAX < name.chars().count() {
            return Ok(Outcome::fault("fault_token_name"));
        }
        let days = match sent.text("days") {
            "" => None,
            text => match text.parse::<i64>() {
                Ok(days) if (1..=DAYS_MAX).contains(&days) => Some(days),
                _ => return Ok(Outcome::fault("fault_token_days")),
            },
        };
        let chosen: Vec<String> = sent
            .all("group")
            .filter(|it| user.groups.iter().any(|own| own == it))
            .map(str::to_owned)
            .collect();
        let now_ms = self.context.clock().now_ms();
        let new = NewToken {
            user: user.id.clone(),
            name: name.to_owned(),
            groups: if chosen.is_empty() { None } else { Some(chosen) },
            expires_at_ms: days.map(|it| now_ms + it * DAY_MS),
        };
        match self.context.accounts().create_token(visitor.db.tenant(), new).await {
            Ok((text, _)) => {
                let token = Some(text.reveal().to_owned());
                Ok(Outcome { token, ..Outcome::done("token_made") })
            }
            Err(error) => Outcome::of(error),
        }
    }

    /// Removes a token of this user; tokens of other users are not removed.
    pub(crate) async fn remove_token(&self, visitor: &Visitor, user: &str, id: &str) -> Result<Outcome> {
        let wanted = id.to_owned();
        let found = visitor.db.read(Weight::Point, move |view| token::by_id(view, &wanted)).await?;
        if found.is_none_or(|it| it.user != user) {
            return Err(SiteError::NotFound);
        }
        match self.context.accounts().remove_token(visitor.db.tenant(), id).await {
            Ok(_) => Ok(Outcome::done("token_removed")),
            Err(error) => Outcome::of(error),
        }
    }

    /// Sets a password that was typed twice.
    pub(crate) async fn set_password(&self, visitor: &Visitor, user: &str, sent: &Fields) -> Result<Outcome> {
        let new = sent.exact("new");
        if new.chars().count() < PASSWORD_CHARACTERS_MIN {
            return Ok(Outcome::fault("fault_password_short"));
        }
        if new != sent.exact("again") {
            return Ok(Outcome::fault("fault_password_again"));
        }
        let password = match Password::new(new) {
            Ok(password) => password,
            Err(error) => return Outcome::of(error),
        };
        match self.context.accounts().set_password(visitor.db.tenant(), user, password).await {
            Ok(_) => Ok(Outcome::done("password_changed")),
            Err(error) => Outcome::of(error),
        }
    }
}

/// `GET /site/account`
pub(crate) async fn page(State(site): State<Site>, visitor: Visitor) -> Result<Response> {
    let page = shown(&site, &visitor, Outcome::default()).await;
    site.shown(&visitor, page)
}

/// Returns the visitor's user as it is stored now; the session's copy may be older.
async fn own(visitor: &Visitor) -> Result<User> {
    let id = visitor.caller.user.as_ref().map(|it| it.id.clone()).ok_or(SiteError::SignIn)?;
    let found = visitor.db.read(Weight::Point, move |view| user::by_id(view, &id)).await?;
    found.ok_or(SiteError::SignIn)
}

async fn shown(site: &Site, visitor: &Visitor, outcome: Outcome) -> Result<Response> {
    let user = own(visitor).await?;
    let tokens = site.tokens_of(visitor, &user.id).await?;
    let deposits = match site.neighbour("dataverse") {
        Some(_) => site.depositor(visitor).await?.map(|it| text(&it, "identifier")),
        None => None,
    };
    let status = outcome.status();
    let page = json!({
        "title_key": "account", "username": user.username, "display_name": user.display_name,
        "email": user.email, "groups": visitor.caller.groups.to_vec(), "own_groups": user.groups,
        "strategy": sign_in::strategy(&user), "has_password": user.password.is_some(), "tokens": tokens,
        "deposits": deposits, "outcome": outcome, "password_min": PASSWORD_CHARACTERS_MIN,
    });
    site.page(visitor, status, "account.html", page)
}

/// `POST /site/account`
pub(crate) async fn act(State(site): State<Site>, visitor: Visitor, body: Body) -> Result<Response> {
    let page = acted(&site, &visitor, body).await;
    site.shown(&visitor, page)
}

async fn acted(site: &Site, visitor: &Visitor, body: Body) -> Result<Response> {
    let sent = site.form(visitor, body).await?;
    visitor.proven(&sent)?;
    let user = own(visitor).await?;
    let outcome = match sent.text("action") {
        "token" => site.make_token(visitor, &user, &sent).await?,
        "remove-token" => site.remove_token(visitor, &user.id, sent.text("token")).await?,
        "password" => password(site, visitor, &user, &sent).await?,
        "dataverse-token" => dataverse_token(site, visitor).await?,
        _ => return Err(SiteError::NotFound),
    };
    shown(site, visitor, outcome).await
}

/// Sets a new password for a visitor who knows the old one.
async fn password(site: &Site, visitor: &Visitor, user: &User, sent: &Fields) -> Result<Outcome> {
    let accounts = site.context.accounts();
    if user.password.is_none() {
        return Err(SiteError::Forbidden);
    }
    let Ok(old) = Password::new(sent.exact("old")) else { return Ok(Outcome::fault("fault_password_old")) };
    match accounts.log_in(visitor.db.tenant(), &user.username, old).await {
        Ok(Login::Welcome(_)) => site.set_password(visitor, &user.id, sent).await,
        Ok(Login::Refused) => Ok(Outcome::fault("fault_password_old")),
        Err(error) => Outcome::of(error),
    }
}

/// Creates a new API token of Dataverse, replacing the old one. Its text is contained in a sentence of the
/// answer.
async fn dataverse_token(site: &Site, visitor: &Visitor) -> Result<Outcome> {
    let said = site.ask(visitor, "dataverse", Method::POST, "/api/users/token/recreate", None).await?;
    let answer: Value = said.json().ok_or_else(|| SiteError::of_status(said.status))?;
    let sentence = text(&answer, "data/message");
    let token = sentence.split_whitespace().find(|it| it.len() == 36 && it.matches('-').count() == 4);
    let token = token.ok_or_else(|| SiteError::Damaged("Dataverse's answer names no token".to_owned()))?;
    Ok(Outcome { token: Some(token.to_owned()), ..Outcome::done("token_made") })
}
