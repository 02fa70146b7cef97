//! The bytes of a connection pass the same way in pieces of any size as all at once; nothing is lost.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinakes_http::request_line::RequestLines;

fuzz_target!(|input: (&[u8], usize)| {
    let (bytes, size) = input;
    let whole = through(bytes, bytes.len().max(1));
    assert_eq!(whole, through(bytes, 1 + size % 64));
    assert!(bytes.len() <= whole.len() && whole.len() <= 3 * bytes.len());
});

fn through(bytes: &[u8], n_bytes: usize) -> Vec<u8> {
    let (mut lines, mut out) = (RequestLines::default(), Vec::new());
    for piece in bytes.chunks(n_bytes) {
        match lines.take(piece) {
            Some(changed) => out.extend(changed),
            None => out.extend_from_slice(piece),
        }
    }
    out.extend(lines.end());
    out
}
