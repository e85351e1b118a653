//! Real definitions with mistakes in them: each is read, or refused with all that is wrong and where.

use serde_json::Value;

use crate::config::{Definition, load};
use crate::template::tests::mutation::{Mutations, files};
use crate::template::yaml;

/// Mistakes tried of each file.
const MISTAKES: usize = 60;

fn definitions() -> Vec<(String, String)> {
    let mut all = vec![("controllers.yaml".to_string(), include_str!("../../controllers.yaml").to_string())];
    for folder in ["tests/check", "tests/bench"] {
        all.extend(files(folder, "controllers.yaml"));
    }
    all
}

#[test]
fn definitions_with_mistakes_are_read_or_refused_with_places() {
    let mut mutations = Mutations::new(20_261_203);
    let (mut read, mut refused) = (0, 0);
    for (name, text) in definitions() {
        for _ in 0..MISTAKES {
            let changed = mutations.of_text(&text);
            match load("controllers.yaml", &changed) {
                Ok(definitions) => read += usize::from(!definitions.is_empty()),
                Err(problems) => {
                    refused += 1;
                    assert!(!problems.is_empty(), "{name}\n{changed}");
                    for problem in problems {
                        let place = problem.place.as_ref();
                        assert!(place.is_some_and(|place| place.line > 0), "{name}: {problem:?}\n{changed}");
                        assert!(!problem.page().is_empty());
                    }
                }
            }
        }
    }
    assert!(read > 20 && refused > 100, "{read} read, {refused} refused");
}

/// As the API server hands them out whose CRDs are somebody else's, or older.
#[test]
fn custom_resources_with_mistakes_are_read_or_refused_in_words() {
    let mut mutations = Mutations::new(20_261_204);
    let objects: Vec<Value> = definitions()
        .iter()
        .flat_map(|(name, text)| yaml::read(name, text).unwrap_or_default())
        .map(|document| document.value)
        .filter(|object| Definition::from_object(object.clone()).is_ok_and(|read| !read.is_empty()))
        .collect();
    assert!(objects.len() > 20, "{} definitions", objects.len());
    let (mut read, mut refused) = (0, 0);
    for object in &objects {
        for _ in 0..MISTAKES {
            let changed = mutations.of_value(object);
            match Definition::from_object(changed.clone()) {
                Ok(definitions) => read += usize::from(!definitions.is_empty()),
                Err(problems) => {
                    refused += 1;
                    assert!(problems.iter().all(|problem| !problem.message.is_empty()), "{changed}");
                    assert!(!problems.is_empty(), "{changed}");
                }
            }
        }
    }
    assert!(read > 20 && refused > 100, "{read} read, {refused} refused");
}
