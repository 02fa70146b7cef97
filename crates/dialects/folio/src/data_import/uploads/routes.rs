//! The routes of uploads.

use crate::data_import::uploads::extensions::to;
use crate::data_import::uploads::{
    add_file, by_id, create, extensions, list, process, receive_file, remove, remove_file, replace, split,
};
use crate::platform::routes::Routes;

/// Adds the routes under `/data-import`.
pub(crate) fn routes(routes: Routes) -> Routes {
    let base = "/data-import/uploadDefinitions";
    let item = "/data-import/uploadDefinitions/{id}";
    let file = "/data-import/uploadDefinitions/{id}/files/{fileId}";
    routes
        .get(base, to("data-import.uploaddefinitions.collection.get"), list)
        .post(base, to("data-import.uploaddefinitions.post"), create)
        .get(item, to("data-import.uploaddefinitions.item.get"), by_id)
        .put(item, to("data-import.uploaddefinitions.put"), replace)
        .delete(item, to("data-import.uploaddefinitions.delete"), remove)
        .post(
            "/data-import/uploadDefinitions/{id}/files",
            to("data-import.uploaddefinitions.files.post"),
            add_file,
        )
        .post(file, to("data-import.upload.file.post"), receive_file)
        .delete(file, to("data-import.uploaddefinitions.files.delete"), remove_file)
        .post(
            "/data-import/uploadDefinitions/{id}/processFiles",
            to("data-import.processfiles.post"),
            process,
        )
        .with(split::routes)
        .with(extensions::routes)
}
