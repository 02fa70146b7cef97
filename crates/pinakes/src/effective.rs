//! The settings in force, key by key: each value and where it comes from. Secrets are never among the values.

use std::path::Path;

use anyhow::Context as _;
use pinakes_site::Setting;
use toml::{Table, Value};

use crate::config::{Config, Misuse, REFERENCE};

/// Words in the last part of a key whose value is not shown.
const SECRET_WORDS: [&str; 5] = ["secret", "password", "key", "token", "database"];
/// Tables whose values are addresses that may hold passwords.
const SECRET_TABLES: [&str; 1] = ["databases"];

/// Returns every key with its value and origin: `file` or `default`. Keys of freely named tables (`mounts`,
/// `databases`, ...) follow.
///
/// Errors: the file is not a configuration file.
pub(crate) fn of_file(file: Option<&Path>) -> anyhow::Result<Vec<Setting>> {
    let defaults: Table = toml::from_str(REFERENCE).context("the reference of settings is damaged")?;
    let given: Table = match file {
        None => Table::new(),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Misuse(format!("the configuration {} cannot be read: {error}", path.display()))
            })?;
            toml::from_str(&text).map_err(|error| Misuse(format!("{}: {error}", path.display())))?
        }
    };
    let given = flat(&given);
    let mut out: Vec<Setting> = Vec::new();
    for (key, default) in flat(&defaults) {
        let stated = given.iter().find(|it| it.0 == key);
        let (value, origin) = stated.map_or((&default, "default"), |it| (&it.1, "file"));
        out.push(setting(&key, value, origin));
    }
    for (key, value) in &given {
        if !out.iter().any(|it| it.key == *key) {
            out.push(setting(key, value, "file"));
        }
    }
    Ok(out)
}

/// Marks a key that a flag of the command overrides.
pub(crate) fn note_flag(settings: &mut [Setting], key: &str, value: &str) {
    if let Some(it) = settings.iter_mut().find(|it| it.key == key) {
        let shown = setting(key, &Value::String(value.to_owned()), "flag");
        *it = shown;
    }
}

/// Returns the environment variables that change a setting: each is tried on its own.
pub(crate) fn variables() -> Vec<String> {
    let plain = format!("{:?}", Config::default());
    let mut names: Vec<String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| {
            let one = |wanted: &str| (wanted == name).then(|| value.clone());
            let changed = Config::default().with_environment(one);
            changed.map_or(true, |it| format!("{it:?}") != plain)
        })
        .map(|it| it.0)
        .collect();
    names.sort();
    names
}

fn setting(key: &str, value: &Value, origin: &str) -> Setting {
    let (tables, last) = key.rsplit_once('.').unwrap_or(("", key));
    let is_secret = SECRET_WORDS.iter().any(|it| last.contains(it))
        || SECRET_TABLES.iter().any(|it| tables.split('.').any(|table| table == *it));
    let text = value.as_str();
    let value = match text {
        Some("") => "\"\"".to_owned(),
        _ if is_secret && !value.is_bool() => "(set; not shown)".to_owned(),
        // An address with a user may hold a password.
        Some(text) if text.contains("://") && text.contains('@') => "(set; not shown)".to_owned(),
        _ => value.to_string(),
    };
    Setting { key: key.to_owned(), value, origin: origin.to_owned() }
}

/// Flattens tables into dotted keys with values that are not tables; an empty table counts as none.
fn flat(table: &Table) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                out.extend(flat(inner).into_iter().map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            other => out.push((key.clone(), other.clone())),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_from_the_file_or_are_defaults_and_secrets_are_not_shown() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("pinakes.toml");
        std::fs::write(
            &path,
            "[server]\nlisten = \"0.0.0.0:80\"\ndatabase = \"postgres://u:hidden@h/d\"\n[accounts]\nsecret = \"hidden\"\n\
             [databases]\na = \"postgres://u:hidden@h/d\"\n[mounts.folio]\nprefix = \"/folio\"\n",
        )?;
        let settings = of_file(Some(&path))?;
        let of = |key: &str| {
            let found = settings.iter().find(|it| it.key == key);
            found.map_or_else(String::new, |it| format!("{} {}", it.value, it.origin))
        };
        assert_eq!(of("server.listen"), "\"0.0.0.0:80\" file");
        assert_eq!(of("server.threads"), "0 default");
        assert_eq!(of("accounts.secret"), "(set; not shown) file");
        assert_eq!(of("server.database"), "(set; not shown) file");
        assert_eq!(of("databases.a"), "(set; not shown) file");
        assert_eq!(of("mounts.folio.prefix"), "\"/folio\" file");
        assert!(!format!("{settings:?}").contains("hidden"));
        Ok(())
    }
}
