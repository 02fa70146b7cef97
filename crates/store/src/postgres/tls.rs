//! Encryption and trust of connections to the database: libpq's `sslmode` and certificate files.
//!
//! Uses rustls, as other outgoing connections do, so that no system library needs to be installed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio_postgres::Socket;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{Result, StoreError};

/// Creates encrypted connections.
pub(super) type Tls = MakeRustlsConnect;
/// The stream of a connection, encrypted or not.
pub(super) type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// The URL parameters handled here: `sslmode`, `sslrootcert`, `sslcert`, `sslkey`.
pub(super) const PARAMETERS: [&str; 4] = ["sslmode", "sslrootcert", "sslcert", "sslkey"];

/// How a server must prove its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// Not at all: encryption only prevents eavesdropping.
    Anybody,
    /// By a certificate of a trusted root.
    Root,
    /// By such a certificate that also names the host.
    RootAndName,
}

/// Interprets the parameters. `prefer`, the default, encrypts when the server can; `require` always encrypts, and
/// requires a trusted root when one is given; `verify-ca` and `verify-full` need one.
///
/// Errors: an unknown mode; a file that cannot be read.
pub(super) fn of(parameters: &BTreeMap<&str, &str>) -> Result<(SslMode, Tls)> {
    let get = |name: &str| parameters.get(name).copied().filter(|it| !it.is_empty());
    let (mode, trust) = match (get("sslmode").unwrap_or("prefer"), get("sslrootcert")) {
        ("disable", _) => (SslMode::Disable, Trust::Anybody),
        ("allow" | "prefer", _) => (SslMode::Prefer, Trust::Anybody),
        ("require", None) => (SslMode::Require, Trust::Anybody),
        ("require" | "verify-ca", Some(_)) => (SslMode::Require, Trust::Root),
        ("verify-full", Some(_)) => (SslMode::Require, Trust::RootAndName),
        (mode @ ("verify-ca" | "verify-full"), None) => {
            return Err(refused(&format!("sslmode={mode} needs sslrootcert=FILE with the trusted roots")));
        }
        (mode, _) => {
            return Err(refused(&format!(
                "sslmode={mode:?} is not known; expected disable, prefer, require, verify-ca or verify-full"
            )));
        }
    };
    let provider = pinakes_tls::provider();
    let verifier: Arc<dyn ServerCertVerifier> = match (trust, get("sslrootcert")) {
        (Trust::RootAndName, Some(file)) => of_roots(file, &provider)?,
        (Trust::Root, Some(file)) => {
            Arc::new(AnyName { roots: Some(of_roots(file, &provider)?), provider: provider.clone() })
        }
        _ => Arc::new(AnyName { roots: None, provider: provider.clone() }),
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(&error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match (get("sslcert"), get("sslkey")) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let chain = pinakes_tls::certificates(Path::new(certificate))
                .map_err(|error| refused(&error.to_string()))?;
            let secret = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| refused(&format!("sslkey {key}: {error}; expected a key in PEM form")))?;
            builder
                .with_client_auth_cert(chain, secret)
                .map_err(|error| refused(&format!("sslcert {certificate}, sslkey {key}: {error}")))?
        }
        _ => return Err(refused("sslcert and sslkey go together")),
    };
    Ok((mode, MakeRustlsConnect::new(config)))
}

fn refused(reason: &str) -> StoreError {
    StoreError::Query(format!("database URL: {reason}"))
}

fn of_roots(file: &str, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>> {
    let roots = pinakes_tls::authorities(Path::new(file))
        .map_err(|error| refused(&format!("sslrootcert {error}")))?;
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| refused(&format!("sslrootcert {file}: {error}")))
}

/// Trusts certificates of the roots, whatever host they name: the chain is verified before the name. Without roots it
/// trusts any server, as libpq's `require` does.
#[derive(Debug)]
struct AnyName {
    roots: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, Error> {
        let Some(roots) = &self.roots else { return Ok(ServerCertVerified::assertion()) };
        match roots.verify_server_cert(certificate, chain, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
