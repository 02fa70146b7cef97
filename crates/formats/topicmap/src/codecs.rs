//! Maps each format to its reader and its writer.

use std::io::{self, Write};

use crate::error::{Error, Place};
use crate::format::Format;
use crate::model::{TopicId, TopicMap};
use crate::session::{Options, Reading, Session};
use crate::{ctm, cxtm, dmoz, iri, jtm, ltm, skos, xtm};

/// Reads one document, with the documents it includes.
pub fn read(format: Format, bytes: &[u8], options: Options<'_>) -> Result<Reading, Error> {
    let base = options.base.clone();
    if iri::scheme(&base).is_none() {
        return Err(Place::new(&base, 0).fault("the base is no absolute IRI"));
    }
    let mut session = Session::new(options);
    session.count_bytes(bytes.len(), &Place::new(&base, 0))?;
    format.read_into(bytes, &base, &[], &mut session)?;
    if session.has_read_xtm_1 {
        xtm::finish(&mut session);
    }
    let Session { builder, warnings, .. } = session;
    let map = builder.finish().map_err(|conflict| Place::new(&base, 0).fault(conflict.to_string()))?;
    Ok(Reading { map, warnings })
}

/// Writes a map. `base` is the IRI of the document: for CXTM, and for XTM 1.0 and 2.0, whose topics have ids in the
/// document.
pub fn write(format: Format, map: &TopicMap, base: &str, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Xtm => xtm::write(xtm::Version::TwoOne, map, base, out),
        Format::Xtm2 => xtm::write(xtm::Version::Two, map, base, out),
        Format::Xtm1 => xtm::write_one(map, base, out),
        Format::Jtm => jtm::write(map, out),
        Format::Cxtm => cxtm::write(map, base, out),
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this format is read, not written; write xtm, xtm2, xtm1, jtm or cxtm",
        )),
    }
}

impl Format {
    pub(crate) fn read_into(
        self,
        bytes: &[u8],
        base: &str,
        themes: &[TopicId],
        session: &mut Session<'_>,
    ) -> Result<(), Error> {
        match self {
            Format::Xtm | Format::Xtm2 | Format::Xtm1 => xtm::read(bytes, base, themes, session),
            Format::Jtm => jtm::read(bytes, base, session),
            Format::Ltm => ltm::read(bytes, base, session),
            Format::Ctm => ctm::read(bytes, base, session),
            Format::Skos => skos::read(bytes, base, session),
            Format::DmozStructure => dmoz::read_structure(bytes, base, session),
            Format::DmozContent => dmoz::read_content(bytes, base, session),
            Format::Cxtm => Err(Place::new(base, 0).fault("CXTM is written for comparing, and not read")),
        }
    }
}
