//! Namespaces of XTM, valid element ids, and places of elements.

use crate::error::Place;
use crate::xml::Element;

/// Namespace of XTM 1.0.
pub(crate) const NAMESPACE_1: &str = "http://www.topicmaps.org/xtm/1.0/";

/// Namespace of XTM 2.0 and 2.1.
pub(crate) const NAMESPACE_2: &str = "http://www.topicmaps.org/xtm/";

pub(crate) fn place(base: &str, element: &Element) -> Place {
    Place::new(base, element.line)
}

/// Returns whether a text is an `NCName` (Namespaces in XML 1.0, production 4).
pub(crate) fn is_nc_name(text: &str) -> bool {
    let is_start = |it: char| it == '_' || it.is_alphabetic();
    let is_part = |it: char| {
        is_start(it)
            || it.is_numeric()
            || matches!(it, '-' | '.' | '\u{B7}')
            || matches!(it, '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
    };
    text.starts_with(is_start) && text.chars().all(is_part)
}
