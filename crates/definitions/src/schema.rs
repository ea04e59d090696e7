//! The JSON Schema of a workflow's input.

use serde_json::Value as Json;
use std::fmt;
use std::sync::Arc;

/// The most things that are said to be wrong with one input.
const TOLD_MAX: usize = 5;

/// A schema that inputs are checked against.
#[derive(Clone)]
pub(crate) struct Schema {
    pub(crate) json: Json,
    validator: Arc<jsonschema::Validator>,
}

impl Schema {
    /// Takes a schema, unless it is none.
    pub(crate) fn new(json: Json) -> Result<Self, String> {
        let validator = jsonschema::validator_for(&json).map_err(|error| match error.instance_path().to_string() {
            path if path.is_empty() => error.to_string(),
            path => format!("{error}, at {path}"),
        })?;
        Ok(Schema { json, validator: Arc::new(validator) })
    }

    /// What is wrong with an input, without the values in it.
    pub(crate) fn check(&self, input: &Json) -> Result<(), String> {
        let wrong: Vec<String> = self.validator.iter_errors(input).take(TOLD_MAX).map(|error| describe(&error)).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    match error.instance_path().to_string() {
        path if path.is_empty() => error.masked().to_string(),
        path => format!("{path}: {}", error.masked()),
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_with_an_input_is_told_without_its_values() {
        let schema =
            Schema::new(json!({"type": "object", "required": ["order"], "properties": {"amount": {"type": "integer", "maximum": 10}}}))
                .unwrap();
        assert_eq!(schema.check(&json!({"order": 1})), Ok(()));
        let why = schema.check(&json!({"amount": "hunter2"})).unwrap_err();
        assert!(why.contains("/amount") && why.contains("\"order\" is a required property") && !why.contains("hunter2"), "{why}");
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        assert!(Schema::new(json!({"type": "objekt"})).is_err());
        assert!(Schema::new(json!({"$ref": "https://example.org/schema"})).is_err(), "nothing is fetched");
    }
}
