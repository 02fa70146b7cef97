//! The six verbs, and the arguments that each takes.

/// What is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// A description of the repository.
    Identify,
    /// The formats of the repository, or of a record.
    ListMetadataFormats,
    /// The sets.
    ListSets,
    /// The headers of records.
    ListIdentifiers,
    /// Records.
    ListRecords,
    /// One record.
    GetRecord,
}

impl Verb {
    pub(crate) const ALL: [Self; 6] = [
        Self::Identify,
        Self::ListMetadataFormats,
        Self::ListSets,
        Self::ListIdentifiers,
        Self::ListRecords,
        Self::GetRecord,
    ];

    /// Returns its name in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identify => "Identify",
            Self::ListMetadataFormats => "ListMetadataFormats",
            Self::ListSets => "ListSets",
            Self::ListIdentifiers => "ListIdentifiers",
            Self::ListRecords => "ListRecords",
            Self::GetRecord => "GetRecord",
        }
    }

    /// Returns the names of all verbs, in one text.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Returns the arguments that it takes.
    pub(crate) const fn arguments(self) -> Arguments {
        match self {
            Self::Identify => Arguments { optional: &[], required: &[], exclusive: None },
            Self::ListMetadataFormats => {
                Arguments { optional: &["identifier"], required: &[], exclusive: None }
            }
            Self::ListSets => Arguments { optional: &[], required: &[], exclusive: Some(RESUMPTION_TOKEN) },
            Self::ListIdentifiers | Self::ListRecords => Arguments {
                optional: &["from", "until", "set"],
                required: &["metadataPrefix"],
                exclusive: Some(RESUMPTION_TOKEN),
            },
            Self::GetRecord => {
                Arguments { optional: &[], required: &["identifier", "metadataPrefix"], exclusive: None }
            }
        }
    }

    /// Returns the names of its arguments, in one text.
    pub(crate) fn takes(self) -> String {
        match self.arguments().names().collect::<Vec<_>>() {
            names if names.is_empty() => "none".to_owned(),
            names => names.join(", "),
        }
    }
}

/// The name of the argument that continues a list.
pub(crate) const RESUMPTION_TOKEN: &str = "resumptionToken";

/// The arguments of a verb.
pub(crate) struct Arguments {
    optional: &'static [&'static str],
    pub(crate) required: &'static [&'static str],
    /// Stands alone, in place of all others.
    pub(crate) exclusive: Option<&'static str>,
}

impl Arguments {
    /// Returns the names of all of them.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.required.iter().chain(self.optional).copied().chain(self.exclusive)
    }
}
