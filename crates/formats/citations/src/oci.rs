//! Open Citation Identifiers: `<citing>-<cited>`, each side a supplier's prefix and a work in digits.
//!
//! Two styles are in use. The older indexes (COCI, DOCI, CROCI…) spell the DOI without its `10.` by a table
//! of decimal codes ([`encode`]); the unified index since 2023 uses the running numbers of OpenCitations Meta
//! ([`crate::Omid`]). Both begin with a supplier prefix `0<digits 1-9>0`: `020` is Crossref, `080` DataCite,
//! `06…0` OpenCitations Meta.
//! Source: the OCI definition (Peroni, Shotton 2019) and the code table that the OpenCitations indexes publish.

use std::fmt;

/// The characters of the code table in code order: the n-th has the n-th code.
/// Codes are two digits up to 89, then 900 to 989, 9900 to 9989 and so on: another leading 9 for each block
/// of [`CODES_PER_BLOCK`]. The live table grew as characters were met in DOIs, hence its order.
const CHARACTERS: [&str; 17] = [
    "0123456789abcdefghijklmnopqrstuvwxyz/.:;",
    "<=>?@[\\]^_`!\"#$%&'()*+,-{|}~ –ĳšžá\u{a0}×éâíö",
    "üıçőä\u{ad}ù‐¡¿€“ěčřńłȋαβηóﬃγè\u{2b9}δ∖\u{2009}˙ñåω—úøśąęň",
    "·żýćľăď\u{200e}´−°\u{200b}∕\u{2005}\u{200f}⟨⟩\u{2329}\u{232a}ß�\u{2028}′≤≥\u{2006}ã\u{200a}¯\u{a}\u{2003}░āîθª…〈〉\u{307}",
    "\u{2029}∼êоﬀ¶λşėìﬁ\u{3000}ǎđğμκò˜∷±χﬂ‥ű\u{9}\u{80}\u{8b}\u{351}\u{352}\u{f6ba}\u{2c6}ûν\u{202c}ë«ů\u{200c}τ",
    "ơɬ\u{95}’‘σ•\u{93}уô\u{331}à”\u{feff}‒ε˂˃ċõœǔ£‡ρ˗πҫӧ\u{202f}□©‑źť－\u{9d}ј\u{354}≫",
    "\u{320}®ϕ¥æ‹§\u{2c7}»ð√≪р中文版пил≯见ахсе\u{96}\u{2002}ю↔통권т（）¸º\u{d}曹周键",
    "都志辉数值相对论与引力波天学国科物理ï\u{f03c}\u{f03e}дж‟в⋌ūϑ\u{7dd}¬\u{33e}王涛淀粉基纳米复合",
    "膜的制备、成机及应用研究泰安山东农业大徐正康立亚黄新酶解交联特性粮食油脂\u{d}ᆒþ\u{d}",
    "\u{13}\u{10}\u{12}\u{3}．ķ∗。ॸ⁄\u{97}魷◇初明补缺假设外语习刊北京教出社张蔡认知言关互熊亮曲卫主",
    "编采撷高等育孙和概冉永平红纵横彭庆华能瓶颈会ṅ♣하↑¼¾↓¨\u{18}\u{f0b4}к\u{81}≶›❬❭✓─",
    "\u{2063}‗共兲←⁃\u{37e}‚兴买提沙吾吐尔逊艾塔西甫拉依拜于热光谱干旱区土壤盐分监测地\u{f02d}\u{336}„",
    "ы\u{5d2}\u{14}ㅎґмƒ‽‾∣¦гώё李琳杜佳凌智胡希杰唾液检在心血管疾病诊疗湖南医药报强",
    "杨勇严型糖尿口服降治模式影响因素析福建邬伟魁倩茹超效色法有质评价刘莎表面增曼化博",
    "士位连工书锋师范院自广通袁洪陆婉珍现代近技术进展巍牛状程林洁指纹识别硕苏州蕾雁尹",
    "利酸二甲双胍津蓉戴奎阮峰定量方潘家来激\u{335}년월일방문\u{11}→∯\u{17}℡从∭∨【】ⅱзн\u{305}\u{2}",
    "і␣\u{e011}₄：⇎≎",
];

const CODES_PER_BLOCK: usize = 90;

/// Maximum number of characters of an OCI that are read: two DOIs of the longest length, each character a
/// rare one.
pub const OCI_LEN_MAX_BYTES: usize = 20_000;

/// A supplier prefix such as `020`, kept as the number without its leading zero (`20`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Supplier(u32);

impl Supplier {
    /// Crossref, `020`: used by COCI for both sides.
    pub const CROSSREF: Self = Self(20);

    /// Reads the prefix at the start of one side of an OCI: `0`, digits 1-9, `0`.
    ///
    /// `None` if the digits do not begin with one of at most nine digits.
    #[must_use]
    pub fn at_start_of(side: &[u8]) -> Option<(Self, &[u8])> {
        let rest = side.strip_prefix(b"0")?;
        let len = rest.iter().take_while(|byte| (b'1'..=b'9').contains(*byte)).count();
        if len == 0 || 7 < len || rest.get(len) != Some(&b'0') {
            return None;
        }
        let number = rest[..len].iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
        Some((Self(number * 10), &rest[len + 1..]))
    }
}

impl fmt::Display for Supplier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "0{}", self.0)
    }
}

/// One side of an OCI: the supplier's prefix and the digits after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OciWork {
    /// Table codes of a DOI.
    Doi {
        /// The supplier whose list the DOI was taken from.
        supplier: Supplier,
        /// The DOI, with its `10.`.
        doi: String,
    },
    /// A work of OpenCitations Meta.
    Omid(crate::Omid),
}

/// Why an OCI could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OciError {
    /// Not two runs of digits joined by `-`.
    #[error("an OCI is two runs of digits joined by '-', such as 06101801781-061801402")]
    Form,
    /// A side without `0<digits 1-9>0` in front.
    #[error("one side of the OCI does not begin with a supplier prefix such as 020")]
    NoSupplier,
    /// A code that the table does not have.
    #[error("the OCI has the code {code:?}, which the code table does not have")]
    UnknownCode {
        /// The digits found.
        code: String,
    },
}

/// Reads an OCI, with or without `oci:` in front, in either style.
///
/// # Errors
/// [`OciError`]; nothing beyond [`OCI_LEN_MAX_BYTES`] is read.
pub fn decode(oci: &str) -> Result<(OciWork, OciWork), OciError> {
    let (citing, cited) = sides(oci.as_bytes()).ok_or(OciError::Form)?;
    Ok((decode_work(citing)?, decode_work(cited)?))
}

/// Returns the two digit runs of an OCI; `None` if it is not one.
pub(crate) fn sides(oci: &[u8]) -> Option<(&[u8], &[u8])> {
    let bare = oci.strip_prefix(b"oci:").unwrap_or(oci);
    if OCI_LEN_MAX_BYTES < bare.len() {
        return None;
    }
    let dash = memchr::memchr(b'-', bare)?;
    let (citing, cited) = (&bare[..dash], &bare[dash + 1..]);
    let is_digits = |side: &[u8]| !side.is_empty() && side.iter().all(u8::is_ascii_digit);
    (is_digits(citing) && is_digits(cited)).then_some((citing, cited))
}

fn decode_work(side: &[u8]) -> Result<OciWork, OciError> {
    if let Some(omid) = crate::Omid::from_digits(side) {
        return Ok(OciWork::Omid(omid));
    }
    let (supplier, codes) = Supplier::at_start_of(side).ok_or(OciError::NoSupplier)?;
    Ok(OciWork::Doi { supplier, doi: decode_doi(codes)? })
}

fn decode_doi(mut codes: &[u8]) -> Result<String, OciError> {
    let table: Vec<char> = characters().collect();
    let mut doi = String::from("10.");
    while !codes.is_empty() {
        let n_nines = codes.iter().take_while(|&&byte| byte == b'9').count();
        let unknown = || OciError::UnknownCode {
            code: String::from_utf8_lossy(&codes[..codes.len().min(12)]).into_owned(),
        };
        let digits = codes.get(n_nines..n_nines + 2).ok_or_else(unknown)?;
        let within = usize::from(digits[0] - b'0') * 10 + usize::from(digits[1] - b'0');
        doi.push(*table.get(n_nines * CODES_PER_BLOCK + within).ok_or_else(unknown)?);
        codes = &codes[n_nines + 2..];
    }
    Ok(doi)
}

/// Returns the OCI of a citation between two DOIs, without `oci:` in front.
///
/// `None` if a DOI has a character that the code table does not have: then it has no OCI.
#[must_use]
pub fn encode(suppliers: (Supplier, Supplier), citing: &str, cited: &str) -> Option<String> {
    let mut oci = suppliers.0.to_string();
    encode_doi(citing, &mut oci)?;
    oci.push('-');
    oci.push_str(&suppliers.1.to_string());
    encode_doi(cited, &mut oci)?;
    Some(oci)
}

fn encode_doi(doi: &str, oci: &mut String) -> Option<()> {
    for letter in doi.strip_prefix("10.")?.chars() {
        let code = code_of(letter)?;
        for _ in 0..code / CODES_PER_BLOCK {
            oci.push('9');
        }
        let within = code % CODES_PER_BLOCK;
        oci.push(digit(within / 10));
        oci.push(digit(within % 10));
    }
    Some(())
}

fn digit(value: usize) -> char {
    u32::try_from(value).ok().and_then(|it| char::from_digit(it, 10)).unwrap_or('0')
}

/// Returns the position of a character in the table; the first one counts, as the carriage return is in it three
/// times.
fn code_of(letter: char) -> Option<usize> {
    match letter {
        '0'..='9' => Some(letter as usize - '0' as usize),
        'a'..='z' => Some(letter as usize - 'a' as usize + 10),
        _ => characters().position(|it| it == letter),
    }
}

fn characters() -> impl Iterator<Item = char> {
    CHARACTERS.iter().flat_map(|row| row.chars())
}
