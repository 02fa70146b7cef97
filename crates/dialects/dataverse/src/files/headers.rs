//! Headers of added files: FITS headers fill fields of the dataset; for NetCDF and HDF5, the structure is stored as an
//! auxiliary NcML file, and a geographic bounding box is added.
//!
//! If a header cannot be read, the file is added all the same. Existing values are kept.

use std::sync::Arc;

use pinakes_arrays::fits::{self, Header, Kind};
use pinakes_arrays::{ArrayError, Limits, Source, ncml};
use pinakes_blobs::{Blob, Blobs};
use pinakes_store::{Txn, View, Weight};
use serde_json::json;

use super::incoming::{Incoming, blob_of};
use super::kinds::Auxiliary;
use super::rows;
use crate::app::Call;
use crate::blocks::{Gathered, Registry};
use crate::envelope;
use crate::error::{Answer, ApiError};
use crate::files::checksum::{Algorithm, checksum_of};
use crate::files::findings::Found;
use crate::files::kinds::MADE_HERE;
use crate::routing::Routes;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes.post("/files/{id}/extractNcml", extract)
}

/// Regenerates the NcML of a file.
async fn extract(call: Call) -> Answer {
    call.asker.superuser("This API call can be used by superusers only")?;
    let wanted = super::Wanted::of(&call)?;
    let find = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let label = rows::of_file(view, file.id)?.last().map(|it| it.label.clone());
        Ok::<_, ApiError>((file, label.unwrap_or_default()))
    };
    let (file, name) = call.db().read(Weight::Point, find).await?;
    let mut list =
        [Incoming { name, content_type: file.content_type, blob: file.blob, ..Incoming::default() }];
    read(&call, &mut list).await?;
    let found = list[0].header.clone().filter(|it| it.beside.is_some());
    let is_made = found.is_some();
    if let Some(found) = found {
        call.db().write(move |txn: &mut Txn<'_>| found.put_beside(txn, file.id)).await?;
    }
    envelope::ok(json!({"result": is_made}))
}

/// Reads the headers of those files that have a supported format.
pub(crate) async fn read(call: &Call, list: &mut [Incoming]) -> Result<(), ApiError> {
    for it in list.iter_mut() {
        let is_fits = it.content_type == "application/fits";
        if !is_fits && !matches!(it.content_type.as_str(), "application/netcdf" | "application/x-hdf5") {
            continue;
        }
        let Some(blob) = it.blob.as_deref().map(blob_of).transpose()? else { continue };
        let registry = call.app.registry(call.db()).await?;
        let (blobs, tenant, name) =
            (call.app.context.blobs().clone(), call.tenant().to_owned(), it.name.clone());
        let work = move || match is_fits {
            true => of_fits(&source(&blobs, &tenant, blob), registry),
            false => of_structure(&blobs, &tenant, blob, &name, registry),
        };
        let read = tokio::task::spawn_blocking(work).await;
        match read.unwrap_or_else(|_| Err("its reader failed".to_owned())) {
            Ok(found) => it.header = Some(Arc::new(found)),
            Err(reason) => tracing::info!(file = it.name, reason, "the header of a file is not read"),
        }
    }
    Ok(())
}

fn source(blobs: &Blobs, tenant: &str, blob: Blob) -> Source {
    let (blobs, tenant) = (blobs.clone(), tenant.to_owned());
    Source::new(blob.length, move |offset, n| {
        let reader = blobs.reader(&tenant, &blob, Some(offset..offset + n as u64));
        let mut bytes = Vec::with_capacity(n);
        let mut reader = reader.map_err(|error| error.to_string())?;
        std::io::Read::read_to_end(&mut reader, &mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    })
}

/// Keywords that are listed in the description, in the order of the original.
const TOLD: [&str; 14] = [
    "CRVAL2", "NAXIS", "INSTRUME", "NAXIS1", "NAXIS0", "OBJECT", "FILTER", "TELESCOP", "EXPTIME", "CD1_1",
    "CDELT1", "CRVAL1", "TARGNAME", "DATE-OBS",
];

fn of_fits(source: &Source, registry: Arc<Registry>) -> Result<Found, String> {
    let headers = fits::headers(source, &Limits::default()).map_err(|error: ArrayError| error.to_string())?;
    let first = |keyword: &str| {
        let found = headers.iter().filter(|it| it.kind == Kind::Image).find_map(|it| it.value(keyword));
        found.or_else(|| headers.iter().find_map(|it| it.value(keyword))).filter(|it| !it.is_empty())
    };
    let n_axes =
        headers.iter().filter(|it| it.kind == Kind::Image).map(|it| it.axes.len()).max().unwrap_or(0);
    let is_told = |keyword: &str| match keyword {
        // Axes are counted from 0; a sky position has two coordinates.
        "NAXIS0" => 0 < n_axes,
        "NAXIS1" => 1 < n_axes,
        "CRVAL2" => first("CRVAL1").is_some(),
        _ => first(keyword).is_some(),
    };
    let told: Vec<&str> = TOLD.into_iter().filter(|it| is_told(it)).collect();
    let mut all = Gathered::new(&registry);
    let of_kind = |kind: Kind| headers.iter().filter(move |it| it.kind == kind);
    if of_kind(Kind::Image).any(|it| it.axes.iter().any(|length| 0 < *length)) {
        all.text("astroType", "Image");
    }
    let texts: [(&'static str, &[&str]); 6] = [
        ("astroFacility", &["TELESCOP"]),
        ("astroInstrument", &["INSTRUME"]),
        ("astroObject", &["OBJECT", "TARGNAME"]),
        ("resolution.Spatial", &["CDELT1", "CD1_1"]),
        ("resolution.Temporal", &["EXPTIME"]),
        ("coverage.Spectral.Bandpass", &["FILTER"]),
    ];
    for (field, keywords) in texts {
        let value = keywords.iter().find_map(|it| first(it));
        all.text(field, value.unwrap_or_default());
    }
    if let (Some(right_ascension), Some(declination)) = (first("CRVAL1"), first("CRVAL2")) {
        all.text("coverage.Spatial", &format!("({right_ascension} {declination})"));
    }
    let day = |keyword: &str| first(keyword).and_then(day_of).unwrap_or_default();
    let (start, stop) = (day("DATE-OBS"), day("DATE-END"));
    let times =
        [("coverage.Temporal.StartTime", start.as_str()), ("coverage.Temporal.StopTime", stop.as_str())];
    all.compound("coverage.Temporal", &times);
    let fields = all.into_fields()?;
    Ok(Found { description: Some(description(&headers, &told)), registry, fields, beside: None })
}

fn description(headers: &[Header], told: &[&str]) -> String {
    let count = |kind: Kind| headers.iter().filter(|it| it.kind == kind).count();
    let mut text = format!("FITS file, {} HDUs total:\nThe primary HDU; ", headers.len());
    let kinds = [
        (Kind::Table, "Table HDU(s) "),
        (Kind::Image, "Image HDU(s); "),
        (Kind::Other, "undefined HDU(s); "),
    ];
    for (kind, name) in kinds {
        if let n @ 1.. = count(kind) {
            text.push_str(&format!("{n} {name}"));
        }
    }
    text.push('\n');
    if !told.is_empty() {
        text.push_str("The following recognized metadata keys have been found in the FITS file:\n");
        told.iter().for_each(|it| text.push_str(&format!("{it}; ")));
        text.push('\n');
    }
    text
}

/// Returns the date in a FITS value: `1993-04-22`, with or without a time, or `22/04/93` in the twentieth century.
fn day_of(text: &str) -> Option<String> {
    let number = |it: &str| it.parse::<u32>().ok();
    let day = text.split('T').next()?.trim();
    let between = if day.contains('/') { '/' } else { '-' };
    let parts: Vec<&str> = day.split(between).collect();
    let (year, month, day) = match (between, parts.as_slice()) {
        ('-', [year, month, day]) if year.len() == 4 => (number(year)?, number(month)?, number(day)?),
        ('/', [day, month, year]) if year.len() == 2 => (1900 + number(year)?, number(month)?, number(day)?),
        _ => return None,
    };
    let is_day = (1..=12).contains(&month) && (1..=31).contains(&day);
    is_day.then(|| format!("{year:04}-{month:02}-{day:02}"))
}

fn of_structure(
    blobs: &Blobs,
    tenant: &str,
    blob: Blob,
    name: &str,
    registry: Arc<Registry>,
) -> Result<Found, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let described = ncml::describe(&source(blobs, tenant, blob), name, &Limits::default());
    let described = described.map_err(|error| text(&error))?;
    let kept = blobs.put_blocking(tenant, described.xml.as_bytes()).map_err(|error| text(&error))?;
    let beside = Auxiliary {
        format_tag: "NcML".to_owned(),
        format_version: "0.1".to_owned(),
        origin: Some(MADE_HERE.to_owned()),
        is_public: true,
        content_type: "text/xml".to_owned(),
        file_size: kept.length,
        checksum: json!({"type": "MD5", "value": checksum_of(Algorithm::Md5, described.xml.as_bytes())}),
        blob: kept.to_string(),
        ..Auxiliary::default()
    };
    let mut all = Gathered::new(&registry);
    if let Some(it) = described.bounds {
        let sides = [it.west, it.east, it.north, it.south].map(|it| it.to_string());
        let names = ["westLongitude", "eastLongitude", "northLatitude", "southLatitude"];
        let children: Vec<(&str, &str)> = names.into_iter().zip(sides.iter().map(String::as_str)).collect();
        all.compound("geographicBoundingBox", &children);
    }
    let fields = all.into_fields()?;
    Ok(Found { description: None, registry, fields, beside: Some(beside) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_fits() {
        assert_eq!(day_of("22/04/93").as_deref(), Some("1993-04-22"));
        assert_eq!(day_of("2019-12-01T03:04:05.6").as_deref(), Some("2019-12-01"));
        assert_eq!(day_of("2019-13-01"), None);
        assert_eq!(day_of("yesterday"), None);
    }
}
