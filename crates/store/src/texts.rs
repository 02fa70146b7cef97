//! Many short texts in one piece of memory.

/// A list of texts, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Texts {
    /// All of them, one behind the other.
    text: String,
    /// Where each ends in it.
    ends: Vec<usize>,
}

impl Texts {
    /// Adds a text at the end.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Each in its turn.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.text[begin..*end])
    }

    /// Forgets all of them and keeps the memory.
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
