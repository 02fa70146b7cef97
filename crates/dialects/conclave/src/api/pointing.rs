//! The topics that point at a topic: in pages by id, or newest first, for blogs and comments.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};

use axum::Router;
use axum::routing::get;
use pinakes_store::{View, Weight};
use serde_json::Value;

use super::neighbours::{Link, Order, Wanted, Which, parts_of, pointing_items, pointing_page};
use crate::app::{Asker, Conclave};
use crate::call::{Answer, Reading};
use crate::dated;
use crate::error::Result;
use crate::kinds::{DATED, POINTS, TOPIC, UNIT};

/// Maximum number of links that a count reads.
const COUNTED_MAX: usize = 1_000_000;
/// Number of links read at a time, over all ranges.
const STEP: usize = 2_000;
/// Bounds of the number of links of one range that are read at a time.
const RANGE_STEP: (usize, usize) = (8, 200);

pub(super) fn routes() -> Router<Conclave> {
    Router::new().route("/topics/v1/{map}/pointing", get(pointing))
}

async fn pointing(call: Reading) -> Answer {
    let wanted = Wanted::of(&call.params)?;
    let (reader, asked) = (call.clone(), wanted.clone());
    let (items, next, total) = call
        .read(Weight::Scan, move |view, map| {
            let total =
                asked.is_counted.then(|| count(view, (map, &asked.id), &asked.which, &reader)).transpose()?;
            let (items, next) = match asked.order {
                Order::Id => {
                    let page = pointing_page(
                        view,
                        (map, &asked.id),
                        &asked.which,
                        &reader.asker,
                        asked.after.as_deref(),
                        asked.limit,
                    )?;
                    let items = pointing_items(view, &reader, &asked, &page.links)?;
                    (items.into_iter().map(|it| it.1).collect(), page.next)
                }
                Order::Timestamp => (newest_pointing(view, &reader, &asked)?, None),
            };
            Ok((items, next, total))
        })
        .await?;
    Ok(wanted.answer(items, next, total))
}

/// Counts the matching links that a reader may see; reads up to [`COUNTED_MAX`].
fn count(view: &mut View<'_>, (map, id): (&str, &str), which: &Which, call: &Reading) -> Result<usize> {
    let (low, high) = which.range(map, id);
    let most = u32::try_from(COUNTED_MAX).unwrap_or(u32::MAX);
    let rows = view.links_within(&TOPIC, POINTS, (&low, &high), (&low, ""), most)?;
    let takes = |target: &str| {
        let [ty, role, scope] = parts_of(target);
        which.takes(ty, role, scope) && call.asker.sees(scope)
    };
    Ok(rows.iter().filter(|it| takes(&it.0)).count())
}

/// Returns the list items of the newest topics that point at a topic: those with a timestamp, newest first, then those
/// without, each by id. A topic with several arcs is listed once, with the newest of them.
fn newest_pointing(view: &mut View<'_>, reader: &Reading, wanted: &Wanted) -> Result<Vec<Value>> {
    let mut listed: HashSet<String> = HashSet::new();
    let mut out: Vec<Value> = Vec::new();
    for relation in [DATED, POINTS] {
        let mut links = Links::to(view, relation, (&reader.map, &wanted.id), &wanted.which, &reader.asker)?;
        while out.len() < wanted.limit {
            let step = links.take(view, wanted.limit)?;
            if step.is_empty() {
                break;
            }
            for (topic, item) in pointing_items(view, reader, wanted, &step)? {
                if out.len() < wanted.limit && listed.insert(topic) {
                    out.push(item);
                }
            }
        }
    }
    Ok(out)
}

/// The links of one relation to a topic, ordered by timestamp and owner, whatever their types, roles and scopes.
struct Links {
    relation: &'static str,
    ranges: Vec<Range>,
    /// The first link of each range: its date, backwards, its owner, and the number of the range.
    first: BinaryHeap<Reverse<(String, String, usize)>>,
    /// Number of links of one range that are read at a time.
    step: u32,
}

/// Links with the same type, role and scope, which lie together.
struct Range {
    parts: [String; 3],
    /// What all targets of the range begin with.
    stem: String,
    /// The last link that was read.
    after: (String, String),
    /// Links that were read and not taken: their dates, backwards, and their owners.
    waiting: VecDeque<(String, String)>,
    has_more: bool,
}

impl Range {
    /// Returns the next link, and reads some if none waits.
    fn next(&mut self, view: &mut View<'_>, relation: &str, step: u32) -> Result<Option<(String, String)>> {
        if self.waiting.is_empty() && self.has_more {
            let high = end_of(&self.stem);
            let after = (self.after.0.as_str(), self.after.1.as_str());
            let rows = view.links_within(&TOPIC, relation, (&self.stem, &high), after, step)?;
            self.has_more = rows.len() == step as usize;
            if let Some(last) = rows.last() {
                self.after.clone_from(last);
            }
            self.waiting.extend(rows.into_iter().filter_map(|(target, id)| {
                let owner = id.split_once('/')?.1.to_owned();
                let date = target.strip_prefix(self.stem.as_str())?.trim_start_matches(UNIT);
                Some((date.to_owned(), owner))
            }));
        }
        Ok(self.waiting.pop_front())
    }
}

/// Returns the exclusive end of the targets that are `stem`, or continue it with a separator. Names hold no control
/// characters, so no other target lies between.
fn end_of(stem: &str) -> String {
    format!("{stem} ")
}

impl Links {
    /// Finds the ranges of the links to a topic that the filter takes and the reader may see: one seek for each type,
    /// role and scope.
    fn to(
        view: &mut View<'_>,
        relation: &'static str,
        (map, reference): (&str, &str),
        which: &Which,
        asker: &Asker,
    ) -> Result<Links> {
        let (mut low, mut high) = which.range(map, reference);
        if !low.ends_with(UNIT) {
            // Type, role and scope are given: a date may follow.
            high = end_of(&low);
        }
        if relation == DATED {
            (low, high) = (dated::beginning(&low), dated::beginning(&high));
        }
        let mut ranges: Vec<Range> = Vec::new();
        let mut at = low.clone();
        while let Some((target, _)) = view.links_within(&TOPIC, relation, (&low, &high), (&at, ""), 1)?.pop()
        {
            let parts = parts_of(target.trim_start_matches(UNIT)).map(str::to_owned);
            let stem = match relation {
                DATED => dated::without_date(&target).to_owned(),
                _ => target,
            };
            at = end_of(&stem);
            let [ty, role, scope] = &parts;
            if which.takes(ty, role, scope) && asker.sees(scope) {
                let after = (stem.clone(), String::new());
                ranges.push(Range { parts, stem, after, waiting: VecDeque::new(), has_more: true });
            }
        }
        let step = (STEP / ranges.len().max(1)).clamp(RANGE_STEP.0, RANGE_STEP.1);
        let step = u32::try_from(step).unwrap_or(1);
        let mut out = Links { relation, ranges, first: BinaryHeap::new(), step };
        for number in 0..out.ranges.len() {
            out.advance(view, number)?;
        }
        Ok(out)
    }

    /// Puts the next link of a range among the first ones.
    fn advance(&mut self, view: &mut View<'_>, number: usize) -> Result<()> {
        if let Some((date, owner)) = self.ranges[number].next(view, self.relation, self.step)? {
            self.first.push(Reverse((date, owner, number)));
        }
        Ok(())
    }

    /// Takes the next `n` links, or those that are left.
    fn take(&mut self, view: &mut View<'_>, n: usize) -> Result<Vec<Link>> {
        let mut out = Vec::new();
        while out.len() < n {
            let Some(Reverse((date, owner, number))) = self.first.pop() else { break };
            self.advance(view, number)?;
            let [ty, role, scope] = self.ranges[number].parts.clone();
            let date = Some(date).filter(|it| !it.is_empty());
            out.push(Link { ty, role, scope, owner, date });
        }
        Ok(out)
    }
}
