//! Media types of files: detection by content and name, and display names.

use pinakes_tabular::{Format, sniff, stata_format};

/// Number of first bytes that detection uses.
pub(crate) const HEAD_BYTES: usize = 1024;

/// Tab-separated text of an ingested table.
pub(crate) const TAB: &str = "text/tab-separated-values";

/// Media type of unknown files.
pub(crate) const UNKNOWN: &str = "application/octet-stream";
/// An R workspace.
const R_WORKSPACE: &str = "application/x-rlang-transport";

/// (file name, media type) of files without an extension.
const BY_NAME: &[(&str, &str)] = &[
    ("Dockerfile", "application/x-docker-file"),
    ("Makefile", "text/x-makefile"),
    ("Snakefile", "text/x-snakemake"),
    ("Snakemake", "text/x-snakemake"),
    ("Vagrantfile", "application/x-vagrant-file"),
];

/// (extension, media type).
const BY_EXTENSION: &[(&str, &str)] = &[
    ("7z", "application/x-7z-compressed"),
    ("ado", "application/x-stata-ado"),
    ("avi", "video/avi"),
    ("bmp", "image/bmp"),
    ("bz2", "application/x-bzip2"),
    ("c", "text/x-c"),
    ("cpp", "text/x-c++"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("cwl", "text/x-computational-workflow"),
    ("dag", "text/x-dagman"),
    ("dbf", "application/dbase"),
    ("dcm", "application/dicom"),
    ("do", "application/x-stata-syntax"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("dta", "application/x-stata"),
    ("eln", "application/vnd.eln+zip"),
    ("fits", "application/fits"),
    ("geojson", "application/geo+json"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("h5", "application/x-hdf5"),
    ("hdf5", "application/x-hdf5"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ipynb", "application/x-ipynb+json"),
    ("java", "text/x-java-source"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "application/javascript"),
    ("json", "application/json"),
    ("jsonld", "application/ld+json"),
    ("m", "text/x-matlab"),
    ("m4a", "audio/mp4"),
    ("mat", "application/matlab-mat"),
    ("md", "text/markdown"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("nc", "application/netcdf"),
    ("nf", "text/x-nextflow"),
    ("nii", "image/nii"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("parquet", "application/vnd.apache.parquet"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("por", "application/x-spss-por"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("prj", "application/prj"),
    ("py", "text/x-python"),
    ("r", "type/x-r-syntax"),
    ("rar", "application/rar"),
    ("rb", "text/x-ruby-script"),
    ("rda", R_WORKSPACE),
    ("rdata", R_WORKSPACE),
    ("rmd", "text/x-r-notebook"),
    ("rst", "text/x-rst"),
    ("rtf", "application/rtf"),
    ("sas", "application/x-sas-syntax"),
    ("sav", "application/x-spss-sav"),
    ("sbn", "application/sbn"),
    ("sbx", "application/sbx"),
    ("shp", "application/shp"),
    ("shx", "application/shx"),
    ("smcl", "application/x-stata-smcl"),
    ("sps", "application/x-spss-syntax"),
    ("svg", "image/svg+xml"),
    ("swc", "application/x-swc"),
    ("tab", "text/tab-separated-values"),
    ("tar", "application/x-tar"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("tsv", "text/tsv"),
    ("txt", "text/plain"),
    ("wav", "audio/wav"),
    ("wdl", "text/x-workflow-description-language"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("xz", "application/x-xz"),
    ("zip", "application/zip"),
    ("zsav", "application/x-spss-sav"),
];

/// (media type, display name).
const FRIENDLY: &[(&str, &str)] = &[
    ("application/dbase", "dBASE Table"),
    ("application/dicom", "DICOM Image"),
    ("application/fits", "FITS"),
    ("application/geo+json", "GeoJSON"),
    ("application/gzip", "Gzip Archive"),
    ("application/javascript", "Javascript Code"),
    ("application/json", "JSON"),
    ("application/matlab-mat", "MATLAB Data"),
    ("application/msword", "MS Word"),
    ("application/netcdf", "Network Common Data Form"),
    ("application/octet-stream", "Unknown"),
    ("application/pdf", "Adobe PDF"),
    ("application/prj", "ESRI Projection"),
    ("application/rar", "RAR Archive"),
    ("application/sbn", "ESRI Spatial Index"),
    ("application/sbx", "ESRI Spatial Index"),
    ("application/shp", "Shape"),
    ("application/shx", "Shape Index"),
    ("application/vnd.apache.parquet", "Apache Parquet"),
    ("application/vnd.ms-excel", "MS Excel Spreadsheet"),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "MS Powerpoint"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "MS Excel Spreadsheet"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "MS Word"),
    ("application/x-7z-compressed", "7Z Archive"),
    ("application/x-bzip2", "Bzip2 Archive"),
    ("application/x-docker-file", "Docker Image File"),
    ("application/x-hdf5", "Hierarchical Data Format"),
    ("application/x-ipynb+json", "Jupyter Notebook"),
    ("application/x-rlang-transport", "R Data"),
    ("application/x-spss-por", "SPSS Portable"),
    ("application/x-spss-sav", "SPSS Binary"),
    ("application/x-spss-syntax", "SPSS Syntax"),
    ("application/x-stata", "Stata Binary"),
    ("application/x-stata-13", "Stata 13 Binary"),
    ("application/x-stata-14", "Stata 14 Binary"),
    ("application/x-stata-15", "Stata 15 Binary"),
    ("application/x-stata-ado", "Stata Ado Script"),
    ("application/x-stata-smcl", "Stata Log"),
    ("application/x-stata-syntax", "Stata Syntax"),
    ("application/x-swc", "SWC"),
    ("application/x-tar", "TAR Archive"),
    ("application/x-vagrant-file", "Vagrant Image File"),
    ("application/x-xz", "XZ Archive"),
    ("application/xml", "XML"),
    ("application/zip", "ZIP Archive"),
    ("application/zipped-shapefile", "Shapefile as ZIP Archive"),
    ("audio/mp4", "MPEG-4 Audio"),
    ("audio/mpeg", "MP3 Audio"),
    ("audio/wav", "Waveform Audio"),
    ("image/bmp", "Bitmap Image"),
    ("image/gif", "GIF Image"),
    ("image/jpeg", "JPEG Image"),
    ("image/nii", "NIfTI Image"),
    ("image/png", "PNG Image"),
    ("image/svg+xml", "SVG Image"),
    ("image/tiff", "TIFF Image"),
    ("text/comma-separated-values", "Comma Separated Values"),
    ("text/csv", "Comma Separated Values"),
    ("text/html", "HTML"),
    ("text/markdown", "Markdown Text"),
    ("text/plain", "Plain Text"),
    ("text/tab-separated-values", "Tab-Delimited"),
    ("text/tsv", "Tab-Separated Values"),
    ("text/x-computational-workflow", "Computational Workflow"),
    ("text/x-dagman", "DAGMan Workflow"),
    ("text/x-makefile", "Makefile"),
    ("text/x-matlab", "MATLAB Source Code"),
    ("text/x-nextflow", "Nextflow Script"),
    ("text/x-python", "Python Source Code"),
    ("text/x-r-notebook", "R Notebook"),
    ("text/x-ruby-script", "Ruby Source Code"),
    ("text/x-snakemake", "Snakemake"),
    ("text/x-workflow-description-language", "Workflow Description Language"),
    ("text/xml", "XML"),
    ("type/x-r-syntax", "R Syntax"),
    ("video/mp4", "MPEG-4 Video"),
    ("video/quicktime", "QuickTime Video"),
];

fn bare(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// Returns the display name of a media type; the type itself if it has none.
pub(crate) fn friendly(media_type: &str) -> &str {
    let bare = bare(media_type);
    FRIENDLY.iter().find(|it| it.0 == bare).map_or(bare, |it| it.1)
}

/// Returns the file type for search facets: `Image`, `Tabular Data`, …
pub(crate) fn group(media_type: &str) -> &'static str {
    let bare = bare(media_type);
    match bare {
        TAB => "Tabular Data",
        "application/pdf" | "application/msword" | "text/html" | "text/markdown" => "Document",
        "application/zip" | "application/gzip" | "application/x-tar" | "application/x-7z-compressed" => {
            "Archive"
        }
        "application/rar" | "application/x-xz" | "application/x-bzip2" => "Archive",
        "application/fits" => "FITS",
        "application/shp"
        | "application/shx"
        | "application/sbn"
        | "application/sbx"
        | "application/prj"
        | "application/dbase"
        | "application/zipped-shapefile" => "Shape",
        "text/x-python"
        | "type/x-r-syntax"
        | "application/javascript"
        | "text/x-c"
        | "text/x-c++"
        | "text/x-java-source"
        | "application/x-stata-ado"
        | "application/x-stata-syntax"
        | "text/x-computational-workflow"
        | "text/x-makefile"
        | "text/x-matlab"
        | "text/x-nextflow"
        | "text/x-r-notebook"
        | "text/x-ruby-script"
        | "text/x-snakemake"
        | "text/x-workflow-description-language"
        | "application/x-spss-syntax"
        | "application/x-sas-syntax" => "Code",
        _ if bare.starts_with("image/") => "Image",
        _ if bare.starts_with("video/") => "Video",
        _ if bare.starts_with("audio/") => "Audio",
        _ if bare.starts_with("text/") => "Text",
        _ if tabular(bare).is_some() => "Data",
        _ if bare == UNKNOWN => "Unknown",
        _ => "Data",
    }
}

/// Returns the table format of a media type, if such files are ingested.
pub(crate) fn tabular(media_type: &str) -> Option<Format> {
    Some(match bare(media_type) {
        "text/csv" | "text/comma-separated-values" => Format::Csv,
        "text/tsv" | TAB => Format::Tsv,
        "application/x-stata"
        | "application/x-stata-6"
        | "application/x-stata-13"
        | "application/x-stata-14"
        | "application/x-stata-15" => Format::Stata,
        "application/x-spss-sav" => Format::Spss,
        "application/x-spss-por" => Format::SpssPortable,
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => Format::Xlsx,
        R_WORKSPACE => Format::RData,
        _ => return None,
    })
}

/// Returns the name of a table format in settings: `csv`, `dta`, `sav`, …
pub(crate) fn tabular_setting(media_type: &str) -> &'static str {
    match tabular(media_type) {
        Some(Format::Csv) => "csv",
        Some(Format::Tsv) => "tsv",
        Some(Format::Stata) => "dta",
        Some(Format::Spss) => "sav",
        Some(Format::SpssPortable) => "por",
        Some(Format::Xlsx) => "xlsx",
        Some(Format::RData) => "Rdata",
        None => "default",
    }
}

/// Returns the media type of a file: the client's, unless that is unspecific or the content shows a better one.
pub(crate) fn detect(claimed: Option<&str>, name: &str, head: &[u8]) -> String {
    let claimed = claimed.map(str::trim).filter(|it| {
        let unknown = ["", UNKNOWN, "application/binary", "text/plain", "application/x-stata-dta"];
        !unknown.contains(&bare(it))
    });
    if let Some(found) = by_content(head) {
        let is_better = claimed.is_none() || tabular(found).is_some() || found == "application/zip";
        // Office documents and others are zip archives by content and something else by name; R compresses its
        // workspaces.
        let named = by_name(name)
            .filter(|it| found == "application/zip" || (found == "application/gzip" && *it == R_WORKSPACE));
        if is_better {
            return named.unwrap_or(found).to_owned();
        }
    }
    if let Some(claimed) = claimed {
        return claimed.to_owned();
    }
    match by_name(name) {
        Some(found) => found.to_owned(),
        None => by_text(name, head),
    }
}

/// Returns the media type by name alone.
fn by_name(name: &str) -> Option<&'static str> {
    if let Some(found) = BY_NAME.iter().find(|it| it.0 == name) {
        return Some(found.1);
    }
    let (_, extension) = name.rsplit_once('.')?;
    let extension = extension.to_lowercase();
    BY_EXTENSION.iter().find(|it| it.0 == extension).map(|it| it.1)
}

/// Returns the media type by content.
fn by_content(head: &[u8]) -> Option<&'static str> {
    match sniff(head) {
        Some(Format::Stata) => {
            return Some(match stata_format(head) {
                Some(117) => "application/x-stata-13",
                Some(118) => "application/x-stata-14",
                Some(119) => "application/x-stata-15",
                _ => "application/x-stata",
            });
        }
        Some(Format::Spss) => return Some("application/x-spss-sav"),
        Some(Format::SpssPortable) => return Some("application/x-spss-por"),
        _ => {}
    }
    let begins: [(&[u8], &str); 16] = [
        (b"SIMPLE  =", "application/fits"),
        (b"\x89HDF\r\n\x1a\n", "application/x-hdf5"),
        (b"CDF\x01", "application/netcdf"),
        (b"CDF\x02", "application/netcdf"),
        (b"RDX2\n", "application/x-rlang-transport"),
        (b"RDX3\n", "application/x-rlang-transport"),
        (b"PK\x03\x04", "application/zip"),
        (b"PK\x05\x06", "application/zip"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"%PDF-", "application/pdf"),
        (b"\x1f\x8b", "application/gzip"),
        (b"II*\0", "image/tiff"),
        (b"MM\0*", "image/tiff"),
        (b"<graphml", "text/xml-graphml"),
    ];
    begins.iter().find(|it| head.starts_with(it.0)).map(|it| it.1)
}

/// Returns the media type of a file without a known extension: text with its character set, if it is text.
fn by_text(name: &str, head: &[u8]) -> String {
    let is_text = !head.is_empty()
        && !head.contains(&0)
        && head.iter().all(|it| !it.is_ascii_control() || matches!(it, b'\n' | b'\r' | b'\t' | 0x0c));
    match () {
        () if !is_text => UNKNOWN.to_owned(),
        () if name.contains('.') && head.is_ascii() => "text/plain".to_owned(),
        () if head.is_ascii() => "text/plain; charset=US-ASCII".to_owned(),
        () if std::str::from_utf8(head).is_ok() => "text/plain; charset=UTF-8".to_owned(),
        () => UNKNOWN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told() {
        assert_eq!(detect(Some("text/plain"), "003.txt", b"x"), "text/plain");
        assert_eq!(detect(None, "1char", b"a\n"), "text/plain; charset=US-ASCII");
        assert_eq!(detect(Some(UNKNOWN), "a.png", b"\x89PNG\r\n\x1a\nxx"), "image/png");
        assert_eq!(
            detect(Some("application/x-y"), "a.dta", b"<stata_dta><header><release>117"),
            "application/x-stata-13"
        );
        assert_eq!(
            detect(None, "a.docx", b"PK\x03\x04"),
            BY_EXTENSION.iter().find(|it| it.0 == "docx").unwrap().1
        );
        assert_eq!(detect(None, "a.zip", b"PK\x03\x04"), "application/zip");
        assert_eq!(detect(None, "data", &[0, 1, 2]), UNKNOWN);
        assert_eq!(detect(Some("text/plain"), "Makefile", b"all:\n"), "text/x-makefile");
        assert_eq!(detect(None, "analysis.Rmd", b"# R\n"), "text/x-r-notebook");
        assert_eq!(group(&detect(None, "coast.shp", &[0, 0, 0x27, 0x0a])), "Shape");
        assert_eq!(friendly("text/plain; charset=US-ASCII"), "Plain Text");
        assert_eq!(tabular("text/csv"), Some(Format::Csv));
        assert!(BY_EXTENSION.is_sorted_by_key(|it| it.0));
    }
}
