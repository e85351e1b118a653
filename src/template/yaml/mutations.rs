//! Real files with mistakes in them: each is read as a whole or refused with a place, and what was read is printed and
//! read again as the same.

use super::{Document, read};
use crate::problem::Problem;
use crate::template::tests::mutation::{Mutations, files};

const PER_FILE: usize = 6;

fn has_a_place(problem: &Problem, text: &str) -> bool {
    let lines = text.lines().count().max(1);
    problem.place.as_ref().is_some_and(|place| {
        // The end of a text is a place, too.
        place.file == "a.yaml" && (1..=lines + 1).contains(&place.line) && place.column > 0
    })
}

fn reads_again(document: &Document, text: &str) {
    let printed = serde_saphyr::to_string(&document.value).expect("JSON can be written as YAML");
    let again = read("again.yaml", &printed)
        .unwrap_or_else(|problem| panic!("{}\nprinted:\n{printed}\nof:\n{text}", problem.page()));
    assert_eq!(again.len(), 1, "printed:\n{printed}\nof:\n{text}");
    assert_eq!(again[0].value, document.value, "printed:\n{printed}\nof:\n{text}");
}

#[test]
fn files_with_mistakes_are_refused_with_a_place_or_read_as_what_they_print() {
    let mut mutations = Mutations::new(20_261_201);
    let (mut read_well, mut refused) = (0, 0);
    for (name, text) in ["hooks", "examples", "tests/check", "src/config/crds"]
        .iter()
        .flat_map(|folder| files(folder, ".yaml"))
    {
        // A large file would take the time of fifty small ones.
        if text.len() > 20_000 {
            continue;
        }
        for _ in 0..PER_FILE {
            let changed = mutations.of_text(&text);
            match read("a.yaml", &changed) {
                Ok(documents) => {
                    read_well += 1;
                    documents.iter().for_each(|document| reads_again(document, &changed));
                }
                Err(problem) => {
                    refused += 1;
                    assert!(has_a_place(&problem, &changed), "{name}: {problem:?}\n{changed}");
                    assert!(!problem.page().is_empty());
                }
            }
        }
    }
    assert!(read_well > 200 && refused > 200, "{read_well} read, {refused} refused");
}
