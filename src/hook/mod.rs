//! Asking a hook what a parent's children and status should be: over HTTP, or in process.
//!
//! Knows the protocol and no cluster: what the answer leads to is `plan`'s and `controller`'s.

pub(crate) mod access;
pub(crate) mod local;
pub(crate) mod origin;
pub(crate) mod remote;
pub(crate) mod review;
#[cfg(test)]
mod tests;
pub(crate) mod wire;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use tracing::field::{Empty, display};

use crate::config::spec::{HookSpec, Role, Target};
use crate::hook::access::Admission;
use crate::hook::remote::meter::Meters;
use crate::hook::remote::{Remote, RemoteSettings};
use crate::hook::wire::answer::Answer;
use crate::hook::wire::{Call, Failure};
use crate::problem::Problem;
use crate::trace;

/// How often each built-in hook has come to answer anew. The numbers only grow.
pub(crate) type Changes = BTreeMap<String, u64>;

/// The hook service in this process. It answers the webhooks that have a `path` alone.
///
/// The caller waits on an async thread, so an implementation renders elsewhere, or lets the runtime know.
pub(crate) trait BuiltIn: Send + Sync {
    /// `hook` and `call` are the two parts of the path; `body` is what a remote service would be sent.
    fn answer<'a>(
        &'a self,
        hook: &'a str,
        call: &'a str,
        body: Bytes,
    ) -> BoxFuture<'a, Result<Answer, Failure>>;

    /// What is wrong with a hook whatever it is asked.
    fn problem(&self, hook: &str, call: &str) -> Option<Problem>;
}

/// Who answers the webhooks that have a `path` alone.
#[derive(Clone)]
pub(crate) enum PathService {
    InProcess(Arc<dyn BuiltIn>),
    /// A hook service deployed apart; the path is appended to this URL.
    At(String),
}

/// One hook of one definition.
pub(crate) enum Hook {
    Remote(Box<Remote>),
    Local { service: Arc<dyn BuiltIn>, hook: String, call: String },
}

impl Hook {
    /// The hook that a definition describes.
    pub(crate) fn of(spec: &HookSpec, role: Role, paths: &PathService) -> Result<Hook, Problem> {
        let url = match (&spec.webhook.target, paths) {
            (Target::Url(url), _) => url.clone(),
            (Target::BuiltIn { hook, call }, PathService::At(base)) => {
                format!("{}/{hook}/{call}", base.trim_end_matches('/'))
            }
            (Target::BuiltIn { hook, call }, PathService::InProcess(service)) => {
                return Ok(Hook::local(service.clone(), hook, call));
            }
        };
        let settings = RemoteSettings {
            timeout: spec.webhook.timeout,
            role,
            access: spec.webhook.access.clone(),
            etag: spec.webhook.etag,
            ..RemoteSettings::new(url, spec.webhook.decoding)
        };
        Hook::remote(settings)
    }

    pub(crate) fn remote(settings: RemoteSettings) -> Result<Hook, Problem> {
        Ok(Hook::Remote(Box::new(Remote::new(settings)?)))
    }

    pub(crate) fn local(service: Arc<dyn BuiltIn>, hook: &str, call: &str) -> Hook {
        Hook::Local { service, hook: hook.into(), call: call.into() }
    }

    /// The same, measured as this definition's where it is remote.
    pub(crate) fn measured(mut self, meters: &Meters, definition: (Role, &str), call: Call) -> Hook {
        if let Hook::Remote(remote) = &mut self {
            remote.measure(meters, definition, call);
        }
        self
    }

    /// What it is called: by its folder, or by its URL without what may be a secret.
    fn name(&self) -> Cow<'_, str> {
        match self {
            Hook::Remote(remote) => remote.name().into(),
            Hook::Local { hook, .. } => hook.into(),
        }
    }

    /// The name of a hook of this process.
    pub(crate) fn built_in(&self) -> Option<&str> {
        match self {
            Hook::Remote(_) => None,
            Hook::Local { hook, .. } => Some(hook),
        }
    }

    /// How a remote hook is reached, for whoever watches the objects that it names.
    pub(crate) fn admission(&self) -> Option<&Arc<Admission>> {
        match self {
            Hook::Remote(remote) => Some(remote.admission()),
            Hook::Local { .. } => None,
        }
    }

    /// What keeps it from being called, or its newest edition from answering.
    pub(crate) fn problem(&self) -> Option<Problem> {
        match self {
            Hook::Remote(remote) => remote.admission().problem(),
            Hook::Local { service, hook, call } => service.problem(hook, call),
        }
    }

    /// Asks, and checks the answer. Dropping the future gives the call up.
    ///
    /// `subject` tells whose answers are kept by their ETag: the parent's uid, and with it the revision where a parent
    /// is asked about in several.
    pub(crate) async fn call(&self, call: Call, subject: &str, body: Bytes) -> Result<Answer, Failure> {
        let trace = trace::span!(
            "hook",
            hook = %self.name(),
            call = call.name(),
            revision = subject.split_once('/').map(|(_, revision)| revision),
            request_bytes = body.len(),
            outcome = Empty,
            error = Empty
        );
        let answer = async {
            match self {
                Hook::Remote(remote) => remote.call(call, subject, body).await,
                Hook::Local { service, hook, call } => service.answer(hook, call, body).await,
            }
        };
        let answer = trace::within(&trace, answer).await;
        match &answer {
            Ok(_) => trace.record("outcome", "answered"),
            Err(failure) => trace.record("outcome", failure.name()).record("error", display(failure)),
        };
        answer
    }
}
