//! The OpenAPI document as a judge: whether an answer is one that it describes.

use crate::support::Got;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The document, and the schemas of its answers.
pub(crate) struct Document {
    pub(crate) json: Value,
    validators: BTreeMap<(String, String, String), Option<jsonschema::Validator>>,
}

impl Document {
    pub(crate) fn new() -> Self {
        Document { json: serde_json::from_str(&steadfast_server::openapi()).unwrap(), validators: BTreeMap::new() }
    }

    /// Every operation: method in lower case, path, and what is said of it.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        let paths = self.json["paths"].as_object().unwrap().iter();
        paths.flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |(method, operation)| (&**method, &**path, operation)))
    }

    /// Every answer that is documented: method, path, status.
    pub(crate) fn answers(&self) -> BTreeSet<(String, String, u16)> {
        let answers = self.operations().flat_map(|(method, path, operation)| {
            let statuses = operation["responses"].as_object().unwrap().keys();
            statuses.map(move |status| (method.to_uppercase(), path.to_string(), status.parse().unwrap()))
        });
        answers.collect()
    }

    /// A schema that may refer to the components of the document.
    pub(crate) fn validator(&self, schema: &Value) -> jsonschema::Validator {
        let schema = json!({"allOf": [schema], "components": self.json["components"]});
        jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap_or_else(|error| panic!("{error} in {schema}"))
    }

    /// The answer is documented for that operation, and is what the document says.
    pub(crate) fn check(&mut self, method: &str, path: &str, got: &Got) {
        let status = got.status.as_u16().to_string();
        let response = &self.json["paths"][path][method]["responses"][&status];
        assert!(response.is_object(), "{method} {path} answers {status}, which is not documented: {}", got.text);
        let kind = got.header("content-type").split(';').next().unwrap_or_default().to_string();
        let content = response["content"].as_object().cloned().unwrap_or_default();
        if content.is_empty() {
            assert_eq!(got.text, "", "{method} {path} {status} has no content");
            return;
        }
        let described = content
            .get(&kind)
            .unwrap_or_else(|| panic!("{method} {path} {status} is {kind}; documented: {:?}", content.keys()));
        if !kind.ends_with("json") {
            return;
        }
        let key = (method.to_string(), path.to_string(), status);
        if !self.validators.contains_key(&key) {
            let validator = described.get("schema").map(|schema| self.validator(schema));
            self.validators.insert(key.clone(), validator);
        }
        if let Some(validator) = &self.validators[&key] {
            let answer = got.json();
            let wrong: Vec<String> = validator.iter_errors(&answer).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(wrong.is_empty(), "{key:?}: {wrong:?} in {answer}");
        }
    }
}
