//! Vocabularies that inventory records refer to: types, statuses, formats, statistical codes (section 10 of the
//! contract). Each is a collection with FOLIO's default values in `reference/`.

use pinakes_store::{Column, Index, Kind, Type};

use crate::platform::collection::{Collection, Kinds, Reference, Schema, Unique};
use crate::platform::cql::Names;

const NAMED_COLUMNS: &[Column] = &[Column::one("name", Type::Folded), Column::one("source", Type::Folded)];
const NAMED_INDEXES: &[Index] = &[Index::unique(&["name"])];
const CODED_COLUMNS: &[Column] = &[
    Column::one("name", Type::Folded),
    Column::one("code", Type::Folded),
    Column::one("source", Type::Folded),
];
const CODED_INDEXES: &[Index] = &[Index::unique(&["code"]), Index::on(&["name"])];

/// Declares a vocabulary whose terms have names.
const fn named(
    path: &'static str,
    list: &'static str,
    table: &'static str,
    kind: &'static str,
    permission: &'static str,
    reference_data: &'static str,
) -> Collection {
    Collection {
        kind: Kind {
            id_path: Some("id"),
            columns: NAMED_COLUMNS,
            indexes: NAMED_INDEXES,
            ..Kind::named(kind)
        },
        table,
        permission,
        schema: Schema {
            required: &["name"],
            types: &[("name", Kinds::Text), ("source", Kinds::Text)],
            ..Schema::OPEN
        },
        unique: &[Unique { column: "name", message: "" }],
        reference_data,
        ..Collection::named(path, list, kind)
    }
}

/// Declares a vocabulary whose terms have codes and names.
const fn coded(
    path: &'static str,
    list: &'static str,
    table: &'static str,
    kind: &'static str,
    permission: &'static str,
    reference_data: &'static str,
) -> Collection {
    Collection {
        kind: Kind {
            id_path: Some("id"),
            columns: CODED_COLUMNS,
            indexes: CODED_INDEXES,
            ..Kind::named(kind)
        },
        table,
        permission,
        schema: Schema {
            required: &["code", "name"],
            types: &[("name", Kinds::Text), ("code", Kinds::Text), ("source", Kinds::Text)],
            ..Schema::OPEN
        },
        unique: &[Unique { column: "code", message: "" }],
        names: Names { whole: &["code"], ..Names::PLAIN },
        reference_data,
        ..Collection::named(path, list, kind)
    }
}

/// `/identifier-types`.
pub static IDENTIFIER_TYPES: Collection = named(
    "/identifier-types",
    "identifierTypes",
    "identifier_type",
    "folio_identifier_type",
    "inventory-storage.identifier-types",
    include_str!("../reference/identifier-types.json"),
);

/// `/contributor-types`: the MARC relators.
pub static CONTRIBUTOR_TYPES: Collection = coded(
    "/contributor-types",
    "contributorTypes",
    "contributor_type",
    "folio_contributor_type",
    "inventory-storage.contributor-types",
    include_str!("../reference/contributor-types.json"),
);

/// `/contributor-name-types`.
pub static CONTRIBUTOR_NAME_TYPES: Collection = named(
    "/contributor-name-types",
    "contributorNameTypes",
    "contributor_name_type",
    "folio_contributor_name_type",
    "inventory-storage.contributor-name-types",
    include_str!("../reference/contributor-name-types.json"),
);

/// `/instance-types`: RDA content types.
pub static INSTANCE_TYPES: Collection = coded(
    "/instance-types",
    "instanceTypes",
    "instance_type",
    "folio_instance_type",
    "inventory-storage.instance-types",
    include_str!("../reference/instance-types.json"),
);

/// `/instance-formats`: RDA carrier types.
pub static INSTANCE_FORMATS: Collection = coded(
    "/instance-formats",
    "instanceFormats",
    "instance_format",
    "folio_instance_format",
    "inventory-storage.instance-formats",
    include_str!("../reference/instance-formats.json"),
);

/// `/alternative-title-types`.
pub static ALTERNATIVE_TITLE_TYPES: Collection = named(
    "/alternative-title-types",
    "alternativeTitleTypes",
    "alternative_title_type",
    "folio_alternative_title_type",
    "inventory-storage.alternative-title-types",
    include_str!("../reference/alternative-title-types.json"),
);

/// `/instance-note-types`.
pub static INSTANCE_NOTE_TYPES: Collection = named(
    "/instance-note-types",
    "instanceNoteTypes",
    "instance_note_type",
    "folio_instance_note_type",
    "inventory-storage.instance-note-types",
    include_str!("../reference/instance-note-types.json"),
);

/// `/classification-types`.
pub static CLASSIFICATION_TYPES: Collection = named(
    "/classification-types",
    "classificationTypes",
    "classification_type",
    "folio_classification_type",
    "inventory-storage.classification-types",
    include_str!("../reference/classification-types.json"),
);

/// `/subject-types`.
pub static SUBJECT_TYPES: Collection = named(
    "/subject-types",
    "subjectTypes",
    "subject_type",
    "folio_subject_type",
    "inventory-storage.subject-types",
    include_str!("../reference/subject-types.json"),
);

/// `/subject-sources`.
pub static SUBJECT_SOURCES: Collection = named(
    "/subject-sources",
    "subjectSources",
    "subject_source",
    "folio_subject_source",
    "inventory-storage.subject-sources",
    include_str!("../reference/subject-sources.json"),
);

/// `/modes-of-issuance`.
pub static MODES_OF_ISSUANCE: Collection = named(
    "/modes-of-issuance",
    "issuanceModes",
    "mode_of_issuance",
    "folio_mode_of_issuance",
    "inventory-storage.modes-of-issuance",
    include_str!("../reference/modes-of-issuance.json"),
);

/// `/instance-statuses`.
pub static INSTANCE_STATUSES: Collection = coded(
    "/instance-statuses",
    "instanceStatuses",
    "instance_status",
    "folio_instance_status",
    "inventory-storage.instance-statuses",
    include_str!("../reference/instance-statuses.json"),
);

/// `/instance-date-types`.
pub static INSTANCE_DATE_TYPES: Collection = coded(
    "/instance-date-types",
    "instanceDateTypes",
    "instance_date_type",
    "folio_instance_date_type",
    "inventory-storage.instance-date-types",
    include_str!("../reference/instance-date-types.json"),
);

/// `/nature-of-content-terms`.
pub static NATURE_OF_CONTENT_TERMS: Collection = named(
    "/nature-of-content-terms",
    "natureOfContentTerms",
    "nature_of_content_term",
    "folio_nature_of_content_term",
    "inventory-storage.nature-of-content-terms",
    include_str!("../reference/nature-of-content-terms.json"),
);

/// `/electronic-access-relationships`.
pub static ELECTRONIC_ACCESS_RELATIONSHIPS: Collection = named(
    "/electronic-access-relationships",
    "electronicAccessRelationships",
    "electronic_access_relationship",
    "folio_electronic_access_relationship",
    "inventory-storage.electronic-access-relationships",
    include_str!("../reference/electronic-access-relationships.json"),
);

/// `/instance-relationship-types`.
pub static INSTANCE_RELATIONSHIP_TYPES: Collection = named(
    "/instance-relationship-types",
    "instanceRelationshipTypes",
    "instance_relationship_type",
    "folio_instance_relationship_type",
    "inventory-storage.instance-relationship-types",
    include_str!("../reference/instance-relationship-types.json"),
);

/// `/statistical-code-types`.
pub static STATISTICAL_CODE_TYPES: Collection = named(
    "/statistical-code-types",
    "statisticalCodeTypes",
    "statistical_code_type",
    "folio_statistical_code_type",
    "inventory-storage.statistical-code-types",
    include_str!("../reference/statistical-code-types.json"),
);

/// `/statistical-codes`: unique by code and type.
pub static STATISTICAL_CODES: Collection = Collection {
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("name", Type::Folded),
            Column::one("code", Type::Folded),
            Column::one("statisticalCodeTypeId", Type::Text),
        ],
        indexes: &[Index::unique(&["statisticalCodeTypeId", "code"])],
        ..Kind::named("folio_statistical_code")
    },
    table: "statistical_code",
    permission: "inventory-storage.statistical-codes",
    schema: Schema {
        required: &["code", "name", "statisticalCodeTypeId"],
        types: &[("statisticalCodeTypeId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    unique: &[Unique { column: "code", message: "" }],
    references: &[Reference { path: "statisticalCodeTypeId", to: || &STATISTICAL_CODE_TYPES }],
    reference_data: include_str!("../reference/statistical-codes.json"),
    ..Collection::named("/statistical-codes", "statisticalCodes", "folio_statistical_code")
};

/// `/holdings-types`.
pub static HOLDINGS_TYPES: Collection = named(
    "/holdings-types",
    "holdingsTypes",
    "holdings_type",
    "folio_holdings_type",
    "inventory-storage.holdings-types",
    include_str!("../reference/holdings-types.json"),
);

/// `/holdings-note-types`.
pub static HOLDINGS_NOTE_TYPES: Collection = named(
    "/holdings-note-types",
    "holdingsNoteTypes",
    "holdings_note_type",
    "folio_holdings_note_type",
    "inventory-storage.holdings-note-types",
    include_str!("../reference/holdings-note-types.json"),
);

/// `/holdings-sources`.
pub static HOLDINGS_SOURCES: Collection = named(
    "/holdings-sources",
    "holdingsRecordsSources",
    "holdings_records_source",
    "folio_holdings_source",
    "inventory-storage.holdings-sources",
    include_str!("../reference/holdings-sources.json"),
);

/// `/call-number-types`.
pub static CALL_NUMBER_TYPES: Collection = named(
    "/call-number-types",
    "callNumberTypes",
    "call_number_type",
    "folio_call_number_type",
    "inventory-storage.call-number-types",
    include_str!("../reference/call-number-types.json"),
);

/// `/ill-policies`.
pub static ILL_POLICIES: Collection = named(
    "/ill-policies",
    "illPolicies",
    "ill_policy",
    "folio_ill_policy",
    "inventory-storage.ill-policies",
    include_str!("../reference/ill-policies.json"),
);

/// `/item-note-types`.
pub static ITEM_NOTE_TYPES: Collection = named(
    "/item-note-types",
    "itemNoteTypes",
    "item_note_type",
    "folio_item_note_type",
    "inventory-storage.item-note-types",
    include_str!("../reference/item-note-types.json"),
);

/// `/item-damaged-statuses`.
pub static ITEM_DAMAGED_STATUSES: Collection = named(
    "/item-damaged-statuses",
    "itemDamageStatuses",
    "item_damaged_status",
    "folio_item_damaged_status",
    "inventory-storage.item-damaged-statuses",
    include_str!("../reference/item-damaged-statuses.json"),
);

/// `/material-types`.
pub static MATERIAL_TYPES: Collection = named(
    "/material-types",
    "mtypes",
    "material_type",
    "folio_material_type",
    "inventory-storage.material-types",
    include_str!("../reference/material-types.json"),
);

/// `/loan-types`.
pub static LOAN_TYPES: Collection = named(
    "/loan-types",
    "loantypes",
    "loan_type",
    "folio_loan_type",
    "inventory-storage.loan-types",
    include_str!("../reference/loan-types.json"),
);
