//! What a kind is: one look at its group and version, no more, so that another group's trouble never matters.

use http::Request;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;

use super::kind::Resource;
use super::request;
use crate::object::name::Gvk;
use crate::problem::nearest;

/// Why a kind could not be found.
pub(super) enum Unresolved {
    /// The API server does not have it.
    Absent(String),
    /// It could not be asked.
    Failing(String),
}

#[derive(Deserialize)]
struct ResourceList {
    #[serde(default)]
    resources: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    kind: String,
    namespaced: bool,
}

/// Looks a plural up in its group and version.
pub(super) async fn resolve(
    client: &Client,
    api_version: &str,
    plural: &str,
) -> Result<Resource, Unresolved> {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let request = Request::get(format!("/{root}/{api_version}")).body(Body::empty());
    let request =
        request.map_err(|error| Unresolved::Failing(format!("`{api_version}` makes no path: {error}")))?;
    let bytes = match request::answer(client, request).await {
        Ok(bytes) => bytes,
        Err(error) if error.is(404) => {
            return Err(Unresolved::Absent(format!("the API server has no `{api_version}`")));
        }
        Err(error) => return Err(Unresolved::Failing(format!("looking `{api_version}` up: {error}"))),
    };
    let list: ResourceList = serde_json::from_slice(&bytes)
        .map_err(|error| Unresolved::Failing(format!("looking `{api_version}` up: {error}")))?;
    find(&list.resources, api_version, plural)
        .ok_or_else(|| Unresolved::Absent(unknown(&list.resources, api_version, plural)))
}

fn find(entries: &[Entry], api_version: &str, plural: &str) -> Option<Resource> {
    let entry = entries.iter().find(|entry| entry.name == plural)?;
    let status = format!("{plural}/status");
    Some(Resource {
        gvk: Gvk::new(api_version, &entry.kind),
        plural: plural.into(),
        namespaced: entry.namespaced,
        has_status: entries.iter().any(|entry| entry.name == status),
    })
}

fn unknown(entries: &[Entry], api_version: &str, plural: &str) -> String {
    let by_kind =
        entries.iter().find(|entry| entry.kind.eq_ignore_ascii_case(plural) && !entry.name.contains('/'));
    let near = by_kind.map(|entry| entry.name.as_str()).or_else(|| {
        nearest(plural, entries.iter().map(|entry| entry.name.as_str()).filter(|name| !name.contains('/')))
    });
    let hint = near.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
    format!("the API server has no `{plural}` in `{api_version}`{hint}")
}
