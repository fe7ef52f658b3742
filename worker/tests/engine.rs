//! Point 1: the engine, what the code finds around it, and what it doesn't.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};

use pml_worker::{Call, CallError, CallKind, Json, Run};
use serde_json::json;
use support::{pool, run, thrown, tools, value};
use tokio::sync::Barrier;

#[tokio::test]
async fn the_code_sees_its_arguments_and_returns_a_value() {
    let pool = pool().await;
    let run = Run::new("test", "return { sum: args.a + args.b, text: args.text }")
        .with_args(json!({"a": 1, "b": 2, "text": "naïve 😀 \u{0}"}));
    let outcome = pool.run(run, &tools).await;
    assert_eq!(outcome.result.unwrap(), json!({"sum": 3, "text": "naïve 😀 \u{0}"}));
}

#[tokio::test]
async fn nothing_survives_from_one_run_to_the_next() {
    let pool = pool().await;
    for _ in 0..6 {
        let code = "const before = globalThis.kept; globalThis.kept = 1; Array.prototype.kept = 2;
                    const polluted = Object.keys(Object.prototype).length; Object.prototype.x = 1;
                    return [before === undefined, polluted, typeof [].missing]";
        let outcome = pool.run(Run::new("test", code), &tools).await;
        assert_eq!(outcome.result.unwrap(), json!([true, 0, "undefined"]));
    }
}

#[tokio::test]
async fn every_form_of_call_reaches_the_parent_with_its_target() {
    let pool = pool().await;
    let handler = |call: Call| async move {
        Ok::<Json, CallError>(
            json!([call.kind, call.target, call.node, call.args.parse::<serde_json::Value>().unwrap()])
                .into(),
        )
    };
    let forms = [
        ("mcp.fs.read({ path: 1 })", json!(["tool", "fs:read", null, {"path": 1}])),
        ("mcp['fs']['read']()", json!(["tool", "fs:read", null, {}])),
        ("mcp['ns:action@v1'](7)", json!(["tool", "ns:action@v1", null, 7])),
        (
            "mcp['local.default.fs.read_json.a7f3']([])",
            json!(["tool", "local.default.fs.read_json.a7f3", null, []]),
        ),
        ("capabilities.summarise(null)", json!(["capability", "summarise", null, null])),
        ("capabilities['ns:name']({})", json!(["capability", "ns:name", null, {}])),
        ("(({ read }) => read(1))(mcp.fs)", json!(["tool", "fs:read", null, 1])),
        ("mcp.fs.read.call(null, 1)", json!(["tool", "fs:read", null, 1])),
        ("mcp.fs.call(1)", json!(["tool", "fs:call", null, 1])),
        ("mcp.fs.name(1)", json!(["tool", "fs:name", null, 1])),
        ("mcp.fs?.read?.(1)", json!(["tool", "fs:read", null, 1])),
        ("__pml.at('n1', mcp.fs.read)?.(1)", json!(["tool", "fs:read", "n1", 1])),
        ("__pml.at('n1', (x) => mcp.a.b(x))(2)", json!(["tool", "a:b", "n1", 2])),
        (
            "__pml.at('n1', async () => [await mcp.a.b(1), await mcp.c.d(2)])().then((x) => x[1])",
            json!(["tool", "c:d", null, 2]),
        ),
        ("['x', 'y'].map(mcp.a.b)[1]", json!(["tool", "a:b", null, "y"])),
    ];
    for (form, expected) in forms {
        let outcome = pool.run(Run::new("test", format!("return await {form}")), &handler).await;
        assert_eq!(outcome.result.unwrap_or_else(|failure| panic!("{form}: {failure}")), expected, "{form}");
    }
}

#[tokio::test]
async fn a_namespace_behaves_like_an_ordinary_object() {
    assert_eq!(
        value(
            "const awaited = await mcp.fs;
             return [typeof mcp, typeof mcp.fs, typeof mcp.fs.read, String(mcp.fs), `${mcp}`, JSON.stringify({ m: mcp, f: mcp.fs }),
                     awaited === mcp.fs, mcp.fs.read === mcp.fs.read, Object.keys(mcp.fs), mcp.fs instanceof Promise,
                     Object.prototype.toString.call(mcp.fs), typeof (await Promise.all([mcp, mcp.fs.read]))[0],
                     __pml.at('n', undefined), __pml.at('n', null)]"
        )
        .await,
        json!([
            "object", "function", "function", "mcp.fs", "mcp", "{\"m\":{}}", true, true, [], false, "[object mcp.fs]", "object",
            null, null
        ])
    );
    assert_eq!(thrown(run("mcp.fs = 1").await).message, "mcp is read-only");
    assert_eq!(thrown(run("delete mcp.fs.read").await).message, "mcp.fs is read-only");
}

#[tokio::test]
async fn fifty_parallel_calls_are_outstanding_at_once() {
    let pool = pool().await;
    let all_here = Barrier::new(50);
    let order = AtomicUsize::new(0);
    // Each answer waits until all fifty calls have arrived; a worker that sends fewer would hang here.
    let handler = async |call: Call| -> Result<Json, CallError> {
        all_here.wait().await;
        order.fetch_add(1, Ordering::Relaxed);
        Ok(call.args)
    };
    let handler = |call: Call| handler(call);
    let code = "const got = await Promise.all(Array.from({ length: 50 }, (_, i) => mcp.a.b({ i })));
                return got.map((x) => x.i)";
    let outcome = pool.run(Run::new("test", code), &handler).await;
    assert_eq!(outcome.result.unwrap(), json!((0..50).collect::<Vec<_>>()));
    assert_eq!(order.into_inner(), 50);
    assert_eq!(outcome.trace.calls().count(), 50);
}

#[tokio::test]
async fn a_failed_call_is_an_error_that_the_code_can_catch() {
    assert_eq!(
        value(
            "try { await mcp.test.fail({}) } catch (e) {
               return [e instanceof Error, e.name, e.message, e.tool, e.data, String(e), JSON.stringify(e), e.stack.includes('code:1')]
             }"
        )
        .await,
        json!([true, "ToolError", "test:fail: no such file", "test:fail", {"code": 2}, "ToolError: test:fail: no such file", "{}", true])
    );
    let settled =
        value("return (await Promise.allSettled([mcp.test.fail(), mcp.test.echo(1)])).map((s) => s.status)")
            .await;
    assert_eq!(settled, json!(["rejected", "fulfilled"]));
}

#[tokio::test]
async fn what_the_code_can_read_of_a_target_is_its_name() {
    let key = "local.default.test.fail.a1b2";
    let names = std::collections::HashMap::from([(key.to_owned(), "test:fail".to_owned())]);
    let code = format!(
        "const f = mcp['{key}'], o = {{}}; o.o = o;
         const errors = [await f().catch((e) => e), await f(o).catch((e) => e), await capabilities['{key}']().catch((e) => e)];
         console.log(f, capabilities['{key}'], errors);
         return [errors.map((e) => [e.message, e.tool, e.stack]), String(f), capabilities['{key}'].name, f.toString()]"
    );
    let handler = |call: Call| async move {
        assert_eq!(call.target, "local.default.test.fail.a1b2");
        Err::<Json, _>(CallError::new("no"))
    };
    let pool = pool().await;
    let outcome = pool.run(Run::new("test", code).with_names(names.clone()), &handler).await;
    let seen = format!("{} {:?}", outcome.result.unwrap().get(), outcome.logs);
    assert!(seen.contains("test:fail: no") && !seen.contains(key), "{seen}");
    let outcome =
        pool.run(Run::new("test", format!("await mcp['{key}']()")).with_names(names), &handler).await;
    let error = thrown(outcome);
    assert_eq!((error.message.as_str(), error.target.as_deref()), ("test:fail: no", Some("test:fail")));
}

#[tokio::test]
async fn a_linked_capability_is_a_function_and_has_no_actions() {
    let key = "local.default.test.echo.a1b2";
    let names = std::collections::HashMap::from([(key.to_owned(), "test:echo".to_owned())]);
    let handler = |call: Call| async move { Ok::<Json, CallError>(json!([call.target, call.args]).into()) };
    let pool = pool().await;
    let run = |code: String| pool.run(Run::new("test", code).with_names(names.clone()), &handler);
    for root in ["mcp", "capabilities"] {
        for form in
            ["f.call(null, 1)", "f.apply(mcp, [1])", "f.bind(null, 1)()", "f.bind()(1)", "(await f)(1)"]
        {
            let outcome = run(format!("const f = {root}['{key}']; return await {form}")).await;
            let result = outcome.result.unwrap_or_else(|failure| panic!("{form}: {failure}"));
            assert_eq!(result, json!([key, 1]), "{form}");
        }
        for form in ["f.foo({})", "f['x' + 1]({})", "f.read.call(null, 1)"] {
            let error = thrown(run(format!("const f = {root}['{key}'];\nreturn await {form}")).await);
            assert!(
                error.message.starts_with("test:echo is a capability and has no \""),
                "{}",
                error.message
            );
            assert!(!error.to_string().contains(key) && error.line == Some(2), "{error}");
        }
        let of = format!(
            "const f = {root}['{key}']; return [f.name, String(f), typeof f, JSON.stringify({{ f }})]"
        );
        let shown = json!(["test:echo", "function test:echo() {\n    [native code]\n}", "function", "{}"]);
        assert_eq!(run(of).await.result.unwrap(), shown);
        let error = thrown(run(format!("{root}['{key}'].x = 1")).await);
        assert_eq!(error.message, "test:echo is read-only");
    }
}

#[tokio::test]
async fn functions_keep_their_compiled_source_to_themselves() {
    let secret = "secret.word";
    let code = "
        const toText = Function.prototype.toString, found = [];
        function named() { return 'secret.word' }
        const trick = () => { 'secret.word' // [native code]
}
        class Thing { static s = 'secret.word'; m() { return 'secret.word' } get g() { return 'secret.word' } }
        const all = [named, trick, Thing, Thing.prototype.m, Object.getOwnPropertyDescriptor(Thing.prototype, 'g').get,
                     async () => 'secret.word', function* () { yield 'secret.word' }, async function* () { yield 'secret.word' },
                     named.bind(null), new Proxy(named, {}), __pml.at, setTimeout];
        for (const f of all) found.push(f.toString(), toText.call(f), String(f), `${f}`, '' + f, Reflect.apply(toText, f, []));
        named.name2 = 1; Object.defineProperty(named, 'name', { get() { throw 1 } });
        console.log(all);
        let refused; try { toText.call({}) } catch (e) { refused = e.name }
        return [found, String(named), String(Math.max), toText.name, toText.length, String(toText), refused]";
    let outcome = run(code).await;
    let seen = format!("{} {:?}", outcome.result.as_ref().unwrap().get(), outcome.logs);
    assert!(!seen.contains(secret), "{seen}");
    let result: serde_json::Value = outcome.result.unwrap().parse().unwrap();
    assert_eq!(result[0][0], "function named() {\n    [native code]\n}");
    assert_eq!(result[2], "function max() {\n    [native code]\n}");
    let rest = json!(["toString", 0, "function toString() {\n    [native code]\n}", "TypeError"]);
    assert_eq!(result.as_array().unwrap()[3..], rest.as_array().unwrap()[..]);
}

#[tokio::test]
async fn arguments_that_json_cannot_hold_reject_the_call() {
    let message = value("const a = {}; a.a = a; return mcp.test.echo(a).catch((e) => e.message)").await;
    assert_eq!(message, json!("test:echo: the argument can't be sent: it contains itself, at $.a"));
    assert_eq!(
        value("return mcp.test.echo({ get x() { throw new Error('boom') } }).catch((e) => e.message)").await,
        json!("boom")
    );
}

#[tokio::test]
async fn a_handler_may_start_a_nested_run() {
    let pool = pool().await;
    // Two slots, four outer runs, each with nested runs three deep: they would block each other if they shared slots.
    struct Nested(pml_worker::Pool);
    impl pml_worker::CallHandler for Nested {
        fn call(&self, call: Call) -> impl Future<Output = Result<Json, CallError>> + Send {
            let answer: std::pin::Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(async move {
                assert_eq!(call.kind, CallKind::Capability);
                let code = if call.target == "leaf" {
                    "return args.n"
                } else {
                    "return (await capabilities.leaf(args)) + 1"
                };
                let outcome = self.0.run(call.nested_run(code, call.args.clone()), self).await;
                outcome.result.map_err(|failure| CallError::new(failure.to_string()))
            });
            answer
        }
    }
    let handler = Nested(pool.clone());
    let outer = |n: u32| {
        pool.run(
            Run::new("test", "return await capabilities.inner(args)").with_args(json!({"n": n})),
            &handler,
        )
    };
    let (a, b, c, d) = tokio::join!(outer(1), outer(2), outer(3), outer(4));
    let results = [a, b, c, d].map(|outcome| outcome.result.unwrap().parse::<u32>().unwrap());
    assert_eq!(results, [2, 3, 4, 5]);
}

#[tokio::test]
async fn what_people_expect_of_a_script_host_is_there() {
    let checks = [
        (
            "new URL('../b?x=1#h', 'https://user@example.com:8080/a/c').href",
            json!("https://user@example.com:8080/b?x=1#h"),
        ),
        ("[...new URL('http://h/?a=1&b=2&a=%20').searchParams]", json!([["a", "1"], ["b", "2"], ["a", " "]])),
        (
            "(() => { const u = new URL('http://h/p'); u.searchParams.set('q', 'a b'); u.port = '81'; u.hash = 'x'; return u.href })()",
            json!("http://h:81/p?q=a+b#x"),
        ),
        (
            "(() => { const u = new URL('http://h/?a=1'); const p = u.searchParams; u.search = '?b=2'; return [p.get('a'), p.get('b')] })()",
            json!([null, "2"]),
        ),
        ("[URL.canParse('nope'), URL.canParse('a:b'), URL.parse('nope')]", json!([false, true, null])),
        ("JSON.stringify({ u: new URL('http://h') })", json!("{\"u\":\"http://h/\"}")),
        (
            "(() => { try { new URL('nope') } catch (e) { return e.name + ': ' + e.message } })()",
            json!("TypeError: Invalid URL: \"nope\""),
        ),
        ("new URLSearchParams({ a: '1', b: 'ü&' }).toString()", json!("a=1&b=%C3%BC%26")),
        ("[...new TextEncoder().encode('é😀')]", json!([195, 169, 240, 159, 152, 128])),
        ("new TextEncoder().encodeInto('aé😀', new Uint8Array(4))", json!({"read": 2, "written": 3})),
        ("new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0xc3, 0xa9]))", json!("é")),
        (
            "(() => { const d = new TextDecoder(); return d.decode(new Uint8Array([0xc3]), { stream: true }) + d.decode(new Uint8Array([0xa9])) })()",
            json!("é"),
        ),
        ("new TextDecoder('latin1').decode(new Uint8Array([0xe9]))", json!("é")),
        ("new TextDecoder('utf-16le').decode(new Uint8Array([0x61, 0]))", json!("a")),
        (
            "(() => { try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xff])) } catch (e) { return e.name } })()",
            json!("TypeError"),
        ),
        (
            "(() => { const a = { m: new Map([[1, new Set([2])]]), d: new Date(0) }; a.self = a; const c = structuredClone(a); return [c !== a, c.self === c, c.m.get(1).has(2), c.d.getTime()] })()",
            json!([true, true, true, 0]),
        ),
        (
            "(() => { try { structuredClone(() => 1) } catch (e) { return e.name } })()",
            json!("DataCloneError"),
        ),
        ("[atob('aGk='), btoa('hi')]", json!(["hi", "aGk="])),
        (
            "/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())",
            json!(true),
        ),
        ("crypto.getRandomValues(new Uint32Array(64)).some((x) => x !== 0)", json!(true)),
        ("await new Promise((resolve) => queueMicrotask(() => resolve('later')))", json!("later")),
        ("await new Promise((resolve) => setTimeout(resolve, 1, 'timer'))", json!("timer")),
        (
            "await new Promise((resolve) => { let n = 0; const i = setInterval(() => { if (++n === 3) { clearInterval(i); resolve(n) } }, 1) })",
            json!(3),
        ),
        (
            "await (async () => { const order = []; setTimeout(() => order.push(2), 5); setTimeout(() => order.push(1), 1); const off = setTimeout(() => order.push('no'), 2); clearTimeout(off); await new Promise((r) => setTimeout(r, 20)); return order })()",
            json!([1, 2]),
        ),
        (
            "(() => { const c = new AbortController(); let heard = 0; c.signal.addEventListener('abort', () => heard++); c.abort(); c.abort(); return [heard, c.signal.aborted, c.signal.reason.name] })()",
            json!([1, true, "AbortError"]),
        ),
        (
            "await new Promise((resolve) => { const s = AbortSignal.any([AbortSignal.timeout(1)]); s.onabort = () => resolve(s.reason.name) })",
            json!("TimeoutError"),
        ),
        ("new Date(0).getTimezoneOffset()", json!(0)),
    ];
    for (expression, expected) in checks {
        assert_eq!(value(&format!("return {expression}")).await, expected, "{expression}");
    }
}

#[tokio::test]
async fn what_is_not_there_says_to_use_a_tool() {
    for code in [
        "return fetch('http://localhost')",
        "return require('fs')",
        "return process.env.HOME",
        "return Deno.readTextFile('x')",
        "return Bun.file('x')",
        "return new WebSocket('ws://localhost')",
        "return new XMLHttpRequest()",
        "return new Worker('x')",
        "return await import('node:fs')",
    ] {
        let error = thrown(run(code).await);
        assert!(error.message.contains("Call a tool instead"), "{code}: {}", error.message);
    }
    // Asking whether it is there must not throw.
    assert_eq!(
        value("return [typeof process, typeof fetch, typeof Deno]").await,
        json!(["object", "function", "object"])
    );
}

#[tokio::test]
async fn the_console_is_captured() {
    let outcome =
        run("console.log('a %s has %d', 'cat', 4, { legs: [1, 2] }); console.error(new Map([['k', 1n]]));
         console.group('g'); console.warn('inside'); console.groupEnd(); console.debug(undefined, null, -0);
         const o = {}; o.o = o; console.info(o); console.log(mcp.fs, Symbol('s'), () => 1)")
        .await;
    let logs: Vec<_> =
        outcome.logs.iter().map(|entry| (format!("{:?}", entry.level), entry.text.as_str())).collect();
    let expected = [
        ("Log", "a cat has 4 { legs: [ 1, 2 ] }"),
        ("Error", "Map(1) { \"k\" => 1n }"),
        ("Log", "g"),
        ("Warn", "  inside"),
        ("Debug", "undefined null -0"),
        ("Info", "{ o: [Circular] }"),
        ("Log", "[Function: mcp.fs] Symbol(s) [Function: (anonymous)]"),
    ];
    let logs: Vec<_> = logs.iter().map(|(level, text)| (level.as_str(), *text)).collect();
    assert_eq!(logs[..6], expected[..6]);
    assert!(logs[6].1.contains("Symbol(s)"), "{}", logs[6].1);
}

#[tokio::test]
async fn a_rejection_that_nobody_awaits_is_told_in_the_logs() {
    let outcome = run("Promise.reject(new Error('lost')); await mcp.test.echo(1); return 'done'").await;
    assert_eq!(outcome.result.unwrap(), json!("done"));
    assert_eq!(outcome.logs[0].text, "A promise was rejected and nothing awaited it: lost");
    let handled = run(
        "const p = Promise.reject(new Error('x')); await mcp.test.echo(1); try { await p } catch {} return 1",
    )
    .await;
    assert!(handled.logs.is_empty(), "{:?}", handled.logs);
    let no_logs = pml_worker::Limits { logs: 0, ..pml_worker::Limits::default() };
    let run = Run::new("test", "Promise.reject(new Error('x')); return 1").with_limits(no_logs);
    assert_eq!(
        pool().await.run(run, &tools).await.result.unwrap(),
        json!(1),
        "the warning itself meets no limit"
    );
}

#[tokio::test]
async fn an_exception_in_a_timer_ends_the_run() {
    let error = thrown(run("setTimeout(() => { throw new Error('late') }, 0); await mcp.test.never()").await);
    assert_eq!((error.message.as_str(), error.stack.contains("code:1:")), ("late", true));
}

#[tokio::test]
async fn what_the_documentation_says_is_absent_is_absent() {
    assert_eq!(value("return [typeof Intl, typeof WebAssembly]").await, json!(["undefined", "undefined"]));
}
