//! File lists of a detector run, in the form in which blocks of files are registered with SciCat. They are
//! written as text rather than through a JSON tree: a list may have a million files, some 130 bytes each.

use std::fmt::Write;

use bytes::Bytes;

use super::datasets::timestamp;
use super::random::Random;

/// Time of the first file (2023-06-01T00:00:00Z); one file each tenth of a second.
const FIRST_FILE_S: i64 = 1_685_577_600;

/// Returns a block of `n_files` files for the dataset `pid`, as the body of a create request, and the sum of
/// the sizes, in bytes; `first` is the number of its first file within the dataset.
pub fn block(pid: &str, seed: u64, first: u64, n_files: u64) -> (Bytes, u64) {
    const BYTES_PER_FILE: usize = 140;
    let capacity = usize::try_from(n_files).unwrap_or(0).saturating_mul(BYTES_PER_FILE);
    let mut list = String::with_capacity(capacity);
    let mut total_bytes = 0;
    for n in first..first + n_files {
        let mut random = Random::new(seed, n);
        let size_bytes = 4_000_000 + random.below(8_000_000);
        total_bytes += size_bytes;
        if n > first {
            list.push(',');
        }
        write_file(&mut list, n, size_bytes, random.bits());
    }
    let pid = serde_json::Value::from(pid);
    let body = format!(
        "{{\"datasetId\":{pid},\"size\":{total_bytes},\"chkAlg\":\"xxh64\",\"dataFileList\":[{list}]}}"
    );
    (body.into(), total_bytes)
}

fn write_file(list: &mut String, n: u64, size_bytes: u64, checksum: u64) {
    let time = timestamp(FIRST_FILE_S + (n / 10).cast_signed());
    let folder = n / 1000;
    write!(
        list,
        "{{\"path\":\"scan{folder:04}/frame_{n:07}.h5\",\"size\":{size_bytes},\"time\":\"{time}\",\
         \"chk\":\"{checksum:016x}\",\"uid\":\"1001\",\"gid\":\"200\",\"perm\":\"0644\"}}"
    )
    .expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_says_what_it_holds() {
        let (body, total_bytes) = block("PFX/a\"b", 5, 2000, 25);
        let parsed: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let files = parsed["dataFileList"].as_array().unwrap();
        assert_eq!(parsed["datasetId"], "PFX/a\"b");
        assert_eq!(files.len(), 25);
        assert_eq!(files[0]["path"], "scan0002/frame_0002000.h5");
        let sum: u64 = files.iter().map(|file| file["size"].as_u64().unwrap()).sum();
        assert_eq!((sum, parsed["size"].as_u64().unwrap()), (total_bytes, total_bytes));
    }

    #[test]
    fn an_empty_block_is_json_too() {
        let (body, total_bytes) = block("p", 1, 0, 0);
        assert_eq!(total_bytes, 0);
        assert!(serde_json::from_slice::<serde_json::Value>(&body).is_ok());
    }
}
