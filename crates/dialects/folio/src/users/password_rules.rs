//! `/tenant/rules`: the rules for passwords, and `/password/validate`, which checks a password against them
//! (mod-password-validator).
//!
//! A rule is a regular expression that the whole password must match, with `<USER_NAME>` for the user's name. FOLIO's
//! expressions use look-around, which linear-time regular expressions do not support: [`Pattern`] supports the few
//! forms of it that FOLIO's own rules contain, and expressions without it.

use std::collections::HashSet;

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View, Weight};
use serde_json::{Map, Value, json};

use crate::platform::app::Call;
use crate::platform::collection::{
    self, Collection, Hooks, Kinds, Lock, Missing, Page, Schema, Unique, Writer,
};
use crate::platform::cql::Names;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, required_text};
use crate::users::user::USERS;

/// `/tenant/rules`.
pub(crate) static RULES: Collection = Collection {
    permission: "validation.rules",
    table: "validation_rules",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("name", Type::Folded),
            Column::one("state", Type::Text),
            Column::one("type", Type::Text),
            Column::one("orderNo", Type::Integer),
        ],
        indexes: &[Index::unique(&["name"]), Index::on(&["orderNo"])],
        ..Kind::named("folio_password_rule")
    },
    schema: Schema {
        required: &["name", "type", "validationType", "state", "moduleName", "orderNo"],
        types: &[
            ("name", Kinds::Text),
            ("type", Kinds::Text),
            ("expression", Kinds::Text),
            ("orderNo", Kinds::Integer),
        ],
        ..Schema::OPEN
    },
    unique: &[Unique { column: "name", message: "" }],
    names: Names {
        fields: &["validationType", "implementationReference", "description", "errMessageId"],
        aliases: &[("ruleId", "id")],
        ..Names::PLAIN
    },
    hooks: Hooks { prepare, ..Hooks::NONE },
    reference_data: include_str!("../../reference/password-rules.json"),
    is_served: false,
    ..Collection::named("/tenant/rules", "rules", "folio_password_rule")
};

/// Placeholder in expressions for the name of the password's user.
const USER_NAME: &str = "<USER_NAME>";

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .get("/tenant/rules", to("validation.rules.collection.get"), list)
        .post("/tenant/rules", to("validation.rules.item.post"), create)
        .put("/tenant/rules", to("validation.rules.item.put"), replace)
        .get("/tenant/rules/{id}", to("validation.rules.item.get"), by_id)
        .post("/password/validate", to("validation.validate.post"), validate)
}

/// Checks that a rule can be applied to passwords.
fn prepare(
    _: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let refused = |message: String, name: &str| {
        Err(FolioError::unprocessable(Fault::new(message).with(name, text(name))))
    };
    for (name, known) in [
        ("type", &["RegExp", "Programmatic"][..]),
        ("validationType", &["Strong", "Soft"]),
        ("state", &["Enabled", "Disabled"]),
    ] {
        if !text(name).is_empty() && !known.contains(&text(name)) {
            return refused(format!("{name} must be one of: {}", known.join(", ")), name);
        }
    }
    match text("type") {
        "RegExp" if text("expression").is_empty() => {
            refused("a rule of the type RegExp needs an expression".to_owned(), "expression")
        }
        "RegExp" => match Pattern::read(text("expression")) {
            Some(_) => Ok(()),
            None => refused(
                "the expression is not understood: take one without look-around and references to groups, or one of \
                 the forms of FOLIO's own rules"
                    .to_owned(),
                "expression",
            ),
        },
        _ => Ok(()),
    }
}

/// Returns a rule in the form that clients expect: its id is `ruleId`.
fn shown(mut rule: Value) -> Value {
    if let Value::Object(map) = &mut rule
        && let Some(id) = map.shift_remove("id")
    {
        map.shift_insert(0, "ruleId".to_owned(), id);
    }
    rule
}

fn stored(mut body: Map<String, Value>) -> Map<String, Value> {
    if let Some(id) = body.remove("ruleId") {
        body.insert("id".into(), id);
    }
    body
}

async fn list(call: Call) -> Answer {
    let page = Page::of(&call)?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let (records, total) = collection::page_of(view, &RULES, &page)?;
        let rules = records.iter().map(|it| it.json().map(shown)).collect::<Result<Vec<_>, _>>()?;
        Ok(json!({"rules": rules, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn by_id(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let found = call.db().read(Weight::Point, move |view| view.get(&RULES.kind, &id)).await?;
    let rule = found.ok_or_else(|| FolioError::not_found("Rule not found"))?.json()?;
    Ok(json_answer(StatusCode::OK, &shown(rule)))
}

async fn create(mut call: Call) -> Answer {
    let body = stored(call.object().await?);
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| collection::insert(txn, &writer(), &RULES, body.clone());
    let rule = call.db().write(write).await?;
    let location = format!("/tenant/rules/{}", rule.id);
    Ok(answer::with_header(json_answer(StatusCode::CREATED, &shown(rule.body)), LOCATION, &location))
}

/// Replaces the rule with the `ruleId` in the body. Errors: 404.
async fn replace(mut call: Call) -> Answer {
    let body = call.object().await?;
    let id = required_text(&body, "ruleId")?.to_owned();
    let body = stored(body);
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        if !txn.has(&RULES.kind, &id)? {
            return Err(FolioError::not_found("Rule not found"));
        }
        let (missing, lock) = (Missing::Refuse, Lock::Ignored);
        collection::put(txn, &writer(), &RULES, &id, body.clone(), missing, lock).map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Validates `{"password","userId"?}`: answers `valid`, or `invalid` with the `errMessageId` of each violated rule of
/// the type Strong.
async fn validate(mut call: Call) -> Answer {
    let body = call.object().await?;
    let password = required_text(&body, "password")?.to_owned();
    let user = body.get("userId").and_then(Value::as_str).unwrap_or_default().to_owned();
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let name = match view.get(&USERS.kind, &user)? {
            Some(user) => text_at(&user.json()?, "username").unwrap_or_default().to_owned(),
            None if user.is_empty() => String::new(),
            None => return Err(FolioError::not_found(format!("User with id {user} does not exist"))),
        };
        let broken = broken(view, &password, &name)?;
        let result = if broken.is_empty() { "valid" } else { "invalid" };
        Ok(json!({"result": result, "messages": broken}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Returns the `errMessageId` of each rule of the type Strong that a user's password breaks.
pub(crate) fn broken(view: &mut View<'_>, password: &str, user: &str) -> Result<Vec<String>, FolioError> {
    let by_order = Query::filter(Expr::Is("state".into(), "Enabled".into()))
        .sorted("orderNo", pinakes_store::Direction::Ascending);
    let mut broken = Vec::new();
    for record in view.find(&RULES.kind, &by_order)? {
        let rule = record.json()?;
        let text = |name: &str| text_at(&rule, name).unwrap_or_default();
        let is_kept = match (text("type"), Pattern::read(text("expression"))) {
            ("RegExp", Some(pattern)) => pattern.fits(password, user),
            // Rules that call other programs cannot be checked here.
            _ => true,
        };
        if !is_kept && text("validationType") == "Strong" {
            let message = text("errMessageId");
            broken.push(if message.is_empty() { text("name") } else { message }.to_owned());
        }
    }
    Ok(broken)
}

/// What an expression requires of a password.
#[derive(Debug)]
enum Pattern {
    /// `(?=.*[a-z])(?=.*[A-Z]).+`: each of these occurs in it.
    Has(Vec<pinakes_store::Pattern>),
    /// `^(?:(?!qwe|<USER_NAME>).)+$`: this does not occur in it.
    Lacks(String),
    /// `^(?:(.)(?!\1))*$`, `^(?!.*(.)\1{2}).*$`: no character is followed by itself that many times.
    Varied(usize),
    /// An expression without look-around.
    Whole(pinakes_store::Pattern),
}

impl Pattern {
    /// Parses an expression; `None` if it is not supported.
    fn read(expression: &str) -> Option<Self> {
        let bare = expression.trim_start_matches('^').trim_end_matches('$');
        if matches!(bare, "(?:(.)(?!\\1))*" | "(?:(.)(?!\\1))+") {
            return Some(Self::Varied(1));
        }
        if let Some(rest) = bare.strip_prefix("(?:(?!") {
            let (inside, after) = rest.split_at(group_end(rest)?);
            compiled(&named(inside, "x"))?;
            return matches!(after, ").)+" | ").)*").then(|| Self::Lacks(inside.to_owned()));
        }
        if let Some(rest) = bare.strip_prefix("(?!.*(.)\\1") {
            let (count, rest) = rest.split_once(')')?;
            let count = match count {
                "" => 1,
                count => count.strip_prefix('{')?.trim_end_matches('}').trim_end_matches(',').parse().ok()?,
            };
            return matches!(rest, ".*" | ".+").then_some(Self::Varied(count));
        }
        if bare.starts_with("(?=") {
            let mut needed = Vec::new();
            let mut rest = bare;
            while let Some(ahead) = rest.strip_prefix("(?=") {
                let end = group_end(ahead)?;
                let (inside, after) = ahead.split_at(end);
                needed.push(compiled(inside.trim_start_matches(".*"))?);
                rest = after.strip_prefix(')')?;
            }
            return matches!(rest, ".*" | ".+").then_some(Self::Has(needed));
        }
        Some(Self::Whole(compiled(&format!("^(?:{bare})$"))?))
    }

    fn fits(&self, password: &str, user: &str) -> bool {
        match self {
            Self::Has(needed) => needed.iter().all(|it| it.is_match(password)),
            Self::Lacks(expression) => {
                // Without a user name, the name cannot occur in the password.
                let is_about_name = expression.contains(USER_NAME) && user.is_empty();
                let found = compiled(&named(expression, user)).is_some_and(|it| it.is_match(password));
                is_about_name || !found
            }
            Self::Varied(count) => {
                let characters: Vec<char> = password.chars().collect();
                !characters.windows(count + 1).any(|it| it.iter().collect::<HashSet<_>>().len() == 1)
            }
            Self::Whole(pattern) => pattern.is_match(password),
        }
    }
}

/// Inserts the user's name into an expression.
fn named(expression: &str, user: &str) -> String {
    let escaped: String = user.chars().fold(String::new(), |mut text, it| {
        if !it.is_alphanumeric() && it.is_ascii() {
            text.push('\\');
        }
        text.push(it);
        text
    });
    expression.replace(USER_NAME, &escaped)
}

fn compiled(expression: &str) -> Option<pinakes_store::Pattern> {
    pinakes_store::Pattern::new(expression, "").ok()
}

/// Returns the byte offset of the end of the group that the text starts in.
fn group_end(text: &str) -> Option<usize> {
    let (mut depth, mut is_in_class, mut is_escaped) = (0_usize, false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' if !is_in_class => is_in_class = true,
            ']' if is_in_class => is_in_class = false,
            _ if is_in_class => {}
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_the_rules_are_understood() {
        for (expression, password, fits) in [
            ("^.{8,}$", "12345678", true),
            ("^.{8,}$", "1234567", false),
            ("(?=.*[a-z])(?=.*[A-Z]).+", "aB", true),
            ("(?=.*[a-z])(?=.*[A-Z]).+", "ab", false),
            ("(?=.*\\d).+", "a1", true),
            ("(?=.*[!\"#$%&'()*+,./:;<=>?@\\[\\]^_`{|}~-]).+", "a)", true),
            ("(?=.*[!\"#$%&'()*+,./:;<=>?@\\[\\]^_`{|}~-]).+", "ab", false),
            ("^(?:(?!<USER_NAME>).)+$", "my-ann-1", false),
            ("^(?:(?!<USER_NAME>).)+$", "bob", true),
            ("^(?:(?!qwe|123).)+$", "my-qwe", false),
            ("^(?:(.)(?!\\1))*$", "abba", false),
            ("^(?!.*(.)\\1).*$", "abab", true),
            ("^(?!.*(.)\\1).*$", "abba", false),
            ("^(?!.*(.)\\1{2,}).*$", "abba", true),
            ("^[^\\s]+(\\s[^\\s]+)*$", "a b", true),
            ("^[^\\s]+(\\s[^\\s]+)*$", "a  b", false),
        ] {
            let pattern = Pattern::read(expression).unwrap_or(Pattern::Varied(0));
            assert_eq!(pattern.fits(password, "ann"), fits, "{expression} of {password}");
        }
        assert!(Pattern::read("(a)\\1").is_none());
        assert!(Pattern::read("(?<=a)b").is_none());
    }
}
