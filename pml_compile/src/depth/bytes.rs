//! Byte classes in one table: most of the scan's time goes into skipping bytes that don't matter to it.

/// White space other than a line end.
pub(super) const BLANK: u8 = 1;
/// Continues an ASCII word.
pub(super) const WORD: u8 = 2;
/// Can end a string, or start an escape in it.
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
