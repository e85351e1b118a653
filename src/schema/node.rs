//! A schema as OpenAPI documents and CRDs write it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One schema. What it does not say allows everything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Node {
    #[serde(rename = "$ref")]
    pub reference: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<Type>,
    pub format: Option<String>,
    pub properties: BTreeMap<String, Node>,
    pub additional_properties: Option<Additional>,
    pub items: Option<Box<Node>>,
    pub required: Vec<String>,
    #[serde(rename = "enum")]
    pub allowed: Vec<Value>,
    pub nullable: bool,
    pub default: Option<Value>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub min_length: Option<usize>,
    pub max_length: Option<usize>,
    pub min_items: Option<usize>,
    pub max_items: Option<usize>,
    pub pattern: Option<String>,
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub int_or_string: bool,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub keeps_unknown: bool,
    #[serde(rename = "x-kubernetes-embedded-resource")]
    pub embedded: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    pub list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    pub list_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-validations")]
    pub rules: Vec<Rule>,
    #[serde(rename = "x-kubernetes-group-version-kind")]
    pub kinds: Vec<GroupVersionKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    /// What is expected, for an author.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Type::Object => "a map",
            Type::Array => "a list",
            Type::String => "a text",
            Type::Integer => "a whole number",
            Type::Number => "a number",
            Type::Boolean => "`true` or `false`",
        }
    }
}

/// The values of a map whose keys are free.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Additional {
    Allowed(bool),
    Values(Box<Node>),
}

/// An expression that the API server evaluates.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Rule {
    pub rule: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct GroupVersionKind {
    #[serde(default)]
    pub group: String,
    pub version: String,
    pub kind: String,
}

/// How a definition is named in a reference: `#/definitions/io.k8s.api.core.v1.Pod`.
pub(super) fn referred(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

pub(super) const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
pub(super) const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
