//! `labe-data`: files of a library with the size of the `labe` scenario, from a seed, for our server or an original.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::Scale;
use super::labe::shape_of;
use crate::error::BenchError;
use crate::generate::library::Library;
use crate::verdict::thousands;

/// Bytes written at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Options of the generator.
#[derive(Clone, Debug, Args)]
pub struct LabeDataArgs {
    /// Size: `quick` 20,000 ids and 400,000 citations; else 1,090,000 ids and 29,600,000 citations (some 7 GB).
    #[arg(long, value_enum, default_value_t)]
    pub scale: Scale,
    /// Seed; `bench labe` must be given the same.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder for the files; made if needed.
    #[arg(long)]
    pub out: PathBuf,
}

/// Writes the files; returns the commands that serve them.
pub fn run(args: &LabeDataArgs) -> Result<String, BenchError> {
    let folder = &args.out;
    std::fs::create_dir_all(folder).map_err(|source| BenchError::Write { path: folder.clone(), source })?;
    let shape = shape_of(args.scale);
    let library = Library::new(args.seed, shape);
    write(folder, "ids.tsv", &mut |out| {
        (0..shape.n_ids).try_for_each(|n| writeln!(out, "{}", library.id_row(n)))
    })?;
    write(folder, "documents.jsonl", &mut |out| {
        (0..shape.n_ids).try_for_each(|n| writeln!(out, "{}", library.document(n)))
    })?;
    write(folder, "citations.csv", &mut |out| library.write_citations(out))?;
    write(folder, "pinakes.toml", &mut |out| out.write_all(settings(folder).as_bytes()))?;
    let path = folder.display();
    Ok(format!(
        "{ids} ids, {citations} citations in {path}. To serve them:\n\
         pinakes citations build --edges {path}/citations.csv --ids {path}/ids.tsv --out {path}/citations.graph\n\
         pinakes import documents --config {path}/pinakes.toml {path}/documents.jsonl\n\
         pinakes serve --config {path}/pinakes.toml\n",
        ids = thousands(shape.n_ids),
        citations = thousands(shape.n_citations),
    ))
}

fn settings(folder: &Path) -> String {
    let quoted = |name: &str| serde_json::Value::from(folder.join(name).to_string_lossy()).to_string();
    format!(
        "[server]\nlisten = \"127.0.0.1:8000\"\ndata = {}\n\n[labe]\ngraph = {}\n",
        quoted("data"),
        quoted("citations.graph")
    )
}

fn write(
    folder: &Path,
    name: &str,
    fill: &mut dyn FnMut(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), BenchError> {
    let path = folder.join(name);
    let failed = |source| BenchError::Write { path: path.clone(), source };
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, File::create(&path).map_err(failed)?);
    fill(&mut out).and_then(|()| out.flush()).map_err(failed)
}
