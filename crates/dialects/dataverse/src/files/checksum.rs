//! Checksums of files: the algorithms that the original supports, and their output.

use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha512};

/// Algorithm of files' checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

impl Algorithm {
    /// Returns the algorithm that the setting `:FileFixityChecksumAlgorithm` names.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "SHA-1" => Self::Sha1,
            "SHA-256" => Self::Sha256,
            "SHA-512" => Self::Sha512,
            _ => Self::Md5,
        }
    }

    /// Returns the name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha1 => "SHA-1",
            Self::Sha256 => "SHA-256",
            Self::Sha512 => "SHA-512",
        }
    }
}

/// A checksum being computed.
pub(crate) enum Checksum {
    Md5(Md5),
    Sha1(Sha1),
    Sha256(Sha256),
    Sha512(Box<Sha512>),
}

impl Checksum {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Md5 => Self::Md5(Md5::new()),
            Algorithm::Sha1 => Self::Sha1(Sha1::new()),
            Algorithm::Sha256 => Self::Sha256(Sha256::new()),
            Algorithm::Sha512 => Self::Sha512(Box::default()),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Md5(it) => it.update(bytes),
            Self::Sha1(it) => it.update(bytes),
            Self::Sha256(it) => it.update(bytes),
            Self::Sha512(it) => it.update(bytes),
        }
    }

    /// Returns the checksum in hexadecimal digits.
    pub(crate) fn finish(self) -> String {
        match self {
            Self::Md5(it) => hexadecimal(&it.finalize()),
            Self::Sha1(it) => hexadecimal(&it.finalize()),
            Self::Sha256(it) => hexadecimal(&it.finalize()),
            Self::Sha512(it) => hexadecimal(&it.finalize()),
        }
    }
}

/// Returns the checksum of some bytes, in hexadecimal digits.
pub(crate) fn checksum_of(algorithm: Algorithm, bytes: &[u8]) -> String {
    let mut sum = Checksum::new(algorithm);
    sum.update(bytes);
    sum.finish()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|it| [it >> 4, it & 15]).filter_map(|it| char::from_digit(it.into(), 16)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums() {
        let sum = |algorithm| {
            let mut sum = Checksum::new(algorithm);
            sum.update(b"abc");
            sum.finish()
        };
        assert_eq!(sum(Algorithm::Md5), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(sum(Algorithm::Sha1), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert!(sum(Algorithm::Sha256).starts_with("ba7816bf"));
    }
}
