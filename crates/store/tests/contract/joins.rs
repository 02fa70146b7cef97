//! Joins give the same result as a look at all records, whether the indexes have them or not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pinakes_store::{Expr, Kind, Query, Tenant, View, matches};
use serde_json::{Value as Json, json};

use crate::engines::{engines, read, write};
use crate::kinds::{BOX, FOLDER, LEAF};

static KINDS: &[&Kind] = &[&BOX, &FOLDER, &LEAF];
const WAIT: Duration = Duration::from_secs(120);
const N_BOXES: u64 = 700;

type Records = BTreeMap<String, Json>;

/// All records, by kind.
struct World([Records; 3]);

impl World {
    fn new() -> Self {
        let boxes = (0..N_BOXES).map(|n| (format!("b{n}"), json!({"id": format!("b{n}"), "size": n % 7})));
        let folders = (0..2 * N_BOXES).map(|n| {
            let body = json!({
                "id": format!("f{n}"),
                "boxId": format!("b{}", n * 5 % (N_BOXES + 9)),
                "place": format!("place {}", n % 11),
                "isOpen": n % 3 == 0,
            });
            (format!("f{n}"), body)
        });
        let leaves = (0..3 * N_BOXES).map(|n| {
            let long = format!("{}{}", "a long tag ".repeat(20), n % 4);
            let tags = if n % 500 == 3 {
                json!([long, "tag 1"])
            } else {
                json!([format!("tag {}", n % 13), "every"])
            };
            let number = if n % 4 == 0 { json!((n % 10).to_string()) } else { json!(n % 10) };
            (
                format!("l{n}"),
                json!({"folderId": format!("f{}", n * 3 % (2 * N_BOXES)), "tags": tags, "n": number}),
            )
        });
        Self([boxes.collect(), folders.collect(), leaves.collect()])
    }

    /// Returns the texts at a top-level path of the records of a kind that satisfy a condition.
    fn texts(&self, kind: usize, filter: &Expr, path: &str) -> BTreeSet<String> {
        let held = self.0[kind].values().filter(|it| matches(filter, it));
        held.filter_map(|it| it[path].as_str()).map(str::to_owned).collect()
    }

    fn ids(&self, kind: usize, path: &str, among: &BTreeSet<String>) -> Vec<String> {
        let held =
            self.0[kind].iter().filter(|it| it.1[path].as_str().is_some_and(|text| among.contains(text)));
        held.map(|it| it.0.clone()).collect()
    }

    /// Counts boxes by the values that their folders, or the leaves of these, have at a path.
    fn counts(&self, boxes: &BTreeSet<String>, kind: usize, path: &str) -> BTreeMap<String, u64> {
        let mut seen: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for body in self.0[kind].values() {
            let folder = match body["folderId"].as_str() {
                Some(folder) => self.0[1].get(folder),
                None => Some(body),
            };
            let Some(owner) = folder.and_then(|it| it["boxId"].as_str()).filter(|it| boxes.contains(*it))
            else {
                continue;
            };
            let values = body[path].as_array().map_or_else(|| vec![&body[path]], |it| it.iter().collect());
            for value in values {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                if value != "null" {
                    seen.entry(value).or_default().insert(owner);
                }
            }
        }
        seen.into_iter().map(|(value, owners)| (value, owners.len() as u64)).collect()
    }
}

fn ids(view: &mut View<'_>, kind: &'static Kind, filter: Expr) -> pinakes_store::Result<Vec<String>> {
    let mut found = Vec::new();
    view.try_for_each(kind, &Query::filter(filter), |record| {
        found.push(record.id);
        Ok::<_, pinakes_store::StoreError>(())
    })?;
    found.sort();
    Ok(found)
}

#[track_caller]
fn check(tenant: &Tenant, world: &World, engine: &str) {
    // Of all leaves, of some, of few, of none.
    for of_leaves in [
        Expr::All,
        Expr::Is("n".into(), 3.into()),
        Expr::Is("tags".into(), "tag 5".into()),
        Expr::Is("n".into(), 77.into()),
    ] {
        let folders = world.texts(2, &of_leaves, "folderId");
        let expected = world.ids(1, "id", &folders);
        let boxes = world.texts(
            1,
            &Expr::In("id".into(), folders.iter().map(|it| it.as_str().into()).collect()),
            "boxId",
        );
        let found = read(tenant, |view| {
            let keys = view.join_keys(&LEAF, &of_leaves, &"folderId".into())?;
            assert_eq!(keys.len(), folders.len());
            let of_folders = Expr::Joined("id".into(), keys);
            let found = ids(view, &FOLDER, of_folders.clone())?;
            let keys = view.join_keys(&FOLDER, &of_folders, &"boxId".into())?;
            let some =
                Expr::And(vec![Expr::Is("size".into(), 2.into()), Expr::Joined("id".into(), keys.clone())]);
            let others = Expr::Not(Box::new(Expr::Joined("id".into(), keys.clone())));
            let n_others = view.count(&BOX, &others)?;
            // The ids of some that are not all there, and of those that are.
            let of_boxes = Expr::Joined("id".into(), keys.clone());
            let there = view.join_keys(&BOX, &of_boxes, &"id".into())?;
            assert_eq!(there.len() as u64, view.count(&BOX, &of_boxes)?);
            assert_eq!(view.join_keys(&BOX, &Expr::Joined("id".into(), there.clone()), &"id".into())?, there);
            Ok((found, ids(view, &BOX, Expr::Joined("id".into(), keys))?, ids(view, &BOX, some)?, n_others))
        });
        let boxes = world.ids(0, "id", &boxes);
        let some: Vec<String> = boxes.iter().filter(|it| world.0[0][*it]["size"] == 2).cloned().collect();
        let n_others = (world.0[0].len() - boxes.len()) as u64;
        assert_eq!(found, (expected, boxes, some, n_others), "{engine} {of_leaves:?}");
    }
    for of_boxes in
        [Expr::All, Expr::Is("size".into(), 3.into()), Expr::Is("id".into(), "b7".into()), Expr::Nothing]
    {
        let boxes = world.texts(0, &of_boxes, "id");
        let found = read(tenant, |view| {
            let owners = view.owners(&BOX, &of_boxes, &"id".into())?;
            let paths = ["place", "isOpen", "none"].map(Into::into);
            let of_folders = view.count_owners(&FOLDER, &owners, &"boxId".into(), &paths)?;
            let by_folder = view.owned(&FOLDER, &owners, &"boxId".into(), &"id".into())?;
            Ok((of_folders, view.count_owners(&LEAF, &by_folder, &"folderId".into(), &["tags".into()])?))
        });
        let of_folders = ["place", "isOpen", "none"].map(|path| world.counts(&boxes, 1, path)).to_vec();
        assert_eq!(found, (of_folders, vec![world.counts(&boxes, 2, "tags")]), "{engine} {of_boxes:?}");
        // By a whole number on one side, and the same number or its digits on the other.
        let sizes: BTreeSet<String> = world.0[0]
            .values()
            .filter(|it| matches(&of_boxes, it))
            .map(|it| it["size"].to_string())
            .collect();
        let of_size = |it: &Json| sizes.contains(it["n"].to_string().trim_matches('"'));
        let leaves = world.0[2].iter().filter(|it| of_size(it.1)).map(|it| it.0.clone());
        let found = read(tenant, |view| {
            let keys = view.join_keys(&BOX, &of_boxes, &"size".into())?;
            ids(view, &LEAF, Expr::Joined("n".into(), keys))
        });
        assert_eq!(found, Vec::from_iter(leaves), "{engine} {of_boxes:?}");
    }
}

#[test]
fn records_are_joined() {
    for place in engines() {
        let tenant = place.tenant(KINDS);
        let mut world = World::new();
        let first: Vec<Records> = world.0.to_vec();
        write(&tenant, move |txn| {
            for (kind, records) in KINDS.iter().zip(&first) {
                records.iter().try_for_each(|(id, body)| txn.insert(kind, id, body).map(|_| ()))?;
            }
            Ok(())
        });
        check(&tenant, &world, place.engine);
        assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
        check(&tenant, &world, place.engine);
        // Moved, taken out and added since.
        let moved = json!({"id": "f4", "boxId": "b7", "place": "place 99", "isOpen": true});
        let leaf = json!({"folderId": "f4", "tags": ["new", "tag 1"], "n": 3});
        world.0[1].insert("f4".to_owned(), moved.clone());
        world.0[2].insert("new".to_owned(), leaf.clone());
        world.0[0].remove("b3");
        world.0[2].remove("l9");
        write(&tenant, move |txn| {
            txn.update(&FOLDER, "f4", &moved)?;
            txn.insert(&LEAF, "new", &leaf)?;
            txn.delete(&BOX, "b3")?;
            txn.delete(&LEAF, "l9").map(|_| ())
        });
        check(&tenant, &world, place.engine);
        assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
        check(&tenant, &world, place.engine);
    }
}
