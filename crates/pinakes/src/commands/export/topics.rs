//! `pinakes export topics`: a map of the Conclave dialect as a topic map.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use pinakes_conclave::projection::to_map;
use pinakes_conclave::{TOPIC, Topic, key};
use pinakes_store::{Direction, End, Expr, Query, StoreError};
use pinakes_topicmap::{Format, write};

use super::Output;
use crate::commands::topics::format;
use crate::place::{Missing, TenantPlace};
use crate::terminal::{counted, warn};

/// Writes a map of topics as XTM, JTM or CXTM, from one consistent state, also while it is served.
///
/// `pinakes import topics` takes XTM and JTM back: topics with all they own come back as they were.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pinakes export topics --output map.xtm.gz
  pinakes export topics --map music --to jtm > music.jtm")]
pub(super) struct TopicsArgs {
    #[command(flatten)]
    place: TenantPlace,
    /// Map to write
    #[arg(long, value_name = "NAME", default_value = "default")]
    map: String,
    /// Format: xtm, jtm or cxtm
    #[arg(long, value_name = "FORMAT", value_parser = format, default_value = "xtm")]
    to: Format,
    /// File to write, compressed if its name ends in .gz or .zst [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &TopicsArgs) -> anyhow::Result<ExitCode> {
    let (_house, tenant) = args.place.open(Missing::Refuse)?;
    let (low, high) = (key(&args.map, ""), key(&args.map, "\u{10FFFF}"));
    let topics = tenant.read_blocking(|view| {
        let range = Expr::Range(
            "key".into(),
            End::Included(low.as_str().into()),
            End::Excluded(high.as_str().into()),
        );
        let (mut topics, mut bad) = (Vec::new(), None);
        view.for_each(&TOPIC, &Query::filter(range).sorted("key", Direction::Ascending), |record| {
            match Topic::stored(&record.body) {
                Ok(topic) => topics.push(topic),
                Err(error) => bad = Some(error.detail()),
            }
            ControlFlow::Continue(())
        })?;
        match bad {
            None => Ok(topics),
            Some(reason) => Err(StoreError::Damaged(reason)),
        }
    })?;
    let map = to_map(&topics)?;
    let mut output = Output::open(args.output.as_deref())?;
    write(args.to, &map, &format!("urn:conclave:map:{}", args.map), &mut output)?;
    output.flush()?;
    output.finish()?;
    warn(counted(topics.len() as u64, "topic"));
    Ok(ExitCode::SUCCESS)
}
