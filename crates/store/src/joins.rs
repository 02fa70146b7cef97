//! Joins of records of different kinds by texts that both hold, such as the id of a holdings record in its items
//! ([`crate::Kind::joins`]). The hashes of the texts in a search index are kept in order, so that a join of millions of
//! records reads two sorted lists.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::field_values::check_number;
use crate::owners::{OwnersOf, join_hashes};
use crate::parts::Parts;
use crate::scan::Scan;
use crate::{Expr, JoinKeys, Kind, Owners, Path, Query, Result, View, explain};

impl View<'_> {
    /// Returns the texts at a path of the records that satisfy a condition. They are read from the search index if the
    /// kind is joined by the path, otherwise from bodies.
    pub fn join_keys(&mut self, kind: &'static Kind, filter: &Expr, path: &Path) -> Result<JoinKeys> {
        if let Expr::Joined(joined, keys) = filter
            && joined == path
            && kind.is_id(path)
            && self.count(kind, filter)? == keys.len() as u64
        {
            // Each of the ids that were asked for is there.
            return Ok(keys.clone());
        }
        let query = Query::filter(filter.clone());
        let scan = Scan::of(self, kind, &query)?;
        if let Some(hashes) = scan.by_index_alone(self, |_, found| found.join_keys(path))? {
            return Ok(JoinKeys::of(hashes));
        }
        let mut hashes = Vec::new();
        self.each_part(kind, &query, &[path], |body| hashes.extend(join_hashes(body, path)))?;
        Ok(JoinKeys::of(hashes))
    }

    /// Returns the records that satisfy a condition as owners, each by its text at a path.
    pub fn owners(&mut self, kind: &'static Kind, filter: &Expr, path: &Path) -> Result<Owners> {
        let hashes = self.join_keys(kind, filter, path)?.hashes;
        let n_owners = u32::try_from(hashes.as_slice().len()).unwrap_or(u32::MAX);
        Ok(Owners { hashes, numbers: (0..n_owners).collect(), n_owners })
    }

    /// Returns the same owners by the texts at `path` of the records that name one of them at `link`, which holds one
    /// text.
    pub fn owned(
        &mut self,
        kind: &'static Kind,
        owners: &Owners,
        link: &Path,
        path: &Path,
    ) -> Result<Owners> {
        let query = Query::filter(Expr::All);
        let scan = Scan::of(self, kind, &query)?;
        if let Some(pairs) = scan.by_index_alone(self, |_, found| found.owned(owners, link, path))? {
            return Ok(Owners::of(pairs, owners.n_owners));
        }
        let mut pairs = Vec::new();
        self.each_part(kind, &query, &[link, path], |body| {
            owners.add_pairs(body, link, path, &mut pairs);
        })?;
        Ok(Owners::of(pairs, owners.n_owners))
    }

    /// Counts owners by the texts and booleans at each of some paths of the records that name one of them at `link`: an
    /// owner counts once for each value.
    ///
    /// Errors: a path has more values than a list answer may have rows.
    pub fn count_owners(
        &mut self,
        kind: &'static Kind,
        owners: &Owners,
        link: &Path,
        paths: &[Path],
    ) -> Result<Vec<BTreeMap<String, u64>>> {
        let query = Query::filter(Expr::All);
        let most = self.shared.limits.page_rows;
        let scan = Scan::of(self, kind, &query)?;
        let by_index =
            scan.by_index_alone(self, |view, found| found.count_owners(view, owners, link, paths, most))?;
        if let Some(counts) = by_index {
            return Ok(counts);
        }
        let mut seen = vec![OwnersOf::new(); paths.len()];
        let parts: Vec<&Path> = paths.iter().chain([link]).collect();
        self.each_part(kind, &query, &parts, |body| {
            owners.add_named(body, link, paths, &mut seen);
        })?;
        for (seen, path) in seen.iter().zip(paths) {
            check_number(seen.len(), path, most)?;
        }
        let count =
            |it: OwnersOf| it.into_iter().map(|(value, owners)| (value, owners.len() as u64)).collect();
        Ok(seen.into_iter().map(count).collect())
    }

    /// Passes parts of the bodies of a query to `visit`.
    fn each_part(
        &mut self,
        kind: &'static Kind,
        query: &Query,
        paths: &[&Path],
        mut visit: impl FnMut(&Json),
    ) -> Result<()> {
        explain::note(|| format!("{} join: bodies read", kind.name));
        let parts = Parts::default().with(paths.iter().copied());
        self.try_for_each(kind, query, |record| {
            visit(&record.json_of(&parts)?);
            Ok(())
        })
    }
}
