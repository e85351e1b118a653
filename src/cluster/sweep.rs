//! Looks and writes for whoever clears up: one look at what is there now, without a watch or a store.
//!
//! Mostly metadata is read. A write is made on what was just read, and made again where somebody else was quicker.

use std::collections::BTreeSet;

use http::{Request, header};
use kube::client::Body;
use serde_json::{Value, json};

use super::Cluster;
use super::discovery::{self, Unresolved};
use super::kind::Resource;
use super::object::Object;
use super::request::{self, Error};
use super::watch::Page;
use crate::object::name::Key;

const ONE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PAGE: usize = 500;
/// So often is a write tried that others get in the way of.
const TRIES: usize = 10;

impl Cluster {
    /// What the API server says of a kind; `None` where it does not have it.
    pub(crate) async fn resource(&self, api_version: &str, plural: &str) -> Result<Option<Resource>, Error> {
        match discovery::resolve(&self.client, api_version, plural).await {
            Ok(resource) => Ok(Some(resource)),
            Err(Unresolved::Absent(_)) => Ok(None),
            Err(Unresolved::Failing(message)) => Err(Error::Unanswered(message)),
        }
    }

    /// The objects of a kind that `wanted` picks, by their metadata, in the namespaces that are looked at.
    pub(crate) async fn look(
        &self,
        resource: &Resource,
        wanted: impl Fn(&Object) -> bool,
    ) -> Result<Vec<Object>, Error> {
        if self.namespaces.is_empty() || !resource.namespaced {
            return self.pages(&resource.path("", None), "", LIST, wanted).await;
        }
        let mut objects = Vec::new();
        for namespace in &self.namespaces {
            objects.extend(self.pages(&resource.path(namespace, None), "", LIST, &wanted).await?);
        }
        Ok(objects)
    }

    /// All objects of a kind, whole.
    pub(crate) async fn read_all(&self, resource: &Resource) -> Result<Vec<Object>, Error> {
        self.pages(&resource.path("", None), "", "application/json", |_| true).await
    }

    /// The objects of a name, whole, in one namespace or (empty) in all.
    pub(crate) async fn read_named(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Vec<Object>, Error> {
        let query = format!("&fieldSelector=metadata.name%3D{name}");
        self.pages(&resource.path(namespace, None), &query, "application/json", |_| true).await
    }

    /// Page by page, so that no more than a page is held of what nobody wants.
    async fn pages(
        &self,
        path: &str,
        query: &str,
        accept: &str,
        wanted: impl Fn(&Object) -> bool,
    ) -> Result<Vec<Object>, Error> {
        let mut objects = Vec::new();
        let mut next = String::new();
        loop {
            let uri = format!("{path}?limit={PAGE}{query}{next}");
            let request = Request::get(uri).header(header::ACCEPT, accept).body(Body::empty())?;
            let bytes = request::answer(&self.client, request).await?;
            let page: Page = serde_json::from_slice(&bytes)?;
            for item in page.items.unwrap_or_default() {
                let object = self.read_one(item.get())?;
                if wanted(&object) {
                    objects.push(object);
                }
            }
            match page.metadata.r#continue.filter(|token| !token.is_empty()) {
                Some(token) => next = format!("&continue={token}"),
                None => return Ok(objects),
            }
        }
    }

    /// One object by its metadata; `None` where it is gone.
    pub(crate) async fn look_at(&self, resource: &Resource, key: &Key) -> Result<Option<Object>, Error> {
        let uri = resource.path(&key.namespace, Some(&key.name));
        let request = Request::get(uri).header(header::ACCEPT, ONE).body(Body::empty())?;
        match request::answer(&self.client, request).await {
            Ok(bytes) => Ok(Some(self.read_one(std::str::from_utf8(&bytes)?)?)),
            Err(error) if error.is(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_one(&self, text: &str) -> serde_json::Result<Object> {
        Object::read(text, ("", ""), &self.managers)
    }

    /// Takes finalizers off an object, and no others. One that is gone has none.
    pub(crate) async fn take_off(
        &self,
        resource: &Resource,
        object: &Object,
        finalizers: &BTreeSet<String>,
    ) -> Result<(), Error> {
        self.change_finalizers(resource, object, &|known| known.retain(|name| !finalizers.contains(name)))
            .await
    }

    /// Puts a finalizer on an object.
    pub(crate) async fn put_on(
        &self,
        resource: &Resource,
        object: &Object,
        finalizer: &str,
    ) -> Result<(), Error> {
        self.change_finalizers(resource, object, &|known| {
            if !known.iter().any(|name| name == finalizer) {
                known.push(finalizer.into());
            }
        })
        .await
    }

    async fn change_finalizers(
        &self,
        resource: &Resource,
        object: &Object,
        change: &(dyn Fn(&mut Vec<String>) + Sync),
    ) -> Result<(), Error> {
        let mut outcome = self.write_finalizers(resource, object, change).await;
        for _ in 1..TRIES {
            if !outcome.as_ref().is_err_and(|error| error.is(409)) {
                break;
            }
            let now = self.look_at(resource, &object.key).await?;
            let Some(now) = now.filter(|now| now.uid == object.uid) else { return Ok(()) };
            outcome = self.write_finalizers(resource, &now, change).await;
        }
        match outcome {
            Err(error) if error.is(404) => Ok(()),
            outcome => outcome,
        }
    }

    /// The list as a whole, guarded by the version it was read at: nobody else's finalizer is lost.
    async fn write_finalizers(
        &self,
        resource: &Resource,
        object: &Object,
        change: &(dyn Fn(&mut Vec<String>) + Sync),
    ) -> Result<(), Error> {
        let before: Vec<String> = object.finalizers.iter().map(ToString::to_string).collect();
        let mut finalizers = before.clone();
        change(&mut finalizers);
        if finalizers == before {
            return Ok(());
        }
        let metadata = json!({
            "finalizers": finalizers, "resourceVersion": object.version.to_string(), "uid": object.uid,
        });
        let path = resource.path(&object.key.namespace, Some(&object.key.name));
        let request = Request::patch(format!("{path}?fieldManager={}", self.managers.objects))
            .header(header::CONTENT_TYPE, "application/merge-patch+json")
            .header(header::ACCEPT, ONE)
            .body(Body::from(json!({ "metadata": metadata }).to_string().into_bytes()))?;
        self.send(request).await.map(drop)
    }

    /// A CRD by its name, whole; `None` where there is none.
    pub(crate) async fn crd(&self, name: &str) -> Result<Option<Value>, Error> {
        let request = Request::get(format!("{CRDS}/{name}")).body(Body::empty())?;
        match request::answer(&self.client, request).await {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.is(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Says in which versions objects of a CRD are stored. A conflict where it is not what was read.
    pub(crate) async fn put_stored_versions(&self, crd: &Value, versions: &[&str]) -> Result<(), Error> {
        let metadata = &crd["metadata"];
        let patch = json!({
            "metadata": {"resourceVersion": metadata["resourceVersion"], "uid": metadata["uid"]},
            "status": {"storedVersions": versions},
        });
        let name = metadata["name"].as_str().unwrap_or_default();
        let request = Request::patch(format!("{CRDS}/{name}/status?fieldManager={}", self.managers.objects))
            .header(header::CONTENT_TYPE, "application/merge-patch+json")
            .body(Body::from(patch.to_string().into_bytes()))?;
        self.send(request).await.map(drop)
    }

    /// Writes an object back as it is. `rehearse`: nothing is stored. `false`: it is gone.
    pub(crate) async fn rewrite(
        &self,
        resource: &Resource,
        key: &Key,
        rehearse: bool,
    ) -> Result<bool, Error> {
        let path = resource.path(&key.namespace, Some(&key.name));
        let dry_run = if rehearse { "&dryRun=All" } else { "" };
        for tries in 1.. {
            let request = Request::get(&path).body(Body::empty())?;
            let object = match request::answer(&self.client, request).await {
                Err(error) if error.is(404) => return Ok(false),
                object => object?,
            };
            let request = Request::put(format!("{path}?fieldManager={}{dry_run}", self.managers.objects))
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(object.to_vec()))?;
            match self.send(request).await {
                Ok(_) => return Ok(true),
                Err(error) if error.is(404) => return Ok(false),
                // Somebody else was quicker.
                Err(error) if error.is(409) && tries < TRIES => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("the tries come to an end")
    }

    /// Deletes exactly this object, its dependents in the background. One that is gone counts as deleted.
    pub(crate) async fn remove(&self, resource: &Resource, object: &Object) -> Result<(), Error> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"uid": object.uid}, "propagationPolicy": "Background",
        });
        let request = Request::delete(resource.path(&object.key.namespace, Some(&object.key.name)))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(options.to_string().into_bytes()))?;
        match self.send(request).await {
            Err(error) if !error.is(404) && !error.is(409) => Err(error),
            _ => Ok(()),
        }
    }
}
