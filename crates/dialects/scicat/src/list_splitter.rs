//! Extracts one long list from a JSON object while it arrives, so that the object is never in memory as a
//! whole.
//!
//! The scanner follows only strings and nesting; each element of the list is passed on as its bytes, and the
//! rest of the object is kept, with an empty list in place of the long one. The parser that receives elements
//! and rest checks whether they are valid JSON.

/// Reason why a body cannot be split.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// One element, or everything except the list, is larger than allowed.
    #[error("{what} is larger than {limit_bytes} bytes")]
    TooLarge {
        /// `an element of the list` or `the body without the list`.
        what: &'static str,
        /// The limit.
        limit_bytes: usize,
    },
    /// A closing bracket without an opening one.
    #[error("unexpected {found:?} at byte {offset} of the body")]
    Unbalanced {
        /// The bracket.
        found: char,
        /// Its position, from 0.
        offset: u64,
    },
}

/// Splits one body.
#[derive(Debug)]
pub struct ListSplitter {
    name: Vec<u8>,
    rest: Vec<u8>,
    element: Vec<u8>,
    limit_bytes: usize,
    offset: u64,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// Start and end, in `rest`, of the last string read at depth 1.
    key: (usize, usize),
    place: Place,
    n_elements: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Outside of the list.
    Outside,
    /// After the list's name and colon.
    BeforeList,
    /// In the list, whose own depth is 2.
    Inside,
}

impl ListSplitter {
    /// Creates a splitter for the list under `name`; an element, and everything except the list, may have up to
    /// `limit_bytes`.
    pub fn new(name: &str, limit_bytes: usize) -> Self {
        Self {
            name: format!("\"{name}\"").into_bytes(),
            rest: Vec::new(),
            element: Vec::new(),
            limit_bytes,
            offset: 0,
            depth: 0,
            in_string: false,
            is_escaped: false,
            key: (0, 0),
            place: Place::Outside,
            n_elements: 0,
        }
    }

    /// Takes the next piece of the body and passes each element that ends in it to `visit`.
    pub fn push<E: From<SplitError>>(
        &mut self,
        piece: &[u8],
        mut visit: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for byte in piece {
            self.step(*byte, &mut visit)?;
            self.offset += 1;
        }
        Ok(())
    }

    /// Returns everything except the list's elements, after the end of the body.
    pub fn into_rest(self) -> Vec<u8> {
        let mut rest = self.rest;
        if self.place == Place::Inside {
            // A body that is cut off inside the list must stay invalid.
            rest.extend_from_slice(&self.element);
        }
        rest
    }

    /// Returns the number of elements passed on so far.
    pub fn n_elements(&self) -> u64 {
        self.n_elements
    }

    fn step<E: From<SplitError>>(
        &mut self,
        byte: u8,
        visit: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let at_list_level = self.place == Place::Inside && self.depth == 2;
        if self.in_string {
            self.in_string = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            self.keep(byte)?;
            if !self.in_string && self.depth == 1 && self.place == Place::Outside {
                self.key.1 = self.rest.len();
            }
            return Ok(());
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.place == Place::Outside {
                    self.key = (self.rest.len(), 0);
                }
                self.leave_unless_list(byte);
                self.keep(byte)?;
            }
            b'{' | b'[' => self.open(byte)?,
            b'}' | b']' => self.close(byte, visit)?,
            b',' if at_list_level => self.hand_out(visit)?,
            b':' if self.depth == 1 && self.place == Place::Outside => {
                if self.rest.get(self.key.0..self.key.1) == Some(self.name.as_slice()) {
                    self.place = Place::BeforeList;
                }
                self.keep(byte)?;
            }
            _ => {
                if !byte.is_ascii_whitespace() {
                    self.leave_unless_list(byte);
                }
                self.keep(byte)?;
            }
        }
        Ok(())
    }

    /// If the value after the name is not a list, leaves the body as it is.
    fn leave_unless_list(&mut self, byte: u8) {
        if self.place == Place::BeforeList && byte != b'[' {
            self.place = Place::Outside;
        }
    }

    fn open(&mut self, byte: u8) -> Result<(), SplitError> {
        let begins_list = self.place == Place::BeforeList && byte == b'[' && self.depth == 1;
        self.leave_unless_list(byte);
        self.depth += 1;
        if begins_list {
            self.rest.push(byte);
            self.place = Place::Inside;
            self.element.clear();
            return Ok(());
        }
        self.keep(byte)
    }

    fn close<E: From<SplitError>>(
        &mut self,
        byte: u8,
        visit: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(depth) = self.depth.checked_sub(1) else {
            return Err(SplitError::Unbalanced { found: char::from(byte), offset: self.offset }.into());
        };
        if self.place == Place::Inside && self.depth == 2 {
            if byte == b'}' {
                return Err(SplitError::Unbalanced { found: '}', offset: self.offset }.into());
            }
            if !self.element.iter().all(u8::is_ascii_whitespace) {
                self.hand_out(visit)?;
            }
            self.place = Place::Outside;
            self.key = (0, 0);
            self.depth = depth;
            self.rest.push(byte);
            return Ok(());
        }
        self.depth = depth;
        Ok(self.keep(byte)?)
    }

    fn hand_out<E: From<SplitError>>(
        &mut self,
        visit: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.n_elements += 1;
        let result = visit(&self.element);
        self.element.clear();
        result
    }

    fn keep(&mut self, byte: u8) -> Result<(), SplitError> {
        let (buffer, what) = match self.place {
            Place::Inside => (&mut self.element, "an element of the list"),
            _ => (&mut self.rest, "the body without the list"),
        };
        if self.limit_bytes <= buffer.len() {
            return Err(SplitError::TooLarge { what, limit_bytes: self.limit_bytes });
        }
        buffer.push(byte);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn split(pieces: &[&[u8]]) -> Result<(Vec<String>, String), SplitError> {
        let mut splitter = ListSplitter::new("list", 1 << 20);
        let mut elements = Vec::new();
        for piece in pieces {
            splitter.push(piece, |element| {
                elements.push(String::from_utf8_lossy(element).trim().to_owned());
                Ok::<_, SplitError>(())
            })?;
        }
        Ok((elements, String::from_utf8_lossy(&splitter.into_rest()).into_owned()))
    }

    #[test]
    fn takes_only_the_list_of_that_name_at_the_top() {
        let body =
            br#"{"a":{"list":[1]},"s":"\"list\":[9]","list":[ {"x":[1,2]} , "a,]b" ,3],"b":["list",1]}"#;
        let (elements, rest) = split(&[body]).unwrap();
        assert_eq!(elements, [r#"{"x":[1,2]}"#, r#""a,]b""#, "3"]);
        assert_eq!(rest, r#"{"a":{"list":[1]},"s":"\"list\":[9]","list":[],"b":["list",1]}"#);
    }

    #[test]
    fn leaves_what_is_no_list() {
        for body in
            [r#"{"list":null,"x":[1]}"#, r#"{"list":{"list":[1]}}"#, r#"{"list":"[1]"}"#, r#"[{"list":[1]}]"#]
        {
            assert_eq!(split(&[body.as_bytes()]).unwrap(), (Vec::new(), body.to_owned()));
        }
    }

    #[test]
    fn keeps_a_cut_body_broken() {
        for body in [r#"{"list":[{"a":1},{"b""#, r#"{"list":[1,2"#, r#"{"li"#] {
            let (_, rest) = split(&[body.as_bytes()]).unwrap();
            assert!(serde_json::from_str::<Value>(&rest).is_err(), "{rest}");
        }
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(list in proptest::collection::vec("[a-z\"\\\\\\[\\]{},: ]{0,9}", 0..6), cut in 0usize..200) {
            let body = json!({"x": {"y": list}, "list": list, "z": 1}).to_string();
            let at = cut.min(body.len());
            let (elements, rest) = split(&[&body.as_bytes()[..at], &body.as_bytes()[at..]]).unwrap();
            let parsed: Vec<Value> = elements.iter().map(|it| serde_json::from_str(it).unwrap()).collect();
            prop_assert_eq!(Value::from(parsed), json!(list));
            let rest: Value = serde_json::from_str(&rest).unwrap();
            prop_assert_eq!(rest, json!({"x": {"y": list}, "list": [], "z": 1}));
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            match split(&[&bytes]) {
                Ok((elements, rest)) => prop_assert!(elements.len() + rest.len() <= bytes.len() * 4 + 1),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
