//! Links to servers' resources, in the form that clients see: in lists, in results of tools, and in prompts.

mod template;
mod uri;

use std::collections::BTreeMap;

use bytes::Bytes;
use memchr::memmem;
use rmcp::model::{ContentBlock, JsonObject, ResourceContents};
use serde_json::{Value, value::RawValue};

pub(crate) use self::{
    template::matches,
    uri::{of_server, parse},
};

/// Maps the link of a content block of this server.
pub(crate) fn map_block(server: &str, block: &mut ContentBlock) {
    match block {
        ContentBlock::ResourceLink(link) => link.uri = of_server(server, &link.uri),
        ContentBlock::Resource(embedded) => map_contents(server, &mut embedded.resource),
        _ => {}
    }
}

/// Maps the URI of a resource's contents.
pub(crate) fn map_contents(server: &str, contents: &mut ResourceContents) {
    if let ResourceContents::TextResourceContents { uri, .. }
    | ResourceContents::BlobResourceContents { uri, .. } = contents
    {
        *uri = of_server(server, uri);
    }
}

/// Maps the links of a tool's result that wasn't parsed. All other values stay as they are.
pub(crate) fn map_raw(server: &str, result: Bytes) -> Bytes {
    // `resource` and `resource_link`, the types of the blocks that link.
    if memmem::find(&result, b"\"resource").is_none() {
        return result;
    }
    map_raw_blocks(server, &result).map_or(result, Bytes::from)
}

/// None if there is nothing to map.
fn map_raw_blocks(server: &str, result: &[u8]) -> Option<Vec<u8>> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_slice(result).ok()?;
    let blocks: Vec<&RawValue> = serde_json::from_str(fields.get("content")?.get()).ok()?;
    let mapped: Vec<Option<Box<RawValue>>> =
        blocks.iter().map(|block| map_raw_block(server, block)).collect();
    if mapped.iter().all(Option::is_none) {
        return None;
    }
    let blocks: Vec<&RawValue> =
        blocks.iter().zip(&mapped).map(|(block, mapped)| mapped.as_deref().unwrap_or(block)).collect();
    let content = serde_json::value::to_raw_value(&blocks).ok()?;
    fields.insert("content".to_owned(), &content);
    serde_json::to_vec(&fields).ok()
}

fn map_raw_block(server: &str, block: &RawValue) -> Option<Box<RawValue>> {
    memmem::find(block.get().as_bytes(), b"\"resource")?;
    let mut block: JsonObject = serde_json::from_str(block.get()).ok()?;
    let linking = match block.get("type")?.as_str()? {
        "resource_link" => &mut block,
        "resource" => block.get_mut("resource")?.as_object_mut()?,
        _ => return None,
    };
    map_field(server, linking);
    serde_json::value::to_raw_value(&block).ok()
}

/// Maps the URI that an error is about.
pub(crate) fn map_error(server: &str, data: &mut Value) {
    if let Some(data) = data.as_object_mut() {
        map_field(server, data);
    }
}

fn map_field(server: &str, fields: &mut JsonObject) {
    if let Some(Value::String(uri)) = fields.get_mut("uri") {
        *uri = of_server(server, uri);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::map_raw;

    #[test]
    fn only_links_of_a_raw_result_are_mapped() {
        let plain = Bytes::from_static(br#"{"content":[{"type":"text","text":"a \"resource"}], "x":1.50}"#);
        assert_eq!(map_raw("s", plain.clone()), plain);
        let result = json!({
            "content": [
                {"type": "text", "text": "file:///a \"resource\""},
                {"type": "resource_link", "uri": "file:///a", "name": "a", "unknown": 1},
                {"type": "resource", "resource": {"uri": "file:///b", "blob": "AA=="}},
            ],
            "structuredContent": {"uri": "file:///a"},
        });
        let mapped = map_raw("s", result.to_string().into());
        let mapped: Value = serde_json::from_slice(&mapped).unwrap();
        let mut expected = result;
        expected["content"][1]["uri"] = json!("pml://s/file:///a");
        expected["content"][2]["resource"]["uri"] = json!("pml://s/file:///b");
        assert_eq!(mapped, expected);
        let invalid = Bytes::from_static(br#"{"content": "resource", "resource": "#);
        assert_eq!(map_raw("s", invalid.clone()), invalid);
    }
}
