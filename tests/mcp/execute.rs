//! Code, capabilities by name, suggestions: through pml_execute and as tools.

use pml_tests::{
    Ask, Database,
    mcp::{Agent, Era, Proxy, eventually, runtime, text},
};
use serde_json::{Value, json};

#[test]
fn code_runs_is_kept_gets_a_name_and_is_a_tool() {
    for era in Era::BOTH {
        let database = Database::new();
        let proxy = Proxy::start(&database);
        let agent = Agent::connect(&proxy.url, era);
        let first = agent.call(
            "pml_execute",
            json!({"intent": "add two numbers", "code": "return args.a + args.b", "name": "math:add", "args": {"a": 1, "b": 2}}),
        );
        let answer = first.structured_content.clone().unwrap();
        assert_eq!(answer["status"], "success", "{answer}");
        assert_eq!(
            (&answer["result"], &answer["capabilityName"], &answer["mode"]),
            (&json!(3), &json!("math:add"), &json!("direct"))
        );
        assert!(answer["executionTimeMs"].is_number() && answer["dag"]["nodes"].is_array(), "{answer}");
        // The FQDN is for programs only.
        let meta = serde_json::to_value(first.meta.unwrap()).unwrap();
        assert!(meta["pml"]["fqdn"].as_str().unwrap().starts_with("local.default.math.add."), "{meta}");
        assert!(
            !text(&serde_json::from_value(json!({"content": first.content})).unwrap())
                .contains("local.default.")
        );

        let again = agent.ask("pml_execute", json!({"capability": "math:add", "args": {"a": 20, "b": 22}}));
        assert_eq!((&again["result"], &again["mode"]), (&json!(42), &json!("call_by_name")));
        assert!(agent.tool_names().contains(&"mcp__math__add".to_owned()));
        let direct = agent.call("mcp__math__add", json!({"a": 5, "b": 6}));
        assert_eq!(direct.structured_content, Some(json!({"result": 11})));
        assert_eq!(text(&direct), "11");

        let mut client = database.connect();
        assert_eq!(client.number("SELECT usage_count FROM pml_lookup('math:add')"), 3);
        assert_eq!(
            client.number(
                "SELECT count(*) FROM pml.tool_usage WHERE server_id = 'pml-capabilities' AND success"
            ),
            3
        );
        assert_eq!(client.number("SELECT count(*) FROM pml.execution_trace"), 3);
    }
}

#[test]
fn mistakes_are_tool_errors_that_say_what_to_do() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let cases = [
        (
            json!({"code": "return 1", "capability": "a:b"}),
            "Give either \"code\" or \"capability\", not both",
        ),
        (json!({}), "Give \"code\" to run"),
        (json!({"capability": "non-existent"}), "Capability not found: non-existent"),
        (json!({"code": "return ("}), "line 1"),
        (json!({"code": "return 1", "nonsense": 1}), "nonsense"),
        (json!({"code": "return 1", "servers": []}), "no argument \"servers\""),
        (json!({"code": "throw new Error('on purpose')"}), "on purpose"),
        (json!({"code": "await mcp.nowhere.tool({})"}), "nowhere"),
        (json!({"code": "while (true) {}", "options": {"timeout": 200}}), "limit"),
    ];
    for (request, expected) in cases {
        let message = agent.failure("pml_execute", request.clone());
        assert!(message.contains(expected), "{request}: {message}");
    }
    // Failed runs are traced, never kept.
    let mut client = database.connect();
    assert_eq!(
        client.number("SELECT count(*) FROM pml.capability_records WHERE record_type = 'capability'"),
        0
    );
    assert_eq!(client.number("SELECT count(*) FROM pml.execution_trace WHERE NOT success"), 3);
    // A tool that isn't there is the protocol's affair.
    let error = agent.try_call("no_such_tool", json!({})).unwrap_err().to_string();
    assert!(error.contains("Unknown tool: no_such_tool") && error.contains("-32602"), "{error}");
}

#[test]
fn arguments_are_checked_before_anything_runs() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Sessions);
    let mut client = database.connect();
    client
        .execute(
            "SELECT pml_register('return args.greeting + \" \" + args.name', name => 'text:greet', parameters_schema => \
             '{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, \
               \"greeting\": {\"type\": \"string\", \"default\": \"Hello\"}}, \"required\": [\"name\"]}', \
             visibility => 'project')",
            &[],
        )
        .unwrap();
    assert_eq!(text(&agent.call("mcp__text__greet", json!({"name": "Ann"}))), "Hello Ann");
    let message = agent.failure("mcp__text__greet", json!({"name": 7}));
    assert!(message.contains("name") && message.contains("string"), "{message}");
    let message = agent.failure("pml_execute", json!({"capability": "text:greet", "args": {}}));
    assert!(message.contains("name"), "{message}");
    assert_eq!(client.number("SELECT count(*) FROM pml.execution_trace"), 1);
}

#[test]
fn code_gives_the_same_by_name_as_when_it_was_new() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    for (index, (code, expected)) in [
        ("const { n }: { n?: number } = args; return n ?? 'none'", json!("none")),
        ("return [args.n ?? 1, args.n ?? 2]", json!([1, 2])),
        ("return [args.n !== undefined, args.n ?? 5]", json!([false, 5])),
        ("return [Object.keys(args), 'n' in args, args.n ?? 5]", json!([[], false, 5])),
        ("if (args.q) { const { n = 1 } = args; return n } const { n = 2 } = args; return n", json!(2)),
        ("const { a = { b: 2 } } = args; return a.b ?? 7", json!(2)),
        ("const { d = args.e } = args; return d ?? 0", json!(0)),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("same:c{index}");
        for request in [
            json!({"code": code, "name": name, "args": {}}),
            json!({"capability": name, "args": {}}),
            json!({"code": format!("return await mcp[\"{name}\"]({{}})")}),
        ] {
            assert_eq!(agent.ask("pml_execute", request.clone())["result"], expected, "{request}");
        }
    }
}

#[test]
fn capabilities_call_each_other_in_one_call() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let keep = |name: &str, code: &str, args: Value| {
        let answer =
            agent.ask("pml_execute", json!({"code": code, "name": name, "args": args, "intent": name}));
        assert_eq!(answer["status"], "success", "{answer}");
    };
    keep("num:double", "return { value: args.n * 2 }", json!({"n": 1}));
    keep(
        "num:quadruple",
        "const d = await mcp.num.double({ n: args.n }); return (await mcp.num.double({ n: d.value })).value",
        json!({"n": 1}),
    );
    let answer = agent.ask(
        "pml_execute",
        json!({"code": "return await mcp.num.quadruple({ n: args.n })", "args": {"n": 3}}),
    );
    assert_eq!(answer["result"], 12, "{answer}");
    assert!(!answer.to_string().contains("local.default."), "{answer}");
    let mut client = database.connect();
    // Of num:double: its own run, two in the run that kept num:quadruple, two in the last.
    let traces = "SELECT count(*) FROM pml.execution_trace t JOIN pml.capability_records r ON r.id = t.capability_id \
                  WHERE r.display_name = 'num:double'";
    assert_eq!(client.number(traces), 5);
    assert_eq!(
        client.number("SELECT count(*) FROM pml.execution_trace WHERE parent_trace_id IS NOT NULL"),
        5
    );
    // What goes wrong inside is told with names, and can be caught.
    keep("num:fail", "if (args.bad) throw new Error('bad number'); return 0", json!({"bad": false}));
    let message = agent.failure("pml_execute", json!({"code": "return await mcp.num.fail({ bad: true })"}));
    assert!(
        message.contains("num:fail") && message.contains("bad number") && !message.contains("local.default."),
        "{message}"
    );
    let answer = agent.ask(
        "pml_execute",
        json!({"code": "try { await mcp.num.fail({ bad: true }) } catch (e) { return 'caught' }"}),
    );
    assert_eq!(answer["result"], "caught");
}

#[test]
fn results_that_postgres_cannot_hold_still_arrive() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let answer = agent.ask("pml_execute", json!({"code": "return 'a\\0b'"}));
    assert_eq!(answer["result"], "a\u{0}b");
}

#[test]
fn whole_results_can_be_fetched() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    agent.ask("pml_execute", json!({"code": "return 'x'.repeat(1000)", "name": "text:long"}));
    let answer = agent.ask("pml_execute", json!({"code": "return (await mcp.text.long({})).length"}));
    assert_eq!(answer["result"], 1000);
    let task = answer["dag"]["tasks"][0].clone();
    assert_eq!(task["resultPreview"].as_str().unwrap().len(), 240, "{answer}");
    let ask = |extra: Value| {
        let mut args = json!({"workflow_id": answer["workflowId"], "task_id": task["taskId"]});
        args.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        agent.ask("pml_get_task_result", args)
    };
    let whole = ask(json!({}));
    assert_eq!(whole["total"], 1002, "{whole}");
    let part = ask(json!({"offset": 1, "limit": 3}));
    assert_eq!((&part["result"], &part["next_offset"]), (&json!("xxx"), &json!(4)));
    let message =
        agent.failure("pml_get_task_result", json!({"workflow_id": answer["workflowId"], "task_id": "t99"}));
    assert!(message.to_lowercase().contains("not found"), "{message}");
}

#[test]
fn intents_find_what_there_is() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Sessions);
    agent.ask(
        "pml_execute",
        json!({"code": "return args.celsius * 9 / 5 + 32", "name": "temp:to_fahrenheit",
        "intent": "convert a temperature to fahrenheit", "args": {"celsius": 1}}),
    );
    let answer = agent.ask("pml_execute", json!({"intent": "temperature in fahrenheit"}));
    assert_eq!(answer["status"], "suggestions", "{answer}");
    assert_eq!(answer["suggestions"]["capabilities"][0]["name"], "temp:to_fahrenheit", "{answer}");
    let found = agent.ask("pml_discover", json!({"intent": "fahrenheit"}));
    assert_eq!(found["result"][0]["name"], "temp:to_fahrenheit", "{found}");
    assert!(!found.to_string().contains("local.default."), "{found}");
}

#[test]
fn long_runs_tell_that_they_go_on() {
    for era in Era::BOTH {
        let database = Database::new();
        let proxy = Proxy::start(&database);
        let agent = Agent::connect(&proxy.url, era);
        agent.ask("pml_execute", json!({"code": "return 1", "name": "one:one"}));
        let code = "await mcp.one.one({}); await new Promise(done => setTimeout(done, 2500)); return 2";
        assert_eq!(agent.ask("pml_execute", json!({"code": code}))["result"], 2);
        let heard = agent.progress();
        let messages: Vec<&str> = heard.iter().filter_map(|step| step.message.as_deref()).collect();
        assert!(messages.contains(&"Call 1: one:one"), "{era:?}: {messages:?}");
        assert!(messages.iter().any(|message| message.starts_with("Running for")), "{era:?}: {messages:?}");
        // This client handles notifications concurrently, so their order says nothing.
        let mut numbers: Vec<f64> = heard.iter().map(|step| step.progress).collect();
        numbers.sort_by(f64::total_cmp);
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{heard:?}");
    }
}

#[test]
fn cancelling_stops_the_run_frees_the_slot_and_is_recorded() {
    for era in Era::BOTH {
        let database = Database::new();
        database.create_role("proxy", &["pml_proxy"]);
        let proxy = pml_tests::mcp::ProxySetup::new(&database).args(&["--worker-slots", "1"]).start();
        let agent = Agent::connect(&proxy.url, era);
        let code = "await new Promise(done => setTimeout(done, 29000)); return 1";
        let handle = agent.start_call("pml_execute", json!({"code": code}));
        proxy.runs_code();
        runtime().block_on(handle.cancel(Some("enough".into()))).unwrap();
        // The only slot is free long before the run would have ended.
        let answer = agent.ask("pml_execute", json!({"code": "return 'next'"}));
        assert_eq!(answer["result"], "next", "{era:?}");
        let mut client = database.connect();
        let message = eventually("the record", || {
            client.text("SELECT min(error_message) FROM pml.execution_trace WHERE NOT success", &[])
        });
        assert!(message.contains("cancelled"), "{message}");
    }
}

#[test]
fn a_client_that_goes_away_leaves_a_record() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let client = reqwest::Client::new();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "pml_execute", "arguments": {"code": "await new Promise(done => setTimeout(done, 20000)); return 1"},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                  "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                  "io.modelcontextprotocol/clientCapabilities": {}}}});
    let request = client
        .post(&proxy.url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "pml_execute")
        .json(&body);
    let calling = runtime().spawn(request.send());
    let mut sql = database.connect();
    proxy.runs_code();
    calling.abort();
    let message =
        eventually("the record", || sql.text("SELECT min(error_message) FROM pml.execution_trace", &[]));
    assert!(message.contains("cancelled"), "{message}");
}

#[test]
fn a_nul_in_a_request_is_refused_in_words_and_one_in_a_result_is_given_back() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    for (tool, arguments) in [
        ("pml_execute", json!({"code": "return 'a\u{0}b'"})),
        ("pml_execute", json!({"code": "return args.a", "args": {"a": "\u{0}"}})),
        ("pml_execute", json!({"intent": "find \u{0}"})),
        ("pml_execute", json!({"capability": "a\u{0}"})),
        ("pml_discover", json!({"intent": "find \u{0}"})),
        ("cap_lookup", json!({"name": "a\u{0}"})),
        ("cap_list", json!({"pattern": "a\u{0}"})),
    ] {
        let answer = agent.call(tool, arguments.clone());
        let said = text(&answer);
        assert_eq!(answer.is_error, Some(true), "{tool} {arguments}: {said}");
        assert!(
            said.contains("can't be stored: U+0000") && said.contains("Hint: "),
            "{tool} {arguments}: {said}"
        );
        assert!(!said.contains("panic") && !said.contains(".rs:"), "{said}");
    }
    let answer =
        agent.ask("pml_execute", json!({"code": r"return 'a\0b'.split('\0').concat('\0')", "name": "a:nul"}));
    assert_eq!(answer["result"], json!(["a", "b", "\u{0}"]), "{answer}");
    assert_eq!(answer["capabilityName"], "a:nul");
}

#[test]
fn an_old_name_is_told_and_a_dag_is_kept_as_one() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    agent.ask("pml_execute", json!({"code": "return args.a + 1", "name": "math:inc", "args": {"a": 1}}));
    let source = json!({"type": "dag", "dagStructure": {"tasks": [
        {"id": "one", "tool": "math:inc", "arguments": {"a": {"type": "parameter", "parameterName": "start"}}},
        {"id": "two", "tool": "math:inc", "arguments": {"a": {"type": "reference", "expression": "one"}}}]}});
    let ran = agent.ask("pml_execute", json!({"source": source, "name": "math:twice", "args": {"start": 5}}));
    assert_eq!((&ran["result"], &ran["capabilityName"]), (&json!(7), &json!("math:twice")), "{ran}");
    assert_eq!(agent.ask("cap_whois", json!({"name": "math:twice"}))["source"], source);
    assert!(agent.tool_names().contains(&"mcp__math__twice".to_owned()));

    agent.ask("cap_rename", json!({"name": "math:inc", "new_name": "math:next"}));
    let warning = "Deprecated: using alias \"math:inc\" for capability \"math:next\"";
    assert_eq!(agent.ask("cap_lookup", json!({"name": "math:inc"}))["warning"], warning);
    let by_id = agent.ask("pml_execute", json!({"capabilityId": "math:inc", "args": {"a": 1}}));
    assert_eq!((&by_id["result"], &by_id["warning"]), (&json!(2), &json!(warning)));
    let direct = agent.call("mcp__math__inc", json!({"a": 4}));
    assert_eq!(direct.structured_content, Some(json!({"result": 5})));
    assert!(text(&direct).contains(warning), "{direct:?}");
}

#[test]
fn a_capability_may_be_named_only_when_the_code_runs() {
    let database = Database::new();
    let mut db = database.connect();
    db.batch_execute(
        "SELECT pml_register('return args.n + 1', 'math:next', visibility => 'project');
         SELECT pml_register('return await mcp.math.next({ n: args.n * 10 })', 'my-tens', visibility => 'project');
         SET pml.actor = 'somebody-else'; SELECT pml_register('return 666', 'their:own')",
    )
    .unwrap();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let code = "const told = [];
        for (const name of args.names) {
          try { told.push(await capabilities[name]({ n: 4 })) } catch (e) { told.push(e.message) }
        }
        return told";
    let names =
        json!(["math:next", "math:next@v1", "my-tens", "my_tens", "their:own", "no:such", "math:next"]);
    let answer =
        agent.ask("pml_execute", json!({"code": code, "name": "dynamic:all", "args": {"names": names}}));
    let missing =
        |name: &str| json!(format!("{name}: there is no such capability, or it can't be seen from here"));
    assert_eq!(
        answer["result"],
        json!([5, 5, 41, 41, missing("their:own"), missing("no:such"), 5]),
        "{answer}"
    );
    let names: Vec<&str> = answer["dag"]["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["math:next", "math:next", "my-tens", "my-tens", "their:own", "no:such", "math:next"]);
    let unresolved = "SELECT unresolved::text FROM pml.capability_records WHERE display_name = 'dynamic:all'";
    assert!(db.text(unresolved, &[]).unwrap().contains("only at run time"));
    // Counted like any other call.
    assert_eq!(db.number("SELECT usage_count FROM pml_lookup('math:next')"), 5);
    // With the older prefix, by a former name, and as a member of mcp.
    db.batch_execute("SELECT pml_rename('math:next', 'math:following')").unwrap();
    let code = "const told = [];
        for (const name of ['cap:math:following', 'cap:math:next', 'cap:no:such', 'math:next']) {
          try { told.push(await capabilities[name]({ n: 4 })) } catch (e) { told.push(e.message) }
        }
        for (const [a, b] of [['math', 'following'], ['math', 'next'], ['their', 'own'], ['no', 'such']]) {
          try { told.push(await mcp[a][b]({ n: 4 })) } catch (e) { told.push(e.message.slice(0, 34)) }
        }
        return told";
    let answer = agent.ask("pml_execute", json!({"code": code}));
    assert_eq!(
        answer["result"],
        json!([
            5,
            5,
            missing("cap:no:such"),
            5,
            5,
            5,
            "their:own: there is no server \"the",
            "no:such: there is no server \"no\"; "
        ]),
        "{answer}"
    );
    let tasks = answer["dag"]["tasks"].as_array().unwrap();
    assert_eq!((&tasks[4]["name"], &tasks[4]["kind"]), (&json!("math:following"), &json!("capability")));
    assert_eq!((&tasks[7]["name"], &tasks[7]["kind"]), (&json!("no:such"), &json!("tool")));
}

#[test]
fn results_keep_the_order_of_their_keys() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let code = "return { zebra: 1, apple: { y: 2, b: 3 } }";
    let wanted = r#""zebra":1,"apple":{"y":2,"b":3}"#;
    let answer = agent.call("pml_execute", json!({"code": code, "name": "a:order"}));
    assert!(text(&answer).contains(wanted), "{}", text(&answer));
    assert!(text(&agent.call("mcp__a__order", json!({}))).contains(wanted));
    let workflow = answer.structured_content.unwrap()["workflowId"].clone();
    let whole = agent.ask("pml_get_task_result", json!({"workflow_id": workflow, "task_id": "result"}));
    assert!(whole["result"].as_str().unwrap().contains(wanted), "{whole}");
}

#[test]
fn arguments_keep_the_order_of_their_keys() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let args = json!({"zebra": 1, "apple": {"y": 2, "b": [{"d": 3, "c": 4}]}});
    let wanted = args.to_string();
    let answer = agent.call("pml_execute", json!({"code": "return args", "name": "a:same", "args": args}));
    assert!(text(&answer).contains(&wanted), "{}", text(&answer));
    for (tool, given) in
        [("mcp__a__same", args.clone()), ("pml_execute", json!({"capability": "a:same", "args": args}))]
    {
        let answer = agent.call(tool, given);
        assert!(text(&answer).contains(&wanted), "{tool}: {}", text(&answer));
    }
    // In the trace of the call too, where U+0000 can't be stored.
    let code = format!("return await mcp.a.same({{ ...{wanted}, nul: '\\0' }})");
    agent.ask("pml_execute", json!({"code": code}));
    let traced = "SELECT string_agg(task_results::text, '') FROM pml.execution_trace";
    let traced = database.connect().text(traced, &[]).unwrap();
    let stored = format!("{},\"nul\":\"\\ufffd\"}}", &wanted[..wanted.len() - 1]);
    assert!(traced.contains(&stored), "{traced} doesn't contain {stored}");
}

#[test]
fn a_capability_that_is_called_dynamically_takes_its_routing_along() {
    let database = Database::new();
    database
        .connect()
        .batch_execute(
            "SELECT pml_register_server('files', 'local', visibility => 'project');
             SELECT pml_register('if (args.path) await mcp.files.read({}); return 1', 'p:read', visibility => 'project')",
        )
        .unwrap();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let code = "const n = ['p:read'][0]; return await capabilities[n]({})";
    agent.ask("pml_execute", json!({"code": code, "name": "p:dynamic"}));
    assert_eq!(agent.ask("cap_lookup", json!({"name": "p:dynamic"}))["routing"], "local");
}
