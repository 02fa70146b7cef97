//! What a body must look like: tables of fields, and the engine that checks a body against one.
//!
//! A resource writes its rules as a [`Dto`] (folder `dto/`). [`Dto::check`] gives every fault of a body at once, in
//! the order and with the texts of class-validator 0.15, which the original answers with and which clients show:
//! unknown properties first, then the fields in the order of the table. `faults.rs` renders them in the five shapes.
//!
//! Sources: the field table and the texts of the `SciCat` contract; `ValidationExecutor` of class-validator 0.15.

use serde_json::{Map, Value};

use crate::faults::Fault;
use crate::text_forms::{is_email, is_iso_date, is_url, is_url_of_any_protocol};

/// Deepest nesting of objects that is checked; what lies deeper is reported as not being an object.
const MAX_DEPTH: usize = 32;

/// The greatest number up to which JavaScript tells whole numbers apart.
const MAX_COUNT: f64 = 9_007_199_254_740_991.0;

/// The rules of one resource's body.
#[derive(Debug)]
pub struct Dto {
    /// In the order in which faults are reported.
    pub fields: &'static [Field],
}

/// The rules of one field.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The property's name.
    pub name: &'static str,
    /// Whether it may be left out.
    pub presence: Presence,
    /// All are checked; each that fails adds its text.
    pub rules: &'static [Rule],
    /// The rules of an object in it, or of the objects of a list in it.
    pub nested: Option<Nested>,
    /// What a create stores if it is left out.
    pub default: Option<Default>,
    /// Whether only a create may name it.
    pub scope: Scope,
}

/// The objects in a field.
#[derive(Debug, Clone, Copy)]
pub enum Nested {
    /// A list of objects.
    Each(&'static Dto),
    /// One object.
    One(&'static Dto),
}

/// Whether a field may be left out of a create or a replacement. An update may leave out any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Left out or `null`, it breaks its rules.
    Required,
    /// Left out or `null`, its rules are not looked at.
    Optional,
}

/// The requests that may name a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    Always,
    /// `POST` only; elsewhere it is an unknown property.
    CreateOnly,
}

/// What the body is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `POST`: everything.
    Create,
    /// `PUT`: everything but the fields that only a create may name.
    Replace,
    /// `PATCH`: as `PUT`, and every field may be left out or `null`.
    Update,
}

/// A value for a field that was left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// `[]`
    EmptyList,
    /// `{}`
    EmptyObject,
    /// `0`
    Zero,
    /// A whole number.
    Number(i32),
    /// `false`
    False,
    /// `true`
    True,
    /// `null`
    Null,
    /// A text.
    Text(&'static str),
}

/// One rule and the text of its fault (`F` is the field).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// `isString`: F must be a string
    Text,
    /// `isString`: each value in F must be a string
    EachText,
    /// `isInt`: F must be an integer number
    Integer,
    /// `isNumber`: F must be a number conforming to the specified constraints
    Number,
    /// `min`: F must not be less than 0. Holds for what is no number, as `Number` tells of that.
    NotNegative,
    /// `max`: F must not be greater than 9007199254740991, up to which JavaScript counts. Holds for what is no number.
    Countable,
    /// `isBoolean`: F must be a boolean value
    Boolean,
    /// `isDateString`: F must be a valid ISO 8601 date string
    Date,
    /// `isEmail`: F must be an email
    Email,
    /// `customEmailList`: Expected an email or a list of semicolon separated emails, got X
    EmailList,
    /// `isUrl`: F must be a URL address
    Url,
    /// The same of any protocol: `nfs://file.server.ch`.
    UrlOfAnyProtocol,
    /// `isObject`: F must be an object
    Object,
    /// `isArray`: F must be an array
    List,
    /// `isNotEmpty`: F should not be empty
    NotEmpty,
    /// `arrayNotEmpty`: F should not be empty
    ListNotEmpty,
    /// `isEnum`: F must be one of the following values: a, b
    Enum(&'static [&'static str]),
    /// `isIn`: F must be one of the following values: a, b
    OneOf(&'static [&'static str]),
}

impl Field {
    /// A field that a create and a replacement must name.
    pub const fn required(name: &'static str, rules: &'static [Rule]) -> Field {
        Field { name, presence: Presence::Required, rules, nested: None, default: None, scope: Scope::Always }
    }

    /// A field that may be left out.
    pub const fn optional(name: &'static str, rules: &'static [Rule]) -> Field {
        Field { name, presence: Presence::Optional, rules, nested: None, default: None, scope: Scope::Always }
    }

    /// With a list of objects in it.
    pub const fn each(self, dto: &'static Dto) -> Field {
        Field { nested: Some(Nested::Each(dto)), ..self }
    }

    /// With an object in it.
    pub const fn one(self, dto: &'static Dto) -> Field {
        Field { nested: Some(Nested::One(dto)), ..self }
    }

    /// With a value for a create that leaves it out.
    pub const fn default_to(self, default: Default) -> Field {
        Field { default: Some(default), ..self }
    }

    /// Known to a create alone.
    pub const fn on_create(self) -> Field {
        Field { scope: Scope::CreateOnly, ..self }
    }

    /// Whether a body of that form may name the field.
    pub(crate) fn is_known_to(&self, form: Form) -> bool {
        form == Form::Create || self.scope == Scope::Always
    }
}

impl Dto {
    /// All faults of `body`; empty if it is as it must be.
    pub fn check(&self, body: &Map<String, Value>, form: Form) -> Vec<Fault> {
        let mut faults = Vec::new();
        self.check_object(body, form, MAX_DEPTH, &mut faults);
        faults
    }

    /// As [`Dto::check`], but unknown properties are no fault.
    pub fn check_known(&self, body: &Map<String, Value>, form: Form) -> Vec<Fault> {
        let mut faults = self.check(body, form);
        drop_unknown_properties(&mut faults);
        faults
    }

    /// Adds the defaults of the fields that `body` leaves out, in the order of the table.
    pub fn fill_defaults(&self, body: &mut Map<String, Value>) {
        for field in self.fields {
            if let Some(default) = field.default
                && !body.contains_key(field.name)
            {
                body.insert(field.name.to_owned(), default.value());
            }
            self.fill_nested_defaults(field, body);
        }
    }

    fn fill_nested_defaults(&self, field: &Field, body: &mut Map<String, Value>) {
        let Some(Nested::Each(dto) | Nested::One(dto)) = field.nested else { return };
        match body.get_mut(field.name) {
            Some(Value::Object(object)) => dto.fill_defaults(object),
            Some(Value::Array(items)) => {
                items.iter_mut().filter_map(Value::as_object_mut).for_each(|it| dto.fill_defaults(it));
            }
            _ => {}
        }
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|it| it.name == name)
    }

    fn check_object(&self, body: &Map<String, Value>, form: Form, depth: usize, faults: &mut Vec<Fault>) {
        for name in body.keys() {
            if !self.field(name).is_some_and(|it| it.is_known_to(form)) {
                faults.push(Fault::unknown_property(name));
            }
        }
        for field in self.fields.iter().filter(|it| it.is_known_to(form)) {
            faults.extend(field.check(body.get(field.name), form, depth));
        }
    }
}

impl Field {
    /// The fault of `value` with all its texts and children. `value` is `None` if the body leaves the field out.
    fn check(&self, value: Option<&Value>, form: Form, depth: usize) -> Option<Fault> {
        let may_be_absent = form == Form::Update || self.presence == Presence::Optional;
        if may_be_absent && value.is_none_or(Value::is_null) {
            return None;
        }
        let mut fault = Fault::new(self.name);
        for rule in self.rules {
            if !rule.holds(value) {
                fault.constraints.push((rule.constraint(), rule.text(self.name, value)));
            }
        }
        if let (Some(nested), Some(value)) = (self.nested, value) {
            self.check_nested(nested, value, depth, &mut fault);
        }
        (!fault.is_empty()).then_some(fault)
    }

    fn check_nested(&self, nested: Nested, value: &Value, depth: usize, fault: &mut Fault) {
        let (Nested::Each(dto) | Nested::One(dto)) = nested;
        match value {
            // Parts of a body are always complete, also those of an update.
            Value::Object(object) if 0 < depth => {
                dto.check_object(object, Form::Create, depth - 1, &mut fault.children);
            }
            Value::Array(items) if 0 < depth => {
                for (index, item) in items.iter().enumerate() {
                    // Named only once it is known to be wrong: a block may list a million files.
                    let mut child = Fault::new("");
                    self.check_nested(nested, item, depth - 1, &mut child);
                    if !child.is_empty() {
                        child.property = index.to_string().into();
                        fault.children.push(child);
                    }
                }
            }
            _ => fault.constraints.push(("nestedValidation", self.nested_text(nested))),
        }
    }

    fn nested_text(&self, nested: Nested) -> String {
        let each = match nested {
            Nested::Each(_) => "each value in ",
            Nested::One(_) => "",
        };
        format!("{each}nested property {} must be either object or array", self.name)
    }
}

impl Rule {
    /// Whether `value` keeps the rule. A value that was left out keeps none.
    fn holds(self, value: Option<&Value>) -> bool {
        // What is left out is told of by the rule of its type.
        let Some(value) = value else { return matches!(self, Rule::NotNegative | Rule::Countable) };
        let text = value.as_str();
        match self {
            Rule::Text => text.is_some(),
            Rule::EachText => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Rule::Integer => is_integer(value),
            Rule::Number => value.is_number(),
            Rule::NotNegative => value.as_f64().is_none_or(|it| 0.0 <= it),
            Rule::Countable => value.as_f64().is_none_or(|it| it <= MAX_COUNT),
            Rule::Boolean => value.is_boolean(),
            Rule::Date => text.is_some_and(is_iso_date),
            Rule::Email => text.is_some_and(is_email),
            Rule::EmailList => text.is_some_and(is_email_list),
            Rule::Url => text.is_some_and(is_url),
            Rule::UrlOfAnyProtocol => text.is_some_and(is_url_of_any_protocol),
            Rule::Object => value.is_object(),
            Rule::List => value.is_array(),
            Rule::NotEmpty => !value.is_null() && text != Some(""),
            Rule::ListNotEmpty => value.as_array().is_some_and(|items| !items.is_empty()),
            Rule::Enum(choices) | Rule::OneOf(choices) => text.is_some_and(|it| choices.contains(&it)),
        }
    }

    /// The constraint's name in answers.
    pub fn constraint(self) -> &'static str {
        match self {
            Rule::Text | Rule::EachText => "isString",
            Rule::Integer => "isInt",
            Rule::Number => "isNumber",
            Rule::NotNegative => "min",
            Rule::Countable => "max",
            Rule::Boolean => "isBoolean",
            Rule::Date => "isDateString",
            Rule::Email => "isEmail",
            Rule::EmailList => "customEmailList",
            Rule::Url | Rule::UrlOfAnyProtocol => "isUrl",
            Rule::Object => "isObject",
            Rule::List => "isArray",
            Rule::NotEmpty => "isNotEmpty",
            Rule::ListNotEmpty => "arrayNotEmpty",
            Rule::Enum(_) => "isEnum",
            Rule::OneOf(_) => "isIn",
        }
    }

    fn text(self, name: &str, value: Option<&Value>) -> String {
        match self {
            Rule::Text => format!("{name} must be a string"),
            Rule::EachText => format!("each value in {name} must be a string"),
            Rule::Integer => format!("{name} must be an integer number"),
            Rule::Number => format!("{name} must be a number conforming to the specified constraints"),
            Rule::NotNegative => format!("{name} must not be less than 0"),
            Rule::Countable => format!("{name} must not be greater than {MAX_COUNT}"),
            Rule::Boolean => format!("{name} must be a boolean value"),
            Rule::Date => format!("{name} must be a valid ISO 8601 date string"),
            Rule::Email => format!("{name} must be an email"),
            Rule::EmailList => {
                format!("Expected an email or a list of semicolon separated emails, got {}", as_text(value))
            }
            Rule::Url | Rule::UrlOfAnyProtocol => format!("{name} must be a URL address"),
            Rule::Object => format!("{name} must be an object"),
            Rule::List => format!("{name} must be an array"),
            Rule::NotEmpty | Rule::ListNotEmpty => format!("{name} should not be empty"),
            Rule::Enum(choices) | Rule::OneOf(choices) => {
                format!("{name} must be one of the following values: {}", choices.join(", "))
            }
        }
    }
}

impl Default {
    /// The value itself.
    pub fn value(self) -> Value {
        match self {
            Default::EmptyList => Value::Array(Vec::new()),
            Default::EmptyObject => Value::Object(Map::new()),
            Default::Zero => Value::from(0),
            Default::Number(number) => Value::from(number),
            Default::False => Value::Bool(false),
            Default::True => Value::Bool(true),
            Default::Null => Value::Null,
            Default::Text(text) => Value::from(text),
        }
    }
}

fn drop_unknown_properties(faults: &mut Vec<Fault>) {
    for fault in faults.iter_mut() {
        drop_unknown_properties(&mut fault.children);
    }
    faults.retain(|fault| !fault.is_unknown_property() && !fault.is_empty());
}

/// JavaScript has one kind of number: 1.0 is an integer.
fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
}

/// One or more addresses split by `;`.
fn is_email_list(text: &str) -> bool {
    text.split(';').all(|it| is_email(it.trim()))
}

/// A value in the middle of a text, as JavaScript writes it there.
fn as_text(value: Option<&Value>) -> String {
    match value {
        None => "undefined".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(_)) => "[object Object]".to_owned(),
        Some(Value::Array(items)) => {
            let of_item = |it: &Value| if it.is_null() { String::new() } else { as_text(Some(it)) };
            items.iter().map(of_item).collect::<Vec<_>>().join(",")
        }
        Some(other) => other.to_string(),
    }
}
