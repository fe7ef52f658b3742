//! Finds the real position of a syntax error inside a generic arrow function: the parser backtracks and reports its head.
//! Without the type parameters it parses the function once, and reports the error where it is.

use super::error::CompileError;

/// How many nested generic functions are tried.
const MOST_HEADS: usize = 8;
/// Longer lists of type parameters are ignored: scanning on from each `<` would be quadratic.
const LONGEST_HEAD: usize = 512;

/// The error, or a later one that `parse` reports once the type parameters of generic functions are blanked out.
pub(super) fn blame(
    code: &str,
    mut error: CompileError,
    parse: impl Fn(&str) -> Result<(), CompileError>,
) -> CompileError {
    let mut blanked = code.to_owned();
    for _ in 0..MOST_HEADS {
        let Some(head) = last_head_before(&blanked, offset_of(&blanked, &error)) else { break };
        let blank: String = blanked[head.clone()].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
        blanked.replace_range(head, &blank);
        match parse(&blanked) {
            Err(behind) if (behind.line, behind.column) > (error.line, error.column) => error = behind,
            _ => break,
        }
    }
    error
}

/// The last `<…>(` that starts at or before a position.
fn last_head_before(code: &str, place: usize) -> Option<std::ops::Range<usize>> {
    let bytes = code.as_bytes();
    let mut starts = (0..=place.min(code.len().saturating_sub(1))).rev().filter(|at| bytes[*at] == b'<');
    starts.find_map(|start| {
        let mut open = 0;
        let length = bytes[start..].iter().take(LONGEST_HEAD).position(|byte| {
            match byte {
                b'<' => open += 1,
                b'>' => open -= 1,
                _ => {}
            }
            open == 0 || matches!(byte, b';' | b'{')
        })?;
        let end = start + length + 1;
        let is_head = open == 0 && code.get(end..)?.trim_start().starts_with('(');
        (is_head && code[start..end].is_ascii()).then_some(start..end)
    })
}

fn offset_of(code: &str, error: &CompileError) -> usize {
    let line_start = code.split_inclusive('\n').take(error.line - 1).map(str::len).sum::<usize>();
    let rest = code.get(line_start..).unwrap_or_default();
    let column = rest.char_indices().nth(error.column - 1).map_or(rest.len(), |(at, _)| at);
    line_start + column
}

#[cfg(test)]
mod tests {
    use crate::references;

    #[test]
    fn what_is_wrong_inside_a_generic_function_is_said_there() {
        for (code, line, column) in [
            ("const f = <T>(x: T) => {\n  const y = ;\n}", 2, 13),
            ("const f = async <T>(x: T) => {\n  const y = ;\n}", 2, 13),
            ("const f = <T,>(x: T): T => {\n  return x +;\n}", 2, 13),
            ("const f = <T extends Map<A, B>>(x: T) => {\n\n  if (x y) { }\n}", 3, 9),
            ("const é = <T>(x: T) => {\n  const g = async <U>(y: U) => {\n    return é. }\n}", 3, 15),
            ("const f = <T>(x: T) => x;\nconst y = ;", 2, 11),
        ] {
            let error = references(code).map(drop).expect_err(code);
            assert_eq!((error.line, error.column), (line, column), "{code}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_elsewhere_stays_where_it_is() {
        for (code, column) in [("f<T>(1) +;", 10), ("a < b > (c +)", 13), ("<T>(a) b", 8), ("x = ;<T>(a)", 5)]
        {
            let error = references(code).map(drop).expect_err(code);
            assert_eq!((error.line, error.column), (1, column), "{code}: {error}");
        }
    }
}
