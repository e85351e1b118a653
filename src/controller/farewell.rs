//! The end of a definition whose parents' finalizers are to go with it: its deletion waits until they are gone.
//!
//! All that is known of it is on the object itself, an annotation and a finalizer, so a restart goes on where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};
use tracing::{info, warn};

use crate::cluster::Cluster;
use crate::cluster::event::{Recorder, Severity};
use crate::cluster::kind::Resource;
use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::config::marks::{HELD, Mark};
use crate::config::{API_VERSION, Definition};
use crate::controller::posted::{Posted, Refusal};
use crate::controller::source::{Definitions, Name};

/// So many parents are written at once.
const AT_ONCE: usize = 8;
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// What is to be done for a definition beside running it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duty {
    /// Its deletion is to wait.
    Hold,
    /// It need not wait any more, and its parents stay as they are.
    Release,
    /// It is being deleted: its parents' finalizers first.
    Clean,
}

impl Duty {
    fn of(posted: &Posted) -> Option<Self> {
        match (posted.removes, posted.held, posted.is_ending()) {
            (true, true, true) => Some(Duty::Clean),
            (false, true, _) => Some(Duty::Release),
            (true, false, _) if !posted.is_deleting() => Some(Duty::Hold),
            _ => None,
        }
    }
}

/// Those that are at it.
pub(super) struct Farewells {
    cluster: Arc<Cluster>,
    recorder: Arc<Recorder>,
    news: Arc<Notify>,
    under_way: BTreeMap<Name, UnderWay>,
}

struct UnderWay {
    uid: String,
    duty: Duty,
    task: AbortHandle,
    words: Words,
}

/// Why it is not done yet, for the definition's status.
#[derive(Clone, Default)]
pub(super) struct Words(Arc<Mutex<Option<String>>>);

impl Words {
    fn say(&self, words: String) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let news = said.as_ref() != Some(&words);
        *said = Some(words);
        news
    }

    pub(super) fn refusal(&self) -> Refusal {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let message = said.unwrap_or_else(|| "finalizers are being taken off its parents".into());
        Refusal { reason: "Ending", message }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Farewells {
    pub(super) fn new(cluster: Arc<Cluster>, recorder: Arc<Recorder>, news: Arc<Notify>) -> Self {
        Farewells { cluster, recorder, news, under_way: BTreeMap::new() }
    }

    /// Does what the definitions of the cluster ask for. Nothing is taken off before those that are `stopping` have ended.
    pub(super) fn follow(&mut self, wanted: &Definitions, mut stopping: BTreeMap<String, JoinHandle<()>>) {
        self.under_way.retain(|name, _| wanted.posted.contains_key(name));
        let used = used(wanted);
        for (name, posted) in &wanted.posted {
            let Some(duty) = Duty::of(posted) else {
                self.under_way.remove(name);
                continue;
            };
            let same = |known: &&UnderWay| {
                known.duty == duty && known.uid == posted.about.uid && !known.task.is_finished()
            };
            if self.under_way.get(name).as_ref().is_some_and(same) {
                continue;
            }
            let ended = posted
                .definitions
                .iter()
                .flatten()
                .filter_map(|definition| stopping.remove(&definition.id()));
            let farewell = Farewell {
                cluster: self.cluster.clone(),
                recorder: self.recorder.clone(),
                posted: posted.clone(),
                marks: unused(&posted.marks, &used),
                words: Words::default(),
                news: self.news.clone(),
            };
            let words = farewell.words.clone();
            let task = tokio::spawn(farewell.run(duty, ended.collect())).abort_handle();
            let under_way = UnderWay { uid: posted.about.uid.clone(), duty, task, words };
            self.under_way.insert(name.clone(), under_way);
        }
    }

    /// How far the end of a definition is, where it has begun.
    pub(super) fn words(&self, name: &Name) -> Option<Words> {
        let ending = self.under_way.get(name).filter(|under_way| under_way.duty == Duty::Clean);
        ending.map(|under_way| under_way.words.clone())
    }
}

/// The finalizers that definitions in use put on parents: group, plural, finalizer.
fn used(wanted: &Definitions) -> BTreeSet<(String, String, String)> {
    let mark = |definition: &Arc<Definition>| {
        let resource = &definition.spec.parent.resource;
        (resource.group().to_string(), resource.resource.clone(), definition.spec.finalizer.clone())
    };
    wanted.by_id.values().map(mark).collect()
}

/// The marks without those that another definition has as well.
fn unused(marks: &[Mark], used: &BTreeSet<(String, String, String)>) -> Vec<Mark> {
    let unused = |mark: &Mark| {
        let (group, plural) = (mark.resource.group().to_string(), mark.resource.resource.clone());
        let own = mark.finalizers.iter();
        let own = own.filter(|name| !used.contains(&(group.clone(), plural.clone(), name.to_string())));
        Mark { resource: mark.resource.clone(), finalizers: own.cloned().collect() }
    };
    marks.iter().map(unused).filter(|mark| !mark.finalizers.is_empty()).collect()
}

struct Farewell {
    cluster: Arc<Cluster>,
    recorder: Arc<Recorder>,
    posted: Arc<Posted>,
    marks: Vec<Mark>,
    words: Words,
    news: Arc<Notify>,
}

impl Farewell {
    async fn run(self, duty: Duty, ended: Vec<JoinHandle<()>>) {
        self.cluster.gate.led().await;
        for ended in ended {
            // One that panicked has ended as well.
            let _ = ended.await;
        }
        let mut pause = FIRST_RETRY;
        while let Err(error) = self.attempt(duty).await {
            self.tell(duty, &error);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_RETRY);
        }
    }

    async fn attempt(&self, duty: Duty) -> Result<(), Error> {
        if duty == Duty::Clean {
            let mut count = 0;
            let mut trouble = None;
            for mark in &self.marks {
                match clean(&self.cluster, mark).await {
                    Ok(cleaned) => count += cleaned,
                    Err(error) => trouble = trouble.or(Some(error)),
                }
            }
            if let Some(trouble) = trouble {
                return Err(trouble);
            }
            let controller = &self.posted.about.key.name;
            info!(controller, parents = count, "finalizers removed with the definition");
            let message = format!("Removed finalizers from {count} parents");
            self.recorder.publish(&self.posted.about, Severity::Normal, "FinalizersRemoved", &message);
        }
        let Some((resource, object)) = self.definition().await? else { return Ok(()) };
        match duty {
            Duty::Hold => self.cluster.put_on(&resource, &object, HELD).await,
            Duty::Release | Duty::Clean => {
                self.cluster.take_off(&resource, &object, &BTreeSet::from([HELD.to_string()])).await
            }
        }
    }

    /// The definition as it is now, past every cache.
    async fn definition(&self) -> Result<Option<(Resource, Object)>, Error> {
        let (role, _) = self.posted.name();
        let plural = format!("{}s", role.kind().to_lowercase());
        let Some(resource) = self.cluster.resource(API_VERSION, &plural).await? else { return Ok(None) };
        let object = self.cluster.look_at(&resource, &self.posted.about.key).await?;
        let object = object.filter(|object| *object.uid == *self.posted.about.uid);
        Ok(object.map(|object| (resource, object)))
    }

    fn tell(&self, duty: Duty, error: &Error) {
        if !self.words.say(format!("finalizers cannot be taken off its parents: {error}")) {
            return;
        }
        self.news.notify_one();
        let controller = &self.posted.about.key.name;
        let (doing, message) = match duty {
            Duty::Hold => ("holding its deletion up", "Cannot hold up the deletion"),
            Duty::Release => ("letting it go", "Cannot let the definition go"),
            Duty::Clean => ("taking finalizers off its parents", "Cannot remove finalizers from parents"),
        };
        warn!(controller, doing, %error, "definition is not taken care of, will retry");
        let message = format!("{message}: {error}");
        self.recorder.publish(&self.posted.about, Severity::Warning, "FinalizersKept", &message);
    }
}

/// Takes a definition's finalizers off all objects of a kind. Gives how many had one. An object that refuses keeps no other
/// one's: the first trouble is told when all have had their turn.
async fn clean(cluster: &Cluster, mark: &Mark) -> Result<usize, Error> {
    let name = &mark.resource;
    let Some(resource) = cluster.resource(&name.api_version, &name.resource).await? else { return Ok(0) };
    let marked = |object: &Object| object.finalizers.iter().any(|name| mark.finalizers.contains(&**name));
    let objects: Vec<Object> = cluster.look(&resource, marked).await?;
    let mut outcomes = Vec::new();
    for some in objects.chunks(AT_ONCE) {
        let writes: Vec<_> =
            some.iter().map(|object| cluster.take_off(&resource, object, &mark.finalizers)).collect();
        outcomes.extend(futures::future::join_all(writes).await);
    }
    outcomes.into_iter().collect::<Result<(), Error>>()?;
    Ok(objects.len())
}
