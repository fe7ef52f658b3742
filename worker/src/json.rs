//! JSON text that is known to be valid: cheap to clone, parsed only on demand.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

/// A JSON value kept as its text, so that a megabyte passes through without being parsed.
#[derive(Clone)]
pub struct Json(Arc<Box<RawValue>>);

impl Json {
    /// Keeps `text` if it is one valid JSON value.
    pub fn from_text(text: impl Into<String>) -> Result<Json, serde_json::Error> {
        Ok(Json(Arc::new(RawValue::from_string(text.into())?)))
    }

    /// The JSON of anything serialisable.
    pub fn from_value(value: &impl Serialize) -> Result<Json, serde_json::Error> {
        Ok(Json(Arc::new(serde_json::value::to_raw_value(value)?)))
    }

    /// The value `null`.
    #[must_use]
    pub fn null() -> Json {
        Json(Arc::new(RawValue::NULL.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The value as a Rust type, for example [`serde_json::Value`].
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Json {
        Json::from_text(value.to_string()).unwrap_or_else(|_| Json::null())
    }
}

impl PartialEq<serde_json::Value> for Json {
    fn eq(&self, other: &serde_json::Value) -> bool {
        self.parse::<serde_json::Value>().is_ok_and(|value| value == *other)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        Ok(Json(Arc::new(Box::<RawValue>::deserialize(deserializer)?)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Json;

    #[test]
    fn keeps_the_text_as_it_is() {
        assert_eq!(Json::from_text("[1,  2]").unwrap().get(), "[1,  2]");
        assert_eq!(Json::from_text("{\"a\":1}").unwrap(), json!({"a": 1}));
    }

    #[test]
    fn refuses_what_is_not_one_value() {
        for text in ["", "{", "1 2", "undefined", "nul"] {
            assert!(Json::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn passes_through_serde_without_quotes() {
        let text = serde_json::to_string(&vec![Json::from(json!({"a": [1]}))]).unwrap();
        assert_eq!(text, "[{\"a\":[1]}]");
    }
}
