//! Bytes as hexadecimal digits.
//!
//! Owns: the one way of writing (lower case) and of reading (either case, nothing else). Not for secrets: its time
//! depends on the digits.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

pub(crate) fn encode(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]]);
    digits.map(char::from).collect()
}

/// `None` unless the text is exactly 2N digits.
pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Lets a type with `Display` and `FromStr` travel as a text wherever `#[serde(try_from, into)]` names `String`.
macro_rules! text_form {
    ($name:ty) => {
        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }

        impl TryFrom<String> for $name {
            type Error = crate::Error;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }
    };
}
pub(crate) use text_form;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_bytes_and_nothing_else_is() {
        assert_eq!(encode(&[0x00, 0x9f, 0xa0, 0xff]), "009fa0ff");
        assert_eq!(decode("009fA0Ff"), Some([0x00, 0x9f, 0xa0, 0xff]));
        for wrong in ["", "0", "00", "0g", "g0", "+1", " 1", "é", "000", "00000"] {
            let read: Option<[u8; 2]> = decode(wrong);
            assert_eq!(read, None, "{wrong}");
        }
    }
}
