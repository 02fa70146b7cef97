//! Writes a dump with the shape of the real citation graph, for measuring builds and servers.
//!
//! ```text
//! cargo run --release -p pinakes-citations --example synthetic -- FOLDER [DOIS CITATIONS SEED coci|pairs]
//! ```
//!
//! Writes `FOLDER/edges.csv` (or `.tsv`) and `FOLDER/ids.tsv`; the default is the size at which the service that
//! Pinakes replaces was measured: 1.09 million ids, 29.6 million citations.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use pinakes_citations::synthetic::{Format, Shape, Synthetic};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = PathBuf::from(
        arguments.first().ok_or("which folder? usage: synthetic FOLDER [DOIS CITATIONS SEED coci|pairs]")?,
    );
    let figure =
        |place: usize, otherwise: u64| arguments.get(place).map_or(Ok(otherwise), |text| text.parse());
    let shape = Shape {
        n_dois: u32::try_from(figure(1, u64::from(Shape::MEASURED.n_dois))?)?,
        n_citations: figure(2, Shape::MEASURED.n_citations)?,
        seed: figure(3, Shape::MEASURED.seed)?,
    };
    let (format, name) = match arguments.get(4).map(String::as_str) {
        None | Some("coci") => (Format::Coci, "edges.csv"),
        Some("pairs") => (Format::Pairs, "edges.tsv"),
        Some(other) => return Err(format!("unknown format {other:?}; coci or pairs").into()),
    };
    std::fs::create_dir_all(&folder)?;
    let graph = Synthetic::new(shape);
    graph.write_edges(format, &mut BufWriter::new(File::create(folder.join(name))?))?;
    graph.write_ids(&mut BufWriter::new(File::create(folder.join("ids.tsv"))?))?;
    Ok(())
}
