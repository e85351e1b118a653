//! The repository's own CRDs with mistakes in them: each is read or refused in words, and what is read is good for
//! examples, for odd parents and for judging objects.

use serde_json::Value;

use crate::author::parents::dice::Dice;
use crate::author::parents::{crd, example, odd};
use crate::schema::{Catalog, Whole};
use crate::template::tests::mutation::{Mutations, files};
use crate::template::yaml;

/// Mistakes tried of each CRD.
const MISTAKES: usize = 25;

fn crds() -> Vec<Value> {
    let files = ["hooks", "tests/check"].into_iter().flat_map(|folder| files(folder, "crd.yaml"));
    let read = files.flat_map(|(name, text)| yaml::read(&name, &text).unwrap_or_default());
    read.map(|document| document.value).filter(|crd| crd["kind"] == "CustomResourceDefinition").collect()
}

/// Asks everything that can be asked of the kinds that were read.
fn use_all_of(catalog: &Catalog, group: &str, parents: &[Value]) {
    for kind in catalog.of_group(group) {
        for parent in parents {
            for misfit in kind.misfits(parent, Whole::Yes) {
                assert!(!format!("{misfit:?}").is_empty());
            }
            kind.fill(&mut parent.clone());
            for path in [&["spec"][..], &["spec", "replicas"], &["status", "phase"], &["spec", "schedule"]] {
                let steps: Vec<String> = path.iter().map(ToString::to_string).collect();
                kind.with_another(parent, &steps);
                kind.is_fixed(&steps);
                kind.has(path);
            }
        }
    }
}

#[test]
fn crds_with_mistakes_are_refused_in_words_or_good_for_all_that_crds_are_used_for() {
    let mut mutations = Mutations::new(20_261_206);
    let (mut read, mut refused) = (0, 0);
    for manifest in crds() {
        for run in 0..MISTAKES {
            let mut changed = manifest.clone();
            // Mostly in the schema, of which there is the most to get wrong.
            let at = if run % 3 == 0 { "" } else { "/spec/versions/0/schema/openAPIV3Schema" };
            if let Some(part) = changed.pointer_mut(at) {
                *part = mutations.of_value(part);
            }
            let version = changed.pointer("/spec/versions/0/name").and_then(Value::as_str).map(String::from);
            let crd = match crd::of(changed.clone(), version.as_deref()) {
                Ok(crd) => crd,
                Err(problem) => {
                    refused += 1;
                    assert!(!problem.message.is_empty(), "{changed}");
                    continue;
                }
            };
            let mut dice = Dice::new(7, run as u64);
            let example = example::required(&crd.schema);
            let parents = [
                odd::parent("example.com/v1", "Thing", &crd.schema, &example, &mut dice),
                odd::parent("example.com/v1", "Thing", &crd.schema, &Value::Null, &mut dice),
                example,
            ];
            let mut catalog = Catalog::built_in().clone();
            match catalog.add_crd(&crd.manifest) {
                Ok(()) => {
                    read += 1;
                    use_all_of(&catalog, &crd.group, &parents);
                }
                Err((_, why)) => {
                    refused += 1;
                    assert!(!why.is_empty(), "{changed}");
                }
            }
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}
