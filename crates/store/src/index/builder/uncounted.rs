//! Counting of the browsable lists after a start.

use std::sync::Arc;

use crate::index::{Indexes, lists};
use crate::lists::Wanted;
use crate::{Expr, Kind, Result, View};

/// Browsable lists whose entries have not been counted since the start. Who browses one first would wait for that.
pub(super) struct Uncounted(Vec<(&'static Kind, usize)>);

impl Uncounted {
    pub(super) fn of(kinds: &[&'static Kind]) -> Self {
        Self(kinds.iter().flat_map(|kind| (0..kind.lists.len()).map(|list| (*kind, list))).collect())
    }

    /// Counts the entries of one list. Returns false when all have been counted.
    pub(super) fn count_one(
        &mut self,
        indexes: &Indexes,
        reader: &mut impl FnMut(&mut dyn FnMut(&mut View<'_>) -> Result<()>) -> Result<()>,
    ) -> bool {
        let Some((kind, list)) = self.0.pop() else { return false };
        let published = indexes.current();
        if published.contains_key(kind.name) {
            let counted = reader(&mut |view| {
                view.indexes = Some(Arc::clone(&published));
                lists::list_traits(view, kind, list, &Expr::All, &mut Wanted::All).map(|_| ())
            });
            if let Err(error) = counted {
                tracing::debug!(kind = kind.name, list, %error, "the entries of a list could not be counted");
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;
    use crate::{Catalogue, Limits, ListEntry, Listing, Location, Search, StoreError, Tenant};

    static NOTE: Kind = Kind {
        search: Search::Declared,
        lists: &[Listing {
            name: "titles",
            entries: |body, visit| {
                let key = body["title"].as_str().unwrap_or_default().to_owned();
                visit(ListEntry {
                    key,
                    apart: String::new(),
                    traits: String::new(),
                    gathered: String::new(),
                });
            },
        }],
        ..Kind::named("note")
    };

    static KINDS: &[&Kind] = &[&NOTE];

    fn n_counted(tenant: &Tenant) -> Option<usize> {
        let published = tenant.read_blocking(|view| Ok::<_, StoreError>(view.indexes.clone())).unwrap()?;
        Some(published.get(NOTE.name)?.lists.lock().unwrap().tallies.len())
    }

    #[test]
    fn lists_are_counted_before_anybody_browses() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let location = Location::Folder(folder.path().to_owned());
            Catalogue::open(location, KINDS, Limits::default()).unwrap().tenant_or_new("t").unwrap()
        };
        let tenant = open();
        let fill = |txn: &mut crate::Txn<'_>| {
            (0..500).try_for_each(|n| {
                txn.insert(&NOTE, &n.to_string(), &json!({"title": format!("t{}", n % 7)})).map(|_| ())
            })
        };
        tenant.write_blocking(fill).unwrap();
        tenant.wait_for_indexes(Duration::from_secs(60)).unwrap();
        drop(tenant);
        let tenant = open();
        let until = Instant::now() + Duration::from_secs(60);
        while n_counted(&tenant) != Some(1) {
            assert!(Instant::now() < until, "nothing was counted");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
