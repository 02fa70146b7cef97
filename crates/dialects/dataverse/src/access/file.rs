//! Download of one file, a range of it, or a table with only some of its columns.

use crate::access::{self, Content, archive};
use crate::app::Call;
use crate::error::Answer;
use crate::routing::Routes;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes.get("/access/datafile/{id}", download)
}

async fn download(call: Call) -> Answer {
    let found = access::admitted(&call).await?;
    access::check_guestbook(&call, &found).await?;
    let format = call.query.filled("format").unwrap_or_default();
    // Who names a format gets it, whatever else is asked for.
    if let Some(size) = call.query.get("imageThumb").filter(|_| format.is_empty()) {
        let size = size.to_owned();
        return crate::thumbnails::of_file(&call, &found.file, &size).await?.ok_or_else(access::no_service);
    }
    let response = match format {
        "subset" => archive::subset(&call, &found).await?,
        "RData" | "prep" => return Err(access::no_service()),
        _ => {
            let with_names = !call.query.is_true("noVarHeader");
            let content = Content::of(&found, format == "original", with_names)?;
            access::send(&call, content).await?
        }
    };
    access::count(&call, &found).await;
    Ok(response)
}
