//! Unpacking of uploaded archives: entries become files, their folders directory labels.

use std::io::{Read, Seek, Write};

use pinakes_blobs::Blob;

use super::receive::{Received, Target, store_fault};
use super::types::HEAD_BYTES;
use crate::amounts::size_text;
use crate::error::ApiError;
use crate::files::checksum::Checksum;

/// Maximum number of entries, unless the setting `:ZipUploadFilesLimit` overrides it.
pub(crate) const ENTRIES: usize = 1000;
/// Maximum ratio of the size of all entries to that of the archive, beyond which it is considered a zip bomb.
const EXPANSION: u64 = 1000;
/// Total size of entries, in bytes, that is allowed whatever the archive's size.
const SMALL_BYTES: u64 = 64 << 20;
/// Longest path of an entry, in bytes.
const PATH_BYTES: usize = 1000;

/// Result of unpacking.
pub(crate) enum Unpacked {
    /// Its entries: (folder, file).
    Files(Vec<(String, Received)>),
    /// It has no files: at most folders, and metadata of operating systems.
    Nothing,
    /// It is not an archive that can be unpacked, and is kept as it is.
    AsItIs,
}

/// Unpacks an archive from the store of files. Must run on a thread that may block.
///
/// Errors: too many entries, a zip bomb; the store fails. Entries unpacked until then are swept.
pub(crate) fn unpack(target: &Target, archive: &Received, most_entries: usize) -> Result<Unpacked, ApiError> {
    let mut local = tempfile::tempfile().map_err(|error| disk_fault(&error))?;
    let mut reader = target.blobs.reader(&target.tenant, &archive.blob, None).map_err(store_fault)?;
    std::io::copy(&mut reader, &mut local).map_err(|error| disk_fault(&error))?;
    local.flush().and_then(|()| local.rewind()).map_err(|error| disk_fault(&error))?;
    let Ok(mut zip) = zip::ZipArchive::new(local) else {
        return Ok(Unpacked::AsItIs);
    };
    let mut wanted = Vec::new();
    for index in 0..zip.len() {
        let Ok(entry) = zip.by_index_raw(index) else {
            return Ok(Unpacked::AsItIs);
        };
        if entry.encrypted() {
            return Ok(Unpacked::AsItIs);
        }
        let Ok(name) = entry.name() else { continue };
        let Some(path) = place_of(&name).filter(|_| !entry.is_dir()) else { continue };
        wanted.push((index, path));
        if most_entries < wanted.len() {
            return Err(ApiError::bad_request(format!(
                "The number of files in the zip archive is over the limit ({most_entries}); please upload a zip archive \
                 with fewer files, if you want them to be ingested as individual DataFiles."
            )));
        }
    }
    if wanted.is_empty() {
        return Ok(Unpacked::Nothing);
    }
    let most_bytes = archive.blob.length.saturating_mul(EXPANSION).max(SMALL_BYTES);
    let mut left = most_bytes;
    let mut files = Vec::new();
    for (index, (folder, name)) in wanted {
        let Ok(entry) = zip.by_index(index) else {
            return Ok(Unpacked::AsItIs);
        };
        let mut reading = Reading {
            source: entry.take(left.min(target.most_bytes.unwrap_or(u64::MAX)).saturating_add(1)),
            checksum: Checksum::new(target.algorithm),
            head: Vec::new(),
        };
        let blob: Blob = match target.blobs.put_blocking(&target.tenant, &mut reading) {
            Ok(blob) => blob,
            Err(pinakes_blobs::BlobError::Source(_)) => {
                return Ok(Unpacked::AsItIs);
            }
            Err(error) => return Err(store_fault(error)),
        };
        left = left.checked_sub(blob.length).ok_or_else(|| {
            ApiError::bad_request(format!(
                "The zip archive unpacks to more than {}; please upload its files without compression.",
                size_text(most_bytes)
            ))
        })?;
        if target.most_bytes.is_some_and(|most| most < blob.length) {
            return Ok(Unpacked::AsItIs);
        }
        let received = Received {
            name,
            content_type: None,
            blob,
            checksum: reading.checksum.finish(),
            head: reading.head,
        };
        files.push((folder, received));
    }
    Ok(Unpacked::Files(files))
}

fn disk_fault(error: &std::io::Error) -> ApiError {
    tracing::error!(%error, "an archive cannot be unpacked");
    ApiError::internal("The archive cannot be unpacked. More details available at the server logs.")
}

/// Returns folder and name of an entry; `None` for metadata of operating systems, and for paths that lead out of the
/// archive.
fn place_of(path: &str) -> Option<(String, String)> {
    if PATH_BYTES < path.len() || path.contains('\0') {
        return None;
    }
    let steps: Vec<&str> = path.split(['/', '\\']).filter(|it| !it.is_empty() && *it != ".").collect();
    let is_hidden = |it: &&str| *it == "__MACOSX" || it.starts_with("._") || *it == ".DS_Store";
    if steps.iter().any(|it| *it == ".." || is_hidden(it)) || path.ends_with('/') {
        return None;
    }
    let (name, folders) = steps.split_last()?;
    let folder: String =
        folders.join("/").chars().map(|it| if is_folder_character(it) { it } else { '_' }).collect();
    Some((folder, clean_name(name)))
}

/// Returns whether a folder's name may contain the character.
pub(crate) fn is_folder_character(it: char) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.' | '\\' | '/' | ' ')
}

/// Returns a file's name without folders and without characters that are not allowed.
pub(crate) fn clean_name(name: &str) -> String {
    let cleaned: String = name
        .chars()
        .map(|it| if it.is_control() || r#"\/:*?"<>|;#"#.contains(it) { '_' } else { it })
        .collect();
    if matches!(cleaned.trim(), "" | "." | "..") { "file".to_owned() } else { cleaned }
}

/// A reader that computes the checksum of the bytes that are read.
struct Reading<R> {
    source: R,
    checksum: Checksum,
    head: Vec<u8>,
}

impl<R: Read> Read for Reading<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.source.read(buffer)?;
        self.checksum.update(&buffer[..n]);
        let missing = HEAD_BYTES.saturating_sub(self.head.len()).min(n);
        self.head.extend_from_slice(&buffer[..missing]);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_places_within_the_dataset() {
        let place = |path: &str| place_of(path).map(|(folder, name)| format!("{folder}|{name}"));
        assert_eq!(place("a/b/c.txt").as_deref(), Some("a/b|c.txt"));
        assert_eq!(place("/abs/x?.txt").as_deref(), Some("abs|x_.txt"));
        assert_eq!(place("./x.txt").as_deref(), Some("|x.txt"));
        for path in ["../../etc/passwd", "a/../b", "__MACOSX/x", "a/._b", "a/.DS_Store", "a/", ""] {
            assert_eq!(place(path), None, "{path}");
        }
    }
}
