//! TLS of connections to other servers: the only cipher provider of the whole program, and the authorities that a file
//! makes trusted.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Installed for the whole process, as libraries that choose no provider use the installed one.
static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    let ring = rustls::crypto::ring::default_provider();
    match ring.install_default() {
        Ok(()) => CryptoProvider::get_default().cloned(),
        // A program that embeds this one has already installed a provider.
        Err(ours) => Some(CryptoProvider::get_default().cloned().unwrap_or(ours)),
    }
    .unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()))
});

/// Reason why a file of certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}; expected certificates in PEM form")]
pub struct CertificatesError {
    file: String,
    reason: String,
}

/// Returns the cipher provider. The first call installs it for the process; it must precede the first connection of a
/// library that uses the installed provider.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::clone(&PROVIDER)
}

/// Returns the certificates in a file, at least one.
///
/// Errors: it cannot be read, or contains none.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, CertificatesError> {
    let failed = |reason: String| CertificatesError { file: file.display().to_string(), reason };
    let list: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(file).map_err(|error| failed(error.to_string()))?.collect();
    let list = list.map_err(|error| failed(error.to_string()))?;
    if list.is_empty() { Err(failed("no certificate in it".to_owned())) } else { Ok(list) }
}

/// Returns the authorities in a file, and no others.
///
/// Errors: as for [`certificates`]; one of them is not an authority's.
pub fn authorities(file: &Path) -> Result<RootCertStore, CertificatesError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| CertificatesError {
            file: file.display().to_string(),
            reason: error.to_string(),
        })?;
    }
    Ok(roots)
}

/// Returns the configuration for connections to servers whose certificates are issued by the authorities in a file and
/// name the host.
///
/// Errors: as for [`authorities`].
pub fn client_config(file: &Path) -> Result<Arc<ClientConfig>, CertificatesError> {
    let roots = authorities(file)?;
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let builder = builder
        .map_err(|error| CertificatesError { file: file.display().to_string(), reason: error.to_string() })?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_provider_is_installed_once() {
        let first = provider();
        assert!(Arc::ptr_eq(&first, &provider()));
        assert!(CryptoProvider::get_default().is_some_and(|it| Arc::ptr_eq(it, &first)));
    }

    #[test]
    fn what_is_no_file_of_certificates_is_named() -> Result<(), std::io::Error> {
        let folder = tempfile::tempdir()?;
        let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (name, content, expected) in [
            ("missing.pem", None, "missing.pem: "),
            ("empty.pem", Some(""), "empty.pem: no certificate in it; expected certificates in PEM form"),
            ("text.pem", Some("hello"), "text.pem: no certificate in it"),
            ("broken.pem", Some(no_certificate), "broken.pem: "),
        ] {
            let file = folder.path().join(name);
            if let Some(content) = content {
                fs::write(&file, content)?;
            }
            let refused = client_config(&file).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains(expected), "{name}: {refused:?}");
        }
        Ok(())
    }
}
