//! The formats by name, and reading from and writing to any of them.

/// A format that topic maps are read from or written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// XTM: 1.0, 2.0 and 2.1 are read, 2.1 is written.
    Xtm,
    /// XTM 2.0 is written; read as [`Format::Xtm`] is.
    Xtm2,
    /// XTM 1.0 is written, without what it has no place for; read as [`Format::Xtm`] is.
    Xtm1,
    /// JTM: 1.0 and 1.1 are read, 1.1 is written.
    Jtm,
    /// LTM 1.3; read.
    Ltm,
    /// CTM, the compact syntax (draft of ISO/IEC 13250-6 of 2010-03-31); read.
    Ctm,
    /// CXTM, the canonical form; written.
    Cxtm,
    /// SKOS in RDF/XML; read.
    Skos,
    /// The categories of the Open Directory; read.
    DmozStructure,
    /// The links of the Open Directory; read.
    DmozContent,
}

impl Format {
    /// Every format, with its name.
    pub const ALL: [(&'static str, Format); 10] = [
        ("xtm", Format::Xtm),
        ("xtm2", Format::Xtm2),
        ("xtm1", Format::Xtm1),
        ("jtm", Format::Jtm),
        ("ltm", Format::Ltm),
        ("ctm", Format::Ctm),
        ("cxtm", Format::Cxtm),
        ("skos", Format::Skos),
        ("dmoz-structure", Format::DmozStructure),
        ("dmoz-content", Format::DmozContent),
    ];

    /// Returns the format with this name. Versions are distinguished when reading, whatever the name says.
    pub fn named(name: &str) -> Option<Format> {
        let name = match name {
            "xtm10" => "xtm1",
            "xtm20" => "xtm2",
            "xtm21" => "xtm",
            "jtm1" | "jtm10" | "jtm11" => "jtm",
            name => name,
        };
        Self::ALL.into_iter().find(|it| it.0 == name).map(|it| it.1)
    }

    /// Returns the format of a file's extension.
    pub fn of_file(name: &str) -> Option<Format> {
        let name = name.strip_suffix(".gz").unwrap_or(name);
        if name.ends_with("structure.rdf.u8") || name.contains("structure") && name.ends_with(".u8") {
            return Some(Format::DmozStructure);
        }
        if name.ends_with(".u8") {
            return Some(Format::DmozContent);
        }
        match name.rsplit('.').next()? {
            "rdf" | "skos" => Some(Format::Skos),
            extension => Format::named(extension),
        }
    }

    /// Returns the format of a media type, ignoring parameters. Plain XML is taken as XTM and plain JSON as
    /// JTM.
    pub fn of_media_type(name: &str) -> Option<Format> {
        let name = name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Some(match name.as_str() {
            "application/xtm+xml" | "application/x-tm+xtm" | "application/xml" | "text/xml" => Format::Xtm,
            "application/x-tm+jtm" | "application/jtm" | "application/json" => Format::Jtm,
            "application/x-tm+ltm" | "text/x-ltm" => Format::Ltm,
            "application/x-tm+ctm" | "text/x-ctm" => Format::Ctm,
            "application/x-tm+cxtm" => Format::Cxtm,
            "application/rdf+xml" => Format::Skos,
            _ => return None,
        })
    }

    /// Returns the media type in which the format is sent (ISO/IEC 13250 names none; these are in use).
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Xtm | Format::Xtm2 | Format::Xtm1 => "application/xtm+xml",
            Format::Jtm => "application/x-tm+jtm",
            Format::Ltm => "application/x-tm+ltm",
            Format::Ctm => "application/x-tm+ctm",
            Format::Cxtm => "application/x-tm+cxtm",
            Format::Skos | Format::DmozStructure | Format::DmozContent => "application/rdf+xml",
        }
    }
}
