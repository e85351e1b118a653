//! What a definition means, with defaults filled in: parents, children, hooks. How it was written is `manifest`'s.

use std::fmt;
use std::time::Duration;

use crate::object::selector::Selector;

/// Which kind of controller a definition is. Almost everything else is the same for both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Makes children for parents of a kind of its own, which has them alone.
    #[default]
    Composite,
    /// Adds to objects that somebody else makes; these are its parents, and the attachments its children.
    Decorator,
}

impl Role {
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Role::Composite => "CompositeController",
            Role::Decorator => "DecoratorController",
        }
    }
}

/// What a controller does. A DecoratorController has one for each of its resources.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spec {
    pub role: Role,
    pub parent: ParentRule,
    pub children: Vec<ChildRule>,
    pub hooks: Hooks,
    /// Every parent is visited again after this time; never below one second.
    pub resync_period: Option<Duration>,
    /// Children are found by a label with the parent's uid, not by `parent.spec.selector`.
    pub generate_selector: bool,
    /// The finalizer that stands for the finalize hook.
    pub finalizer: String,
}

impl Spec {
    /// Whether children of this rule are updated one by one. A DecoratorController's never were.
    pub(crate) fn rolls(&self, rule: &ChildRule) -> bool {
        self.role == Role::Composite && rule.update.is_rolling()
    }

    /// Whether there are children that are updated one by one.
    pub(crate) fn rolls_any(&self) -> bool {
        self.children.iter().any(|rule| self.rolls(rule))
    }
}

/// A resource as rules name it: `apps/v1` and the plural `deployments`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ResourceName {
    pub api_version: String,
    pub resource: String,
}

impl ResourceName {
    /// Empty for the core group.
    pub(crate) fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version, self.resource)
    }
}

/// Which objects are parents.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ParentRule {
    pub resource: ResourceName,
    pub selector: Selector,
    /// Only a DecoratorController has one.
    pub annotations: Selector,
    pub ignore_status_changes: bool,
    /// Dotted paths whose change starts a rolling update; `["spec"]` when none is given.
    pub revision_paths: Vec<String>,
}

/// A kind of child, and how a live one is brought to what the hook wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChildRule {
    pub resource: ResourceName,
    pub update: UpdateMethod,
    pub status_checks: StatusChecks,
}

/// What a child must be like before a rollout goes on to the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatusChecks {
    pub conditions: Vec<ConditionCheck>,
    pub ready_when: Option<ReadyWhen>,
}

/// A rule of ours that tells a healthy child, for kinds without conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadyWhen {
    /// The status says so, as its kind has it.
    KindStatus,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UpdateMethod {
    #[default]
    OnDelete,
    Recreate,
    InPlace,
    RollingRecreate,
    RollingInPlace,
}

impl UpdateMethod {
    /// As a definition has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            UpdateMethod::OnDelete => "OnDelete",
            UpdateMethod::Recreate => "Recreate",
            UpdateMethod::InPlace => "InPlace",
            UpdateMethod::RollingRecreate => "RollingRecreate",
            UpdateMethod::RollingInPlace => "RollingInPlace",
        }
    }

    /// Whether children are changed one after the other, each once the one before is well.
    pub(crate) fn is_rolling(self) -> bool {
        matches!(self, UpdateMethod::RollingRecreate | UpdateMethod::RollingInPlace)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConditionCheck {
    pub kind: String,
    pub status: Option<String>,
    pub reason: Option<String>,
}

/// The hooks that are called. `preUpdateChild` and `postUpdateChild` exist in the API, but no controller calls them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Hooks {
    pub sync: Option<HookSpec>,
    pub finalize: Option<HookSpec>,
    pub customize: Option<HookSpec>,
}

impl Hooks {
    /// Those that there are.
    pub(crate) fn each(&self) -> impl Iterator<Item = &HookSpec> {
        [&self.sync, &self.finalize, &self.customize].into_iter().flatten()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HookSpec {
    pub version: HookVersion,
    pub webhook: Webhook,
}

/// The wire format of a hook: it decides the inner keys of `children` and `related`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HookVersion {
    #[default]
    V1,
    V2,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Webhook {
    pub target: Target,
    /// For the whole exchange, body included.
    pub timeout: Duration,
    pub decoding: Decoding,
    pub etag: Option<Etag>,
    pub access: Access,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A complete URL; one given as `service` and `path` is already put together.
    Url(String),
    /// The built-in hook service: the webhook has a path, `/<hook>/<call>`, and neither `url` nor `service`.
    BuiltIn { hook: String, call: String },
}

/// What is done about unknown and repeated fields in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decoding {
    Strict,
    Loose,
}

/// Remembering answers by their ETag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Etag {
    /// How long an answer is kept; `None` is for ever.
    pub keep: Option<Duration>,
}

/// How a hook's server is trusted and how we identify ourselves: the webhook's own, or what `endpointConfigs` has for its host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    pub ca_bundle: Option<CaBundle>,
    pub client_tls: Option<ClientTls>,
    pub credentials: Option<Credentials>,
}

impl Access {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Access::default()
    }
}

/// Certificates that replace the system's roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CaBundle {
    Inline(String),
    Secret(KeyRef),
    ConfigMap(KeyRef),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientTls {
    pub namespace: String,
    pub name: String,
    pub certificate_key: String,
    pub private_key_key: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// `Authorization: <scheme> <value>`.
    Token {
        scheme: String,
        secret: KeyRef,
    },
    Basic {
        namespace: String,
        name: String,
        username_key: String,
        password_key: String,
    },
}

/// One key of a Secret or a ConfigMap, in any namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRef {
    pub namespace: String,
    pub name: String,
    pub key: String,
}
