//! Nothing that a built-in tool advertises is refused: every property, every value of an enum and every default is sent to
//! it, in both spellings; and what it calls required is.

use pml_tests::{
    Database,
    mcp::{Agent, Era, Proxy, text},
};
use rmcp::model::Tool;
use serde_json::{Map, Value, json};

struct Bench {
    agent: Agent,
    /// Of a run with a task, whose results can be fetched.
    run: Value,
    made: u32,
}

impl Bench {
    /// A name that nothing has.
    fn new_name(&mut self) -> String {
        self.made += 1;
        format!("made:name_{}", self.made)
    }

    /// The least that the tool can be called with.
    fn least(&mut self, tool: &str) -> Value {
        match tool {
            "pml_execute" => json!({"intent": "add numbers"}),
            "pml_discover" => json!({"intent": "add numbers"}),
            "pml_get_task_result" => json!({"workflow_id": self.run["workflowId"], "task_id": "t1"}),
            "cap_fork" => json!({"source": "math:add", "name": self.new_name()}),
            "cap_merge" => {
                let name = self.new_name();
                json!({"sources": ["math:double", "math:show"], "name": name, "code": format!("return '{name}'")})
            }
            "cap_list" => json!({}),
            "cap_lookup" | "cap_rename" | "cap_whois" | "cap_history" => json!({"name": "math:other"}),
            other => panic!("{other} is new: say here what is the least that it takes"),
        }
    }

    /// Arguments that have this property, with each value that the schema names, or one that makes sense.
    fn calls(&mut self, tool: &str, property: &str, schema: &Value) -> Vec<Value> {
        let mut values: Vec<Value> = schema["enum"].as_array().cloned().unwrap_or_default();
        values.extend(["default", "minimum", "maximum"].iter().filter_map(|key| schema.get(key)).cloned());
        if values.is_empty() {
            values = match (tool, property) {
                ("pml_execute", "code") => vec![json!(format!("return '{}'", self.new_name()))],
                ("pml_execute", "name") => vec![json!(self.new_name())],
                ("pml_execute", "capability") => vec![json!("math:add"), json!("math:add@v1")],
                ("pml_execute", "args") => vec![json!({"a": 1, "b": 2})],
                ("pml_execute", "source") => vec![
                    json!({"type": "dag", "dagStructure": {"tasks": [{"id": "a", "tool": "math:double", "arguments": {"n": {"type": "literal", "value": 2}}}]}}),
                ],
                ("pml_execute", "options") => vec![json!({"timeout": 5000})],
                ("pml_get_task_result", "workflow_id") => vec![self.run["workflowId"].clone()],
                ("pml_get_task_result", "task_id") => {
                    vec![json!("t1"), json!("result"), self.run["dag"]["nodes"][0]["id"].clone()]
                }
                ("cap_merge", "code") => {
                    vec![json!(format!("return [await cap_math_show(args), '{}']", self.made))]
                }
                ("cap_merge", "sources") => vec![json!(["math:double", "math:show"])],
                ("cap_rename", "new_name") => vec![json!(self.new_name()), json!("math:other")],
                (_, "name" | "source") => vec![self.least(tool)[property].clone()],
                (_, "tags") => vec![json!(["fine"])],
                _ => match schema["type"].as_str() {
                    Some("string") => vec![json!("v1.*")],
                    Some("integer") => vec![json!(5)],
                    Some("boolean") => vec![json!(true)],
                    other => panic!("{tool}.{property} is new: say here what it takes ({other:?})"),
                },
            };
        }
        let with = |value: Value, bench: &mut Bench| {
            let mut args = bench.least(tool);
            // These are for code or for a capability.
            match (tool, property) {
                ("pml_execute", "name" | "description") => {
                    args["code"] = json!(format!("return '{}'", bench.new_name()));
                }
                ("pml_execute", "args" | "options") => args["capability"] = json!("math:add"),
                // Without code it is a pipeline.
                ("cap_merge", "sources") => drop(args.as_object_mut().unwrap().remove("code")),
                _ => {}
            }
            if args.get("capability").is_some() || property == "capability" {
                args["args"] = json!({"a": 1, "b": 2});
            }
            args[property] = value;
            args
        };
        values.into_iter().map(|value| with(value, self)).collect()
    }
}

fn camel_case(args: &Value) -> Value {
    let camel = |key: &str| {
        let mut parts = key.split('_');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |name, part| format!("{name}{}{}", part[..1].to_uppercase(), &part[1..]))
    };
    Value::Object(args.as_object().unwrap().iter().map(|(key, value)| (camel(key), value.clone())).collect())
}

fn properties(tool: &Tool) -> Map<String, Value> {
    tool.input_schema["properties"].as_object().unwrap().clone()
}

#[test]
fn what_is_advertised_is_accepted() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Stateless);
    let tools = agent.tools();
    for (name, code) in [
        ("math:add", "return args.a + args.b"),
        ("math:other", "return 0"),
        ("math:double", "return { n: Number(args.n ?? 1) * 2 }"),
        ("math:show", "return String(args.n)"),
    ] {
        agent.ask("pml_execute", json!({"code": code, "name": name, "args": {"a": 1, "b": 2, "n": 1}}));
    }
    let run = agent.ask("pml_execute", json!({"code": "return await mcp.math.add({ a: 1, b: 2 })"}));
    let mut bench = Bench { agent, run, made: 0 };
    for tool in &tools {
        for (property, schema) in properties(tool) {
            for args in bench.calls(&tool.name, &property, &schema) {
                let answer = bench.agent.call(&tool.name, args.clone());
                assert_ne!(answer.is_error, Some(true), "{} {args}: {}", tool.name, text(&answer));
            }
        }
        let required = tool.input_schema["required"].as_array().unwrap().clone();
        for missing in required {
            let missing = missing.as_str().unwrap();
            let mut args = bench.least(&tool.name);
            args.as_object_mut().unwrap().remove(missing);
            let message = bench.agent.failure(&tool.name, args);
            assert!(message.contains(&format!("needs \"{missing}\"")), "{}: {message}", tool.name);
        }
        let message = bench.agent.failure(&tool.name, json!({"nonsense": 1}));
        assert!(message.contains("nonsense") && !message.contains("servers"), "{}: {message}", tool.name);
    }
}

#[test]
fn both_spellings_of_arguments_are_accepted() {
    let database = Database::new();
    let proxy = Proxy::start(&database);
    let agent = Agent::connect(&proxy.url, Era::Sessions);
    agent.ask("pml_execute", json!({"code": "return 0", "name": "math:other"}));
    let run = agent.ask("pml_execute", json!({"code": "return await mcp.math.other({})"}));
    for (tool, args) in [
        ("pml_discover", json!({"intent": "math", "min_score": 0.1})),
        ("pml_get_task_result", json!({"workflow_id": run["workflowId"], "task_id": "t1"})),
        (
            "cap_list",
            json!({"named_only": true, "sort_by": "name", "created_by": "*", "record_type": "capability"}),
        ),
        ("cap_rename", json!({"name": "math:other", "new_name": "math:other"})),
    ] {
        assert_eq!(agent.ask(tool, args.clone()), agent.ask(tool, camel_case(&args)), "{tool}");
    }
    // Not a uuid: what to give is said.
    let message = agent.failure("pml_get_task_result", json!({"workflowId": "mine", "taskId": "t1"}));
    assert!(message.contains("Invalid workflow_id") && message.contains("workflowId"), "{message}");
}
