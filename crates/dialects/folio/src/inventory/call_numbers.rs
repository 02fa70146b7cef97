//! Call numbers compared by their letters and digits alone, whatever is between them (mod-search:
//! `itemNormalizedCallNumbers`, `holdingsNormalizedCallNumbers`).

use pinakes_store::{Expr, Path, Pattern, fold};

use super::kinds::{HOLDINGS, ITEM};
use crate::platform::cql::{Clause, CqlError, Piece, Term};
use crate::platform::error::FolioError;

const OF_ITEM: &str = "effectiveCallNumberComponents.callNumber";

/// Names of conditions, the kind that they are about, and the path of its call number.
const NAMES: [(&str, &str, &str); 6] = [
    ("itemNormalizedCallNumbers", ITEM, OF_ITEM),
    ("items.normalizedCallNumbers", ITEM, OF_ITEM),
    ("item.normalizedCallNumbers", ITEM, OF_ITEM),
    ("holdings.normalizedCallNumbers", HOLDINGS, "callNumber"),
    ("holdingsNormalizedCallNumbers", HOLDINGS, "callNumber"),
    ("holdingNormalizedCallNumbers", HOLDINGS, "callNumber"),
];

/// Returns the kind that a clause about normalized call numbers concerns, with the condition on it; `None` for another
/// clause.
///
/// Errors: 400 for a term that is too long.
pub(super) fn normalized(clause: &Clause) -> Result<Option<(&'static str, Expr)>, FolioError> {
    let Some((_, kind, path)) = NAMES.iter().find(|it| clause.index.eq_ignore_ascii_case(it.0)) else {
        return Ok(None);
    };
    Ok(Some((kind, Expr::Regex(Path::dotted(path), pattern(&clause.term)?))))
}

/// Returns the pattern of call numbers that have the letters and digits of a term.
fn pattern(term: &Term) -> Result<Pattern, FolioError> {
    const BETWEEN: &str = "[^a-z0-9]*";
    let mut text = format!("^{BETWEEN}");
    for piece in term.pieces() {
        match piece {
            Piece::Text(it) => {
                let signs = fold(&it);
                for sign in signs.chars().filter(char::is_ascii_alphanumeric) {
                    text.push(sign);
                    text.push_str(BETWEEN);
                }
            }
            Piece::Any => text.push_str(".*"),
            Piece::One => text.push_str("[a-z0-9][^a-z0-9]*"),
        }
    }
    text.push('$');
    Ok(Pattern::new(&text, "fs").map_err(|error| CqlError { reason: error.to_string(), at: 0 })?)
}
