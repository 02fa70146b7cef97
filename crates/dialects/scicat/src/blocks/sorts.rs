//! The differences between the two types of blocks, and what both inherit from their dataset.

use std::ops::ControlFlow;

use pinakes_http::Sink;
use pinakes_store::{Kind, Record, StoreError, Txn, View};
use serde_json::{Map, Value};

use crate::documents::object;
use crate::dto::{datablock, origdatablock};
use crate::error::ScicatError;
use crate::fullquery::Search;
use crate::kinds::{DATABLOCK, DATASET, FILES, ORIG_DATABLOCK};
use crate::projection::Projection;
use crate::validate::Dto;

/// The differences between the two types of blocks.
pub(crate) struct BlockType {
    pub(crate) kind: &'static Kind,
    /// Rules for the body of `POST` with `datasetId`.
    pub(crate) table: &'static Dto,
    /// Rules for the body of `POST` below a dataset.
    pub(crate) table_of_dataset: &'static Dto,
    /// The field of the block that is summed, and the dataset's field with the sum.
    pub(crate) size: (&'static str, &'static str),
    /// The dataset's field with the number of files.
    n_files: &'static str,
    /// The name in messages.
    pub(crate) name: &'static str,
    pub(crate) search: Search,
}

pub(crate) static ORIG: BlockType = BlockType {
    kind: &ORIG_DATABLOCK,
    table: &origdatablock::ORIG_DATABLOCK,
    table_of_dataset: &origdatablock::ORIG_DATABLOCK_OF_DATASET,
    size: ("size", "size"),
    n_files: "numberOfFiles",
    name: "OrigDatablock",
    search: Search { kind: &ORIG_DATABLOCK, quantities: "", quantity_key: "" },
};

pub(crate) static ARCHIVED: BlockType = BlockType {
    kind: &DATABLOCK,
    table: &datablock::DATABLOCK,
    table_of_dataset: &datablock::DATABLOCK_OF_DATASET,
    size: ("packedSize", "packedSize"),
    n_files: "numberOfFilesArchived",
    name: "Datablock",
    search: Search { kind: &DATABLOCK, quantities: "", quantity_key: "" },
};

/// Writes a block with the chosen fields and `tail` (further members, preceded by a comma); returns false when the
/// client has gone away. Files are copied as they are stored, unless parts of each are chosen: then they are parsed one
/// chunk at a time.
pub(crate) fn push(
    view: &mut View<'_>,
    kind: &'static Kind,
    record: &Record,
    fields: &Projection,
    tail: &str,
    sink: &mut Sink,
) -> Result<bool, ScicatError> {
    let head = match fields {
        Projection::Everything => record.body.clone(),
        fields => {
            let mut head = object(record)?;
            fields.apply(&mut head);
            Value::Object(head).to_string().into()
        }
    };
    if !fields.shows(FILES) {
        let begun = sink.push(&head[..head.len().saturating_sub(1)]);
        return Ok(begun.and_then(|()| sink.push(tail.as_bytes())).and_then(|()| sink.push(b"}")).is_ok());
    }
    let begin: &[u8] = if head.len() <= 2 { b"\"dataFileList\":[" } else { b",\"dataFileList\":[" };
    let mut is_taken =
        sink.push(&head[..head.len().saturating_sub(1)]).and_then(|()| sink.push(begin)).is_ok();
    let (in_parts, mut damage) = (fields.divides(FILES), None);
    view.members(kind, record, 0, |first, _, chunk| {
        let comma: &[u8] = if first == 0 { b"" } else { b"," };
        let pushed = if in_parts {
            match parts(chunk, fields) {
                Ok(files) => sink.push(comma).and_then(|()| sink.push(files.as_bytes())),
                Err(error) => {
                    damage = Some(error);
                    return ControlFlow::Break(());
                }
            }
        } else {
            sink.push(comma).and_then(|()| sink.push(chunk))
        };
        is_taken = is_taken && pushed.is_ok();
        if is_taken { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    match damage {
        Some(error) => Err(StoreError::Damaged(format!("files of {:?}: {error}", record.id)).into()),
        None => Ok(is_taken
            && sink
                .push(b"]")
                .and_then(|()| sink.push(tail.as_bytes()))
                .and_then(|()| sink.push(b"}"))
                .is_ok()),
    }
}

/// Returns the chosen parts of a chunk's files, joined by commas.
pub(crate) fn parts(chunk: &[u8], fields: &Projection) -> serde_json::Result<String> {
    let list: Vec<Value> = serde_json::from_slice(&[b"[", chunk, b"]"].concat())?;
    let mut files = Map::new();
    files.insert(FILES.to_owned(), Value::Array(list));
    fields.apply(&mut files);
    let list = files.get(FILES).map(Value::to_string).unwrap_or_default();
    Ok(list.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or_default().to_owned())
}

/// The fields of a dataset that decide who may see its blocks.
pub(crate) const FOLLOWED: [&str; 5] =
    ["ownerGroup", "accessGroups", "instrumentGroup", "isPublished", "sharedWith"];

/// Copies the fields that decide who may see a block from its dataset.
pub(crate) fn follow(block: &mut Map<String, Value>, dataset: &Value) {
    for field in FOLLOWED {
        follow_in(block, dataset, field);
    }
}

/// Copies only those of these fields that a change of the dataset changed; values that the block set itself stay.
pub(crate) fn follow_change(block: &mut Map<String, Value>, before: &Value, after: &Value) {
    for field in FOLLOWED.into_iter().filter(|it| before.get(*it) != after.get(*it)) {
        follow_in(block, after, field);
    }
}

pub(crate) fn follow_in(block: &mut Map<String, Value>, dataset: &Value, field: &str) {
    // The original's blocks have no such list, so it is set only if it is not empty.
    let is_shown = |it: &&Value| {
        !it.is_null() && (field != "sharedWith" || it.as_array().is_some_and(|it| !it.is_empty()))
    };
    match dataset.get(field).filter(is_shown) {
        Some(value) => drop(block.insert(field.to_owned(), value.clone())),
        None => drop(block.shift_remove(field)),
    }
}

/// Changes the dataset's sums by a difference. Does nothing if the dataset is gone.
pub(crate) fn add_to_dataset(
    txn: &mut Txn<'_>,
    sort: &BlockType,
    pid: &str,
    size: f64,
    n_files: i64,
) -> Result<(), ScicatError> {
    let Some(record) = txn.get(&DATASET, pid)? else { return Ok(()) };
    let mut dataset = object(&record)?;
    for (field, difference) in [(sort.size.1, size), (sort.n_files, n_files as f64)] {
        let before = dataset.get(field).and_then(Value::as_f64).unwrap_or(0.0);
        dataset.insert(field.to_owned(), whole_number(before + difference));
    }
    txn.update(&DATASET, pid, &Value::Object(dataset))?;
    Ok(())
}

/// Returns a whole number as an integer, so that sums of integers stay integers.
pub(crate) fn whole_number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { Value::from(value as i64) } else { Value::from(value) }
}
