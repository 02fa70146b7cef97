//! The dialects of this server, and the pages beside them, by name.

use pinakes_store::Kind;

/// A dialect. A variant added here can be configured, is known to every command, and is constructed in
/// `dialects.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Scicat,
    Labe,
    Folio,
    Dataverse,
    Conclave,
    /// The pages, which show what the others serve.
    Site,
}

impl Dialect {
    /// All of them, in the order in which they are constructed.
    pub(crate) const ALL: [Self; 6] =
        [Self::Scicat, Self::Labe, Self::Folio, Self::Dataverse, Self::Conclave, Self::Site];

    /// Its name in `dialects` and `[mounts]`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scicat => "scicat",
            Self::Labe => "labe",
            Self::Folio => "folio",
            Self::Dataverse => "dataverse",
            Self::Conclave => "conclave",
            Self::Site => "site",
        }
    }

    /// Returns the kinds it stores.
    fn kinds(self) -> &'static [&'static Kind] {
        match self {
            Self::Scicat => &pinakes_scicat::KINDS,
            Self::Labe => pinakes_labe::KINDS,
            Self::Folio => pinakes_folio::kinds(),
            Self::Dataverse => pinakes_dataverse::kinds(),
            Self::Conclave => pinakes_conclave::KINDS,
            Self::Site => pinakes_site::KINDS,
        }
    }
}

/// Names of all dialects.
pub(crate) fn names() -> Vec<String> {
    Dialect::ALL.iter().map(|it| it.name().to_owned()).collect()
}

/// Returns every kind of every dialect, including those that are not served.
pub(crate) fn kinds() -> Vec<&'static Kind> {
    Dialect::ALL.iter().flat_map(|it| it.kinds()).copied().collect()
}
