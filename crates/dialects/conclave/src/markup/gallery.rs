//! Galleries: the files of a folder, shown in place of an occurrence (section 8 of the contract).
//!
//! The configured folder contains `{map}/{scope}/{reference}`; a reference may name nested folders. Names that begin
//! with a dot, symbolic links to files, and folders outside of the configured one are treated as absent.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use crate::model::Occurrence;
use crate::text::{escape, push_encoded};

/// Behaviour of an occurrence that stands for the files of a folder.
pub(crate) const GALLERY: &str = "gallery";
/// Maximum number of files of a gallery; further ones are left out.
const FILES_MAX: usize = 1_000;
/// Largest file; larger ones are left out, because files are sent from memory.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What a request has found in the folders of galleries, by scope and reference: each folder is listed once, so a page
/// and its entity tag are of the same files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listed(Arc<Mutex<HashMap<Place, Arc<[Descriptor]>>>>);

/// Scope and reference of an occurrence.
type Place = (String, String);

/// Location of the galleries of a map.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Galleries<'g> {
    folder: &'g Path,
    map: &'g str,
    listed: &'g Listed,
}

/// A file of a gallery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// Its name in the folder.
    pub(crate) name: String,
    /// Its length.
    pub(crate) n_bytes: u64,
    /// When it was last changed, in milliseconds since 1970.
    pub(crate) modified_ms: i64,
    /// Its media type, derived from its name.
    pub(crate) media_type: &'static str,
    /// Its URL.
    href: String,
}

impl<'g> Galleries<'g> {
    /// Returns the galleries of a map; `None` if no folder is configured. `listed` belongs to one request.
    pub(crate) fn of(folder: &'g Path, map: &'g str, listed: &'g Listed) -> Option<Galleries<'g>> {
        (!folder.as_os_str().is_empty()).then_some(Galleries { folder, map, listed })
    }

    /// Returns the files of an occurrence, by name, as the request first found them; none if its folder does not exist.
    pub(crate) fn files(&self, it: &Occurrence) -> Arc<[Descriptor]> {
        let known = || self.listed.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (it.scope.clone(), it.reference.clone());
        if let Some(files) = known().get(&place) {
            return files.clone();
        }
        let files: Arc<[Descriptor]> = self.list(it).into();
        known().insert(place, files.clone());
        files
    }

    fn list(&self, it: &Occurrence) -> Vec<Descriptor> {
        let Some(place) = self.place(&it.scope, &it.reference) else { return Vec::new() };
        let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
        let described = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            self.descriptor(&it.scope, &it.reference, name, &entry.metadata().ok()?)
        });
        let mut files: Vec<Descriptor> = described.take(FILES_MAX).collect();
        files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        files
    }

    /// Returns a file of a gallery and its path on disk; `path` is the reference, a slash, and its name.
    pub(crate) fn file(&self, scope: &str, path: &str) -> Option<(Descriptor, PathBuf)> {
        let (reference, name) = path.rsplit_once('/')?;
        let place = self.place(scope, reference)?.join(name);
        let about = fs::symlink_metadata(&place).ok()?;
        Some((self.descriptor(scope, reference, name.to_owned(), &about)?, place))
    }

    fn descriptor(&self, scope: &str, reference: &str, name: String, about: &Metadata) -> Option<Descriptor> {
        if !is_plain(&name) || !about.is_file() || FILE_BYTES_MAX < about.len() {
            return None;
        }
        let modified = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let mut href = format!("/conclave/{}/gallery/", self.map);
        push_encoded(&mut href, &format!("{scope}/{reference}/{name}"));
        Some(Descriptor {
            n_bytes: about.len(),
            modified_ms: i64::try_from(modified.as_millis()).ok()?,
            media_type: media_type(&name),
            name,
            href,
        })
    }

    /// Returns the folder at a path below a scope of the map, if it exists.
    fn place(&self, scope: &str, path: &str) -> Option<PathBuf> {
        let mut place = self.folder.to_path_buf();
        for part in [self.map, scope].into_iter().chain(path.split('/')) {
            if !is_plain(part) {
                return None;
            }
            place.push(part);
        }
        let place = place.canonicalize().ok()?;
        place.starts_with(self.folder.canonicalize().ok()?).then_some(place)
    }
}

/// Returns whether a name is a single path component that is not hidden.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

fn media_type(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map(|it| it.1.to_ascii_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "txt" => "text/plain; charset=utf-8",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        _ => "application/octet-stream",
    }
}

impl Descriptor {
    /// Returns the description as JSON.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "name": self.name, "size": self.n_bytes, "type": self.media_type, "modified": self.modified_ms,
            "href": self.href,
        })
    }

    /// Returns the description as attributes of an element.
    pub(crate) fn attributes(&self) -> [(&'static str, String); 5] {
        [
            ("name", self.name.clone()),
            ("size", self.n_bytes.to_string()),
            ("type", self.media_type.to_owned()),
            ("modified", self.modified_ms.to_string()),
            ("href", self.href.clone()),
        ]
    }

    /// Returns a mark that changes when the file changes.
    pub(crate) fn mark(&self) -> String {
        format!("{}-{}-{}", self.name, self.n_bytes, self.modified_ms)
    }
}

/// Returns a gallery as HTML: images, and links to other files.
pub(crate) fn html(files: &[Descriptor]) -> String {
    let mut out = String::from("<ul class=\"gallery\">");
    for it in files {
        let (href, name) = (escape(&it.href), escape(&it.name));
        out.push_str(&if it.media_type.starts_with("image/") {
            format!("<li><a href=\"{href}\"><img src=\"{href}\" alt=\"{name}\" loading=\"lazy\"></a></li>")
        } else {
            format!("<li><a href=\"{href}\">{name}</a></li>")
        });
    }
    out.push_str("</ul>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    fn occurrence(reference: &str) -> Occurrence {
        Occurrence::new("pictures", GALLERY, reference)
    }

    #[test]
    fn a_gallery_is_the_files_of_its_folder_and_of_no_other() -> Outcome {
        let root = tempfile::tempdir()?;
        let folder = root.path().join("galleries");
        let place = folder.join("m/default/Top/Arts");
        fs::create_dir_all(place.join("folder"))?;
        fs::write(place.join("b <1>.png"), "png")?;
        fs::write(place.join("a.txt"), "text")?;
        fs::write(place.join(".hidden"), "no")?;
        fs::write(root.path().join("secret"), "no")?;
        std::os::unix::fs::symlink(root.path().join("secret"), place.join("z.txt"))?;
        std::os::unix::fs::symlink(root.path(), folder.join("m/default/away"))?;
        let listed = Listed::default();
        let galleries = Galleries::of(&folder, "m", &listed).ok_or("a folder")?;
        let files = galleries.files(&occurrence("Top/Arts"));
        assert_eq!(files.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["a.txt", "b <1>.png"]);
        assert_eq!(
            html(&files),
            "<ul class=\"gallery\"><li><a href=\"/conclave/m/gallery/default/Top/Arts/a.txt\">a.txt</a></li>\
             <li><a href=\"/conclave/m/gallery/default/Top/Arts/b%20%3C1%3E.png\">\
             <img src=\"/conclave/m/gallery/default/Top/Arts/b%20%3C1%3E.png\" alt=\"b &lt;1&gt;.png\" loading=\"lazy\"></a></li></ul>"
        );
        for reference in [
            "away",
            "Top/Nothing",
            "../m/default/Top/Arts",
            "Top//Arts",
            "Top/../Top/Arts",
            ".",
            "",
            "/",
            "Top\\Arts",
        ] {
            assert!(galleries.files(&occurrence(reference)).is_empty(), "{reference}");
        }
        assert!(galleries.file("default", "Top/Arts/a.txt").is_some());
        for (scope, path) in [
            ("default", "Top/Arts/z.txt"),
            ("default", "Top/Arts/.hidden"),
            ("default", "Top/Arts/folder"),
            ("default", "Top/Arts/../Arts/a.txt"),
            ("default", "Top/Arts/.."),
            ("default", "Top/Arts/"),
            ("..", "m/default/Top/Arts/a.txt"),
            ("default", "a.txt"),
        ] {
            assert!(galleries.file(scope, path).is_none(), "{scope} {path}");
        }
        assert!(Galleries::of(Path::new(""), "m", &listed).is_none());
        Ok(())
    }

    #[test]
    fn a_request_lists_a_folder_once() -> Outcome {
        let root = tempfile::tempdir()?;
        let place = root.path().join("m/default/Top");
        fs::create_dir_all(&place)?;
        fs::write(place.join("a.txt"), "text")?;
        let names = |listed: &Listed| {
            let files = Galleries::of(root.path(), "m", listed).map(|it| it.files(&occurrence("Top")));
            files.iter().flat_map(|it| it.iter()).map(|it| it.name.clone()).collect::<Vec<_>>()
        };
        let first = Listed::default();
        assert_eq!(names(&first), ["a.txt"]);
        fs::write(place.join("b.txt"), "text")?;
        assert_eq!(names(&first), ["a.txt"], "the page and its ETag would differ");
        assert_eq!(names(&Listed::default()), ["a.txt", "b.txt"]);
        Ok(())
    }
}
