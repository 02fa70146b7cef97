//! The dialect's settings: the `[conclave]` table of `pinakes.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// Settings of the dialect.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Name of the site, shown on every page.
    pub site_name: String,
    /// Whether anonymous callers may read; otherwise readers must sign in.
    pub public: bool,
    /// Groups whose members may edit. If empty, every signed-in user may edit.
    pub editor_groups: Vec<String>,
    /// Groups whose members may import, export whole maps and do what editors may.
    pub admin_groups: Vec<String>,
    /// Scopes that only the members of a group may read: scope -> group. Answers to others leave out what is in these
    /// scopes.
    pub scopes: BTreeMap<String, String>,
    /// Kinds of other dialects' records that pages link if they have an identifier of the topic: kind -> address, in
    /// which `{id}` stands for the record's id. Records of these kinds are named **to everybody**, whoever may see them
    /// in their own dialect; without entries no records are linked.
    pub records: BTreeMap<String, String>,
    /// Folder with templates that override the built-in ones, by file name (`topic.html`, `layout.html`, ...). Empty
    /// for none. Read when the server starts.
    pub templates: PathBuf,
    /// Folder with the files of galleries, in `{map}/{scope}/{reference}`: its files are served to everybody who may
    /// read the scope. Empty for none.
    pub galleries: PathBuf,
    /// How long a sign-in lasts, in seconds (12 h).
    pub session_s: i64,
    /// How long caches may keep pages for anonymous readers without revalidation, in seconds (0: they always
    /// revalidate).
    pub max_age_s: u64,
    /// Maximum size of an import by HTTP, in bytes, uncompressed (256 MiB).
    pub import_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            site_name: "Topics".to_owned(),
            public: true,
            editor_groups: Vec::new(),
            admin_groups: vec!["admin".to_owned()],
            scopes: BTreeMap::new(),
            records: BTreeMap::new(),
            templates: PathBuf::new(),
            galleries: PathBuf::new(),
            session_s: 12 * 60 * 60,
            max_age_s: 0,
            import_bytes: 256 << 20,
        }
    }
}
