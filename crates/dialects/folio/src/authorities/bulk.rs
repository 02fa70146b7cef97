//! `POST /authority-storage/authorities/bulk`: loads a file of authorities, one JSON object per line (section 8.3 of
//! the contract); `POST /instance-storage/instances/bulk` loads instances in the same way.
//!
//! The file was uploaded to a URL of `/data-import/uploadUrl` and is named by the key given out with that URL. Each
//! record is created, or replaces the record with the same id. Lines that are refused are written to one file and the
//! reasons to a second one; both are read with `GET /data-import/uploadedFiles?key=`.

use std::io::{BufRead, BufReader, Read as _};

use http::StatusCode;
use pinakes_store::{StoreError, Tenant, Txn};
use serde_json::{Map, Value, json};

use crate::data_import::uploads::{keep_file, kept_file};
use crate::platform::app::Call;
use crate::platform::collection::{Collection, Lock, Writer, write_all};
use crate::platform::error::{Answer, Fault, FolioError, Shape};
use crate::platform::limits::{BULK_RECORDS, BULK_REFUSED_BYTES};
use crate::platform::values::json_answer;

/// Loads the file that `{"recordsFileName"}` names; answers
/// `{"errorsNumber", "errorRecordsFileName", "errorsFileName"}`. The file names are present only if the files are not
/// empty.
///
/// Errors: 422 for a file that does not exist.
pub(crate) async fn load(mut call: Call, collection: &'static Collection) -> Answer {
    let body = call.object().await?;
    let name = body.get("recordsFileName").and_then(Value::as_str).unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(FolioError::unprocessable(Fault::missing("recordsFileName")));
    }
    let (writer, tenant) = (Writer::of(&call), call.db().tenant().clone());
    let now_ms = call.app.now_ms();
    let ids = [call.app.new_uuid(), call.app.new_uuid()];
    let limits = call.app.context.limits().clone();
    let work = move || -> Result<Value, FolioError> {
        let Some(file) = kept_file(&tenant, &name)? else {
            let fault = Fault::new(
                "there is no such file; put it to the URL that GET /data-import/uploadUrl?filename= gives and name it by \
                 the key given with that",
            );
            return Err(FolioError::unprocessable(fault.with("recordsFileName", &name)));
        };
        let mut refused = Refused::default();
        let mut lines = Lines { file: BufReader::new(file), most_bytes: limits.body_bytes, number: 0 };
        while store_some(&tenant, &writer, collection, &mut lines, &mut refused)? {
            if BULK_REFUSED_BYTES < refused.lines.len() {
                let reason =
                    format!("line {},too much was refused; the rest was not looked at\n", lines.number + 1);
                refused.reasons.extend_from_slice(reason.as_bytes());
                break;
            }
        }
        let mut answer = json!({"errorsNumber": refused.n});
        if 0 < refused.n {
            let files = [
                ("errorRecordsFileName", format!("{name}_failedEntities"), &refused.lines),
                ("errorsFileName", format!("{name}_errors"), &refused.reasons),
            ];
            for ((property, key, bytes), id) in files.into_iter().zip(&ids) {
                keep_file(&tenant, &key, bytes, id, now_ms)?;
                answer[property] = key.into();
            }
        }
        Ok(answer)
    };
    let done = tokio::task::spawn_blocking(work).await;
    let answer = done.unwrap_or_else(|_| Err(StoreError::Panicked.into()))?;
    Ok(json_answer(StatusCode::OK, &answer))
}

/// The lines that were not stored.
#[derive(Default)]
struct Refused {
    n: u64,
    lines: Vec<u8>,
    /// `id,reason` for each line; the line number where there is no id.
    reasons: Vec<u8>,
}

impl Refused {
    fn add(&mut self, line: &Line, reason: &str) {
        self.n += 1;
        self.lines.extend_from_slice(&line.bytes);
        self.lines.push(b'\n');
        let id = line.record.as_ref().ok().and_then(|it| it.get("id")).and_then(Value::as_str);
        let name = id.map_or_else(|| format!("line {}", line.number), str::to_owned);
        let reason = reason.replace(['\r', '\n'], " ");
        self.reasons.extend_from_slice(format!("{name},{reason}\n").as_bytes());
    }
}

/// Returns the reason why a record was refused, with the names of the properties at fault.
fn reason(error: &FolioError) -> String {
    let Shape::Errors(faults) = &error.shape else { return error.message() };
    let named = faults.iter().map(|fault| match fault.parameters.first() {
        Some((property, _)) => format!("{property}: {}", fault.message),
        None => fault.message.clone(),
    });
    named.collect::<Vec<_>>().join("; ")
}

/// A line of the file.
struct Line {
    number: u64,
    bytes: Vec<u8>,
    /// The record, or why the line is not one.
    record: Result<Map<String, Value>, String>,
}

struct Lines<R> {
    file: BufReader<R>,
    most_bytes: u64,
    number: u64,
}

impl<R: std::io::Read> Lines<R> {
    /// Reads the next line that is not blank. A line that is too long is cut off and reported as an error.
    fn next(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            let mut bytes = Vec::new();
            if self.file.by_ref().take(self.most_bytes).read_until(b'\n', &mut bytes)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let is_whole = bytes.ends_with(b"\n") || (bytes.len() as u64) < self.most_bytes;
            if !is_whole {
                self.file.skip_until(b'\n')?;
            }
            let text = bytes.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let record = match serde_json::from_slice(text) {
                _ if !is_whole => Err(format!("the line is longer than {} bytes", self.most_bytes)),
                Ok(Value::Object(record)) => Ok(record),
                Ok(_) => Err("the line is no JSON object".to_owned()),
                Err(error) => Err(format!("the line is no JSON: {error}")),
            };
            return Ok(Some(Line { number: self.number, bytes: text.to_vec(), record }));
        }
    }
}

/// Stores the next batch of lines and returns whether there may be more. If the batch is refused, each of its lines is
/// stored separately.
fn store_some<R: std::io::Read>(
    tenant: &Tenant,
    writer: &(impl Fn() -> Writer + Clone + Send + Sync + 'static),
    collection: &'static Collection,
    lines: &mut Lines<R>,
    refused: &mut Refused,
) -> Result<bool, FolioError> {
    let unread = |error: std::io::Error| FolioError::from(StoreError::Damaged(error.to_string()));
    let mut batch = Vec::with_capacity(BULK_RECORDS);
    let mut is_over = false;
    while batch.len() < BULK_RECORDS && refused.lines.len() <= BULK_REFUSED_BYTES {
        let Some(line) = lines.next().map_err(unread)? else {
            is_over = true;
            break;
        };
        match &line.record {
            Ok(_) => batch.push(line),
            Err(reason) => refused.add(&line, reason),
        }
    }
    let store = |lines: &[Line]| {
        let records: Vec<_> = lines.iter().filter_map(|it| it.record.as_ref().ok()).cloned().collect();
        let writer = writer.clone();
        tenant.write_blocking(move |txn: &mut Txn<'_>| {
            write_all(txn, &writer(), collection, &records, true, Lock::Ignored)
        })
    };
    if !batch.is_empty() && store(&batch).is_err() {
        for line in &batch {
            match store(std::slice::from_ref(line)) {
                Err(error) if error.status.is_server_error() => return Err(error),
                Err(error) => refused.add(line, &reason(&error)),
                Ok(()) => {}
            }
        }
    }
    Ok(!is_over)
}
