//! Many short texts in one allocation.

/// A list of texts, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Texts {
    /// All texts, concatenated.
    text: String,
    /// The end of each text.
    ends: Vec<usize>,
}

impl Texts {
    /// Appends a text.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Iterates over the texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.text[begin..*end])
    }

    /// Removes all texts and keeps the allocation.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Texts;

    #[test]
    fn gives_what_was_pushed() {
        let mut texts = Texts::default();
        assert!(texts.is_empty());
        for text in ["a", "", "é", "bc"] {
            texts.push(text);
        }
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["a", "", "é", "bc"]);
        assert_eq!(texts.len(), 4);
        let mut other = Texts::default();
        ["aé", "bc"].into_iter().for_each(|it| other.push(it));
        assert_ne!(texts, other);
        texts.clear();
        assert_eq!(texts, Texts::default());
    }
}
