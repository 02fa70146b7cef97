//! `pinakes token`: API tokens, for programs that work on behalf of a user.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use pinakes_accounts::{NewToken, Token, token, user};
use pinakes_store::Tenant;
use time::OffsetDateTime;

use super::user::find;
use crate::catalogue::block_on;
use crate::config::Misuse;
use crate::place::{Missing, TenantPlace};
use crate::terminal::{say, table, warn};

/// Creates, lists and removes API tokens.
///
/// A token stands for a user, with all the user's groups or fewer, for ever or for a limited time. It is sent
/// as `Authorization: Bearer pnk_...` to any dialect. Only its hash is stored: it is shown once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Create(CreateArgs),
    List(ListArgs),
    Remove(RemoveArgs),
}

/// Creates an API token for a user and prints it; it cannot be shown again.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes token create ingestor --name beamline-7
  pinakes token create ingestor --name one-proposal --group p1234 --expires-in 30d
  TOKEN=$(pinakes token create ingestor --name nightly)     only the token goes to standard output")]
struct CreateArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// Name of the user
    user: String,
    /// What the token is for; unique among the user's tokens
    #[arg(long, default_value = "token")]
    name: String,
    /// Restrict the token to this group; may be given more than once [default: all groups of the user]
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// How long it is valid, e.g. 90m, 12h, 30d [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    expires_in: Option<i64>,
}

/// Lists tokens, of one user or of all.
#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// Name of the user
    user: Option<String>,
}

/// Removes a token: it is invalid from then on.
#[derive(Debug, clap::Args)]
struct RemoveArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// Name of the user
    user: String,
    /// Name of the token
    name: String,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Create(args) => create(args),
        Command::List(args) => list(&args),
        Command::Remove(args) => remove(&args),
    }
}

fn create(args: CreateArgs) -> anyhow::Result<ExitCode> {
    let (house, tenant) = args.place.open(Missing::Refuse)?;
    let user = find(&tenant, &args.user)?;
    if let Some(group) = args.groups.iter().find(|it| !user.groups.contains(it)) {
        let groups = user.groups.join(", ");
        bail!(Misuse(format!("{} is not in the group {group:?}, only in: {groups}", args.user)));
    }
    if of_user(&tenant, &user.id)?.iter().any(|it| it.name == args.name) {
        let advice = "choose another --name, or remove that one";
        bail!("{} already has a token named {:?}; {advice}", args.user, args.name);
    }
    let new = NewToken {
        user: user.id,
        name: args.name,
        groups: if args.groups.is_empty() { None } else { Some(args.groups) },
        expires_at_ms: args.expires_in.map(|it| house.accounts.clock().now_ms().saturating_add(it)),
    };
    let (text, made) = block_on(async { Ok(house.accounts.create_token(&tenant, new).await?) })?;
    warn(format!("token {:?} of {}, {}; it will not be shown again:", made.name, args.user, ends(&made)));
    say(text.reveal())?;
    Ok(ExitCode::SUCCESS)
}

fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let (house, tenant) = args.place.open(Missing::Refuse)?;
    let tokens = match &args.user {
        Some(name) => of_user(&tenant, &find(&tenant, name)?.id)?,
        None => tenant.read_blocking(token::all)?,
    };
    let now_ms = house.accounts.clock().now_ms();
    let rows = tokens.iter().map(|it| row(&tenant, it, now_ms)).collect::<anyhow::Result<Vec<_>>>()?;
    say(table(&["user", "token", "groups", "holds"], &rows))?;
    Ok(ExitCode::SUCCESS)
}

fn of_user(tenant: &Tenant, id: &str) -> anyhow::Result<Vec<Token>> {
    Ok(tenant.read_blocking(|view| token::of_user(view, id))?)
}

fn row(tenant: &Tenant, token: &Token, now_ms: i64) -> anyhow::Result<Vec<String>> {
    let owner = tenant.read_blocking(|view| user::by_id(view, &token.user))?;
    let owner = owner.map_or_else(|| token.user.clone(), |it| it.username);
    let groups = token.groups.as_ref().map_or_else(|| "all of the user's".to_owned(), |it| it.join(" "));
    let holds = if token.is_expired(now_ms) { "no more".to_owned() } else { ends(token) };
    Ok(vec![owner, token.name.clone(), groups, holds])
}

/// Formats when a token expires, or `for ever`.
fn ends(token: &Token) -> String {
    let Some(ms) = token.expires_at_ms else { return "for ever".to_owned() };
    match OffsetDateTime::from_unix_timestamp(ms.div_euclid(1000)) {
        Ok(at) => format!("until {} {:02}:{:02} UTC", at.date(), at.hour(), at.minute()),
        Err(_) => "for ever".to_owned(),
    }
}

fn remove(args: &RemoveArgs) -> anyhow::Result<ExitCode> {
    let (house, tenant) = args.place.open(Missing::Refuse)?;
    let user = find(&tenant, &args.user)?;
    let tokens = of_user(&tenant, &user.id)?;
    let found = tokens.iter().find(|it| it.name == args.name);
    let token = found.with_context(|| {
        let names: Vec<&str> = tokens.iter().map(|it| it.name.as_str()).collect();
        format!("{} has no token named {:?}, only: {}", args.user, args.name, names.join(", "))
    })?;
    block_on(async { Ok(house.accounts.remove_token(&tenant, &token.id).await?) })?;
    say(format!("removed token {:?} of {}", args.name, args.user))?;
    Ok(ExitCode::SUCCESS)
}

/// Parses `90m`, `12h`, `30d` into milliseconds.
fn duration_ms(text: &str) -> Result<i64, String> {
    let expected = || format!("{text:?} is no time; expected a whole number and m, h or d, e.g. 30d");
    let unit = text.chars().next_back().ok_or_else(expected)?;
    let unit_ms = match unit {
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return Err(expected()),
    };
    let number: i64 = text[..text.len() - 1].parse().map_err(|_| expected())?;
    number.checked_mul(unit_ms).filter(|ms| 0 < *ms).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration_ms("90m"), Ok(5_400_000));
        assert_eq!(duration_ms("30d"), Ok(2_592_000_000));
        for bad in ["", "d", "30", "-1h", "0h", "1w", "1.5h", "9223372036854775807d", "1é"] {
            assert!(duration_ms(bad).is_err(), "{bad:?}");
        }
    }
}
