//! Passwords come from a prompt or from standard input, never from the command line, where every user of the
//! machine could read them.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use anyhow::{Context as _, bail};
use pinakes_accounts::Password;

/// Longest line that is read, in bytes: a longer password is refused anyway.
const LINE_LIMIT_BYTES: u64 = 4096;

/// Asks for a new password: twice on a terminal; otherwise the first line of standard input.
///
/// Errors: the two differ; there is none; it is too long.
pub(crate) fn ask(username: &str) -> anyhow::Result<Password> {
    if !io::stdin().is_terminal() {
        return from_input();
    }
    let once = rpassword::prompt_password(format!("Password of {username}: "))?;
    let again = rpassword::prompt_password("The same again: ")?;
    if once != again {
        bail!("the two passwords differ; nothing was changed");
    }
    Ok(Password::new(once)?)
}

fn from_input() -> anyhow::Result<Password> {
    let mut line = String::new();
    let mut input = io::stdin().lock().take(LINE_LIMIT_BYTES);
    input.read_line(&mut line).context("the password on standard input is not UTF-8 text")?;
    let line = line.strip_suffix('\n').unwrap_or(&line);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() {
        bail!("no password came on standard input; give it there as one line, or run this on a terminal");
    }
    Ok(Password::new(line)?)
}
