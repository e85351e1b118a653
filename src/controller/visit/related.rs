//! Objects beside the children: what the customize hook wants to see, and what there is of it.

use std::sync::Arc;

use crate::controller::related::rule::Rule;
use crate::controller::related::{Lacking, Sight};
use crate::controller::visit::ask::Guise;
use crate::controller::visit::{CACHE, Conclusion, Ended, Situation, Visit, note};
use crate::hook::wire::{Call, CustomizeRequest, Failure};

impl Visit<'_> {
    /// What the parent's hook is to be shown, or why it cannot be known.
    pub(super) async fn look_around(
        &self,
        situation: &Situation,
        guise: &Guise<'_>,
    ) -> Result<Sight, Failure> {
        let rules = self.related_rules(situation, guise).await?;
        let mut sight = self.room.related.seen(&rules);
        match sight.lacking.take() {
            Some(Lacking::Refused(problem)) => Err(Failure::Refused(problem)),
            lacking => Ok(Sight { lacking, ..sight }),
        }
    }

    async fn related_rules(&self, situation: &Situation, guise: &Guise<'_>) -> Result<Arc<[Rule]>, Failure> {
        let parent = &situation.parent;
        let spec = &self.room.definition.spec.hooks.customize;
        let (Some(hook), Some(spec)) = (&self.room.customize, spec) else { return Ok(Arc::new([])) };
        if let Some(rules) = self.room.related.known(parent, guise.revision) {
            return Ok(rules);
        }
        let request = CustomizeRequest { controller: &self.room.definition.json, parent: guise.body };
        let subject = situation.subject(guise);
        let body = request.body();
        let answer = hook.call(Call::Customize, &subject, body.clone());
        let answer = self.room.meter.hook(Call::Customize, answer).await;
        if let Some(rehearsal) = self.rehearsal {
            rehearsal.hear(Call::Customize, body, &answer);
        }
        let answer = answer?;
        let written = answer.related.into_iter().enumerate();
        let rules = written.map(|(index, rule)| Rule::of(rule, index, &parent.key, spec.version));
        let rules = rules.collect::<Result<_, _>>().map_err(Failure::Refused)?;
        Ok(self.room.related.wish(parent, guise.revision, rules))
    }
}

/// What has to be waited for before the hook can be asked. A deletion does not wait for kinds that cannot be read.
pub(super) fn not_ready(situation: &Situation, sight: &Sight) -> Option<Conclusion> {
    match sight.lacking.clone()? {
        Lacking::Kind(_) if situation.parent.deleting => None,
        Lacking::Kind(message) => Some(Conclusion::new(Ended::Waiting(note("WaitingForKind", message)))),
        Lacking::Cache(message) => {
            let waiting = Ended::Waiting(note("WaitingForCache", message));
            Some(Conclusion { silent: true, resync_after: Some(CACHE), ..Conclusion::new(waiting) })
        }
        Lacking::Refused(_) => None,
    }
}
