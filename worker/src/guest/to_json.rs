//! Serialises JavaScript values as JSON, with a defined outcome for everything that JSON can't express.

use rquickjs::{Ctx, Error, FromJs, Function, Object, Value, function::This, qjs};

use super::{
    raw::{Keys, Name, Owned, StringBytes},
    text::{Text, well_formed},
};

/// JSON parsers have a depth limit (serde_json 128, Postgres its stack); an error here is clearer than one there.
pub(crate) const DEEPEST: usize = 100;

/// The largest integer that every reader of JSON numbers keeps exact.
const SAFE_INTEGER: i64 = (1 << 53) - 1;

/// Keys whose text is copied from where it was written last; a power of two.
const KNOWN_KEYS: usize = 256;

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
    array_class: u32,
    longest: usize,
    /// The objects around the value being written. Each is held by the call that writes it.
    above: Vec<qjs::JSValue>,
    text: Vec<u8>,
    known_keys: Vec<Option<KnownKey<'js>>>,
}

/// Where a key was written, with its quotes and colon.
struct KnownKey<'js> {
    /// Held, so that the engine can't give its number to another name meanwhile.
    name: Name<'js>,
    start: usize,
    end: usize,
}

impl<'js> JsonWriter<'js> {
    pub(crate) fn new(
        ctx: &Ctx<'js>,
        longest: usize,
        exotic: impl Fn() -> rquickjs::Result<Function<'js>> + 'js,
    ) -> rquickjs::Result<JsonWriter<'js>> {
        Ok(JsonWriter {
            ctx: ctx.clone(),
            exotic: Box::new(exotic),
            plain_class: class_of(Object::new(ctx.clone())?.as_raw()),
            array_class: class_of(rquickjs::Array::new(ctx.clone())?.as_raw()),
            longest,
            above: Vec::new(),
            text: Vec::new(),
            known_keys: std::iter::repeat_with(|| None).take(KNOWN_KEYS).collect(),
        })
    }

    /// `undefined` as a whole is `for_undefined`.
    pub(crate) fn write(mut self, value: Value<'js>, for_undefined: &str) -> Result<String, JsonError<'js>> {
        if value.is_undefined() {
            return Ok(for_undefined.to_owned());
        }
        if !self.value(value.as_raw(), None)? {
            let why = format!("a {} has no JSON", value.type_name());
            return Err(JsonError::Refused { why, path: Vec::new() });
        }
        String::from_utf8(self.text)
            .map_err(|_| JsonError::Refused { why: "its text is not UTF-8".into(), path: Vec::new() })
    }

    /// Writes one value; false, and nothing written, if it is one that JSON leaves out. `key` is for `toJSON`.
    fn value(&mut self, value: qjs::JSValue, key: Option<qjs::JSAtom>) -> Result<bool, JsonError<'js>> {
        if self.text.len() > self.longest {
            return Err(JsonError::TooLong);
        }
        // SAFETY: the value is alive, and only read as what its tag says.
        unsafe {
            match qjs::JS_VALUE_GET_NORM_TAG(value) {
                qjs::JS_TAG_INT => self.serialize(&qjs::JS_VALUE_GET_INT(value)),
                qjs::JS_TAG_FLOAT64 => self.number(qjs::JS_VALUE_GET_FLOAT64(value)),
                qjs::JS_TAG_STRING | qjs::JS_TAG_STRING_ROPE => self.string(value)?,
                qjs::JS_TAG_BOOL => self.serialize(&qjs::JS_VALUE_GET_BOOL(value)),
                qjs::JS_TAG_NULL => self.raw("null"),
                qjs::JS_TAG_SHORT_BIG_INT | qjs::JS_TAG_BIG_INT => self.big_integer(value)?,
                qjs::JS_TAG_OBJECT => return self.object(value, key),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    fn object(&mut self, object: qjs::JSValue, key: Option<qjs::JSAtom>) -> Result<bool, JsonError<'js>> {
        let to_json = self.property(object, qjs::JS_ATOM_toJSON)?;
        // SAFETY: only reads the value's class.
        if !unsafe { qjs::JS_IsFunction(self.ctx.as_raw().as_ptr(), to_json.raw()) } {
            return self.structure(object);
        }
        let replaced = self.replaced(object, to_json, key)?;
        // The language calls toJSON only once.
        if replaced.is_object() {
            self.structure(replaced.as_raw())
        } else {
            self.value(replaced.as_raw(), key)
        }
    }

    /// What `toJSON` of the object returns.
    fn replaced(
        &self,
        object: qjs::JSValue,
        to_json: Owned<'js>,
        key: Option<qjs::JSAtom>,
    ) -> Result<Value<'js>, JsonError<'js>> {
        let name = self.caught(key.map(|key| self.name_of(key)).transpose())?.unwrap_or_default();
        let to_json = self.caught(Function::from_js(&self.ctx, to_json.into_value(&self.ctx)))?;
        self.caught(to_json.call((This(self.shared(object)), name)))
    }

    fn structure(&mut self, object: qjs::JSValue) -> Result<bool, JsonError<'js>> {
        let class = class_of(object);
        let is_usual = class == self.plain_class || class == self.array_class;
        // SAFETY: only reads the value's class.
        if !is_usual && unsafe { qjs::JS_IsFunction(self.ctx.as_raw().as_ptr(), object) } {
            return Ok(false);
        }
        if self.above.iter().any(|above| is_same(*above, object)) {
            return Err(JsonError::Refused { why: "it contains itself".into(), path: Vec::new() });
        }
        if self.above.len() >= DEEPEST {
            let why = format!("it is nested deeper than {DEEPEST} levels");
            return Err(JsonError::Refused { why, path: Vec::new() });
        }
        self.above.push(object);
        let written = if class == self.array_class {
            self.array(object)
        } else if class == self.plain_class {
            self.members(object)
        } else {
            self.exotic(object)
        };
        self.above.pop();
        written
    }

    fn exotic(&mut self, object: qjs::JSValue) -> Result<bool, JsonError<'js>> {
        let plain = self.caught((self.exotic)())?;
        let replaced: Value<'js> = self.caught(plain.call((self.shared(object),)))?;
        if replaced.is_object() && is_same(replaced.as_raw(), object) {
            self.members(object)
        } else {
            self.value(replaced.as_raw(), None)
        }
    }

    fn array(&mut self, array: qjs::JSValue) -> Result<bool, JsonError<'js>> {
        let mut length = 0;
        // SAFETY: the array is alive; the length is written.
        let failed = unsafe { qjs::JS_GetLength(self.ctx.as_raw().as_ptr(), array, &raw mut length) } < 0;
        self.caught(if failed { Err(Error::Exception) } else { Ok(()) })?;
        self.raw("[");
        for index in 0..u32::try_from(length).unwrap_or(u32::MAX) {
            if index > 0 {
                self.raw(",");
            }
            if !self.element(array, index).map_err(|error| error.inside(|| format!("[{index}]")))? {
                self.raw("null");
            }
        }
        self.raw("]");
        Ok(true)
    }

    fn element(&mut self, array: qjs::JSValue, index: u32) -> Result<bool, JsonError<'js>> {
        // SAFETY: the array is alive; the result is a new reference.
        let element = unsafe {
            Owned::new(&self.ctx, qjs::JS_GetPropertyUint32(self.ctx.as_raw().as_ptr(), array, index))
        };
        let element = self.caught(element)?;
        self.value(element.raw(), None)
    }

    fn members(&mut self, object: qjs::JSValue) -> Result<bool, JsonError<'js>> {
        // SAFETY: the object is alive, and so is the context.
        let keys = self.caught(unsafe { Keys::of(&self.ctx, object) })?;
        self.raw("{");
        let mut first = true;
        for index in 0..keys.len() {
            let name = keys.get(index);
            let value = self.property(object, name)?;
            let start = self.text.len();
            if !first {
                self.raw(",");
            }
            self.key(name)?;
            let written = self.value(value.raw(), Some(name));
            if written
                .map_err(|error| error.inside(|| format!(".{}", self.name_of(name).unwrap_or_default())))?
            {
                first = false;
            } else {
                self.cut(start, name);
            }
        }
        self.raw("}");
        Ok(true)
    }

    /// Writes a key and its colon.
    fn key(&mut self, name: qjs::JSAtom) -> Result<(), JsonError<'js>> {
        let place = name as usize % KNOWN_KEYS;
        let start = self.text.len();
        if let Some(known) = &self.known_keys[place]
            && known.name.atom() == name
        {
            self.text.extend_from_within(known.start..known.end);
            return Ok(());
        }
        let key = self.caught(self.name_of(name))?;
        self.serialize(&key);
        self.raw(":");
        // SAFETY: the caller's keys hold the name.
        let name = unsafe { Name::again(&self.ctx, name) };
        self.known_keys[place] = Some(KnownKey { name, start, end: self.text.len() });
        Ok(())
    }

    /// Takes back the key `name`, written at `start` or after a comma there.
    fn cut(&mut self, start: usize, name: qjs::JSAtom) {
        self.text.truncate(start);
        let known = &mut self.known_keys[name as usize % KNOWN_KEYS];
        if known.as_ref().is_some_and(|known| known.start >= start) {
            *known = None;
        }
    }

    fn number(&mut self, number: f64) {
        if !number.is_finite() {
            self.raw("null");
        } else if number.fract() == 0.0 && number.abs() <= SAFE_INTEGER as f64 {
            self.serialize(&(number as i64));
        } else {
            self.serialize(&number);
        }
    }

    fn big_integer(&mut self, value: qjs::JSValue) -> Result<(), JsonError<'js>> {
        let Text(digits) = self.caught(Text::from_js(&self.ctx, self.shared(value)))?;
        match digits.parse::<i64>() {
            Ok(integer) if integer.abs() <= SAFE_INTEGER => self.raw(&digits),
            _ => self.serialize(&digits),
        }
        Ok(())
    }

    fn string(&mut self, string: qjs::JSValue) -> Result<(), JsonError<'js>> {
        // SAFETY: the caller saw that it is a string, and holds it.
        let bytes = self.caught(unsafe { StringBytes::of(&self.ctx, string) })?;
        let bytes = bytes.get();
        if is_plain(bytes) {
            self.text.reserve(bytes.len() + 2);
            self.text.push(b'"');
            self.text.extend_from_slice(bytes);
            self.text.push(b'"');
        } else {
            self.serialize(&*well_formed(bytes));
        }
        Ok(())
    }

    /// The property `name` of `object`, by way of getters and prototypes.
    fn property(&self, object: qjs::JSValue, name: qjs::JSAtom) -> Result<Owned<'js>, JsonError<'js>> {
        let ctx = self.ctx.as_raw().as_ptr();
        // SAFETY: both are alive; the result is a new reference.
        self.caught(unsafe { Owned::new(&self.ctx, qjs::JS_GetProperty(ctx, object, name)) })
    }

    fn name_of(&self, name: qjs::JSAtom) -> rquickjs::Result<String> {
        let ctx = self.ctx.as_raw().as_ptr();
        // SAFETY: the name is alive; the result is a new reference to a string.
        unsafe {
            let text = Owned::new(&self.ctx, qjs::JS_AtomToString(ctx, name))?;
            Ok(well_formed(StringBytes::of(&self.ctx, text.raw())?.get()).into_owned())
        }
    }

    /// One more reference to a value.
    fn shared(&self, value: qjs::JSValue) -> Value<'js> {
        // SAFETY: the value is alive; the new reference moves into the result.
        unsafe { Value::from_raw(self.ctx.clone(), qjs::JS_DupValue(self.ctx.as_raw().as_ptr(), value)) }
    }

    fn serialize(&mut self, value: &(impl serde::Serialize + ?Sized)) {
        // Writing a number or a string into memory can't fail.
        let _ = serde_json::to_writer(&mut self.text, value);
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

/// Whether a string is ASCII without anything that JSON escapes. In blocks, which the compiler makes vector code of.
fn is_plain(bytes: &[u8]) -> bool {
    let is_special = |byte: &u8| !(0x20..0x80).contains(byte) || matches!(byte, b'"' | b'\\');
    bytes.chunks(32).all(|block| !block.iter().fold(false, |found, byte| found | is_special(byte)))
}

fn class_of(object: qjs::JSValue) -> u32 {
    // SAFETY: only reads the class id of a live value.
    unsafe { qjs::JS_GetClassID(object) }
}

fn is_same(one: qjs::JSValue, other: qjs::JSValue) -> bool {
    // SAFETY: both are objects, whose pointers are compared.
    unsafe { std::ptr::eq(qjs::JS_VALUE_GET_PTR(one), qjs::JS_VALUE_GET_PTR(other)) }
}
