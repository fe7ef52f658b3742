//! Glob patterns over names: `*` is any text, `?` any one character, everything else is itself.

/// The SQL LIKE pattern (escape character `\`) that matches the same names.
pub fn to_like(glob: &str) -> String {
    let mut like = String::with_capacity(glob.len() + 4);
    for c in glob.chars() {
        match c {
            '*' => like.push('%'),
            '?' => like.push('_'),
            '%' | '_' | '\\' => like.extend(['\\', c]),
            _ => like.push(c),
        }
    }
    like
}

#[cfg(test)]
mod tests {
    use super::to_like;

    #[test]
    fn wildcards_and_literals() {
        for (glob, like) in [
            ("fs:*", "fs:%"),
            ("read_?", "read\\__"),
            ("100%", "100\\%"),
            ("a\\b", "a\\\\b"),
            ("", ""),
            ("é*", "é%"),
        ] {
            assert_eq!(to_like(glob), like, "{glob}");
        }
    }
}
