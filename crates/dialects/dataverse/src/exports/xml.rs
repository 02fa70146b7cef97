//! XML writer: elements in order; escapes texts and attributes, and omits characters that XML cannot hold.

/// The XML declaration.
pub const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

/// A document being written.
#[derive(Debug, Default)]
pub struct Xml {
    text: String,
    open: Vec<&'static str>,
}

/// Attributes; those with an empty value are omitted.
pub type Attributes<'a> = &'a [(&'a str, &'a str)];

impl Xml {
    /// Begins a document with its declaration.
    pub fn document() -> Self {
        Self { text: DECLARATION.to_owned(), open: Vec::new() }
    }

    /// Begins a fragment of a document.
    pub fn fragment() -> Self {
        Self::default()
    }

    fn start(&mut self, name: &str, attributes: Attributes<'_>) {
        self.text.push('<');
        self.text.push_str(name);
        for (key, value) in attributes.iter().filter(|it| !it.1.is_empty()) {
            self.text.push(' ');
            self.text.push_str(key);
            self.text.push_str("=\"");
            escape(value, &mut self.text);
            self.text.push('"');
        }
    }

    /// Opens an element.
    pub fn open(&mut self, name: &'static str, attributes: Attributes<'_>) -> &mut Self {
        self.start(name, attributes);
        self.text.push('>');
        self.open.push(name);
        self
    }

    /// Closes the element opened last.
    pub fn close(&mut self) -> &mut Self {
        if let Some(name) = self.open.pop() {
            self.text.push_str("</");
            self.text.push_str(name);
            self.text.push('>');
        }
        self
    }

    /// Writes an element with text, unless the text is empty.
    pub fn leaf(&mut self, name: &str, text: &str) -> &mut Self {
        self.leaf_with(name, &[], text)
    }

    /// Writes an element with attributes and text, unless the text is empty.
    pub fn leaf_with(&mut self, name: &str, attributes: Attributes<'_>, text: &str) -> &mut Self {
        if text.is_empty() {
            return self;
        }
        self.start(name, attributes);
        self.text.push('>');
        escape(text, &mut self.text);
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
        self
    }

    /// Writes an element for each text.
    pub fn leaves<'t>(&mut self, name: &str, texts: impl IntoIterator<Item = &'t str>) -> &mut Self {
        texts.into_iter().for_each(|it| {
            self.leaf(name, it);
        });
        self
    }

    /// Writes an element without content.
    pub fn empty(&mut self, name: &str, attributes: Attributes<'_>) -> &mut Self {
        self.start(name, attributes);
        self.text.push_str("/>");
        self
    }

    /// Writes text into the open element.
    pub fn text(&mut self, text: &str) -> &mut Self {
        escape(text, &mut self.text);
        self
    }

    /// Writes XML as it is.
    pub fn raw(&mut self, xml: &str) -> &mut Self {
        self.text.push_str(xml);
        self
    }

    /// Writes an element around the output of `write`, unless that is empty.
    pub fn group(&mut self, name: &'static str, write: impl FnOnce(&mut Self)) -> &mut Self {
        self.is_filled(name, write);
        self
    }

    /// Writes an element around the output of `write`, also if that is empty.
    pub fn around(&mut self, name: &'static str, write: impl FnOnce(&mut Self)) -> &mut Self {
        if self.is_filled(name, write) { self } else { self.empty(name, &[]) }
    }

    /// Writes an element around the output of `write`. Returns whether there is any; otherwise nothing is written.
    fn is_filled(&mut self, name: &'static str, write: impl FnOnce(&mut Self)) -> bool {
        let start = self.text.len();
        self.open(name, &[]);
        let inner = self.text.len();
        write(self);
        if self.text.len() == inner {
            self.open.pop();
            self.text.truncate(start);
            return false;
        }
        self.close();
        true
    }

    /// Returns the document; closes open elements.
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }
}

/// Appends text, escaped for XML.
pub fn escape(text: &str, out: &mut String) {
    for it in text.chars() {
        match it {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\r' | '\t' => out.push(it),
            '\u{fffe}' | '\u{ffff}' => {}
            other if other.is_control() => {}
            other => out.push(other),
        }
    }
}

/// Returns text, escaped for XML.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape(text, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_is_not_written() {
        let mut xml = Xml::fragment();
        xml.open("a", &[("x", "1&2"), ("y", "")]).leaf("b", "<\u{1}c>").leaf("d", "");
        xml.group("e", |_| {}).group("f", |xml| {
            xml.leaf("g", "h");
        });
        assert_eq!(xml.finish(), "<a x=\"1&amp;2\"><b>&lt;c&gt;</b><f><g>h</g></f></a>");
    }
}
