use super::*;
use crate::plan::desired::normalise;

/// Applied to Kubernetes v1.36.3 by server-side apply: what was sent, the answer, and the record in it, both without
/// what the store cuts out.
struct Applied {
    wanted: Map<String, Value>,
    live: Value,
    owned: String,
}

fn applied() -> Vec<Applied> {
    include_str!("applied.jsonl")
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let mut wanted = line["wanted"].as_object().unwrap().clone();
            normalise(&mut wanted);
            Applied { wanted, live: line["live"].take(), owned: line["owned"].to_string() }
        })
        .collect()
}

fn applied_kind(kind: &str) -> Applied {
    applied().into_iter().find(|applied| applied.live["kind"] == kind).unwrap()
}

fn shown(differences: &Differences) -> Vec<String> {
    differences.iter().map(Difference::to_string).collect()
}

impl Applied {
    fn differences(&self) -> Differences {
        difference(&self.wanted, &self.live, Some(&self.owned))
    }

    fn shown(&self) -> Vec<String> {
        shown(&self.differences())
    }
}

#[test]
fn object_just_applied_has_no_difference() {
    for applied in applied() {
        assert_eq!(applied.shown(), [""; 0], "{} {}", applied.live["kind"], applied.live["metadata"]["name"]);
    }
}
