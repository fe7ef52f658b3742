//! What the words of the language mean for nesting.

pub(super) enum Word {
    Plain,
    Contextual,
    Prefix,
    Infix,
    /// Goes on with the statement before it.
    Continuation,
    Statement,
    Clause,
    Head,
    Ambiguous,
}

pub(super) fn classify(word: &str) -> Word {
    match word {
        "if" | "for" | "while" | "with" => Word::Head,
        "else" | "catch" | "finally" | "implements" | "from" => Word::Continuation,
        "do" | "try" | "switch" | "function" | "class" | "return" | "throw" | "var" | "const" | "enum" => {
            Word::Statement
        }
        "case" | "default" => Word::Clause,
        "typeof" | "void" | "delete" | "new" | "await" => Word::Prefix,
        "in" | "instanceof" | "as" | "satisfies" | "is" | "extends" => Word::Infix,
        "yield" | "let" | "static" | "of" => Word::Ambiguous,
        "keyof" | "readonly" | "unique" | "infer" | "asserts" | "abstract" | "declare" | "async" | "get"
        | "set" | "type" | "interface" | "namespace" | "module" | "accessor" | "override" | "public"
        | "private" | "protected" | "global" | "out" | "using" => Word::Contextual,
        _ => Word::Plain,
    }
}
