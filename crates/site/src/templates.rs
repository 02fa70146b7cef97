//! The templates and the style, as read at the start.

use minijinja::{Environment, UndefinedBehavior};
use pinakes_http::{Stage, stages};
use serde_json::Value;

use crate::error::{MountError, Result, SiteError};
use crate::settings::Settings;

pub(crate) const STYLE: &str = include_str!("../assets/site.css");

/// All templates.
pub(crate) const TEMPLATES: [(&str, &str); 25] = [
    ("layout.html", include_str!("../templates/layout.html")),
    ("parts.html", include_str!("../templates/parts.html")),
    ("front.html", include_str!("../templates/front.html")),
    ("search.html", include_str!("../templates/search.html")),
    ("record.html", include_str!("../templates/record.html")),
    ("signin.html", include_str!("../templates/signin.html")),
    ("error.html", include_str!("../templates/error.html")),
    ("deposits.html", include_str!("../templates/deposits.html")),
    ("deposit_form.html", include_str!("../templates/deposit_form.html")),
    ("deposit_files.html", include_str!("../templates/deposit_files.html")),
    ("preview.html", include_str!("../templates/preview.html")),
    ("differences.html", include_str!("../templates/differences.html")),
    ("account.html", include_str!("../templates/account.html")),
    ("users.html", include_str!("../templates/users.html")),
    ("user.html", include_str!("../templates/user.html")),
    ("desk.html", include_str!("../templates/desk.html")),
    ("imports.html", include_str!("../templates/imports.html")),
    ("import.html", include_str!("../templates/import.html")),
    ("edit_dataset.html", include_str!("../templates/edit_dataset.html")),
    ("edit_topic.html", include_str!("../templates/edit_topic.html")),
    ("topics.html", include_str!("../templates/topics.html")),
    ("mapping.html", include_str!("../templates/mapping.html")),
    ("edit_mapping.html", include_str!("../templates/edit_mapping.html")),
    ("import_record.html", include_str!("../templates/import_record.html")),
    ("operators.html", include_str!("../templates/operators.html")),
];

/// The templates and the style.
pub(crate) struct Pages {
    environment: Environment<'static>,
    pub(crate) style: String,
}

impl Pages {
    /// Reads the built-in ones, and appends the institution's style sheet to the style.
    pub(crate) fn read(settings: &Settings) -> std::result::Result<Self, MountError> {
        let mut environment = Environment::new();
        // An undefined name is an error, rather than an empty text.
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        for (name, text) in TEMPLATES {
            let added = environment.add_template(name, text);
            added.map_err(|error| MountError::Template { name, reason: error.to_string() })?;
        }
        let mut style = STYLE.to_owned();
        if !settings.brand.as_os_str().is_empty() {
            let path = settings.brand.clone();
            let brand =
                std::fs::read_to_string(&path).map_err(|source| MountError::Brand { path, source })?;
            style.push_str(&brand);
        }
        Ok(Self { environment, style })
    }

    pub(crate) fn render(&self, name: &str, values: Value) -> Result<String> {
        let render = || self.environment.get_template(name)?.render(minijinja::value::Serde(&values));
        stages::timed(Stage::Render, render)
            .map_err(|error| SiteError::Damaged(format!("template {name}: {error:#}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;

    #[test]
    fn templates_name_texts_that_there_are() {
        let texts = Language::English.texts();
        for (name, template) in TEMPLATES {
            for part in template.split("t.").skip(1) {
                let key: String =
                    part.chars().take_while(|it| it.is_ascii_lowercase() || *it == '_').collect();
                let before = &template[..template.len() - part.len()];
                let is_of_texts = template.find(part).is_some_and(|at| {
                    let name_before = template[..at].trim_end_matches("t.").chars().next_back();
                    name_before.is_some_and(|it| matches!(it, ' ' | '(' | '{'))
                });
                if is_of_texts && !before.is_empty() {
                    assert!(texts.contains_key(key.as_str()), "{name} names the text {key:?}");
                }
            }
            assert!(
                !template.contains("style=") && !template.contains("<style"),
                "{name} has a style of its own"
            );
            // Scripts are separate files, allowed by the page's nonce.
            let scripts = template.matches("<script").count();
            let data = template.matches("<script type=\"application/ld+json\">").count();
            let files = template
                .matches("<script src=\"/site/assets/{{ script }}\" nonce=\"{{ script_key }}\" defer>");
            assert_eq!(scripts, data + files.count(), "{name} has a script");
        }
    }
}
