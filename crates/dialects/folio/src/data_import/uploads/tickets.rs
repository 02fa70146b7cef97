//! Uploads in parts that have not been assembled yet.

use std::ops::ControlFlow;

use pinakes_store::{Column, End, Expr, Index, Kind, Query, Txn, Type, Value as Condition};

use crate::data_import::FILE_PART;
use crate::platform::error::FolioError;
use crate::platform::limits::EXPIRED_UPLOADS;

/// Uploads in progress, by the id in their URLs.
pub(crate) static UPLOAD_TICKET: Kind = Kind {
    columns: &[Column::one("begunMs", Type::Integer), Column::at("fileKey", "key", Type::Text)],
    indexes: &[Index::on(&["begunMs"]), Index::on(&["fileKey"])],
    ..Kind::named("folio_upload_ticket")
};

/// Deletes uploads whose parts were never assembled, see [`super::expire`].
pub(crate) fn expire(txn: &mut Txn<'_>, until_ms: i64) -> Result<(), FolioError> {
    let old = Expr::Range("begunMs".into(), End::Open, End::Included(Condition::Integer(until_ms)));
    let tickets = txn.find(&UPLOAD_TICKET, &Query::filter(old).window(0, EXPIRED_UPLOADS))?;
    tickets.iter().try_for_each(|it| remove_upload(txn, &it.id))
}

pub(crate) fn remove_upload(txn: &mut Txn<'_>, upload: &str) -> Result<(), FolioError> {
    let parts = Query::filter(Expr::Is("key".into(), upload.into()));
    let mut ids = Vec::new();
    txn.for_each(&FILE_PART, &parts, |part| {
        ids.push(part.id);
        ControlFlow::Continue(())
    })?;
    ids.iter().try_for_each(|id| txn.delete(&FILE_PART, id).map(drop))?;
    txn.delete(&UPLOAD_TICKET, upload)?;
    Ok(())
}
