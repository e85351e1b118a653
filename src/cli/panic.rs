//! How a panic is told: as Rust tells it, but without the values of Secrets that its message may hold.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::panic::PanicHookInfo;

use crate::mask::scope;

/// Has every panic of this process told so.
pub(super) fn mind() {
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = Backtrace::capture();
        let trace = if backtrace.status() == BacktraceStatus::Captured {
            backtrace.to_string()
        } else {
            String::new()
        };
        eprintln!("{}\n{trace}", page(panic));
    }));
}

fn page(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
    format!("thread `{}` panicked{place}:\n{}", thread.name().unwrap_or("unnamed"), message(panic.payload()))
}

/// Whoever catches the panic of a render knows what was rendered, and logs the message without the Secrets in it.
fn message(payload: &(dyn Any + Send)) -> Cow<'_, str> {
    match (payload.downcast_ref::<&'static str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => Cow::Borrowed(*text),
        (_, Some(_)) if scope::is_blind() => Cow::Borrowed("(the log has the message)"),
        (_, Some(text)) => scope::spoken(text),
        _ => Cow::Borrowed("(no message)"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn payload(text: &str) -> Box<dyn Any + Send> {
        Box::new(text.to_string())
    }

    #[tokio::test]
    async fn message_is_told_without_the_secrets_at_hand() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "hunter-42"}});
        let panic = payload("unwrap of `hunter-42`");
        assert_eq!(message(panic.as_ref()), "unwrap of `hunter-42`");
        scope::within(async {
            scope::know(move || secret);
            assert_eq!(message(panic.as_ref()), "unwrap of `(masked)`");
        })
        .await;
        assert_eq!(scope::blindly(|| message(panic.as_ref()).into_owned()), "(the log has the message)");
        let constant: Box<dyn Any + Send> = Box::new("a parent has a name");
        assert_eq!(scope::blindly(|| message(constant.as_ref()).into_owned()), "a parent has a name");
    }
}
