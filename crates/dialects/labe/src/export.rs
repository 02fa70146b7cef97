//! Writes a tenant's catalogue documents in the form that [`crate::import`] reads.

use std::io::Write;

use pinakes_store::{Expr, Query, StoreError, Tenant};
use serde_json::Value;

use crate::envelope;
use crate::kinds::DOCUMENT;

/// Reason why an export stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Writing to the output failed.
    #[error("the output cannot be written: {0}")]
    Output(#[from] std::io::Error),
    /// The store failed, or a record in it is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Writes every document from one snapshot, one per line: the object as it is sent, preceded by its id and a tab if the
/// object does not contain that id. Calls `note` after each with the number of bytes written. Returns the number of
/// documents.
///
/// # Errors
/// Writing to the output fails; the store fails.
pub fn export(
    tenant: &Tenant,
    output: &mut impl Write,
    mut note: impl FnMut(u64),
) -> Result<u64, ExportError> {
    tenant.read_blocking(|view| {
        let (mut n_documents, mut line) = (0, Vec::new());
        view.try_for_each(&DOCUMENT, &Query::filter(Expr::All), |record| {
            line.clear();
            put(&record.id, &record.body, &mut line)?;
            output.write_all(&line)?;
            n_documents += 1;
            note(line.len() as u64);
            Ok::<_, ExportError>(())
        })?;
        Ok(n_documents)
    })
}

fn put(id: &str, body: &[u8], line: &mut Vec<u8>) -> Result<(), ExportError> {
    let mut text = Vec::new();
    if !envelope::push_text(body, &mut text) {
        return Err(StoreError::Damaged(format!("the document {id:?} has no text")).into());
    }
    let stated: Value = serde_json::from_slice(&text)
        .map_err(|error| StoreError::Damaged(format!("the document {id:?} is not JSON: {error}")))?;
    if stated["id"].as_str() != Some(id) {
        line.extend_from_slice(id.as_bytes());
        line.push(b'\t');
    }
    line.append(&mut text);
    line.push(b'\n');
    Ok(())
}
