//! The hash of text that isn't code; code is hashed by its tokens, in `pml_compile`.

/// BLAKE3 of the text's bytes, in hex.
pub fn text_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
