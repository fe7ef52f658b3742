//! Values of the engine without the binding's wrappers, which count two references for each value that passes.

use rquickjs::{Ctx, Error, Result, Value, qjs};

/// A reference to a value, released when dropped.
pub(crate) struct Owned<'js> {
    ctx: *mut qjs::JSContext,
    raw: qjs::JSValue,
    _ctx: std::marker::PhantomData<&'js ()>,
}

impl<'js> Owned<'js> {
    /// Takes over what a function of the engine returned; an exception is an error.
    ///
    /// # Safety
    ///
    /// `raw` is a reference that nobody else releases, of the runtime of `ctx`.
    pub(crate) unsafe fn new(ctx: &Ctx<'js>, raw: qjs::JSValue) -> Result<Owned<'js>> {
        // SAFETY: only reads the tag.
        if unsafe { qjs::JS_IsException(raw) } {
            return Err(Error::Exception);
        }
        Ok(Owned { ctx: ctx.as_raw().as_ptr(), raw, _ctx: std::marker::PhantomData })
    }

    pub(crate) fn raw(&self) -> qjs::JSValue {
        self.raw
    }

    /// Hands the reference to a function that releases it.
    pub(crate) fn into_raw(self) -> qjs::JSValue {
        std::mem::ManuallyDrop::new(self).raw
    }

    pub(crate) fn into_value(self, ctx: &Ctx<'js>) -> Value<'js> {
        // SAFETY: the reference moves into the value.
        unsafe { Value::from_raw(ctx.clone(), self.into_raw()) }
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference is this one's, and `'js` keeps the context alive.
        unsafe { qjs::JS_FreeValue(self.ctx, self.raw) }
    }
}

/// A property's name in the engine, released when dropped.
pub(crate) struct Name<'js> {
    ctx: *mut qjs::JSContext,
    atom: qjs::JSAtom,
    _ctx: std::marker::PhantomData<&'js ()>,
}

impl<'js> Name<'js> {
    /// The name that `value`, a string, is.
    pub(crate) fn of(ctx: &Ctx<'js>, value: &Owned<'js>) -> Result<Name<'js>> {
        let raw = ctx.as_raw().as_ptr();
        // SAFETY: both are of the same runtime; the atom returned is a new reference.
        let atom = unsafe { qjs::JS_ValueToAtom(raw, value.raw) };
        if atom == qjs::JS_ATOM_NULL {
            return Err(Error::Exception);
        }
        Ok(Name { ctx: raw, atom, _ctx: std::marker::PhantomData })
    }

    /// One more reference to a name.
    ///
    /// # Safety
    ///
    /// `atom` is alive in the runtime of `ctx`.
    pub(crate) unsafe fn again(ctx: &Ctx<'js>, atom: qjs::JSAtom) -> Name<'js> {
        let raw = ctx.as_raw().as_ptr();
        // SAFETY: as above.
        let atom = unsafe { qjs::JS_DupAtom(raw, atom) };
        Name { ctx: raw, atom, _ctx: std::marker::PhantomData }
    }

    pub(crate) fn atom(&self) -> qjs::JSAtom {
        self.atom
    }
}

impl Drop for Name<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference is this one's, and `'js` keeps the context alive.
        unsafe { qjs::JS_FreeAtom(self.ctx, self.atom) }
    }
}

/// The own enumerable string keys of an object, in order.
pub(crate) struct Keys {
    ctx: *mut qjs::JSContext,
    table: *mut qjs::JSPropertyEnum,
    length: u32,
}

impl Keys {
    /// # Safety
    ///
    /// `object` is alive in the runtime of `ctx`, which outlives the keys.
    pub(crate) unsafe fn of(ctx: &Ctx<'_>, object: qjs::JSValue) -> Result<Keys> {
        let raw = ctx.as_raw().as_ptr();
        let (mut table, mut length) = (std::ptr::null_mut(), 0);
        let flags = (qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_ENUM_ONLY).cast_signed();
        // SAFETY: it writes to the two variables, and only if it succeeds.
        let failed =
            unsafe { qjs::JS_GetOwnPropertyNames(raw, &raw mut table, &raw mut length, object, flags) } < 0;
        if failed { Err(Error::Exception) } else { Ok(Keys { ctx: raw, table, length }) }
    }

    pub(crate) fn len(&self) -> u32 {
        self.length
    }

    /// The key at `index`, which is alive as long as these keys are.
    pub(crate) fn get(&self, index: u32) -> qjs::JSAtom {
        assert!(index < self.length);
        // SAFETY: the table has `length` entries.
        unsafe { (*self.table.add(index as usize)).atom }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // SAFETY: the table came from the engine and is released once.
        unsafe { qjs::JS_FreePropertyEnum(self.ctx, self.table, self.length) }
    }
}

/// The UTF-8 of a string in the engine, without a copy if it is ASCII. Half a surrogate pair is encoded by itself.
pub(crate) struct StringBytes {
    ctx: *mut qjs::JSContext,
    start: *const std::ffi::c_char,
    length: usize,
}

impl StringBytes {
    /// # Safety
    ///
    /// `string` is a string that is alive in the runtime of `ctx`, which outlives the bytes.
    pub(crate) unsafe fn of(ctx: &Ctx<'_>, string: qjs::JSValue) -> Result<StringBytes> {
        let raw = ctx.as_raw().as_ptr();
        let mut length = 0_usize;
        // SAFETY: it writes the length.
        let start = unsafe { qjs::JS_ToCStringLen2(raw, (&raw mut length).cast(), string, false) };
        if start.is_null() { Err(Error::Exception) } else { Ok(StringBytes { ctx: raw, start, length }) }
    }

    pub(crate) fn get(&self) -> &[u8] {
        // SAFETY: the engine keeps these bytes until they are released below.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.length) }
    }
}

impl Drop for StringBytes {
    fn drop(&mut self) {
        // SAFETY: the bytes came from the engine and are released once.
        unsafe { qjs::JS_FreeCString(self.ctx, self.start) }
    }
}
