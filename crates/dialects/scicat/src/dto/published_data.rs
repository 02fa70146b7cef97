//! Published data: sets of datasets with a DOI.

use super::*;
use crate::validate::Dto;

/// `/api/v3/publisheddata`.
pub static V3: Dto = Dto {
    fields: &[
        Field::required("creator", TEXTS),
        Field::required("publisher", TEXT),
        Field::required("publicationYear", NUMBER),
        Field::required("title", TEXT),
        Field::optional("affiliation", TEXT),
        Field::optional("url", TEXT),
        Field::required("abstract", TEXT),
        Field::required("dataDescription", TEXT),
        Field::required("resourceType", TEXT),
        Field::optional("numberOfFiles", NUMBER),
        Field::optional("sizeOfArchive", NUMBER),
        Field::required("pidArray", TEXTS),
        Field::optional("authors", TEXTS),
        Field::optional("registeredTime", DATE),
        Field::optional("status", TEXT),
        Field::optional("scicatUser", TEXT),
        Field::optional("thumbnail", TEXT),
        Field::optional("relatedPublications", TEXTS),
        Field::optional("downloadLink", TEXT),
        Field::optional("doi", TEXT).on_create(),
    ],
};

/// `/api/v4/publisheddata`.
pub static V4: Dto = Dto {
    fields: &[
        Field::required("title", TEXT),
        Field::required("abstract", TEXT),
        Field::required("datasetPids", &[Rule::List, Rule::EachText]),
        Field::optional("metadata", OBJECT).default_to(Default::EmptyObject),
    ],
};
