//! SciCat's file of functional accounts: a JSON list of `{username, email, password, role, global}`, where
//! `role` is a string or a list (`functionalAccounts.json` of a SciCat backend, v4 and v5).
//!
//! One invalid entry does not prevent the others from being read; the file takes precedence over what is
//! stored.

use serde::Deserialize;
use serde_json::Value;

use crate::error::{AccountsError, Result};
use crate::password::Password;

/// An entry of the file.
#[derive(Debug, Clone)]
pub struct FunctionalAccount {
    /// The login name of the account.
    pub username: String,
    /// Mail address.
    pub email: Option<String>,
    /// The password; without one the account cannot log in with a password.
    pub password: Option<Password>,
    /// Roles, which are groups here.
    pub groups: Vec<String>,
    /// Whether the account belongs to `globalaccess`.
    pub global: bool,
}

/// An entry that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Position in the list, from 0.
    pub entry: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// The outcome of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Number of created users.
    pub n_created: usize,
    /// Number of changed users.
    pub n_changed: usize,
    /// Number of users that already matched the file.
    pub n_same: usize,
    /// Entries that were skipped.
    pub problems: Vec<Problem>,
}

#[derive(Deserialize)]
struct Entry {
    username: String,
    #[serde(default)]
    email: Option<String>,
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    role: Option<Roles>,
    #[serde(default)]
    global: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Roles {
    One(String),
    Many(Vec<String>),
}

/// Parses the file. Fails only if it is not a JSON list at all.
pub fn parse(text: &[u8]) -> Result<(Vec<FunctionalAccount>, Vec<Problem>)> {
    let entries: Vec<Value> =
        serde_json::from_slice(text).map_err(|error| AccountsError::FunctionalAccounts(error.to_string()))?;
    let (mut accounts, mut problems) = (Vec::new(), Vec::new());
    for (entry, value) in entries.into_iter().enumerate() {
        match account(value) {
            Ok(it) => accounts.push(it),
            Err(reason) => problems.push(Problem { entry, reason }),
        }
    }
    Ok((accounts, problems))
}

fn account(value: Value) -> Result<FunctionalAccount, String> {
    let entry = Entry::deserialize(value).map_err(|error| error.to_string())?;
    let password = entry.password.map(Password::new).transpose().map_err(|error| error.to_string())?;
    let groups = match entry.role {
        None => Vec::new(),
        Some(Roles::One(role)) => vec![role],
        Some(Roles::Many(roles)) => roles,
    };
    let global = entry.global.unwrap_or(false);
    Ok(FunctionalAccount { username: entry.username, email: entry.email, password, groups, global })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn roles_are_a_string_or_a_list_and_bad_entries_are_left_out() -> Result<()> {
        let (accounts, problems) = parse(
            br#"[{"username":"admin","password":"2jf70TPNZsS","email":"a@your.site","role":"admin","global":false},
                 {"username":"u2","role":["g2","g3"],"global":true},
                 {"password":"x"}, 7, {"username":"u3","password":""}]"#,
        )?;
        assert_eq!(accounts.len(), 2);
        assert_eq!(
            (accounts[0].groups.as_slice(), accounts[0].global),
            (["admin".to_owned()].as_slice(), false)
        );
        assert_eq!((accounts[1].groups.len(), accounts[1].global), (2, true));
        assert_eq!(problems.iter().map(|it| it.entry).collect::<Vec<_>>(), [2, 3, 4]);
        assert!(problems[0].reason.contains("username"), "{}", problems[0].reason);
        Ok(())
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        for bad in ["", "{}", "null", "[", "\u{feff}[]"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }
    }
}
