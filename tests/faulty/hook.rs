//! A hook that answers as a test says, and remembers what it was asked.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::http;
use crate::protocol::check;

type Answering = dyn Fn(&Value) -> (u16, Value) + Send + Sync;

/// The hook service. What it answers can be changed at any time.
#[derive(Clone)]
pub struct Hook {
    shared: Arc<Shared>,
    pub port: u16,
    /// The last of a hook's clones sees to it that no message was against the protocol.
    _inspector: Arc<Inspector>,
}

struct Inspector(Arc<Shared>);

impl Drop for Inspector {
    fn drop(&mut self) {
        let faults = &self.0.lock().faults;
        if !std::thread::panicking() {
            assert!(faults.is_empty(), "messages against the protocol:\n{}", faults.join("\n"));
        }
    }
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    answering: Arc<Answering>,
    calls: Vec<Value>,
    /// While set, calls for this parent come in and get no answer.
    held: Option<String>,
    /// Whether the protocol's schema is to refuse the answers, where that is known.
    wrong: Option<bool>,
    /// What the protocol's schema has to say of the messages.
    faults: Vec<String>,
}

/// Calls for a parent that are not answered as long as this lives.
pub struct Held(Arc<Shared>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.lock().held = None;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn answer(&self, call: Value) -> (u16, Value) {
        let mut state = self.lock();
        state.faults.extend(check("request", &call, &call).err());
        state.calls.push(call.clone());
        let name = call["parent"]["metadata"]["name"].as_str().unwrap_or_default();
        while state.held.as_deref() == Some(name) {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        let answering = state.answering.clone();
        drop(state);
        let (code, answer) = answering(&call);
        if code == 200 {
            let mut state = self.lock();
            match (check("answer", &call, &answer), state.wrong) {
                (Err(fault), Some(false)) => state.faults.push(fault),
                (Ok(()), Some(true)) => state.faults.push(format!("accepted: {answer}")),
                _ => {}
            }
        }
        (code, answer)
    }
}

impl Hook {
    /// A hook that makes `spec.size` ConfigMaps with `spec.value`, and reports how many there are.
    pub fn start() -> Hook {
        let state = State {
            answering: Arc::new(maps),
            calls: Vec::new(),
            held: None,
            wrong: Some(false),
            faults: Vec::new(),
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let serving = shared.clone();
        let port = http::serve(move |request, stream| {
            let call = serde_json::from_slice(&request.body).expect("a call is JSON");
            let (code, answer) = serving.answer(call);
            http::answer(stream, code, "", &answer.to_string())
        });
        Hook { port, _inspector: Arc::new(Inspector(shared.clone())), shared }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/sync", self.port)
    }

    pub fn answers(&self, answering: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static) {
        self.put(answering, Some(false));
    }

    /// Answers that are against the protocol.
    pub fn answers_wrongly(&self, answering: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static) {
        self.put(answering, Some(true));
    }

    /// Answers of which nobody knows whether they are against the protocol.
    pub fn answers_anything(&self, answering: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static) {
        self.put(answering, None);
    }

    fn put(&self, answering: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static, wrong: Option<bool>) {
        let mut state = self.shared.lock();
        state.answering = Arc::new(answering);
        state.wrong = wrong;
    }

    /// Leaves calls for this parent without an answer.
    #[must_use]
    pub fn hold(&self, parent: &str) -> Held {
        self.shared.lock().held = Some(parent.into());
        Held(self.shared.clone())
    }

    /// What was asked about this parent.
    pub fn calls(&self, parent: &str) -> Vec<Value> {
        let state = self.shared.lock();
        let about = |call: &&Value| call["parent"]["metadata"]["name"] == parent;
        state.calls.iter().filter(about).cloned().collect()
    }

    pub fn count(&self) -> usize {
        self.shared.lock().calls.len()
    }
}

/// The usual answer.
pub fn maps(call: &Value) -> (u16, Value) {
    let parent = &call["parent"];
    let size = parent["spec"]["size"].as_u64().unwrap_or(0);
    let name = parent["metadata"]["name"].as_str().unwrap_or_default();
    let children: Vec<Value> =
        (0..size).map(|number| map(&format!("{name}-{number}"), &parent["spec"]["value"])).collect();
    let seen = call["children"]["ConfigMap.v1"].as_object().map_or(0, |maps| maps.len());
    (200, json!({"status": {"maps": seen, "value": parent["spec"]["value"]}, "children": children}))
}

pub fn map(name: &str, value: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value},
    })
}
