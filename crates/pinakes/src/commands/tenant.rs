//! `pinakes tenant`: separate catalogues, isolated from each other.

use std::process::ExitCode;

use crate::config::Misuse;
use crate::place::{Missing, Place};
use crate::terminal::{say, table};

/// Adds, lists and removes tenants.
///
/// A tenant has records, users and tokens of its own, in a file of its own. A request names its tenant by the
/// header X-Pinakes-Tenant (or FOLIO's X-Okapi-Tenant) or by its host name (key tenants.hosts); otherwise it
/// goes to the tenant `default`, which exists from the start.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Add(AddArgs),
    List(ListArgs),
    Remove(RemoveArgs),
}

/// Adds a tenant; a running server serves it at once.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Example:
  pinakes tenant add library --description \"Catalogue of the library\"
  pinakes user add librarian --tenant library --group admin
  curl -H 'X-Pinakes-Tenant: library' http://127.0.0.1:3000/api/v3/datasets")]
struct AddArgs {
    #[command(flatten)]
    place: Place,
    /// 1 to 63 of a-z, 0-9, - and _, beginning with a letter or digit
    name: String,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
}

/// Lists tenants.
#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    place: Place,
}

/// Removes a tenant with all its records and users. Stop the server first.
#[derive(Debug, clap::Args)]
struct RemoveArgs {
    #[command(flatten)]
    place: Place,
    /// Name of the tenant
    name: String,
    /// Confirm that everything in it may be deleted
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Add(args) => add(&args),
        Command::List(args) => list(&args),
        Command::Remove(args) => remove(&args),
    }
}

fn add(args: &AddArgs) -> anyhow::Result<ExitCode> {
    let house = args.place.open(Missing::Begin)?;
    house.catalogue.create_tenant(&args.name, &args.description)?;
    say(format!("added tenant {}", args.name))?;
    Ok(ExitCode::SUCCESS)
}

fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let house = args.place.open(Missing::Refuse)?;
    let tenants = house.catalogue.tenants()?;
    let rows: Vec<Vec<String>> = tenants.into_iter().map(|it| vec![it.name, it.description]).collect();
    say(table(&["name", "description"], &rows))?;
    Ok(ExitCode::SUCCESS)
}

fn remove(args: &RemoveArgs) -> anyhow::Result<ExitCode> {
    let house = args.place.open(Missing::Refuse)?;
    house.catalogue.tenant(&args.name)?;
    if args.name == house.config.tenants.default {
        let advice = "make another tenant the default (key tenants.default) first";
        return Err(Misuse(format!("{} is the default tenant; {advice}", args.name)).into());
    }
    if !args.yes {
        let advice = "a backup is one command away: `pinakes backup DIR`";
        let reason = format!("tenant {} goes with all it holds; say so with --yes. {advice}", args.name);
        return Err(Misuse(reason).into());
    }
    house.catalogue.delete_tenant(&args.name)?;
    say(format!("removed tenant {}", args.name))?;
    Ok(ExitCode::SUCCESS)
}
