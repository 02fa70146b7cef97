//! Checks the `metadata` of a file against the site's schema; without a schema, metadata is refused (section 5 of
//! the contract).

use serde_json::{Map, Value};

use crate::faults::Fault;
use crate::kinds::FILES;
use crate::published_data::schema::Schema;
use crate::settings::Settings;

const METADATA: &str = "metadata";
const CONSTRAINT: &str = "metadataSchema";

/// The schema of the site, if it has one.
pub(super) struct MetadataSchema(Option<Schema>);

impl MetadataSchema {
    pub(super) fn of(settings: &Settings) -> Self {
        let source = serde_json::from_str(&settings.datafiles_metadata_schema).ok();
        // The settings have been checked, so a schema that is present compiles.
        Self(source.and_then(|it: Value| Schema::compile(&it).ok()))
    }

    /// Checks the metadata of a file whose other fields are valid.
    pub(super) fn check(&self, file: &Map<String, Value>) -> Option<Fault> {
        let metadata = file.get(METADATA).filter(|it| !it.is_null())?;
        let Some(wanted) = &self.0 else {
            let text = "metadata must be left out: the site has no schema for the metadata of files";
            return Some(Fault::with_constraint(METADATA, CONSTRAINT, text.to_owned()));
        };
        let texts: Vec<String> = wanted.faults(metadata).iter().map(text).collect();
        (!texts.is_empty()).then(|| Fault::with_constraint(METADATA, CONSTRAINT, texts.join(", ")))
    }

    /// Checks all files of a whole block; a fault is reported as a fault of its list.
    pub(super) fn check_block(&self, block: &Map<String, Value>) -> Option<Fault> {
        let files = block.get(FILES)?.as_array()?;
        let mut of_files = Fault::new(FILES);
        for (index, file) in files.iter().enumerate() {
            if let Some(fault) = file.as_object().and_then(|it| self.check(it)) {
                let mut child = Fault::new(index.to_string());
                child.children.push(fault);
                of_files.children.push(child);
            }
        }
        (!of_files.is_empty()).then_some(of_files)
    }
}

/// Formats a fault, such as `metadata/temperature must be number`.
fn text(fault: &Value) -> String {
    let part = |name: &str| fault.get(name).and_then(Value::as_str).unwrap_or_default();
    format!("{METADATA}{} {}", part("instancePath"), part("message"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_satisfies_the_schema_of_the_site() {
        let datafiles_metadata_schema =
            r#"{"type":"object","properties":{"t":{"type":"number"}},"required":["t"]}"#.to_owned();
        let schema = MetadataSchema::of(&Settings { datafiles_metadata_schema, ..Settings::default() });
        let block = |metadata: Value| json!({FILES: [{"path": "a"}, {"path": "b", "metadata": metadata}]});
        for (metadata, expected) in [
            (json!({"t": 1}), json!([])),
            (Value::Null, json!([])),
            (json!({"t": "1"}), json!(["dataFileList.1.metadata/t must be number"])),
            (json!({}), json!(["dataFileList.1.metadata must have required property 't'"])),
        ] {
            let block = block(metadata.clone());
            let faults: Vec<Fault> =
                block.as_object().and_then(|it| schema.check_block(it)).into_iter().collect();
            assert_eq!(json!(crate::faults::texts(&faults)), expected, "{metadata}");
        }
    }
}
