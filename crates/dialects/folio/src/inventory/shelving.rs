//! `effectiveShelvingOrder`: a call number as a text that sorts as the shelf does.
//!
//! Words are upper case and apart by blanks; a number is preceded by the number of its digits, so that `PN2 .A6 v.3`
//! becomes `PN 12 A6 V 13`; the digits of a cutter (`.A6`) are decimals and stay. Source: the shelf keys that
//! mod-inventory-storage makes.

/// The shelving order of what stands on an item: call number, volume, enumeration, chronology, copy, suffix.
///
/// `None` when there is no call number.
pub fn order<'a>(
    call_number: Option<&'a str>,
    rest: impl IntoIterator<Item = Option<&'a str>>,
) -> Option<String> {
    let call_number = call_number.map(str::trim).filter(|it| !it.is_empty())?;
    let mut words = Vec::new();
    key(call_number, &mut words);
    for text in rest.into_iter().flatten() {
        key(text, &mut words);
    }
    Some(words.join(" "))
}

fn key(text: &str, words: &mut Vec<String>) {
    let characters: Vec<char> = text.to_uppercase().chars().collect();
    let mut at = 0;
    let is_first_letters = words.is_empty();
    while let Some(&character) = characters.get(at) {
        if character.is_alphabetic() {
            let from = at;
            at = end_of(&characters, at, char::is_alphabetic);
            let letters: String = characters[from..at].iter().collect();
            let digits_end = end_of(&characters, at, |it| it.is_ascii_digit());
            // One letter with digits right behind it is a cutter, but not where the class begins.
            let is_class = is_first_letters && from == 0;
            if letters.chars().count() == 1 && at < digits_end && !is_class {
                let tail_end = end_of(&characters, digits_end, char::is_alphabetic);
                words.push(characters[from..tail_end].iter().collect());
                at = tail_end;
            } else {
                words.push(letters);
            }
        } else if character.is_ascii_digit() {
            let from = at;
            at = end_of(&characters, at, |it| it.is_ascii_digit());
            let n_digits = at - from;
            let has_decimals =
                characters.get(at) == Some(&'.') && characters.get(at + 1).is_some_and(char::is_ascii_digit);
            if has_decimals {
                at = end_of(&characters, at + 1, |it| it.is_ascii_digit());
            }
            let number: String = characters[from..at].iter().collect();
            words.push(format!("{n_digits}{number}"));
        } else {
            at += 1;
        }
    }
}

fn end_of(characters: &[char], from: usize, is_part: impl Fn(char) -> bool) -> usize {
    from + characters[from..].iter().take_while(|it| is_part(**it)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_numbers_sort_as_on_the_shelf() {
        for (text, expected) in [
            ("PN2 .A6", "PN 12 A6"),
            ("PN2 .A6 v.3 no.4 Oct-Dec 1966", "PN 12 A6 V 13 NO 14 OCT DEC 41966"),
            ("PS3623.R534 P37 2005", "PS 43623 R534 P37 42005"),
            ("TK5105.88815 . A58 2004 FT MEADE", "TK 45105.88815 A58 42004 FT MEADE"),
            ("Z7164.N3", "Z 47164 N3"),
        ] {
            assert_eq!(order(Some(text), []).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(
            order(Some("PN2 .A6"), [Some("v.1"), None, Some("c.2")]).as_deref(),
            Some("PN 12 A6 V 11 C 12")
        );
        assert_eq!(order(Some(" "), [Some("v.1")]), None);
        assert_eq!(order(None, []), None);
    }
}
