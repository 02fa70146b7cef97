//! The checksum of a file being received, computed in parallel: MD5 alone is slower than many disks.

use bytes::Bytes;
use tokio::task::JoinHandle;

use crate::error::ApiError;
use crate::files::checksum::{Algorithm, Checksum};

/// Amount that is collected before it is summed on another thread: a small file stays on its own thread.
const BATCH_BYTES: usize = 1 << 20;

/// A checksum being computed. At most two batches are in memory: one that is being summed, and one that is filling up.
pub(super) struct Summing {
    state: State,
    waiting: Vec<Bytes>,
    waiting_bytes: usize,
}

enum State {
    Here(Checksum),
    Elsewhere(JoinHandle<Checksum>),
    /// The thread that computed it failed.
    Lost,
}

impl State {
    async fn back(self) -> Result<Checksum, ApiError> {
        let sum = match self {
            Self::Here(sum) => Ok(sum),
            Self::Elsewhere(running) => running.await.map_err(|error| error.to_string()),
            Self::Lost => Err("it failed before".to_owned()),
        };
        sum.map_err(|error| {
            tracing::error!(error, "the checksum of a file was not finished");
            ApiError::internal("The checksum of the file was not finished.")
        })
    }
}

impl Summing {
    pub(super) fn begin(algorithm: Algorithm) -> Self {
        Self { state: State::Here(Checksum::new(algorithm)), waiting: Vec::new(), waiting_bytes: 0 }
    }

    /// Adds the next piece; waits while summing is slower than the file's source.
    pub(super) async fn take(&mut self, piece: Bytes) -> Result<(), ApiError> {
        self.waiting_bytes += piece.len();
        self.waiting.push(piece);
        if self.waiting_bytes < BATCH_BYTES {
            return Ok(());
        }
        let sum = std::mem::replace(&mut self.state, State::Lost).back().await?;
        let batch = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        self.state = State::Elsewhere(tokio::task::spawn_blocking(move || summed(sum, &batch)));
        Ok(())
    }

    /// Returns the checksum of all pieces, in hexadecimal digits.
    pub(super) async fn finish(self) -> Result<String, ApiError> {
        Ok(summed(self.state.back().await?, &self.waiting).finish())
    }
}

fn summed(mut sum: Checksum, pieces: &[Bytes]) -> Checksum {
    for piece in pieces {
        sum.update(piece);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::checksum::checksum_of;
    use super::*;

    /// Checks that a file of `length` bytes in pieces of `piece` bytes has the checksum of the whole.
    fn check(length: usize, piece: usize) {
        let file: Vec<u8> = (0..length).map(|at| (at / 7 % 251) as u8).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for algorithm in [Algorithm::Md5, Algorithm::Sha512] {
            let sum = runtime.block_on(async {
                let mut summing = Summing::begin(algorithm);
                for piece in file.chunks(piece) {
                    summing.take(Bytes::copy_from_slice(piece)).await.unwrap();
                }
                summing.finish().await.unwrap()
            });
            assert_eq!(sum, checksum_of(algorithm, &file), "{length} bytes by {piece}");
        }
    }

    #[test]
    fn pieces_are_summed_in_their_order() {
        check(0, 1);
        check(1000, 7);
        check(BATCH_BYTES, BATCH_BYTES);
        check(3 * BATCH_BYTES + 5, 65_521);
        check(2 * BATCH_BYTES, 3 * BATCH_BYTES);
    }
}
