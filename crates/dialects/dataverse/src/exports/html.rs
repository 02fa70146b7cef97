//! The codebook as an HTML page.

use super::xml::Xml;
use crate::exports::source::{Source, plain, text};

/// Writes the format `html`.
pub fn html(source: &Source<'_>) -> String {
    let metadata = source.metadata();
    let mut xml = Xml::fragment();
    xml.raw("<!DOCTYPE html>").open("html", &[("lang", "en")]);
    xml.open("head", &[]).empty("meta", &[("charset", "utf-8")]).leaf("title", source.title()).close();
    xml.open("body", &[]).leaf("h1", source.title());
    xml.leaf("p", source.citation());
    for (block, fields) in metadata.blocks() {
        if fields.is_empty() {
            continue;
        }
        let name = source.registry.block(block).map_or(block, |it| it.display_name.as_str());
        xml.leaf("h2", name).open("dl", &[]);
        for field in fields {
            let type_name = text(field, "typeName");
            let shown = source.registry.field(type_name).map_or(type_name, |it| it.title.as_str());
            xml.leaf("dt", shown);
            let compounds = metadata.compounds(type_name);
            for it in &compounds {
                let parts: Vec<String> =
                    it.children().iter().flat_map(|it| it.1.iter()).map(|it| plain(it)).collect();
                xml.leaf("dd", &parts.join(", "));
            }
            if compounds.is_empty() {
                for it in metadata.many(type_name) {
                    xml.leaf("dd", &plain(it));
                }
            }
        }
        xml.close();
    }
    if !source.files().is_empty() {
        xml.leaf("h2", "Files").open("ul", &[]);
        for file in source.files() {
            let folder = text(file, "directoryLabel");
            let separator = if folder.is_empty() { "" } else { "/" };
            let kind = text(&file["dataFile"], "contentType");
            xml.leaf("li", &format!("{folder}{separator}{} ({kind})", text(file, "label")));
        }
        xml.close();
    }
    xml.finish()
}
