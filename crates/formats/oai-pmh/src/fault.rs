//! What may be wrong with a request.

use crate::verb::Verb;

/// The code of an error, as the standard names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// An argument is unknown, missing, given twice or malformed.
    BadArgument,
    /// The resumption token is none that was given.
    BadResumptionToken,
    /// The verb is unknown, missing or given twice.
    BadVerb,
    /// The metadata format is not offered.
    CannotDisseminateFormat,
    /// There is no record of that identifier.
    IdDoesNotExist,
    /// The list would be empty.
    NoRecordsMatch,
    /// The record has no metadata.
    NoMetadataFormats,
    /// The repository has no sets.
    NoSetHierarchy,
}

impl Code {
    /// Returns its name in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BadArgument => "badArgument",
            Self::BadResumptionToken => "badResumptionToken",
            Self::BadVerb => "badVerb",
            Self::CannotDisseminateFormat => "cannotDisseminateFormat",
            Self::IdDoesNotExist => "idDoesNotExist",
            Self::NoRecordsMatch => "noRecordsMatch",
            Self::NoMetadataFormats => "noMetadataFormats",
            Self::NoSetHierarchy => "noSetHierarchy",
        }
    }
}

/// What is wrong with a request. The sentences are for people; a repository may have its own
/// ([`crate::Repository::sentence`]).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No verb.
    #[error("the argument verb is missing; expected one of {}", Verb::names())]
    NoVerb,
    /// A verb that does not exist.
    #[error("the verb '{0}' is not known; expected one of {names}", names = Verb::names())]
    UnknownVerb(String),
    /// Several verbs.
    #[error("the argument verb is given {} times: {}; expected one", .0.len(), .0.join(", "))]
    RepeatedVerb(Vec<String>),
    /// An argument that the verb does not take.
    #[error("{verb} takes no argument {name}; expected {expected}", verb = .0.name(), name = .1, expected = .0.takes())]
    UnknownArgument(Verb, String),
    /// An argument that is given twice.
    #[error("the argument {1} of {verb} is given more than once", verb = .0.name())]
    RepeatedArgument(Verb, String),
    /// A resumption token beside other arguments.
    #[error("the argument {1} of {verb} is given with others; it holds them, so expected it alone", verb = .0.name())]
    NotAlone(Verb, &'static str),
    /// An argument that the verb demands.
    #[error("{verb} needs the argument {1}", verb = .0.name())]
    MissingArgument(Verb, &'static str),
    /// A date in another form.
    #[error("from and until must be dates, YYYY-MM-DDThh:mm:ssZ")]
    NotADate(String),
    /// A date with a time, where only days are known.
    #[error("{0} has a time, but the granularity here is YYYY-MM-DD")]
    TooFine(String),
    /// A day and an instant.
    #[error("from is {0} and until is {1}; expected both as days or both with a time")]
    MixedGranularity(String, String),
    /// An end before the beginning.
    #[error("from is {0}, which is later than until, {1}")]
    Reversed(String, String),
    /// A token that was not given, or whose list no longer exists.
    #[error("the resumption token is not one that was given")]
    UnknownToken,
    /// A metadata format that is not offered.
    #[error("the format {prefix} is not known; {} are", .known.join(", "))]
    UnknownFormat {
        /// As requested.
        prefix: String,
        /// Those that are offered.
        known: Vec<String>,
    },
    /// An identifier of no record.
    #[error("{0} is not known")]
    UnknownRecord(String),
    /// A set that does not exist.
    #[error("there is no such set")]
    UnknownSet(String),
    /// A list without records.
    #[error("no record matches the request")]
    NothingFound,
    /// A record without metadata.
    #[error("{0} has no metadata in any format")]
    NoFormats(String),
    /// A request for sets where there are none.
    #[error("this repository has no sets")]
    NoSets,
}

impl Fault {
    /// Returns its code.
    pub const fn code(&self) -> Code {
        match self {
            Self::NoVerb | Self::UnknownVerb(_) | Self::RepeatedVerb(_) => Code::BadVerb,
            Self::UnknownArgument(..)
            | Self::RepeatedArgument(..)
            | Self::NotAlone(..)
            | Self::MissingArgument(..)
            | Self::NotADate(_)
            | Self::TooFine(_)
            | Self::MixedGranularity(..)
            | Self::Reversed(..) => Code::BadArgument,
            Self::UnknownToken => Code::BadResumptionToken,
            Self::UnknownFormat { .. } => Code::CannotDisseminateFormat,
            Self::UnknownRecord(_) => Code::IdDoesNotExist,
            Self::UnknownSet(_) | Self::NothingFound => Code::NoRecordsMatch,
            Self::NoFormats(_) => Code::NoMetadataFormats,
            Self::NoSets => Code::NoSetHierarchy,
        }
    }
}
