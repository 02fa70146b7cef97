//! The table `[accounts.oidc]`, and how it maps claims of the provider to an account.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{Result, failed};
use crate::secret::Hidden;
use crate::sign_in::person::Person;

/// The login strategy that is recorded in accounts.
pub(crate) const STRATEGY: &str = "oidc";

/// The table `[accounts.oidc]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The provider (`OIDC_ISSUER`), as its discovery document names it; if empty, none is used.
    pub issuer: String,
    /// The client id of this server at the provider (`OIDC_CLIENT_ID`).
    pub client_id: String,
    /// Its secret (`OIDC_CLIENT_SECRET`); empty for a public client.
    pub client_secret: Hidden,
    /// The URL under which browsers reach the callback (`OIDC_CALLBACK_URL`), e.g.
    /// `https://scicat.example.org/api/v3/auth/oidc/callback`.
    pub callback_url: String,
    /// The requested scopes (`OIDC_SCOPE`), separated by spaces; `openid` is added.
    pub scope: String,
    /// Other clients of the provider whose ID tokens are accepted (`OIDC_ADDITIONAL_AUTHORIZED_PARTIES`).
    pub additional_parties: Vec<String>,
    /// Claims that form the name of the account here, joined by `_` (`OIDC_USERINFO_MAPPING_FIELD_USERNAME`).
    pub username_claims: Vec<String>,
    /// The claim with the mail address (`OIDC_USERINFO_MAPPING_FIELD_EMAIL`).
    pub email_claim: String,
    /// The claim with the display name (`OIDC_USERINFO_MAPPING_FIELD_DISPLAYNAME`).
    pub display_name_claim: String,
    /// The claim that lists groups (`OIDC_ACCESS_GROUPS_PROPERTY`); a dot descends into an object:
    /// `realm_access.roles`.
    pub groups_claim: String,
    /// Where a login ends (`OIDC_SUCCESS_URL`): the frontend's page that receives the token.
    pub success_url: String,
    /// What the frontend shows then, if it did not say (`OIDC_RETURN_URL`).
    pub return_url: String,
    /// Other frontends by name (`OIDC_FRONTEND_CLIENTS`, `OIDC_{NAME}_SUCCESS_URL`, `OIDC_{NAME}_RETURN_URL`).
    pub frontends: BTreeMap<String, Frontend>,
}

/// Where logins of one frontend end.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Frontend {
    /// See [`Settings::success_url`].
    pub success_url: String,
    /// See [`Settings::return_url`].
    pub return_url: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            issuer: String::new(),
            client_id: String::new(),
            client_secret: Hidden::default(),
            callback_url: String::new(),
            scope: "openid profile email".to_owned(),
            additional_parties: Vec::new(),
            username_claims: vec!["preferred_username".to_owned()],
            email_claim: "email".to_owned(),
            display_name_claim: "name".to_owned(),
            groups_claim: "groups".to_owned(),
            success_url: String::new(),
            return_url: String::new(),
            frontends: BTreeMap::new(),
        }
    }
}

pub(crate) fn list(text: &str) -> Vec<String> {
    text.split(',').map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
}

impl Settings {
    /// Says whether a provider is used.
    pub fn is_configured(&self) -> bool {
        !self.issuer.is_empty()
    }

    pub(crate) fn with_environment(mut self, variable: &impl Fn(&str) -> Option<String>) -> Self {
        let text = |name: &str| variable(name).filter(|it| !it.trim().is_empty());
        if let Some(claim) = text("OIDC_USERINFO_MAPPING_FIELD_GROUP") {
            self.groups_claim = claim;
        }
        for (name, field) in [
            ("OIDC_ISSUER", &mut self.issuer),
            ("OIDC_CLIENT_ID", &mut self.client_id),
            ("OIDC_CALLBACK_URL", &mut self.callback_url),
            ("OIDC_SCOPE", &mut self.scope),
            ("OIDC_USERINFO_MAPPING_FIELD_EMAIL", &mut self.email_claim),
            ("OIDC_USERINFO_MAPPING_FIELD_DISPLAYNAME", &mut self.display_name_claim),
            ("OIDC_ACCESS_GROUPS_PROPERTY", &mut self.groups_claim),
            ("OIDC_SUCCESS_URL", &mut self.success_url),
            ("OIDC_RETURN_URL", &mut self.return_url),
        ] {
            if let Some(value) = text(name) {
                *field = value;
            }
        }
        for (name, field) in [
            ("OIDC_ADDITIONAL_AUTHORIZED_PARTIES", &mut self.additional_parties),
            ("OIDC_USERINFO_MAPPING_FIELD_USERNAME", &mut self.username_claims),
        ] {
            if let Some(value) = text(name) {
                *field = list(&value);
            }
        }
        if let Some(secret) = text("OIDC_CLIENT_SECRET") {
            self.client_secret = Hidden::from(secret.as_str());
        }
        for name in text("OIDC_FRONTEND_CLIENTS").map(|it| list(&it)).unwrap_or_default() {
            let upper = name.to_uppercase();
            let url = |what: &str| text(&format!("OIDC_{upper}_{what}_URL")).unwrap_or_default();
            self.frontends.insert(name, Frontend { success_url: url("SUCCESS"), return_url: url("RETURN") });
        }
        self
    }

    /// Returns where logins of the frontend `client` end; for an unknown one, the default.
    pub(super) fn frontend(&self, client: &str) -> Frontend {
        let own = self.frontends.get(client).cloned().unwrap_or_default();
        let or = |own: String, all: &String| if own.is_empty() { all.clone() } else { own };
        Frontend {
            success_url: or(own.success_url, &self.success_url),
            return_url: or(own.return_url, &self.return_url),
        }
    }

    pub(super) fn person(&self, claims: &Map<String, Value>) -> Result<Person> {
        let text = |name: &str| claim(claims, name).and_then(Value::as_str).filter(|it| !it.is_empty());
        let subject = text("sub").ok_or_else(|| failed(&self.issuer, "it names no subject"))?;
        let parts: Option<Vec<&str>> = self.username_claims.iter().map(|it| text(it)).collect();
        let username = parts.filter(|it| !it.is_empty()).ok_or_else(|| {
            failed(&self.issuer, format!("the claims {} are not there", self.username_claims.join(", ")))
        })?;
        let groups = match claim(claims, &self.groups_claim) {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Some(Value::String(one)) => vec![one.clone()],
            _ => Vec::new(),
        };
        Ok(Person {
            strategy: STRATEGY,
            source: self.issuer.clone(),
            subject: subject.to_owned(),
            username: username.join("_"),
            email: text(&self.email_claim).map(str::to_owned),
            display_name: text(&self.display_name_claim).map(str::to_owned),
            groups,
        })
    }
}

/// Returns a claim by its name, or by a dotted path if there is none of that name.
pub(crate) fn claim<'c>(claims: &'c Map<String, Value>, name: &str) -> Option<&'c Value> {
    claims.get(name).or_else(|| {
        let (first, rest) = name.split_once('.')?;
        claims.get(first)?.pointer(&format!("/{}", rest.replace('.', "/")))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        if let Value::Object(map) = value { map } else { Map::new() }
    }

    #[test]
    fn claims_become_a_person() -> Result<()> {
        let claims = object(json!({
            "iss": "https://id", "sub": "s1", "preferred_username": "max", "email": "max@x.org",
            "realm_access": {"roles": ["a", "b", 7]},
        }));
        let settings = Settings { groups_claim: "realm_access.roles".into(), ..Settings::default() };
        let person = settings.person(&claims)?;
        assert_eq!((person.username.as_str(), person.groups), ("max", vec!["a".to_owned(), "b".to_owned()]));
        let settings = Settings { username_claims: vec!["iss".into(), "sub".into()], ..settings };
        assert_eq!(settings.person(&claims)?.username, "https://id_s1");
        let settings = Settings { username_claims: vec!["nickname".into()], ..settings };
        assert!(settings.person(&claims).is_err());
        Ok(())
    }

    #[test]
    fn the_environment_names_frontends() {
        let settings = Settings::default().with_environment(&|name| {
            Some(
                match name {
                    "OIDC_FRONTEND_CLIENTS" => "cli, maxiv",
                    "OIDC_MAXIV_SUCCESS_URL" => "https://maxiv/login",
                    "OIDC_SUCCESS_URL" => "https://all/login",
                    "OIDC_USERINFO_MAPPING_FIELD_USERNAME" => "iss, sub",
                    _ => return None,
                }
                .to_owned(),
            )
        });
        assert_eq!(settings.frontend("maxiv").success_url, "https://maxiv/login");
        assert_eq!(settings.frontend("cli").success_url, "https://all/login");
        assert_eq!(settings.username_claims, ["iss", "sub"]);
    }
}
