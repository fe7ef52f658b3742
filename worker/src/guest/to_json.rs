//! Serialises JavaScript values as JSON, with a defined outcome for everything that JSON can't express.

use std::io::Write;

use rquickjs::{Atom, Ctx, Function, Object, Value, atom::PredefinedAtom, object::Filter, qjs};

use super::text::text_of;

/// JSON parsers have a depth limit (serde_json 128, Postgres its stack); an error here is clearer than one there.
pub(crate) const DEEPEST: usize = 100;

/// The largest integer that every reader of JSON numbers keeps exact.
const SAFE_INTEGER: i64 = (1 << 53) - 1;

pub(crate) enum JsonError<'js> {
    /// Code that was called on the way (a getter, `toJSON`, a proxy) threw this.
    Threw { value: Value<'js>, path: Vec<String> },
    /// JSON can't hold what is at this path.
    Refused { why: String, path: Vec<String> },
    /// More bytes than allowed.
    TooLong,
}

impl JsonError<'_> {
    fn inside(mut self, segment: impl FnOnce() -> String) -> Self {
        match &mut self {
            JsonError::Threw { path, .. } | JsonError::Refused { path, .. } => path.push(segment()),
            JsonError::TooLong => {}
        }
        self
    }

    /// `$.users[3].name`
    pub(crate) fn path(path: &[String]) -> String {
        path.iter().rev().fold("$".to_owned(), |shown, segment| shown + segment)
    }
}

/// Turns a value into JSON text. `exotic` gives the plain form of objects that are neither plain nor arrays.
pub(crate) struct JsonWriter<'js> {
    ctx: Ctx<'js>,
    exotic: Box<dyn Fn() -> rquickjs::Result<Function<'js>> + 'js>,
    plain_class: u32,
    longest: usize,
    above: Vec<Object<'js>>,
    text: Vec<u8>,
}

impl<'js> JsonWriter<'js> {
    pub(crate) fn new(
        ctx: &Ctx<'js>,
        longest: usize,
        exotic: impl Fn() -> rquickjs::Result<Function<'js>> + 'js,
    ) -> rquickjs::Result<JsonWriter<'js>> {
        let plain = Object::new(ctx.clone())?;
        Ok(JsonWriter {
            ctx: ctx.clone(),
            exotic: Box::new(exotic),
            plain_class: class_of(&plain),
            longest,
            above: Vec::new(),
            text: Vec::new(),
        })
    }

    /// `undefined` as a whole is `for_undefined`.
    pub(crate) fn write(mut self, value: Value<'js>, for_undefined: &str) -> Result<String, JsonError<'js>> {
        if value.is_undefined() {
            return Ok(for_undefined.to_owned());
        }
        let kind = value.type_name();
        if !self.value(value, "")? {
            return Err(JsonError::Refused { why: format!("a {kind} has no JSON"), path: Vec::new() });
        }
        String::from_utf8(self.text)
            .map_err(|_| JsonError::Refused { why: "its text is not UTF-8".into(), path: Vec::new() })
    }

    /// Writes one value; false if it is one that JSON leaves out.
    fn value(&mut self, value: Value<'js>, key: &str) -> Result<bool, JsonError<'js>> {
        if self.text.len() > self.longest {
            return Err(JsonError::TooLong);
        }
        if let Some(integer) = value.as_int() {
            self.print(format_args!("{integer}"));
        } else if let Some(number) = value.as_float() {
            self.number(number);
        } else if let Some(string) = value.as_string() {
            let text = self.caught(text_of(string))?;
            self.string(&text);
        } else if let Some(boolean) = value.as_bool() {
            self.print(format_args!("{boolean}"));
        } else if value.is_null() {
            self.raw("null");
        } else if value.is_big_int() {
            self.big_integer(value)?;
        } else if let Some(object) = value.as_object() {
            return self.object(object, key);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn object(&mut self, object: &Object<'js>, key: &str) -> Result<bool, JsonError<'js>> {
        let to_json: Value<'js> = self.caught(object.get(PredefinedAtom::ToJSON))?;
        if let Some(to_json) = to_json.as_function() {
            let replaced: Value<'js> =
                self.caught(to_json.call((rquickjs::function::This(object.clone()), key)))?;
            return match replaced.as_object() {
                // The language calls toJSON only once.
                Some(object) => self.structure(object),
                None => self.value(replaced, key),
            };
        }
        self.structure(object)
    }

    fn structure(&mut self, object: &Object<'js>) -> Result<bool, JsonError<'js>> {
        if object.is_function() {
            return Ok(false);
        }
        if self.above.contains(object) {
            return Err(JsonError::Refused { why: "it contains itself".into(), path: Vec::new() });
        }
        if self.above.len() >= DEEPEST {
            let why = format!("it is nested deeper than {DEEPEST} levels");
            return Err(JsonError::Refused { why, path: Vec::new() });
        }
        self.above.push(object.clone());
        let written = if object.is_array() {
            self.array(object)
        } else if class_of(object) == self.plain_class {
            self.members(object)
        } else {
            self.exotic(object)
        };
        self.above.pop();
        written
    }

    fn exotic(&mut self, object: &Object<'js>) -> Result<bool, JsonError<'js>> {
        let plain = self.caught((self.exotic)())?;
        let replaced: Value<'js> = self.caught(plain.call((object.clone(),)))?;
        match replaced.as_object() {
            Some(same) if same == object => self.members(object),
            _ => self.value(replaced, ""),
        }
    }

    fn array(&mut self, array: &Object<'js>) -> Result<bool, JsonError<'js>> {
        let length: f64 = self.caught(array.get(PredefinedAtom::Length))?;
        self.raw("[");
        let mut index = 0_u32;
        while f64::from(index) < length {
            if index > 0 {
                self.raw(",");
            }
            let item = self.caught(array.get(index));
            let written =
                item.and_then(|item| self.value(item, "")).map_err(|e| e.inside(|| format!("[{index}]")))?;
            if !written {
                self.raw("null");
            }
            index += 1;
        }
        self.raw("]");
        Ok(true)
    }

    fn members(&mut self, object: &Object<'js>) -> Result<bool, JsonError<'js>> {
        self.raw("{");
        let mut first = true;
        for property in object.own_props::<Atom<'js>, Value<'js>>(Filter::default()) {
            let name_of = |atom: &Atom<'js>| atom.to_js_string().and_then(|name| text_of(&name));
            let (key, value) = self.caught(property)?;
            let name = self.caught(name_of(&key))?;
            let start = self.text.len();
            if !first {
                self.raw(",");
            }
            self.string(&name);
            self.raw(":");
            if self.value(value, &name).map_err(|e| e.inside(|| format!(".{name}")))? {
                first = false;
            } else {
                self.text.truncate(start);
            }
        }
        self.raw("}");
        Ok(true)
    }

    fn number(&mut self, number: f64) {
        if !number.is_finite() {
            self.raw("null");
        } else if number.fract() == 0.0 && number.abs() <= SAFE_INTEGER as f64 {
            self.print(format_args!("{}", number as i64));
        } else {
            self.serialize(&number);
        }
    }

    fn big_integer(&mut self, value: Value<'js>) -> Result<(), JsonError<'js>> {
        let digits: rquickjs::Coerced<String> = self.caught(value.get())?;
        match digits.parse::<i64>() {
            Ok(integer) if integer.abs() <= SAFE_INTEGER => self.raw(&digits),
            _ => self.string(&digits),
        }
        Ok(())
    }

    fn string(&mut self, text: &str) {
        self.serialize(text);
    }

    fn serialize(&mut self, value: &(impl serde::Serialize + ?Sized)) {
        // Writing a number or a string into memory can't fail.
        let _ = serde_json::to_writer(&mut self.text, value);
    }

    fn print(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.text.write_fmt(text);
    }

    fn raw(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    fn caught<T>(&self, result: rquickjs::Result<T>) -> Result<T, JsonError<'js>> {
        result.map_err(|error| {
            // Errors of the binding itself have no exception yet.
            if !self.ctx.has_exception() {
                let _ = rquickjs::Exception::throw_type(&self.ctx, &error.to_string());
            }
            let value = self.ctx.catch();
            JsonError::Threw { value, path: Vec::new() }
        })
    }
}

fn class_of(object: &Object<'_>) -> u32 {
    // SAFETY: only reads the class id of a live value.
    unsafe { qjs::JS_GetClassID(object.as_raw()) }
}
