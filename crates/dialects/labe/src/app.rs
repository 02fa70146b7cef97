//! What every handler needs: the server's shared parts, the current graph, the maps.

use std::sync::Arc;

use http::HeaderMap;
use pinakes_citations::Graph;
use pinakes_http::{Context, Db, Refusal};
use pinakes_store::Kind;

use crate::error::MountError;
use crate::extra_ids::ExtraIds;
use crate::graph_file::{Copies, GraphFile};
use crate::id_maps::IdMaps;
use crate::settings::{GraphCopy, Settings};
use crate::shelf::slots::Shelves;
use crate::statistics::Statistics;

/// The dialect's state: cheap to clone.
#[derive(Clone)]
pub(crate) struct Labe {
    /// The server's shared parts.
    pub(crate) context: Context,
    /// The dialect's own parts.
    pub(crate) parts: Arc<Parts>,
}

/// The dialect's state while it runs.
pub(crate) struct Parts {
    pub(crate) settings: Settings,
    pub(crate) statistics: Statistics,
    pub(crate) shelves: Shelves,
    graph: Option<GraphFile>,
    extra: ExtraIds,
    public_kinds: Vec<&'static Kind>,
}

impl Parts {
    /// Opens the files that the settings name.
    pub(crate) fn open(settings: Settings) -> Result<Self, MountError> {
        let graph = match settings.graph.as_os_str().is_empty() {
            true => None,
            false => Some(GraphFile::open(&settings.graph, settings.graph_check_ms, copies(&settings))?),
        };
        let extra = match settings.ids.as_os_str().is_empty() {
            true => ExtraIds::default(),
            false => ExtraIds::read(&settings.ids, settings.ids_rows)?,
        };
        let public_kinds = public_kinds(&settings)?;
        let (statistics, shelves) = (Statistics::new(), Shelves::default());
        Ok(Self { settings, statistics, shelves, graph, extra, public_kinds })
    }

    /// Checks now whether the graph's file has changed.
    pub(crate) fn check_graph(&self) {
        if let Some(graph) = &self.graph {
            graph.check();
        }
    }

    /// Returns the kinds of other dialects whose records count as held.
    pub(crate) fn public_kinds(&self) -> &[&'static Kind] {
        &self.public_kinds
    }

    /// Returns the maps, for the graph that a request started with.
    pub(crate) fn maps<'a>(&'a self, graph: Option<&'a Graph>) -> IdMaps<'a> {
        IdMaps {
            graph,
            extra: &self.extra,
            catalogue: self.settings.catalogue_ids,
            public_kinds: &self.public_kinds,
        }
    }
}

impl Labe {
    /// Returns the graph to answer from.
    pub(crate) fn graph(&self) -> Option<Arc<Graph>> {
        let now_ms = self.context.clock().now_ms();
        self.parts.graph.as_ref().map(|file| file.current(now_ms))
    }

    /// Returns the tenant's data.
    pub(crate) async fn db(&self, headers: &HeaderMap) -> Result<Db, Refusal> {
        self.context.db(headers).await
    }
}

fn copies(settings: &Settings) -> Copies {
    match (settings.graph_copy, settings.copy_first) {
        (GraphCopy::None, _) => Copies::None,
        (GraphCopy::Keep, false) => Copies::Beside(settings.shelf_folder()),
        (GraphCopy::Keep, true) => Copies::First(settings.shelf_folder()),
    }
}

fn public_kinds(settings: &Settings) -> Result<Vec<&'static Kind>, MountError> {
    let find = |name: &String| {
        let found = settings.kinds.iter().copied().find(|kind| kind.name == name);
        found.ok_or_else(|| MountError::UnknownKind {
            name: name.clone(),
            known: settings.kinds.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", "),
        })
    };
    settings.public_kinds.iter().map(find).collect()
}
