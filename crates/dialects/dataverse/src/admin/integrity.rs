//! Integrity checks (files whose bytes are missing, checksums), and the feature flags of the original.

use std::io::Read as _;

use pinakes_blobs::Blob;
use pinakes_store::{Expr, Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::datasets::{self, DATASET, Dataset};
use crate::envelope;
use crate::error::{Answer, ApiError};
use crate::files::checksum::{Algorithm, Checksum};
use crate::files::receive::store_fault;
use crate::files::{self, Wanted, rows};
use crate::routing::Routes;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/admin/featureFlags", flags)
        .get("/admin/featureFlags/{flag}", flag)
        .get("/admin/datafiles/auditFiles", audit)
        .post("/admin/computeDataFileHashValue/{id}/algorithm/{algorithm}", compute)
        .post("/admin/validateDataFileHashValue/{id}", validate)
        .post("/admin/updateHashValues/{algorithm}", compute_many)
}

/// Feature flags of the original, each with whether this server behaves as if it were on.
const FLAGS: [(&str, bool); 25] = [
    ("ADD_LOCAL_CONTEXTS_PERMISSION_CHECK", false),
    ("ADD_PUBLICOBJECT_SOLR_FIELD", false),
    ("ALLOW_LOCALLY_FAIR_DATA", true),
    ("API_BEARER_AUTH", false),
    ("API_BEARER_AUTH_HANDLE_TOS_ACCEPTANCE_IN_IDP", false),
    ("API_BEARER_AUTH_PROVIDE_MISSING_CLAIMS", false),
    ("API_BEARER_AUTH_USE_BUILTIN_USER_ON_ID_MATCH", false),
    ("API_BEARER_AUTH_USE_OAUTH_USER_ON_ID_MATCH", false),
    ("API_BEARER_AUTH_USE_SHIB_USER_ON_ID_MATCH", false),
    ("API_SESSION_AUTH", false),
    ("AVOID_EXPENSIVE_SOLR_JOIN", false),
    ("CROISSANT_WITH_LOCAL_REVIEWS", false),
    ("DISABLE_DATASET_THUMBNAIL_AUTOSELECT", false),
    ("DISABLE_RETURN_TO_AUTHOR_REASON", false),
    ("ENABLE_PID_FAILURE_LOG", false),
    ("GLOBUS_USE_EXPERIMENTAL_ASYNC_FRAMEWORK", false),
    ("INDEX_HARVESTED_METADATA_SOURCE", true),
    ("ONLY_UPDATE_DATACITE_WHEN_NEEDED", false),
    ("REDUCE_SOLR_DELETES", false),
    ("REQUIRE_EMBARGO_REASON", false),
    (ROLE_HISTORY, true),
    ("SHIBBOLETH_USE_LOCALHOST", false),
    ("SHIBBOLETH_USE_WAYFINDER", false),
    ("UNIFY_API_RESPONSE_MESSAGE_STYLE", false),
    ("VERSION_NOTE", true),
];

/// The flag that corresponds to the setting `role_assignment_history`.
const ROLE_HISTORY: &str = "ROLE_ASSIGNMENT_HISTORY";

fn is_on(call: &Call, flag: &(&str, bool)) -> bool {
    if flag.0 == ROLE_HISTORY { call.app.settings.role_assignment_history } else { flag.1 }
}

async fn flags(call: Call) -> Answer {
    let word = |it| if is_on(&call, it) { "enabled" } else { "disabled" };
    let all = FLAGS.iter().map(|it| (it.0.to_owned(), word(it).into()));
    envelope::ok(all.collect::<serde_json::Map<_, Value>>())
}

async fn flag(call: Call) -> Answer {
    let found = FLAGS.iter().find(|it| it.0 == call.param("flag"));
    let missing = || ApiError::not_found("Feature flag not found. Try listing all feature flags.");
    envelope::ok(json!({"enabled": is_on(&call, found.ok_or_else(missing)?)}))
}

/// A file in the answer of an audit.
struct Audited {
    json: Value,
    /// `None` if its bytes were never stored here.
    blob: Option<String>,
}

/// A dataset with its files.
type Audit = (Dataset, Vec<Audited>);

/// Returns the datasets whose files are audited, and the given names for which there is no dataset.
fn audited(
    view: &mut View<'_>,
    first: i64,
    last: i64,
    names: &[String],
) -> Result<(Vec<Audit>, Vec<Value>), ApiError> {
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    if names.is_empty() {
        for id in rows::ids_of(view, &DATASET, Expr::All)? {
            let id = id.parse().unwrap_or_default();
            if (first..=last).contains(&id) {
                found.extend(datasets::by_id(view, id)?);
            }
        }
    }
    for name in names {
        let dataset = match name.parse() {
            Ok(id) => datasets::by_id(view, id)?,
            Err(_) => datasets::by_pid(view, name)?,
        };
        match dataset {
            Some(it) => found.push(it),
            None => failures.push(json!({"datasetIdentifier": name, "reason": "Not Found"})),
        }
    }
    let mut all = Vec::with_capacity(found.len());
    for dataset in found {
        let mut files = Vec::new();
        for id in rows::ids_of(view, &files::kinds::DATA_FILE, Expr::Is("dataset".into(), dataset.id.into()))?
        {
            let Some(file) = rows::data_file(view, id.parse().unwrap_or_default())? else { continue };
            let row = rows::of_file(view, file.id)?.pop().unwrap_or_default();
            let json = json!({
                "storageIdentifier": file.storage_identifier,
                "directoryLabel": row.directory,
                "label": row.label,
            });
            files.push(Audited { json, blob: file.blob });
        }
        all.push((dataset, files));
    }
    Ok((all, failures))
}

/// Lists files whose bytes are missing: `?firstId=&lastId=` or `?datasetIdentifierList=`.
async fn audit(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let (first, last) = (call.query.number("firstId")?, call.query.number("lastId")?);
    let list = call.query.filled("datasetIdentifierList").unwrap_or_default();
    let names: Vec<String> =
        list.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect();
    let (start, end) = (first.unwrap_or(0), last.unwrap_or(i64::MAX));
    if end < start {
        return Err(ApiError::bad_request(
            "Invalid Parameters: lastId must be equal to or greater than firstId",
        ));
    }
    let wanted = names.clone();
    let read = move |view: &mut View<'_>| audited(view, start, end, &wanted);
    let (all, failures) = call.db().read(Weight::Scan, read).await?;
    let n_checked = all.len();
    let blobs = call.app.context.blobs();
    let mut broken = Vec::new();
    for (dataset, files) in all {
        let mut missing = Vec::new();
        for file in files {
            let blob = file.blob.as_deref().map(str::parse::<Blob>).transpose().map_err(store_fault)?;
            let is_there = match &blob {
                Some(blob) => blobs.has(call.tenant(), blob).await.map_err(store_fault)?,
                None => false,
            };
            if !is_there {
                missing.push(file.json);
            }
        }
        if !missing.is_empty() {
            broken.push(json!({
                "id": dataset.id,
                "pid": dataset.pid,
                "persistentURL": dataset.persistent_url(),
                "missingFiles": missing,
            }));
        }
    }
    envelope::ok(Value::Object(envelope::object(json!({
        "firstId": first.filter(|_| names.is_empty()),
        "lastId": last.filter(|_| names.is_empty()),
        "datasetIdentifierList": Some(&names).filter(|it| !it.is_empty()),
        "datasetsChecked": n_checked,
        "datasets": broken,
        "failures": failures,
    }))))
}

/// Returns the file of the path, for superusers. Errors: 401 for others, 400 if there is no such file.
async fn file_of(call: &Call) -> Result<files::DataFile, ApiError> {
    if !call.asker.is_superuser() {
        return Err(ApiError::unauthorized("must be superuser"));
    }
    let missing = ApiError::bad_request(format!("Could not find file with the id: {}", call.param("id")));
    let Ok(wanted) = Wanted::of(call) else { return Err(missing) };
    let found = call.db().read(Weight::Point, move |view| wanted.find(view)).await;
    found.map_err(|error| if error.status.is_server_error() { error } else { missing })
}

fn disk_fault(error: &dyn std::fmt::Display) -> ApiError {
    tracing::error!(%error, "a file cannot be read");
    ApiError::internal("The file cannot be read. More details available at the server logs.")
}

/// Computes the checksum of a file's bytes as they were deposited.
pub(super) async fn computed(
    call: &Call,
    file: &files::DataFile,
    algorithm: Algorithm,
) -> Result<String, ApiError> {
    let deposited = match &file.original {
        Some(original) => Some(original.blob.as_str()).filter(|it| !it.is_empty()),
        None => file.blob.as_deref(),
    };
    let elsewhere = || ApiError::not_found("The file's bytes are not kept here.");
    let blob: Blob = deposited.ok_or_else(elsewhere)?.parse().map_err(store_fault)?;
    let (blobs, tenant) = (call.app.context.blobs().clone(), call.tenant().to_owned());
    let work = move || {
        let mut reader = blobs.reader(&tenant, &blob, None).map_err(store_fault)?;
        let mut checksum = Checksum::new(algorithm);
        let mut piece = vec![0; 1 << 16];
        loop {
            match reader.read(&mut piece).map_err(|error| disk_fault(&error))? {
                0 => return Ok(checksum.finish()),
                n => checksum.update(&piece[..n]),
            }
        }
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| disk_fault(&error))?
}

/// Returns the algorithm of the path. Errors: 400.
fn algorithm_of(call: &Call) -> Result<Algorithm, ApiError> {
    match call.param("algorithm") {
        "MD5" => Ok(Algorithm::Md5),
        name => Some(Algorithm::named(name))
            .filter(|it| *it != Algorithm::Md5)
            .ok_or_else(|| ApiError::bad_request("Unknown algorithm")),
    }
}

async fn compute(call: Call) -> Answer {
    let file = file_of(&call).await?;
    let algorithm = algorithm_of(&call)?;
    let checksum = renewed(&call, &file, algorithm).await?;
    let id = file.id;
    envelope::message(format!(
        "Datafile rehashing complete. {id} datafile successfully rehashed. New hash value is: {checksum}"
    ))
}

/// Files read at once.
const FILES_AT_ONCE: usize = 500;

/// `POST /admin/updateHashValues/{algorithm}?num=`: replaces the checksums of at most this many files by those of the
/// algorithm. A file whose bytes do not match its checksum keeps it.
async fn compute_many(call: Call) -> Answer {
    if !call.asker.is_superuser() {
        return Err(ApiError::unauthorized("must be superuser"));
    }
    let algorithm = algorithm_of(&call)?;
    let most = usize::try_from(call.query.number("num")?.unwrap_or(0)).unwrap_or(0);
    let every = |view: &mut View<'_>| rows::ids_of(view, &files::kinds::DATA_FILE, Expr::All);
    let ids = call.db().read(Weight::Scan, every).await?;
    let (mut n_tried, mut n_renewed) = (0_usize, 0_usize);
    for some in ids.chunks(FILES_AT_ONCE) {
        if most <= n_tried {
            break;
        }
        let some = some.to_vec();
        let read = move |view: &mut View<'_>| -> Result<Vec<files::DataFile>, ApiError> {
            let each = some.iter().map(|id| rows::data_file(view, id.parse().unwrap_or_default()));
            Ok(each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        };
        let files = call.db().read(Weight::Scan, read).await?;
        let others = files.iter().filter(|it| it.checksum_type != algorithm.name() && it.blob.is_some());
        for file in others {
            if most <= n_tried {
                break;
            }
            n_tried += 1;
            let before = computed(&call, file, Algorithm::named(&file.checksum_type)).await?;
            if before == file.checksum {
                renewed(&call, file, algorithm).await?;
                n_renewed += 1;
            } else {
                tracing::warn!(file = file.id, "a file's bytes are not those of its checksum, which is kept");
            }
        }
    }
    envelope::message(format!(
        "Datafile rehashing complete.{n_renewed} of  {n_tried} files successfully rehashed."
    ))
}

/// Replaces a file's checksum by that of another algorithm, and returns it.
async fn renewed(call: &Call, file: &files::DataFile, algorithm: Algorithm) -> Result<String, ApiError> {
    let checksum = computed(call, file, algorithm).await?;
    let (id, new) = (file.id, checksum.clone());
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let Some(mut file) = rows::data_file(txn, id)? else { return Ok(()) };
        algorithm.name().clone_into(&mut file.checksum_type);
        file.checksum.clone_from(&new);
        rows::put_file(txn, &file)?;
        for row in rows::of_file(txn, id)? {
            rows::put_row(txn, row, &new)?;
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(checksum)
}

async fn validate(call: Call) -> Answer {
    let file = file_of(&call).await?;
    let (id, kept) = (file.id, file.checksum.clone());
    let checksum = computed(&call, &file, Algorithm::named(&file.checksum_type)).await?;
    if checksum == kept {
        return envelope::message(format!(
            "Datafile validation complete for {id}. The hash value is: {checksum}"
        ));
    }
    Err(ApiError::new(
        http::StatusCode::EXPECTATION_FAILED,
        format!(
            "Datafile validation failed for {id}. The saved hash value is: {kept} while the recalculated hash value for the stored file is: {checksum}"
        ),
    ))
}
