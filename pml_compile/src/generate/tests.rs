//! The generated code, and that the compiler reads it back as what it was generated from.

use serde_json::json;

use super::*;
use crate::{CompileOptions, ToolSchema, compile};

fn dag(value: Json) -> Dag {
    serde_json::from_value(value).expect("a dag")
}

#[test]
fn a_tool_gets_its_defaults_and_the_arguments() {
    let defaults = json!({ "workflowId": "deploy-prod-v2", "__proto__": 1 });
    let code = tool_code("temporal:startWorkflow", defaults.as_object().expect("object"));
    let expected = "return await mcp.temporal.startWorkflow({ [\"__proto__\"]: 1, workflowId: \"deploy-prod-v2\", ...args });\n";
    assert_eq!(code, expected);
    assert_eq!(tool_code("my-tool", &Map::new()), "return await mcp[\"my-tool\"]({ ...args });\n");
    let compiled = compile(&code, &CompileOptions::default()).expect("compiles");
    assert_eq!(compiled.structure.tools(), ["temporal:startWorkflow"]);
}

#[test]
fn a_dag_runs_side_by_side_what_can() {
    let code = dag_code(&dag(json!({ "tasks": [
        { "id": "a", "tool": "fs:read", "arguments": { "path": { "type": "parameter", "parameterName": "path" } } },
        { "id": "b", "tool": "fs:read", "arguments": { "path": { "type": "literal", "value": "x" } } },
        { "id": "c", "tool": "json:merge", "dependsOn": ["b"], "arguments": {
            "left": { "type": "reference", "expression": "a.content" },
            "note": { "type": "template", "template": "from ${args.path} `and` ${b[0].id}" } } },
    ] })))
    .expect("generates");
    assert_eq!(
        code,
        "const [task1_a, task2_b] = await Promise.all([\n  mcp.fs.read({ path: args.path }),\n  mcp.fs.read({ path: \"x\" }),\n]);\n\
         const task3_c = await mcp.json.merge({ left: task1_a.content, note: `from ${args.path} \\`and\\` ${task2_b[0].id}` });\n\
         return task3_c;\n"
    );
    let structure = compile(&code, &CompileOptions::default()).expect("compiles").structure;
    assert_eq!(structure.tools(), ["fs:read", "json:merge"]);
}

#[test]
fn a_dag_that_cannot_run_says_why() {
    for (tasks, message) in [
        (
            json!([{ "id": "a", "tool": "x:y", "dependsOn": ["b"] }, { "id": "b", "tool": "x:y", "depends_on": ["a"] }]),
            "these tasks wait for each other: a, b",
        ),
        (json!([{ "id": "a", "tool": "x:y", "dependsOn": ["z"] }]), "task `a` needs `z`, which isn't a task"),
        (json!([{ "id": "a", "tool": "x:y" }, { "id": "a", "tool": "x:y" }]), "two tasks have the id `a`"),
        (
            json!([{ "id": "a", "tool": "x:y", "arguments": { "v": { "type": "parameter", "parameterName": "x); steal(" } } }]),
            "task `a`: `x); steal(` isn't a parameter",
        ),
        (
            json!([{ "id": "a", "tool": "x:y", "arguments": { "v": { "type": "expression", "expression": "1 + 1" } } }]),
            "task `a`: `1 + 1` is code: save the capability as code instead",
        ),
    ] {
        assert_eq!(dag_code(&dag(json!({ "tasks": tasks }))), Err(GenerateError(message.to_owned())));
    }
}

#[test]
fn several_ends_are_returned_by_name() {
    let code =
        dag_code(&dag(json!({ "tasks": [{ "id": "a", "tool": "x:y" }, { "id": "b-1", "tool": "x:z" }] })))
            .expect("generates");
    assert!(code.ends_with("return { a: task1_a, \"b-1\": task2_b1 };\n"), "{code}");
}

fn source(name: &str, input: Json, output: Json) -> PipelineSource {
    PipelineSource { name: name.to_owned(), schema: ToolSchema { input, output }, is_inferred: false }
}

#[test]
fn sources_that_fit_become_a_pipeline() {
    let read = source(
        "fs:read_json",
        json!({ "properties": { "path": { "type": "string" } }, "required": ["path"] }),
        json!({ "properties": { "content": { "type": "string" } } }),
    );
    let validate = source(
        "transform:validate",
        json!({ "properties": { "json": { "type": "string" }, "strict": { "type": "boolean" } }, "required": ["json"] }),
        json!({ "type": "boolean" }),
    );
    let made = pipeline(&[read.clone(), validate.clone()]).expect("fits");
    assert_eq!(
        made.code,
        "const step1 = await mcp.fs.read_json({ path: args.path });\n\
         const step2 = await mcp.transform.validate({ json: step1.content, strict: args.strict });\nreturn step2;\n"
    );
    assert_eq!(
        made.parameters,
        json!({
            "type": "object",
            "properties": { "path": { "type": "string" }, "strict": { "type": "boolean" } },
            "required": ["path"]
        })
    );
    let error = pipeline(&[validate, read.clone()]).expect_err("doesn't fit");
    assert_eq!(
        error.to_string(),
        "`fs:read_json` doesn't fit after `transform:validate`: it needs path (string), and `transform:validate` returns result (boolean)"
    );
    assert!(pipeline(&[read]).is_err());
}

#[test]
fn a_pipeline_has_only_the_defaults_that_were_declared() {
    let input = || json!({ "properties": { "n": { "default": 1 }, "o": { "properties": { "default": { "default": 2 } } } } });
    let made = |is_inferred| {
        let first = PipelineSource { is_inferred, ..source("a:a", input(), json!({ "type": "string" })) };
        let second = source("b:b", json!({ "properties": { "text": {} }, "required": ["text"] }), Json::Null);
        pipeline(&[first, second]).expect("fits").parameters["properties"].clone()
    };
    assert_eq!(made(false), input()["properties"]);
    assert_eq!(made(true), json!({ "n": {}, "o": { "properties": { "default": {} } } }));
}

#[test]
fn a_result_that_is_no_object_is_passed_whole() {
    let a = source("a:a", json!({}), json!({ "type": "string" }));
    let b = source(
        "b:b",
        json!({ "properties": { "text": { "type": "string" } }, "required": ["text"] }),
        json!({}),
    );
    let code = pipeline(&[a, b]).expect("fits").code;
    assert!(code.contains("mcp.a.a(args)") && code.contains("mcp.b.b({ text: step1 })"), "{code}");
}

#[test]
fn a_result_of_unknown_form_goes_to_the_field_for_content() {
    let read = source(
        "fs:read_json",
        json!({ "properties": { "path": { "type": "string" } }, "required": ["path"] }),
        Json::Null,
    );
    let validate = |properties: Json, required: Json| {
        source(
            "transform:validate_schema",
            json!({ "properties": properties, "required": required }),
            Json::Null,
        )
    };
    let made =
        pipeline(&[read.clone(), validate(json!({ "data": {}, "schema": {} }), json!(["data", "schema"]))])
            .expect("fits");
    assert!(made.code.contains("validate_schema({ data: step1, schema: args.schema })"), "{}", made.code);
    assert_eq!(
        made.parameters,
        json!({
            "type": "object",
            "properties": { "path": { "type": "string" }, "schema": {} },
            "required": ["path", "schema"]
        })
    );
    // The only one that is required takes it, whatever its name; one that names no field takes it as a whole.
    let made = pipeline(&[read.clone(), validate(json!({ "record": {}, "strict": {} }), json!(["record"]))]);
    assert!(made.expect("fits").code.contains("({ record: step1, strict: args.strict })"));
    assert!(
        pipeline(&[read.clone(), validate(json!({}), json!([]))]).expect("fits").code.contains("(step1)")
    );
    // Which of two is meant can't be told.
    assert!(
        pipeline(&[read, validate(json!({ "left": {}, "right": {} }), json!(["left", "right"]))]).is_err()
    );
}

proptest::proptest! {
    #[test]
    fn whatever_a_dag_holds_its_code_compiles_to_the_same_calls(
        ids in proptest::collection::btree_set("[ -~]{1,6}", 1..4),
        tool in "[ -~]{1,12}",
        name in "\\PC{0,8}",
        text in "\\PC{0,12}",
    ) {
        let tasks: Vec<Json> = ids.iter().map(|id| json!({
            "id": id, "tool": format!("x:{tool}"), "arguments": { name.clone(): { "type": "literal", "value": { text.clone(): text } } }
        })).collect();
        let code = dag_code(&dag(json!({ "tasks": tasks }))).expect("generates");
        let structure = compile(&code, &CompileOptions::default()).map_err(|error| proptest::test_runner::TestCaseError::fail(format!("{code}\n{error}")))?.structure;
        proptest::prop_assert_eq!(structure.nodes.iter().filter(|node| node.called().is_some()).count(), ids.len());
    }
}
