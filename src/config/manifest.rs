//! The shapes of a CompositeController and of a DecoratorController as they are written. `schema` has checked it before it is read.

use serde::Deserialize;
use serde_json::Value;

/// The written spec of a DecoratorController.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DecoratorSpec {
    #[serde(default)]
    pub resources: Vec<Target>,
    #[serde(default)]
    pub attachments: Vec<ChildResource>,
    pub hooks: Option<HooksBlock>,
    #[serde(default)]
    pub endpoint_configs: Vec<EndpointConfig>,
    pub resync_period_seconds: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Target {
    #[serde(flatten)]
    pub name: Resource,
    #[serde(default)]
    pub label_selector: Value,
    #[serde(default)]
    pub annotation_selector: Value,
    #[serde(default)]
    pub ignore_status_changes: bool,
}

/// The written spec of a CompositeController.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CompositeSpec {
    pub parent_resource: ParentResource,
    #[serde(default)]
    pub child_resources: Vec<ChildResource>,
    pub hooks: Option<HooksBlock>,
    #[serde(default)]
    pub endpoint_configs: Vec<EndpointConfig>,
    pub resync_period_seconds: Option<i64>,
    #[serde(default)]
    pub generate_selector: bool,
    pub finalizer: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ParentResource {
    #[serde(flatten)]
    pub name: Resource,
    pub revision_history: Option<RevisionHistory>,
    #[serde(default)]
    pub label_selector: Value,
    #[serde(default)]
    pub ignore_status_changes: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resource {
    pub api_version: String,
    pub resource: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RevisionHistory {
    #[serde(default)]
    pub field_paths: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChildResource {
    #[serde(flatten)]
    pub name: Resource,
    pub update_strategy: Option<UpdateStrategy>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpdateStrategy {
    pub method: Option<String>,
    pub status_checks: Option<StatusChecks>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusChecks {
    #[serde(default)]
    pub conditions: Vec<StatusCheck>,
    pub ready_when: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct StatusCheck {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: Option<String>,
    pub reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct HooksBlock {
    pub sync: Option<HookBlock>,
    pub finalize: Option<HookBlock>,
    pub customize: Option<HookBlock>,
}

#[derive(Deserialize)]
pub(super) struct HookBlock {
    pub version: Option<String>,
    pub webhook: Option<WebhookBlock>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookBlock {
    pub url: Option<String>,
    pub service: Option<Service>,
    pub path: Option<String>,
    pub timeout: Option<String>,
    pub response_un_marshall_mode: Option<String>,
    pub etag: Option<EtagBlock>,
    #[serde(flatten)]
    pub access: AccessBlock,
}

#[derive(Deserialize)]
pub(super) struct Service {
    pub name: String,
    pub namespace: String,
    pub port: Option<i64>,
    pub protocol: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EtagBlock {
    #[serde(default)]
    pub enabled: bool,
    #[serde(default)]
    pub cache_timeout_seconds: i64,
}

#[derive(Deserialize)]
pub(super) struct EndpointConfig {
    pub host: String,
    #[serde(flatten)]
    pub access: AccessBlock,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AccessBlock {
    pub ca_bundle: Option<CaBundleBlock>,
    #[serde(rename = "clientTLS")]
    pub client_tls: Option<ClientTlsBlock>,
    pub authorization: Option<AuthorizationBlock>,
    pub basic_auth: Option<BasicAuthBlock>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CaBundleBlock {
    pub inline: Option<String>,
    pub secret_ref: Option<Reference>,
    pub config_map_ref: Option<Reference>,
}

/// A Secret or ConfigMap; the schema has filled the key in where it has a default.
#[derive(Deserialize)]
pub(super) struct Reference {
    pub name: String,
    pub namespace: String,
    #[serde(default)]
    pub key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientTlsBlock {
    pub secret_ref: Reference,
    pub cert_key: String,
    pub private_key_key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuthorizationBlock {
    #[serde(rename = "type")]
    pub scheme: String,
    pub secret_ref: Reference,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BasicAuthBlock {
    pub secret_ref: Reference,
    pub username_key: String,
    pub password_key: String,
}
