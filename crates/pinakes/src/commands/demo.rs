//! `pinakes demo`: a fresh catalogue full of sample records, with accounts, served.

pub(crate) mod accounts;
mod seed;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use pinakes_accounts::{Clock, Entropy, Password};
use pinakes_dataverse::AdminAccess;
use pinakes_scicat::import::Importer;
use pinakes_scicat::testing::Testing;
use pinakes_store::Tenant;

use super::backup::require_empty;
use super::import::load_built_in;
use super::serve::{begin_log, serve};
use crate::catalogue::{House, block_on};
use crate::commands::demo::accounts::{ACCOUNTS, Account};
use crate::commands::import::source::Source;
use crate::config::{Config, Misuse};
use crate::place::{Missing, open};
use crate::terminal::{say, table, warn};

/// Settings of the sample site.
const SETTINGS: &str = include_str!("../../demo/pinakes.toml");

/// The sample records; `demo/README.md` says where they come from.
const RECORDS: [(&str, &[u8]); 7] = [
    ("datasets", include_bytes!("../../demo/datasets.ndjson")),
    ("origdatablocks", include_bytes!("../../demo/origdatablocks.ndjson")),
    ("attachments", include_bytes!("../../demo/attachments.ndjson")),
    ("samples", include_bytes!("../../demo/samples.ndjson")),
    ("proposals", include_bytes!("../../demo/proposals.ndjson")),
    ("instruments", include_bytes!("../../demo/instruments.ndjson")),
    ("published data", include_bytes!("../../demo/published_data.ndjson")),
];

/// Fills a fresh catalogue with sample records and serves it.
///
/// The samples are fifty datasets of six facilities with files, samples, proposals, instruments, thumbnails and
/// publications, a library of 1,000 titles with items and patrons, a small citation graph, a deposit and a topic map.
/// They are loaded by the code that imports and serves real ones. Prints the URLs, the logins, and requests to try.
/// Without --data the catalogue is in a temporary folder that is removed at the end.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes demo
  pinakes demo --listen 127.0.0.1:0         a free port, which is printed
  pinakes demo --data my-catalogue          keep it, to serve it later with `pinakes serve`")]
pub(crate) struct Args {
    /// Where to listen; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:3000")]
    listen: SocketAddr,
    /// Folder to create the catalogue in; it must be empty if it exists
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut config: Config = toml::from_str(SETTINGS).context("the demo's settings are damaged")?;
    config.server.listen = args.listen;
    begin_log(&config)?;
    if !args.listen.ip().is_loopback() {
        warn("WARNING: everybody knows the demo's passwords, and it listens beyond this machine.");
    }
    // Removed when it is dropped, also after an error.
    let temporary = match &args.data {
        Some(data) => {
            require_empty(data)?;
            config.server.data.clone_from(data);
            None
        }
        None => {
            let made = tempfile::Builder::new().prefix("pinakes-demo-").tempdir();
            let folder =
                made.map_err(|error| Misuse(format!("no temporary folder: {error}; name one with --data")))?;
            config.server.data = folder.path().to_owned();
            Some(folder)
        }
    };
    config.labe.graph = seed::graph(&config.server.data);
    config.folio.sample_locations = true; // where the demo's items are shelved
    // Nobody knows this key: the paths of Dataverse's own administrators are open while the samples are loaded, and
    // closed afterwards.
    let key = Entropy::System.uuid_at(Clock::System.now_ms()).to_string();
    config.dataverse.builtin_users_key.clone_from(&key);
    config.dataverse.admin_unblock_key.clone_from(&key);
    config.dataverse.admin_access = AdminAccess::Key;
    let house = open(config, Missing::Begin)?;
    fill(&house)?;
    seed::citations(&house.config.server.data)?;
    let served = serve(house, Testing::Off, &notes(), async |neighbours, context| {
        say(format!("and {}", seed::fill(neighbours, context, &key).await?))
    });
    if let Some(folder) = temporary {
        folder.close().context("the demo's temporary folder cannot be removed")?;
    }
    served
}

/// Fills in accounts and records, through the same code as everybody's.
fn fill(house: &House) -> anyhow::Result<()> {
    let tenant = house.catalogue.tenant(&house.config.tenants.default)?;
    for account in &ACCOUNTS {
        add(house, &tenant, account)?;
    }
    let importer = Importer::new(house.context(), house.config.scicat.clone(), "ingestor", None);
    let sources = RECORDS.iter().map(|(name, content)| Source::built_in(name, content)).collect();
    let lines = load_built_in(&importer, &tenant, sources)?;
    say(format!("sample records loaded: {}", lines.join("; ")))
}

fn add(house: &House, tenant: &Tenant, account: &Account) -> anyhow::Result<()> {
    let mut user = house.accounts.new_user(account.name);
    user.groups = account.groups.iter().map(|it| (*it).to_owned()).collect();
    user.email = Some(format!("{}@example.org", account.name));
    let password = Password::new(account.password)?;
    block_on(async { Ok(house.accounts.create(tenant, user, Some(password)).await?) })?;
    Ok(())
}

/// Returns what is printed below the addresses.
fn notes() -> Vec<String> {
    let row = |it: &Account| vec![it.name.to_owned(), it.password.to_owned(), it.may.to_owned()];
    let logins = table(&["login", "password", "may"], &ACCOUNTS.iter().map(row).collect::<Vec<_>>());
    vec![
        String::new(),
        logins,
        "\nTry:".to_owned(),
        "  curl '{url}/api/v3/datasets/count'".to_owned(),
        "  curl -G '{url}/api/v3/datasets/fullquery' --data-urlencode 'fields={\"text\":\"lung tissue\"}' \
         --data-urlencode 'limits={\"limit\":2,\"order\":\"createdAt:desc\"}'"
            .to_owned(),
        "  curl '{url}/api/v3/auth/login' -H 'Content-Type: application/json' \
         -d '{\"username\":\"ada\",\"password\":\"ada-demo\"}'"
            .to_owned(),
        "  curl '{url}/authn/login' -H 'X-Okapi-Tenant: default' -H 'Content-Type: application/json' \
         -d '{\"username\":\"admin\",\"password\":\"admin-demo\"}'"
            .to_owned(),
        "\nOpen {url}/ in a browser: the front page. The desk lends items 100000 to 100999 to patrons 900000 to 900019."
            .to_owned(),
        "Stop with Ctrl-C.".to_owned(),
    ]
}
