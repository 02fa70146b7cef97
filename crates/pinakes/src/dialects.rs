//! How each dialect of this server is constructed, and mounted where the settings say.

use anyhow::Context as _;
use pinakes_http::{Context, Mount, Neighbour, Shell};
use pinakes_scicat::testing::Testing;
use pinakes_store::Kind;

use crate::config::{Config, Misuse};
use crate::dialect::Dialect;

/// What dialects are constructed from.
pub(crate) struct Parts {
    /// The server's parts.
    pub(crate) context: Context,
    /// The settings.
    pub(crate) config: Config,
    /// Every kind of the catalogue.
    pub(crate) kinds: &'static [&'static Kind],
    /// Whether the routes that empty the catalogue are wanted.
    pub(crate) testing: Testing,
    /// Functions to call at SIGHUP.
    pub(crate) at_hangup: Vec<Box<dyn Fn() + Send + Sync>>,
    /// What is mounted already.
    pub(crate) neighbours: Vec<Neighbour>,
}

fn scicat(parts: &mut Parts) -> anyhow::Result<Mount> {
    let settings = std::mem::take(&mut parts.config.scicat);
    Ok(pinakes_scicat::mount(parts.context.clone(), settings, parts.testing))
}

fn labe(parts: &mut Parts) -> anyhow::Result<Mount> {
    let settings = std::mem::take(&mut parts.config.labe);
    let data = parts.config.server.data.clone();
    let settings = pinakes_labe::Settings { kinds: parts.kinds, data, ..settings };
    let (mount, reload) = pinakes_labe::mount(parts.context.clone(), settings)?;
    parts.at_hangup.push(Box::new(move || reload.now()));
    Ok(mount)
}

fn folio(parts: &mut Parts) -> anyhow::Result<Mount> {
    let settings = std::mem::take(&mut parts.config.folio);
    Ok(pinakes_folio::mount(parts.context.clone(), settings))
}

fn dataverse(parts: &mut Parts) -> anyhow::Result<Mount> {
    let settings = std::mem::take(&mut parts.config.dataverse);
    Ok(pinakes_dataverse::mount(parts.context.clone(), settings))
}

fn conclave(parts: &mut Parts) -> anyhow::Result<Mount> {
    let settings = std::mem::take(&mut parts.config.conclave);
    Ok(pinakes_conclave::mount(parts.context.clone(), settings)?)
}

fn site(parts: &mut Parts) -> anyhow::Result<Mount> {
    let settings = std::mem::take(&mut parts.config.site);
    Ok(pinakes_site::mount(parts.context.clone(), settings, parts.neighbours.clone())?)
}

/// Constructs a dialect. Takes its own table out of the settings.
fn made(dialect: Dialect, parts: &mut Parts) -> anyhow::Result<Mount> {
    match dialect {
        Dialect::Scicat => scicat(parts),
        Dialect::Labe => labe(parts),
        Dialect::Folio => folio(parts),
        Dialect::Dataverse => dataverse(parts),
        Dialect::Conclave => conclave(parts),
        Dialect::Site => site(parts),
    }
}

/// Mounts the dialects that the settings name, where they say.
///
/// Errors: two in the same place; a dialect that cannot be constructed.
pub(crate) fn mount(mut shell: Shell, parts: &mut Parts) -> anyhow::Result<Shell> {
    let wanted = std::mem::take(&mut parts.config.dialects);
    for dialect in Dialect::ALL.into_iter().filter(|it| wanted.iter().any(|name| name == it.name())) {
        let name = dialect.name();
        let mount = made(dialect, parts).with_context(|| format!("{name} cannot be served"))?;
        let point = parts.config.mounts.get(name).cloned().unwrap_or_default();
        let mount = Mount { point, ..mount };
        parts.neighbours.push(Neighbour::of(&mount));
        shell = shell.mount(mount).map_err(|error| Misuse(error.to_string()))?;
    }
    Ok(shell)
}
