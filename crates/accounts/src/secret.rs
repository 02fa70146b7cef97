//! The secret that signs tokens: from the configuration, or created once and kept in a file that only its
//! owner may read.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::entropy::{Entropy, hex};
use crate::error::{AccountsError, Result};
use crate::jwt;

/// Name of the file in the catalogue's folder.
pub const SECRET_FILE: &str = "signing.secret";
/// The tenant whose tokens are signed with the secret itself.
const DEFAULT_TENANT: &str = "default";
/// Minimum length of a secret in a configuration, in bytes.
const SHORTEST_BYTES: usize = 16;

/// A text of the configuration that is never printed.
#[derive(Clone, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct Hidden(String);

impl Hidden {
    /// Returns the text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Hidden {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden(..)")
    }
}

/// The signing secret of a server. Never printed.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Creates it from the configuration (`JWT_SECRET` of a SciCat site). At least 16 bytes.
    pub fn from_text(text: &str) -> Result<Self> {
        if text.len() < SHORTEST_BYTES {
            let reason = format!(
                "has {} bytes, at least {SHORTEST_BYTES} are needed; leave it out to have one made",
                text.len()
            );
            return Err(AccountsError::Secret { place: "in the configuration".into(), reason });
        }
        Ok(Self(text.as_bytes().to_vec()))
    }

    /// Creates it from a site's configuration that was written for another server: a short one is accepted
    /// with a warning.
    ///
    /// Errors: it is empty.
    pub fn of_site(text: &str) -> Result<Self> {
        if !text.is_empty() && text.len() < SHORTEST_BYTES {
            tracing::warn!(
                n_bytes = text.len(),
                "the secret that tokens are signed with is short: whoever guesses it makes tokens of any user; use 32 bytes"
            );
            return Ok(Self(text.as_bytes().to_vec()));
        }
        Self::from_text(text)
    }

    /// Reads `signing.secret` in `folder`, or creates it (mode 0600). Programs that start at the same moment
    /// end up with the same secret.
    pub fn load_or_create(folder: &Path, entropy: &Entropy) -> Result<Self> {
        let path = folder.join(SECRET_FILE);
        let text = match Self::text_in(folder)? {
            Some(text) => text,
            None => Self::keep_text(folder, &Self::made(entropy))?,
        };
        check_mode(&path)?;
        Self::from_text(&text).map_err(|_| AccountsError::Secret {
            place: path.display().to_string(),
            reason: "is cut off; remove the file to have a new one made (all tokens become invalid)".into(),
        })
    }

    /// Returns a new secret, as text.
    pub fn made(entropy: &Entropy) -> String {
        hex(&entropy.bytes::<32>())
    }

    /// Returns the text of `signing.secret` in `folder`, if it exists.
    pub fn text_in(folder: &Path) -> Result<Option<String>> {
        let path = folder.join(SECRET_FILE);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failure(&path, &error)),
        }
    }

    /// Stores a secret as `signing.secret` in `folder`, unless there is one. Returns the one that is there
    /// afterwards.
    pub fn keep_text(folder: &Path, text: &str) -> Result<String> {
        let path = folder.join(SECRET_FILE);
        if !path.exists() {
            create(&path, text).map_err(|error| failure(&path, &error))?;
        }
        Ok(Self::text_in(folder)?.unwrap_or_default())
    }

    /// Returns the key of a tenant's tokens. For the tenant `default` it is the secret itself, so that
    /// programs that share the secret can create and read tokens; the others are derived, so that no token of
    /// one tenant is valid for another.
    pub(crate) fn key_of(&self, tenant: &str) -> Vec<u8> {
        if tenant == DEFAULT_TENANT {
            return self.0.clone();
        }
        jwt::hmac(&self.0, format!("tenant:{tenant}").as_bytes()).to_vec()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Writes a temporary file and links it into place: the file is never seen half written, and the first one
/// wins.
fn create(path: &Path, text: &str) -> io::Result<()> {
    let aside = path.with_extension(format!("secret.{}", std::process::id()));
    let written = write_new(&aside, text).and_then(|()| match fs::hard_link(&aside, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    fs::remove_file(&aside)?;
    written?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn check_mode(path: &Path) -> Result<()> {
    let mode = fs::metadata(path).map_err(|error| failure(path, &error))?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(AccountsError::Secret {
        place: path.display().to_string(),
        reason: format!("can be read by others (mode {:03o}); run `chmod 600` on it", mode & 0o777),
    })
}

fn failure(path: &Path, error: &io::Error) -> AccountsError {
    AccountsError::Secret { place: path.display().to_string(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_made_once() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let first = Secret::load_or_create(folder.path(), &Entropy::seeded(1))?;
        let second = Secret::load_or_create(folder.path(), &Entropy::seeded(2))?;
        assert_eq!(first.0, second.0);
        assert_eq!(fs::read_dir(folder.path())?.count(), 1, "nothing is left aside");
        let path = folder.path().join(SECRET_FILE);
        assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
        assert!(Secret::load_or_create(folder.path(), &Entropy::seeded(1)).is_err());
        Ok(())
    }

    #[test]
    fn each_tenant_has_its_key() -> Result<()> {
        let secret = Secret::from_text("a secret of the site")?;
        assert_eq!(secret.key_of("default"), b"a secret of the site");
        assert_ne!(secret.key_of("a"), secret.key_of("b"));
        assert!(Secret::from_text("short").is_err());
        Ok(())
    }
}
