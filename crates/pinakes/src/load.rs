//! Loads the settings in force: those of a file, or the defaults, overridden by the environment.

use std::path::Path;

use pinakes_site::Setting;

use crate::config::{Config, Misuse};
use crate::dialect::Dialect;
use crate::effective;

impl Config {
    /// Returns the settings of a file, or the defaults, overridden by the environment.
    ///
    /// Errors: [`Misuse`] that names the key, or the variable, and its expected form.
    pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Self> {
        let config = match file {
            Some(path) => Self::read(path)?,
            None => Self::default(),
        };
        config.check_dialects()?;
        let mut config = config;
        config.site.effective = effective::of_file(file)?;
        for name in effective::variables() {
            let origin = "environment".to_owned();
            config.site.effective.push(Setting {
                key: name,
                value: "(set; goes over the file)".to_owned(),
                origin,
            });
        }
        config.with_environment(|name| std::env::var(name).ok())
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Misuse(format!("the configuration {} cannot be read: {error}", path.display()))
        })?;
        toml::from_str(&text).map_err(|error| {
            let reason = error.to_string();
            let advice = "`pinakes config` prints every key with its default";
            Misuse(format!("{}: {}\n{advice}", path.display(), reason.trim_end())).into()
        })
    }

    /// Checks that `dialects` and `[mounts]` name existing dialects.
    pub(crate) fn check_dialects(&self) -> Result<(), Misuse> {
        let unknown = |name: &&String| Dialect::ALL.iter().all(|it| it.name() != name.as_str());
        let known = || Dialect::ALL.map(Dialect::name).join(", ");
        if let Some(name) = self.dialects.iter().find(unknown) {
            return Err(Misuse(format!(
                "dialects: there is no dialect {name:?}; expected some of {}",
                known()
            )));
        }
        if let Some(name) = self.mounts.keys().find(unknown) {
            return Err(Misuse(format!(
                "mounts.{name}: there is no such dialect; expected one of {}",
                known()
            )));
        }
        if self.dialects.is_empty() {
            return Err(Misuse(format!("dialects is empty; name some of {}", known())));
        }
        Ok(())
    }
}
