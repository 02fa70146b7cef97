//! The routes of job executions.

use crate::data_import::change_manager::{
    by_id, cancel, create, hide, list_children, parsed_records, receive_records, replace, set_profile,
    set_status, to,
};
use crate::platform::routes::Routes;

/// Adds the routes under `/change-manager`.
pub(crate) fn routes(routes: Routes) -> Routes {
    let base = "/change-manager/jobExecutions";
    let item = "/change-manager/jobExecutions/{id}";
    routes
        .post(base, to("change-manager.jobexecutions.post"), create)
        .delete(base, to("change-manager.jobexecutions.delete"), hide)
        .get(item, to("change-manager.jobexecutions.get"), by_id)
        .put(item, to("change-manager.jobexecutions.put"), replace)
        .get(
            "/change-manager/jobExecutions/{id}/children",
            to("change-manager.jobexecution.children.collection.get"),
            list_children,
        )
        .put(
            "/change-manager/jobExecutions/{id}/status",
            to("change-manager.jobexecutions.status.item.put"),
            set_status,
        )
        .put(
            "/change-manager/jobExecutions/{id}/jobProfile",
            to("change-manager.jobexecutions.jobProfile.item.put"),
            set_profile,
        )
        .post(
            "/change-manager/jobExecutions/{id}/records",
            to("change-manager.records.post"),
            receive_records,
        )
        .delete("/change-manager/jobExecutions/{id}/records", to("change-manager.records.delete"), cancel)
        .with(parsed_records::routes)
}
