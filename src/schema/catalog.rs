//! The kinds whose schemas are known: those of an OpenAPI document, and those of CRDs.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, LazyLock};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;

use crate::object::name::Gvk;
use crate::problem::nearest;
use crate::schema::node::{GroupVersionKind, Node, referred};

/// Kinds by their group, version and name, with the definitions that their schemas refer to.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    /// `1.36`, as the document calls it.
    pub version: String,
    definitions: Arc<BTreeMap<String, Node>>,
    kinds: Vec<Arc<Kind>>,
}

/// A kind of which it is known what its objects may hold.
#[derive(Debug)]
pub(crate) struct Kind {
    pub gvk: Gvk,
    pub plural: String,
    pub namespaced: bool,
    /// Whether the API server defines the kind itself; otherwise a CRD does.
    pub built_in: bool,
    /// Whether the status is written apart from the rest; true for built-in kinds, which have one where they need it.
    pub status_subresource: bool,
    pub(super) schema: Node,
    pub(super) definitions: Arc<BTreeMap<String, Node>>,
}

/// An OpenAPI document as `/openapi/v2` has it.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    info: Info,
    paths: BTreeMap<String, Path>,
    definitions: BTreeMap<String, Node>,
}

#[derive(Default, Deserialize)]
struct Info {
    #[serde(default)]
    version: String,
}

#[derive(Deserialize)]
struct Path {
    post: Option<Operation>,
}

#[derive(Deserialize)]
struct Operation {
    #[serde(rename = "x-kubernetes-group-version-kind")]
    kind: Option<GroupVersionKind>,
}

impl Catalog {
    /// The kinds of the Kubernetes version that the program is made for.
    pub(crate) fn built_in() -> &'static Catalog {
        static CARRIED: LazyLock<Catalog> = LazyLock::new(|| {
            let mut text = Vec::new();
            let mut packed = GzDecoder::new(&include_bytes!("kubernetes.json.gz")[..]);
            packed.read_to_end(&mut text).expect("the carried schemas are whole");
            Catalog::from_openapi(&text).expect("the carried schemas can be read")
        });
        &CARRIED
    }

    /// The kinds of a cluster, from the text of its `/openapi/v2`.
    pub(crate) fn from_openapi(text: &[u8]) -> Result<Catalog, String> {
        let document: Document = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let definitions = Arc::new(document.definitions);
        let named: BTreeMap<(&str, &str, &str), &String> = definitions
            .iter()
            .filter_map(|(name, node)| match &node.kinds[..] {
                [own] => Some(((&*own.group, &*own.version, &*own.kind), name)),
                _ => None,
            })
            .collect();
        let mut kinds: Vec<Arc<Kind>> = Vec::new();
        for (path, Path { post }) in &document.paths {
            let Some(own) = post.as_ref().and_then(|post| post.kind.as_ref()) else { continue };
            let Some(plural) = collection(path) else { continue };
            let Some(name) = named.get(&(&*own.group, &*own.version, &*own.kind)) else { continue };
            kinds.push(Arc::new(Kind {
                gvk: Gvk { group: own.group.clone(), version: own.version.clone(), kind: own.kind.clone() },
                plural: plural.into(),
                namespaced: path.contains("/namespaces/{namespace}/"),
                built_in: name.starts_with("io.k8s."),
                status_subresource: true,
                schema: Node { reference: Some((*name).clone()), ..Node::default() },
                definitions: definitions.clone(),
            }));
        }
        if kinds.is_empty() {
            return Err("it names no kind: is it the answer of `kubectl get --raw /openapi/v2`?".into());
        }
        Ok(Catalog { version: document.info.version, definitions, kinds })
    }

    /// Adds the kind of a CRD in each of its versions. `Err` has the path of what cannot be read, and why.
    pub(crate) fn add_crd(&mut self, crd: &Value) -> Result<(), (Vec<String>, String)> {
        let spec = &crd["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        for (index, version) in spec["versions"].as_array().into_iter().flatten().enumerate() {
            let path =
                ["spec", "versions", &index.to_string(), "schema", "openAPIV3Schema"].map(String::from);
            let schema = &version["schema"]["openAPIV3Schema"];
            let schema =
                Node::deserialize(schema).map_err(|error| unreadable(schema, path.to_vec(), &error))?;
            let kind = Kind {
                gvk: Gvk {
                    group: text(&spec["group"]),
                    version: text(&version["name"]),
                    kind: text(&spec["names"]["kind"]),
                },
                plural: text(&spec["names"]["plural"]),
                namespaced: spec["scope"] != "Cluster",
                built_in: false,
                status_subresource: version["subresources"]["status"].is_object(),
                schema,
                definitions: self.definitions.clone(),
            };
            // The folder's own edition counts, even where a cluster has one too.
            self.kinds.retain(|known| known.gvk != kind.gvk);
            self.kinds.push(Arc::new(kind));
        }
        Ok(())
    }

    pub(crate) fn kind(&self, gvk: &Gvk) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|kind| kind.gvk == *gvk)
    }

    /// The kind that a rule names as `apps/v1` and `deployments`.
    pub(crate) fn resource(&self, api_version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|kind| kind.plural == plural && kind.gvk.api_version() == api_version)
    }

    /// Whether all kinds of the group are known: it is one of Kubernetes' own, or that of a CRD. Groups of CRDs have a dot.
    pub(crate) fn knows_all_of(&self, group: &str) -> bool {
        !group.contains('.') || self.of_group(group).next().is_some()
    }

    /// The kind of that plural, in any group.
    pub(crate) fn named(&self, plural: &str) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|kind| kind.plural == plural)
    }

    /// The kinds of a group, in any version.
    pub(crate) fn of_group(&self, group: &str) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.iter().filter(move |kind| kind.gvk.group == group)
    }

    /// The `apiVersion` under which a kind is known, where it is under another than the one asked for.
    pub(crate) fn elsewhere(&self, kind: &str) -> Option<String> {
        self.kinds.iter().find(|known| known.gvk.kind == kind).map(|known| known.gvk.api_version())
    }

    /// The name that was meant by the name of no kind of the group.
    pub(crate) fn meant(&self, group: &str, kind: &str) -> Option<&str> {
        nearest(kind, self.of_group(group).map(|known| known.gvk.kind.as_str()))
    }
}

impl Kind {
    pub(super) fn resolve<'n>(&'n self, node: &'n Node) -> &'n Node {
        match &node.reference {
            Some(reference) => self.definitions.get(referred(reference)).unwrap_or(node),
            None => node,
        }
    }
}

/// The plural at the end of a collection's path, and nothing for the path of one object or one of its parts.
fn collection(path: &str) -> Option<&str> {
    let (_, plural) = path.rsplit_once('/')?;
    (!plural.is_empty() && !path.contains("{name}") && !plural.contains('{')).then_some(plural)
}

/// Why a schema cannot be read, with the path of the innermost schema that cannot.
fn unreadable(schema: &Value, mut path: Vec<String>, error: &serde_json::Error) -> (Vec<String>, String) {
    let inner = schema["properties"].as_object().into_iter().flatten();
    let properties = inner.map(|(name, schema)| (vec!["properties", name], schema));
    let others = ["items", "additionalProperties"].map(|key| (vec![key], &schema[key]));
    for (steps, schema) in properties.chain(others.into_iter().filter(|(_, schema)| schema.is_object())) {
        if let Err(error) = Node::deserialize(schema) {
            path.extend(steps.into_iter().map(String::from));
            return unreadable(schema, path, &error);
        }
    }
    (path, error.to_string())
}
