//! Templates of job actions: Handlebars with SciCat's helpers. They can access `request` (the body that was sent),
//! `job` (as stored, once it is), `datasets` (of the job) and `env` (the server's environment).

use std::borrow::Cow;
use std::sync::LazyLock;

use base64::Engine as _;
use handlebars::template::{HelperTemplate, Parameter, TemplateElement};
use handlebars::{
    Context, Handlebars, Helper, HelperDef, JsonRender as _, RenderContext, RenderError, RenderErrorReason,
    ScopedJson,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Maximum length of a rendered template, in bytes.
const RENDERED_BYTES: usize = 1 << 20;

/// How inserted values are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    /// For mails.
    Html,
    /// For URLs: percent-encoded, so that a value stays one part of a path or query. Values in triple braces and from
    /// the server's own environment are controlled by the site and inserted unchanged.
    Url,
    /// For log lines, messages and bodies.
    No,
}

static PLAIN: LazyLock<Handlebars<'static>> = LazyLock::new(|| engine(Escape::No));
static HTML: LazyLock<Handlebars<'static>> = LazyLock::new(|| engine(Escape::Html));
static URL: LazyLock<Handlebars<'static>> = LazyLock::new(|| engine(Escape::Url));

fn engine(escape: Escape) -> Handlebars<'static> {
    let mut engine = Handlebars::new();
    match escape {
        Escape::Html => {}
        Escape::Url => engine.register_escape_fn(encoded),
        Escape::No => engine.register_escape_fn(handlebars::no_escape),
    }
    engine.register_helper("jsonify", Box::new(Text(|value| value.to_string())));
    engine.register_helper("unwrapJSON", Box::new(Text(unwrapped)));
    engine.register_helper("keyToWord", Box::new(Text(|value| words(&value.render()))));
    // In a URL, inserted values are encoded anyway.
    let encode: fn(&Value) -> String =
        if escape == Escape::Url { |value| value.render() } else { |value| encoded(&value.render()) };
    engine.register_helper("urlencode", Box::new(Text(encode)));
    let base64 = |value: &Value| base64::engine::general_purpose::STANDARD.encode(value.render());
    engine.register_helper("base64enc", Box::new(Text(base64)));
    engine.register_helper("job_v3", Box::new(JobV3));
    engine.register_helper("default", Box::new(OrElse));
    engine.register_helper("includes", Box::new(Test(includes)));
    engine
}

/// Renders a template. Errors: a description without the inserted values.
pub(crate) fn render(template: &str, context: &Value, escape: Escape) -> Result<String, String> {
    let engine = match escape {
        Escape::Html => &*HTML,
        Escape::Url => &*URL,
        Escape::No => &*PLAIN,
    };
    let written = if escape == Escape::Url { with_plain_environment(template) } else { template.into() };
    let rendered = engine
        .render_template(&written, context)
        .map_err(|error| format!("the template {template:?} cannot be filled in: {}", error.reason()))?;
    if RENDERED_BYTES < rendered.len() {
        return Err(format!("the template {template:?} becomes longer than {RENDERED_BYTES} bytes"));
    }
    Ok(rendered)
}

/// Turns `{{env.API}}/jobs` into `{{{env.API}}}/jobs`: environment variables may hold the start of a URL.
fn with_plain_environment(template: &str) -> Cow<'_, str> {
    let (mut written, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((inside, next)) = after.split_once("}}") else { break };
        written.push_str(before);
        let is_environment = !inside.starts_with('{') && inside.trim().starts_with("env.");
        let is_plain = is_environment && !inside.trim().contains(char::is_whitespace);
        let (open, close) = if is_plain { ("{{{", "}}}") } else { ("{{", "}}") };
        written.push_str(open);
        written.push_str(inside);
        written.push_str(close);
        rest = next;
    }
    if written.is_empty() {
        return Cow::Borrowed(template);
    }
    written.push_str(rest);
    Cow::Owned(written)
}

/// Refuses an invalid template, and one that names an unknown helper.
pub(crate) fn check(template: &str) -> Result<(), String> {
    let compiled = handlebars::Template::compile(template)
        .map_err(|error| format!("{template:?} is no template: {}", error.reason()))?;
    match unknown_helper(&compiled.elements) {
        Some(name) => Err(format!("{template:?} names a helper that there is not: {name}")),
        None => Ok(()),
    }
}

/// Returns the first unknown helper that is named. An expression without arguments is a value.
fn unknown_helper(elements: &[TemplateElement]) -> Option<String> {
    elements.iter().find_map(|element| match element {
        TemplateElement::Expression(it) | TemplateElement::HtmlExpression(it) => {
            let has_arguments = !it.params.is_empty() || !it.hash.is_empty();
            of_template(it, has_arguments)
        }
        TemplateElement::HelperBlock(it) => of_template(it, true),
        _ => None,
    })
}

fn of_template(helper: &HelperTemplate, is_helper: bool) -> Option<String> {
    let unknown = is_helper
        .then(|| helper.name.as_name())
        .flatten()
        .filter(|name| !HELPERS.contains(name))
        .map(str::to_owned);
    unknown
        .or_else(|| helper.params.iter().chain(helper.hash.values()).find_map(of_parameter))
        .or_else(|| helper.template.iter().find_map(|it| unknown_helper(&it.elements)))
        .or_else(|| helper.inverse.iter().find_map(|it| unknown_helper(&it.elements)))
}

fn of_parameter(parameter: &Parameter) -> Option<String> {
    match parameter {
        Parameter::Subexpression(it) => unknown_helper(std::slice::from_ref(it.as_element())),
        _ => None,
    }
}

/// The helpers that exist: those of the language, and SciCat's.
const HELPERS: [&str; 25] = [
    "if",
    "unless",
    "each",
    "with",
    "lookup",
    "raw",
    "log",
    "eq",
    "ne",
    "gt",
    "gte",
    "lt",
    "lte",
    "and",
    "or",
    "not",
    "len",
    "jsonify",
    "unwrapJSON",
    "keyToWord",
    "urlencode",
    "base64enc",
    "job_v3",
    "default",
    "includes",
];

/// Says whether a list contains a value.
fn includes(list: &Value, item: &Value) -> bool {
    list.as_array().is_some_and(|it| it.contains(item))
}

/// A helper that compares its two arguments.
struct Test(fn(&Value, &Value) -> bool);

impl HelperDef for Test {
    fn call_inner<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        _: &'reg Handlebars<'reg>,
        _: &'rc Context,
        _: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        let second = helper.param(1).map(handlebars::PathAndJson::value).unwrap_or(&Value::Null);
        Ok(ScopedJson::Derived((self.0)(argument(helper)?, second).into()))
    }
}

/// `{{default job.jobParams.subject "Job has been updated"}}`: the first argument that is neither null nor empty.
struct OrElse;

impl HelperDef for OrElse {
    fn call_inner<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        _: &'reg Handlebars<'reg>,
        _: &'rc Context,
        _: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        let says = |it: &&Value| !it.is_null() && it.as_str() != Some("");
        let said = helper.params().iter().map(handlebars::PathAndJson::value).find(says);
        Ok(ScopedJson::Derived(said.cloned().unwrap_or_default()))
    }
}

/// A helper that converts its first argument to a text.
struct Text(fn(&Value) -> String);

impl HelperDef for Text {
    fn call_inner<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        _: &'reg Handlebars<'reg>,
        _: &'rc Context,
        _: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        Ok(ScopedJson::Derived((self.0)(argument(helper)?).into()))
    }
}

/// `{{#with (job_v3 job)}}`: a job in the form of v3.
struct JobV3;

impl HelperDef for JobV3 {
    fn call_inner<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        _: &'reg Handlebars<'reg>,
        _: &'rc Context,
        _: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        let mut job = argument(helper)?.as_object().cloned().unwrap_or_default();
        super::forms::show_as_v3(&mut job);
        Ok(ScopedJson::Derived(Value::Object(job)))
    }
}

fn argument<'a>(helper: &'a Helper<'_>) -> Result<&'a Value, RenderError> {
    let missing = || RenderErrorReason::ParamNotFoundForIndex("helper", 0).into();
    helper.param(0).map(handlebars::PathAndJson::value).ok_or_else(missing)
}

/// Formats JSON as several lines of HTML.
fn unwrapped(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.replace('\n', "<br/>").replace("  ", "&nbsp;&nbsp;")
}

/// Turns `dateOfPublishing` into `Date of publishing`.
fn words(key: &str) -> String {
    let mut words = String::new();
    for (index, it) in key.chars().enumerate() {
        match (index, it) {
            (0, it) => words.extend(it.to_uppercase()),
            (_, it) if it.is_uppercase() => {
                words.push(' ');
                words.extend(it.to_lowercase());
            }
            (_, it) => words.push(it),
        }
    }
    words
}

/// Encodes like JavaScript's `encodeURIComponent`.
fn encoded(text: &str) -> String {
    const KEPT: percent_encoding::AsciiSet = NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'!')
        .remove(b'~')
        .remove(b'*')
        .remove(b'\'')
        .remove(b'(')
        .remove(b')');
    utf8_percent_encode(text, &KEPT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn templates_are_filled_in() -> Result<(), String> {
        let context = json!({
            "request": {"type": "archive", "ownerUser": "<ada>", "jobParams": {"a": [1, "b/c"]}},
            "job": {"_id": "1", "statusCode": "new", "jobParams": {"datasetList": []}},
        });
        for (template, expected) in [
            ("{{request.type}} of {{request.ownerUser}}{{nobody}}", "archive of <ada>"),
            ("{{jsonify request.jobParams}}", r#"{"a":[1,"b/c"]}"#),
            ("{{urlencode request.jobParams.a.[1]}}", "b%2Fc"),
            ("{{base64enc request.type}}", "YXJjaGl2ZQ=="),
            ("{{keyToWord 'dateOfPublishing'}}", "Date of publishing"),
            ("{{#with (job_v3 job)}}{{jobStatusMessage}}{{/with}}", "new"),
            ("{{#if (eq request.type 'archive')}}yes{{else}}no{{/if}}", "yes"),
            ("{{#each request.jobParams.a}}{{this}};{{/each}}", "1;b/c;"),
        ] {
            assert_eq!(render(template, &context, Escape::No)?, expected, "{template}");
        }
        assert_eq!(render("{{request.ownerUser}}", &context, Escape::Html)?, "&lt;ada&gt;");
        let context = json!({"request": {"x": "a/../b?c=d#e", "y": "é ü"}, "env": {"API": "http://a/api"}});
        for (template, expected) in [
            (
                "{{env.API}}/{{request.x}}?y={{request.y}}",
                "http://a/api/a%2F..%2Fb%3Fc%3Dd%23e?y=%C3%A9%20%C3%BC",
            ),
            ("{{ env.API }}/{{urlencode request.x}}", "http://a/api/a%2F..%2Fb%3Fc%3Dd%23e"),
            ("http://a/{{{request.x}}}", "http://a/a/../b?c=d#e"),
        ] {
            assert_eq!(render(template, &context, Escape::Url)?, expected, "{template}");
        }
        assert!(check("{{#if}").is_err());
        Ok(())
    }
}
