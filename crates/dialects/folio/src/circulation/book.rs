//! An item with the related records: holdings, instance, location, types. Also the statuses of items.

use std::sync::Arc;

use pinakes_store::{StoreError, Txn, View};
use serde_json::{Map, Value, json};

use super::neighbours::{
    CAMPUSES, HOLDINGS, INSTANCES, INSTITUTIONS, ITEMS, LIBRARIES, LOAN_TYPES, LOCATIONS, MATERIAL_TYPES,
    SERVICE_POINTS,
};
use super::records::{Records, copy, object, text};
use super::rules::Facts;
use crate::platform::collection::{self, Lock, Missing, Writer};
use crate::platform::dates;
use crate::platform::error::FolioError;

/// An item with its related records.
#[derive(Debug, Clone)]
pub(crate) struct Book {
    pub(crate) item: Arc<Value>,
    holdings: Arc<Value>,
    instance: Arc<Value>,
    /// The effective location.
    pub(crate) location: Arc<Value>,
    material: Arc<Value>,
}

impl Book {
    /// Reads an item's related records; missing ones are empty.
    pub(crate) fn of(view: &mut View<'_>, known: &mut Records, item: Arc<Value>) -> Result<Self, StoreError> {
        view.read_ahead_of(&[
            (&HOLDINGS.kind, vec![text(&item, "holdingsRecordId")]),
            (&LOCATIONS.kind, vec![text(&item, "effectiveLocationId")]),
            (&MATERIAL_TYPES.kind, vec![text(&item, "materialTypeId")]),
            (&LOAN_TYPES.kind, vec![text(&item, "permanentLoanTypeId"), text(&item, "temporaryLoanTypeId")]),
        ])?;
        let holdings = known.at(view, &HOLDINGS, &item, "holdingsRecordId")?.unwrap_or_default();
        let instance = known.at(view, &INSTANCES, &holdings, "instanceId")?.unwrap_or_default();
        let location = known.at(view, &LOCATIONS, &item, "effectiveLocationId")?.unwrap_or_default();
        let material = known.at(view, &MATERIAL_TYPES, &item, "materialTypeId")?.unwrap_or_default();
        Ok(Self { item, holdings, instance, location, material })
    }

    /// Reads the related records of many items together.
    pub(crate) fn load(
        view: &mut View<'_>,
        known: &mut Records,
        items: &[Arc<Value>],
    ) -> Result<(), StoreError> {
        let of = |field: &'static str| items.iter().map(move |it| text(it, field));
        view.read_ahead_of(&[
            (&HOLDINGS.kind, of("holdingsRecordId").collect()),
            (&LOCATIONS.kind, of("effectiveLocationId").collect()),
            (&MATERIAL_TYPES.kind, of("materialTypeId").collect()),
        ])?;
        let holdings = known.load(view, &HOLDINGS, of("holdingsRecordId"))?;
        known.load(view, &INSTANCES, holdings.iter().map(|it| text(it, "instanceId")))?;
        known.load(view, &LOCATIONS, of("effectiveLocationId"))?;
        known.load(view, &MATERIAL_TYPES, of("materialTypeId"))?;
        Ok(())
    }

    pub(crate) fn id(&self) -> &str {
        text(&self.item, "id")
    }

    pub(crate) fn instance_id(&self) -> &str {
        text(&self.instance, "id")
    }

    pub(crate) fn title(&self) -> &str {
        text(&self.instance, "title")
    }

    pub(crate) fn barcode(&self) -> &str {
        text(&self.item, "barcode")
    }

    pub(crate) fn status(&self) -> &str {
        text(&self.item, "status.name")
    }

    pub(crate) fn material_type(&self) -> &str {
        text(&self.material, "name")
    }

    /// Returns the identifiers of the title.
    pub(crate) fn identifiers(&self) -> &[Value] {
        self.instance["identifiers"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the loan type in effect: the temporary one, if there is one.
    pub(crate) fn loan_type_id(&self) -> &str {
        match text(&self.item, "temporaryLoanTypeId") {
            "" => text(&self.item, "permanentLoanTypeId"),
            temporary => temporary,
        }
    }

    /// Returns `{title} (Barcode: {barcode})`, the form used in messages.
    pub(crate) fn named(&self) -> String {
        format!("{} (Barcode: {})", self.title(), self.barcode())
    }

    /// Returns the same with the material type.
    pub(crate) fn named_with_type(&self) -> String {
        format!("{} ({}) (Barcode: {})", self.title(), self.material_type(), self.barcode())
    }

    /// Returns the criteria of the circulation rules for a loan to a patron of `group`.
    pub(crate) fn facts<'a>(&'a self, group: &'a str) -> Facts<'a> {
        Facts {
            group,
            material: text(&self.item, "materialTypeId"),
            loan_type: self.loan_type_id(),
            institution: text(&self.location, "institutionId"),
            campus: text(&self.location, "campusId"),
            library: text(&self.location, "libraryId"),
            location: text(&self.location, "id"),
        }
    }

    /// Checks whether a service point serves the effective location.
    pub(crate) fn is_at_home_at(&self, service_point: &str) -> bool {
        let served = self.location["servicePointIds"]
            .as_array()
            .is_some_and(|list| list.iter().any(|it| it.as_str() == Some(service_point)));
        served || text(&self.location, "primaryServicePoint") == service_point
    }

    /// Returns the summary of an item that loans, requests and check-ins show.
    pub(crate) fn summary(&self) -> Map<String, Value> {
        let mut map = Map::new();
        copy(&self.item, &["id"], &mut map);
        copy(&self.instance, &["title"], &mut map);
        copy(
            &self.item,
            &[
                "barcode",
                "copyNumber",
                "enumeration",
                "chronology",
                "volume",
                "displaySummary",
                "accessionNumber",
            ],
            &mut map,
        );
        let components = &self.item["effectiveCallNumberComponents"];
        copy(components, &["callNumber"], &mut map);
        let mut shown = Map::new();
        copy(components, &["callNumber", "prefix", "suffix"], &mut shown);
        map.insert("callNumberComponents".into(), Value::Object(shown));
        let contributors = self.instance["contributors"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names: Vec<Value> = contributors.iter().map(|it| json!({"name": text(it, "name")})).collect();
        map.insert("contributors".into(), names.into());
        copy(&self.item, &["holdingsRecordId"], &mut map);
        copy(&self.holdings, &["instanceId"], &mut map);
        if let Some(hrid) = self.instance.get("hrid") {
            map.insert("instanceHrid".into(), hrid.clone());
        }
        let mut status = Map::new();
        copy(&self.item["status"], &["name", "date"], &mut status);
        map.insert("status".into(), Value::Object(status));
        copy(&self.item, &["inTransitDestinationServicePointId"], &mut map);
        if !self.location.is_null() {
            map.insert("location".into(), json!({"name": text(&self.location, "name")}));
        }
        if !self.material.is_null() {
            map.insert("materialType".into(), json!({"name": self.material_type()}));
        }
        map
    }

    /// Returns the item's tokens for slips printed at the desk.
    pub(crate) fn slip(
        &self,
        view: &mut View<'_>,
        known: &mut Records,
    ) -> Result<Map<String, Value>, StoreError> {
        let mut map = Map::new();
        let names: Vec<&str> = self.instance["contributors"]
            .as_array()
            .map(|list| list.iter().map(|it| text(it, "name")).collect())
            .unwrap_or_default();
        let primary = self.instance["contributors"]
            .as_array()
            .and_then(|list| list.iter().find(|it| it["primary"].as_bool() == Some(true)).or(list.first()));
        map.insert("title".into(), self.title().into());
        map.insert("primaryContributor".into(), primary.map_or("", |it| text(it, "name")).into());
        map.insert("allContributors".into(), names.join("; ").into());
        map.insert("status".into(), self.status().into());
        map.insert("materialType".into(), self.material_type().into());
        copy(
            &self.item,
            &[
                "barcode",
                "enumeration",
                "volume",
                "chronology",
                "displaySummary",
                "numberOfPieces",
                "descriptionOfPieces",
            ],
            &mut map,
        );
        if let Some(copy) = self.item.get("copyNumber") {
            map.insert("copy".into(), copy.clone());
        }
        let components = &self.item["effectiveCallNumberComponents"];
        for (name, field) in
            [("callNumber", "callNumber"), ("callNumberPrefix", "prefix"), ("callNumberSuffix", "suffix")]
        {
            map.insert(name.into(), text(components, field).into());
        }
        view.read_ahead_of(&[
            (&LOAN_TYPES.kind, vec![self.loan_type_id()]),
            (&LIBRARIES.kind, vec![text(&self.location, "libraryId")]),
            (&CAMPUSES.kind, vec![text(&self.location, "campusId")]),
            (&INSTITUTIONS.kind, vec![text(&self.location, "institutionId")]),
            (&SERVICE_POINTS.kind, vec![text(&self.location, "primaryServicePoint")]),
        ])?;
        let loan_type = known.get(view, &LOAN_TYPES, self.loan_type_id())?.unwrap_or_default();
        map.insert("loanType".into(), text(&loan_type, "name").into());
        map.insert("effectiveLocationSpecific".into(), text(&self.location, "name").into());
        for (name, collection, field) in [
            ("effectiveLocationLibrary", &LIBRARIES, "libraryId"),
            ("effectiveLocationCampus", &CAMPUSES, "campusId"),
            ("effectiveLocationInstitution", &INSTITUTIONS, "institutionId"),
            ("effectiveLocationPrimaryServicePointName", &SERVICE_POINTS, "primaryServicePoint"),
        ] {
            let found = known.at(view, collection, &self.location, field)?.unwrap_or_default();
            map.insert(name.into(), text(&found, "name").into());
        }
        Ok(map)
    }

    /// Sets the item's status; `change` may make further changes.
    pub(crate) fn set_status(
        &mut self,
        txn: &mut Txn<'_>,
        writer: &Writer,
        known: &mut Records,
        status: &str,
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<(), FolioError> {
        let mut body = object(&self.item);
        if self.status() != status {
            body.insert("status".into(), json!({"name": status, "date": dates::rmb(writer.now_ms)}));
        }
        body.remove("inTransitDestinationServicePointId");
        change(&mut body);
        let id = self.id().to_owned();
        let stored = collection::put(txn, writer, &ITEMS, &id, body, Missing::Refuse, Lock::Ignored)?;
        known.put(&ITEMS, stored.body.clone());
        self.item = Arc::new(stored.body);
        Ok(())
    }
}
