//! Where files are kept: the `[blobs]` table of the configuration.

use std::fmt;

use serde::Deserialize;

/// A text that is never shown.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct SecretText(pub String);

impl fmt::Debug for SecretText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_empty() { "none" } else { "secret" })
    }
}

/// Where files are kept, and what bounds them. `Default` is a folder beside the records.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Empty: the folder `blobs` in the catalogue's; `s3://bucket` or `s3://bucket/prefix`: an S3 bucket.
    pub place: String,
    /// URL of the S3 service; empty for Amazon's own of the region.
    pub endpoint: String,
    /// Region of the bucket.
    pub region: String,
    /// Id of the S3 key. Empty: what the machine's role gives.
    pub access_key_id: String,
    /// The S3 key itself.
    pub secret_access_key: SecretText,
    /// Whether the bucket is in the path of the URL (`path`) or in its host (`host`).
    pub addressing: Addressing,
    /// Largest file, in bytes (1 TiB).
    pub file_bytes: u64,
    /// Bytes of one part of a multipart upload (8 MiB): held in memory per upload.
    pub part_bytes: usize,
    /// How long the store may take to answer, in milliseconds (30 s).
    pub timeout_ms: u64,
    /// Age in seconds from which a file that no record names is swept (1 day): longer than any upload takes until
    /// its record is committed.
    pub sweep_after_s: u64,
}

/// Where the bucket stands in an S3 URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Addressing {
    /// `https://service/bucket/key`, which every service understands.
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
    /// With the variables of the environment that S3 programs use over them: `AWS_ENDPOINT_URL`, `AWS_REGION`,
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
