//! Brings the stored objects of a kind to the version that its CRD stores now, so that an older version can be dropped.
//!
//! Each object is read and written back as it is: the API server stores what it is given in today's version, and does nothing
//! where it is stored so already. When all are, the CRD's `status.storedVersions` is cut down to that version, which the
//! API server demands before a version may go. Breaking off loses nothing; the next run goes over all objects again.

use futures::{StreamExt, stream};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::cluster::kind::Resource;
use crate::cluster::request::Error;
use crate::object::name::Key;
use crate::problem::Problem;

/// So many objects are under way at once.
const AT_ONCE: usize = 8;

/// A kind as its CRD has it.
pub(crate) struct Subject {
    /// The version that is stored from now on.
    pub storage: String,
    /// The versions in which objects may be stored.
    pub stored: Vec<String>,
    crd: Value,
}

/// What came of one object.
pub(crate) enum Done {
    Rewritten,
    /// It was deleted meanwhile.
    Gone,
    Refused(Key, Error),
}

impl Subject {
    /// Looks the CRD of this name up. The problem is about the name, or about what the CRD says.
    pub(crate) async fn find(cluster: &Cluster, name: &str) -> Result<Result<Subject, Problem>, Error> {
        let Some(crd) = cluster.crd(name).await? else {
            let problem = Problem::new(format!("there is no CRD `{name}`"));
            let problem = problem.expected("a CRD's name, such as `websites.example.com`");
            return Ok(Err(problem.hint("`kubectl get crds` lists them")));
        };
        let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
        let storage = versions
            .filter(|version| version["storage"] == true)
            .find_map(|version| version["name"].as_str());
        let Some(storage) = storage.map(str::to_string) else {
            return Ok(Err(Problem::new(format!("the CRD `{name}` stores no version"))));
        };
        let stored = crd["status"]["storedVersions"].as_array().into_iter().flatten();
        let stored = stored.filter_map(Value::as_str).map(str::to_string).collect();
        Ok(Ok(Subject { storage, stored, crd }))
    }

    /// Whether no object can be stored in another version.
    pub(crate) fn is_done(&self) -> bool {
        self.stored == [self.storage.as_str()]
    }

    /// All its objects. One that cannot be converted spoils every list in a version that it is not stored in, so that each
    /// version is tried.
    pub(crate) async fn objects(&self, cluster: &Cluster) -> Result<Option<(Resource, Vec<Key>)>, Error> {
        let Some(resource) = self.served_as(cluster, &self.storage).await? else { return Ok(None) };
        let mut listed = cluster.look(&resource, |_| true).await;
        for version in self.stored.iter().filter(|version| **version != self.storage) {
            if listed.is_err()
                && let Some(older) = self.served_as(cluster, version).await?
            {
                listed = cluster.look(&older, |_| true).await.or(listed);
            }
        }
        Ok(Some((resource, listed?.into_iter().map(|object| object.key).collect())))
    }

    async fn served_as(&self, cluster: &Cluster, version: &str) -> Result<Option<Resource>, Error> {
        let text = |path: &str| self.crd.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let api_version = format!("{}/{version}", text("/spec/group"));
        cluster.resource(&api_version, text("/spec/names/plural")).await
    }

    /// Says in the CRD that its objects are all stored in one version. Refused (409) where it has changed meanwhile.
    pub(crate) async fn conclude(&self, cluster: &Cluster) -> Result<(), Error> {
        cluster.put_stored_versions(&self.crd, &[&self.storage]).await
    }
}

/// Writes the objects back as they are. `rehearse`: the API server only looks whether it would take them.
pub(crate) async fn rewrite(
    cluster: &Cluster,
    resource: &Resource,
    keys: Vec<Key>,
    rehearse: bool,
    tell: &mut impl FnMut(Done),
) {
    let one = async |key: Key| match cluster.rewrite(resource, &key, rehearse).await {
        Ok(true) => Done::Rewritten,
        Ok(false) => Done::Gone,
        Err(error) => Done::Refused(key, error),
    };
    let mut all = std::pin::pin!(stream::iter(keys).map(one).buffer_unordered(AT_ONCE));
    while let Some(done) = all.next().await {
        tell(done);
    }
}
