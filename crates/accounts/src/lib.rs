//! Users, groups, tokens and passwords, one set for all dialects.
//!
//! Accounts are records of the store, per tenant: [`USER`] and [`TOKEN`]. The modules [`user`] and [`token`]
//! are plain functions for closures of the store; [`Accounts`] is the type that a server uses: it hashes
//! passwords on other threads, resolves tokens to a [`Caller`] and caches callers until an account changes.
//! What a caller may do is decided by the dialects; a caller only has groups and permissions.
//!
//! Time and randomness come from a [`Clock`] and an [`Entropy`], which are fixed in tests.

mod accounts;
mod caller;
mod callers;
mod clock;
mod entropy;
mod error;
pub mod functional;
pub mod jwt;
mod password;
mod resolve;
mod secret;
pub mod sign_in;
mod throttle;
pub mod token;
pub mod user;

pub use crate::user::{USER, User};
pub use accounts::{Accounts, Login, NewToken, Settings};
pub use caller::{Caller, GLOBAL_GROUP};
pub use callers::Resolved;
pub use clock::Clock;
pub use entropy::Entropy;
pub use error::{AccountsError, Result};
pub use password::{Password, PasswordChecks, PasswordHash, asked_from};
pub use secret::{Hidden, SECRET_FILE, Secret};
pub use token::{TOKEN, Token, TokenText};

use pinakes_store::Kind;

/// The kinds of accounts, to be declared with those of the dialects.
pub static KINDS: &[&Kind] = &[&USER, &TOKEN];
