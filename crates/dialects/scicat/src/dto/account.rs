//! Request bodies about accounts. Their handlers check them in code, as their errors differ from those of records; the
//! tables describe them to clients.

use super::*;
use crate::validate::Dto;

/// `/api/v3/auth/login`.
pub static LOGIN: Dto =
    Dto { fields: &[Field::required("username", TEXT), Field::required("password", TEXT)] };

/// `/api/v3/users/password`.
pub static OWN_PASSWORD: Dto = Dto {
    fields: &[
        Field::required("currentPassword", TEXT),
        Field::required("newPassword", TEXT),
        Field::required("confirmPassword", TEXT),
    ],
};

/// `/api/v3/users/{id}/password`; admins need no `currentPassword`.
pub static NEW_PASSWORD: Dto = Dto {
    fields: &[
        Field::required("newPassword", TEXT),
        Field::optional("confirmPassword", TEXT),
        Field::optional("currentPassword", TEXT),
    ],
};

/// `/api/v3/auth/oidc/token`.
pub static ID_TOKEN: Dto = Dto { fields: &[Field::required("idToken", TEXT)] };

/// `/api/v3/users/{id}/jwt`: `"2h"`, seconds, or `"never"`.
pub static TOKEN_LIFE: Dto = Dto { fields: &[Field::optional("expiresIn", TEXT)] };
