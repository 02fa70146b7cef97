//! New identifiers. The random bytes are passed in, so that tests are exact.

/// Creates a version 4 UUID from 16 random bytes: `eba8a3ae-a321-4be8-ba32-0c6112d6c3c1`.
pub fn uuid_v4(random: &mut impl FnMut(&mut [u8])) -> String {
    let mut bytes = [0; 16];
    random(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        push_hex(&mut text, byte);
    }
    text
}

/// Creates a 24-digit hexadecimal id in the form of a `MongoDB` `ObjectId`: seconds since 1970, then 8 random
/// bytes.
///
/// `now_ms` is in milliseconds since 1970.
pub fn object_id(now_ms: i64, random: &mut impl FnMut(&mut [u8])) -> String {
    let mut tail = [0; 8];
    random(&mut tail);
    let [.., a, b, c, d] = (now_ms / 1000).to_be_bytes();
    let mut text = String::with_capacity(24);
    for byte in [a, b, c, d].into_iter().chain(tail) {
        push_hex(&mut text, byte);
    }
    text
}

fn push_hex(text: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    text.push(char::from(DIGITS[usize::from(byte >> 4)]));
    text.push(char::from(DIGITS[usize::from(byte & 0x0f)]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting() -> impl FnMut(&mut [u8]) {
        let mut next = 0xf8_u8;
        move |bytes| {
            for byte in bytes {
                *byte = next;
                next = next.wrapping_add(1);
            }
        }
    }

    #[test]
    fn uuid_has_version_and_variant() {
        assert_eq!(uuid_v4(&mut counting()), "f8f9fafb-fcfd-4eff-8001-020304050607");
    }

    #[test]
    fn object_id_begins_with_the_second() {
        assert_eq!(object_id(1_769_940_000_123, &mut counting()), "697f2420f8f9fafbfcfdfeff");
    }
}
