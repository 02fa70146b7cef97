//! The record types that can be queried: users, items, holdings records, instances, loans, requests, with their fields
//! (mod-fqm-manager).

use serde_json::{Value, json};

use crate::circulation::loans::LOANS;
use crate::circulation::requests::REQUESTS;
use crate::inventory::holdings::HOLDINGS;
use crate::inventory::instances::INSTANCES;
use crate::inventory::items::ITEMS;
use crate::platform::collection::Collection;
use crate::users::user::USERS;

/// How the values of a field are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Text,
    Id,
    Flag,
    Instant,
    Number,
    /// A list of texts.
    Texts,
}

impl Sort {
    /// Returns its name in FOLIO.
    const fn name(self) -> &'static str {
        match self {
            Self::Text => "stringType",
            Self::Id => "rangedUUIDType",
            Self::Flag => "booleanType",
            Self::Instant => "dateType",
            Self::Number => "numberType",
            Self::Texts => "arrayType",
        }
    }
}

/// A field: its name without that of the type, the path of its value, how it is compared.
pub(crate) type Field = (&'static str, &'static str, Sort);

/// A record type that can be queried.
#[derive(Debug)]
pub(crate) struct EntityType {
    /// FOLIO's id of the composite type.
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    label: &'static str,
    /// Prefix of its field names: `users`.
    pub(crate) alias: &'static str,
    /// The name of the record type in bulk edit.
    pub(crate) edited_as: &'static str,
    pub(crate) collection: &'static Collection,
    pub(crate) fields: &'static [Field],
    permission: &'static str,
}

/// All types.
pub(crate) static TYPES: [EntityType; 6] = [
    EntityType {
        id: "ddc93926-d15a-4a45-9d9c-93eadc3d9bbf",
        name: "composite_user_details",
        label: "Users",
        alias: "users",
        edited_as: "USER",
        collection: &USERS,
        permission: "users.collection.get",
        fields: &[
            ("id", "id", Sort::Id),
            ("active", "active", Sort::Flag),
            ("barcode", "barcode", Sort::Text),
            ("username", "username", Sort::Text),
            ("external_system_id", "externalSystemId", Sort::Text),
            ("type", "type", Sort::Text),
            ("patron_group", "patronGroup", Sort::Text),
            ("last_name", "personal.lastName", Sort::Text),
            ("first_name", "personal.firstName", Sort::Text),
            ("middle_name", "personal.middleName", Sort::Text),
            ("preferred_first_name", "personal.preferredFirstName", Sort::Text),
            ("email", "personal.email", Sort::Text),
            ("phone", "personal.phone", Sort::Text),
            ("mobile_phone", "personal.mobilePhone", Sort::Text),
            ("departments", "departments", Sort::Texts),
            ("enrollment_date", "enrollmentDate", Sort::Instant),
            ("expiration_date", "expirationDate", Sort::Instant),
            ("tags", "tags.tagList", Sort::Texts),
            ("created_date", "metadata.createdDate", Sort::Instant),
            ("updated_date", "metadata.updatedDate", Sort::Instant),
        ],
    },
    EntityType {
        id: "d0213d22-32cf-490f-9196-d81c3c66e53f",
        name: "composite_item_details",
        label: "Items",
        alias: "items",
        edited_as: "ITEM",
        collection: &ITEMS,
        permission: "inventory-storage.items.collection.get",
        fields: &[
            ("id", "id", Sort::Id),
            ("hrid", "hrid", Sort::Text),
            ("barcode", "barcode", Sort::Text),
            ("status_name", "status.name", Sort::Text),
            ("material_type_id", "materialTypeId", Sort::Id),
            ("permanent_loan_type_id", "permanentLoanTypeId", Sort::Id),
            ("temporary_loan_type_id", "temporaryLoanTypeId", Sort::Id),
            ("permanent_location_id", "permanentLocationId", Sort::Id),
            ("temporary_location_id", "temporaryLocationId", Sort::Id),
            ("effective_location_id", "effectiveLocationId", Sort::Id),
            ("holdings_record_id", "holdingsRecordId", Sort::Id),
            ("copy_number", "copyNumber", Sort::Text),
            ("volume", "volume", Sort::Text),
            ("enumeration", "enumeration", Sort::Text),
            ("chronology", "chronology", Sort::Text),
            ("accession_number", "accessionNumber", Sort::Text),
            ("effective_call_number", "effectiveCallNumberComponents.callNumber", Sort::Text),
            ("discovery_suppress", "discoverySuppress", Sort::Flag),
            ("statistical_code_ids", "statisticalCodeIds", Sort::Texts),
            ("administrative_notes", "administrativeNotes", Sort::Texts),
            ("tags", "tags.tagList", Sort::Texts),
            ("created_date", "metadata.createdDate", Sort::Instant),
            ("updated_date", "metadata.updatedDate", Sort::Instant),
        ],
    },
    EntityType {
        id: "8418e512-feac-4a6a-a56d-9006aab31e33",
        name: "composite_holdings_record",
        label: "Holdings",
        alias: "holdings",
        edited_as: "HOLDINGS_RECORD",
        collection: &HOLDINGS,
        permission: "inventory-storage.holdings.collection.get",
        fields: &[
            ("id", "id", Sort::Id),
            ("hrid", "hrid", Sort::Text),
            ("instance_id", "instanceId", Sort::Id),
            ("source_id", "sourceId", Sort::Id),
            ("call_number", "callNumber", Sort::Text),
            ("call_number_prefix", "callNumberPrefix", Sort::Text),
            ("call_number_suffix", "callNumberSuffix", Sort::Text),
            ("permanent_location_id", "permanentLocationId", Sort::Id),
            ("temporary_location_id", "temporaryLocationId", Sort::Id),
            ("effective_location_id", "effectiveLocationId", Sort::Id),
            ("holdings_type_id", "holdingsTypeId", Sort::Id),
            ("copy_number", "copyNumber", Sort::Text),
            ("shelving_title", "shelvingTitle", Sort::Text),
            ("discovery_suppress", "discoverySuppress", Sort::Flag),
            ("statistical_code_ids", "statisticalCodeIds", Sort::Texts),
            ("administrative_notes", "administrativeNotes", Sort::Texts),
            ("tags", "tags.tagList", Sort::Texts),
            ("created_date", "metadata.createdDate", Sort::Instant),
            ("updated_date", "metadata.updatedDate", Sort::Instant),
        ],
    },
    EntityType {
        id: "6b08439b-4f8e-4468-8046-ea620f5cfb74",
        name: "composite_instances",
        label: "Instances",
        alias: "instance",
        edited_as: "INSTANCE",
        collection: &INSTANCES,
        permission: "inventory-storage.instances.collection.get",
        fields: &[
            ("id", "id", Sort::Id),
            ("hrid", "hrid", Sort::Text),
            ("title", "title", Sort::Text),
            ("index_title", "indexTitle", Sort::Text),
            ("source", "source", Sort::Text),
            ("instance_type_id", "instanceTypeId", Sort::Id),
            ("mode_of_issuance_id", "modeOfIssuanceId", Sort::Id),
            ("status_id", "statusId", Sort::Id),
            ("languages", "languages", Sort::Texts),
            ("contributors", "contributors.name", Sort::Texts),
            ("identifiers", "identifiers.value", Sort::Texts),
            ("subjects", "subjects.value", Sort::Texts),
            ("series", "series.value", Sort::Texts),
            ("editions", "editions", Sort::Texts),
            ("publisher", "publication.publisher", Sort::Texts),
            ("discovery_suppress", "discoverySuppress", Sort::Flag),
            ("staff_suppress", "staffSuppress", Sort::Flag),
            ("previously_held", "previouslyHeld", Sort::Flag),
            ("cataloged_date", "catalogedDate", Sort::Instant),
            ("statistical_code_ids", "statisticalCodeIds", Sort::Texts),
            ("administrative_notes", "administrativeNotes", Sort::Texts),
            ("tags", "tags.tagList", Sort::Texts),
            ("created_date", "metadata.createdDate", Sort::Instant),
            ("updated_date", "metadata.updatedDate", Sort::Instant),
        ],
    },
    EntityType {
        id: "d6729885-f2fb-4dc7-b7d0-a865a7f461e4",
        name: "composite_loan_details",
        label: "Loans",
        alias: "loans",
        edited_as: "",
        collection: &LOANS,
        permission: "circulation.loans.collection.get",
        fields: &[
            ("id", "id", Sort::Id),
            ("user_id", "userId", Sort::Id),
            ("item_id", "itemId", Sort::Id),
            ("status_name", "status.name", Sort::Text),
            ("action", "action", Sort::Text),
            ("loan_date", "loanDate", Sort::Instant),
            ("due_date", "dueDate", Sort::Instant),
            ("return_date", "returnDate", Sort::Instant),
            ("renewal_count", "renewalCount", Sort::Number),
            ("checkout_service_point_id", "checkoutServicePointId", Sort::Id),
            ("checkin_service_point_id", "checkinServicePointId", Sort::Id),
            ("loan_policy_id", "loanPolicyId", Sort::Id),
        ],
    },
    EntityType {
        id: "1a4c5f0e-6b3f-4d55-9e0d-3b1c7f6a9b21",
        name: "composite_requests",
        label: "Requests",
        alias: "requests",
        edited_as: "",
        collection: &REQUESTS,
        permission: "circulation.requests.collection.get",
        fields: &[
            ("id", "id", Sort::Id),
            ("status", "status", Sort::Text),
            ("request_type", "requestType", Sort::Text),
            ("request_level", "requestLevel", Sort::Text),
            ("requester_id", "requesterId", Sort::Id),
            ("item_id", "itemId", Sort::Id),
            ("instance_id", "instanceId", Sort::Id),
            ("pickup_service_point_id", "pickupServicePointId", Sort::Id),
            ("position", "position", Sort::Number),
            ("request_date", "requestDate", Sort::Instant),
            ("expiration_date", "requestExpirationDate", Sort::Instant),
        ],
    },
];

impl EntityType {
    /// Returns the type with an id.
    pub(crate) fn of(id: &str) -> Option<&'static Self> {
        TYPES.iter().find(|it| it.id.eq_ignore_ascii_case(id))
    }

    /// Returns the permission to read such records, which queries require.
    pub(crate) const fn permission(&self) -> &'static str {
        self.permission
    }

    /// Returns a field by its name, with or without that of the type.
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        let own = name.strip_prefix(self.alias).and_then(|it| it.strip_prefix('.')).unwrap_or(name);
        self.fields.iter().find(|it| it.0 == own)
    }

    /// Returns the summary of the type in the list of types.
    pub(crate) fn summary(&self) -> Value {
        json!({"id": self.id, "label": self.label, "crossTenantQueriesEnabled": false, "missingPermissions": []})
    }

    /// Returns the type with its columns.
    pub(crate) fn shown(&self) -> Value {
        let columns: Vec<Value> = self
            .fields
            .iter()
            .map(|(name, path, sort)| {
                let label = name.replace('_', " ");
                json!({
                    "name": format!("{}.{name}", self.alias), "property": path, "queryable": true,
                    "dataType": {"dataType": sort.name()}, "isIdColumn": *name == "id",
                    "labelAlias": format!("{} — {label}", self.label), "labelAliasFullyQualified": label,
                    "visibleByDefault": *name != "id",
                })
            })
            .collect();
        json!({
            "id": self.id, "name": self.name, "labelAlias": self.label, "private": false, "columns": columns,
            "requiredPermissions": [self.permission],
            "defaultSort": [{"columnName": format!("{}.id", self.alias), "direction": "ASC"}],
        })
    }
}
