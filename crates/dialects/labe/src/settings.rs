//! The dialect's settings: the `[labe]` table of `pinakes.toml`.

use std::path::PathBuf;

use pinakes_store::Kind;
use serde::Deserialize;

/// Settings of the dialect.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The citation graph, made by `pinakes citations build`. Empty for none: then nothing has citations.
    pub graph: PathBuf,
    /// Table of local ids and DOIs beside the one in the graph: `id<TAB>DOI` a line, plain, gzip or zstd. Empty for
    /// none. It is held in memory.
    pub ids: PathBuf,
    /// Whether the DOIs that the records carry themselves count: `use` or `ignore`. With a graph that was built with
    /// the whole table of ids, `ignore` saves a look-up for each neighbour.
    pub catalogue_ids: CatalogueIds,
    /// Kinds of other dialects whose records count as held by their DOIs. All of them are shown **to everybody**,
    /// whoever may see them in their own dialect.
    pub public_kinds: Vec<String>,
    /// How often the graph's file is looked at for a new one, in milliseconds (1 s).
    pub graph_check_ms: u64,
    /// Whether the graph is copied into a nameless file, from which answers are given then: `keep` or `none`. With `none`
    /// its file must never be written over, only replaced by renaming another one.
    pub graph_copy: GraphCopy,
    /// How long clients and caches may keep an answer, in seconds (60); 0 for not at all.
    pub max_age_s: u32,
    /// Most rows of the table `ids` (10,000,000). Beyond: an error at the start.
    pub ids_rows: usize,
    /// Citations and references together up to which an answer is made at once (256); longer ones are streamed by a
    /// reading thread.
    pub inline_neighbours: usize,
    /// Most rows of one answer of the OpenCitations API (200,000); rows beyond are left out.
    pub rows: usize,
    /// Rows of a page when `page` is asked for without `page_size` (100).
    pub page_rows: usize,
    /// Most works asked for at once in `metadata` (100). Beyond: 404, as for any other bad id.
    pub metadata_works: usize,
    /// Whether documents of works that citations lead to are kept ready for answers, as they are sent, beside the
    /// store: `keep` or `none`. It costs room for these documents once more in a nameless file, and 24 bytes of memory for each;
    /// without it an answer costs a search in the store for each neighbour.
    pub shelf: ShelfUse,
    /// Folder of that file and of the graph's copy. Empty for the folder of the catalogue.
    pub shelf_folder: PathBuf,
    /// Whether an answer waits for the shelf rather than begin it and ask the store. Not in the file: for tests.
    #[serde(skip)]
    pub shelf_first: bool,
    /// Whether a graph is served only when its copy is made. Not in the file: for tests.
    #[serde(skip)]
    pub copy_first: bool,
    /// Folder of the catalogue. Not in the file: whoever mounts the dialect sets it; empty for the system's temporary folder.
    #[serde(skip)]
    pub data: PathBuf,
    /// Every kind that the server knows, among which `public_kinds` are found. Not in the file: whoever mounts the
    /// dialect sets it.
    #[serde(skip)]
    pub kinds: &'static [&'static Kind],
}

/// Whether the DOIs that records carry themselves count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CatalogueIds {
    /// They do, behind those of the graph and the table.
    Use,
    /// Only the graph and the table count.
    Ignore,
}

/// Whether documents are kept ready beside the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShelfUse {
    /// They are.
    Keep,
    /// They are not.
    None,
}

/// Whether answers are given from a copy of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GraphCopy {
    /// They are, as soon as it is made.
    Keep,
    /// They are given from the file itself.
    None,
}

impl Settings {
    /// Where the shelf's file is made.
    pub(crate) fn shelf_folder(&self) -> PathBuf {
        let given = [&self.shelf_folder, &self.data].into_iter().find(|it| !it.as_os_str().is_empty());
        given.cloned().unwrap_or_else(std::env::temp_dir)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            graph: PathBuf::new(),
            ids: PathBuf::new(),
            catalogue_ids: CatalogueIds::Use,
            public_kinds: Vec::new(),
            graph_check_ms: 1_000,
            graph_copy: GraphCopy::Keep,
            max_age_s: 60,
            ids_rows: 10_000_000,
            inline_neighbours: 256,
            rows: 200_000,
            page_rows: 100,
            metadata_works: 100,
            shelf: ShelfUse::Keep,
            shelf_folder: PathBuf::new(),
            shelf_first: false,
            copy_first: false,
            data: PathBuf::new(),
            kinds: &[],
        }
    }
}
