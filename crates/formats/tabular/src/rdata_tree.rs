//! Reads R's saved data (`save`, versions 2 and 3 of its serialization) as a tree of values, as far as tables
//! need it.
//!
//! Source: "R Internals", section 1.8, and R's `serialize.c` for the numbers of types. Functions, environments and
//! calls are read and discarded.

use std::io::Read;
use std::rc::Rc;

use crate::rdata_source::{NA, Source, is_na};
use crate::sink::at_most;
use crate::{Result, TabularError};

/// Maximum nesting of values.
const DEPTH: u32 = 64;
/// Maximum number of names and environments that can be referred to.
const REFERENCES: usize = 1_000_000;

/// A value with its attributes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Value {
    pub(crate) data: Data,
    pub(crate) attributes: Vec<(Rc<str>, Value)>,
}

/// A value.
#[derive(Debug, Clone, Default)]
pub(crate) enum Data {
    /// `NULL`, and everything that tables do not need.
    #[default]
    Nothing,
    Logicals(Vec<i32>),
    Integers(Vec<i32>),
    Reals(Vec<f64>),
    /// Real and imaginary parts in turn.
    Complex(Vec<f64>),
    Texts(Vec<Option<Rc<str>>>),
    List(Vec<Value>),
    /// A list of names and values.
    Pairs(Vec<(Rc<str>, Value)>),
    Symbol(Rc<str>),
    /// Within texts: one text.
    Characters(Option<Rc<str>>),
}

impl Value {
    /// Returns an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&Self> {
        self.attributes.iter().find(|it| &*it.0 == name).map(|it| &it.1)
    }

    /// Returns the texts of a text vector; `None` for `NA`.
    pub(crate) fn texts(&self) -> &[Option<Rc<str>>] {
        match &self.data {
            Data::Texts(list) => list,
            _ => &[],
        }
    }

    /// Returns whether it is of a class.
    pub(crate) fn is_of(&self, class: &str) -> bool {
        let classes = self.attribute("class").map(Self::texts).unwrap_or_default();
        classes.iter().any(|it| it.as_deref() == Some(class))
    }
}

/// Reads values one after the other.
pub(crate) struct Reader<R> {
    source: Source<R>,
    references: Vec<Rc<str>>,
    /// Bytes that may still be held.
    left: u64,
    most: u64,
}

/// Flags before a value.
struct Flags {
    ty: u32,
    has_attributes: bool,
    has_tag: bool,
    reference: u32,
}

impl<R: Read> Reader<R> {
    /// Reads the output of `save`, after the magic number: its pairs of names and values.
    ///
    /// Errors: it is damaged, truncated, or holds more than `most` bytes of values.
    pub(crate) fn workspace(source: R, most: u64) -> Result<Vec<(Rc<str>, Value)>> {
        let mut reader = Self { source: Source::new(source)?, references: Vec::new(), left: most, most };
        let version = reader.source.int("the version of the serialization")?;
        for _ in 0..2 {
            reader.source.int("the versions of R")?;
        }
        match version {
            2 => {}
            3 => {
                let n = reader.length("the name of the encoding")?;
                reader.text(n, "the name of the encoding")?;
            }
            other => {
                return Err(TabularError::Unsupported(format!(
                    "version {other} of R's serialization; expected 2 or 3"
                )));
            }
        }
        match reader.value(0)?.data {
            Data::Pairs(pairs) => Ok(pairs),
            _ => Err(reader.source.damaged("no list of objects; expected what save() writes")),
        }
    }

    fn too_deep(&self) -> TabularError {
        self.source.damaged(format!("values lie more than {DEPTH} deep in each other"))
    }

    fn hold(&mut self, n_bytes: u64) -> Result<()> {
        let held = (self.most - self.left).saturating_add(n_bytes);
        at_most("bytes of a workspace of R", held, self.most)?;
        self.left = self.most - held;
        Ok(())
    }

    fn length(&mut self, what: &'static str) -> Result<u64> {
        match self.source.int(what)? {
            // Vectors of more than 2^31 elements have their length in two parts; none is within the limit.
            -1 => Err(TabularError::TooLarge { what, found: 1 << 31, most: (1 << 31) - 1 }),
            n => u64::try_from(n).map_err(|_| self.source.damaged(format!("a length of {n} of {what}"))),
        }
    }

    fn text(&mut self, n: u64, what: &'static str) -> Result<Vec<u8>> {
        self.hold(n)?;
        self.source.text(n, what)
    }

    fn flags(&mut self) -> Result<Flags> {
        let flags = self.source.int("a value")?.cast_unsigned();
        Ok(Flags {
            ty: flags & 0xff,
            has_attributes: flags & (1 << 9) != 0,
            has_tag: flags & (1 << 10) != 0,
            reference: flags >> 8,
        })
    }

    fn value(&mut self, depth: u32) -> Result<Value> {
        let flags = self.flags()?;
        self.value_of(&flags, depth)
    }

    fn value_of(&mut self, flags: &Flags, depth: u32) -> Result<Value> {
        if DEPTH <= depth {
            return Err(self.too_deep());
        }
        let mut data = match flags.ty {
            // R's own environments, `NULL`, and markers for missing arguments.
            241 | 242 | 247..=254 if !matches!(flags.ty, 247..=249) => return Ok(Value::default()),
            247..=249 => {
                self.names(depth)?;
                self.refer("".into())?;
                return Ok(Value::default());
            }
            255 => return self.referred(flags.reference),
            1 => {
                let name = self.value(depth + 1)?;
                let name = match name.data {
                    Data::Characters(Some(text)) => text,
                    _ => "NA".into(),
                };
                self.refer(name.clone())?;
                return Ok(Data::Symbol(name).into());
            }
            2 | 3 | 5 | 6 | 17 | 239 | 240 => return self.pairs(flags, depth),
            4 => return self.environment(depth),
            7 | 8 => {
                let n = self.length("the name of a function")?;
                self.text(n, "the name of a function")?;
                return Ok(Value::default());
            }
            9 => return self.characters(),
            10 => Data::Logicals(self.integers()?),
            13 => Data::Integers(self.integers()?),
            14 => Data::Reals(self.reals_of(1, "numbers")?),
            15 => Data::Complex(self.reals_of(2, "complex numbers")?),
            16 => self.texts(depth)?,
            19 | 20 => self.list(depth)?,
            24 => {
                let n = self.length("raw bytes")?;
                self.source.skip_raw(n, "raw bytes")?;
                Data::Nothing
            }
            21 => {
                self.length("the references of byte code")?;
                self.byte_code(depth + 1)?;
                Data::Nothing
            }
            22 => {
                self.refer("".into())?;
                self.value(depth + 1)?;
                self.value(depth + 1)?;
                Data::Nothing
            }
            23 => {
                self.refer("".into())?;
                Data::Nothing
            }
            25 => Data::Nothing,
            238 => return self.alternative(depth),
            other => {
                return Err(TabularError::Unsupported(format!(
                    "the workspace of R holds a value of type {other}, which is not read"
                )));
            }
        };
        let mut attributes = Vec::new();
        if flags.has_attributes
            && let Data::Pairs(pairs) = self.value(depth + 1)?.data
        {
            attributes = pairs;
        }
        if let Data::List(list) = &mut data {
            list.shrink_to_fit();
        }
        Ok(Value { data, attributes })
    }

    fn refer(&mut self, name: Rc<str>) -> Result<()> {
        at_most("names in a workspace of R", self.references.len() as u64 + 1, REFERENCES as u64)?;
        self.references.push(name);
        Ok(())
    }

    fn referred(&mut self, packed: u32) -> Result<Value> {
        let number = if packed == 0 { self.source.int("a reference")?.cast_unsigned() } else { packed };
        let at = usize::try_from(number).ok().and_then(|it| it.checked_sub(1));
        let name = at.and_then(|at| self.references.get(at)).cloned();
        name.map(|it| Data::Symbol(it).into()).ok_or_else(|| {
            self.source.damaged(format!("a reference to number {number}, which was not named"))
        })
    }

    fn names(&mut self, depth: u32) -> Result<()> {
        self.source.int("a name")?;
        let n = self.length("the parts of a name")?;
        for _ in 0..n {
            self.value(depth + 1)?;
        }
        Ok(())
    }

    fn environment(&mut self, depth: u32) -> Result<Value> {
        self.source.int("an environment")?;
        self.refer("".into())?;
        for _ in 0..4 {
            self.value(depth + 1)?;
        }
        Ok(Value::default())
    }

    /// Reads a list of pairs, cell by cell.
    fn pairs(&mut self, first: &Flags, depth: u32) -> Result<Value> {
        let mut pairs = Vec::new();
        let mut attributes = Vec::new();
        let (mut has_attributes, mut has_tag) = (first.has_attributes, first.has_tag);
        if matches!(first.ty, 239 | 240) {
            has_attributes = true;
        }
        loop {
            self.hold(64)?;
            if has_attributes && let Data::Pairs(list) = self.value(depth + 1)?.data {
                attributes = list;
            }
            let name = match has_tag {
                true => self.value(depth + 1)?.data,
                false => Data::Nothing,
            };
            let name = if let Data::Symbol(name) = name { name } else { "".into() };
            pairs.push((name, self.value(depth + 1)?));
            let next = self.flags()?;
            if !matches!(next.ty, 2 | 239) {
                self.value_of(&next, depth + 1)?;
                break;
            }
            (has_attributes, has_tag) = (next.has_attributes || next.ty == 239, next.has_tag);
        }
        Ok(Value { data: Data::Pairs(pairs), attributes })
    }

    fn characters(&mut self) -> Result<Value> {
        let n = self.source.int("a text")?;
        if n == -1 {
            return Ok(Data::Characters(None).into());
        }
        let n = u64::try_from(n).map_err(|_| self.source.damaged(format!("a text of {n} bytes")))?;
        let bytes = self.text(n, "a text")?;
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => encoding_rs::WINDOWS_1252.decode(error.as_bytes()).0.into_owned(),
        };
        Ok(Data::Characters(Some(text.into())).into())
    }

    fn integers(&mut self) -> Result<Vec<i32>> {
        let n = self.length("whole numbers")?;
        self.hold(n.saturating_mul(4))?;
        (0..n).map(|_| self.source.int("whole numbers")).collect()
    }

    /// Reads a vector whose elements are `n_parts` numbers each.
    fn reals_of(&mut self, n_parts: u64, what: &'static str) -> Result<Vec<f64>> {
        let n = self.length(what)?.saturating_mul(n_parts);
        self.hold(n.saturating_mul(8))?;
        (0..n).map(|_| self.source.real(what)).collect()
    }

    /// Reads past the compiled form of a function: its instructions and what they refer to.
    fn byte_code(&mut self, depth: u32) -> Result<()> {
        self.value(depth + 1)?;
        let n = self.length("the constants of byte code")?;
        for _ in 0..n {
            match self.source.int("a constant of byte code")? {
                21 => self.byte_code(depth + 1)?,
                ty @ (2 | 6 | 239 | 240 | 243 | 244) => self.byte_code_call(ty, depth + 1)?,
                _ => drop(self.value(depth + 1)?),
            }
        }
        Ok(())
    }

    /// Reads past a call that byte code refers to, part by part: attributes, tag, then the first element and the rest.
    fn byte_code_call(&mut self, mut ty: i32, depth: u32) -> Result<()> {
        if DEPTH <= depth {
            return Err(self.too_deep());
        }
        loop {
            self.hold(64)?;
            match ty {
                243 => return self.source.int("a reference of byte code").map(drop),
                244 => {
                    self.source.int("a reference of byte code")?;
                    ty = self.source.int("a call in byte code")?;
                }
                _ => {}
            }
            if !matches!(ty, 2 | 6 | 239 | 240) {
                return self.value(depth + 1).map(drop);
            }
            if matches!(ty, 239 | 240) {
                self.value(depth + 1)?;
            }
            self.value(depth + 1)?;
            let first = self.source.int("a call in byte code")?;
            self.byte_code_call(first, depth + 1)?;
            ty = self.source.int("a call in byte code")?;
        }
    }

    fn texts(&mut self, depth: u32) -> Result<Data> {
        let n = self.length("texts")?;
        let mut list = Vec::new();
        for _ in 0..n {
            self.hold(16)?;
            list.push(match self.value(depth + 1)?.data {
                Data::Characters(text) => text,
                _ => return Err(self.source.damaged("a value among texts that is none")),
            });
        }
        Ok(Data::Texts(list))
    }

    fn list(&mut self, depth: u32) -> Result<Data> {
        let n = self.length("a list")?;
        let mut list = Vec::new();
        for _ in 0..n {
            self.hold(64)?;
            list.push(self.value(depth + 1)?);
        }
        Ok(Data::List(list))
    }

    /// Reads a vector that R stores in another form than its elements: its class, its state, its attributes.
    fn alternative(&mut self, depth: u32) -> Result<Value> {
        let info = self.value(depth + 1)?;
        let state = self.value(depth + 1)?;
        let attributes = match self.value(depth + 1)?.data {
            Data::Pairs(pairs) => pairs,
            _ => Vec::new(),
        };
        let name = match &info.data {
            Data::Pairs(pairs) => match pairs.first().map(|it| &it.1.data) {
                Some(Data::Symbol(name)) => name.clone(),
                _ => "".into(),
            },
            _ => "".into(),
        };
        let data = match (&*name, state.data) {
            ("compact_intseq" | "compact_realseq", Data::Reals(state)) => self.sequence(&name, &state)?,
            (wrapper, Data::List(mut list)) if wrapper.starts_with("wrap_") && !list.is_empty() => {
                list.swap_remove(0).data
            }
            (wrapper, Data::Pairs(mut list)) if wrapper.starts_with("wrap_") && !list.is_empty() => {
                list.swap_remove(0).1.data
            }
            ("deferred_string", Data::Pairs(mut list)) if !list.is_empty() => {
                deferred(list.swap_remove(0).1.data)
            }
            (other, _) => {
                return Err(TabularError::Unsupported(format!(
                    "the workspace of R holds a vector of the form {other:?}, which is not read"
                )));
            }
        };
        Ok(Value { data, attributes })
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded just before")]
    fn sequence(&mut self, name: &str, state: &[f64]) -> Result<Data> {
        let [n, first, step] = state else {
            return Err(self
                .source
                .damaged(format!("a sequence of {} numbers; expected three", state.len())));
        };
        if !(0.0..=4e9).contains(n) {
            return Err(self.source.damaged(format!("a sequence of {n} elements")));
        }
        self.hold((*n as u64).saturating_mul(8))?;
        let element = |at: u64| first + step * at as f64;
        let all = (0..*n as u64).map(element);
        Ok(match name {
            "compact_intseq" => Data::Integers(all.map(|it| it as i32).collect()),
            _ => Data::Reals(all.collect()),
        })
    }
}

/// Converts numbers that R had deferred writing as texts.
fn deferred(numbers: Data) -> Data {
    let text = |it: f64| {
        let mut text = String::new();
        crate::number::push(it, &mut text);
        Some(Rc::from(text))
    };
    match numbers {
        Data::Integers(list) => {
            let one = |it: i32| if it == NA { None } else { text(f64::from(it)) };
            Data::Texts(list.into_iter().map(one).collect())
        }
        Data::Reals(list) => {
            Data::Texts(list.into_iter().map(|it| if is_na(it) { None } else { text(it) }).collect())
        }
        other => other,
    }
}

impl From<Data> for Value {
    fn from(data: Data) -> Self {
        Self { data, attributes: Vec::new() }
    }
}
