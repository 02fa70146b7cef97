//! Where files are kept: the `[blobs]` table of the configuration.

use std::fmt;

use serde::Deserialize;

/// A text that is never printed.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct SecretText(pub String);

impl fmt::Debug for SecretText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_empty() { "none" } else { "secret" })
    }
}

/// Where files are kept, and their limits. `Default` is a folder next to the records.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// If empty, the folder `blobs` in the catalogue's folder; `s3://bucket` or `s3://bucket/prefix` for an S3
    /// bucket.
    pub place: String,
    /// URL of the S3 service; if empty, Amazon's own for the region.
    pub endpoint: String,
    /// Region of the bucket.
    pub region: String,
    /// Id of the S3 key. If empty, the credentials of the machine's role.
    pub access_key_id: String,
    /// The S3 key itself.
    pub secret_access_key: SecretText,
    /// Whether the bucket is in the path of the URL (`path`) or in its host (`host`).
    pub addressing: Addressing,
    /// Maximum size of a file, in bytes (1 TiB).
    pub file_bytes: u64,
    /// Size of one part of a multipart upload in bytes (8 MiB), which is held in memory per upload.
    pub part_bytes: usize,
    /// Timeout of the store, in milliseconds (30 s).
    pub timeout_ms: u64,
    /// Age in seconds at which a file that no record names is swept (1 day). It must exceed the time from the
    /// start of an upload to the commit of its record.
    pub sweep_after_s: u64,
}

/// Where an S3 URL contains the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Addressing {
    /// `https://service/bucket/key`, which every service supports.
    Path,
    /// `https://bucket.service/key`.
    Host,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            place: String::new(),
            endpoint: String::new(),
            region: "us-east-1".to_owned(),
            access_key_id: String::new(),
            secret_access_key: SecretText::default(),
            addressing: Addressing::Path,
            file_bytes: 1 << 40,
            part_bytes: 8 << 20,
            timeout_ms: 30_000,
            sweep_after_s: 24 * 3600,
        }
    }
}

impl Settings {
    /// Overrides settings with the environment variables that S3 programs use: `AWS_ENDPOINT_URL`, `AWS_REGION`,
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`.
    #[must_use]
    pub fn with_environment(mut self, variable: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name: &str| variable(name).filter(|it| !it.trim().is_empty());
        for (name, key) in [
            ("AWS_ENDPOINT_URL", &mut self.endpoint),
            ("AWS_REGION", &mut self.region),
            ("AWS_ACCESS_KEY_ID", &mut self.access_key_id),
            ("AWS_SECRET_ACCESS_KEY", &mut self.secret_access_key.0),
        ] {
            if let Some(value) = text(name) {
                *key = value;
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let settings = Settings::default().with_environment(|name| match name {
            "AWS_SECRET_ACCESS_KEY" => Some("hush".to_owned()),
            "AWS_REGION" => Some("eu-north-1".to_owned()),
            _ => None,
        });
        let shown = format!("{settings:?}");
        assert!(shown.contains("eu-north-1") && !shown.contains("hush"), "{shown}");
        assert_eq!(settings.secret_access_key.0, "hush");
    }
}
