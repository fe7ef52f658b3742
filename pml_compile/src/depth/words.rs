//! What the language's keywords mean for nesting.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    Plain,
    Contextual,
    Prefix,
    Infix,
    /// Continues the previous statement.
    Continuation,
    Statement,
    Clause,
    Head,
    Ambiguous,
}

const WORDS: &[(Word, &[&str])] = &[
    (Word::Head, &["if", "for", "while", "with"]),
    (Word::Continuation, &["else", "catch", "finally", "implements", "from"]),
    (
        Word::Statement,
        &["do", "try", "switch", "function", "class", "return", "throw", "var", "const", "enum"],
    ),
    (Word::Clause, &["case", "default"]),
    (Word::Prefix, &["typeof", "void", "delete", "new", "await"]),
    (Word::Infix, &["in", "instanceof", "as", "satisfies", "is", "extends"]),
    (Word::Ambiguous, &["yield", "let", "static", "of"]),
    (
        Word::Contextual,
        &[
            "keyof",
            "readonly",
            "unique",
            "infer",
            "asserts",
            "abstract",
            "declare",
            "async",
            "get",
            "set",
            "type",
            "interface",
            "namespace",
            "module",
            "accessor",
            "override",
            "public",
            "private",
            "protected",
            "global",
            "out",
            "using",
        ],
    ),
];

/// Four slots per keyword, so that most other words hit an empty slot at once.
const SLOTS: usize = 256;

const fn slot(word: &[u8]) -> usize {
    let (first, last) = (word[0] as usize, word[word.len() - 1] as usize);
    (first * 7 + last * 31 + word.len() * 13) % SLOTS
}

static TABLE: [(&[u8], Word); SLOTS] = {
    let mut table: [(&[u8], Word); SLOTS] = [(b"", Word::Plain); SLOTS];
    let mut kind = 0;
    while kind < WORDS.len() {
        let (meaning, words) = WORDS[kind];
        let mut index = 0;
        while index < words.len() {
            let mut at = slot(words[index].as_bytes());
            while !table[at].0.is_empty() {
                at = (at + 1) % SLOTS;
            }
            table[at] = (words[index].as_bytes(), meaning);
            index += 1;
        }
        kind += 1;
    }
    table
};

pub(super) fn classify(word: &[u8]) -> Word {
    if word.is_empty() {
        return Word::Plain;
    }
    let mut at = slot(word);
    loop {
        let (known, meaning) = TABLE[at];
        if known.is_empty() || known == word {
            return meaning;
        }
        at = (at + 1) % SLOTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found() {
        for (meaning, words) in WORDS {
            for word in *words {
                assert_eq!(classify(word.as_bytes()), *meaning, "{word}");
            }
        }
        for word in ["", "a", "If", "iff", "content", "mcp", "\u{e9}"] {
            assert_eq!(classify(word.as_bytes()), Word::Plain, "{word}");
        }
    }
}
