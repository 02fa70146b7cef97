//! `pinakes import topics`: topics of the Conclave dialect, from topic maps and dumps.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use pinakes_conclave::import::{Categories, Dmoz, Existing, Load, Mapped, Source as Kind, Streaming};

use crate::commands::import::complete::complete_indexes;
use crate::commands::import::source::Source;
use crate::commands::topics::Document;
use crate::config::Misuse;
use crate::place::{Missing, TenantPlace};
use crate::terminal::{counted, progress, say, thousands};

/// Loads topics: from XTM, JTM, LTM, CTM, SKOS, topic documents, or the dumps of the Open Directory and of Curlie.
///
/// A topic map is read completely and checked before it is written in one transaction. Its statements about existing
/// topics, which are recognised by their identities, are added to them. Dumps and topic documents, one per line (ndjson,
/// as `pinakes export topics` writes them), are written in batches while they are read: for a truncated one the line is
/// reported and everything before it is kept, and loading it again adds nothing twice. New statements are added to
/// existing topics, or replace them with --replace.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes import topics opera.xtm
  pinakes import topics --map music --lenient TapsasConcerts.xtm
  pinakes import topics structure.rdf.u8.gz content.rdf.u8.gz --max-links 10
  pinakes import topics rdf-Arts-s.tsv rdf-Arts-c.tsv")]
pub(super) struct TopicsArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// Files to read, plain or gzip
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Format of the files [default: by the name of each]
    #[arg(long, value_name = "FORMAT", value_parser = kind)]
    from: Option<Kind>,
    /// Map to load the topics into: a-z, 0-9, - and _
    #[arg(long, value_name = "NAME", default_value = "default")]
    map: String,
    /// Replace existing topics
    #[arg(long)]
    replace: bool,
    /// Accept input that the standards do not allow, with a warning, where its meaning is clear
    #[arg(long)]
    lenient: bool,
    /// Links kept for each category of a dump; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_links: usize,
    /// Read dumps as the original loader did, which cut texts at 50 characters
    #[arg(long)]
    seed_profile: bool,
}

pub(super) fn run(args: &TopicsArgs) -> anyhow::Result<ExitCode> {
    let is_plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-' || it == b'_';
    if args.map.is_empty() || args.map.len() > 64 || !args.map.bytes().all(is_plain) {
        return Err(Misuse(format!(
            "--map {:?} is not a name of a map; expected 1 to 64 of a-z, 0-9, - and _",
            args.map
        ))
        .into());
    }
    let (_house, tenant) = args.place.open(Missing::Begin)?;
    // The search index begins when the load ends, before `complete_indexes`.
    let _hurry = tenant.hurry_indexes();
    let begun = Instant::now();
    let existing = if args.replace { Existing::Replace } else { Existing::Merge };
    let how = Dmoz { is_seed: args.seed_profile, n_links_max: args.max_links };
    let mut load = Load::begin(&tenant, existing)?;
    let mut categories = Categories::default();
    let read = args.files.iter().try_for_each(|path| read(args, path, how, &mut categories, &mut load));
    // What was read before an error is kept, and the indexes are built in any case.
    let loaded = load.finish()?;
    complete_indexes(&tenant, &progress(None));
    let n_topics = loaded.n_made + loaded.n_changed;
    let took_s = begun.elapsed().as_secs_f64();
    let rate = thousands((n_topics as f64 / took_s) as u64);
    say(format!(
        "{} in {took_s:.1} s, {rate}/s; {} new",
        counted(n_topics, "topic"),
        thousands(loaded.n_made)
    ))?;
    read?;
    Ok(ExitCode::SUCCESS)
}

/// Parses the name of a file format.
fn kind(name: &str) -> Result<Kind, String> {
    Kind::named(name).ok_or_else(|| format!("expected one of {}", Kind::names().join(", ")))
}

fn read(
    args: &TopicsArgs,
    path: &std::path::Path,
    how: Dmoz,
    categories: &mut Categories,
    load: &mut Load<'_>,
) -> anyhow::Result<()> {
    let name = path.display().to_string();
    let kind = args
        .from
        .or_else(|| Kind::of_file(&name))
        .ok_or_else(|| Misuse(format!("the name of {name} does not indicate a format; give --from")))?;
    if let Kind::Map(format) = kind {
        let document = Document::open(path, Some(format), None)?;
        let map = document.read(args.lenient)?;
        load.add_map(Mapped { map, name: args.map.clone(), base: document.base })?;
        return Ok(());
    }
    let bar = progress(std::fs::metadata(path).ok().map(|it| it.len()));
    let source = Source::open(path)?.with_progress(&bar);
    let map = args.map.as_str();
    let streamed = load.fill(|sink| {
        kind.stream(source.input, &mut Streaming { document: &name, map, how, categories, sink })
    });
    streamed??;
    bar.finish_and_clear();
    Ok(())
}
