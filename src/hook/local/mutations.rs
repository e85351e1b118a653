//! The repository's own templates with mistakes in them, asked what their cases ask: each answers or says where it is at
//! fault, and says the same when it is asked again.

use std::fs;

use serde_json::Value;

use crate::hook::local::{Given, Reason, Refusal, Shelf};
use crate::problem::Problem;
use crate::template::tests::mutation::{Mutations, files};

const HOOKS: [&str; 3] = ["backupschedule", "mysql", "postgresqlcluster"];
/// Mistakes tried of each hook, with this many requests each.
const MISTAKES: usize = 60;
const REQUESTS: usize = 2;

struct Hook {
    name: &'static str,
    templates: Vec<(String, String)>,
    /// What is called, and with which body.
    requests: Vec<(String, String)>,
}

impl Hook {
    fn of(name: &'static str) -> Hook {
        let folder = format!("hooks/{name}");
        let own = |path: &str| path.strip_prefix(&format!("{folder}/")).map(String::from);
        let all: Vec<(String, String)> = files(&folder, ".yaml")
            .into_iter()
            .filter_map(|(path, text)| Some((own(&path)?, text)))
            .collect();
        let (cases, templates): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(path, _)| path.starts_with("cases/"));
        let call = |path: &str| Some(path.rsplit('/').next()?.strip_suffix(".request.yaml")?.to_string());
        let requests = cases.into_iter().filter_map(|(path, text)| Some((call(&path)?, text))).collect();
        Hook { name, templates, requests }
    }

    /// Its folder, with a mistake in one of its templates.
    fn with_a_mistake(&self, mutations: &mut Mutations) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join(self.name)).expect("a folder");
        let meant: Vec<&(String, String)> = self
            .templates
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "crd.yaml" | "example.yaml"))
            .collect();
        let (wrong, text) = *mutations.pick(&meant);
        let changed = mutations.of_text(text);
        for (name, text) in meant {
            let text = if name == wrong { &changed } else { text };
            fs::write(folder.path().join(self.name).join(name), text).expect("a file");
        }
        (folder, changed)
    }
}

fn ask(shelf: &Shelf, hook: &str, call: &str, body: &str) -> Result<Value, Refusal> {
    let given = Given { now: "2026-01-01T00:00:00Z".parse().expect("a time"), entropy: [7; 32] };
    shelf.answer(hook, call, body.as_bytes(), given).map(|response| response.into_value())
}

fn has_a_place(problem: &Problem) -> bool {
    problem
        .place
        .as_ref()
        .is_some_and(|place| place.line > 0 && place.column > 0 && place.file.ends_with(".yaml"))
}

#[test]
fn templates_with_mistakes_answer_or_say_where_they_are_at_fault() {
    let mut mutations = Mutations::new(20_261_202);
    let (mut answered, mut failed, mut refused) = (0, 0, 0);
    for hook in HOOKS.map(Hook::of) {
        for _ in 0..MISTAKES {
            let (folder, changed) = hook.with_a_mistake(&mut mutations);
            let shelf = Shelf::open(folder.path());
            for rejected in shelf.state().hooks.into_iter().filter_map(|hook| hook.rejected) {
                refused += 1;
                assert!(
                    !rejected.problems.is_empty() && rejected.problems.iter().all(has_a_place),
                    "{rejected:?}\n{changed}"
                );
            }
            for _ in 0..REQUESTS {
                let (call, body) = mutations.pick(&hook.requests);
                let [first, again] = [(); 2].map(|()| ask(&shelf, hook.name, call, body));
                match (first, again) {
                    (Ok(first), Ok(again)) => {
                        answered += 1;
                        assert_eq!(first, again, "{changed}");
                    }
                    (Err(first), Err(again)) => {
                        failed += 1;
                        assert_eq!(
                            (first.reason, &first.problem),
                            (again.reason, &again.problem),
                            "{changed}"
                        );
                        let told = matches!(first.reason, Reason::Unknown) || has_a_place(&first.problem);
                        assert!(first.reason != Reason::Panicked && told, "{first:?}\n{changed}");
                    }
                    (first, again) => panic!("{first:?}, then {again:?} of\n{changed}"),
                }
            }
        }
    }
    let counts = format!("{answered} answered, {failed} failed, {refused} do not compile");
    assert!(answered > 30 && failed > 30 && refused > 10, "{counts}");
}
