//! The dialect's settings: the `[labe]` table of `pinakes.toml`.

use std::path::PathBuf;

use pinakes_store::Kind;
use serde::Deserialize;

/// Settings of the dialect.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The citation graph, built by `pinakes citations build`. If empty, no record has citations.
    pub graph: PathBuf,
    /// Table of local ids and DOIs in addition to the one in the graph: one `id<TAB>DOI` per line; plain, gzip or zstd.
    /// Empty for none. It is held in memory.
    pub ids: PathBuf,
    /// Whether DOIs in the records themselves count: `use` or `ignore`. With a graph that was built with the whole
    /// table of ids, `ignore` saves a look-up for each neighbour.
    pub catalogue_ids: CatalogueIds,
    /// Kinds of other dialects whose records count as held by their DOIs. All of these records are shown **to
    /// everybody**, no matter who may see them in their own dialect.
    pub public_kinds: Vec<String>,
    /// How often the graph's file is checked for a new one, in milliseconds (1 s).
    pub graph_check_ms: u64,
    /// Whether the graph is copied into an unnamed file, from which requests are then answered: `keep` or `none`. With
    /// `none` the file must never be overwritten, only replaced by renaming another one.
    pub graph_copy: GraphCopy,
    /// How long clients and caches may keep an answer, in seconds (60); 0 to forbid caching.
    pub max_age_s: u32,
    /// Maximum number of rows of the table `ids` (10,000,000). More rows are an error at the start.
    pub ids_rows: usize,
    /// Maximum total of citations and references for an answer that is built at once (256); longer ones are streamed by
    /// a reading thread.
    pub inline_neighbours: usize,
    /// Maximum number of rows in one answer of the OpenCitations API (200,000); further rows are left out.
    pub rows: usize,
    /// Number of rows of a page if `page` is given without `page_size` (100).
    pub page_rows: usize,
    /// Maximum number of works in one `metadata` request (100). More are answered with 404, as for any other invalid
    /// id.
    pub metadata_works: usize,
    /// Whether documents of works that occur in citations are kept ready to be sent, outside the store: `keep` or
    /// `none`. This takes the space of these documents a second time in an unnamed file, and 24 bytes of memory for
    /// each; without it, an answer needs a search in the store for each neighbour.
    pub shelf: ShelfUse,
    /// Folder of that file and of the graph's copy. If empty, the folder of the catalogue.
    pub shelf_folder: PathBuf,
    /// Whether an answer waits for the shelf instead of starting to build it and reading from the store. Not in the
    /// file: for tests.
    #[serde(skip)]
    pub shelf_first: bool,
    /// Whether a graph is served only after it has been copied. Not in the file: for tests.
    #[serde(skip)]
    pub copy_first: bool,
    /// Folder of the catalogue. Not in the file: set by the code that mounts the dialect; if empty, the system's
    /// temporary folder.
    #[serde(skip)]
    pub data: PathBuf,
    /// Every kind of the server, among which `public_kinds` are looked up. Not in the file: set by the code that mounts
    /// the dialect.
    #[serde(skip)]
    pub kinds: &'static [&'static Kind],
}

/// Whether DOIs in the records themselves count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CatalogueIds {
    /// They count, after those of the graph and the table.
    Use,
    /// Only the graph and the table count.
    Ignore,
}

/// Whether documents are kept ready outside the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShelfUse {
    /// They are.
    Keep,
    /// They are not.
    None,
}

/// Whether requests are answered from a copy of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GraphCopy {
    /// From a copy, as soon as it is complete.
    Keep,
    /// From the file itself.
    None,
}

impl Settings {
    /// Returns the folder in which the shelf's file is created.
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
