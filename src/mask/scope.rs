//! Which Secrets are at hand where something is said: those of the visit that is under way on this task.
//!
//! Naming one costs next to nothing; it is read when there is something to be said.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::future::Future;

use serde_json::Value;

use crate::mask::{Secrets, Veil, Words};

/// Reads an object that may hold Secrets.
type Source = Box<dyn FnOnce() -> Value + Send>;

#[derive(Default)]
struct Known {
    unread: Vec<Source>,
    secrets: Secrets,
    /// Of the secrets that are read.
    veil: Option<Veil>,
}

tokio::task_local! {
    static KNOWN: RefCell<Known>;
}

thread_local! {
    static BLIND: Cell<bool> = const { Cell::new(false) };
}

/// What is said in the course of this is said without the Secrets that become known in the course of it.
pub(crate) async fn within<F: Future>(work: F) -> F::Output {
    KNOWN.scope(RefCell::default(), work).await
}

/// Tells of an object that may hold Secrets.
pub(crate) fn know(source: impl FnOnce() -> Value + Send + 'static) {
    with(|known| known.unread.push(Box::new(source)));
}

/// Tells of a word that is to be read, even where it is a Secret's value too.
pub(crate) fn leave(word: &str) {
    with(|known| known.secrets.leave(word));
}

/// Text as it may be said here.
pub(crate) fn spoken(text: &str) -> Cow<'_, str> {
    let said = with(|known| match known.veil() {
        Some(veil) => veil.text(text),
        None => Cow::Borrowed(text),
    });
    said.unwrap_or(Cow::Borrowed(text))
}

/// Takes what is known here, for who shows more than texts.
pub(crate) fn take() -> Secrets {
    let known = with(|known| {
        known.read();
        std::mem::take(known).secrets
    });
    known.unwrap_or_default()
}

/// Does work whose Secrets nobody has named yet: `is_blind` in the course of it.
pub(crate) fn blindly<T>(work: impl FnOnce() -> T) -> T {
    struct Sight(bool);
    impl Drop for Sight {
        fn drop(&mut self) {
            BLIND.set(self.0);
        }
    }
    let _sight = Sight(BLIND.replace(true));
    work()
}

/// Whether values of Secrets that are not known here may be in what is said.
pub(crate) fn is_blind() -> bool {
    BLIND.get()
}

/// `None` outside of any scope, and where something is said while Secrets are read.
fn with<T>(work: impl FnOnce(&mut Known) -> T) -> Option<T> {
    KNOWN.try_with(|known| known.try_borrow_mut().ok().map(|mut known| work(&mut known))).ok().flatten()
}

impl Known {
    fn read(&mut self) -> bool {
        let unread = std::mem::take(&mut self.unread);
        let news = !unread.is_empty();
        unread.into_iter().for_each(|source| self.secrets.add(&source()));
        news
    }

    fn veil(&mut self) -> Option<&Veil> {
        if self.read() {
            self.veil = None;
        }
        if self.secrets.is_empty() {
            return None;
        }
        let (secrets, veil) = (&self.secrets, &mut self.veil);
        Some(veil.get_or_insert_with(|| Veil::new(secrets, Words::Told)))
    }
}
