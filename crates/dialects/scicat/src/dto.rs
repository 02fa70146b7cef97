//! The field tables, one file per resource family. `validate.rs` evaluates them.
//!
//! Source: the tables and lists of sections 4, 5, 7 and 8 of the `SciCat` contract.

pub mod account;
pub mod attachment;
pub mod datablock;
pub mod dataset;
pub mod instrument;
pub mod job;
pub mod lifecycle;
pub mod origdatablock;
pub mod policy;
pub mod proposal;
pub mod published_data;
pub mod sample;
pub mod user_settings;

use crate::validate::{Default, Field, Rule};

const TEXT: &[Rule] = &[Rule::Text];
const TEXTS: &[Rule] = &[Rule::EachText];
const FILLED: &[Rule] = &[Rule::Text, Rule::NotEmpty];
const INTEGER: &[Rule] = &[Rule::Integer];
const NUMBER: &[Rule] = &[Rule::Number];
const BOOLEAN: &[Rule] = &[Rule::Boolean];
const DATE: &[Rule] = &[Rule::Date];
const EMAIL: &[Rule] = &[Rule::Email];
const OBJECT: &[Rule] = &[Rule::Object];
const LIST: &[Rule] = &[Rule::List];
const ANY: &[Rule] = &[];

const OWNER_GROUP: Field = Field::required("ownerGroup", FILLED);
const ACCESS_GROUPS: Field = Field::optional("accessGroups", TEXTS).default_to(Default::EmptyList);
const INSTRUMENT_GROUP: Field = Field::optional("instrumentGroup", TEXT);
const IS_PUBLISHED: Field = Field::optional("isPublished", BOOLEAN).default_to(Default::False);
