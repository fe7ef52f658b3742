//! Strings out of the engine. JavaScript's may hold half a surrogate pair; Rust and JSON get U+FFFD for it.

use std::borrow::Cow;

use rquickjs::{Coerced, Ctx, FromJs, Result, String as JsString, Value};

/// A value as the text that `String(value)` gives.
pub(crate) struct Text(pub(crate) String);

impl<'js> FromJs<'js> for Text {
    fn from_js(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Text> {
        if value.is_string() {
            return Ok(Text(text_of(&JsString::from_js(ctx, value)?)?));
        }
        let Coerced(string) = Coerced::<JsString<'js>>::from_js(ctx, value)?;
        Ok(Text(text_of(&string)?))
    }
}

pub(crate) fn text_of(string: &JsString<'_>) -> Result<String> {
    let text = string.clone().to_cstring()?;
    // SAFETY: the pointer and length are those of the string that `text` keeps alive. Not `as_str`, which takes
    // half a surrogate pair for UTF-8.
    let bytes = unsafe { std::slice::from_raw_parts(text.as_ptr().cast::<u8>(), text.len()) };
    Ok(well_formed(bytes).into_owned())
}

/// The text of what the engine gives as UTF-8, with U+FFFD for half a surrogate pair.
pub(crate) fn well_formed(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        // Half a pair is ED and two continuation bytes, each invalid by itself; one mark stands for the three.
        if chunk.invalid().first().is_some_and(|byte| !(0x80..0xc0).contains(byte)) {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::well_formed;

    #[test]
    fn half_a_surrogate_pair_is_one_replacement() {
        assert_eq!(well_formed(b"a\xed\xa0\x80b"), "a\u{fffd}b");
        assert_eq!(well_formed(b"\xed\xa0\x80\xed\xa0\x80"), "\u{fffd}\u{fffd}");
        assert_eq!(well_formed("a😀b\0".as_bytes()), "a😀b\0");
    }
}
