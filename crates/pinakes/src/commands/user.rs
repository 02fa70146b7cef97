//! `pinakes user`: accounts of a tenant, one set for all dialects.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use pinakes_accounts::{AccountsError, User, functional, user};
use pinakes_store::{Expr, Query, Tenant};

use crate::catalogue::block_on;
use crate::password;
use crate::place::{Missing, TenantPlace};
use crate::terminal::{counted, say, table, warn};

/// Adds, lists, removes and imports users.
///
/// A user has a name, a password and groups. The rights in each dialect depend on the groups: SciCat's owner and access
/// groups, and roles such as `admin`, whose groups are named in the settings. A server that runs on the
/// same folder notices changes within a second.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Add(AddArgs),
    List(ListArgs),
    /// Gives a user a new password, asked for as `add` does; tokens stay valid
    Password(NameArgs),
    /// Removes a user with its API tokens
    Remove(NameArgs),
    Import(ImportArgs),
}

/// Adds a user.
///
/// On a terminal, asks for the password twice; otherwise reads it from the first line of standard input. It cannot
/// be an argument, because every user of the machine could read it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes user add ingestor --group ingestor --group p1234 --email ingestor@example.org
  pinakes user add admin --group admin < password.txt")]
struct AddArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// What the user logs in with
    name: String,
    /// A group of the user; may be given more than once
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// Mail address
    #[arg(long)]
    email: Option<String>,
    /// The display name
    #[arg(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// Put the user into the group `globalaccess`
    #[arg(long)]
    global: bool,
    /// Set no password: the user can only use API tokens
    #[arg(long)]
    no_password: bool,
}

/// Lists users with their groups.
#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    place: TenantPlace,
}

// The subcommands that take it say what it does.
#[derive(Debug, clap::Args)]
struct NameArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// The user's name
    name: String,
}

/// Reads SciCat's functional accounts: a JSON list of {username, email, password, role, global}.
///
/// Users that exist already are updated from the file. Entries that cannot be used are reported and left out;
/// the exit code is then 1.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Example:
  pinakes user import functionalAccounts.json")]
struct ImportArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// The file, functionalAccounts.json of a SciCat backend
    file: PathBuf,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Add(args) => add(args),
        Command::List(args) => list(&args),
        Command::Password(args) => change_password(&args),
        Command::Remove(args) => remove(&args),
        Command::Import(args) => import(&args),
    }
}

fn add(args: AddArgs) -> anyhow::Result<ExitCode> {
    let (house, tenant) = args.place.open(Missing::Begin)?;
    if find(&tenant, &args.name).is_ok() {
        return Err(AccountsError::UsernameTaken(args.name).into());
    }
    let password = if args.no_password { None } else { Some(password::ask(&args.name)?) };
    let mut user = house.accounts.new_user(args.name);
    (user.groups, user.email, user.display_name) = (args.groups, args.email, args.display_name);
    user.global = args.global;
    let added = block_on(async { Ok(house.accounts.create(&tenant, user, password).await?) })?;
    say(format!("added {} ({}) to tenant {}", added.username, groups_of(&added), tenant.name()))?;
    Ok(ExitCode::SUCCESS)
}

fn groups_of(user: &User) -> String {
    if user.groups.is_empty() { "no groups".to_owned() } else { user.groups.join(", ") }
}

fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let (_house, tenant) = args.place.open(Missing::Refuse)?;
    let users = tenant.read_blocking(|view| user::find(view, &Query::filter(Expr::All)))?;
    let rows: Vec<Vec<String>> = users.into_iter().map(row).collect();
    say(table(&["name", "groups", "email", "notes"], &rows))?;
    Ok(ExitCode::SUCCESS)
}

fn row(user: User) -> Vec<String> {
    let mut notes = Vec::new();
    if user.global {
        notes.push("global");
    }
    if !user.active {
        notes.push("may not log in");
    }
    if user.password.is_none() {
        notes.push("no password");
    }
    vec![user.username, user.groups.join(" "), user.email.unwrap_or_default(), notes.join(", ")]
}

/// Gives a user a new password.
fn change_password(args: &NameArgs) -> anyhow::Result<ExitCode> {
    let (house, tenant) = args.place.open(Missing::Refuse)?;
    let user = find(&tenant, &args.name)?;
    let password = password::ask(&args.name)?;
    block_on(async { Ok(house.accounts.set_password(&tenant, &user.id, password).await?) })?;
    say(format!("{} has a new password; tokens stay valid", args.name))?;
    Ok(ExitCode::SUCCESS)
}

/// Removes a user with its API tokens.
fn remove(args: &NameArgs) -> anyhow::Result<ExitCode> {
    let (house, tenant) = args.place.open(Missing::Refuse)?;
    let user = find(&tenant, &args.name)?;
    block_on(async { Ok(house.accounts.remove(&tenant, &user.id).await?) })?;
    say(format!("removed {} from tenant {}", args.name, tenant.name()))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the user with this name. Errors: there is none.
pub(super) fn find(tenant: &Tenant, name: &str) -> anyhow::Result<User> {
    let found = tenant.read_blocking(|view| user::by_username(view, name))?;
    Ok(found.ok_or_else(|| AccountsError::UnknownUser(name.to_owned()))?)
}

fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let shown = args.file.display();
    let text = std::fs::read(&args.file).with_context(|| format!("{shown} cannot be read"))?;
    let (accounts, mut problems) = functional::parse(&text).with_context(|| shown.to_string())?;
    let (house, tenant) = args.place.open(Missing::Begin)?;
    let imported = block_on(async { Ok(house.accounts.import_functional(&tenant, accounts).await?) })?;
    problems.extend(imported.problems);
    for problem in &problems {
        warn(format!("{shown}: entry {}: {}", problem.entry, problem.reason));
    }
    let [added, changed, same] =
        [imported.n_created, imported.n_changed, imported.n_same].map(|n| counted(n as u64, "user"));
    say(format!("{added} added, {changed} changed, {same} as they were, {} left out", problems.len()))?;
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
