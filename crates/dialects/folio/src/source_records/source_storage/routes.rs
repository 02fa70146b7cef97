//! The routes of source records and their snapshots.

use crate::platform::routes::Routes;
use crate::source_records::source_storage::{
    batch, matching, migrations, records, snapshots, source_records, stream,
};

/// Adds the routes under `/source-storage`.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .with(snapshots::routes)
        .with(records::routes)
        .with(source_records::routes)
        .with(stream::routes)
        .with(batch::routes)
        .with(matching::routes)
        .with(migrations::routes)
}
