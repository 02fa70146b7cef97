//! The statements of a citation, packed into one number while a graph is built, and those that contradict the dates
//! of its works.

use crate::date::{DATE_BITS, PartialDate, TIMESPAN_BITS, Timespan};

/// Bits of a symbol, the position in the palette.
pub(crate) const SYMBOL_BITS: u32 = 12;
const SPAN_SHIFT: u32 = SYMBOL_BITS;
const CREATION_SHIFT: u32 = SPAN_SHIFT + TIMESPAN_BITS;
const STATED_SHIFT: u32 = CREATION_SHIFT + DATE_BITS;

/// The dates of a citation as one number: 0 if its row has no columns for dates, so that the known dates of its works
/// apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Statements(u64);

impl Statements {
    pub(crate) fn new(creation: Option<PartialDate>, timespan: Option<Timespan>, symbol: u32) -> Self {
        let creation = u64::from(creation.map_or(0, PartialDate::code));
        let timespan = u64::from(timespan.map_or(0, Timespan::code));
        Self(1 << STATED_SHIFT | creation << CREATION_SHIFT | timespan << SPAN_SHIFT).with_symbol(symbol)
    }

    /// Creates the statements of a row without columns for dates.
    pub(crate) fn unstated(symbol: u32) -> Self {
        Self(0).with_symbol(symbol)
    }

    pub(crate) fn with_symbol(self, symbol: u32) -> Self {
        debug_assert!(symbol >> SYMBOL_BITS == 0);
        Self(self.dates_only().0 | u64::from(symbol))
    }

    pub(crate) fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// Returns the same without the symbol.
    pub(crate) fn dates_only(self) -> Self {
        Self(self.0 >> SYMBOL_BITS << SYMBOL_BITS)
    }

    pub(crate) fn symbol(self) -> u32 {
        self.0 as u32 & ((1 << SYMBOL_BITS) - 1)
    }

    /// Returns whether the row has columns for dates, even if they are empty.
    pub(crate) fn is_stated(self) -> bool {
        self.0 >> STATED_SHIFT & 1 == 1
    }

    pub(crate) fn creation_code(self) -> u32 {
        (self.0 >> CREATION_SHIFT) as u32 & ((1 << DATE_BITS) - 1)
    }

    pub(crate) fn creation(self) -> Option<PartialDate> {
        PartialDate::from_code(self.creation_code())
    }

    pub(crate) fn timespan_code(self) -> u32 {
        (self.0 >> SPAN_SHIFT) as u32 & ((1 << TIMESPAN_BITS) - 1)
    }

    pub(crate) fn timespan(self) -> Option<Timespan> {
        Timespan::from_code(self.timespan_code())
    }
}

/// A statement that contradicts the dates of the works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exception {
    /// The citation's creation; 0 for none.
    Creation(u32),
    /// The citation's timespan; 0 for none.
    Timespan(u32),
}

const KIND_SHIFT: u32 = 56;

impl Exception {
    pub(crate) fn word(self) -> u64 {
        match self {
            Self::Creation(code) => 1 << KIND_SHIFT | u64::from(code),
            Self::Timespan(code) => 2 << KIND_SHIFT | u64::from(code),
        }
    }

    pub(crate) fn from_word(word: u64) -> Option<Self> {
        match word >> KIND_SHIFT {
            1 => Some(Self::Creation(word as u32)),
            2 => Some(Self::Timespan(word as u32)),
            _ => None,
        }
    }
}
