//! Answers whose bytes count towards the memory held by all requests, for as long as their clients read them.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use pinakes_store::{Budget, Held, StoreError};

use crate::body::FREE_BYTES;

/// Bytes that an answer of unknown length keeps ready for its client.
const STREAMED_BYTES: u64 = 600 << 10;

/// Counts the bytes of an answer until they are sent; short ones are not counted.
///
/// Errors: [`StoreError::Crowded`]. The answer is dropped then: waiting answers would be held, too.
pub(crate) fn held(answer: Response, budget: &Budget) -> Result<Response, StoreError> {
    let n_bytes = answer.body().size_hint().exact().unwrap_or(STREAMED_BYTES);
    if n_bytes <= FREE_BYTES {
        return Ok(answer);
    }
    let mut held = budget.nothing();
    held.try_grow(n_bytes)?;
    Ok(answer.map(|body| Body::new(HeldBody { body, _held: held })))
}

struct HeldBody {
    body: Body,
    _held: Held,
}

impl http_body::Body for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
