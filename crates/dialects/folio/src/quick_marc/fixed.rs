//! The fields of fixed length, split into the values named by the editor: 008 of bibliographic records by the kind of
//! material, of holdings and of authorities (MARC 21); 006 by the same kinds, 007 of sound recordings. Other kinds of
//! 007 are not split.
//!
//! In the editor a blank is written `\`. A value of several one-character codes is a list.

use serde_json::{Map, Value};

/// A value: its name, its position, its length, and whether it is a list of one-character codes.
type Part = (&'static str, usize, usize, bool);

const HEAD: [Part; 5] = [
    ("Entered", 0, 6, false),
    ("DtSt", 6, 1, false),
    ("Date1", 7, 4, false),
    ("Date2", 11, 4, false),
    ("Ctry", 15, 3, false),
];
const TAIL: [Part; 3] = [("Lang", 35, 3, false), ("MRec", 38, 1, false), ("Srce", 39, 1, false)];
const BOOKS: [Part; 10] = [
    ("Ills", 18, 4, true),
    ("Audn", 22, 1, false),
    ("Form", 23, 1, false),
    ("Cont", 24, 4, true),
    ("GPub", 28, 1, false),
    ("Conf", 29, 1, false),
    ("Fest", 30, 1, false),
    ("Indx", 31, 1, false),
    ("LitF", 33, 1, false),
    ("Biog", 34, 1, false),
];
const FILES: [Part; 4] =
    [("Audn", 22, 1, false), ("Form", 23, 1, false), ("File", 26, 1, false), ("GPub", 28, 1, false)];
const MAPS: [Part; 7] = [
    ("Relf", 18, 4, true),
    ("Proj", 22, 2, false),
    ("CrTp", 25, 1, false),
    ("GPub", 28, 1, false),
    ("Form", 29, 1, false),
    ("Indx", 31, 1, false),
    ("SpFm", 33, 2, true),
];
const MUSIC: [Part; 8] = [
    ("Comp", 18, 2, false),
    ("FMus", 20, 1, false),
    ("Part", 21, 1, false),
    ("Audn", 22, 1, false),
    ("Form", 23, 1, false),
    ("AccM", 24, 6, true),
    ("LTxt", 30, 2, true),
    ("TrAr", 33, 1, false),
];
const SERIALS: [Part; 11] = [
    ("Freq", 18, 1, false),
    ("Regl", 19, 1, false),
    ("SrTp", 21, 1, false),
    ("Orig", 22, 1, false),
    ("Form", 23, 1, false),
    ("EntW", 24, 1, false),
    ("Cont", 25, 3, true),
    ("GPub", 28, 1, false),
    ("Conf", 29, 1, false),
    ("Alph", 33, 1, false),
    ("S/L", 34, 1, false),
];
const VISUALS: [Part; 6] = [
    ("Time", 18, 3, true),
    ("Audn", 22, 1, false),
    ("GPub", 28, 1, false),
    ("Form", 29, 1, false),
    ("TMat", 33, 1, false),
    ("Tech", 34, 1, false),
];
const MIXED: [Part; 1] = [("Form", 23, 1, false)];
const SOUND: [Part; 13] = [
    ("Category", 0, 1, false),
    ("SMD", 1, 1, false),
    ("Speed", 3, 1, false),
    ("Configuration of playback channels", 4, 1, false),
    ("Groove width/ groove pitch", 5, 1, false),
    ("Dimensions", 6, 1, false),
    ("Tape width", 7, 1, false),
    ("Tape configuration", 8, 1, false),
    ("Kind of disc, cylinder, or tape", 9, 1, false),
    ("Kind of material", 10, 1, false),
    ("Kind of cutting", 11, 1, false),
    ("Special playback characteristics", 12, 1, false),
    ("Capture and storage technique", 13, 1, false),
];
const HOLDINGS: [Part; 13] = [
    ("Date Ent", 0, 6, false),
    ("AcqStatus", 6, 1, false),
    ("AcqMethod", 7, 1, false),
    ("AcqEndDate", 8, 4, false),
    ("Gen ret", 12, 1, false),
    ("Spec ret", 13, 3, true),
    ("Compl", 16, 1, false),
    ("Copies", 17, 3, false),
    ("Lend", 20, 1, false),
    ("Repro", 21, 1, false),
    ("Lang", 22, 3, false),
    ("Sep/comp", 25, 1, false),
    ("Rept date", 26, 6, false),
];
const AUTHORITIES: [Part; 23] = [
    ("Date Ent", 0, 6, false),
    ("Geo Subd", 6, 1, false),
    ("Roman", 7, 1, false),
    ("Lang", 8, 1, false),
    ("Kind rec", 9, 1, false),
    ("Cat Rules", 10, 1, false),
    ("SH Sys", 11, 1, false),
    ("Series", 12, 1, false),
    ("Numb Series", 13, 1, false),
    ("Main use", 14, 1, false),
    ("Subj use", 15, 1, false),
    ("Series use", 16, 1, false),
    ("Type Subd", 17, 1, false),
    ("Undef_18", 18, 10, false),
    ("Govt Ag", 28, 1, false),
    ("RefEval", 29, 1, false),
    ("Undef_30", 30, 1, false),
    ("RecUpd", 31, 1, false),
    ("Pers Name", 32, 1, false),
    ("Level Est", 33, 1, false),
    ("Undef_34", 34, 4, false),
    ("Mod Rec", 38, 1, false),
    ("Source", 39, 1, false),
];

/// Returns the parts of an 008, and its length.
fn parts(format: &str, leader: &str) -> (Vec<Part>, usize) {
    match format {
        "HOLDINGS" => (HOLDINGS.to_vec(), 32),
        "AUTHORITY" => (AUTHORITIES.to_vec(), 40),
        _ => {
            let at = |n: usize| leader.chars().nth(n).unwrap_or(' ');
            let own: &[Part] = match (at(6), at(7)) {
                ('a', 'b' | 'i' | 's') => &SERIALS,
                ('m', _) => &FILES,
                ('e' | 'f', _) => &MAPS,
                ('c' | 'd' | 'i' | 'j', _) => &MUSIC,
                ('g' | 'k' | 'o' | 'r', _) => &VISUALS,
                ('p', _) => &MIXED,
                _ => &BOOKS,
            };
            (HEAD.iter().chain(own).chain(&TAIL).copied().collect(), 40)
        }
    }
}

fn shown_text(text: &str) -> String {
    text.replace(' ', "\\")
}

/// Splits an 008 into its values.
pub(super) fn shown(format: &str, leader: &str, text: &str) -> Value {
    let (parts, _) = parts(format, leader);
    let mut map = Map::new();
    if format == "BIBLIOGRAPHIC" {
        let at = |n: usize| leader.chars().nth(n).map_or_else(String::new, String::from);
        map.insert("Type".into(), at(6).into());
        map.insert("BLvl".into(), at(7).into());
    }
    take_apart(&mut map, &parts, text);
    Value::Object(map)
}

fn take_apart(map: &mut Map<String, Value>, parts: &[Part], text: &str) {
    let characters: Vec<char> = text.chars().collect();
    let slice = |from: usize, n: usize| -> String {
        (from..from + n).map(|at| characters.get(at).copied().unwrap_or(' ')).collect()
    };
    for (name, from, n, is_list) in parts.iter().copied() {
        let text = shown_text(&slice(from, n));
        let value = if is_list {
            text.chars().map(|it| it.to_string()).collect::<Vec<_>>().into()
        } else {
            text.into()
        };
        map.insert(name.to_owned(), value);
    }
}

/// Returns the parts and the length of an 006, whose first character is its kind, or of an 007 of a sound recording.
fn additional(tag: &str, first: char) -> Option<(Vec<Part>, usize)> {
    if tag == "007" {
        return (first == 's').then(|| (SOUND.to_vec(), 14));
    }
    let own: &[Part] = match first {
        'a' | 't' => &BOOKS,
        's' => &SERIALS,
        'm' => &FILES,
        'e' | 'f' => &MAPS,
        'c' | 'd' | 'i' | 'j' => &MUSIC,
        'g' | 'k' | 'o' | 'r' => &VISUALS,
        'p' => &MIXED,
        _ => return None,
    };
    // Positions from 18 on in 008 correspond to those from 1 on in 006.
    let shifted = own.iter().map(|(name, from, n, is_list)| (*name, from - 17, *n, *is_list));
    Some((std::iter::once(("Type", 0, 1, false)).chain(shifted).collect(), 18))
}

/// Splits an 006 or 007 into its values; one of an unknown kind is returned whole.
pub(super) fn additional_shown(tag: &str, text: &str) -> Value {
    match additional(tag, text.chars().next().unwrap_or(' ')) {
        Some((parts, length)) if text.chars().count() == length => {
            let mut map = Map::new();
            take_apart(&mut map, &parts, text);
            Value::Object(map)
        }
        _ => text.into(),
    }
}

/// Returns the structure of a record type's fixed field:
/// `{tag, format, repeatable, required, spec: {types: [{code, items: [{code, name, order, position, length, isArray, readOnly}]}]}}`.
/// `None` if there is no such field.
pub(super) fn specification(record_type: &str, tag: &str) -> Option<Value> {
    let material = |code: &str, parts: Vec<Part>| {
        let items: Vec<Value> = parts
            .iter()
            .enumerate()
            .map(|(order, (name, from, n, is_list))| {
                serde_json::json!({
                    "code": name, "name": name, "order": order, "position": from, "length": n,
                    "isArray": is_list, "readOnly": *name == "Entered" || *name == "Date Ent",
                })
            })
            .collect();
        serde_json::json!({"code": code, "items": items})
    };
    let kinds: [(&str, char, &[Part]); 7] = [
        ("books", 'a', &BOOKS),
        ("continuing", 's', &SERIALS),
        ("files", 'm', &FILES),
        ("maps", 'e', &MAPS),
        ("music", 'c', &MUSIC),
        ("visual", 'g', &VISUALS),
        ("mixed", 'p', &MIXED),
    ];
    let (format, types): (&str, Vec<Value>) = match (record_type, tag) {
        ("bibliographic", "006") => {
            let parts = |first: char| additional("006", first).map_or_else(Vec::new, |it| it.0);
            ("Bibliographic", kinds.iter().map(|(code, first, _)| material(code, parts(*first))).collect())
        }
        ("bibliographic" | "holdings", "007") => ("Bibliographic", vec![material("sound", SOUND.to_vec())]),
        ("bibliographic", "008") => {
            let whole = |own: &[Part]| HEAD.iter().chain(own).chain(&TAIL).copied().collect();
            ("Bibliographic", kinds.iter().map(|(code, _, own)| material(code, whole(own))).collect())
        }
        ("holdings", "008") => ("Holdings", vec![material("holdings", HOLDINGS.to_vec())]),
        ("authority", "008") => ("Authority", vec![material("authority", AUTHORITIES.to_vec())]),
        _ => return None,
    };
    Some(serde_json::json!({
        "tag": tag, "format": format, "repeatable": tag != "008", "required": tag == "008",
        "url": format!("https://www.loc.gov/marc/{record_type}/"), "spec": {"types": types},
    }))
}

/// Assembles an 006 or 007; for an unknown kind the values are concatenated in the order given.
pub(super) fn additional_read(
    tag: &str,
    content: &Map<String, Value>,
) -> Result<String, (&'static str, usize)> {
    let first = content.get("Type").or_else(|| content.get("Category")).and_then(Value::as_str);
    let first = first.and_then(|it| it.chars().next()).unwrap_or(' ');
    if let Some((parts, length)) = additional(tag, first) {
        return put_together(&parts, length, content, "");
    }
    let mut text = String::new();
    for value in content.values() {
        match value {
            Value::String(value) => text.push_str(value),
            Value::Array(list) => list.iter().filter_map(Value::as_str).for_each(|it| text.push_str(it)),
            _ => {}
        }
    }
    Ok(text.replace('\\', " "))
}

/// Assembles an 008. Errors: the name of a value that does not have the required length, and that length.
pub(super) fn read(
    format: &str,
    leader: &str,
    content: &Map<String, Value>,
    today: &str,
) -> Result<String, (&'static str, usize)> {
    let (parts, length) = parts(format, leader);
    put_together(&parts, length, content, today)
}

fn put_together(
    parts: &[Part],
    length: usize,
    content: &Map<String, Value>,
    today: &str,
) -> Result<String, (&'static str, usize)> {
    let mut characters = vec![' '; length];
    for (name, from, n, _) in parts.iter().copied() {
        let text = match content.get(name) {
            Some(Value::String(text)) => text.clone(),
            // A list may come from another kind of material: excess codes are dropped.
            Some(Value::Array(list)) => {
                let codes = list.iter().filter_map(|it| it.as_str()?.chars().next());
                codes.chain(std::iter::repeat(' ')).take(n).collect()
            }
            // Clients cannot set the date on which a record was created.
            _ if from == 0 && !today.is_empty() => today.to_owned(),
            _ => continue,
        };
        if text.chars().count() != n {
            return Err((name, n));
        }
        for (at, character) in text.chars().enumerate() {
            characters[from + at] = if character == '\\' { ' ' } else { character };
        }
    }
    Ok(characters.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_006_and_an_007_come_back_as_they_were() {
        for (tag, text) in
            [("006", "c bcdefghijklmn o "), ("006", "a    b    000 0 j "), ("007", "sd fsngnnmmned")]
        {
            let Value::Object(apart) = additional_shown(tag, text) else { panic!("{tag} is whole") };
            assert_eq!(additional_read(tag, &apart), Ok(text.to_owned()), "{apart:?}");
        }
        assert_eq!(additional_shown("007", "cr |||"), "cr |||");
    }

    #[test]
    fn an_008_comes_back_as_it_was() {
        for (format, leader, text) in [
            ("BIBLIOGRAPHIC", "00835cam a2200229 a 4500", "020805s2002    nyu    j      000 1 eng  "),
            ("BIBLIOGRAPHIC", "00835cas a2200229 a 4500", "020805c20029999nyuwr p       0   a0eng  "),
            ("HOLDINGS", "00536cy  a22001694  4500", "9301234u    8   1   uu          "),
            ("AUTHORITY", "00722cz  a2200157n  4500", "000107n| azannaabn          |n aaa      "),
        ] {
            let apart = shown(format, leader, text);
            let whole = apart.as_object().map(|it| read(format, leader, it, "260101"));
            assert_eq!(whole, Some(Ok(text.to_owned())), "{apart}");
        }
        let mut apart = shown("BIBLIOGRAPHIC", "00835cam a2200229 a 4500", "");
        apart["Date1"] = "123".into();
        let refused =
            apart.as_object().map(|it| read("BIBLIOGRAPHIC", "00835cam a2200229 a 4500", it, "260101"));
        assert_eq!(refused, Some(Err(("Date1", 4))));
    }
}
