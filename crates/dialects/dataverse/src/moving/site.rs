//! Import of objects of the installation (tables of metadata blocks, licences, types, roles) and of users.

use pinakes_accounts::AccountsError;
use pinakes_store::{Expr, Kind, Query, StoreError, Txn, View};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::import::{In, Line};
use super::numbers::Inward;
use super::shape::{self, Shape};
use super::{MovingError, SITE, USERS};
use crate::app::Dataverse;
use crate::blocks::tsv;
use crate::dataset_types::{DATASET_TYPE, DatasetType};
use crate::error::ApiError;
use crate::ids::{FIRST, set_aside};
use crate::licenses::{self, LICENSE, License};
use crate::registry::BLOCK_SOURCE;
use crate::roles::{self, ROLE, Role};
use crate::stored;
use crate::users::builtin::is_username;
use crate::users::{self, USER, User};

/// Deserialises a value of a line. Errors: 400.
pub(super) fn read<T: DeserializeOwned>(value: Value) -> Result<T, ApiError> {
    serde_json::from_value(value).map_err(|error| ApiError::bad_request(error.to_string()))
}

/// Inserts a new record. Errors: 400 if its number, or a unique value, is taken.
pub(super) fn fresh<T: Serialize>(
    txn: &mut Txn<'_>,
    kind: &'static Kind,
    id: &str,
    value: &T,
) -> Result<(), ApiError> {
    let body = serde_json::to_value(value).map_err(|error| ApiError::bad_request(error.to_string()))?;
    if txn.has(kind, id)? {
        return Err(ApiError::bad_request(format!("{id} of {} comes twice", kind.name)));
    }
    match txn.insert(kind, id, &body) {
        Err(StoreError::Duplicate { column, value, .. }) => {
            Err(ApiError::bad_request(format!("{column} {value} is taken by another one")))
        }
        other => Ok(other.map(drop)?),
    }
}

impl In<'_> {
    /// Imports blocks, licences, types and roles. Those whose names exist already stay as they are.
    pub(super) fn site(&mut self) -> Result<(), MovingError> {
        let n = self.each_line(SITE, |it, line| {
            let said: Map<String, Value> = match line.parsed() {
                Ok(said) => said,
                Err(reason) => {
                    it.leave_out(SITE, line.number, "", reason);
                    return Ok(());
                }
            };
            for (sort, value) in said {
                let (inward, sort_of_it) = (it.inward.clone(), sort.clone());
                let write = move |txn: &mut Txn<'_>| one_of_site(txn, &inward, &sort_of_it, value.clone());
                match it.tenant.write_blocking(write) {
                    Ok(made) => it.moved.stored.site += u64::from(made),
                    Err(error) => it.blame(SITE, line.number, &sort, error)?,
                }
            }
            Ok(())
        })?;
        self.compare(SITE, "lines", n, self.manifest.counts.site);
        Ok(())
    }

    /// Imports users. A user whose name exists already is considered the same user.
    pub(super) fn users(&mut self) -> Result<(), MovingError> {
        let n = self.each_line(USERS, Self::user)?;
        self.compare(USERS, "users", n, self.manifest.counts.users);
        Ok(())
    }

    fn user(&mut self, line: Line) -> Result<(), MovingError> {
        let value: Value = match line.parsed() {
            Ok(value) => value,
            Err(reason) => {
                self.leave_out(USERS, line.number, "", reason);
                return Ok(());
            }
        };
        let name = value["name"].as_str().unwrap_or_default().to_owned();
        let (inward, app) = (self.inward.clone(), self.app.clone());
        let write = move |txn: &mut Txn<'_>| one_user(txn, &app, &inward, value.clone());
        match self.tenant.write_blocking(write) {
            Ok(Came::Made) => self.moved.stored.users += 1,
            Ok(Came::WithoutAccount) => {
                self.moved.stored.users += 1;
                let what = "an account of that name belongs to somebody with another mail address: nobody can sign in as this user";
                self.tell(USERS, line.number, &name, what);
            }
            Ok(Came::There) => {}
            Err(error) => self.blame(USERS, line.number, &name, error)?,
        }
        Ok(())
    }
}

/// Imports one object of the installation. Returns whether it was created; an existing one with the same name is
/// considered the same.
fn one_of_site(txn: &mut Txn<'_>, inward: &Inward, sort: &str, value: Value) -> Result<bool, ApiError> {
    let shape: Shape = match sort {
        "block" => shape::BLOCK,
        "license" => shape::LICENSE,
        "type" => shape::TYPE,
        "role" => shape::ROLE,
        _ => return Err(ApiError::bad_request("is of no sort that is read; use a newer pinakes")),
    };
    let value = inward.numbered(txn, value, shape)?;
    match sort {
        "block" => block(txn, value),
        "license" => {
            let license: License = read(value)?;
            if let Some(known) = licenses::by_name(txn, &license.name)? {
                let license = License { id: known.id, ..license };
                let is_changed = inward.is_new && license != known;
                if is_changed {
                    stored::put(txn, &LICENSE, &license.id.to_string(), &license)?;
                }
                return Ok(is_changed);
            }
            // There must be only one default.
            let license = License { is_default: license.is_default && inward.is_new, ..license };
            fresh(txn, &LICENSE, &license.id.to_string(), &license).map(|()| true)
        }
        "type" => {
            let found: DatasetType = read(value)?;
            if txn.first(&DATASET_TYPE, Expr::Is("name".into(), found.name.as_str().into()))?.is_some() {
                return Ok(false);
            }
            fresh(txn, &DATASET_TYPE, &found.id.to_string(), &found).map(|()| true)
        }
        _ => {
            let role: Role = read(value)?;
            if roles::by_alias(txn, &role.alias)?.is_some() {
                return Ok(false);
            }
            fresh(txn, &ROLE, &role.id.to_string(), &role).map(|()| true)
        }
    }
}

/// Stores a table of a metadata block, or a changed property of a field. Returns whether it was new.
fn block(txn: &mut Txn<'_>, value: Value) -> Result<bool, ApiError> {
    if let Some(text) = value["tsv"].as_str() {
        tsv::parse(text).map_err(|error| ApiError::bad_request(error.to_string()))?;
    }
    let order = value["order"].as_i64().ok_or_else(|| ApiError::bad_request("a block has no order"))?;
    for record in txn.find(&BLOCK_SOURCE, &Query::filter(Expr::All))? {
        let known = record.json()?;
        if known["tsv"] == value["tsv"] && known["field"] == value["field"] {
            return Ok(false);
        }
    }
    fresh(txn, &BLOCK_SOURCE, &order.to_string(), &value).map(|()| true)
}

enum Came {
    Made,
    /// The account of that name belongs to somebody else.
    WithoutAccount,
    There,
}

/// Creates a user with an account of the same name and without password; uses the existing account if its mail address
/// is the same.
fn one_user(txn: &mut Txn<'_>, app: &Dataverse, inward: &Inward, value: Value) -> Result<Came, ApiError> {
    let user: User = read(inward.numbered(txn, value, shape::USER)?)?;
    if !is_username(&user.name) {
        return Err(ApiError::bad_request(
            "the name cannot be used: it takes 2 to 60 letters, digits, '.', '_', '-' or '@'",
        ));
    }
    if users::by_name(txn, &user.name)?.is_some() {
        return Ok(Came::There);
    }
    if let Some(other) = users::by_email(txn, &user.email)? {
        return Err(ApiError::bad_request(format!(
            "the mail address {} is that of the user {}; change one of them, and import again",
            user.email, other.name
        )));
    }
    let account = account_of(txn, app, &user)?;
    let came = if account.is_some() { Came::Made } else { Came::WithoutAccount };
    // Numbers below those of objects are of users that the server created itself.
    let id = if user.id < FIRST { set_aside(txn, 1)? } else { user.id };
    let user = User { id, account, superuser: false, rate_limit_tier: 1, ..user };
    fresh(txn, &USER, &user.id.to_string(), &user)?;
    Ok(came)
}

fn account_of(txn: &mut Txn<'_>, app: &Dataverse, user: &User) -> Result<Option<String>, ApiError> {
    if let Some(account) = pinakes_accounts::user::by_username(txn, &user.name)? {
        let is_same = account.email.as_deref().is_some_and(|it| it.eq_ignore_ascii_case(&user.email));
        let is_free = is_free(txn, &account.id)?;
        return Ok(Some(account.id).filter(|_| is_same && is_free && !user.email.is_empty()));
    }
    let mut account = app.context.accounts().new_user(user.name.clone());
    (account.email, account.first_name, account.last_name) =
        (Some(user.email.clone()), Some(user.first_name.clone()), Some(user.last_name.clone()));
    match pinakes_accounts::user::insert(txn, &account) {
        Err(AccountsError::UsernameTaken(_)) => Ok(None),
        other => Ok(other.map(|()| Some(account.id))?),
    }
}

fn is_free(view: &mut View<'_>, account: &str) -> Result<bool, ApiError> {
    Ok(users::by_account(view, account)?.is_none())
}
