//! Reviews of a dataset: datasets of the type `review` that refer to it, `GET /api/datasets/{id}/reviews`.

use pinakes_store::{Expr, Query, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::blocks::fields::Metadata;
use crate::citation::Cited;
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, Dataset, version};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::search::document::DOCUMENT;
use crate::search::{self, visible};
use crate::{envelope, permissions};

/// The dataset type of reviews.
const REVIEW: &str = "review";
/// Maximum number of reviews in one answer.
const REVIEWS: u64 = 1000;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.get("/datasets/{id}/reviews", list)
}

/// Returns whether a review refers to a dataset, by the URL of the reviewed item or among its related datasets.
fn is_of(blocks: &Value, dataset: &Dataset) -> bool {
    let metadata = Metadata(blocks);
    let url = dataset.persistent_url();
    let names_it = |text: &str| text.contains(&url) || text.contains(&dataset.pid);
    metadata.children("itemReviewed", "itemReviewedUrl").into_iter().any(names_it)
        || metadata.one("itemReviewedUrl").is_some_and(names_it)
        || metadata.many("relatedDatasets").into_iter().any(names_it)
}

async fn list(call: Call) -> Answer {
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let dataset = wanted.find(view)?;
        if !dataset.was_released() {
            permissions::require(view, &asker, dataset.place(), Permission::ViewUnpublishedDataset)?;
        }
        let filter = visible::visible(view, &asker)?
            .and(Expr::Is("type".into(), "datasets".into()))
            .and(search::parse("datasetType:review", 0).map_err(ApiError::bad_request)?.filter);
        let mut ids = Vec::new();
        let query = Query::filter(filter).window(0, REVIEWS);
        view.for_each(&DOCUMENT, &query, |record| {
            ids.extend(record.json().ok().and_then(|it| it["dataset"].as_i64()));
            std::ops::ControlFlow::Continue(())
        })?;
        ids.dedup();
        let publisher = datasets::show::publisher(view)?;
        let mut reviews = Vec::new();
        for id in ids {
            let Some(review) = datasets::by_id(view, id)?.filter(|it| it.dataset_type == REVIEW) else {
                continue;
            };
            let Some(shown) = &review.released else { continue };
            let version = version::of_dataset(view, &review, shown.version)?;
            let blocks = Value::Object(version.metadata_blocks.clone());
            if !is_of(&blocks, &dataset) {
                continue;
            }
            let cited = Cited::of(&review, &version, &publisher);
            reviews.push(json!({
                "id": review.id,
                "persistentId": review.pid,
                "persistentUrl": review.persistent_url(),
                "title": Metadata(&blocks).one("title").unwrap_or_default(),
                "authors": Metadata(&blocks).children("author", "authorName"),
                "description": Metadata(&blocks).children("dsDescription", "dsDescriptionValue").first(),
                "datePublished": review.publication_date,
                "citation": cited.text(),
                "citationHtml": cited.html(),
            }));
        }
        Ok(reviews)
    };
    envelope::ok(json!({"reviews": call.db().read(Weight::Scan, find).await?}))
}
