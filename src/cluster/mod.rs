//! Everything that speaks with the API server: discovery, watches and what they know, writes, events, leader election.
//!
//! The only room that names kube. It knows kinds and objects, and nothing of hooks or controllers.

pub(crate) mod event;
pub(crate) mod gate;
pub(crate) mod kind;
pub(crate) mod lease;
pub(crate) mod limit;
pub(crate) mod meter;
pub(crate) mod object;
pub(crate) mod request;
pub(crate) mod store;
mod sweep;
pub(crate) mod trial;
pub(crate) mod write;

mod discovery;
mod opening;
mod watch;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kube::{Client, Config};
use tokio::sync::Semaphore;

use gate::Gate;
use kind::{Interest, Kinds, Listener, Origin, Subject, Use};
use limit::{Limiter, Rate};
use object::Managers;
use store::Change;

use crate::object::name::Key;
use crate::object::selector::Selector;

/// More than this many requests at once gain nothing on an API server.
const PLACES: usize = 32;

/// A connection to one cluster.
pub(crate) struct Cluster {
    pub managers: Managers,
    pub kinds: Kinds,
    /// The pod's own namespace, or that of the kubeconfig's context.
    pub namespace: String,
    /// What every write goes through.
    pub gate: Arc<Gate>,
    /// Reads and watches, and renews the lease.
    client: Client,
    /// Writes, through the gate.
    writes: Client,
    places: Semaphore,
    limiter: Arc<Limiter>,
    /// How many events may tell of one object.
    event_rate: Rate,
    /// Where kinds are watched; everywhere when there are none.
    namespaces: Vec<String>,
    /// Which definitions are read from the cluster; `None` for none.
    definitions: Option<Selector>,
    watch_idle: Duration,
    /// The API server's address, as metrics have it.
    host: String,
}

/// How a cluster is spoken with.
pub(crate) struct Manners {
    pub managers: Managers,
    /// A watch that gives no sign of life for so long is begun anew.
    pub watch_idle: Duration,
    pub gate: Arc<Gate>,
    /// The pace of all requests but watches and the lease; `None` for any.
    pub request_rate: Option<Rate>,
    /// The pace of the events of each object.
    pub event_rate: Rate,
    /// The namespaces outside of which nothing is looked at; none for the whole cluster.
    pub namespaces: Vec<String>,
    /// Which definitions are read from the cluster, where they have no namespace; `None` for none.
    pub definitions: Option<Selector>,
}

impl Manners {
    /// Those of a command that a person waits for.
    pub(crate) fn brisk(managers: Managers) -> Self {
        Manners {
            managers,
            watch_idle: Duration::from_secs(90),
            gate: Gate::open(),
            request_rate: None,
            event_rate: Rate { per_second: 1.0, burst: 25 },
            namespaces: Vec::new(),
            definitions: Some(Selector::everything()),
        }
    }
}

impl Cluster {
    /// Connects as kubectl would: the named kubeconfig, `$KUBECONFIG`, the pod's service account, `~/.kube/config`.
    pub(crate) async fn connect(
        kubeconfig: Option<&Path>,
        manners: Manners,
    ) -> Result<Arc<Self>, kube::Error> {
        let mut config = match kubeconfig {
            Some(path) => {
                let file = kube::config::Kubeconfig::read_from(path)?;
                Config::from_custom_kubeconfig(file, &Default::default()).await?
            }
            None => Config::infer().await.map_err(kube::Error::InferConfig)?,
        };
        // kube takes the proxy that is meant for the hooks, `NO_PROXY` or not. One that the kubeconfig names is another matter.
        let named = |name| std::env::var(name).ok()?.parse().ok();
        if ["HTTPS_PROXY", "https_proxy"]
            .into_iter()
            .filter_map(named)
            .any(|proxy| config.proxy_url == Some(proxy))
        {
            config.proxy_url = None;
        }
        // The queue backs off by itself; a retry hidden in the client would only hold up a visit.
        config.default_retry = false;
        let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
        let namespace = config.default_namespace.clone();
        let Manners { managers, watch_idle, gate, request_rate, event_rate, namespaces, definitions } =
            manners;
        Ok(Arc::new(Cluster {
            managers,
            kinds: Kinds::default(),
            namespace,
            writes: gate::gated(&config, gate.clone())?,
            gate,
            client: Client::try_from(config)?,
            places: Semaphore::new(PLACES),
            limiter: Limiter::new(request_rate),
            event_rate,
            namespaces,
            definitions,
            watch_idle,
            host,
        }))
    }

    /// Holds a kind under watch: `listener` hears of every change until the hold is dropped.
    pub(crate) fn watch(
        &self,
        api_version: &str,
        plural: &str,
        interest: Interest,
        listener: impl Fn(&Change, Option<&Origin>) + Send + Sync + 'static,
    ) -> Use {
        let everything = Selector::everything();
        self.hold(self.subject(api_version, plural, everything), interest, Arc::new(listener))
    }

    /// The same for the objects with these labels alone: the API server tells of no others. One that loses them counts
    /// as deleted.
    pub(crate) fn watch_labelled(
        &self,
        api_version: &str,
        plural: &str,
        labels: &Selector,
        listener: impl Fn(&Change, Option<&Origin>) + Send + Sync + 'static,
    ) -> Use {
        self.hold(self.subject(api_version, plural, labels.clone()), Interest::All, Arc::new(listener))
    }

    /// The same for a kind without namespaces, wherever else is looked at.
    pub(crate) fn watch_marked(
        &self,
        api_version: &str,
        plural: &str,
        labels: &Selector,
        listener: impl Fn(&Change, Option<&Origin>) + Send + Sync + 'static,
    ) -> Use {
        let subject = self.subject(api_version, plural, labels.clone());
        self.hold(Subject { namespaces: Vec::new(), ..subject }, Interest::All, Arc::new(listener))
    }

    fn subject(&self, api_version: &str, plural: &str, labels: Selector) -> Subject {
        let namespaces = self.namespaces.clone();
        Subject { api_version: api_version.into(), plural: plural.into(), only: None, namespaces, labels }
    }

    /// Holds a kind of definitions under watch, in the whole cluster. Nothing is known of it where they are not read.
    pub(crate) fn watch_definitions(
        &self,
        api_version: &str,
        plural: &str,
        listener: impl Fn(&Change, Option<&Origin>) + Send + Sync + 'static,
    ) -> Use {
        let labels = self.definitions.clone().unwrap_or_default();
        let subject = Subject { namespaces: Vec::new(), ..self.subject(api_version, plural, labels) };
        if self.definitions.is_some() {
            return self.hold(subject, Interest::All, Arc::new(listener));
        }
        let listener: Listener = Arc::new(listener);
        self.kinds.hold(subject, &self.managers, (Interest::All, listener), |_| {
            tokio::spawn(async {}).abort_handle()
        })
    }

    /// The same for one object, whether it is there or not. Nothing else of its kind is read.
    pub(crate) fn watch_one(
        &self,
        api_version: &str,
        plural: &str,
        key: &Key,
        listener: impl Fn(&Change, Option<&Origin>) + Send + Sync + 'static,
    ) -> Use {
        let subject = self.subject(api_version, plural, Selector::everything());
        let subject = Subject { only: Some(key.clone()), namespaces: Vec::new(), ..subject };
        self.hold(subject, Interest::All, Arc::new(listener))
    }

    fn hold(&self, subject: Subject, interest: Interest, listener: Listener) -> Use {
        let (client, limiter, idle) = (self.client.clone(), self.limiter.clone(), self.watch_idle);
        self.kinds.hold(subject, &self.managers, (interest, listener), |kind| {
            tokio::spawn(watch::keep(watch::Source { client, limiter, kind, idle })).abort_handle()
        })
    }
}
