//! How connections to the database are encrypted: not at all.

/// What a connection reads and writes through.
pub(super) type Stream = tokio_postgres::tls::NoTlsStream;
/// What makes one.
pub(super) type Tls = tokio_postgres::NoTls;
