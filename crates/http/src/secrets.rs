//! Names whose values are secrets: in addresses, in lines of a log, in header fields.

/// Names that precede a secret wherever they stand, lower case.
const NAMES: [&str; 13] = [
    "access_token",
    "api_key",
    "apikey",
    "authorization",
    "client_secret",
    "id_token",
    "jwt",
    "newpassword",
    "passwd",
    "password",
    "refresh_token",
    "secret",
    "token",
];

/// Says whether the value of this name, in lower case, is a secret wherever the name stands.
pub fn is_secret_name(name: &str) -> bool {
    NAMES.contains(&name)
}
