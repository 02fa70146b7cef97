//! The two forms in which R writes a workspace: XDR, which is binary with the most significant byte first, and ASCII,
//! where every number is a word.
//!
//! Source: R's `serialize.c`, the functions whose names begin with `In`.

use std::io::Read;

use crate::input::{Input, Order};
use crate::{Result, TabularError};

/// `NA` of integers and of logical values.
pub(crate) const NA: i32 = i32::MIN;
/// The low half of the bits of `NA` among numbers, which otherwise is a NaN.
const NA_LOW_BITS: u64 = 1954;
/// `NA` among numbers.
const NA_REAL: f64 = f64::from_bits(0x7ff0_0000_0000_07a2);
/// Bytes of a word of the ASCII form.
const WORD_BYTES: usize = 100;

/// Returns whether a number is `NA`, not another NaN.
pub(crate) fn is_na(value: f64) -> bool {
    value.is_nan() && value.to_bits() & 0xffff_ffff == NA_LOW_BITS
}

/// A source of numbers and bytes.
pub(crate) struct Source<R> {
    input: Input<R>,
    is_ascii: bool,
    /// A byte of the ASCII form that was read too far.
    ahead: Option<u8>,
}

impl<R: Read> Source<R> {
    /// Reads the form, which comes first.
    pub(crate) fn new(source: R) -> Result<Self> {
        let mut input = Input::new(source);
        input.order = Order::Big;
        let form: [u8; 2] = input.array("the form of the serialization")?;
        let is_ascii = match &form {
            b"X\n" => false,
            b"A\n" => true,
            other => {
                let found = String::from_utf8_lossy(other).into_owned();
                return Err(TabularError::Unsupported(format!(
                    "{found:?} is the form of this workspace of R; expected \"X\\n\" (XDR) or \"A\\n\" (ASCII)"
                )));
            }
        };
        Ok(Self { input, is_ascii, ahead: None })
    }

    pub(crate) fn damaged(&self, what: impl Into<String>) -> TabularError {
        self.input.damaged(what.into())
    }

    pub(crate) fn int(&mut self, what: &'static str) -> Result<i32> {
        if !self.is_ascii {
            return self.input.i32(what);
        }
        let word = self.word(what)?;
        if word == "NA" {
            return Ok(NA);
        }
        word.parse().map_err(|_| self.damaged(format!("{word:?} in {what}; expected a whole number")))
    }

    pub(crate) fn real(&mut self, what: &'static str) -> Result<f64> {
        if !self.is_ascii {
            return self.input.f64(what);
        }
        let word = self.word(what)?;
        match word.as_str() {
            "NA" => Ok(NA_REAL),
            "NaN" => Ok(f64::NAN),
            "Inf" => Ok(f64::INFINITY),
            "-Inf" => Ok(f64::NEG_INFINITY),
            _ => word.parse().map_err(|_| self.damaged(format!("{word:?} in {what}; expected a number"))),
        }
    }

    /// Reads the bytes of a text.
    pub(crate) fn text(&mut self, n: u64, what: &'static str) -> Result<Vec<u8>> {
        if !self.is_ascii {
            return self.input.bytes(n, what);
        }
        let mut bytes = Vec::new();
        if 0 < n {
            let first = self.after_blanks(what)?;
            self.ahead = Some(first);
        }
        for _ in 0..n {
            let byte = match self.byte(what)? {
                b'\\' => self.escaped(what)?,
                byte => byte,
            };
            bytes.push(byte);
        }
        Ok(bytes)
    }

    /// Reads past raw bytes, which the ASCII form writes as words of two hexadecimal digits.
    pub(crate) fn skip_raw(&mut self, n: u64, what: &'static str) -> Result<()> {
        if !self.is_ascii {
            return self.input.skip(n, what);
        }
        for _ in 0..n {
            self.word(what)?;
        }
        Ok(())
    }

    /// Reads what follows a backslash.
    fn escaped(&mut self, what: &'static str) -> Result<u8> {
        Ok(match self.byte(what)? {
            b'n' => b'\n',
            b't' => b'\t',
            b'v' => 0x0b,
            b'b' => 0x08,
            b'r' => b'\r',
            b'f' => 0x0c,
            b'a' => 0x07,
            mut digit @ b'0'..=b'7' => {
                let mut value = 0_u32;
                for _ in 0..3 {
                    value = value * 8 + u32::from(digit - b'0');
                    digit = self.byte(what)?;
                    if !(b'0'..=b'7').contains(&digit) {
                        break;
                    }
                }
                self.ahead = Some(digit);
                u8::try_from(value)
                    .map_err(|_| self.damaged(format!("the escape \\{value:o} in {what} is no byte")))?
            }
            other => other,
        })
    }

    fn byte(&mut self, what: &'static str) -> Result<u8> {
        match self.ahead.take() {
            Some(byte) => Ok(byte),
            None => self.input.u8(what),
        }
    }

    fn after_blanks(&mut self, what: &'static str) -> Result<u8> {
        loop {
            let byte = self.byte(what)?;
            if !byte.is_ascii_whitespace() {
                return Ok(byte);
            }
        }
    }

    fn word(&mut self, what: &'static str) -> Result<String> {
        let mut byte = self.after_blanks(what)?;
        let mut word = String::new();
        while !byte.is_ascii_whitespace() {
            if word.len() == WORD_BYTES {
                return Err(self.damaged(format!("a word of more than {WORD_BYTES} bytes in {what}")));
            }
            word.push(char::from(byte));
            byte = self.byte(what)?;
        }
        Ok(word)
    }
}
