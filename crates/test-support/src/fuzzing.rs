//! A substitute for `libfuzzer-sys`, with which the fuzz targets of a crate run in `cargo test` too, on mutated inputs
//! with a fixed seed.
//!
//! A target (`fuzz/fuzz_targets/NAME.rs`) is a module of the crate's tests, which import this crate under the other's
//! name:
//!
//! ```text
//! extern crate pinakes_test_support as libfuzzer_sys;
//! #[path = "../fuzz/fuzz_targets/read.rs"]
//! mod read;
//! #[test]
//! fn read_survives() { read::survives(["a sound input"]) }
//! ```
//!
//! This finds faults that a change makes easy to hit. Faults that take long to find are left to `just fuzz`.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seed of the series of every target, so that a failure can be reproduced.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
/// Number of inputs of a target, unless [`VARIABLE`] sets another number.
const N_INPUTS: usize = 400;
/// Name of the environment variable with the number of inputs of each target.
pub const VARIABLE: &str = "PINAKES_FUZZ_INPUTS";
/// Maximum length of a mutated text, in bytes.
const LEN_MAX: usize = 1 << 16;

/// Pieces that are often mishandled by parsers.
const PIECES: [&[u8]; 36] = [
    b"\"",
    b"'",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b"(",
    b")",
    b"<",
    b">",
    b"</a>",
    b"<!DOCTYPE a [",
    b"<![CDATA[",
    b"&amp;",
    b"&#x0;",
    b"\0",
    b"\n",
    b"\r",
    b"\t",
    b"\x1d",
    b"\x1e",
    b"\x1f",
    b"\xff",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\\ud800",
    "\u{feff}".as_bytes(),
    "\u{10ffff}".as_bytes(),
    b"-1",
    b"18446744073709551616",
    b"1e309",
    b"null",
    b"99999",
    b"%00",
    b"..",
];

/// A valid input that is mutated: one part for each value that a target takes.
#[derive(Debug, Clone, Default)]
pub struct Sound(Vec<Vec<u8>>);

impl From<&str> for Sound {
    fn from(text: &str) -> Self {
        Self(vec![text.into()])
    }
}

impl From<Vec<u8>> for Sound {
    fn from(bytes: Vec<u8>) -> Self {
        Self(vec![bytes])
    }
}

impl<const N: usize> From<&[u8; N]> for Sound {
    fn from(bytes: &[u8; N]) -> Self {
        Self(vec![bytes.to_vec()])
    }
}

impl From<(&str, &str)> for Sound {
    fn from((a, b): (&str, &str)) -> Self {
        Self(vec![a.into(), b.into()])
    }
}

impl From<(&str, &str, &str)> for Sound {
    fn from((a, b, c): (&str, &str, &str)) -> Self {
        Self(vec![a.into(), b.into(), c.into()])
    }
}

/// One input: its parts as bytes and as texts, and a number.
#[derive(Debug)]
pub struct Case {
    parts: Vec<Vec<u8>>,
    texts: Vec<String>,
    number: usize,
}

impl Case {
    fn new(parts: Vec<Vec<u8>>, number: usize) -> Self {
        let texts = parts.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect();
        Self { parts, texts, number }
    }

    fn part(&self, n: usize) -> &[u8] {
        self.parts.get(n).map_or(&[], Vec::as_slice)
    }

    fn text(&self, n: usize) -> &str {
        self.texts.get(n).map_or("", String::as_str)
    }
}

/// A value that a target takes.
pub trait Input<'a> {
    /// Returns the target's value for this input.
    fn of(case: &'a Case) -> Self;
}

impl<'a> Input<'a> for &'a [u8] {
    fn of(case: &'a Case) -> Self {
        case.part(0)
    }
}

impl<'a> Input<'a> for &'a str {
    fn of(case: &'a Case) -> Self {
        case.text(0)
    }
}

impl<'a> Input<'a> for (&'a [u8], usize) {
    fn of(case: &'a Case) -> Self {
        (case.part(0), case.number)
    }
}

impl<'a> Input<'a> for (&'a str, &'a [u8]) {
    fn of(case: &'a Case) -> Self {
        (case.text(0), case.part(1))
    }
}

impl<'a> Input<'a> for (&'a str, &'a str) {
    fn of(case: &'a Case) -> Self {
        (case.text(0), case.text(1))
    }
}

impl<'a> Input<'a> for (&'a str, &'a str, &'a str) {
    fn of(case: &'a Case) -> Self {
        (case.text(0), case.text(1), case.text(2))
    }
}

/// A pseudo-random number generator (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.roll() % n.max(1) as u64).unwrap_or_default()
    }

    /// Returns a range within so many bytes, usually a short one.
    fn range(&mut self, n: usize) -> std::ops::Range<usize> {
        let begin = self.below(n + 1);
        let longest = if self.below(4) == 0 { n } else { 16 };
        begin..(begin + self.below(longest.min(n - begin) + 1))
    }
}

/// Changes a part at one place; pieces of `others`, parts of valid inputs, may be inserted.
fn change(part: &mut Vec<u8>, others: &[&[u8]], dice: &mut Dice) {
    let at = dice.below(part.len() + 1);
    match dice.below(8) {
        0 => {
            if let Some(byte) = part.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
        1 => part.insert(at, (dice.roll() & 0xff) as u8),
        2 => drop(part.drain(dice.range(part.len()))),
        3 => part.truncate(at),
        4 => {
            let again = part[dice.range(part.len())].repeat(1 + dice.below(8));
            part.splice(at..at, again);
        }
        5 => {
            let other = others[dice.below(others.len())];
            let piece = other[dice.range(other.len())].to_vec();
            part.splice(at..at, piece);
        }
        6 => {
            let range = dice.range(part.len());
            part.splice(range, PIECES[dice.below(PIECES.len())].iter().copied());
        }
        _ => {
            part.splice(at..at, PIECES[dice.below(PIECES.len())].repeat(1 + dice.below(3)));
        }
    }
    part.truncate(LEN_MAX);
}

/// Calls a target with the valid inputs and then with mutated ones, as many as [`VARIABLE`] says.
///
/// # Panics
/// If the target panics; the input is printed.
pub fn run(name: &str, sound: &[Sound], target: &dyn Fn(&Case)) {
    let n_inputs = std::env::var(VARIABLE).ok().and_then(|it| it.parse().ok()).unwrap_or(N_INPUTS);
    assert!(!sound.is_empty(), "{name}: no sound input to begin with");
    let mut dice = Dice(SEED);
    for n in 0..n_inputs.max(sound.len()) {
        let mut parts = sound[n % sound.len()].0.clone();
        if sound.len() <= n {
            for _ in 0..=dice.below(5) {
                let which = dice.below(parts.len());
                let others: Vec<&[u8]> =
                    sound.iter().filter_map(|it| Some(it.0.get(which)?.as_slice())).collect();
                change(&mut parts[which], &others, &mut dice);
            }
        }
        let case = Case::new(parts, dice.below(1 << 16));
        let outcome = catch_unwind(AssertUnwindSafe(|| target(&case)));
        assert!(
            outcome.is_ok(),
            "{name}: input {n} of this seed makes it panic: {:?}, number {}",
            case.texts,
            case.number
        );
    }
}

/// A fuzz target with the syntax of `libfuzzer_sys::fuzz_target!`, for the tests of its crate.
#[macro_export]
macro_rules! fuzz_target {
    // What is set up for a whole run, such as a panic hook, would affect other tests.
    (init: $init:expr, |$input:ident: $kind:ty| $body:expr) => {
        $crate::fuzz_target!(|$input: $kind| $body);
    };
    (|$input:ident: $kind:ty| $body:expr) => {
        /// Calls the target with these inputs and mutations of them.
        pub(crate) fn survives<S: Into<$crate::fuzzing::Sound>>(sound: impl IntoIterator<Item = S>) {
            fn target($input: $kind) {
                $body
            }
            let sound: Vec<$crate::fuzzing::Sound> = sound.into_iter().map(Into::into).collect();
            $crate::fuzzing::run(module_path!(), &sound, &|case| target($crate::fuzzing::Input::of(case)));
        }
    };
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn seen(sound: &[Sound]) -> Vec<Vec<u8>> {
        let seen = RefCell::new(Vec::new());
        run("seen", sound, &|case| seen.borrow_mut().push(case.part(0).to_vec()));
        seen.into_inner()
    }

    #[test]
    fn the_sound_inputs_come_first_and_a_seed_repeats() {
        let sound = [Sound::from("one, two"), Sound::from("{\"three\": 4}")];
        let inputs = seen(&sound);
        assert_eq!(inputs[..2], [b"one, two".to_vec(), b"{\"three\": 4}".to_vec()]);
        assert_eq!(inputs, seen(&sound));
        let mut distinct = inputs.clone();
        distinct.sort();
        distinct.dedup();
        assert!(inputs.len() * 8 / 10 < distinct.len(), "{} of {}", distinct.len(), inputs.len());
    }

    #[test]
    fn a_target_that_panics_is_told_with_its_input() {
        let has_brace = |case: &Case| assert!(!case.text(0).contains('{'), "a brace");
        let told = catch_unwind(|| run("braces", &[Sound::from("plain")], &has_brace))
            .expect_err("a brace is put in");
        let told = told.downcast_ref::<String>().expect("a text");
        assert!(told.starts_with("braces: input ") && told.contains('{'), "{told}");
    }
}
