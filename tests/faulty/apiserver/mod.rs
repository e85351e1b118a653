//! A small Kubernetes API server in memory that can be told to misbehave.

pub mod fault;
pub mod objects;
pub mod request;
mod watch;

use std::collections::BTreeSet;
use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{self, Then};
use fault::{Effect, Manners, Rule};
use objects::{Kind, Objects, Place, Refusal, not_found, place};
use request::{Request, Traffic};

/// The server. Everything of it that a test changes takes effect at once.
#[derive(Clone)]
pub struct ApiServer {
    shared: Arc<Shared>,
    pub port: u16,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    objects: Objects,
    manners: Manners,
    rules: Vec<Rule>,
    /// Watches of these kinds tell nothing for now.
    held: BTreeSet<String>,
    /// Counts up whenever the watches that are open are to end.
    cuts: u64,
    traffic: Traffic,
    ids: u64,
}

/// A fault that lasts as long as this lives.
pub struct Fault {
    shared: Arc<Shared>,
    id: u64,
}

impl Fault {
    /// How many requests it has met.
    pub fn met(&self) -> usize {
        let state = self.shared.lock();
        state.rules.iter().find(|rule| rule.id == self.id).map_or(0, |rule| rule.met)
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        self.shared.change(|state| state.rules.retain(|rule| rule.id != self.id));
    }
}

/// Watches of a kind that tell nothing as long as this lives.
pub struct Held {
    shared: Arc<Shared>,
    plural: String,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.change(|state| state.held.remove(&self.plural));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    /// Waits until something has changed, but no longer than this.
    fn wait<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, limit).unwrap_or_else(|poisoned| poisoned.into_inner()).0
    }

    fn wait_until_lifted(&self, id: u64) {
        let mut state = self.lock();
        while state.rules.iter().any(|rule| rule.id == id) {
            state = self.wait(state, Duration::from_secs(1));
        }
    }
}

impl ApiServer {
    /// A server with these kinds: `apiVersion`, kind, plural, whether it has a status of its own.
    pub fn start(kinds: &[(&str, &str, &str, bool)]) -> ApiServer {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let serving = shared.clone();
        let port = http::serve(move |request, stream| serving.answer(Request::read(request), stream));
        let server = ApiServer { shared, port };
        for (api_version, kind, plural, has_status) in kinds {
            server.install(api_version, kind, plural, *has_status);
        }
        server
    }

    pub fn kubeconfig(&self) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": {"server": format!("http://127.0.0.1:{}", self.port)}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "nobody"}}],
        })
        .to_string()
    }

    pub fn install(&self, api_version: &str, kind: &str, plural: &str, has_status: bool) {
        let kind =
            Kind { api_version: api_version.into(), kind: kind.into(), plural: plural.into(), has_status };
        self.shared.change(|state| state.objects.kinds.push(kind));
    }

    /// Gives a kind a status of its own.
    pub fn give_status(&self, plural: &str) {
        self.shared.change(|state| {
            let kind = state.objects.kinds.iter_mut().find(|kind| kind.plural == plural);
            kind.expect("a kind of this server").has_status = true;
        });
    }

    /// Puts in an object as a person would.
    pub fn create(&self, plural: &str, object: Value) -> Value {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_string();
        let place = Place { plural: plural.into(), namespace: text("namespace"), name: text("name") };
        self.shared.change(|state| state.objects.insert(&place, object))
    }

    /// Changes an object as a person would.
    pub fn edit(&self, plural: &str, name: &str, change: impl FnOnce(&mut Value)) -> Value {
        let place = place(plural, name);
        self.shared.change(|state| {
            let mut object = state.objects.objects.get(&place).expect("the object is there").clone();
            change(&mut object);
            state.objects.store(&place, object)
        })
    }

    pub fn delete(&self, plural: &str, name: &str) {
        self.shared.change(|state| state.objects.delete(&place(plural, name), None)).expect("it was there");
    }

    pub fn collect_garbage(&self) {
        self.shared.change(|state| state.objects.collect_garbage());
    }

    /// Looks at the objects where they are.
    pub fn look<T>(&self, look: impl FnOnce(&Objects) -> T) -> T {
        look(&self.shared.lock().objects)
    }

    pub fn get(&self, plural: &str, name: &str) -> Option<Value> {
        self.look(|objects| objects.find(plural, name).cloned())
    }

    pub fn all(&self, plural: &str) -> Vec<Value> {
        self.look(|objects| objects.of_kind(plural).into_iter().cloned().collect())
    }

    pub fn names(&self, plural: &str) -> Vec<String> {
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_string();
        self.all(plural).iter().map(name).collect()
    }

    pub fn manners(&self, change: impl FnOnce(&mut Manners)) {
        self.shared.change(|state| change(&mut state.manners));
    }

    /// Misbehaves with every request that `when` picks, until the fault is dropped.
    #[must_use]
    pub fn fault(&self, when: impl Fn(&Request) -> bool + Send + 'static, effect: Effect) -> Fault {
        Fault { shared: self.shared.clone(), id: self.rule(None, when, effect) }
    }

    /// Misbehaves with the first few requests that `when` picks.
    pub fn fault_times(
        &self,
        times: usize,
        when: impl Fn(&Request) -> bool + Send + 'static,
        effect: Effect,
    ) {
        self.rule(Some(times), when, effect);
    }

    fn rule(
        &self,
        left: Option<usize>,
        when: impl Fn(&Request) -> bool + Send + 'static,
        effect: Effect,
    ) -> u64 {
        self.shared.change(|state| {
            state.ids += 1;
            state.rules.push(Rule { id: state.ids, when: Box::new(when), effect, left, met: 0 });
            state.ids
        })
    }

    /// Watches of this kind tell nothing, not even that they live, until this is dropped.
    #[must_use]
    pub fn hold(&self, plural: &str) -> Held {
        self.shared.change(|state| state.held.insert(plural.into()));
        Held { shared: self.shared.clone(), plural: plural.into() }
    }

    /// Ends every watch that is open.
    pub fn cut_watches(&self) {
        self.shared.change(|state| state.cuts += 1);
    }

    /// Watches cannot go on from any version before now.
    pub fn forget_history(&self) {
        self.shared.change(|state| state.objects.forgotten = state.objects.version);
    }

    /// Drops what happened but for the last so many events, and the record of what was asked.
    pub fn forget_but(&self, events: usize) {
        self.shared.change(|state| {
            let surplus = state.objects.history.len().saturating_sub(events);
            if let Some(last) = state.objects.history.drain(..surplus).next_back() {
                state.objects.forgotten = last.version;
            }
            state.traffic = Traffic::default();
        });
    }

    /// The objects as they are, to be put back later with `restore`.
    pub fn backup(&self) -> Objects {
        self.shared.lock().objects.clone()
    }

    /// Goes back to a backup: versions too begin again from there.
    pub fn restore(&self, backup: Objects) {
        self.shared.change(|state| {
            state.objects = backup;
            state.cuts += 1;
        });
    }

    /// Everything asked so far.
    pub fn traffic(&self) -> Traffic {
        self.shared.lock().traffic.clone()
    }

    /// Begins the record anew.
    pub fn forget_traffic(&self) {
        self.shared.change(|state| state.traffic = Traffic::default());
    }
}

impl Shared {
    fn answer(&self, request: Request, stream: &mut TcpStream) -> io::Result<Then> {
        match self.receive(&request) {
            None => self.treat(&request, stream),
            Some((id, effect)) => self.mistreat(id, effect, &request, stream),
        }
    }

    /// Notes the request. Gives the fault that it meets.
    fn receive(&self, request: &Request) -> Option<(u64, Effect)> {
        self.change(|state| {
            state.traffic.0.push(request.clone());
            let rule = state.rules.iter_mut().find(|rule| rule.left != Some(0) && (rule.when)(request))?;
            rule.met += 1;
            rule.left = rule.left.map(|left| left - 1);
            Some((rule.id, rule.effect.clone()))
        })
    }

    fn mistreat(
        &self,
        id: u64,
        effect: Effect,
        request: &Request,
        stream: &mut TcpStream,
    ) -> io::Result<Then> {
        match effect {
            Effect::Answer { code, reason, message, retry_after } => {
                let header = retry_after.map_or(String::new(), |after| format!("Retry-After: {after}\r\n"));
                let mut status = Refusal::new(code, reason, message).status();
                if let Some(after) = retry_after {
                    status["details"]["retryAfterSeconds"] = json!(after);
                }
                http::answer(stream, code, &header, &status.to_string())
            }
            Effect::Drop => Ok(Then::Close),
            Effect::Wait => {
                self.wait_until_lifted(id);
                self.treat(request, stream)
            }
            Effect::DoThenWait => {
                let done = self.change(|state| state.process(request));
                self.wait_until_lifted(id);
                answer(stream, done)
            }
            Effect::DoThenDrop => {
                let _ = self.change(|state| state.process(request));
                Ok(Then::Close)
            }
            Effect::DoThenSay(text) => {
                let _ = self.change(|state| state.process(request));
                http::answer(stream, 200, "", &text)
            }
            Effect::DoThenAnswerOlder => {
                let before = self.lock().objects.objects.get(&request.place()).cloned();
                let done = self.change(|state| state.process(request));
                answer(stream, done.map(|done| before.unwrap_or(done)))
            }
            Effect::Lines(lines, end) => self.recite(&lines, end, stream),
        }
    }

    fn treat(&self, request: &Request, stream: &mut TcpStream) -> io::Result<Then> {
        if request.is_watch() {
            return self.watch(request, stream);
        }
        answer(stream, self.change(|state| state.process(request)))
    }
}

fn answer(stream: &mut TcpStream, outcome: Result<Value, Refusal>) -> io::Result<Then> {
    match outcome {
        Ok(object) => http::answer(stream, 200, "", &object.to_string()),
        Err(refusal) => http::answer(stream, refusal.code, "", &refusal.status().to_string()),
    }
}

impl State {
    fn process(&mut self, request: &Request) -> Result<Value, Refusal> {
        if request.is_discovery() {
            return self.resources(&request.api_version);
        }
        let kind = self.objects.kind(&request.plural).filter(|kind| kind.api_version == request.api_version);
        let Some(kind) = kind.cloned() else {
            return Err(Refusal::new(404, "NotFound", "the server could not find the requested resource"));
        };
        let (place, body) = (request.place(), request.json());
        match request.method() {
            "PATCH" if request.parameter("dryRun").is_some() => {
                let mut aside = self.objects.clone();
                aside.apply(&place, "", request.parameter("fieldManager").unwrap_or_default(), &body)
            }
            "GET" if request.name.is_empty() => self.list(&kind, request),
            "GET" => self.objects.objects.get(&place).cloned().ok_or_else(|| not_found(&place)),
            "DELETE" => self.objects.delete(&place, body.pointer("/preconditions/uid")),
            "POST" => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default().to_string();
                let place = Place { name, ..place };
                if self.objects.objects.contains_key(&place) {
                    return Err(Refusal::new(409, "AlreadyExists", "it is there already"));
                }
                Ok(self.objects.insert(&place, body))
            }
            "PUT" => self.objects.replace(&place, body),
            _ if request.http.query.contains_key("force") => {
                let manager = request.parameter("fieldManager").unwrap_or_default();
                self.objects.apply(&place, &request.subresource, manager, &body)
            }
            _ => match &body {
                Value::Array(steps) => self.objects.patch(&place, steps),
                body => self.objects.merge(&place, body),
            },
        }
    }

    fn resources(&self, api_version: &str) -> Result<Value, Refusal> {
        let mut resources = Vec::new();
        for kind in self.objects.kinds.iter().filter(|kind| kind.api_version == api_version) {
            let entry =
                |name: String| json!({"name": name, "kind": kind.kind, "namespaced": true, "verbs": []});
            resources.push(entry(kind.plural.clone()));
            if kind.has_status {
                resources.push(entry(format!("{}/status", kind.plural)));
            }
        }
        if resources.is_empty() {
            return Err(Refusal::new(404, "NotFound", "the server could not find the requested resource"));
        }
        Ok(json!({"kind": "APIResourceList", "groupVersion": api_version, "resources": resources}))
    }

    /// A page. The token is the number of items that were given before.
    fn list(&self, kind: &Kind, request: &Request) -> Result<Value, Refusal> {
        let number = |name: &str| request.parameter(name).and_then(|text| text.parse::<usize>().ok());
        let from = number("continue").unwrap_or(0);
        let limit = number("limit").unwrap_or(usize::MAX).min(self.manners.page);
        let all = self.objects.of_kind(&kind.plural);
        let mut items: Vec<Value> =
            all.iter().skip(from).take(limit).map(|object| (*object).clone()).collect();
        if !self.manners.typed_items {
            for item in items.iter_mut().filter_map(Value::as_object_mut) {
                item.shift_remove("apiVersion");
                item.shift_remove("kind");
            }
        }
        let mut metadata = json!({"resourceVersion": self.objects.version.to_string()});
        if from + items.len() < all.len() {
            metadata["continue"] = json!((from + items.len()).to_string());
        }
        Ok(json!({
            "apiVersion": kind.api_version, "kind": format!("{}List", kind.kind),
            "metadata": metadata, "items": items,
        }))
    }
}
