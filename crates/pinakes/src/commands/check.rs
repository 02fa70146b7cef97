//! `pinakes check`: checks that the stored data are consistent.

use std::process::ExitCode;

use pinakes_store::Tenant;

use crate::files;
use crate::place::{Missing, Place};
use crate::terminal::say;

/// Compares every index, counter and reference with the records themselves, and looks for the records' files.
///
/// Reads everything, from one consistent state of each tenant, also while it is served. Prints one line for each
/// mismatch; if there are any, the exit code is 1. Indexes and counters are derived from the records, so a mismatch
/// means a fault of this program or of the disk: please report it, and restore a backup.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes check
  pinakes check --data /backups/2026-11-21 --tenant library
  pinakes check --sweep                                       a server does so once a day")]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Tenant to check [default: all]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Also delete files that no record names and that are older than the key `blobs.sweep_after_s`
    #[arg(long)]
    sweep: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let house = args.place.open(Missing::Refuse)?;
    let names = match &args.tenant {
        Some(name) => vec![name.clone()],
        None => house.catalogue.tenants()?.into_iter().map(|it| it.name).collect(),
    };
    let mut n_found = 0;
    for name in names {
        let tenant = house.catalogue.tenant(&name)?;
        let mut found = findings(&tenant)?;
        found.extend(files::findings(&house.blobs, &tenant)?);
        for finding in &found {
            say(format!("{name}: {finding}"))?;
        }
        say(match found.len() {
            0 => format!("{name}: sound"),
            n => format!("{name}: {n} findings"),
        })?;
        n_found += found.len();
        if args.sweep {
            let swept = files::sweep(&house.blobs, &tenant)?;
            say(format!("{name}: swept {}", files::in_words(&swept)))?;
        }
    }
    Ok(if n_found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Lists the inconsistencies of a tenant: by the store's rules, then by the dialects'.
pub(crate) fn findings(tenant: &Tenant) -> anyhow::Result<Vec<String>> {
    let mut found = tenant.check()?;
    found.extend(pinakes_scicat::check::findings(tenant)?);
    Ok(found)
}
