//! The JavaScript that comes with the worker, compiled at most once per process.

use std::{cell::RefCell, collections::HashMap};

use rquickjs::{Ctx, Error, Function, Module, Result, module::WriteOptions};

const SOURCES: [(&str, &str); 8] = [
    ("bridge", include_str!("js/bridge.js")),
    ("console", include_str!("js/console.js")),
    ("url", include_str!("js/url.js")),
    ("encoding", include_str!("js/encoding.js")),
    ("clone", include_str!("js/clone.js")),
    ("abort", include_str!("js/abort.js")),
    ("crypto", include_str!("js/crypto.js")),
    ("json", include_str!("js/json.js")),
];

/// Prefix of these parts' file names, so that their frames can be left out of stack traces.
pub(crate) const FILE_PREFIX: &str = "pml:";

thread_local! {
    static COMPILED: RefCell<HashMap<&'static str, &'static [u8]>> = RefCell::default();
}

/// The function that a part exports.
pub(crate) fn load<'js>(ctx: &Ctx<'js>, part: &str) -> Result<Function<'js>> {
    let (name, source) = SOURCES
        .into_iter()
        .find(|(name, _)| *name == part)
        .ok_or_else(|| Error::new_loading_message(part, "the worker has no such part"))?;
    let compiled = COMPILED.with_borrow(|compiled| compiled.get(name).copied());
    let bytecode = match compiled {
        Some(bytecode) => bytecode,
        None => {
            let module = Module::declare(ctx.clone(), format!("{FILE_PREFIX}{name}"), source)?;
            // The engine refers to bytecode in place, so it has to outlive every runtime.
            let bytecode: &'static [u8] = module.write(WriteOptions::default())?.leak();
            COMPILED.with_borrow_mut(|compiled| compiled.insert(name, bytecode));
            bytecode
        }
    };
    // SAFETY: this process wrote the bytecode itself, with this engine, and never frees it.
    let (module, _finished) = unsafe { Module::load(ctx.clone(), bytecode)? }.eval()?;
    module.get("default")
}
