//! Exports records to a file, one JSON object per line, which [`crate::import`] reads back byte for byte. A
//! block is written with its files, streamed.

use std::io::{self, Write};
use std::ops::ControlFlow;

use pinakes_store::{Expr, Kind, Query, Record, StoreError, Tenant, View};

use crate::import::imported::RecordType;

/// Reason why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The output failed.
    #[error("the output: {0}")]
    Output(#[from] io::Error),
}

/// Writes all records of `sorts` from one snapshot, type by type in that order, each type from oldest to
/// newest. Calls `note` after each record with the number of bytes written for it. Returns the number of
/// records of each type.
pub fn export(
    tenant: &Tenant,
    sorts: &[RecordType],
    output: &mut impl Write,
    mut note: impl FnMut(u64),
) -> Result<Vec<(RecordType, u64)>, ExportError> {
    tenant.read_blocking(|view| {
        let mut counts = Vec::new();
        for sort in sorts {
            let n = match sort.kind().members {
                None => export_bodies(view, sort.kind(), output, &mut note)?,
                Some(field) => export_blocks(view, sort.kind(), field, output, &mut note)?,
            };
            counts.push((*sort, n));
        }
        Ok(counts)
    })
}

fn export_bodies(
    view: &mut View<'_>,
    kind: &'static Kind,
    output: &mut impl Write,
    note: &mut impl FnMut(u64),
) -> Result<u64, ExportError> {
    let mut n = 0;
    view.try_for_each(kind, &Query::filter(Expr::All), |record| {
        output.write_all(&record.body)?;
        output.write_all(b"\n")?;
        n += 1;
        note(record.body.len() as u64 + 1);
        Ok::<_, ExportError>(())
    })?;
    Ok(n)
}

/// Exports blocks. Their heads are small and collected in memory; their files are not.
fn export_blocks(
    view: &mut View<'_>,
    kind: &'static Kind,
    field: &str,
    output: &mut impl Write,
    note: &mut impl FnMut(u64),
) -> Result<u64, ExportError> {
    let mut ids = Vec::new();
    view.for_each(kind, &Query::filter(Expr::All), |record| {
        ids.push(record.id);
        ControlFlow::Continue(())
    })?;
    for id in &ids {
        if let Some(record) = view.get(kind, id)? {
            note(export_block(view, kind, field, &record, output)?);
        }
    }
    Ok(ids.len() as u64)
}

fn export_block(
    view: &mut View<'_>,
    kind: &'static Kind,
    field: &str,
    record: &Record,
    output: &mut impl Write,
) -> Result<u64, ExportError> {
    let head = record.body.strip_suffix(b"}").unwrap_or(&record.body);
    output.write_all(head)?;
    output.write_all(format!(",\"{field}\":[").as_bytes())?;
    let (mut n_bytes, mut failure) = (head.len() as u64, None);
    view.members(kind, record, 0, |first, _, chunk| {
        let comma: &[u8] = if first == 0 { b"" } else { b"," };
        match output.write_all(comma).and_then(|()| output.write_all(chunk)) {
            Ok(()) => {
                n_bytes += chunk.len() as u64;
                ControlFlow::Continue(())
            }
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failure.map_or(Ok(()), Err)?;
    output.write_all(b"]}\n")?;
    Ok(n_bytes)
}
