//! Rendering of occurrences: behaviours turn data or a reference into HTML (section 8 of the contract).
//!
//! HTML written by editors is reduced to harmless elements and attributes ([`harmless`]); links may only have targets
//! that [`safe_link`] allows.

pub(crate) mod gallery;
pub(crate) mod harmless;
mod made;
mod markdown;
mod wiki;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::markup::gallery::{Descriptor, GALLERY, Galleries};
use crate::markup::harmless::safe_link;
use crate::model::{Occurrence, Topic};
use crate::names::{DEFAULT_SCOPE, SELF};
use crate::text::{escape, topic_href};

/// Longest text that is rendered, in bytes; longer ones are shown as plain text.
const TEXT_LEN_MAX_BYTES: usize = 4 << 20;

/// Renders occurrences as HTML.
pub(crate) struct Resolver<'r> {
    /// Prefix of links to topics: `/t/{map}/`.
    link_base: &'r str,
    /// Topics that occurrences name, by id: their labels are shown, and their texts if they are included.
    known: Option<&'r BTreeMap<String, Topic>>,
    /// Whether the HTML is part of a page of this site, which has a first-level heading of its own: headings of texts
    /// begin below it.
    is_within_page: bool,
    galleries: Option<Galleries<'r>>,
}

/// Behaviour of an occurrence that stands for another topic.
pub(crate) const TOPIC: &str = "topic";
/// Role of an occurrence that includes the text of another topic.
const INCLUDE: &str = "include";

impl<'r> Resolver<'r> {
    /// Returns a resolver whose links to topics begin with `link_base`.
    pub(crate) fn new(link_base: &'r str) -> Self {
        Self { link_base, known: None, is_within_page: false, galleries: None }
    }

    /// Returns a resolver for a page that may show other topics.
    pub(crate) fn with_topics(link_base: &'r str, known: &'r BTreeMap<String, Topic>) -> Self {
        Self { link_base, known: Some(known), is_within_page: true, galleries: None }
    }

    /// Returns a resolver for a page.
    pub(crate) fn of_page(link_base: &'r str) -> Self {
        Self { link_base, known: None, is_within_page: true, galleries: None }
    }

    /// Adds the galleries of the map.
    pub(crate) fn and_galleries(self, galleries: Option<Galleries<'r>>) -> Self {
        Self { galleries, ..self }
    }

    /// Returns the files of an occurrence that is a gallery; `None` for other occurrences, and for a folder that does
    /// not exist or is empty.
    pub(crate) fn files(&self, it: &Occurrence) -> Option<Arc<[Descriptor]>> {
        let galleries = self.galleries.filter(|_| it.behaviour == GALLERY)?;
        Some(galleries.files(it)).filter(|it| !it.is_empty())
    }

    /// Returns the HTML for another topic in place of an occurrence: a link to it, or its text, in which topics are
    /// only linked.
    fn other(&self, it: &Occurrence) -> String {
        let other = self.known.and_then(|known| known.get(&it.reference));
        if let Some(other) = other.filter(|_| it.role == INCLUDE) {
            let inner = Resolver { known: None, ..*self };
            let wiki = other.occurrences.iter().filter(|it| it.role == "wiki" && it.behaviour != TOPIC);
            return wiki.filter_map(|it| inner.html(it)).collect();
        }
        let label = other.map_or(it.reference.as_str(), |it| it.label_in(DEFAULT_SCOPE));
        format!("<a href=\"{}\">{}</a>", topic_href(self.link_base, &it.reference), escape(label))
    }

    /// Returns the HTML of an occurrence; `None` if its behaviour is unknown or there is nothing to show.
    pub(crate) fn html(&self, it: &Occurrence) -> Option<String> {
        let is_own = it.reference == SELF;
        match it.behaviour.as_str() {
            "url" => Some(self.link(&it.reference, &it.reference)),
            "image" => match safe_link(&it.reference) {
                true => {
                    Some(format!("<img src=\"{0}\" alt=\"{0}\" loading=\"lazy\">", escape(&it.reference)))
                }
                false => None,
            },
            TOPIC => Some(self.other(it)),
            GALLERY => Some(gallery::html(&self.files(it)?)),
            _ if it.base64.is_some() || it.data.is_empty() && is_own => None,
            behaviour => self.render(behaviour, &it.data),
        }
    }

    /// Returns the HTML of a text.
    pub(crate) fn render(&self, behaviour: &str, text: &str) -> Option<String> {
        match behaviour {
            _ if text.len() > TEXT_LEN_MAX_BYTES => Some(format!("<pre>{}</pre>", escape(text))),
            "markdown" => Some(self.made(behaviour, text, markdown::html)),
            "wiki" => Some(self.made(behaviour, text, wiki::html)),
            "html" => Some(self.made(behaviour, text, |text, _, _| harmless::html(text))),
            "text" => Some(format!("<pre>{}</pre>", escape(text))),
            _ => None,
        }
    }

    fn made(&self, behaviour: &str, text: &str, make: fn(&str, &str, bool) -> String) -> String {
        let place = if self.is_within_page { "page" } else { "" };
        made::or_make([behaviour, self.link_base, place], text, || {
            make(text, self.link_base, self.is_within_page)
        })
    }

    fn link(&self, href: &str, label: &str) -> String {
        match safe_link(href) {
            true => format!("<a href=\"{}\" rel=\"nofollow noopener\">{}</a>", escape(href), escape(label)),
            false => escape(label),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing in these texts may become a script, an element of its own or a link to a script.
    #[test]
    fn no_script_survives() {
        let resolver = Resolver::new("/t/default/");
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "[x](javascript:alert(1)) [y](JaVa\tScript:alert(1)) ![z](data:text/html,x) <javascript:alert(1)>",
            "[x][r]\n\n[r]: javascript:alert(1) \"<script>\"",
            "```\"><script>alert(1)</script>\nx\n```",
            "# h {#\"onload=alert(1)}",
            "[javascript:alert(1)] [a|javascript:alert(1)] [\"onclick=alert(1)|http://x/\"onclick=\"alert(1)]",
            "=====<script>=====",
            "^<b>^ *<i>* `<u>` <<\"><script>>>",
            "| a |\n|---|\n| <script>alert(1)</script> |",
            "x[^1]\n\n[^1]: <script>",
            "<svg><script>alert(1)</script></svg><math><mtext></mtext><style><img src=x onerror=alert(1)></style>",
            "<a href=\"jav&#x09;ascript:alert(1)\" onclick=alert(1) style=\"x:expression(1)\">x</a>",
            "<iframe src=javascript:alert(1)></iframe><form action=/conclave/sign-out><button>x</button></form>",
            "<base href=http://evil.example/><meta http-equiv=refresh content=0><link rel=stylesheet href=x>",
        ] {
            for behaviour in ["markdown", "wiki", "text", "html"] {
                let html = resolver.render(behaviour, text).unwrap_or_default();
                assert_harmless(&html, &format!("{behaviour}: {text}"));
            }
        }
    }

    fn assert_harmless(html: &str, what: &str) {
        let lower = html.to_lowercase();
        assert!(!lower.contains("<script") && !lower.contains("<img src=x"), "{what}\n{html}");
        for tag in lower.split('<').skip(1).map(|it| it.split('>').next().unwrap_or_default()) {
            // Text of a tag outside of quotes consists of names.
            let names: String = tag.split('"').step_by(2).collect();
            assert!(
                !names.contains("onerror") && !names.contains("onclick") && !names.contains("onload"),
                "{what}\n{html}"
            );
            for attribute in ["href=\"", "src=\""] {
                if let Some(at) = tag.find(attribute) {
                    let value: String =
                        tag[at + attribute.len()..].chars().filter(|it| !it.is_whitespace()).collect();
                    assert!(
                        !value.starts_with("javascript") && !value.starts_with("data:"),
                        "{what}\n{html}"
                    );
                }
            }
        }
    }

    #[test]
    fn abbreviations_are_explained_where_they_are_words() {
        let resolver = Resolver::new("/t/default/");
        let text = "*[HTML]: Hyper \"Text\"\n\nHTML and XHTML, `HTML`.\n\n    HTML\n";
        assert_eq!(
            resolver.render("markdown", text).unwrap_or_default(),
            "<p><abbr title=\"Hyper &quot;Text&quot;\">HTML</abbr> and XHTML, <code>HTML</code>.</p>\n\
             <pre><code>HTML\n</code></pre>\n"
        );
        // In code, a definition is an ordinary line.
        let fenced = resolver.render("markdown", "```\n*[A]: b\n```\n").unwrap_or_default();
        assert_eq!(fenced, "<pre><code>*[A]: b\n</code></pre>\n");
    }

    /// A page has its own first-level heading; clients of the API get the levels as written.
    #[test]
    fn headings_are_below_that_of_a_page() {
        for (behaviour, text, id) in [("markdown", "# One", " id=\"one\""), ("wiki", "=====One=====", "")] {
            let html = |resolver: Resolver<'_>| resolver.render(behaviour, text).unwrap_or_default();
            assert_eq!(html(Resolver::new("/t/m/")), format!("<h1{id}>One</h1>\n"));
            assert_eq!(html(Resolver::of_page("/t/m/")), format!("<h2{id}>One</h2>\n"));
        }
    }

    #[test]
    fn links_to_topics_lead_to_their_pages() {
        let resolver = Resolver::new("/t/default/");
        let html = resolver
            .render("markdown", "See [arts](#Top/Arts) and `#Top/Arts`, [up](#).")
            .unwrap_or_default();
        assert_eq!(
            html,
            "<p>See <a href=\"/t/default/Top/Arts\">arts</a> and <code>#Top/Arts</code>, <a href=\"#\">up</a>.</p>\n"
        );
        let html = resolver.render("wiki", "See [Top/Arts] and [music|Top/Arts/Music].").unwrap_or_default();
        assert_eq!(
            html,
            "<p>See <a href=\"/t/default/Top/Arts\">Top/Arts</a> and \
             <a href=\"/t/default/Top/Arts/Music\">music</a>.</p>\n"
        );
    }
}
