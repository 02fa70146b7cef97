//! Records with human-readable ids, and the numbers that a transaction has reserved.

/// Number of digits, including leading zeroes.
pub(crate) const DIGITS: usize = 11;

/// The records that have such ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Numbered {
    /// Instances, `in…`.
    Instances,
    /// Holdings, `ho…`.
    Holdings,
    /// Items, `it…`.
    Items,
}

impl Numbered {
    pub(crate) const ALL: [Self; 3] = [Self::Instances, Self::Holdings, Self::Items];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Instances => "instances",
            Self::Holdings => "holdings",
            Self::Items => "items",
        }
    }

    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Instances => "in",
            Self::Holdings => "ho",
            Self::Items => "it",
        }
    }
}

/// Numbers that a transaction has reserved but not used yet: the prefix, the next number, how many are left, and
/// whether leading zeroes are kept.
#[derive(Debug, Clone)]
pub(crate) struct Reserved {
    pub(crate) prefix: String,
    pub(crate) next: u64,
    pub(crate) left: u64,
    pub(crate) keeps_zeroes: bool,
}

impl Reserved {
    /// Returns the next of these ids; `None` if all are used.
    pub(crate) fn take(&mut self) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        let number = self.next;
        self.next += 1;
        let prefix = &self.prefix;
        Some(if self.keeps_zeroes {
            format!("{prefix}{number:0DIGITS$}")
        } else {
            format!("{prefix}{number}")
        })
    }
}
