//! Jobs of exports and their logs.

use pinakes_store::{Column, Index, Kind, Search, Type};

use crate::platform::collection::{Collection, Metadata, Schema};
use crate::platform::cql::Names;
use crate::platform::error::{Fault, FolioError};

/// `/data-export/job-executions`.
pub(crate) static JOBS: Collection = Collection {
    permission: "data-export.job-executions",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("hrId", Type::Integer),
            Column::one("status", Type::Text),
            Column::one("jobProfileId", Type::Text),
            Column::at("run_by", "runBy.userId", Type::Text),
            Column::one("startedDate", Type::Instant),
            Column::one("completedDate", Type::Instant),
        ],
        indexes: &[Index::on(&["hrId"]), Index::on(&["completedDate"])],
        search: Search::Folded,
        ..Kind::named("folio_export_job")
    },
    schema: Schema::OPEN,
    names: Names {
        fields: &[
            "jobProfileName",
            "exportedFiles.fileName",
            "progress.exported",
            "progress.failed",
            "progress.total",
        ],
        ..Names::PLAIN
    },
    metadata: Metadata::Off,
    is_served: false,
    ..Collection::named("/data-export/job-executions", "jobExecutions", "folio_export_job")
};

/// `/data-export/logs`: records that were not exported, and why.
pub(crate) static LOGS: Collection = Collection {
    permission: "data-export.logs",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("jobExecutionId", Type::Text), Column::one("logLevel", Type::Folded)],
        indexes: &[Index::on(&["jobExecutionId"])],
        search: Search::Folded,
        ..Kind::named("folio_export_log")
    },
    names: Names { fields: &["errorMessageCode", "errorMessageValues", "createdDate"], ..Names::PLAIN },
    metadata: Metadata::Off,
    is_served: false,
    ..Collection::named("/data-export/logs", "errorLogs", "folio_export_log")
};

pub(crate) fn invalid(name: &str, value: &str, message: String) -> FolioError {
    FolioError::unprocessable(Fault::new(message).ty("-1").code("-1").with(name, value))
}
