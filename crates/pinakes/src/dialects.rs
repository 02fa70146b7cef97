//! The dialects of this server, and the pages beside them: a line each in [`DIALECTS`].

use anyhow::Context as _;
use pinakes_http::{Context, Mount, Neighbour, Shell};
use pinakes_scicat::testing::Testing;
use pinakes_store::Kind;

use crate::config::{Config, Misuse};

/// A dialect, and how it is made from the settings.
struct Dialect {
    /// Its name in `dialects` and `[mounts]`.
    name: &'static str,
    /// What it keeps.
    kinds: fn() -> &'static [&'static Kind],
    /// Makes it. Takes its own table out of the settings.
    mount: fn(&mut Parts) -> anyhow::Result<Mount>,
}

/// Every dialect. What is added here is served, can be configured and is known to every command.
const DIALECTS: [Dialect; 6] = [
    Dialect { name: "scicat", kinds: || &pinakes_scicat::KINDS, mount: scicat },
    Dialect { name: "labe", kinds: || pinakes_labe::KINDS, mount: labe },
    Dialect { name: "folio", kinds: pinakes_folio::kinds, mount: folio },
    Dialect { name: "dataverse", kinds: pinakes_dataverse::kinds, mount: dataverse },
    Dialect { name: "conclave", kinds: || pinakes_conclave::KINDS, mount: conclave },
    // Last, as it shows what those before it serve.
    Dialect { name: "site", kinds: || &[], mount: site },
];

/// What dialects are made of.
pub(crate) struct Parts {
    /// The server's parts.
    pub(crate) context: Context,
    /// The settings.
    pub(crate) config: Config,
    /// Every kind of the catalogue.
    pub(crate) kinds: &'static [&'static Kind],
    /// Whether the routes that empty the catalogue are wanted.
    pub(crate) testing: Testing,
    /// What is done at SIGHUP.
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

/// Names of all dialects.
pub(crate) fn names() -> Vec<String> {
    DIALECTS.iter().map(|it| it.name.to_owned()).collect()
}

/// Every kind of every dialect, of those too that are not served.
pub(crate) fn kinds() -> Vec<&'static Kind> {
    DIALECTS.iter().flat_map(|it| (it.kinds)()).copied().collect()
}

/// Puts the dialects that the settings ask for where they ask for them.
///
/// Errors: two in one place; a dialect that cannot be made.
pub(crate) fn mount(mut shell: Shell, parts: &mut Parts) -> anyhow::Result<Shell> {
    let wanted = std::mem::take(&mut parts.config.dialects);
    for dialect in DIALECTS.iter().filter(|it| wanted.iter().any(|name| name == it.name)) {
        let mount = (dialect.mount)(parts).with_context(|| format!("{} cannot be served", dialect.name))?;
        let point = parts.config.mounts.get(dialect.name).cloned().unwrap_or_default();
        let mount = Mount { point, ..mount };
        parts.neighbours.push(Neighbour::of(&mount));
        shell = shell.mount(mount).map_err(|error| Misuse(error.to_string()))?;
    }
    Ok(shell)
}

/// Whether `dialects` and `[mounts]` name dialects that there are.
pub(crate) fn check(config: &Config) -> Result<(), Misuse> {
    let unknown = |name: &&String| DIALECTS.iter().all(|it| it.name != name.as_str());
    let known = || DIALECTS.map(|it| it.name).join(", ");
    if let Some(name) = config.dialects.iter().find(unknown) {
        return Err(Misuse(format!("dialects: there is no dialect {name:?}; expected some of {}", known())));
    }
    if let Some(name) = config.mounts.keys().find(unknown) {
        return Err(Misuse(format!("mounts.{name}: there is no such dialect; expected one of {}", known())));
    }
    if config.dialects.is_empty() {
        return Err(Misuse(format!("dialects is empty; name some of {}", known())));
    }
    Ok(())
}
