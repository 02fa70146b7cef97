//! Sorting of texts, and selection of the first of many.

use std::cmp::Ordering;

/// Texts, concatenated.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    pub(super) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, at: usize) -> &[u8] {
        let begin = at.checked_sub(1).map_or(0, |it| self.ends[it]);
        &self.bytes[begin..self.ends[at]]
    }

    pub(super) fn append(&mut self, other: Self) {
        let n_bytes = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|it| n_bytes + it));
    }

    /// Returns the rank of each text; equal texts have the same rank.
    pub(super) fn ranks(&self) -> Vec<u64> {
        self.ranked(usize::MAX, |_| {})
    }

    /// Returns the first `n_bytes` of the texts in order, each once, and the rank of each text among them.
    pub(super) fn beginnings(&self, n_bytes: usize) -> (Self, Vec<u64>) {
        let mut distinct = Self::default();
        let ranks = self.ranked(n_bytes, |text| distinct.push(text));
        (distinct, ranks)
    }

    /// Ranks the first `n_bytes` of the texts; `each` gets the distinct ones in order.
    fn ranked(&self, n_bytes: usize, mut each: impl FnMut(&[u8])) -> Vec<u64> {
        let text = |at: usize| {
            let text = self.get(at);
            &text[..text.len().min(n_bytes)]
        };
        let mut order: Vec<usize> = (0..self.len()).collect();
        // The texts of a segment are in order: a sort that detects runs merges them.
        order.sort_by(|a, b| text(*a).cmp(text(*b)));
        let mut ranks = vec![0; order.len()];
        let mut n_distinct = 0;
        for (at, it) in order.iter().enumerate() {
            if at == 0 || text(order[at - 1]) != text(*it) {
                each(text(*it));
                n_distinct += 1;
            }
            ranks[*it] = n_distinct - 1;
        }
        ranks
    }
}

/// Returns the part from `from` to `to` of `list` in sorted order; no more than that is sorted.
pub(super) fn window<T>(
    list: &mut [T],
    from: usize,
    to: usize,
    compare: impl Fn(&T, &T) -> Ordering,
) -> &mut [T] {
    let to = to.min(list.len());
    if to <= from {
        return &mut [];
    }
    if to < list.len() {
        list.select_nth_unstable_by(to - 1, &compare);
    }
    let list = &mut list[..to];
    if 0 < from {
        list.select_nth_unstable_by(from, &compare);
    }
    let list = &mut list[from..];
    list.sort_unstable_by(compare);
    list
}

/// Entries below which a selection is not worth it.
const SELECTED_MIN: usize = 256;

/// Selects the first `want` of many.
pub(super) struct Top<T> {
    want: usize,
    list: Vec<T>,
    /// Nothing behind this one is needed.
    last: Option<T>,
}

impl<T: Copy> Top<T> {
    pub(super) fn of(want: usize) -> Self {
        Self { want, list: Vec::new(), last: None }
    }

    pub(super) fn add(&mut self, entry: T, compare: &impl Fn(&T, &T) -> Ordering) {
        if self.want == 0 || self.last.as_ref().is_some_and(|last| compare(last, &entry).is_lt()) {
            return;
        }
        self.list.push(entry);
        if self.want.saturating_mul(2).max(SELECTED_MIN) <= self.list.len() && self.want < self.list.len() {
            self.cut(compare);
        }
    }

    fn cut(&mut self, compare: &impl Fn(&T, &T) -> Ordering) {
        if self.want < self.list.len() {
            self.list.select_nth_unstable_by(self.want - 1, compare);
            self.list.truncate(self.want);
            self.last = self.list.last().copied();
        }
    }

    /// Returns an entry behind which nothing is needed.
    pub(super) fn last(&self) -> Option<&T> {
        self.last.as_ref()
    }

    pub(super) fn into_list(mut self, compare: &impl Fn(&T, &T) -> Ordering) -> Vec<T> {
        if self.want != 0 {
            self.cut(compare);
        }
        self.list
    }
}
