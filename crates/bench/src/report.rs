//! Reports of a run: `report.md` for reading in a terminal or a repository, `report.html` for viewing,
//! `result.json` for programs, `raw.csv.gz` for those who distrust all three.

pub mod axis;
pub mod html;
pub mod markdown;
pub mod plots;
pub mod raw;

use std::fs;
use std::path::Path;

use crate::error::BenchError;
use crate::result::RunResult;

/// Writes all reports of `result` into the folder `out`.
pub fn write_all(result: &RunResult, out: &Path) -> Result<(), BenchError> {
    write_result(result, out)?;
    write(&out.join("report.md"), markdown::render(result).as_bytes())?;
    let raw_path = out.join("raw.csv.gz");
    let compressed =
        raw::compressed(result).map_err(|source| BenchError::Write { path: raw_path.clone(), source })?;
    write(&raw_path, &compressed)?;
    write(&out.join("report.html"), html::render(result)?.as_bytes())
}

/// Writes `result.json`.
pub fn write_result(result: &RunResult, out: &Path) -> Result<(), BenchError> {
    let path = out.join("result.json");
    let json = serde_json::to_vec_pretty(result)
        .map_err(|error| BenchError::BadResult { path: path.clone(), reason: error.to_string() })?;
    write(&path, &json)
}

/// Writes a temporary file and renames it, so that a full disk or a kill never leaves a partial file in place
/// of a complete one.
fn write(path: &Path, bytes: &[u8]) -> Result<(), BenchError> {
    let temporary = path.with_extension("part");
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        // An incomplete file is useless; removing it may fail for the same reason.
        let _kept = fs::remove_file(&temporary);
        BenchError::Write { path: path.to_owned(), source }
    })
}
