//! `pinakes export topics`: a map of the Conclave dialect as a topic map, or as topic documents.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use pinakes_conclave::projection::to_map;
use pinakes_conclave::{OfMap, TOPIC, Topic, key, line};
use pinakes_store::{Direction, End, Expr, Query};
use pinakes_topicmap::{Format, write};

use crate::commands::export::output::Output;
use crate::place::{Missing, TenantPlace};
use crate::terminal::{counted, warn};

/// Writes a map of topics as XTM 2.1, 2.0 or 1.0, JTM, CXTM or NDJSON, from one consistent state, also while it is served.
///
/// `pinakes import topics` reads XTM 2.1, JTM and NDJSON back without loss. XTM 2.0 gives each topic an additional id;
/// XTM 1.0 lacks types of names, datatypes, and statements about roles. NDJSON, one topic document a line, is written
/// as it is read; the other formats hold the whole map in memory.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes export topics --output map.xtm.gz
  pinakes export topics --map music --to jtm > music.jtm
  pinakes export topics --to ndjson | jq -r .label")]
pub(super) struct TopicsArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// Map to write
    #[arg(long, value_name = "NAME", default_value = "default")]
    map: String,
    /// Format: xtm (2.1), xtm2, xtm1, jtm, cxtm or ndjson
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "xtm")]
    to: Written,
    /// File to write, compressed if its name ends in .gz or .zst [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The formats a map can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Written {
    Xtm,
    Xtm2,
    Xtm1,
    Jtm,
    Cxtm,
    Ndjson,
}

pub(super) fn run(args: &TopicsArgs) -> anyhow::Result<ExitCode> {
    let (_house, tenant) = args.place.open(Missing::Refuse)?;
    let format = match args.to {
        Written::Xtm => Some(Format::Xtm),
        Written::Xtm2 => Some(Format::Xtm2),
        Written::Xtm1 => Some(Format::Xtm1),
        Written::Jtm => Some(Format::Jtm),
        Written::Cxtm => Some(Format::Cxtm),
        Written::Ndjson => None,
    };
    let mut output = Output::open(args.output.as_deref())?;
    let (low, high) = (key(&args.map, ""), key(&args.map, "\u{10FFFF}"));
    let (mut topics, mut of_map) = (Vec::new(), OfMap::default());
    let mut n_topics = 0_u64;
    tenant.read_blocking(|view| -> anyhow::Result<()> {
        let range = Expr::Range(
            "key".into(),
            End::Included(low.as_str().into()),
            End::Excluded(high.as_str().into()),
        );
        view.try_for_each(&TOPIC, &Query::filter(range).sorted("key", Direction::Ascending), |record| {
            n_topics += 1;
            let topic = Topic::stored(&record.body)?;
            match format {
                Some(_) => topics.push(topic),
                None => output.write_all(line(&topic).as_bytes())?,
            }
            Ok::<_, anyhow::Error>(())
        })?;
        of_map = OfMap::stored(view, &args.map)?;
        Ok(())
    })?;
    if let Some(format) = format {
        write(format, &to_map(&topics, &of_map)?, &format!("urn:conclave:map:{}", args.map), &mut output)?;
    }
    output.flush()?;
    output.finish()?;
    warn(counted(n_topics, "topic"));
    Ok(ExitCode::SUCCESS)
}
