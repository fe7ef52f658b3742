//! Makes values of JSON text that comes from the parent: arguments and answers of calls.
//!
//! Builds the same values as the engine's own parser in a quarter of its time: that one allocates every string twice, looks up
//! every key anew, and reads numbers with strtod. What is unusual here is left to it: deep nesting, and text that isn't JSON,
//! so that its errors and limits apply.

use rquickjs::{Ctx, Error, Result, Value, qjs};

use super::raw::{Name, Owned};

/// Deeper text is parsed by the engine, which checks its stack. More than any result may have.
const DEEPEST: usize = 200;

/// Elements of unfinished arrays that are held outside the engine's heap, whose limit they would escape.
const HELD_ELEMENTS: usize = 32 * 1024;

/// Keys that are looked up once as long as no other key takes their place; a power of two.
const KNOWN_KEYS: usize = 256;

/// Parses `text`, which is one JSON value.
pub(crate) fn parse<'js>(ctx: &Ctx<'js>, text: &str) -> Result<Value<'js>> {
    let mut parser = Parser {
        ctx,
        text: text.as_bytes(),
        at: 0,
        keys: std::iter::repeat_with(|| None).take(KNOWN_KEYS).collect(),
        held: Vec::new(),
    };
    match parser.whole() {
        Ok(value) => Ok(value.into_value(ctx)),
        Err(Stop::Exception) => Err(Error::Exception),
        Err(Stop::NotForUs) => {
            drop(parser);
            ctx.json_parse(text)
        }
    }
}

enum Stop {
    /// The engine failed, and has the exception.
    Exception,
    /// The engine's parser shall have it.
    NotForUs,
}

type Parsed<T> = std::result::Result<T, Stop>;

struct Parser<'a, 'js> {
    ctx: &'a Ctx<'js>,
    text: &'a [u8],
    at: usize,
    keys: Vec<Option<(&'a [u8], Name<'js>)>>,
    /// The elements of all arrays that aren't finished, each a reference.
    held: Vec<qjs::JSValue>,
}

impl Drop for Parser<'_, '_> {
    fn drop(&mut self) {
        for element in &self.held {
            // SAFETY: these references are the parser's.
            unsafe { qjs::JS_FreeValue(self.ctx.as_raw().as_ptr(), *element) }
        }
    }
}

impl<'a, 'js> Parser<'a, 'js> {
    fn whole(&mut self) -> Parsed<Owned<'js>> {
        let value = self.value(0)?;
        match self.next() {
            None => Ok(value),
            Some(_) => Err(Stop::NotForUs),
        }
    }

    /// The next byte that isn't white space, without taking it.
    fn next(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Takes the next byte if it is `wanted`.
    fn takes(&mut self, wanted: u8) -> bool {
        let found = self.next() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: u8) -> Parsed<()> {
        if self.takes(wanted) { Ok(()) } else { Err(Stop::NotForUs) }
    }

    fn value(&mut self, depth: usize) -> Parsed<Owned<'js>> {
        match self.next().ok_or(Stop::NotForUs)? {
            _ if depth > DEEPEST => Err(Stop::NotForUs),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(),
            b't' => self.word(b"true", qjs::JS_TRUE),
            b'f' => self.word(b"false", qjs::JS_FALSE),
            b'n' => self.word(b"null", qjs::JS_NULL),
            _ => self.number(),
        }
    }

    fn made(&self, raw: qjs::JSValue) -> Parsed<Owned<'js>> {
        // SAFETY: all callers pass a new reference, or a value that has none.
        unsafe { Owned::new(self.ctx, raw) }.map_err(|_| Stop::Exception)
    }

    fn word(&mut self, word: &[u8], value: qjs::JSValue) -> Parsed<Owned<'js>> {
        if !self.text[self.at..].starts_with(word) {
            return Err(Stop::NotForUs);
        }
        self.at += word.len();
        self.made(value)
    }

    fn object(&mut self, depth: usize) -> Parsed<Owned<'js>> {
        self.at += 1;
        // SAFETY: the context is alive.
        let object = self.made(unsafe { qjs::JS_NewObject(self.ctx.as_raw().as_ptr()) })?;
        if self.takes(b'}') {
            return Ok(object);
        }
        loop {
            if self.next() != Some(b'"') {
                return Err(Stop::NotForUs);
            }
            let key = self.key()?;
            self.expect(b':')?;
            let value = self.value(depth + 1)?;
            self.define(&object, key.atom(), value)?;
            if !self.takes(b',') {
                break;
            }
        }
        self.expect(b'}')?;
        Ok(object)
    }

    /// Not an assignment: `__proto__` is a key like any other, and setters of prototypes aren't called.
    fn define(&self, object: &Owned<'js>, key: qjs::JSAtom, value: Owned<'js>) -> Parsed<()> {
        let flags = qjs::JS_PROP_C_W_E.cast_signed();
        let ctx = self.ctx.as_raw().as_ptr();
        // SAFETY: all are of this runtime; the value's reference is handed over.
        let done = unsafe { qjs::JS_DefinePropertyValue(ctx, object.raw(), key, value.into_raw(), flags) };
        if done < 0 { Err(Stop::Exception) } else { Ok(()) }
    }

    fn array(&mut self, depth: usize) -> Parsed<Owned<'js>> {
        self.at += 1;
        let first = self.held.len();
        if !self.takes(b']') {
            loop {
                let element = self.value(depth + 1)?;
                self.held.push(element.into_raw());
                if self.held.len() >= HELD_ELEMENTS {
                    return self.long_array(first, depth);
                }
                if !self.takes(b',') {
                    break;
                }
            }
            self.expect(b']')?;
        }
        self.array_of(first)
    }

    /// An array of the elements held from `first`.
    fn array_of(&mut self, first: usize) -> Parsed<Owned<'js>> {
        let elements = &self.held[first..];
        let count = i32::try_from(elements.len()).map_err(|_| Stop::NotForUs)?;
        // SAFETY: the references of so many values are handed over, even if it fails.
        let array = unsafe { qjs::JS_NewArrayFrom(self.ctx.as_raw().as_ptr(), count, elements.as_ptr()) };
        self.held.truncate(first);
        self.made(array)
    }

    /// The rest of an array, added element by element.
    fn long_array(&mut self, first: usize, depth: usize) -> Parsed<Owned<'js>> {
        let mut index = u32::try_from(self.held.len() - first).map_err(|_| Stop::NotForUs)?;
        let array = self.array_of(first)?;
        let flags = qjs::JS_PROP_C_W_E.cast_signed();
        let ctx = self.ctx.as_raw().as_ptr();
        while self.takes(b',') {
            let element = self.value(depth + 1)?.into_raw();
            // SAFETY: all are of this runtime; the element's reference is handed over.
            if unsafe { qjs::JS_DefinePropertyValueUint32(ctx, array.raw(), index, element, flags) } < 0 {
                return Err(Stop::Exception);
            }
            index += 1;
        }
        self.expect(b']')?;
        Ok(array)
    }

    fn string(&mut self) -> Parsed<Owned<'js>> {
        let (contents, has_escapes) = self.quoted()?;
        if !has_escapes {
            return self.new_string(contents);
        }
        let units = unescaped(contents).ok_or(Stop::NotForUs)?;
        match String::from_utf16(&units) {
            Ok(text) => self.new_string(text.as_bytes()),
            // SAFETY: the engine copies so many units.
            Err(_) => self.made(unsafe {
                qjs::JS_NewStringUTF16(self.ctx.as_raw().as_ptr(), units.as_ptr(), units.len() as qjs::size_t)
            }),
        }
    }

    /// A string of UTF-8, which the engine stores with one byte for each character if all fit.
    fn new_string(&self, text: &[u8]) -> Parsed<Owned<'js>> {
        let ctx = self.ctx.as_raw().as_ptr();
        // SAFETY: the engine copies so many bytes.
        self.made(unsafe { qjs::JS_NewStringLen(ctx, text.as_ptr().cast(), text.len() as qjs::size_t) })
    }

    /// What is between the quotes, and whether it has escapes.
    fn quoted(&mut self) -> Parsed<(&'a [u8], bool)> {
        let start = self.at + 1;
        let mut has_escapes = false;
        let mut at = start;
        loop {
            at += plain_prefix(self.text.get(at..).ok_or(Stop::NotForUs)?);
            match self.text.get(at).ok_or(Stop::NotForUs)? {
                b'"' => break,
                b'\\' => {
                    has_escapes = true;
                    at += 2;
                }
                _ => return Err(Stop::NotForUs),
            }
        }
        self.at = at + 1;
        Ok((&self.text[start..at], has_escapes))
    }

    fn key(&mut self) -> Parsed<Name<'js>> {
        let start = self.at;
        let (contents, has_escapes) = self.quoted()?;
        let place = place_of(contents);
        if let Some((known, name)) = &self.keys[place]
            && *known == contents
        {
            // SAFETY: the name is alive, and of this context.
            return Ok(unsafe { Name::again(self.ctx, name.atom()) });
        }
        let text = if has_escapes {
            self.at = start;
            self.string()?
        } else {
            self.new_string(contents)?
        };
        let name = Name::of(self.ctx, &text).map_err(|_| Stop::Exception)?;
        // SAFETY: as above.
        self.keys[place] = Some((contents, unsafe { Name::again(self.ctx, name.atom()) }));
        Ok(name)
    }

    fn number(&mut self) -> Parsed<Owned<'js>> {
        let rest = &self.text[self.at..];
        let length = number_length(rest).ok_or(Stop::NotForUs)?;
        self.at += length;
        let digits = str::from_utf8(&rest[..length]).map_err(|_| Stop::NotForUs)?;
        let raw = match digits.parse::<i32>() {
            Ok(integer) if digits != "-0" => qjs::JS_MKVAL(qjs::JS_TAG_INT, integer),
            _ => qjs::__JS_NewFloat64(digits.parse().map_err(|_| Stop::NotForUs)?),
        };
        self.made(raw)
    }
}

/// How many bytes there are before a quote, a backslash or a control character.
fn plain_prefix(text: &[u8]) -> usize {
    text.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20)).unwrap_or(text.len())
}

/// The key's place among the known ones.
fn place_of(key: &[u8]) -> usize {
    let (first, last) = match key {
        [.., _, _, _, _, _, _, _, _] => (word(&key[..8]), word(&key[key.len() - 8..])),
        short => (word(short), 0),
    };
    let mixed = (first ^ last.rotate_left(29) ^ key.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 48) as usize % KNOWN_KEYS
}

/// Up to eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The length of the number that `text` begins with.
fn number_length(text: &[u8]) -> Option<usize> {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(text.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && text[at] == b'0') {
        return None;
    }
    at += whole;
    if text.get(at) == Some(&b'.') {
        let decimals = digits(at + 1);
        at += 1 + decimals;
        (decimals > 0).then_some(())?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at);
        at += exponent;
        (exponent > 0).then_some(())?;
    }
    Some(at)
}

/// The UTF-16 of what is between quotes; `None` if an escape is invalid.
fn unescaped(contents: &[u8]) -> Option<Vec<u16>> {
    let text = str::from_utf8(contents).ok()?;
    let mut units = Vec::with_capacity(text.len());
    let mut pieces = text.split('\\');
    units.extend(pieces.next()?.encode_utf16());
    while let Some(piece) = pieces.next() {
        let Some(escape) = piece.chars().next() else {
            // Two backslashes: the piece between them is empty, and the next has no escape.
            units.push(u16::from(b'\\'));
            units.extend(pieces.next()?.encode_utf16());
            continue;
        };
        let (unit, length) = match escape {
            '"' | '/' => (escape as u16, 1),
            'b' => (8, 1),
            'f' => (12, 1),
            'n' => (10, 1),
            'r' => (13, 1),
            't' => (9, 1),
            'u' => (hexadecimal(piece.get(1..5)?)?, 5),
            _ => return None,
        };
        units.push(unit);
        units.extend(piece[length..].encode_utf16());
    }
    Some(units)
}

fn hexadecimal(digits: &str) -> Option<u16> {
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        u16::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

#[cfg(test)]
#[path = "from_json_tests.rs"]
mod tests;
