//! All decisions about children: what a hook's answer asks for, where a live child differs from it, what to do.
//!
//! Pure: parent, answer, observed children and rules go in, steps come out. It reads no clock and sends nothing.
//! Never delete on doubt: whatever cannot be understood leaves existing children as they are.

pub(crate) mod desired;
pub(crate) mod difference;
pub(crate) mod memory;
pub(crate) mod preview;
pub(crate) mod refusal;
pub(crate) mod rollout;
pub(crate) mod steps;
pub(crate) mod takeover;

use crate::config::spec::StatusChecks;
use crate::object::name::{Gvk, Key};
use crate::object::selector::Selector;

/// The object whose children are decided.
#[derive(Clone, Debug)]
pub(crate) struct Parent {
    pub gvk: Gvk,
    /// A cluster-scoped parent's key has no namespace.
    pub key: Key,
    pub uid: String,
}

/// One entry of a controller's `childResources`, as discovery resolved it.
#[derive(Clone, Debug)]
pub(crate) struct ChildRule {
    /// Exactly the version that the rule names.
    pub gvk: Gvk,
    pub namespaced: bool,
    pub method: Method,
    /// Its children are changed one by one: what each must be like before the next.
    pub rolls: Option<StatusChecks>,
}

/// What is done about a live child that differs from the wanted one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Method {
    /// Nothing, until someone deletes it.
    #[default]
    OnDelete,
    /// It is deleted, and created again once it is gone.
    Recreate,
    /// It is applied in place.
    InPlace,
}

/// How a parent recognises its children.
#[derive(Clone, Debug)]
pub(crate) enum Claim {
    /// By `spec.selector` of the parent.
    Selector(Selector),
    /// `generateSelector`: by the label `controller-uid`, which is put on every child.
    ControllerUid,
    /// A DecoratorController of this name: by an annotation with it, which is put on every attachment.
    Decorator(String),
}

impl Claim {
    /// The label by which `generateSelector` tells one parent's children from another's.
    pub(crate) const UID_LABEL: &str = "controller-uid";

    /// The annotation that tells one decorator's attachments from another's.
    pub(crate) const DECORATOR: &str = "metacontroller.k8s.io/decorator-controller";

    /// The field of the definition that lists the kinds of children.
    pub(crate) fn declared_in(&self) -> &'static str {
        match self {
            Claim::Decorator(_) => "attachments",
            _ => "childResources",
        }
    }

    /// The labels that every child of this parent must have.
    pub(crate) fn selector(&self, parent_uid: &str) -> Selector {
        match self {
            Claim::Selector(selector) => selector.clone(),
            Claim::ControllerUid => Selector::label(Claim::UID_LABEL, parent_uid),
            Claim::Decorator(_) => Selector::everything(),
        }
    }
}
