//! The functions that rules can name; each converts a text to a text.

use std::borrow::Cow;

use pinakes_marc::{DataField, Leader};
use serde_json::Value;

use super::reference::{Reference, UNKNOWN_ID};

/// Declares the functions by their names in rules.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A function of the rules language.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Function { $($(#[$doc])* $name,)* }

        impl Function {
            /// Returns the function with a name.
            pub(crate) fn named(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

functions! {
    Trim = "trim",
    TrimPeriod = "trim_period",
    TrimPunctuation = "trim_punctuation",
    RemoveEndingPunctuation = "remove_ending_punc",
    RemovePrefixByIndicator = "remove_prefix_by_indicator",
    RemoveSubstring = "remove_substring",
    Capitalize = "capitalize",
    CharSelect = "char_select",
    ConcatSubfieldsByName = "concat_subfields_by_name",
    SetPublisherRole = "set_publisher_role",
    SetIdentifierTypeIdByName = "set_identifier_type_id_by_name",
    SetIdentifierTypeIdByValue = "set_identifier_type_id_by_value",
    SetContributorTypeId = "set_contributor_type_id",
    SetContributorTypeIdByCodeOrName = "set_contributor_type_id_by_code_or_name",
    SetContributorTypeText = "set_contributor_type_text",
    SetContributorNameTypeId = "set_contributor_name_type_id",
    SetInstanceFormatId = "set_instance_format_id",
    SetClassificationTypeId = "set_classification_type_id",
    SetInstanceTypeId = "set_instance_type_id",
    SetElectronicAccessRelationsId = "set_electronic_access_relations_id",
    SetAlternativeTitleTypeId = "set_alternative_title_type_id",
    SetNoteTypeId = "set_note_type_id",
    SetInstanceNoteTypeId = "set_instance_note_type_id",
    SetHoldingsNoteTypeId = "set_holdings_note_type_id",
    SetAuthorityNoteTypeId = "set_authority_note_type_id",
    SetNoteStaffOnlyViaIndicator = "set_note_staff_only_via_indicator",
    SetNoteStaffOnly = "set_note_staff_only",
    SetIssuanceModeId = "set_issuance_mode_id",
    SetDateTypeId = "set_date_type_id",
    SetDeleted = "set_deleted",
    SetHoldingsTypeId = "set_holdings_type_id",
    SetHoldingsTypeIdByLeader = "set_holdings_type",
    SetCallNumberTypeId = "set_call_number_type_id",
    SetPermanentLocationId = "set_permanent_location_id",
    SetSubjectTypeId = "set_subject_type_id",
    SetSubjectSourceId = "set_subject_source_id",
    SetSubjectSourceIdByCode = "set_subject_source_id_by_code",
}

/// The context of a function besides the text.
pub(crate) struct Surroundings<'a> {
    pub(crate) leader: &'a Leader,
    /// The whole field, for data fields.
    pub(crate) field: Option<&'a DataField>,
    pub(crate) reference: &'a Reference,
}

impl Function {
    /// Checks whether the result is an id, a flag or a constant rather than a transformed text.
    pub(crate) const fn is_lookup(self) -> bool {
        !matches!(
            self,
            Self::Trim
                | Self::TrimPeriod
                | Self::TrimPunctuation
                | Self::RemoveEndingPunctuation
                | Self::RemovePrefixByIndicator
                | Self::RemoveSubstring
                | Self::Capitalize
                | Self::CharSelect
                | Self::ConcatSubfieldsByName
        )
    }

    /// Runs the function. An empty result means that the property is not set.
    pub(crate) fn apply<'t>(
        self,
        text: Cow<'t, str>,
        parameter: &Value,
        around: &Surroundings<'_>,
    ) -> Cow<'t, str> {
        let named = |table: &str| self.by_parameter(table, parameter, around.reference);
        match self {
            Self::Trim => sliced(text, str::trim),
            Self::TrimPeriod => sliced(text, |it| it.strip_suffix('.').unwrap_or(it)),
            Self::TrimPunctuation => trim_punctuation(text),
            Self::RemoveEndingPunctuation => {
                sliced(text, |it| it.strip_suffix([';', ':', ',', '/', '+', '=', ' ']).unwrap_or(it))
            }
            Self::RemovePrefixByIndicator => remove_prefix(text, around),
            Self::RemoveSubstring => match parameter.get("substring").and_then(Value::as_str) {
                Some(part) if text.contains(part) => text.replace(part, "").into(),
                _ => text,
            },
            Self::Capitalize => capitalize(text),
            Self::CharSelect => char_select(&text, parameter).into(),
            Self::ConcatSubfieldsByName => concat(text, parameter, around),
            Self::SetPublisherRole => publisher_role(around).into(),
            Self::SetIdentifierTypeIdByName => named("identifierTypes"),
            Self::SetIdentifierTypeIdByValue => identifier_type(&text, parameter, around),
            Self::SetContributorTypeId | Self::SetContributorTypeIdByCodeOrName => {
                contributor_type(parameter, around).unwrap_or_default().into()
            }
            Self::SetContributorTypeText => contributor_text(parameter, around).into(),
            Self::SetContributorNameTypeId => named("contributorNameTypes"),
            Self::SetInstanceFormatId => code_then_name("instanceFormats", &text, around).into(),
            Self::SetClassificationTypeId => named("classificationTypes"),
            Self::SetInstanceTypeId => code_then_name("instanceTypes", &text, around).into(),
            Self::SetElectronicAccessRelationsId => electronic_access(around).into(),
            Self::SetAlternativeTitleTypeId => named("alternativeTitleTypes"),
            Self::SetNoteTypeId | Self::SetInstanceNoteTypeId => named("instanceNoteTypes"),
            Self::SetHoldingsNoteTypeId => named("holdingsNoteTypes"),
            Self::SetAuthorityNoteTypeId => match parameter.get("name").and_then(Value::as_str) {
                Some("Nonpublic general note") | None => "76c74801-afec-45a0-aad7-3ff23591e147".into(),
                Some(_) => UNKNOWN_ID.into(),
            },
            Self::SetNoteStaffOnlyViaIndicator => {
                let is_private = around.field.is_some_and(|it| it.indicators[0] == '0');
                (if is_private { "true" } else { "false" }).into()
            }
            Self::SetNoteStaffOnly => "true".into(),
            Self::SetIssuanceModeId => issuance_mode(around).into(),
            Self::SetDateTypeId => date_type(&text, around).into(),
            Self::SetDeleted => (if around.leader.status() == 'd' { "true" } else { "" }).into(),
            Self::SetHoldingsTypeId | Self::SetHoldingsTypeIdByLeader => holdings_type(around).into(),
            Self::SetCallNumberTypeId => call_number_type(around).into(),
            Self::SetPermanentLocationId => {
                around.reference.by_code("locations", &text).unwrap_or_default().to_owned().into()
            }
            Self::SetSubjectTypeId => named("subjectTypes"),
            Self::SetSubjectSourceId => subject_source(around).into(),
            Self::SetSubjectSourceIdByCode => {
                around.reference.by_code("subjectSources", &text).unwrap_or_default().to_owned().into()
            }
        }
    }

    /// Looks up the id for the `name` in the parameter.
    fn by_parameter<'t>(self, table: &str, parameter: &Value, reference: &Reference) -> Cow<'t, str> {
        let name = parameter.get("name").and_then(Value::as_str).unwrap_or_default();
        reference.by_name(table, name).unwrap_or(UNKNOWN_ID).to_owned().into()
    }
}

/// Returns a part of the text, without copying borrowed text.
fn sliced<'t>(text: Cow<'t, str>, part: impl Fn(&str) -> &str) -> Cow<'t, str> {
    match text {
        Cow::Borrowed(it) => {
            let part = part(it);
            let start = part.as_ptr().addr() - it.as_ptr().addr();
            Cow::Borrowed(&it[start..start + part.len()])
        }
        Cow::Owned(it) => {
            let part = part(&it);
            if part.len() == it.len() { Cow::Owned(it) } else { part.to_owned().into() }
        }
    }
}

/// Removes a final full stop or comma that is punctuation of the record and not part of an initial.
fn trim_punctuation(text: Cow<'_, str>) -> Cow<'_, str> {
    let trimmed = text.trim();
    let is_single = |before: &str| {
        let mut letters = before.chars().rev();
        letters.next().is_some_and(char::is_alphabetic)
            && letters.next().is_none_or(|it| it.is_whitespace() || it == '.' || it == '-')
    };
    if let Some(before) = trimmed.strip_suffix(",.").filter(|it| is_single(it)) {
        return format!("{before}.").into();
    }
    let keeps = trimmed.ends_with('-') || trimmed.strip_suffix('.').is_some_and(is_single);
    sliced(text, |it| {
        let it = it.trim();
        if keeps { it } else { it.strip_suffix(['.', ',']).unwrap_or(it) }
    })
}

/// Removes as many leading characters as the second indicator says.
fn remove_prefix<'t>(text: Cow<'t, str>, around: &Surroundings<'_>) -> Cow<'t, str> {
    let n = around.field.and_then(|it| it.indicators[1].to_digit(10)).unwrap_or(0) as usize;
    match text.char_indices().nth(n).map(|(at, _)| at) {
        Some(at) => sliced(text, |it| &it[at..]),
        None => text,
    }
}

fn capitalize(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !first.is_uppercase() && first.is_alphabetic() => {
            first.to_uppercase().chain(chars).collect::<String>().into()
        }
        _ => text,
    }
}

/// Returns the characters from `from` (counted from 0) up to but excluding `to`; nothing if the text is not longer than
/// `to`.
fn char_select(text: &str, parameter: &Value) -> String {
    let at = |name: &str| {
        let value = parameter.get(name)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok()).and_then(|it| usize::try_from(it).ok())
    };
    let (Some(from), Some(to)) = (at("from"), at("to")) else { return String::new() };
    if text.chars().count() <= to || to < from {
        return String::new();
    }
    text.chars().skip(from).take(to - from).collect()
}

/// Appends the subfields that the parameter names.
fn concat<'t>(text: Cow<'t, str>, parameter: &Value, around: &Surroundings<'_>) -> Cow<'t, str> {
    let codes = |name: &str| -> Vec<char> {
        let list = parameter.get(name).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|it| it.as_str()?.chars().next()).collect()
    };
    let (wanted, stops) = (codes("subfieldsToConcat"), codes("subfieldsToStopConcat"));
    let subfields = around.field.map_or(&[][..], |it| it.subfields.as_slice());
    // The text is that of one subfield: append those that follow it, up to the next subfield with the same code.
    let own = subfields.iter().position(|it| it.value == *text);
    let mut whole = String::new();
    for subfield in &subfields[own.map_or(0, |it| it + 1)..] {
        let is_like = own.is_some_and(|at| subfields[at].code == subfield.code);
        if is_like || stops.contains(&subfield.code) {
            break;
        }
        if wanted.contains(&subfield.code) {
            whole.push(' ');
            whole.push_str(&subfield.value);
        }
    }
    if whole.is_empty() { text } else { format!("{text}{whole}").into() }
}

fn publisher_role(around: &Surroundings<'_>) -> &'static str {
    match around.field.map(|it| it.indicators[1]) {
        Some('0') => "Production",
        Some('1') => "Publication",
        Some('2') => "Distribution",
        Some('3') => "Manufacture",
        _ => "",
    }
}

/// Returns one of two identifier types, depending on whether the text looks like an OCLC number.
fn identifier_type<'t>(text: &str, parameter: &Value, around: &Surroundings<'_>) -> Cow<'t, str> {
    let at = |name: &str| parameter.get(name).and_then(Value::as_str).unwrap_or_default();
    let prefixes = ["(OCoLC)", "ocm", "ocn", "on"];
    let is_oclc = prefixes.iter().any(|prefix| text.starts_with(prefix));
    let listed = |n: usize| parameter.get("names").and_then(|it| it.get(n)).and_then(Value::as_str);
    let name = match (is_oclc, at("name")) {
        (true, _) => Some(at("oclc")).filter(|it| !it.is_empty()).or(listed(1)).unwrap_or("OCLC"),
        (false, "") => listed(0).unwrap_or("System control number"),
        (false, name) => name,
    };
    around.reference.by_name("identifierTypes", name).unwrap_or(UNKNOWN_ID).to_owned().into()
}

/// Looks up the contributor type by the code in `$4`, else by the name in `$e` (or in the subfield that the parameter
/// names).
fn contributor_type(parameter: &Value, around: &Surroundings<'_>) -> Option<String> {
    let field = around.field?;
    let by_code = field
        .values('4')
        .map(|it| it.rsplit('/').next().unwrap_or(it))
        .find_map(|it| around.reference.by_code("contributorTypes", it));
    let by_name = || {
        let mut names =
            field.values(name_code(parameter)).map(|it| it.trim().trim_end_matches(['.', ',', ';']));
        names.find_map(|it| around.reference.by_name("contributorTypes", it))
    };
    by_code.or_else(by_name).map(str::to_owned)
}

/// Returns the first `$e` unchanged if its type is not known.
fn contributor_text(parameter: &Value, around: &Surroundings<'_>) -> String {
    if contributor_type(parameter, around).is_some() {
        return String::new();
    }
    around.field.and_then(|it| it.value(name_code(parameter))).unwrap_or_default().to_owned()
}

fn name_code(parameter: &Value) -> char {
    let code = parameter.get("contributorNameSubfield").and_then(Value::as_str);
    code.and_then(|it| it.chars().next()).unwrap_or('e')
}

/// Looks up an id by the code in `$b`, else by the name in `$a`.
fn code_then_name(table: &str, text: &str, around: &Surroundings<'_>) -> String {
    let reference = around.reference;
    let values = |code| around.field.into_iter().flat_map(move |it| it.values(code));
    let found = values('b')
        .find_map(|it| reference.by_code(table, it))
        .or_else(|| values('a').find_map(|it| by_term(reference, table, it)))
        .or_else(|| reference.by_code(table, text));
    found.unwrap_or_default().to_owned()
}

/// Looks up a format by its term: formats are named `category -- term`, records contain only the term.
fn by_term<'r>(reference: &'r Reference, table: &str, term: &str) -> Option<&'r str> {
    let term = term.trim();
    reference.by_name(table, term).or_else(|| {
        let is_it = |entry: &&Value| {
            let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
            name.rsplit_once(" -- ").is_some_and(|(_, it)| it.eq_ignore_ascii_case(term))
        };
        reference.entries(table).iter().find(is_it)?.get("id")?.as_str()
    })
}

fn electronic_access(around: &Surroundings<'_>) -> String {
    let name = match around.field.map(|it| it.indicators[1]) {
        Some('0') => "Resource",
        Some('1') => "Version of resource",
        Some('2') => "Related resource",
        Some('8') => "No display constant generated",
        _ => "No information provided",
    };
    around.reference.by_name("electronicAccessRelationships", name).unwrap_or_default().to_owned()
}

fn issuance_mode(around: &Surroundings<'_>) -> String {
    let name = match around.leader.at(7) {
        'a' | 'c' | 'd' | 'm' => "single unit",
        'b' | 's' => "serial",
        'i' => "integrating resource",
        _ => "unspecified",
    };
    around.reference.by_name("issuanceModes", name).unwrap_or_default().to_owned()
}

/// Looks up the date type by its code, or by the seventh character of a whole 008.
fn date_type(text: &str, around: &Surroundings<'_>) -> String {
    let code = if text.len() == 1 { text } else { text.get(6..7).unwrap_or_default() };
    let table = "instanceDateTypes";
    let found = around.reference.by_code(table, code).or_else(|| around.reference.by_code(table, "|"));
    found.or_else(|| around.reference.by_name(table, "No attempt to code")).unwrap_or_default().to_owned()
}

fn holdings_type(around: &Surroundings<'_>) -> String {
    let name = match around.leader.at(6) {
        'v' => "Multi-part monograph",
        'x' => "Monograph",
        'y' => "Serial",
        _ => "Unknown",
    };
    around.reference.by_name("holdingsTypes", name).unwrap_or_default().to_owned()
}

fn call_number_type(around: &Surroundings<'_>) -> String {
    let name = match around.field.map(|it| it.indicators[0]) {
        Some('0') => "Library of Congress classification",
        Some('1') => "Dewey Decimal classification",
        Some('2') => "National Library of Medicine classification",
        Some('3') => "Superintendent of Documents classification",
        Some('4') => "Shelving control number",
        Some('5') => "Title",
        Some('6') => "Shelved separately",
        Some('7') => "Source specified in subfield $2",
        Some('8') => "Other scheme",
        _ => return String::new(),
    };
    around.reference.by_name("callNumberTypes", name).unwrap_or_default().to_owned()
}

fn subject_source(around: &Surroundings<'_>) -> String {
    let Some(field) = around.field else { return String::new() };
    let reference = around.reference;
    let table = "subjectSources";
    let name = match field.indicators[1] {
        '0' => "Library of Congress Subject Headings",
        '1' => "Library of Congress Children's and Young Adults' Subject Headings",
        '2' => "Medical Subject Headings",
        '3' => "National Agricultural Library subject authority file",
        '4' => "Source not specified",
        '5' => "Canadian Subject Headings",
        '6' => "Répertoire de vedettes-matière",
        '7' => {
            let found = field.values('2').find_map(|it| reference.by_code(table, it));
            return found.unwrap_or_default().to_owned();
        }
        _ => return String::new(),
    };
    reference.by_name(table, name).unwrap_or_default().to_owned()
}
