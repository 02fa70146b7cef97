//! LEB128: seven bits a byte, the high bit set on all but the last.

/// Appends `value`.
pub(crate) fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while 0x80 <= value {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes a value off the front; `None`, with the front partly consumed, if the bytes end within it or it is over 64
/// bits.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
