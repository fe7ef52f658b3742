//! FR034: agents see names, never FQDNs, however runs fail and whatever happens to what they call.

use pml_tests::{
    Ask, Database,
    mcp::{Agent, Era, Proxy, new_token},
};
use postgres::Client;
use serde_json::{Value, json};

fn has_fqdn(text: &str) -> bool {
    let is_part = |part: &&str| part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_hash = |part: &str| {
        part.len() >= 4 && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c))).any(|word| {
        let parts: Vec<&str> = word.split('.').collect();
        parts.windows(5).any(|five| five[..4].iter().all(is_part) && is_hash(five[4]))
    })
}

/// What the agent reads of an answer: everything but `_meta`.
fn read(agent: &Agent, tool: &str, arguments: Value) -> String {
    let shown = arguments.to_string();
    let answer = agent.call(tool, arguments);
    let content = serde_json::to_string(&answer.content).unwrap();
    let seen = format!("{content} {}", answer.structured_content.unwrap_or_default());
    assert!(!has_fqdn(&seen), "{tool} {shown}: {seen}");
    seen
}

fn register(db: &mut Client, name: &str, code: &str) {
    db.execute("SELECT pml_register($1, $2, visibility => 'public')", &[&code, &name]).unwrap();
}

const ERRORS: &str = "
    const told = [];
    for (const f of [mcp.deep.throws, mcp.deep.tool, mcp.deep.args, mcp.deep.inner, mcp.deep.gone, mcp.deep.hidden]) {
      const circle = {}; circle.circle = circle;
      for (const input of [{}, 7, circle]) {
        try { told.push(await f(input)) } catch (e) { told.push([e.message, e.tool, e.stack, String(e), e.data, f.name, String(f)]) }
      }
    }
    console.log(mcp.deep.inner, told);
    mcp.deep.throws({});
    return told";

#[test]
fn an_fqdn_is_recognised() {
    assert!(
        has_fqdn("x: \"local.default.fs.read_json.a7f3@v1\"") && has_fqdn("local.my-project.fs.read.00ff12")
    );
    assert!(!has_fqdn("local.default:fs:read_json 1.2.3.4.5 a.b.c.d") && !has_fqdn("args.a.b.c.length"));
}

#[test]
fn no_answer_has_an_fqdn_in_what_the_agent_reads() {
    let database = Database::new();
    let mut db = database.connect();
    for (name, code) in [
        ("deep:throws", "throw new Error('on purpose')"),
        ("deep:tool", "return await mcp.nowhere.tool({})"),
        ("deep:args", "return args.list.map((x) => x)"),
        ("deep:gone", "return 1"),
        ("deep:hidden", "return 2"),
        (
            "deep:inner",
            "if (await mcp.deep.gone({})) return await mcp.deep.throws({}); return await mcp.deep.hidden({})",
        ),
        ("deep:all", ERRORS),
        ("deep:failing", "const x = await mcp.deep.inner({});\nreturn await mcp.deep.hidden(x)"),
    ] {
        register(&mut db, name, code);
    }
    let (_, token) = new_token(&database, "other", "ada");
    let proxy = Proxy::start(&database);
    let owner = Agent::connect(&proxy.url, Era::Stateless);
    let stranger = Agent::with_token(&proxy.url, Era::Stateless, &token);
    let round = |here: &str| {
        for (agent, at) in [(&owner, ""), (&stranger, here)] {
            for name in ["deep:all", "deep:failing", "deep:inner", "deep:args", "deep:tool"] {
                let spec = format!("{at}{name}");
                read(agent, "pml_execute", json!({"capability": spec, "args": {"unknown": 1}}));
                read(agent, "pml_execute", json!({"capability": spec, "args": {}}));
                for tool in ["cap_lookup", "cap_history"] {
                    read(agent, tool, json!({"name": spec}));
                }
                read(agent, "cap_whois", json!({"name": spec}));
            }
        }
        read(&owner, "pml_execute", json!({"code": ERRORS}));
        read(&owner, "mcp__deep__failing", json!({}));
        read(&owner, "mcp__deep__all", json!({}));
        read(&owner, "cap_list", json!({}));
        read(&owner, "pml_discover", json!({"intent": "deep inner"}));
    };
    round("local.default:");
    db.batch_execute("SELECT pml_delete('deep:gone', force => true); SELECT pml_rename('deep:hidden', visibility => 'private')").unwrap();
    round("local.default:");
    for server in db.texts("SELECT DISTINCT server_id || ' ' || tool_id FROM pml.tool_usage") {
        assert!(!has_fqdn(&server), "{server}");
    }
}

#[test]
fn what_is_gone_has_a_stand_in_that_tells_no_name_of_others() {
    let database = Database::new();
    let mut db = database.connect();
    register(&mut db, "secret:plan", "return 1");
    register(&mut db, "old:plan", "return 2");
    register(&mut db, "open:plan", "return [await mcp.secret.plan({}), await mcp.old.plan({})]");
    db.batch_execute("SELECT pml_rename('secret:plan', visibility => 'private'); SELECT pml_delete('old:plan', force => true)").unwrap();
    let own = "return [await mcp.secret.plan({}), await mcp[\"deleted:old:plan\"]({})]";
    assert_eq!(db.text("SELECT pml_code('open:plan')", &[]).unwrap(), own);
    db.batch_execute("SET pml.org = 'other'; SET pml.actor = 'ada'").unwrap();
    let foreign = "return [await mcp.unknown.capability({}), await mcp[\"deleted:old:plan\"]({})]";
    let (_, token) = new_token(&database, "other", "ada");
    let proxy = Proxy::start(&database);
    let stranger = Agent::with_token(&proxy.url, Era::Stateless, &token);
    let whois = read(&stranger, "cap_whois", json!({"name": "local.default:open:plan"}));
    let shown = serde_json::to_string(foreign).unwrap();
    assert!(whois.contains(&shown[1..shown.len() - 1]), "{whois}");
    assert!(!whois.contains("secret"), "{whois}");
}

#[test]
fn neither_properties_of_a_capability_nor_the_source_of_functions_tell_fqdns() {
    let database = Database::new();
    let mut db = database.connect();
    register(&mut db, "p:rd2", "return args.path");
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let result = |code: &str| agent.ask("pml_execute", json!({"code": code}))["result"].clone();
    for code in [
        "return await mcp.p.rd2.call(null, {path: 'x'})",
        "return await mcp.p.rd2.apply(mcp, [{path: 'x'}])",
        "const f = mcp.p.rd2.bind(null); return await f({path: 'x'})",
    ] {
        assert_eq!(result(code), "x", "{code}");
    }
    for code in [
        "return await mcp.p.rd2.foo({})",
        "return await mcp.p.rd2['x' + 1]({})",
        "const x = mcp.p.rd2; return await x.y({})",
        "return await mcp['p:rd2'].x({})",
    ] {
        let seen = read(&agent, "pml_execute", json!({"code": code}));
        assert!(seen.contains("p:rd2 is a capability and has no "), "{seen}");
    }
    let source =
        read(&agent, "pml_execute", json!({"code": "return (() => mcp.p.rd2({path: 'x'})).toString()"}));
    assert!(source.contains("[native code]") && !source.contains("__pml"), "{source}");
}
