//! Real answers with mistakes in them, as a hook sends them that is broken or lies: each is refused in words, or taken for
//! what it says. What it does not say, it does not want.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Call;
use super::answer::Answer;
use crate::config::spec::{Decoding, Role};
use crate::template::tests::mutation::{Mutations, files};
use crate::template::yaml;

/// Mistakes tried of each answer.
const MISTAKES: usize = 80;

/// The answers of the repository's cases, as bodies.
fn answers() -> Vec<Value> {
    let answers = files("hooks", "sync.response.yaml").into_iter().flat_map(|(name, text)| {
        yaml::read(&name, &text).expect("a case can be read").into_iter().map(|document| document.value)
    });
    let more = json!({
        "status": {"a": 1}, "children": [], "attachments": [], "resyncAfterSeconds": 1.5, "finalized": true,
        "labels": {"a": "b", "c": null}, "annotations": {"a": "b"},
        "relatedResources": [{"apiVersion": "v1", "resource": "pods", "labelSelector": {"matchLabels": {"a": "b"}}, "names": ["x"]}],
    });
    answers.chain([more]).collect()
}

/// A body, now and then with something in it that is no JSON any more.
fn body(mutations: &mut Mutations, answer: &Value) -> Vec<u8> {
    let mut text = answer.to_string().into_bytes();
    let at = mutations.below(text.len());
    match mutations.below(12) {
        0 => text.truncate(at),
        1 => text[at] = 0xff,
        2 => text[at] ^= 1 << mutations.below(8),
        3 => text.splice(at..at, *b"\"children\":[],").for_each(drop),
        4 => text.extend_from_slice(b" {}"),
        _ => {}
    }
    text
}

fn names(children: &Value) -> BTreeSet<String> {
    let name = |child: &Value| child["metadata"]["name"].as_str().map(String::from);
    children.as_array().into_iter().flatten().filter_map(name).collect()
}

#[test]
fn answers_with_mistakes_are_refused_or_taken_for_what_they_say() {
    let mut mutations = Mutations::new(20_261_205);
    let (mut taken, mut refused) = (0, 0);
    for answer in answers() {
        for round in 0..MISTAKES {
            let changed = mutations.of_value(&answer);
            let body = body(&mut mutations, &changed);
            let decoding = *mutations.pick(&[Decoding::Strict, Decoding::Loose]);
            let role = *mutations.pick(&[Role::Composite, Role::Decorator]);
            let call = [Call::Sync, Call::Finalize, Call::Customize][round % 3];
            let shown = || String::from_utf8_lossy(&body).into_owned();
            match Answer::decode(role, call, decoding, &body) {
                Err(problem) => {
                    refused += 1;
                    assert!(
                        !problem.message.is_empty() && problem.to_string().len() < 1600,
                        "{problem}\n{}",
                        shown()
                    );
                }
                Ok(decoded) => {
                    taken += 1;
                    let said: Value = serde_json::from_slice(&body).expect("what is taken is JSON");
                    let list = if role == Role::Composite { "children" } else { "attachments" };
                    if call != Call::Customize {
                        let wanted =
                            decoded.children.iter().map(|child| child.object["metadata"]["name"].as_str());
                        let wanted: BTreeSet<String> = wanted.flatten().map(String::from).collect();
                        assert_eq!(wanted, names(&said[list]), "{}", shown());
                        let length = said[list].as_array().map_or(0, Vec::len);
                        assert_eq!(decoded.children.len(), length, "{}", shown());
                        assert!(
                            call == Call::Finalize || said[list].is_array() || said.get(list).is_none(),
                            "{}",
                            shown()
                        );
                    }
                    assert_eq!(
                        decoded.finalized,
                        call != Call::Customize && said["finalized"] == true,
                        "{}",
                        shown()
                    );
                }
            }
        }
    }
    assert!(taken > 200 && refused > 200, "{taken} taken, {refused} refused");
}
