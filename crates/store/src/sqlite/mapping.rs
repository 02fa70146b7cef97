//! Keeps a connection's memory map of the file over commits.
//!
//! When somebody else has committed, the engine lets go of the whole map: another process might have cut the file off
//! and extended it again, which on some systems leaves a map that shows neither. On Linux a shared map always shows the
//! file as it is, so the map is kept there. Without it, the next read of each connection would fault in every page that it
//! looks at: beside fifty commits a second, eight readers of a large file had a third fewer answers.

#![allow(unsafe_code, reason = "the engine's file methods can only be replaced through its C interface")]

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use rusqlite::Connection;
use rusqlite::ffi::{
    SQLITE_FCNTL_FILE_POINTER, SQLITE_OK, sqlite3_file, sqlite3_file_control, sqlite3_int64,
    sqlite3_io_methods,
};

/// A map is renewed when it lacks more than one part in so many of the file.
const LACKING_SHARE: i64 = 8;
/// Size of the part that it may lack in any case.
const LACKING_BYTES: i64 = 1 << 20;

/// The engine's methods for files, and the same with [`unfetch`].
struct Methods {
    original: &'static sqlite3_io_methods,
    keeping: sqlite3_io_methods,
}

static METHODS: OnceLock<Methods> = OnceLock::new();

/// Makes a connection keep its map while the file grows only a little. Does nothing on systems other than Linux, nor where
/// the engine maps no files.
pub(super) fn keep_mapping(connection: &Connection) {
    if !cfg!(target_os = "linux") {
        return;
    }
    let mut file: *mut sqlite3_file = null_mut();
    // SAFETY: the handle is that of an open connection, the name is terminated, and for this operation the engine
    // writes a pointer to where the last argument points.
    let code = unsafe {
        sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            SQLITE_FCNTL_FILE_POINTER,
            (&raw mut file).cast(),
        )
    };
    // SAFETY: the engine has returned the file of the open database, which is valid until the connection is closed and
    // is used by this thread only. Its methods are a constant of the engine.
    let Some(file) = (unsafe { file.as_mut() }).filter(|_| code == SQLITE_OK) else { return };
    // SAFETY: as before.
    let Some(original) = (unsafe { file.pMethods.as_ref() }).filter(|it| 3 <= it.iVersion) else { return };
    let methods = METHODS.get_or_init(|| {
        let keeping = sqlite3_io_methods { xUnfetch: Some(unfetch), ..*original };
        Methods { original, keeping }
    });
    if std::ptr::eq(methods.original, original) {
        file.pMethods = &raw const methods.keeping;
    }
}

/// Releases a page of a map, or for a null pointer the whole map, unless it covers nearly all of the file.
unsafe extern "C" fn unfetch(file: *mut sqlite3_file, offset: sqlite3_int64, page: *mut c_void) -> c_int {
    let Some(methods) = METHODS.get() else { return SQLITE_OK };
    let Some(release) = methods.original.xUnfetch else { return SQLITE_OK };
    // SAFETY: the arguments are the engine's, which calls this as it would call the original.
    unsafe {
        if page.is_null() && is_covered(methods.original, file) {
            return SQLITE_OK;
        }
        release(file, offset, page)
    }
}

/// Returns whether the map of a file lacks only a small part of it.
///
/// # Safety
///
/// The file must be open and the methods its own.
unsafe fn is_covered(methods: &sqlite3_io_methods, file: *mut sqlite3_file) -> bool {
    let (Some(size_of), Some(fetch), Some(release)) = (methods.xFileSize, methods.xFetch, methods.xUnfetch)
    else {
        return false;
    };
    let (mut size, mut page) = (0, null_mut());
    // SAFETY: the caller's; a page that was fetched is released.
    unsafe {
        if size_of(file, &raw mut size) != SQLITE_OK {
            return false;
        }
        let offset = (size - LACKING_BYTES.max(size / LACKING_SHARE)).max(0);
        if fetch(file, offset, 1, &raw mut page) != SQLITE_OK || page.is_null() {
            return false;
        }
        release(file, offset, page) == SQLITE_OK
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::Path;

    use super::*;

    const ROW_BYTES: i64 = 4_000;

    /// Returns the size and the resident size of the maps of a file, in bytes.
    fn mapped(path: &Path) -> (i64, i64) {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("maps");
        let (mut is_own, mut sizes) = (false, (0, 0));
        for line in maps.lines() {
            let bytes =
                |rest: &str| rest.trim().trim_end_matches(" kB").parse::<i64>().expect("a size") << 10;
            match line.split_once(':') {
                Some(("Size", rest)) if is_own => sizes.0 += bytes(rest),
                Some(("Rss", rest)) if is_own => sizes.1 += bytes(rest),
                _ if line.contains('-') && line.contains(' ') && !line.ends_with("kB") => {
                    is_own = line.ends_with(&path.display().to_string());
                }
                _ => {}
            }
        }
        sizes
    }

    fn open(path: &Path, map_bytes: i64) -> Connection {
        let connection = Connection::open(path).expect("opens");
        connection.pragma_update(None, "journal_mode", "WAL").expect("a log");
        connection.pragma_update(None, "mmap_size", map_bytes).expect("a map");
        connection
    }

    /// Adds rows and checkpoints them.
    fn add(writer: &Connection, n: i64) {
        let sql = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < ?1) \
                   INSERT INTO r (text) SELECT printf('%.*c', ?2, 'x') FROM t";
        writer.execute(sql, [n, ROW_BYTES]).expect("rows");
        writer.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).expect("a checkpoint");
    }

    fn count(reader: &Connection) -> (i64, i64) {
        let sql = "SELECT count(*), sum(length(text)) FROM r";
        reader.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("counts")
    }

    fn touch(reader: &Connection) {
        let sql = "SELECT length(text) FROM r WHERE key = 1";
        assert_eq!(reader.query_row(sql, [], |row| row.get(0)), Ok(ROW_BYTES), "a row");
    }

    #[test]
    fn a_map_outlives_commits_and_follows_growth() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().canonicalize().expect("a path").join("file.sqlite");
        let writer = open(&path, 0);
        writer.execute("CREATE TABLE r (key INTEGER PRIMARY KEY, text TEXT)", []).expect("a table");
        add(&writer, 4_000);
        let reader = open(&path, 1 << 30);
        keep_mapping(&reader);
        assert_eq!(count(&reader), (4_000, 4_000 * ROW_BYTES));
        let (size, resident) = mapped(&path);
        assert!(4_000 * ROW_BYTES <= resident && resident <= size, "{size} {resident}");
        // A commit of another connection, and one that makes the file a little larger.
        for n in [1, 100] {
            add(&writer, n);
            touch(&reader);
            let now = mapped(&path);
            assert!(now.0 == size && resident <= now.1, "{n}: {now:?}");
        }
        assert_eq!(count(&reader), (4_101, 4_101 * ROW_BYTES));
        // One that makes it much larger.
        add(&writer, 2_000);
        touch(&reader);
        let now = mapped(&path);
        assert!(6_101 * ROW_BYTES <= now.0 && now.1 < resident, "{now:?}");
        assert_eq!(count(&reader), (6_101, 6_101 * ROW_BYTES));
        writer.execute("DELETE FROM r WHERE 10 < key", []).expect("deletes");
        writer.execute("VACUUM", []).expect("a vacuum");
        writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("a checkpoint");
        assert_eq!(count(&reader), (10, 10 * ROW_BYTES));
        add(&writer, 500);
        assert_eq!(count(&reader), (510, 510 * ROW_BYTES));
    }
}
