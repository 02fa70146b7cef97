//! The page of a topic. With the built-in templates it is written directly into one buffer, byte for byte as the
//! templates produce it (a test compares both); for a site with its own `layout.html` or `topic.html`, the templates
//! are used.

use std::fmt::Write as _;

use minijinja::{Value, context};

use super::parts;
use super::shown::Shown;
use crate::call::Reading;
use crate::markup::Resolver;
use crate::names::DEFAULT_SCOPE;
use crate::text::{push_encoded, push_escaped, topic_href_raw};

/// The layout around every page.
pub(super) struct Frame<'p> {
    pub(super) site: &'p str,
    pub(super) map: &'p str,
    pub(super) user: Option<&'p str>,
    pub(super) is_editor: bool,
    pub(super) csrf: Option<String>,
}

impl<'p> Frame<'p> {
    pub(super) fn of(call: &'p Reading) -> Frame<'p> {
        Frame {
            site: &call.app.settings.site_name,
            map: &call.map,
            user: call.asker.caller.username(),
            is_editor: call.asker.is_editor(),
            csrf: call.asker.csrf(),
        }
    }
}

/// A record of another dialect that is about the topic.
pub(super) struct AboutIt {
    pub(super) kind: String,
    pub(super) id: String,
    pub(super) href: String,
}

/// The page of an existing topic.
pub(super) struct Leaf<'p> {
    pub(super) topic: &'p Shown<'p>,
    pub(super) scope: &'p str,
    pub(super) resolver: &'p Resolver<'p>,
    pub(super) records: Vec<AboutIt>,
    /// Milliseconds so far, if the reader asks for them.
    pub(super) timer_ms: Option<u128>,
}

impl Leaf<'_> {
    fn description(&self) -> Option<&str> {
        let own = self.topic.get(self.scope, "description");
        own.or_else(|| self.topic.get(DEFAULT_SCOPE, "description"))
    }

    /// Returns the values of `page` for the template `topic.html`.
    pub(super) fn values(&self) -> Value {
        let made = |make: &dyn Fn(&mut String)| {
            let mut out = String::new();
            make(&mut out);
            Value::from_safe_string(out)
        };
        let (topic, scope, resolver) = (self.topic, self.scope, self.resolver);
        let record = |it: &AboutIt| context! { kind => &it.kind, id => &it.id, href => &it.href };
        context! {
            title => topic.label(scope), id => &*topic.id, href => topic_href_raw("", &topic.id),
            description => self.description(), n_arcs => topic.arcs.len(),
            relations => made(&|out| parts::relations(out, topic, scope)),
            body => made(&|out| parts::texts(out, topic, resolver)),
            resources => made(&|out| parts::resources(out, topic, resolver)),
            neighbours => made(&|out| parts::neighbours(out, topic, scope)),
            facts => made(&|out| parts::facts(out, topic, scope)),
            records => self.records.iter().map(record).collect::<Vec<_>>(), timer => self.timer_ms, tab => "view",
        }
    }

    /// Returns the whole page, as the built-in templates produce it.
    pub(super) fn write(&self, frame: &Frame<'_>) -> String {
        let (topic, scope) = (self.topic, self.scope);
        let title = topic.label(scope);
        let mut href = String::with_capacity(topic.id.len() + 16);
        push_encoded(&mut href, &topic.id);
        let mut out = String::with_capacity(3_500 + topic.arcs.len().min(200) * 320 + 2 * href.len());
        self.head(&mut out, frame, title, &href);
        let out = &mut out;
        out.push_str("\n<h1>");
        push_escaped(out, title);
        if let Some(text) = self.description().filter(|it| !it.is_empty()) {
            within(out, " <small>", text, "</small>");
        }
        out.push_str("</h1>\n\n<div class=\"columns\">\n<div class=\"main\">\n");
        section(out, "<article>", "</article>", |out| parts::texts(out, topic, self.resolver));
        out.push('\n');
        section(
            out,
            "<section class=\"relations\" aria-labelledby=\"relations\"><h2 id=\"relations\">Relations</h2><div class=\"groups\">",
            "</div></section>",
            |out| parts::relations(out, topic, scope),
        );
        out.push('\n');
        section(
            out,
            "<section aria-labelledby=\"resources\"><h2 id=\"resources\">Resources</h2><div class=\"groups\">",
            "</div></section>",
            |out| parts::resources(out, topic, self.resolver),
        );
        out.push_str("\n</div>\n<aside aria-label=\"About this topic\">\n");
        parts::neighbours(out, topic, scope);
        out.push('\n');
        if !self.records.is_empty() {
            out.push_str("<h2>Records about this</h2><ul class=\"records\">");
            for it in &self.records {
                within(out, "<li><a href=\"", &it.href, "\">");
                within(out, "", &it.id, "</a> <small>");
                within(out, "", &it.kind, "</small></li>");
            }
            out.push_str("</ul>");
        }
        out.push('\n');
        section(out, "<h2>Facts</h2><dl>", "</dl>", |out| parts::facts(out, topic, scope));
        out.push_str("\n<p class=\"formats\">This topic as ");
        for (suffix, name, behind) in [("json", "JSON", ", "), ("xtm", "XTM", ", "), ("jtm", "JTM", "</p>\n")]
        {
            for part in ["<a href=\"/t/", frame.map, "/", &href, ".", suffix, "\">", name, "</a>", behind] {
                out.push_str(part);
            }
        }
        out.push_str("</aside>\n</div>\n\n");
        if let Some(ms) = self.timer_ms {
            let _ = write!(out, "<footer>processed in: {ms} ms</footer>");
        }
        out.push_str("\n\n</main>\n</body>\n</html>");
        std::mem::take(out)
    }

    /// Writes `layout.html` up to its block.
    fn head(&self, out: &mut String, frame: &Frame<'_>, title: &str, href: &str) {
        let csrf = frame.csrf.as_deref().unwrap_or_default();
        out.push_str(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
        );
        within(out, "", title, " · ");
        within(out, "", frame.site, "</title>\n");
        out.push_str(
            "<link rel=\"icon\" href=\"/conclave/assets/icon.svg\" type=\"image/svg+xml\">\n\
             <link rel=\"stylesheet\" href=\"/conclave/assets/site.css\">\n\
             <script src=\"/conclave/assets/site.js\" defer></script>\n</head>\n<body data-map=\"",
        );
        let map = frame.map;
        for part in [
            map,
            "\">\n<a class=\"skip\" href=\"#content\">Skip to content</a>\n<header class=\"top\">\n<a class=\"brand\" href=\"/conclave/",
            map,
            "\">",
        ] {
            out.push_str(part);
        }
        within(out, "", frame.site, "</a>\n<form class=\"search\" action=\"/conclave/");
        out.push_str(map);
        out.push_str(
            "/search\" role=\"search\">\n<input type=\"search\" name=\"q\" value=\"\" placeholder=\"Search topics\" \
             aria-label=\"Search topics\" autocomplete=\"off\" role=\"combobox\" aria-expanded=\"false\" \
             aria-controls=\"suggestions\" aria-autocomplete=\"list\">\n\
             <ul id=\"suggestions\" class=\"suggestions\" role=\"listbox\" aria-label=\"Topics\" hidden></ul>\n</form>\n",
        );
        match frame.user.filter(|it| !it.is_empty()) {
            Some(user) => {
                out.push_str(
                    "<form class=\"who\" method=\"post\" action=\"/conclave/sign-out\"><input type=\"hidden\" name=\"_csrf\" value=\"",
                );
                within(out, "", csrf, "\"><span>");
                within(out, "", user, "</span> <button>Sign out</button></form>\n");
            }
            None => {
                for part in
                    ["<a class=\"who\" href=\"/conclave/sign-in?next=/t/", map, "/", href, "\">Sign in</a>"]
                {
                    out.push_str(part);
                }
            }
        }
        let at_map = |out: &mut String, page: &str| {
            for part in ["<a href=\"/conclave/", map, page] {
                out.push_str(part);
            }
        };
        out.push_str("\n</header>\n<nav class=\"tabs\" aria-label=\"Topic\">\n");
        at_map(out, "\">Home</a>\n<a href=\"/t/");
        for part in [map, "/", href, "\" aria-current=\"page\">View</a>\n"] {
            out.push_str(part);
        }
        at_map(out, "/pointing?id=");
        out.push_str(href);
        out.push_str("\">Pointing here</a>\n");
        if frame.is_editor {
            for (page, behind) in [
                ("/edit?id=", "\">Edit</a>\n"),
                ("/edit?id=", "#metadata\">Metadata</a>\n"),
                ("/edit?id=", "#association\">Associations</a>\n"),
                ("/edit?id=", "#occurrence\">Occurrences</a>\n"),
                ("/history?id=", "\">History</a>\n"),
            ] {
                at_map(out, page);
                out.push_str(href);
                out.push_str(behind);
            }
            at_map(out, "/create\">New topic</a>\n");
            at_map(out, "/edit?id=");
            out.push_str(href);
            out.push_str("#remove\">Remove</a>");
        }
        out.push_str("\n</nav>\n<main id=\"content\">\n");
    }
}

/// Writes an escaped text between two that are written as they are.
fn within(out: &mut String, before: &str, text: &str, behind: &str) {
    out.push_str(before);
    push_escaped(out, text);
    out.push_str(behind);
}

/// Writes the output of `write` between two texts, or nothing if the output is empty.
fn section(out: &mut String, before: &str, behind: &str, write: impl FnOnce(&mut String)) {
    let begin = out.len();
    out.push_str(before);
    let inner = out.len();
    write(out);
    if out.len() == inner {
        out.truncate(begin);
    } else {
        out.push_str(behind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::templates::Pages;
    use crate::settings::Settings;

    const BARE: &str =
        r#"{"key":"m/a b","map":"m","id":"a b","label":"x","at":1,"metadata":[],"arcs":[],"occurrences":[]}"#;
    const FULL: &str = r##"{"key":"m/Top/Arts","map":"m","id":"Top/Arts","label":"A","at":1,
        "metadata":[{"scope":"default","name":"description","value":"all & \"sundry\""},
                    {"scope":"default","name":"label","value":"Arts <b>"},
                    {"scope":"es","name":"label","value":"Artes"},
                    {"scope":"default","name":"last-update","value":"2013 'so'"}],
        "arcs":[{"id":"1","ty":"category","scope":"default","ref":"Top/Arts/Bodyart","role":"narrow","metadata":[
                    {"scope":"default","name":"label","value":"Body\u0061rt & more than sixteen letters"}]},
                {"id":"2","ty":"category","scope":"default","ref":"//odd/../é","role":"narrow","metadata":[]},
                {"id":"3","ty":"borders-with","scope":"default","ref":"Top/B_1","role":"the-other","metadata":[]},
                {"id":"4","ty":"borders-with","scope":"default","ref":"Top/Arts","role":"the-other","metadata":[]}],
        "occurrences":[{"scope":"default","role":"wiki","behaviour":"markdown","reference":"self","data":"*x* [a](#B)"},
                {"scope":"default","role":"link","behaviour":"url","reference":"http://www.example.org/",
                 "data":"{\"title\":\"T\",\"description\":\"D & d\"}"}],"points":["x"],"draw":7}"##;

    /// The page of a site without templates of its own must be equal to what the templates produce.
    #[test]
    fn what_is_written_is_what_the_templates_make() {
        let pages = Pages::read(&Settings::default()).unwrap();
        let record =
            || AboutIt { kind: "dataset".to_owned(), id: "1<2".to_owned(), href: "/x?a=1&b=2".to_owned() };
        for (body, scope) in [(BARE, "default"), (FULL, "default"), (FULL, "es")] {
            let topic = Shown::of(body.as_bytes()).unwrap();
            let resolver = Resolver::new("/t/m/");
            for (user, is_editor, csrf, n_records, timer_ms) in [
                (None, false, None, 0, None),
                (Some("it's me"), true, Some("abc".to_owned()), 2, Some(12)),
                (Some("reader"), false, None, 1, Some(0)),
            ] {
                let frame = Frame { site: "Topics & <all>", map: "m", user, is_editor, csrf: csrf.clone() };
                let records = (0..n_records).map(|_| record()).collect();
                let leaf = Leaf { topic: &topic, scope, resolver: &resolver, records, timer_ms };
                let made = pages.render("topic.html", pages.framed(&frame, leaf.values())).unwrap();
                assert_eq!(leaf.write(&frame), made);
            }
        }
    }

    /// Covers arcs in another order, a topic without neighbours, and every number of neighbours.
    #[test]
    fn neighbours_stand_around_their_topic() {
        for n in 0..15 {
            let arcs: Vec<String> = (0..n)
                .map(|n| {
                    format!(
                        r#"{{"id":"{n}","ty":"t","scope":"default","ref":"r{n}","role":"r","metadata":[]}}"#
                    )
                })
                .collect();
            let body = format!(r#"{{"map":"m","id":"x","arcs":[{}]}}"#, arcs.join(","));
            let mut out = String::new();
            parts::neighbours(&mut out, &Shown::of(body.as_bytes()).unwrap(), "default");
            assert_eq!(out.matches("<line").count(), n.min(12));
            assert_eq!(out.matches("<a href").count(), n.min(12));
        }
    }
}
