//! An MCP server on standard input and output with one tool, which asks a person and waits for the answer.

use std::{
    collections::HashMap,
    io::{BufRead, Write},
};

use serde_json::{Value, json};

pub(crate) fn serve() {
    let mut asked: HashMap<u64, Value> = HashMap::new();
    let mut questions = 0;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let id = message["id"].clone();
        let answer = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
        let reply = match message["method"].as_str() {
            Some("initialize") => answer(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "asker", "version": "1"},
            })),
            Some("tools/list") => {
                answer(json!({"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}))
            }
            Some("tools/call") => {
                questions += 1;
                asked.insert(questions, id);
                let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                let params = json!({"message": "Who are you?", "requestedSchema": schema});
                json!({"jsonrpc": "2.0", "id": questions, "method": "elicitation/create", "params": params})
            }
            Some("ping") => answer(json!({})),
            Some(_) if id.is_null() => continue,
            Some(method) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": method}})
            }
            // The answer to a question.
            None => match id.as_u64().and_then(|id| asked.remove(&id)) {
                Some(call) => {
                    let content = json!([{"type": "text", "text": message["result"].to_string()}]);
                    json!({"jsonrpc": "2.0", "id": call, "result": {"content": content}})
                }
                None => continue,
            },
        };
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{reply}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}
