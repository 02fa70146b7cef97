//! Which instances a harvester's list has, page by page, in the order in which they were created.

use pinakes_oai_pmh::{Page, Range, Selection};
use pinakes_store::{End, Expr, Kind, Query, Record, Value as StoreValue, View};
use serde_json::Value;

use super::config::Sources;
use super::described::{Form, Manner, described};
use crate::inventory::harvested::{CHANGED, GONE, changed_ms};
use crate::inventory::instances::INSTANCES;
use crate::platform::error::FolioError;
use crate::platform::json::text_at;

/// What a list goes through, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Instances by their own dates; all of them if no dates are requested.
    There,
    /// Instances by the dates of their holdings, items and source records, if those are newer.
    Changed,
    /// The traces of deleted instances.
    Gone,
}

impl Phase {
    const ALL: [Self; 3] = [Self::There, Self::Changed, Self::Gone];

    fn kind(self) -> &'static Kind {
        match self {
            Self::There => &INSTANCES.kind,
            Self::Changed => &CHANGED,
            Self::Gone => &GONE,
        }
    }

    /// Returns its mark in the name of a place.
    const fn mark(self) -> Option<&'static str> {
        match self {
            Self::There => None,
            Self::Changed => Some("changed"),
            Self::Gone => Some("gone"),
        }
    }
}

/// Where a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    phase: Phase,
    /// Behind the record at this position; `None` at the start of the phase.
    after: Option<i64>,
}

impl Place {
    const BEGIN: Self = Self { phase: Phase::There, after: None };

    /// Writes `17` or `17.changed`; -1 stands for the start of a phase.
    fn write(self) -> String {
        let after = self.after.unwrap_or(-1);
        self.phase.mark().map_or_else(|| after.to_string(), |mark| format!("{after}.{mark}"))
    }

    /// Reads what [`Self::write`] wrote; `None` for other texts.
    fn parse(text: &str) -> Option<Self> {
        let (after, mark) = text.split_once('.').map_or((text, None), |(after, mark)| (after, Some(mark)));
        let after: i64 = after.parse().ok()?;
        let phase = Phase::ALL.into_iter().find(|it| it.mark() == mark)?;
        Some(Self { phase, after: Some(after).filter(|it| 0 <= *it) })
    }
}

fn filter(range: &Range, form: Form, sources: Sources) -> Expr {
    let shown = match form {
        Form::Dc => Expr::All,
        Form::Marc21 | Form::Withholdings => {
            let is_marc = Expr::Is("source".into(), StoreValue::Folded("marc".to_owned()));
            match sources {
                Sources::Records => is_marc,
                Sources::Both => Expr::All,
                Sources::Inventory => Expr::Not(Box::new(is_marc)),
            }
        }
    };
    if !range.is_bounded() {
        return shown;
    }
    let low = range.from_ms.map_or(End::Open, |ms| End::Included(StoreValue::Instant(ms)));
    let high = range.before_ms.map_or(End::Open, |ms| End::Excluded(StoreValue::Instant(ms)));
    Expr::Range("metadata.updatedDate".into(), low, high).and(shown)
}

/// Returns a page of a list; `None` if there is no place of that name.
pub(super) fn page(
    view: &mut View<'_>,
    selection: &Selection<'_>,
    manner: &Manner,
) -> Result<Option<Page>, FolioError> {
    let Some(mut begin) = selection.place.map_or(Some(Place::BEGIN), Place::parse) else { return Ok(None) };
    let form = Form::named(selection.prefix);
    let filter = filter(&selection.range, form, manner.config.sources);
    let is_bounded = selection.range.is_bounded();
    let mut page = Page::default();
    loop {
        let (listed, next) = stored(view, &filter, begin, selection.n_max, is_bounded)?;
        page.n_passed += listed.len() as u64;
        for (record, phase) in &listed {
            if let Some(instance) = told(view, record, *phase, is_bounded)? {
                page.records.extend(described(view, &instance, manner, form, selection.is_whole)?);
            }
        }
        // A page with nothing to show is skipped: an answer contains at least one record.
        match next {
            Some(next) if page.records.is_empty() => begin = next,
            next => {
                page.next = next.map(Place::write);
                break;
            }
        }
    }
    for phase in Phase::ALL.into_iter().filter(|it| is_bounded || *it != Phase::Changed) {
        page.n_all += view.count(phase.kind(), &filter)?;
    }
    Ok(Some(page))
}

/// The records of a page in the order of the phases, and where the next page begins.
type Stored = (Vec<(Record, Phase)>, Option<Place>);

fn stored(
    view: &mut View<'_>,
    filter: &Expr,
    begin: Place,
    n_max: u64,
    is_bounded: bool,
) -> Result<Stored, FolioError> {
    let bound = usize::try_from(n_max).unwrap_or(usize::MAX);
    let mut listed: Vec<(Record, Phase)> = Vec::new();
    for phase in Phase::ALL.into_iter().skip_while(|it| *it != begin.phase) {
        if bound < listed.len() || phase == Phase::Changed && !is_bounded {
            continue;
        }
        let after = begin.after.filter(|_| phase == begin.phase);
        let rest = n_max + 1 - listed.len() as u64;
        let query = Query { after, ..Query::filter(filter.clone()).window(0, rest) };
        listed.extend(view.find(phase.kind(), &query)?.into_iter().map(|it| (it, phase)));
    }
    let next = listed.get(bound).map(|it| it.1);
    listed.truncate(bound);
    let next = next.zip(listed.last()).map(|(phase, (last, its))| {
        let after = (phase == *its).then(|| last.cursor());
        Place { phase, after }
    });
    Ok((listed, next))
}

/// Returns the instance of a record in a phase, with the date of its newest change; `None` if another phase lists it.
fn told(
    view: &mut View<'_>,
    record: &Record,
    phase: Phase,
    is_bounded: bool,
) -> Result<Option<Value>, FolioError> {
    let own = record.json()?;
    match phase {
        Phase::Gone => Ok(Some(own)),
        Phase::There => {
            let dated = with_newest(view, own.clone())?;
            // By its newest change it belongs to another window, or is listed as changed.
            Ok(Some(dated).filter(|it| !is_bounded || changed_ms(it) == changed_ms(&own)))
        }
        Phase::Changed => {
            let Some(instance) = view.get(&INSTANCES.kind, &record.id)? else { return Ok(None) };
            let instance = instance.json()?;
            let is_newer = changed_ms(&instance) < changed_ms(&own);
            if is_newer { Ok(Some(with_newest(view, instance)?)) } else { Ok(None) }
        }
    }
}

/// Returns an instance with the date of its newest change, including those of holdings, items and source record.
pub(super) fn with_newest(view: &mut View<'_>, mut instance: Value) -> Result<Value, FolioError> {
    let id = text_at(&instance, "id").unwrap_or_default().to_owned();
    let Some(noted) = view.get(&CHANGED, &id)? else { return Ok(instance) };
    let noted = noted.json()?;
    if changed_ms(&instance) < changed_ms(&noted)
        && let Some(metadata) = instance.get_mut("metadata").and_then(Value::as_object_mut)
    {
        let date = noted.pointer("/metadata/updatedDate").cloned().unwrap_or_default();
        metadata.insert("updatedDate".to_owned(), date);
    }
    Ok(instance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_written() {
        for (place, text) in [
            (Place { phase: Phase::There, after: Some(17) }, "17"),
            (Place { phase: Phase::Changed, after: Some(0) }, "0.changed"),
            (Place { phase: Phase::Gone, after: None }, "-1.gone"),
        ] {
            assert_eq!(place.write(), text);
            assert_eq!(Place::parse(text), Some(place));
        }
        for text in ["", "x", "17.", "17.there", "17.gone.gone", "sets"] {
            assert_eq!(Place::parse(text), None, "{text}");
        }
    }
}
