//! Calls that nothing asks: what they make is not checked.

use crate::author::check::finding::Rule;
use crate::author::check::{Check, is_review};
use crate::problem::Problem;

impl Check {
    /// A hook that is at fault elsewhere says nothing here: its requests may only be unreadable for now.
    pub(super) fn coverage(&mut self) {
        for hook in self.shelf.state().hooks {
            if self.faulty.contains(&hook.hook) {
                continue;
            }
            for call in hook.calls {
                let call = call.call.name();
                if !self.asked.contains(&(hook.hook.clone(), call.into())) {
                    self.unasked(&hook.hook, call);
                }
            }
        }
    }

    fn unasked(&mut self, hook: &str, call: &str) {
        let label = self.shelf.label();
        let case = format!("write a case, `{label}/{hook}/cases/<case>/{call}.request.yaml`");
        // An example is a parent that was just made.
        let by_example = call != "finalize" && !is_review(call);
        let hint = if by_example { format!("{case}, or an `example.yaml`") } else { case };
        let problem = Problem::new(format!("nothing renders `{hook}/{call}`, so that it is not checked"))
            .at(self.template(hook, call))
            .hint(hint);
        self.findings.add(Rule::NeverRendered, problem);
    }
}
