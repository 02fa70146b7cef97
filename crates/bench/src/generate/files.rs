//! File lists of a detector run, in the form in which blocks of files are registered with SciCat. They are
//! written as text rather than through a JSON tree: a list may have a million files, some 130 bytes each.

use std::fmt::Write;

use bytes::Bytes;
use serde_json::json;

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

/// Number of files of a block of [`visitors_block`].
const VISITORS_FILES: u64 = 50;
const SAMPLES: [&str; 10] =
    ["lysozyme", "silicon", "LaB6", "ice", "zeolite", "perovskite", "steel", "bone", "graphene", "myoglobin"];

/// Returns block `n` as an import reads it: the files of a run of some visitors, whose paths name the year, the
/// proposal, the sample and the run.
pub fn visitors_block(seed: u64, n: u64) -> String {
    let mut random = Random::new(seed, n);
    let (year, proposal) = (2015 + n % 10, 2_000 + random.below(7_000));
    let (sample, run) = (random.pick(&SAMPLES).to_owned(), n % 1_000);
    let sample = format!("{sample}_{:02}", random.below(100));
    let mut total_bytes = 0;
    let mut files = Vec::new();
    for file in 0..VISITORS_FILES {
        let size_bytes = 4_000_000 + random.below(8_000_000);
        total_bytes += size_bytes;
        files.push(json!({
            "path": format!("/data/visitors/{year}/p{proposal:05}/raw/{sample}/scan_{run:04}_{file:05}.h5"),
            "size": size_bytes,
            "time": timestamp(FIRST_FILE_S + n.cast_signed() * 60),
            "chk": format!("{:016x}", random.bits()),
            "uid": "1001", "gid": "200", "perm": "0644",
        }));
    }
    let block = json!({
        "datasetId": format!("PID/{n}"), "size": total_bytes, "chkAlg": "xxh64",
        "ownerGroup": format!("group{}", n % 20), "accessGroups": [], "dataFileList": files,
    });
    block.to_string()
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
    fn a_block_of_visitors_names_its_run() {
        let parsed: serde_json::Value = serde_json::from_str(&visitors_block(1, 1_013)).unwrap();
        let files = parsed["dataFileList"].as_array().unwrap();
        assert_eq!((parsed["datasetId"].as_str(), files.len()), (Some("PID/1013"), 50));
        let last = files[49]["path"].as_str().unwrap();
        assert!(
            last.starts_with("/data/visitors/2018/p0") && last.ends_with("/scan_0013_00049.h5"),
            "{last}"
        );
        let sum: u64 = files.iter().map(|file| file["size"].as_u64().unwrap()).sum();
        assert_eq!(parsed["size"], sum);
        assert_eq!(visitors_block(1, 1_013), visitors_block(1, 1_013));
    }

    #[test]
    fn an_empty_block_is_json_too() {
        let (body, total_bytes) = block("p", 1, 0, 0);
        assert_eq!(total_bytes, 0);
        assert!(serde_json::from_slice::<serde_json::Value>(&body).is_ok());
    }
}
