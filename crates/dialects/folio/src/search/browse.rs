//! Browsing: the entries around a position in an alphabetical list of headings, names, subjects or call numbers
//! (section 12 of the contract; mod-search).
//!
//! The lists are declared with the kinds and read from the search index: the position is looked up, and the entries
//! around it are read from there. Like a search, a list never lags behind: recent changes are read from the records.

mod entries;
mod lists;
mod window;

use http::StatusCode;
use pinakes_store::{Browsed, Expr, Kind, ListPlace, View, Wanted, Weight, matches};
use serde_json::{Value, json};

use self::lists::{LISTS, List};
use self::window::{Marked, Window};
use super::refusals;
use crate::platform::app::Call;
use crate::platform::collection::parsed;
use crate::platform::cql::{self, Names, Node, Relation};
use crate::platform::error::{Answer, FolioError};
use crate::platform::limits::BROWSED_ENTRIES;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

pub(crate) use self::entries::{ENTRY_FACETS, EntryFacets};
pub(crate) use self::lists::{CONFIG, HEADING_FIELDS, headings};

/// Default number of entries in an answer.
const DEFAULT_LIMIT: u64 = 20;

/// A kind for the entries of a list, which are not stored records.
static ROW: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_browse_row") };

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    LISTS
        .iter()
        .fold(routes, |routes, list| {
            routes.get(list.path, Access::to(list.permission), move |call| browse(call, list))
        })
        .with(lists::routes)
}

async fn browse(call: Call, list: &'static List) -> Answer {
    let text = call.query.get("query").unwrap_or_default();
    if text.trim().is_empty() {
        return Err(refusals::no_query());
    }
    let limit = call.query.number("limit", DEFAULT_LIMIT)?;
    let preceding = call.query.number("precedingRecordsCount", limit / 2)?.min(limit);
    if limit == 0 || BROWSED_ENTRIES < limit {
        return Err(FolioError::bad_request(format!(
            "limit must be between 1 and {BROWSED_ENTRIES}, found {limit}"
        )));
    }
    let marks = call.query.get("highlightMatch").is_none_or(|it| it == "true");
    let mut anchor = Anchor::default();
    let rest = anchor.taken_from(parsed(&call.app.settings, text)?.condition, list.anchors);
    let Some(term) = anchor.term.clone() else {
        let names = list.anchors.join(" or ");
        return Err(FolioError::bad_request(format!(
            "a browse needs a place to begin, like {names} >= \"term\" or {names} < \"term\"; found {text:?}"
        )));
    };
    let of_size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let (n_before, n_after) = match (anchor.is_below, anchor.is_above) {
        (true, true) => (of_size(preceding), of_size(limit - preceding)),
        (true, false) => (of_size(limit), 0),
        _ => (0, of_size(limit)),
    };
    let (rest, of) = list.separated(rest)?;
    let option = call.param("option").to_owned();
    let read = move |view: &mut View<'_>| list.types(view, &option);
    let types = call.db().read(Weight::Point, read).await?;
    let condition = match (&rest, types.as_slice()) {
        (None, []) => String::new(),
        _ => format!("{types:?} {rest:?}"),
    };
    let is_about_text = rest.as_ref().is_some_and(|it| list.has_to_look(it));
    let fits = match rest {
        Some(rest) => cql::meaning(&rest, &ROW, &Names { whole: list.whole, ..Names::PLAIN }, &mut |_| {
            Ok::<_, FolioError>(None)
        })?,
        None => Expr::All,
    };
    let is_around = anchor.is_below && anchor.is_above;
    let includes = anchor.includes;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let key = (list.shape.key)(&term);
        let fits = |told: &Value| {
            let ty = told.get(list.type_field).and_then(Value::as_str);
            let is_of_type = types.is_empty() || types.iter().any(|it| Some(it.as_str()) == ty);
            is_of_type && matches(&fits, told)
        };
        let mut browsed = |is_behind: bool, n_before: usize, n_after: usize| {
            let place = ListPlace { key: key.clone(), is_behind, n_before, n_after, n_skipped: 0 };
            let mut has_traits = |traits: &str| fits(&list.shape.told_by_traits(traits));
            let mut has = |apart: &str, traits: &str| fits(&list.shape.told(apart, traits));
            let wanted = match condition.as_str() {
                "" => Wanted::All,
                condition if is_about_text => Wanted::Entries { condition, fits: &mut has },
                _ => Wanted::Traits(&mut has_traits),
            };
            view.browse(&(list.of)().kind, list.name, &of, &place, wanted)
        };
        // A position requested with `<=` alone is the last entry of those before it.
        let found = match (includes, n_after) {
            (true, 0) => browsed(false, n_before, 0)?,
            (true, _) => browsed(true, n_before, n_after)?,
            (false, _) => {
                let below = browsed(true, n_before, 0)?;
                Browsed { before: below.before, ..browsed(false, 0, n_after)? }
            }
        };
        let window = Window { n_before, n_after, key };
        let marked = (is_around && marks).then_some(Marked { text: &term, name: list.anchors[0] });
        let mut found = window.of(view, list, found, marked)?;
        for item in &mut found.items {
            (list.complete)(view, item)?;
        }
        let mut body = json!({"totalRecords": found.n_entries});
        for (name, value) in [("prev", found.previous), ("next", found.next)] {
            if let Some(value) = value {
                body[name] = value.into();
            }
        }
        body["items"] = found.items.into_iter().map(|it| it.shown).collect();
        Ok(body)
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// The start of a browse: `name >= "x"`, `name < "x"`, or both joined by OR for the entries around it.
#[derive(Debug, Default)]
struct Anchor {
    term: Option<String>,
    is_below: bool,
    is_above: bool,
    /// Whether the entry at the position itself is included.
    includes: bool,
}

impl Anchor {
    /// Removes the position from a condition and returns the rest of it.
    fn taken_from(&mut self, node: Node, names: &[&str]) -> Option<Node> {
        match node {
            Node::Clause(clause) if names.iter().any(|it| it.eq_ignore_ascii_case(&clause.index)) => {
                let term = clause.term.literal().unwrap_or_else(|| clause.term.to_string());
                match clause.relation {
                    Relation::Less => self.is_below = true,
                    Relation::LessOrEqual => (self.is_below, self.includes) = (true, true),
                    Relation::Greater => self.is_above = true,
                    Relation::GreaterOrEqual => (self.is_above, self.includes) = (true, true),
                    _ => return Some(Node::Clause(clause)),
                }
                self.term = Some(term);
                None
            }
            Node::And(a, b) => match (self.taken_from(*a, names), self.taken_from(*b, names)) {
                (Some(a), Some(b)) => Some(Node::And(Box::new(a), Box::new(b))),
                (a, b) => a.or(b),
            },
            Node::Or(a, b) => match (self.taken_from(*a, names), self.taken_from(*b, names)) {
                (Some(a), Some(b)) => Some(Node::Or(Box::new(a), Box::new(b))),
                (a, b) => a.or(b),
            },
            Node::Not(a, b) => match self.taken_from(*a, names) {
                Some(a) => Some(Node::Not(Box::new(a), b)),
                None => Some(Node::Negation(b)),
            },
            other => Some(other),
        }
    }
}
