//! The data of the desks: an instance with items, a patron for each desk. Created before, removed afterwards.

use serde_json::json;

use crate::error::BenchError;
use crate::scenario::folio::Session;
use crate::scenario::scicat::escaped;

/// Reference data that is the same in every FOLIO.
const LOCATION: &str = "fcd64ce1-6995-48f0-840e-89ffa2288371";
const MATERIAL_TYPE: &str = "1a54b431-2e4f-452d-9cae-9cee66c9a892";
const LOAN_TYPE: &str = "2b94c631-fca9-4892-a730-03ee529ffe27";
const INSTANCE_TYPE: &str = "30fffe0e-e985-4144-b2e2-1e8179bdb41f";
const HOLDINGS_SOURCE: &str = "f32d531e-df79-46b3-8932-cdd35f7a2264";
pub(super) const PATRON_GROUP: &str = "3684a786-6671-4268-8ed0-9db82ebca60b";

/// The data that the run created in the server.
#[derive(Debug, Clone)]
pub(in crate::scenario) struct Library {
    /// Prefix of the run's barcodes.
    pub(in crate::scenario) tag: String,
    instance: Option<String>,
    holdings: Option<String>,
    pub(super) patrons: Vec<Patron>,
}

#[derive(Debug, Clone)]
pub(super) struct Patron {
    pub(super) id: String,
    pub(super) barcode: String,
    pub(super) items: Vec<Item>,
}

#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) barcode: String,
}

impl Library {
    pub(in crate::scenario) fn new() -> Self {
        let tag = format!("pinakes-bench-{:x}", time::OffsetDateTime::now_utc().unix_timestamp());
        Self { tag, instance: None, holdings: None, patrons: Vec::new() }
    }

    /// Creates an instance, and for each patron their own items.
    pub(in crate::scenario) async fn prepare(
        &mut self,
        session: &Session,
        n_patrons: usize,
        n_items: usize,
    ) -> Result<(), BenchError> {
        let instance =
            json!({"source": "FOLIO", "title": "A book for the desk", "instanceTypeId": INSTANCE_TYPE});
        let instance = session.create("/instance-storage/instances", &instance).await?;
        self.instance = Some(instance.clone());
        let holdings =
            json!({"instanceId": instance, "permanentLocationId": LOCATION, "sourceId": HOLDINGS_SOURCE});
        let holdings = session.create("/holdings-storage/holdings", &holdings).await?;
        self.holdings = Some(holdings.clone());
        for n in 0..n_patrons {
            let barcode = format!("{}-p{n}", self.tag);
            let user = json!({
                "username": barcode, "barcode": barcode, "active": true, "patronGroup": PATRON_GROUP,
                "personal": {"lastName": "Bench", "firstName": format!("{n}"), "preferredContactTypeId": "002"},
            });
            let id = session.create("/users", &user).await?;
            self.patrons.push(Patron { id, barcode, items: Vec::new() });
            for item in 0..n_items {
                let barcode = format!("{}-i{n}-{item}", self.tag);
                let body = json!({
                    "holdingsRecordId": holdings, "barcode": barcode, "materialTypeId": MATERIAL_TYPE,
                    "permanentLoanTypeId": LOAN_TYPE, "status": {"name": "Available"},
                });
                let id = session.create("/item-storage/items", &body).await?;
                self.patrons[n].items.push(Item { id, barcode });
            }
        }
        Ok(())
    }

    /// Removes the run's data, loans first; returns how many records remain.
    pub(in crate::scenario) async fn clean(&self, session: &Session) -> Result<u64, BenchError> {
        let mut n_left = 0;
        for patron in &self.patrons {
            n_left += remove_loans(session, patron).await?;
            for item in &patron.items {
                // The rows of check-ins; not every server allows deleting them.
                session
                    .try_delete(&listed("/check-in-storage/check-ins", &format!("itemId=={}", item.id), ""))
                    .await?;
                n_left += session.delete(&format!("/item-storage/items/{}", item.id)).await?;
            }
            n_left += session.delete(&format!("/users/{}", patron.id)).await?;
        }
        for (path, id) in
            [("/holdings-storage/holdings", &self.holdings), ("/instance-storage/instances", &self.instance)]
        {
            if let Some(id) = id {
                n_left += session.delete(&format!("{path}/{id}")).await?;
            }
        }
        Ok(n_left)
    }
}

/// Deletes the loans of a patron page by page.
async fn remove_loans(session: &Session, patron: &Patron) -> Result<u64, BenchError> {
    const PAGE: usize = 100;
    let path = listed("/loan-storage/loans", &format!("userId=={}", patron.id), &format!("&limit={PAGE}"));
    loop {
        let page = session.get(&path).await?;
        let ids: Vec<&str> =
            page["loans"].as_array().into_iter().flatten().filter_map(|it| it["id"].as_str()).collect();
        let mut n_left = 0;
        for id in &ids {
            n_left += session.delete(&format!("/loan-storage/loans/{id}")).await?;
        }
        if ids.is_empty() || 0 < n_left {
            return Ok(n_left);
        }
    }
}

pub(crate) fn listed(path: &str, query: &str, rest: &str) -> String {
    format!("{path}?query={}{rest}", escaped(query))
}
