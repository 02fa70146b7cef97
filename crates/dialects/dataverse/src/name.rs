//! How paths name a dataset or a file: by number, or by `:persistentId` with the parameter `persistentId`.

use crate::error::ApiError;

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thing {
    /// A dataset.
    Dataset,
    /// A file.
    File,
}

/// How a path names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Name {
    /// By its number.
    Number(i64),
    /// By its persistent identifier.
    Pid(String),
}

impl Name {
    /// Parses the path's part, and the parameter `persistentId`.
    ///
    /// Errors: 400 for text that is not a number, and for `:persistentId` without the parameter.
    pub(crate) fn parse(thing: Thing, id: &str, pid: Option<String>) -> Result<Self, ApiError> {
        if id == ":persistentId" {
            return pid.map(Self::Pid).ok_or_else(|| {
                let thing = if thing == Thing::Dataset { "dataset" } else { "datafile" };
                ApiError::bad_request(format!(
                    "When accessing a {thing} based on Persistent ID, a persistentId query parameter must be present."
                ))
            });
        }
        let thing = if thing == Thing::Dataset { "dataset" } else { "file" };
        let number =
            id.parse().map_err(|_| ApiError::bad_request(format!("Bad {thing} ID number: {id}.")))?;
        Ok(Self::Number(number))
    }

    /// Returns the refusal of a thing that does not exist, or that is hidden from the caller.
    pub(crate) fn missing(&self, thing: Thing) -> ApiError {
        ApiError::not_found(match (self, thing) {
            (Self::Number(id), Thing::Dataset) => format!("Dataset with ID {id} not found."),
            (Self::Number(id), Thing::File) => format!("File with ID {id} not found."),
            (Self::Pid(pid), Thing::Dataset) => format!("Dataset with Persistent ID {pid} not found."),
            (Self::Pid(pid), Thing::File) => format!("Datafile with Persistent ID {pid} not found."),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers_or_identifiers() {
        let parse = |thing, id: &str, pid: Option<&str>| {
            Name::parse(thing, id, pid.map(str::to_owned)).map_err(|error| error.message)
        };
        assert_eq!(parse(Thing::File, "7", None), Ok(Name::Number(7)));
        assert_eq!(parse(Thing::File, ":persistentId", Some("doi:1")), Ok(Name::Pid("doi:1".to_owned())));
        assert_eq!(parse(Thing::Dataset, "x", None).unwrap_err(), "Bad dataset ID number: x.");
        assert_eq!(parse(Thing::File, "x", None).unwrap_err(), "Bad file ID number: x.");
        assert_eq!(
            parse(Thing::File, ":persistentId", None).unwrap_err(),
            "When accessing a datafile based on Persistent ID, a persistentId query parameter must be present."
        );
        let missing = |thing| Name::Pid("doi:1".to_owned()).missing(thing).message;
        assert_eq!(missing(Thing::Dataset), "Dataset with Persistent ID doi:1 not found.");
        assert_eq!(missing(Thing::File), "Datafile with Persistent ID doi:1 not found.");
    }
}
