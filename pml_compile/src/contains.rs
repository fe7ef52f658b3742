//! Searches for fixed texts, prepared once: preparing a search takes as long as searching a whole capability.

/// Whether the code contains this text.
macro_rules! contains {
    ($code:expr, $text:literal) => {{
        static FINDER: std::sync::LazyLock<memchr::memmem::Finder<'static>> =
            std::sync::LazyLock::new(|| memchr::memmem::Finder::new($text));
        FINDER.find($code.as_bytes()).is_some()
    }};
}

pub(crate) use contains;

#[cfg(test)]
mod tests {
    #[test]
    fn a_text_is_found_wherever_it_is() {
        for code in ["__pml", "a __pml", "a\n__pml\n", "__p__pml"] {
            assert!(contains!(code, "__pml"), "{code}");
        }
        for code in ["", "__pm", "_pml", "__p ml"] {
            assert!(!contains!(code, "__pml"), "{code}");
        }
    }
}
