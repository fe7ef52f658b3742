//! What each byte can be, in one table: most of the scan's time goes to passing over bytes that mean nothing to it.

/// A blank that doesn't end a line.
pub(super) const BLANK: u8 = 1;
/// Goes on with an ASCII word.
pub(super) const WORD: u8 = 2;
/// Can end a string or a part of it.
pub(super) const STRING_END: u8 = 4;
/// Can end the text of a template.
pub(super) const TEMPLATE_END: u8 = 8;

pub(super) fn is(byte: u8, kind: u8) -> bool {
    KINDS[byte as usize] & kind != 0
}

static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b' ' | b'\t' | 0x0B | 0x0C => BLANK,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => WORD,
            b'$' => WORD | TEMPLATE_END,
            b'\n' | b'\r' | b'"' | b'\'' => STRING_END,
            b'`' => TEMPLATE_END,
            b'\\' => STRING_END | TEMPLATE_END,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};
