//! The grammar of a unit text: factors with powers, multiplied, divided, in parentheses.
//!
//! ```text
//! unit   = [ number [ "*" | "/" ] ] factor { [ "*" | "/" ] factor }
//! factor = { "(" } name [ "^" number ] { ")" }
//! ```
//!
//! A factor that follows another without an operator is multiplied. Source: `Unit.parse` of mathjs 15.2, with its
//! oddities: `/` divides by the next factor or group only, and spaces and tabs are the only white space.

use crate::prefix;
use crate::table::{BaseUnit, UNITS};

/// One name with its prefix and power.
#[derive(Debug, Clone)]
pub(crate) struct Factor {
    /// The factor by which `prefix` multiplies `base`.
    pub(crate) prefix_factor: f64,
    /// The prefix as it was written.
    pub(crate) prefix: Box<str>,
    /// The unit without its prefix.
    pub(crate) base: &'static BaseUnit,
    /// The power, negative in a denominator.
    pub(crate) power: f64,
}

/// A parsed unit text.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    /// At least one.
    pub(crate) factors: Vec<Factor>,
    /// Whether a number stood before the first factor. It is dropped.
    pub(crate) has_number: bool,
}

/// Parses a whole unit text. `None` if it is not in the language.
pub(crate) fn parse(text: &str) -> Option<Expression> {
    let text = normalise_angstrom_and_kelvin(text);
    let mut scanner = Scanner { text: &text, at: 0 };
    scanner.skip_blanks();
    let has_number = scanner.number().is_some();
    let mut sign = 1.0;
    let mut expects_factor = false;
    if has_number {
        scanner.skip_blanks();
        (sign, expects_factor) = scanner.operator();
    }
    let mut factors = Vec::new();
    let mut groups = Groups::default();
    loop {
        scanner.skip_blanks();
        while scanner.take('(') {
            groups.open(sign);
            sign = 1.0;
            scanner.skip_blanks();
        }
        if scanner.is_at_end() {
            break;
        }
        factors.push(scanner.factor(sign * groups.sign)?);
        scanner.skip_blanks();
        while scanner.take(')') {
            groups.close()?;
            scanner.skip_blanks();
        }
        (sign, expects_factor) = scanner.operator();
    }
    let is_complete = !expects_factor && groups.signs.is_empty() && !factors.is_empty();
    is_complete.then_some(Expression { factors, has_number })
}

/// Performs the part of Unicode's canonical composition that can make a valid name: `A` with a ring and the
/// two compatibility letters (ångström sign, kelvin sign). Any other letter beyond ASCII is refused anyway.
fn normalise_angstrom_and_kelvin(text: &str) -> std::borrow::Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    text.replace("A\u{30a}", "\u{c5}").replace('\u{212b}', "\u{c5}").replace('\u{212a}', "K").into()
}

/// The open parentheses: each with the sign (1 or -1) its content's powers are multiplied by.
struct Groups {
    signs: Vec<f64>,
    sign: f64,
}

impl Default for Groups {
    fn default() -> Groups {
        Groups { signs: Vec::new(), sign: 1.0 }
    }
}

impl Groups {
    fn open(&mut self, sign: f64) {
        self.signs.push(sign);
        self.sign *= sign;
    }

    fn close(&mut self) -> Option<()> {
        self.sign *= self.signs.pop()?;
        Some(())
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().bytes().take_while(|it| matches!(it, b' ' | b'\t')).count();
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn digits(&mut self) -> usize {
        let n = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += n;
        n
    }

    /// Reads the operator before the next factor: the sign of its power, and whether a factor must follow.
    fn operator(&mut self) -> (f64, bool) {
        if self.take('*') {
            (1.0, true)
        } else if self.take('/') {
            (-1.0, true)
        } else {
            (1.0, false)
        }
    }

    /// Reads a decimal number, or returns `None` with the position unchanged.
    fn number(&mut self) -> Option<f64> {
        let start = self.at;
        if !self.take('+') {
            self.take('-');
        }
        let mut n_digits = self.digits();
        if self.take('.') {
            n_digits += self.digits();
        }
        if n_digits == 0 {
            self.at = start;
            return None;
        }
        self.exponent();
        self.text[start..self.at].parse().ok()
    }

    /// Reads `e5`, `E-5`; an `e` without digits belongs to what follows (`4 erg`).
    fn exponent(&mut self) {
        let start = self.at;
        if self.take('e') || self.take('E') {
            if !self.take('+') {
                self.take('-');
            }
            if self.digits() == 0 {
                self.at = start;
            }
        }
    }

    fn factor(&mut self, sign: f64) -> Option<Factor> {
        let (prefix_factor, prefix, base) = find(self.name()?)?;
        self.skip_blanks();
        let mut power = sign;
        if self.take('^') {
            self.skip_blanks();
            power *= self.number()?;
        }
        power.is_finite().then(|| Factor { prefix_factor, prefix: prefix.into(), base, power })
    }

    fn name(&mut self) -> Option<&'a str> {
        let is_letter = |it: char| it.is_ascii_alphabetic() || it == 'Å';
        let start = self.at;
        if !self.rest().starts_with(is_letter) {
            return None;
        }
        let rest = self.rest();
        let n = rest.find(|it: char| !is_letter(it) && !it.is_ascii_digit()).unwrap_or(rest.len());
        self.at += n;
        Some(&self.text[start..start + n])
    }
}

/// Looks up a whole name first, then the first unit of the table that ends the name and takes the rest as
/// prefix.
fn find(name: &str) -> Option<(f64, &str, &'static BaseUnit)> {
    if let Some(base) = UNITS.iter().find(|it| it.name == name) {
        return Some((1.0, "", base));
    }
    UNITS.iter().find_map(|base| {
        let prefix = name.strip_suffix(base.name)?;
        Some((prefix::factor(base.family, prefix)?, prefix, base))
    })
}
