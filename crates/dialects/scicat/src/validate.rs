//! Rules for bodies: tables of fields, and the engine that checks a body against one.
//!
//! A resource defines its rules as a [`Dto`] (folder `dto/`). [`Dto::check`] returns all faults of a body at once, in
//! the order and with the texts of class-validator 0.15, which the original sends and clients show: unknown properties
//! first, then the fields in the order of the table. `faults.rs` renders them in the five shapes.
//!
//! Sources: the field table and the texts of the `SciCat` contract; `ValidationExecutor` of class-validator 0.15.

use serde_json::{Map, Value};

use crate::faults::Fault;
use crate::text_forms::{is_email, is_iso_date, is_url, is_url_of_any_protocol};

/// Maximum nesting of objects that is checked; anything deeper is reported as not being an object.
const MAX_DEPTH: usize = 32;

/// The greatest integer up to which JavaScript can distinguish all integers.
const MAX_COUNT: f64 = 9_007_199_254_740_991.0;

/// The rules of one resource's body.
#[derive(Debug)]
pub struct Dto {
    /// The fields, in the order in which faults are reported.
    pub fields: &'static [Field],
}

/// The rules of one field.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The property's name.
    pub name: &'static str,
    /// Whether it may be left out.
    pub presence: Presence,
    /// All rules are checked; each one that fails adds its text.
    pub rules: &'static [Rule],
    /// The rules for an object in it, or for the objects of a list in it.
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

/// Whether a field may be left out of a create or a replacement. An update may leave out any field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// If it is missing or `null`, its rules are violated.
    Required,
    /// If it is missing or `null`, its rules are not checked.
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
    /// `POST`: all fields are known.
    Create,
    /// `PUT`: all except the fields that only a create may name.
    Replace,
    /// `PATCH`: as `PUT`, but every field may be left out or `null`.
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
    /// `min`: F must not be less than 0. Satisfied by anything that is not a number, which `Number` reports.
    NotNegative,
    /// `max`: F must not be greater than 9007199254740991, JavaScript's greatest safe integer. Satisfied by anything
    /// that is not a number.
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
    /// `isUrl` for any protocol: `nfs://file.server.ch`.
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
    /// Creates a field that a create and a replacement must name.
    pub const fn required(name: &'static str, rules: &'static [Rule]) -> Field {
        Field { name, presence: Presence::Required, rules, nested: None, default: None, scope: Scope::Always }
    }

    /// Creates a field that may be left out.
    pub const fn optional(name: &'static str, rules: &'static [Rule]) -> Field {
        Field { name, presence: Presence::Optional, rules, nested: None, default: None, scope: Scope::Always }
    }

    /// Adds rules for a list of objects in the field.
    pub const fn each(self, dto: &'static Dto) -> Field {
        Field { nested: Some(Nested::Each(dto)), ..self }
    }

    /// Adds rules for an object in the field.
    pub const fn one(self, dto: &'static Dto) -> Field {
        Field { nested: Some(Nested::One(dto)), ..self }
    }

    /// Sets the value that a create stores if the field is left out.
    pub const fn default_to(self, default: Default) -> Field {
        Field { default: Some(default), ..self }
    }

    /// Restricts the field to creates.
    pub const fn on_create(self) -> Field {
        Field { scope: Scope::CreateOnly, ..self }
    }

    /// Says whether a body of that form may name the field.
    pub(crate) fn is_known_to(&self, form: Form) -> bool {
        form == Form::Create || self.scope == Scope::Always
    }
}

impl Dto {
    /// Returns all faults of `body`; empty if it is valid.
    pub fn check(&self, body: &Map<String, Value>, form: Form) -> Vec<Fault> {
        let mut faults = Vec::new();
        self.check_object(body, form, MAX_DEPTH, &mut faults);
        faults
    }

    /// Checks like [`Dto::check`], but allows unknown properties.
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

    /// Returns the field of that name.
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
    /// Returns the fault of `value` with all its texts and children. `value` is `None` if the body leaves the field
    /// out.
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
            // Nested objects must be complete, even in an update.
            Value::Object(object) if 0 < depth => {
                dto.check_object(object, Form::Create, depth - 1, &mut fault.children);
            }
            Value::Array(items) if 0 < depth => {
                for (index, item) in items.iter().enumerate() {
                    // The name is only set once there is a fault, as a block may list a million files.
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
    /// Says whether `value` satisfies the rule. A missing value satisfies only rules about the size of numbers.
    fn holds(self, value: Option<&Value>) -> bool {
        // A missing value is reported by the rule about its type.
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

    /// Returns the constraint's name in answers.
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
    /// Returns the default as a JSON value.
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

/// Says whether a value is an integer. JavaScript has one type of number, so 1.0 is an integer.
fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
}

/// Checks one or more addresses separated by `;`.
fn is_email_list(text: &str) -> bool {
    text.split(';').all(|it| is_email(it.trim()))
}

/// Formats a value within a text, as JavaScript does.
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
