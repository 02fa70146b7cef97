//! Decompresses bodies: gzip, deflate, brotli or zstd, according to `Content-Encoding`.
//!
//! A decoder keeps a window of the body. That of zstd is 8 MiB at most, as RFC 9659 says for this use; the largest
//! possible one counts towards the memory held by all requests.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use http::Request;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use pinakes_store::{Budget, Held};
use tokio::io::AsyncRead;
use tokio_util::io::{ReaderStream, StreamReader};

use crate::refusal::Refusal;

/// Largest window of a zstd frame, as a power of two (RFC 9659).
const ZSTD_WINDOW_LOG: u32 = 23;
/// Memory that a decoder may hold: its window, and what it needs besides.
const ZSTD_BYTES: u64 = 9 << 20;
const BROTLI_BYTES: u64 = 17 << 20;
/// Size of the decompressed pieces.
const PIECE_BYTES: usize = 16 << 10;

/// Decompresses the request's body. Limits on bodies count the decompressed bytes.
///
/// Errors: [`Refusal::Encoding`]; [`pinakes_store::StoreError::Crowded`].
pub(crate) async fn inflate(mut request: Request<Body>, budget: &Budget) -> Result<Request<Body>, Refusal> {
    let Some(encoding) = request.headers().get(CONTENT_ENCODING) else { return Ok(request) };
    let found = String::from_utf8_lossy(encoding.as_bytes()).to_ascii_lowercase();
    let window_bytes = match found.as_str() {
        "" | "identity" => return Ok(request),
        "gzip" | "deflate" => 0,
        "br" => BROTLI_BYTES,
        "zstd" => ZSTD_BYTES,
        _ => return Err(Refusal::Encoding { found }),
    };
    let mut held = budget.nothing();
    if 0 < window_bytes {
        held.grow(window_bytes).await?;
    }
    let body = std::mem::take(request.body_mut());
    let packed = StreamReader::new(body.into_data_stream().map_err(io::Error::other));
    let plain: Plain = match found.as_str() {
        "gzip" => {
            let mut decoder = GzipDecoder::new(packed);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        "deflate" => Box::pin(ZlibDecoder::new(packed)),
        "br" => Box::pin(BrotliDecoder::new(packed)),
        _ => {
            let window = [DParameter::window_log_max(ZSTD_WINDOW_LOG)];
            let mut decoder = ZstdDecoder::with_params(packed, &window);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
    };
    let pieces = ReaderStream::with_capacity(plain, PIECE_BYTES);
    *request.body_mut() = Body::from_stream(Inflated { pieces, _held: held });
    for name in [CONTENT_ENCODING, CONTENT_LENGTH] {
        request.headers_mut().remove(name);
    }
    Ok(request)
}

type Plain = Pin<Box<dyn AsyncRead + Send>>;

/// The output of a decoder, and the memory it holds.
struct Inflated {
    pieces: ReaderStream<Plain>,
    _held: Held,
}

impl Stream for Inflated {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.pieces).poll_next(context)
    }
}
