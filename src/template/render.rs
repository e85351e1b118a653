//! What one render is given and what it may spend: names, time, entropy, budget.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use minijinja::value::{Enumerator, Object, ObjectRepr, Value};
use minijinja::{Error, State};
use serde_json::Value as Json;

use crate::template::data;
use crate::template::effort;
use crate::template::family::{Family, Groups, Kinds};
use crate::template::fault::Fault;

/// What a template can see, by name.
#[derive(Debug)]
pub(crate) struct Context {
    inputs: Inputs,
    names: BTreeMap<String, Value>,
}

/// Time and entropy of one render: without them a template could not differ from one run to the next.
#[derive(Clone, Copy, Debug)]
pub(in crate::template) struct Inputs {
    pub now: Timestamp,
    pub entropy: [u8; 32],
}

impl Context {
    pub(crate) fn new(now: Timestamp, entropy: [u8; 32]) -> Self {
        Context { inputs: Inputs { now, entropy }, names: BTreeMap::new() }
    }

    /// Gives the template a value under `name`.
    pub(crate) fn set(&mut self, name: &str, value: Json) {
        self.names.insert(name.to_string(), data::from_json(value, name));
    }

    /// Gives the template grouped objects under `name`, with `.find(kind, name)` and `.list(kind)`.
    pub(crate) fn set_family(&mut self, name: &str, groups: Groups) {
        self.names.insert(name.to_string(), Family::value(name, groups, Kinds::All));
    }

    /// The same from a fixture, which names the objects that it needs and not every kind that is declared.
    pub(crate) fn set_partial_family(&mut self, name: &str, groups: Groups) {
        self.names.insert(name.to_string(), Family::value(name, groups, Kinds::Some));
    }

    pub(in crate::template) fn into_root(mut self, budget: &Budget) -> (Value, Run) {
        let run = Run::new(self.inputs, budget);
        self.names.insert(RUN.to_string(), Value::from_object(run.clone()));
        (Value::from_object(Names(self.names)), run)
    }
}

/// Bounds of one render. Crossing one is a problem that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// In which the thread is at work: renders that wait for a core, or for the process to go on, are not over it. Steps are
    /// bounded by fuel, so this is met only by a few that are very dear.
    pub time: Duration,
    /// One for each step of a template, one for each 64 bytes that it makes.
    pub fuel: u64,
    pub output_bytes: usize,
    pub documents: usize,
    /// A macro call takes 4, an include 10, a loop or a block 1.
    pub recursion: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            time: Duration::from_secs(2),
            fuel: 1_000_000,
            output_bytes: 8 << 20,
            documents: 10_000,
            recursion: 200,
        }
    }
}

/// The top of the context. Not `Data`: a name that is not there may still be a global or unknown.
struct Names(BTreeMap<String, Value>);

impl Object for Names {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.0.get(key).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.keys().filter(|name| *name != RUN).map(Value::from).collect())
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<context>")
    }
}

/// The name under which a render finds itself; no expression can write it.
const RUN: &str = "\0run";

/// A render under way.
#[derive(Clone)]
pub(in crate::template) struct Run {
    inputs: Inputs,
    /// A guard against templates whose steps are few and dear, which fuel does not see. Before this time on the wall no
    /// thread can have been at work for too long, and that clock costs less than its own.
    deadline: Option<Instant>,
    /// What the thread had been at work before.
    began: Duration,
    time: Duration,
    looks: u32,
    pub output_bytes: usize,
    values: Arc<Mutex<Vec<Value>>>,
}

/// A look at the clock costs about as much as a step of the template.
const LOOKS_PER_GLANCE: u32 = 16;

impl Run {
    fn new(inputs: Inputs, budget: &Budget) -> Self {
        let deadline = Instant::now().checked_add(budget.time);
        Run {
            inputs,
            deadline,
            began: effort::spent(),
            time: budget.time,
            looks: 0,
            output_bytes: budget.output_bytes,
            values: Arc::default(),
        }
    }

    /// The run that `state` belongs to.
    pub(in crate::template) fn of<'s>(state: &'s mut State<'_, '_>) -> Result<&'s mut Run, Error> {
        if state.get_extension::<Run>().is_none() {
            let run = state.lookup(RUN).and_then(|run| run.downcast_object_ref::<Run>().cloned());
            let run = run.ok_or_else(|| Fault::new("no render is under way"))?;
            state.get_or_insert_extension(run);
        }
        Ok(state.get_extension_mut::<Run>().expect("it was inserted above"))
    }

    /// The values that placeholders stand for.
    pub(in crate::template) fn values(&self) -> MutexGuard<'_, Vec<Value>> {
        self.values.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Refuses to go on when the time is up.
    pub(in crate::template) fn glance_at_the_clock(&mut self) -> Result<(), Fault> {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS_PER_GLANCE)
            && self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
        {
            let spent = effort::spent().saturating_sub(self.began);
            let Some(left) = self.time.checked_sub(spent).filter(|left| !left.is_zero()) else {
                return Err(over_budget("time", &format!("{} ms", self.time.as_millis())));
            };
            self.deadline = Instant::now().checked_add(left);
        }
        Ok(())
    }
}

/// The problem of a render that has spent one of its budgets.
pub(in crate::template) fn over_budget(what: &str, limit: &str) -> Fault {
    Fault::new(format!("the render went over its budget of {what}")).expected(format!("at most {limit}"))
}

impl Object for Run {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<render>")
    }
}

/// Time and entropy of the render that `state` belongs to.
pub(in crate::template) fn inputs(state: &State) -> Result<Inputs, Error> {
    let run = state.lookup(RUN).and_then(|run| run.downcast_object_ref::<Run>().map(|run| run.inputs));
    run.ok_or_else(|| Fault::new("no render is under way").into())
}
