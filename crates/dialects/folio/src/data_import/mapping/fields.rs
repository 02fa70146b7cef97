//! Which properties of the mapped records are lists, and which are not texts.

/// The structure of a kind of record, as far as mapping needs it.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Dotted paths of lists.
    pub(crate) lists: &'static [&'static str],
    /// Dotted paths of booleans.
    pub(crate) booleans: &'static [&'static str],
    /// Lists without duplicates.
    pub(crate) sets: &'static [&'static str],
    /// Prefixes of the names of top-level lists.
    pub(crate) list_prefixes: &'static [&'static str],
}

impl Shape {
    /// Checks whether the path given by the steps is a list.
    pub(crate) fn is_list(&self, steps: &[String]) -> bool {
        let is_at = |path: &&str| path.split('.').eq(steps.iter().map(String::as_str));
        self.lists.iter().any(is_at)
            || matches!(steps, [name] if self.list_prefixes.iter().any(|it| name.starts_with(it)))
    }

    pub(crate) fn is_boolean(&self, steps: &[String]) -> bool {
        self.booleans.iter().any(|path| path.split('.').eq(steps.iter().map(String::as_str)))
    }

    pub(crate) fn is_set(&self, steps: &[String]) -> bool {
        self.sets.iter().any(|path| path.split('.').eq(steps.iter().map(String::as_str)))
    }
}

/// Instances.
pub(crate) static INSTANCE: Shape = Shape {
    lists: &[
        "alternativeTitles",
        "editions",
        "series",
        "identifiers",
        "contributors",
        "subjects",
        "classifications",
        "publication",
        "publicationFrequency",
        "publicationRange",
        "electronicAccess",
        "instanceFormatIds",
        "physicalDescriptions",
        "languages",
        "notes",
        "precedingTitles",
        "precedingTitles.identifiers",
        "succeedingTitles",
        "succeedingTitles.identifiers",
        "administrativeNotes",
        "natureOfContentTermIds",
        "statisticalCodeIds",
    ],
    booleans: &["contributors.primary", "notes.staffOnly", "discoverySuppress", "staffSuppress", "deleted"],
    sets: &["languages", "editions", "instanceFormatIds", "publicationFrequency", "publicationRange"],
    list_prefixes: &[],
};

/// Authorities.
pub(crate) static AUTHORITY: Shape = Shape {
    lists: &["identifiers", "notes"],
    booleans: &["notes.staffOnly"],
    sets: &[],
    list_prefixes: &["sft", "saft"],
};

/// Holdings records.
pub(crate) static HOLDINGS: Shape = Shape {
    lists: &[
        "formerIds",
        "notes",
        "electronicAccess",
        "holdingsStatements",
        "holdingsStatementsForSupplements",
        "holdingsStatementsForIndexes",
        "statisticalCodeIds",
        "administrativeNotes",
    ],
    booleans: &["notes.staffOnly", "discoverySuppress"],
    sets: &["formerIds"],
    list_prefixes: &[],
};
