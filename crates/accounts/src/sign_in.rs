//! Logins at other servers: a directory (LDAP, Active Directory) or an OpenID Connect provider identifies the user, and
//! the account here is updated from what it reports. Groups are those of the last login.
//!
//! A user who proves a name at such a server gets the account of that server's user, never an account that was created
//! here: an account with a password of its own, or one that belongs to another source, is refused, as its name could be
//! chosen freely there.

pub mod directory;
mod person;
pub mod provider;
mod sources;

use pinakes_store::{Expr, Query, Tenant, Txn, Value, View};
use serde_json::json;

use crate::accounts::{Accounts, Login};
use crate::entropy::Entropy;
use crate::error::{AccountsError, Result};
use crate::user::{self, User};

pub use self::person::Person;
pub use self::sources::Sources;

/// Returns how the user logged in last: `ldap`, `msad`, `oidc`, or `local` for a password kept here.
pub fn strategy(user: &User) -> &str {
    user.extra.get(SIGN_IN).and_then(|it| it.get("strategy")).and_then(|it| it.as_str()).unwrap_or("local")
}

/// The member of a user's `extra` that records its source.
const SIGN_IN: &str = "signIn";

fn source(user: &User) -> Option<&str> {
    user.extra.get(SIGN_IN)?.get("source")?.as_str()
}

impl Accounts {
    /// Returns the account of a person who logged in elsewhere, created or updated.
    ///
    /// Refused: an inactive account, and one of the same name that belongs to somebody else.
    pub async fn arrive(&self, tenant: &Tenant, person: Person) -> Result<Login> {
        let (now_ms, entropy) = (self.clock().now_ms(), self.entropy().clone());
        let written = tenant.write(move |txn| settle(txn, &person, now_ms, &entropy)).await;
        self.changed();
        Ok(match written {
            Ok((user, _)) if user.active => Login::Welcome(std::sync::Arc::new(user)),
            Ok(_) => Login::Refused,
            Err(AccountsError::NotTheirs(name)) => {
                tracing::warn!(
                    name,
                    "an external login has the name of an account that belongs to another login"
                );
                Login::Refused
            }
            Err(error) => return Err(error),
        })
    }
}

/// Finds or creates the user of a person and updates it.
///
/// Errors: [`AccountsError::NotTheirs`].
fn settle(txn: &mut Txn<'_>, person: &Person, now_ms: i64, entropy: &Entropy) -> Result<User> {
    let id = match known(txn, person)? {
        Some(user) => user.id,
        None => match crate::user::by_username(txn, &person.username)? {
            // An account without a password was created in advance for them.
            Some(user) if user.password.is_none() && source(&user).is_none() => user.id,
            Some(user) => return Err(AccountsError::NotTheirs(user.username)),
            None => {
                let user = User::new(person.username.clone(), now_ms, entropy);
                user::insert(txn, &user)?;
                user.id
            }
        },
    };
    let sign_in = json!({"strategy": person.strategy, "source": person.source});
    user::change(txn, &id, now_ms, |user| {
        user.external_id = Some(person.subject.clone());
        user.email.clone_from(&person.email);
        user.display_name.clone_from(&person.display_name);
        user.groups.clone_from(&person.groups);
        user.extra.insert(SIGN_IN.to_owned(), sign_in);
    })
}

fn known(view: &mut View<'_>, person: &Person) -> Result<Option<User>> {
    let is_subject = Expr::Is("externalId".into(), Value::Text(person.subject.clone()));
    let found = crate::user::find(view, &Query::filter(is_subject))?;
    Ok(found.into_iter().find(|it| source(it) == Some(person.source.as_str())))
}
