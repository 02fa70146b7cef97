//! TLS of the server's own connections: a certificate chain and a key from PEM files, which are read again when they
//! change, so that a renewed certificate needs no restart.

use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Time between two checks of the files, in seconds.
const LOOK_S: u64 = 60;

/// Why connections cannot be encrypted.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or does not contain what is expected.
    #[error("server.tls.{key}: {}: {reason}; expected a PEM file with {expected}", path.display())]
    File {
        /// The setting, without its table.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// What should be in it.
        expected: &'static str,
    },
    /// Certificate and key do not match, or are of an unknown type.
    #[error("the certificate in {} and the key in {} cannot be used together: {reason}", certificate.display(), key.display())]
    Pair {
        /// File of the certificate.
        certificate: PathBuf,
        /// File of the key.
        key: PathBuf,
        /// What is wrong.
        reason: rustls::Error,
    },
    /// The crypto library refuses its own defaults.
    #[error("TLS cannot be set up: {0}")]
    Setup(rustls::Error),
}

/// Certificate and key of the server. Cheap to clone.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    files: Arc<Files>,
}

/// The files, and what was last read from them.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    held: RwLock<Held>,
}

struct Held {
    pair: Arc<CertifiedKey>,
    changed: [Option<SystemTime>; 2],
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Files {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner).pair))
    }
}

fn read(certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let fault = |name: &'static str, path: &Path, reason: String, expected: &'static str| TlsError::File {
        key: name,
        path: path.to_owned(),
        reason,
        expected,
    };
    let of_chain = "a chain of certificates, the server's own first";
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| fault("certificate", certificate, error.to_string(), of_chain))?;
    if chain.is_empty() {
        return Err(fault("certificate", certificate, "it holds no certificate".to_owned(), of_chain));
    }
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| fault("key", key, error.to_string(), "a private key without a password"))?;
    CertifiedKey::from_der(chain, private, &pinakes_tls::provider()).map_err(|reason| TlsError::Pair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        reason,
    })
}

/// Returns when each of the files last changed.
fn changed(certificate: &Path, key: &Path) -> [Option<SystemTime>; 2] {
    [certificate, key].map(|path| fs::metadata(path).and_then(|it| it.modified()).ok())
}

impl Tls {
    /// Reads a certificate chain and its key.
    ///
    /// # Errors
    /// A file cannot be read or is not of its type; the two do not belong together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let held = Held { changed: changed(certificate, key), pair: Arc::new(read(certificate, key)?) };
        let held = RwLock::new(held);
        let files = Arc::new(Files { certificate: certificate.to_owned(), key: key.to_owned(), held });
        let resolver: Arc<dyn ResolvesServerCert> = files.clone();
        let mut config = rustls::ServerConfig::builder_with_provider(pinakes_tls::provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), files })
    }

    /// Reads the files again. If they cannot be used, the former certificate stays in place.
    ///
    /// # Errors
    /// As [`Tls::load`].
    pub fn reload(&self) -> Result<(), TlsError> {
        let Files { certificate, key, held } = &*self.files;
        let changed = changed(certificate, key);
        let pair = Arc::new(read(certificate, key)?);
        *held.write().unwrap_or_else(PoisonError::into_inner) = Held { pair, changed };
        Ok(())
    }

    /// Reads the files again if one of them changed; logs the result.
    pub fn reload_if_changed(&self) {
        let Files { certificate, key, held } = &*self.files;
        let now = changed(certificate, key);
        if held.read().unwrap_or_else(PoisonError::into_inner).changed == now {
            return;
        }
        match self.reload() {
            Ok(()) => tracing::info!(certificate = %certificate.display(), "the certificate was reloaded"),
            Err(error) => tracing::error!(%error, "the former certificate stays in use"),
        }
    }

    /// Checks the files every minute, as long as the server runs.
    pub(crate) async fn watch(self) {
        loop {
            tokio::time::sleep(Duration::from_secs(LOOK_S)).await;
            let files = self.clone();
            // Renewing a certificate writes two files; the next check completes what this one saw half done.
            let _ = tokio::task::spawn_blocking(move || files.reload_if_changed()).await;
        }
    }

    /// Performs the handshake with one client.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<Socket> {
        Ok(Socket::Tls(Box::new(self.acceptor.accept(stream).await?)))
    }
}

/// A connection's byte stream, encrypted or not.
pub(crate) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(it) => Pin::new(it).poll_read(context, buffer),
            Self::Tls(it) => Pin::new(it).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(it) => Pin::new(it).poll_write(context, bytes),
            Self::Tls(it) => Pin::new(it).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(it) => Pin::new(it).poll_write_vectored(context, slices),
            Self::Tls(it) => Pin::new(it).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(it) => Pin::new(it).poll_flush(context),
            Self::Tls(it) => Pin::new(it).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(it) => Pin::new(it).poll_shutdown(context),
            Self::Tls(it) => Pin::new(it).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, RootCertStore};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsConnector;

    type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

    fn data(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
    }

    /// Returns what a client receives that trusts only the certificate of that name.
    async fn heard(tls: &Tls, trusted: &str) -> Outcome<Vec<u8>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, tls) = (listener.local_addr()?, tls.clone());
        let served = tokio::spawn(async move {
            let (stream, _) = listener.accept().await?;
            let mut socket = tls.accept(stream).await?;
            socket.write_all(b"hello").await?;
            socket.shutdown().await
        });
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(data(trusted)).map_err(|error| error.to_string())?)?;
        let config = ClientConfig::builder_with_provider(pinakes_tls::provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await?;
        let mut stream =
            TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost")?, stream).await?;
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await?;
        served.await??;
        Ok(said)
    }

    #[test]
    fn a_certificate_that_changes_is_used_and_one_that_is_none_is_not() -> Outcome {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let folder = tempfile::tempdir()?;
        let (certificate, key) = (folder.path().join("a.crt"), folder.path().join("a.key"));
        let put = |name: &str| {
            fs::copy(data(&format!("{name}.crt")), &certificate)?;
            fs::copy(data(&format!("{name}.key")), &key)
        };
        put("first")?;
        let tls = Tls::load(&certificate, &key)?;
        let hears = |trusted: &str| runtime.block_on(heard(&tls, trusted)).is_ok_and(|it| it == b"hello");
        assert!(hears("first.crt") && !hears("second.crt"));
        put("second")?;
        tls.reload()?;
        assert!(!hears("first.crt") && hears("second.crt"));
        fs::write(&key, "no key")?;
        assert!(matches!(tls.reload(), Err(TlsError::File { key: "key", .. })));
        fs::copy(data("first.key"), &key)?;
        assert!(matches!(tls.reload(), Err(TlsError::Pair { .. })));
        fs::write(&certificate, "")?;
        assert!(matches!(tls.reload(), Err(TlsError::File { key: "certificate", .. })));
        assert!(hears("second.crt"), "the former one stays");
        Ok(())
    }
}
