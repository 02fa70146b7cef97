//! Resolves API tokens and web tokens to callers, using the records that they name.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use pinakes_store::{Tenant, View, Weight};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::accounts::Accounts;
use crate::caller::Caller;
use crate::callers::{Kept, Key, KeyRef, Proof, Resolved};
use crate::error::Result;
use crate::jwt::{self, Verified};
use crate::token;
use crate::user::User;

impl Accounts {
    /// Returns the caller of a token: an API token (`pnk_…`) or a JSON web token of this server.
    ///
    /// A web token names its user by the first of the claims `_id` (id), `user_id` (UUID) and `sub` (name).
    /// It is refused if it has an `aud` (issued for another purpose, such as refreshing) or a `tenant` other
    /// than this one. Groups are always the user's current ones, never those of the token.
    ///
    /// Needs no store access for a token that was used within the last second, two point reads otherwise.
    pub async fn resolve(&self, tenant: &Tenant, token: &str) -> Result<Resolved> {
        let key = KeyRef { tenant: tenant.name(), token };
        let now_ms = self.clock().now_ms();
        if let Some(kept) = self.callers().kept.get(&key) {
            if kept.expires_at_ms.is_some_and(|end_ms| end_ms <= now_ms) {
                return Ok(Resolved::Expired);
            }
            if kept.is_fresh(self.callers(), now_ms) || self.still_holds(tenant, &kept, now_ms).await? {
                return Ok(Resolved::Caller(kept.caller.clone()));
            }
            self.callers().kept.remove(&key);
        }
        self.look_up(tenant, token, now_ms).await
    }

    async fn still_holds(&self, tenant: &Tenant, kept: &Arc<Kept>, now_ms: i64) -> Result<bool> {
        let changes = self.callers().changes.load(Ordering::Acquire);
        let proof = kept.proof.clone();
        let holds = tenant.read(Weight::Point, move |view| proof.holds(view)).await?;
        if holds {
            kept.changes.store(changes, Ordering::Relaxed);
            kept.checked_at_ms.store(now_ms, Ordering::Relaxed);
        }
        Ok(holds)
    }

    async fn look_up(&self, tenant: &Tenant, token: &str, now_ms: i64) -> Result<Resolved> {
        let changes = self.callers().changes.load(Ordering::Acquire);
        let found = if token::is_api_token(token) {
            self.look_up_api_token(tenant, token, now_ms).await?
        } else {
            self.look_up_web_token(tenant, token).await?
        };
        let (caller, proof, expires_at_ms) = match found {
            Found::Caller(caller, proof, expires_at_ms) => (caller, proof, expires_at_ms),
            Found::Not(resolved) => return Ok(resolved),
        };
        let kept = Kept {
            caller: caller.clone(),
            proof,
            expires_at_ms,
            changes: AtomicU64::new(changes),
            checked_at_ms: AtomicI64::new(now_ms),
        };
        let key = Key { tenant: tenant.name().into(), token: token.into() };
        self.callers().kept.insert(key, Arc::new(kept));
        Ok(Resolved::Caller(caller))
    }

    async fn look_up_api_token(&self, tenant: &Tenant, text: &str, now_ms: i64) -> Result<Found> {
        let id = token::id_of(text);
        let read = tenant.read(Weight::Point, move |view| -> Result<_> {
            let Some((token, token_sequence)) = token::with_sequence(view, &id)? else { return Ok(None) };
            let user = crate::user::with_sequence(view, &token.user)?;
            Ok(user.map(|(user, user_sequence)| (token, token_sequence, user, user_sequence)))
        });
        let Some((token, token_sequence, user, user_sequence)) = read.await? else {
            return Ok(Found::Not(Resolved::Invalid));
        };
        if !user.active {
            return Ok(Found::Not(Resolved::Invalid));
        }
        if token.is_expired(now_ms) {
            return Ok(Found::Not(Resolved::Expired));
        }
        let proof = Proof { user: (user.id.clone(), user_sequence), token: Some((token.id, token_sequence)) };
        let caller = Caller::of(user, self.everyone());
        let caller = match &token.groups {
            Some(groups) => caller.restricted(groups),
            None => caller,
        };
        Ok(Found::Caller(caller, proof, token.expires_at_ms))
    }

    /// Says whether the token was signed for another tenant, the one that it names.
    fn is_of_another(&self, tenant: &Tenant, text: &str) -> bool {
        let other = jwt::claimed_tenant(text).filter(|it| it != tenant.name());
        other.is_some_and(|it| !matches!(self.verify(&it, text), Verified::Invalid(_)))
    }

    async fn look_up_web_token(&self, tenant: &Tenant, text: &str) -> Result<Found> {
        let claims = match self.verify(tenant.name(), text) {
            Verified::Valid(claims) => claims,
            Verified::Expired(_) => return Ok(Found::Not(Resolved::Expired)),
            Verified::Invalid(_) if self.is_of_another(tenant, text) => {
                let other = jwt::claimed_tenant(text).unwrap_or_default();
                return Ok(Found::Not(Resolved::OtherTenant(other)));
            }
            Verified::Invalid(reason) => {
                tracing::debug!(reason, "token refused");
                return Ok(Found::Not(Resolved::Invalid));
            }
        };
        if let Some(other) = claims.get("tenant").and_then(Value::as_str).filter(|it| *it != tenant.name()) {
            return Ok(Found::Not(Resolved::OtherTenant(other.to_owned())));
        }
        let Some(subject) = Subject::of(&claims) else { return Ok(Found::Not(Resolved::Invalid)) };
        let read = tenant.read(Weight::Point, move |view| subject.find(view));
        let Some((user, sequence)) = read.await?.filter(|(user, _)| user.active) else {
            return Ok(Found::Not(Resolved::Invalid));
        };
        let proof = Proof { user: (user.id.clone(), sequence), token: None };
        let expires_at_ms = jwt::expiry_s(&claims).map(|end_s| end_s.saturating_mul(1000));
        let caller = Caller { claims: Some(Arc::new(claims)), ..Caller::of(user, self.everyone()) };
        Ok(Found::Caller(caller, proof, expires_at_ms))
    }
}

pub(crate) enum Found {
    Caller(Caller, Proof, Option<i64>),
    Not(Resolved),
}

/// How a web token identifies its user.
pub(crate) enum Subject {
    Id(String),
    Uuid(Uuid),
    Name(String),
}

impl Subject {
    fn of(claims: &Map<String, Value>) -> Option<Self> {
        if claims.contains_key("aud") {
            return None;
        }
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        match (text("_id"), text("user_id"), text("sub")) {
            (Some(id), _, _) => Some(Self::Id(id.to_owned())),
            (_, Some(uuid), _) => Uuid::parse_str(uuid).ok().map(Self::Uuid),
            (_, _, Some(name)) => Some(Self::Name(name.to_owned())),
            _ => None,
        }
    }

    fn find(&self, view: &mut View<'_>) -> Result<Option<(User, u64)>> {
        let id = match self {
            Self::Id(id) => Some(id.clone()),
            Self::Uuid(uuid) => crate::user::by_uuid(view, *uuid)?.map(|it| it.id),
            Self::Name(name) => crate::user::by_username(view, name)?.map(|it| it.id),
        };
        id.map_or(Ok(None), |id| crate::user::with_sequence(view, &id))
    }
}
