//! A body with a long list must be split the same way in pieces of any size as it is whole: `cargo +nightly fuzz run
//! list_splitter`.
#![no_main]

use pinakes_scicat::list_splitter::{ListSplitter, SplitError};

libfuzzer_sys::fuzz_target!(|input: (&[u8], usize)| {
    let (body, size) = input;
    let whole = split(body, body.len().max(1));
    assert_eq!(whole, split(body, 1 + size % 64));
});

/// Returns the elements and the rest, or `None` when the body is refused.
fn split(body: &[u8], n_bytes: usize) -> Option<(Vec<Vec<u8>>, Vec<u8>)> {
    let mut splitter = ListSplitter::new("dataFileList", 1 << 20);
    let mut elements = Vec::new();
    for piece in body.chunks(n_bytes) {
        let taken = splitter.push(piece, |element| {
            elements.push(element.to_vec());
            Ok::<_, SplitError>(())
        });
        taken.ok()?;
    }
    Some((elements, splitter.into_rest()))
}
