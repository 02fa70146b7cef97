//! Guarantees of the store of files, tested with a folder, and with an S3 service if `PINAKES_TEST_S3` contains
//! its URL. `PINAKES_TEST_S3_BUCKET` names an empty bucket, and the key is in `AWS_ACCESS_KEY_ID` and
//! `AWS_SECRET_ACCESS_KEY`.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use pinakes_blobs::{Blob, BlobError, Blobs, Settings, Swept};
use tempfile::TempDir;

/// Minimum size of a part that S3 accepts.
const PART_BYTES: usize = 5 << 20;
const TENANT: &str = "library";
/// SHA-256 of `a file`, from sha256sum.
const A_FILE: &str = "7365d029861e32c521f8089b00a6fb32daf0615025b69b599d1ce53501b845c2";

struct Place {
    name: &'static str,
    blobs: Blobs,
    folder: TempDir,
}

fn places() -> Vec<Place> {
    let folder = |settings: &Settings, name| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let blobs = Blobs::open(settings, folder.path()).expect("a store");
        Place { name, blobs, folder }
    };
    let mut list = vec![folder(&Settings { part_bytes: PART_BYTES, ..Settings::default() }, "folder")];
    if let Ok(url) = std::env::var("PINAKES_TEST_S3") {
        list.push(folder(&s3(&url), "s3"));
    }
    list
}

fn s3(endpoint: &str) -> Settings {
    let bucket = std::env::var("PINAKES_TEST_S3_BUCKET").unwrap_or_else(|_| "pinakes".to_owned());
    // Each run uses its own prefix in the bucket.
    let run = tempfile::Builder::new().tempfile().expect("a name").path().file_name().map(|it| it.to_owned());
    let run = run.and_then(|it| it.into_string().ok()).unwrap_or_default().replace('.', "");
    let settings = Settings {
        place: format!("s3://{bucket}/tests/{run}"),
        endpoint: endpoint.to_owned(),
        part_bytes: PART_BYTES,
        ..Settings::default()
    };
    settings.with_environment(|name| std::env::var(name).ok())
}

fn on_each(test: impl Fn(&Place)) {
    for place in places() {
        eprintln!("on {}", place.name);
        test(&place);
    }
}

/// Returns bytes without repetition, so that parts in a wrong order are detected.
fn content(n_bytes: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..n_bytes).map(|_| next()).collect()
}

fn read(blobs: &Blobs, blob: &Blob) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    blobs.reader(TENANT, blob, None).map_err(io::Error::other)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the only file of a folder.
fn only_file(place: &Place) -> PathBuf {
    fn files(folder: &Path, list: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { files(&path, list) } else { list.push(path) }
        }
    }
    let mut list = Vec::new();
    files(place.folder.path(), &mut list);
    assert_eq!(list.len(), 1, "{list:?}");
    list.remove(0)
}

#[test]
fn what_was_written_is_read() {
    on_each(|place| {
        // Empty, one piece, exactly one part, several parts and a rest.
        for n_bytes in [0, 1, 100, PART_BYTES, PART_BYTES * 2 + 1_234] {
            let bytes = content(n_bytes);
            let blob = place.blobs.put_blocking(TENANT, &bytes[..]).expect("a file");
            assert_eq!(blob.length, n_bytes as u64);
            assert!(read(&place.blobs, &blob).expect("the file") == bytes, "{n_bytes} bytes differ");
            // Another tenant does not have it.
            let others = place.blobs.block_on(place.blobs.get("museum", &blob, None)).map(drop);
            assert!(matches!(others, Err(BlobError::Missing { .. })), "{others:?}");
        }
    });
}

#[test]
fn a_checksum_is_that_of_the_bytes() {
    on_each(|place| {
        let blob = place.blobs.put_blocking(TENANT, &b"a file"[..]).expect("a file");
        assert_eq!(blob.sha256, A_FILE);
        let empty = place.blobs.put_blocking(TENANT, &b""[..]).expect("a file");
        // SHA-256 of the empty input, FIPS 180-4 example.
        assert_eq!(empty.sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    });
}

#[test]
fn a_range_is_those_bytes() {
    on_each(|place| {
        let bytes = content(10_000);
        let blob = place.blobs.put_blocking(TENANT, &bytes[..]).expect("a file");
        let get = |range: std::ops::Range<u64>| {
            place.blobs.block_on(async {
                let reading = place.blobs.get(TENANT, &blob, Some(range)).await?;
                let pieces: Vec<Bytes> = reading.try_collect().await?;
                Ok::<_, BlobError>(pieces.concat())
            })
        };
        for range in [0..1, 0..10_000, 9_999..10_000, 1_234..4_321, 7..7] {
            let expected =
                &bytes[usize::try_from(range.start).unwrap_or(0)..usize::try_from(range.end).unwrap_or(0)];
            assert_eq!(get(range.clone()).expect("a range"), expected, "{range:?}");
        }
        let refused = get(9_000..10_001);
        assert!(matches!(refused, Err(BlobError::Range { length: 10_000, .. })), "{refused:?}");
    });
}

#[test]
fn a_damaged_file_never_arrives_whole() {
    let place = places().remove(0);
    let blob = place.blobs.put_blocking(TENANT, &content(100_000)[..]).expect("a file");
    let file = only_file(&place);
    let whole = std::fs::read(&file).expect("the file");
    let mut changed = whole.clone();
    changed[50_000] ^= 1;
    std::fs::write(&file, &changed).expect("a change");
    let error = read(&place.blobs, &blob).expect_err("the change is found");
    assert!(error.to_string().contains("damaged"), "{error}");
    std::fs::write(&file, &whole[..99_999]).expect("a cut");
    let error = read(&place.blobs, &blob).expect_err("the cut is found");
    assert!(error.to_string().contains("99999 bytes, expected 100000 bytes"), "{error}");
    // Nothing of the last piece was returned, whatever came before it.
    std::fs::write(&file, &changed).expect("a change");
    let given: usize = place.blobs.block_on(async {
        let reading = place.blobs.get(TENANT, &blob, None).await.expect("a beginning");
        reading.filter_map(|it| async { it.ok() }).map(|it| it.len()).collect::<Vec<_>>().await.iter().sum()
    });
    assert!(given < 100_000, "{given} bytes of a damaged file");
}

#[test]
fn what_stops_leaves_nothing() {
    on_each(|place| {
        for n_pieces in [1, 3] {
            let pieces = (0..n_pieces).map(|_| Ok(Bytes::from(content(PART_BYTES)))).chain([Err("cut off")]);
            let stopped = place.blobs.block_on(place.blobs.put(TENANT, stream::iter(pieces)));
            assert!(matches!(&stopped, Err(BlobError::Source(it)) if it == "cut off"), "{stopped:?}");
        }
        let small = Settings { file_bytes: 99, ..place.blobs.settings().clone() };
        let small = Blobs::open(&small, place.folder.path()).expect("a store");
        let refused = small.put_blocking(TENANT, &content(100)[..]);
        assert!(matches!(refused, Err(BlobError::TooLarge { most_bytes: 99 })), "{refused:?}");
        let swept = sweep(&place.blobs, &[]);
        assert_eq!(swept, Swept::default(), "{}", place.name);
    });
}

/// Sweeps everything that is not in `owned`, regardless of age.
fn sweep(blobs: &Blobs, owned: &[&Blob]) -> Swept {
    let owned: HashSet<&str> = owned.iter().map(|it| it.key.as_str()).collect();
    // File times may come from a coarser clock, or from another machine's: a day ahead is later than all of
    // them.
    let swept = blobs.block_on(blobs.sweep(TENANT, Duration::ZERO, |keys| {
        Ok::<_, BlobError>(keys.iter().map(|key| owned.contains(key.as_str())).collect())
    }));
    swept.expect("a sweep")
}

#[test]
fn what_nobody_owns_is_swept_when_it_is_old() {
    on_each(|place| {
        let put = |n: usize| place.blobs.put_blocking(TENANT, &content(n)[..]).expect("a file");
        let (mine, nobodys) = (put(1_000), put(2_000));
        let other = place.blobs.put_blocking("museum", &b"another's"[..]).expect("a file");
        let day = Duration::from_secs(24 * 3600);
        let young = place.blobs.block_on(place.blobs.sweep(TENANT, day, |_| Ok::<_, BlobError>(Vec::new())));
        assert_eq!(young.ok(), Some(Swept { n_files: 2, n_deleted: 0, n_bytes: 0 }));
        // The service's clock has a resolution of seconds.
        let mut swept = Swept::default();
        for _ in 0..600 {
            swept = sweep(&place.blobs, &[&mine]);
            if swept.n_deleted != 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(swept, Swept { n_files: 2, n_deleted: 1, n_bytes: 2_000 });
        assert_eq!(read(&place.blobs, &mine).expect("the file").len(), 1_000);
        assert!(read(&place.blobs, &nobodys).is_err());
        assert!(place.blobs.block_on(place.blobs.has("museum", &other)).expect("an answer"));
    });
}

#[test]
fn the_beginning_of_a_file_whose_writer_died_is_swept() {
    let place = places().remove(0);
    let blob = place.blobs.put_blocking(TENANT, &b"whole"[..]).expect("a file");
    let begun = only_file(&place).with_extension("").to_string_lossy().into_owned() + "#1";
    std::fs::write(&begun, b"begun").expect("a beginning");
    let swept = sweep(&place.blobs, &[&blob]);
    assert_eq!((swept.n_deleted, swept.n_bytes), (1, 5));
    assert!(!Path::new(&begun).exists());
    assert_eq!(read(&place.blobs, &blob).expect("the file"), b"whole");
}

#[test]
fn a_file_is_copied_once_and_deleted_once() {
    on_each(|from| {
        on_each(|to| {
            let blob = from.blobs.put_blocking(TENANT, &content(70_000)[..]).expect("a file");
            let copy = || from.blobs.block_on(from.blobs.copy(&to.blobs, TENANT, &blob));
            assert!(copy().expect("a copy"));
            assert!(!copy().expect("no second copy"));
            assert_eq!(read(&to.blobs, &blob).expect("the copy"), content(70_000));
            for _ in 0..2 {
                to.blobs.block_on(to.blobs.delete(TENANT, &blob.key)).expect("a deletion");
            }
            assert!(!to.blobs.block_on(to.blobs.has(TENANT, &blob)).expect("an answer"));
        });
    });
}

#[test]
fn a_store_that_cannot_be_used_says_so() {
    on_each(|place| place.blobs.block_on(place.blobs.probe()).expect("a store"));
    // A port that was free a moment ago: there is no server.
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
    let dead = Settings {
        place: "s3://pinakes".to_owned(),
        endpoint: format!("http://{free}"),
        access_key_id: "id".to_owned(),
        secret_access_key: pinakes_blobs::SecretText("hush".to_owned()),
        timeout_ms: 200,
        ..Settings::default()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let blobs = Blobs::open(&dead, folder.path()).expect("nobody is asked yet");
    let error = blobs.block_on(blobs.probe()).expect_err("nobody answers").to_string();
    assert!(error.contains("cannot be used") && !error.contains("hush"), "{error}");
    for place in ["s3://", "gs://bucket", "/srv/files"] {
        let settings = Settings { place: place.to_owned(), ..Settings::default() };
        let refused = Blobs::open(&settings, folder.path()).map(drop);
        assert!(matches!(refused, Err(BlobError::Settings(_))), "{place}: {refused:?}");
    }
}
