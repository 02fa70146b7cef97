//! File transfers with Globus and rsync. This server supports neither, and answers like an original on which they are
//! not configured.

use http::StatusCode;
use pinakes_store::Weight;

use crate::app::Call;
use crate::datasets::wanted::Wanted;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/datasets/{id}/globusUploadParameters", no_upload)
        .post("/datasets/{id}/requestGlobusUploadPaths", no_upload)
        .post("/datasets/{id}/addGlobusFiles", no_upload)
        .post("/datasets/{id}/deleteglobusRule", no_upload)
        .get("/datasets/{id}/globusDownloadParameters", no_download)
        .post("/datasets/{id}/requestGlobusDownload", no_download)
        .post("/datasets/{id}/monitorGlobusDownload", no_download)
        .get("/datasets/{id}/dataCaptureModule/rsync", no_rsync)
        .post("/datasets/{id}/dataCaptureModule/checksumValidation", no_rsync)
}

async fn no_upload(_: Call) -> Answer {
    Err(ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "File upload via Globus is not available for this installation of Dataverse.",
    ))
}

async fn no_download(_: Call) -> Answer {
    Err(ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "File transfer from Dataverse via Globus is not available for this dataset.",
    ))
}

async fn no_rsync(call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    call.db().read(Weight::Point, move |view| wanted.find(view)).await?;
    Err(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, ":UploadMethods does not contain dcm/rsync+ssh."))
}
