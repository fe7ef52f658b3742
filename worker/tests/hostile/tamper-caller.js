// expect: value [null,null]
function f() { return [f.caller, f.arguments] } try { return f() } catch { return [null, null] }
