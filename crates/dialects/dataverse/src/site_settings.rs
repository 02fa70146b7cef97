//! Settings that are changed while the server runs: `/api/admin/settings`.

use pinakes_store::{Kind, View};

use crate::error::ApiError;

/// Settings by name, `:AllowSignUp`; body `{"value": "yes"}`. One for a language has the id `:Name/lang/de`.
pub(crate) static SETTING: Kind = Kind::named("dataverse_setting");

/// The value of a setting.
pub fn get(view: &mut View<'_>, name: &str) -> Result<Option<String>, ApiError> {
    let Some(record) = view.get(&SETTING, name)? else { return Ok(None) };
    Ok(record.json()?["value"].as_str().map(str::to_owned))
}

/// Whether a setting is `true` or `yes`.
pub fn is_true(view: &mut View<'_>, name: &str, default: bool) -> Result<bool, ApiError> {
    let value = get(view, name)?;
    Ok(value.map_or(default, |it| it.eq_ignore_ascii_case("true") || it.eq_ignore_ascii_case("yes")))
}
