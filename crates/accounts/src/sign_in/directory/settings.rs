//! The table `[accounts.ldap]`, and how it maps an entry of the directory to an account.

use std::path::Path;

use ldap3::{SearchEntry, ldap_escape};
use serde::Deserialize;

use crate::secret::Hidden;
use crate::sign_in::person::Person;

/// Maximum number of groups that are read for one person.
pub(super) const GROUPS: usize = 10_000;

/// The table `[accounts.ldap]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `ldaps://ldap.example.org:636`, or `ldap://` (`LDAP_URL`); if empty, no directory is used.
    pub url: String,
    /// Whether a connection that starts without TLS is upgraded to it.
    pub starttls: bool,
    /// PEM file of the authorities that may have issued the directory's certificate; if empty, those of the
    /// system.
    pub ca_file: String,
    /// The account that searches (`LDAP_BIND_DN`); if empty, the search is anonymous.
    pub bind_dn: String,
    /// The password of `bind_dn` (`LDAP_BIND_CREDENTIALS`).
    pub bind_password: Hidden,
    /// The base under which people are searched for (`LDAP_SEARCH_BASE`).
    pub search_base: String,
    /// The filter for a person's entry (`LDAP_SEARCH_FILTER`): `{{username}}` stands for the name. Active
    /// Directory: `(sAMAccountName={{username}})`.
    pub search_filter: String,
    /// The attribute with the name of the account here; if empty, the name that was typed.
    pub username_attribute: String,
    /// The attribute with the mail address.
    pub email_attribute: String,
    /// The attribute with the display name.
    pub display_name_attribute: String,
    /// The attribute of a person that lists groups; from names like `cn=staff,ou=groups` the first value is
    /// taken.
    pub groups_attribute: String,
    /// The base under which groups are searched for; if empty, groups come only from `groups_attribute`.
    pub group_base: String,
    /// The filter for a person's groups: `{{dn}}` and `{{username}}` stand for those of the person.
    pub group_filter: String,
    /// The attribute with the name of a group.
    pub group_name_attribute: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            url: String::new(),
            starttls: false,
            ca_file: String::new(),
            bind_dn: String::new(),
            bind_password: Hidden::default(),
            search_base: String::new(),
            search_filter: "(uid={{username}})".to_owned(),
            username_attribute: String::new(),
            email_attribute: "mail".to_owned(),
            display_name_attribute: "displayName".to_owned(),
            groups_attribute: "memberOf".to_owned(),
            group_base: String::new(),
            group_filter: "(member={{dn}})".to_owned(),
            group_name_attribute: "cn".to_owned(),
        }
    }
}

impl Settings {
    /// Says whether a directory is used.
    pub fn is_configured(&self) -> bool {
        !self.url.is_empty()
    }

    pub(crate) fn with_environment(mut self, variable: &impl Fn(&str) -> Option<String>) -> Self {
        for (name, field) in [
            ("LDAP_URL", &mut self.url),
            ("LDAP_BIND_DN", &mut self.bind_dn),
            ("LDAP_SEARCH_BASE", &mut self.search_base),
            ("LDAP_SEARCH_FILTER", &mut self.search_filter),
        ] {
            if let Some(value) = variable(name).filter(|it| !it.trim().is_empty()) {
                *field = value;
            }
        }
        if let Some(password) = variable("LDAP_BIND_CREDENTIALS") {
            self.bind_password = Hidden::from(password.as_str());
        }
        self
    }

    /// Refuses unusable settings, so that they are reported at the start.
    ///
    /// Errors: which setting, and why.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        let is_ldaps = self.url.starts_with("ldaps://");
        if self.is_configured() && !is_ldaps && !self.url.starts_with("ldap://") {
            return Err(format!(
                "accounts.ldap.url: expected ldap://HOST or ldaps://HOST, found {:?}",
                self.url
            ));
        }
        if is_ldaps && self.starttls {
            return Err(
                "accounts.ldap.starttls: a connection to ldaps:// begins with TLS; unset one of them"
                    .to_owned(),
            );
        }
        if !self.ca_file.is_empty() {
            pinakes_tls::authorities(Path::new(&self.ca_file))
                .map_err(|error| format!("accounts.ldap.ca_file: {error}"))?;
        }
        Ok(())
    }

    /// Returns the directory's server, as errors name it.
    pub(crate) fn server(&self) -> &str {
        self.url.split_once("://").map_or(self.url.as_str(), |it| it.1).trim_end_matches('/')
    }

    pub(crate) fn search_filter(&self, username: &str) -> String {
        self.search_filter.replace("{{username}}", &ldap_escape(username))
    }

    pub(crate) fn group_filter(&self, username: &str, dn: &str) -> String {
        let filter = self.group_filter.replace("{{username}}", &ldap_escape(username));
        filter.replace("{{dn}}", &ldap_escape(dn))
    }

    pub(crate) fn person(
        &self,
        strategy: &'static str,
        typed: &str,
        entry: &SearchEntry,
        more: Vec<String>,
    ) -> Person {
        let first = |attribute: &str| values(entry, attribute).next().filter(|it| !it.is_empty());
        let username = first(&self.username_attribute).unwrap_or(typed).to_owned();
        let listed = values(entry, &self.groups_attribute).take(GROUPS).map(group_name);
        Person {
            strategy,
            source: self.url.clone(),
            subject: entry.dn.to_lowercase(),
            username,
            email: first(&self.email_attribute).map(str::to_owned),
            display_name: first(&self.display_name_attribute).or_else(|| first("cn")).map(str::to_owned),
            groups: listed.chain(more).collect(),
        }
    }
}

/// Returns the values of an attribute, ignoring the case of its name.
pub(crate) fn values<'e>(entry: &'e SearchEntry, attribute: &str) -> impl Iterator<Item = &'e str> + use<'e> {
    let found = entry.attrs.iter().find(|(name, _)| name.eq_ignore_ascii_case(attribute));
    found.into_iter().flat_map(|(_, values)| values).map(String::as_str)
}

/// Returns `staff` for `CN=staff,OU=groups,DC=example,DC=org`; a text in another form is returned unchanged.
pub(crate) fn group_name(written: &str) -> String {
    let Some((_, rest)) = written.split_once('=') else { return written.to_owned() };
    let (mut name, mut letters) = (String::new(), rest.chars());
    while let Some(letter) = letters.next() {
        match letter {
            ',' | '+' => break,
            '\\' => name.extend(letters.next()),
            letter => name.push(letter),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_change_the_filter() {
        let settings = Settings::default();
        assert_eq!(settings.search_filter("*)(uid=*"), "(uid=\\2a\\29\\28uid=\\2a)");
        assert_eq!(settings.group_filter("a", "cn=a (b),dc=x"), "(member=cn=a \\28b\\29,dc=x)");
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        let settings = |url: &str, starttls, ca_file: &str| Settings {
            url: url.to_owned(),
            starttls,
            ca_file: ca_file.to_owned(),
            ..Settings::default()
        };
        for (settings, expected) in [
            (settings("", false, ""), ""),
            (settings("ldap://a", true, ""), ""),
            (settings("ldaps://a", true, ""), "accounts.ldap.starttls: "),
            (settings("http://a", false, ""), "accounts.ldap.url: expected ldap://HOST"),
            (settings("ldap://a", true, "/no/such.pem"), "accounts.ldap.ca_file: /no/such.pem: "),
        ] {
            let refused = settings.check().err().unwrap_or_default();
            assert!(refused.starts_with(expected) && refused.is_empty() == expected.is_empty(), "{refused}");
        }
    }

    #[test]
    fn groups_are_named_by_the_first_value_of_their_name() {
        for (written, expected) in [
            ("CN=staff,OU=groups,DC=example,DC=org", "staff"),
            ("cn=a\\, b+x=y,dc=org", "a, b"),
            ("staff", "staff"),
            ("cn=", ""),
        ] {
            assert_eq!(group_name(written), expected, "{written}");
        }
    }
}
