//! The structure of NetCDF and HDF5 files as NcML 2.2: groups, dimensions, attributes, variables.

use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use hdf5_reader::Hdf5File;
use netcdf_reader::{
    BlockCacheStorage, DynStorage, NcAttrValue, NcAttribute, NcDimension, NcFile, NcGroup, NcMetadataMode,
    NcOpenOptions, NcType, NcVariable, RangeRequestStorage, Storage as _,
};
use quick_xml::escape::escape;

use crate::source::Metered;
use crate::{ArrayError, Limits, Result, Source};

/// Maximum nesting of groups.
const DEPTH: usize = 32;
/// Ranges are read in blocks of this many bytes; a number of blocks is cached.
const BLOCK_BYTES: usize = 64 << 10;
const BLOCKS: usize = 128;

/// What a file says about its structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// An NcML document.
    pub xml: String,
    /// Where on earth its data are, if it says so.
    pub bounds: Option<BoundingBox>,
}

/// A box on earth, in degrees. Longitudes are between -180 and 180; west is not greater than east.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundingBox {
    /// Its western edge.
    pub west: f32,
    /// Its eastern edge.
    pub east: f32,
    /// Its northern edge.
    pub north: f32,
    /// Its southern edge.
    pub south: f32,
}

/// Reads the structure of a file; `name` is its name in the document.
///
/// Errors: it is neither NetCDF nor HDF5, or broken; its groups form a cycle; more than the limits allow.
pub fn describe(source: &Source, name: &str, limits: &Limits) -> Result<Description> {
    // Damaged sizes can make the HDF5 reader panic where overflow checks are on.
    let described = std::panic::catch_unwind(AssertUnwindSafe(|| read(source, name, limits)));
    described.unwrap_or_else(|_| Err(ArrayError::Refused("a part of it has an impossible size".to_owned())))
}

fn read(source: &Source, name: &str, limits: &Limits) -> Result<Description> {
    let metered = source.metered(limits);
    let storage = storage(&metered);
    check_groups(&storage, limits)?;
    let file = NcFile::from_storage_with_options(storage, options()).map_err(refused)?;
    let root = file.root_group().map_err(refused)?;
    let mut out = Writer { xml: String::new(), limits };
    let _ = writeln!(out.xml, r#"<?xml version="1.0" encoding="UTF-8"?>"#);
    let namespace = "http://www.unidata.ucar.edu/namespaces/netcdf/ncml-2.2";
    let _ = writeln!(out.xml, r#"<netcdf xmlns="{namespace}" location="{}">"#, text(name));
    out.group(root, &mut Vec::new())?;
    out.xml.push_str("</netcdf>\n");
    Ok(Description { xml: out.xml, bounds: bounds(&root.attributes) })
}

/// Checks that the groups of an HDF5 file form a tree: the NetCDF reader follows them without a bound.
///
/// Errors: a group is nested deeper than [`DEPTH`], as when it contains itself; there are too many.
fn check_groups(storage: &DynStorage, limits: &Limits) -> Result<()> {
    let Ok(file) = Hdf5File::from_storage(Arc::clone(storage)) else { return Ok(()) };
    let refused = |error: hdf5_reader::error::Error| ArrayError::Refused(error.to_string());
    let mut waiting = vec![(file.root_group().map_err(refused)?, 0)];
    let mut n_groups = 0;
    while let Some((group, depth)) = waiting.pop() {
        let below = group.groups().map_err(refused)?;
        n_groups += below.len();
        if limits.groups < n_groups {
            return Err(ArrayError::TooLarge { what: "groups", most: limits.groups as u64 });
        }
        if DEPTH <= depth && !below.is_empty() {
            return Err(ArrayError::TooLarge {
                what: "groups within groups, or one within itself",
                most: DEPTH as u64,
            });
        }
        waiting.extend(below.into_iter().map(|it| (it, depth + 1)));
    }
    Ok(())
}

fn refused(error: netcdf_reader::Error) -> ArrayError {
    ArrayError::Refused(error.to_string())
}

fn options() -> NcOpenOptions {
    NcOpenOptions { metadata_mode: NcMetadataMode::Lossy, ..NcOpenOptions::default() }
}

/// Wraps the file in a block cache; blocks read count towards the limits.
fn storage(metered: &Metered) -> DynStorage {
    let from = metered.clone();
    let read = move |offset, n| Ok(from.read(offset, n).map_err(std::io::Error::other)?);
    let ranges: DynStorage = Arc::new(RangeRequestStorage::new(metered.length(), read));
    let blocks = BlockCacheStorage::new(ranges, BLOCK_BYTES, BLOCKS);
    let counter = metered.clone();
    let read = move |offset, n| {
        counter.count_read().map_err(std::io::Error::other)?;
        Ok(blocks.read_range(offset, n)?.to_vec())
    };
    Arc::new(RangeRequestStorage::new(metered.length(), read))
}

struct Writer<'l> {
    xml: String,
    limits: &'l Limits,
}

impl Writer<'_> {
    /// `above` has the dimensions of the groups around this one, which the reader repeats within.
    fn group<'g>(&mut self, group: &'g NcGroup, above: &mut Vec<&'g [NcDimension]>) -> Result<()> {
        let indent = "  ".repeat(above.len() + 1);
        let is_new = |it: &&NcDimension| !above.iter().any(|list| list.contains(it));
        for it in group.dimensions.iter().filter(is_new) {
            let unlimited = if it.is_unlimited { r#" isUnlimited="true""# } else { "" };
            let (name, length) = (text(&it.name), it.size);
            self.line(&indent, &format!(r#"<dimension name="{name}" length="{length}"{unlimited}/>"#))?;
        }
        for it in &group.attributes {
            self.attribute(it, &indent)?;
        }
        above.push(&group.dimensions);
        for it in &group.variables {
            self.variable(it, &indent, above)?;
        }
        for it in &group.groups {
            self.line(&indent, &format!(r#"<group name="{}">"#, text(&it.name)))?;
            self.group(it, above)?;
            self.line(&indent, "</group>")?;
        }
        above.pop();
        Ok(())
    }

    fn variable(&mut self, variable: &NcVariable, indent: &str, dimensions: &[&[NcDimension]]) -> Result<()> {
        let name = text(&variable.name);
        // An undeclared dimension has a length and no name.
        let shown =
            |it: &NcDimension| match dimensions.iter().any(|list| list.iter().any(|one| one.name == it.name))
            {
                true => it.name.replace(' ', "_"),
                false => it.size.to_string(),
            };
        let shape: Vec<String> = variable.dimensions.iter().map(shown).collect();
        let (shape, ty) = (text(&shape.join(" ")), type_name(&variable.dtype));
        let tag = format!(r#"<variable name="{name}" shape="{shape}" type="{ty}""#);
        if variable.attributes.is_empty() {
            return self.line(indent, &format!("{tag}/>"));
        }
        self.line(indent, &format!("{tag}>"))?;
        for it in &variable.attributes {
            self.attribute(it, &format!("{indent}  "))?;
        }
        self.line(indent, "</variable>")
    }

    fn attribute(&mut self, attribute: &NcAttribute, indent: &str) -> Result<()> {
        let name = text(&attribute.name);
        let Some((ty, value)) = value_of(&attribute.value).filter(|it| it.1.len() <= self.limits.value_bytes)
        else {
            return self.line(indent, &format!(r#"<attribute name="{name}"/>"#));
        };
        let ty = if ty.is_empty() { String::new() } else { format!(r#" type="{ty}""#) };
        self.line(indent, &format!(r#"<attribute name="{name}"{ty} value="{}"/>"#, text(&value)))
    }

    fn line(&mut self, indent: &str, line: &str) -> Result<()> {
        let _ = writeln!(self.xml, "{indent}{line}");
        match self.limits.xml_bytes < self.xml.len() {
            true => Err(ArrayError::TooLarge { what: "bytes of NcML", most: self.limits.xml_bytes as u64 }),
            false => Ok(()),
        }
    }
}

/// Escapes text as the value of an XML attribute; characters that XML cannot hold become replacement
/// characters.
fn text(text: &str) -> String {
    let legal = |it: char| match it {
        '\t' | '\n' | '\r' => it,
        it if it < ' ' || matches!(it, '\u{FFFE}' | '\u{FFFF}') => char::REPLACEMENT_CHARACTER,
        it => it,
    };
    let text: String = text.trim_end_matches('\0').chars().map(legal).collect();
    escape(text.as_str()).replace('\n', "&#xA;").replace('\r', "&#xD;").replace('\t', "&#x9;")
}

fn type_name(ty: &NcType) -> String {
    let name = match ty {
        NcType::Byte => "byte",
        NcType::Char => "char",
        NcType::Short => "short",
        NcType::Int => "int",
        NcType::Float => "float",
        NcType::Double => "double",
        NcType::UByte => "ubyte",
        NcType::UShort => "ushort",
        NcType::UInt => "uint",
        NcType::Int64 => "long",
        NcType::UInt64 => "ulong",
        NcType::String => "String",
        NcType::Compound { .. } => "Structure",
        NcType::Opaque { .. } => "opaque",
        NcType::Enum { base, .. } => match base.size() {
            Ok(1) => "enum1",
            Ok(2) => "enum2",
            _ => "enum4",
        },
        NcType::Array { base, .. } | NcType::VLen { base } => return type_name(base),
    };
    name.to_owned()
}

/// Returns type and value of an attribute as NcML writes them, numbers separated by spaces; text has no type. `None`
/// for values that NcML has no form for.
fn value_of(value: &NcAttrValue) -> Option<(&'static str, String)> {
    fn list<T: ToString>(all: &[T]) -> String {
        all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }
    Some(match value {
        NcAttrValue::Chars(it) => ("", it.clone()),
        NcAttrValue::Strings(all) => ("", all.join(" ")),
        NcAttrValue::Bytes(all) => ("byte", list(all)),
        NcAttrValue::Shorts(all) => ("short", list(all)),
        NcAttrValue::Ints(all) => ("int", list(all)),
        NcAttrValue::Floats(all) => ("float", list(all)),
        NcAttrValue::Doubles(all) => ("double", list(all)),
        NcAttrValue::UBytes(all) => ("ubyte", list(all)),
        NcAttrValue::UShorts(all) => ("ushort", list(all)),
        NcAttrValue::UInts(all) => ("uint", list(all)),
        NcAttrValue::Int64s(all) => ("long", list(all)),
        NcAttrValue::UInt64s(all) => ("ulong", list(all)),
        NcAttrValue::UserDefined { .. } => return None,
    })
}

/// Returns the box given by the global attributes `geospatial_lat_min` and its three siblings.
fn bounds(attributes: &[NcAttribute]) -> Option<BoundingBox> {
    let number = |name: &str| {
        let it = attributes.iter().find(|it| it.name == name)?;
        value_of(&it.value)?.1.trim().parse::<f32>().ok().filter(|it| it.is_finite())
    };
    let (west, east) = (number("geospatial_lon_min")?, number("geospatial_lon_max")?);
    let (south, north) = (number("geospatial_lat_min")?, number("geospatial_lat_max")?);
    // Some files count longitudes from 0 to 360.
    let both_behind = 180.0 < west && 180.0 < east;
    let (west, east) = if both_behind { (west - 360.0, east - 360.0) } else { (west, east) };
    let is_box =
        -180.0 <= west && west <= east && east <= 180.0 && -90.0 <= south && south <= north && north <= 90.0;
    is_box.then_some(BoundingBox { west, east, north, south })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(west: f32, east: f32) -> Vec<NcAttribute> {
        let named = |(name, value): (&str, f32)| NcAttribute {
            name: name.to_owned(),
            value: NcAttrValue::Floats(vec![value]),
        };
        let all = [
            ("geospatial_lon_min", west),
            ("geospatial_lon_max", east),
            ("geospatial_lat_min", 41.8),
            ("geospatial_lat_max", 49.62),
        ];
        all.into_iter().map(named).collect()
    }

    #[test]
    fn boxes_lie_between_the_meridians() {
        let of = |west, east| bounds(&numbers(west, east)).map(|it| (it.west, it.east));
        assert_eq!(of(-16.0, -6.0), Some((-16.0, -6.0)));
        assert_eq!(of(343.68, 353.78), Some((-16.320_007, -6.220_001)));
        assert_eq!(of(10.0, 200.0), None);
        assert_eq!(of(20.0, 10.0), None);
        assert_eq!(of(f32::NAN, 10.0), None);
        assert_eq!(bounds(&numbers(0.0, 1.0)[..3]), None);
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(text("a<b&\"c\"\n\u{1}"), "a&lt;b&amp;&quot;c&quot;&#xA;\u{FFFD}");
    }

    #[test]
    fn other_files_are_refused() {
        for bytes in
            [&b""[..], b"CDF", b"\x89HDF\r\n\x1a\n", b"CDF\x01\0\0\0\0\0\0\0\x0a\xff\xff\xff\xff", b"text"]
        {
            assert!(describe(&Source::of(bytes.to_vec()), "x", &Limits::default()).is_err(), "{bytes:?}");
        }
    }
}
