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
    /// Whether everybody may read; else one must be signed in.
    pub public: bool,
    /// Groups whose members may edit. Without any, every user may who is signed in.
    pub editor_groups: Vec<String>,
    /// Groups whose members may import, export whole maps and do what editors may.
    pub admin_groups: Vec<String>,
    /// Scopes that only the members of a group may read: scope -> group. What lies in them is left out of everything that
    /// others get.
    pub scopes: BTreeMap<String, String>,
    /// Kinds of other dialects' records that pages link when they carry an identifier of the topic: kind -> address, in
    /// which `{id}` stands for the record's id. Records of these kinds are named **to everybody**, whoever may see them
    /// in their own dialect; without entries none are.
    pub records: BTreeMap<String, String>,
    /// Folder with templates that take the place of the built-in ones, by file name (`topic.html`, `layout.html`, ...).
    /// Empty for none. Read when the server starts.
    pub templates: PathBuf,
    /// Folder with the files of galleries, `{map}/{scope}/{reference}` below it: what lies there is served to all who may
    /// read the scope. Empty for none.
    pub galleries: PathBuf,
    /// How long a sign-in lasts, in seconds (12 h).
    pub session_s: i64,
    /// How long pages that nobody is signed in for may be kept by caches without asking, in seconds (0: they always ask).
    pub max_age_s: u64,
    /// Most bytes of an import by HTTP, unpacked (256 MiB).
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
