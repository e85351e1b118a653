use std::time::Duration;

use super::*;
use crate::config::spec::{Access, Decoding, HookVersion, Webhook};

/// A service in which every call finds its name in the status.
struct Echo;

impl BuiltIn for Echo {
    fn answer<'a>(
        &'a self,
        hook: &'a str,
        call: &'a str,
        body: Bytes,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        let status = serde_json::Map::from_iter([(format!("{hook} {call}"), body.len().into())]);
        Box::pin(async { Ok(Answer { status: Some(status), ..Answer::default() }) })
    }

    fn problem(&self, _hook: &str, _call: &str) -> Option<Problem> {
        None
    }
}

fn hook(target: Target, access: Access) -> HookSpec {
    let (timeout, decoding) = (Duration::from_secs(10), Decoding::Strict);
    HookSpec { version: HookVersion::V1, webhook: Webhook { target, timeout, decoding, etag: None, access } }
}

fn by_path() -> HookSpec {
    hook(Target::BuiltIn { hook: "mysql".into(), call: "sync".into() }, Access::default())
}

#[tokio::test]
async fn a_path_alone_is_answered_in_process() {
    let hook =
        Hook::of(&by_path(), Role::Composite, &PathService::InProcess(Arc::new(Echo))).expect("a hook");
    let answer = hook.call(Call::Sync, "uid", Bytes::from_static(b"{}")).await.expect("an answer");
    assert_eq!(answer.status.expect("a status")["mysql sync"], 2);
}

#[tokio::test]
async fn a_path_alone_is_asked_of_the_service_deployed_apart() {
    for base in ["ftp://hooks:8090", "ftp://hooks:8090/"] {
        let problem = Hook::of(&by_path(), Role::Composite, &PathService::At(base.into()))
            .err()
            .expect("no such scheme");
        assert_eq!(
            problem.message,
            "webhook URL `ftp://hooks:8090/mysql/sync`: neither `http://` nor `https://`"
        );
    }
    Hook::of(&by_path(), Role::Composite, &PathService::At("http://hooks:8090".into()))
        .expect("a remote hook");
}
