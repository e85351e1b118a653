//! What is wrong with a schedule, a zone or a duration, in the words that its author used.

use std::fmt;

/// One fault: where in the schedule, what was found, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScheduleError {
    /// The crontab field (`minute`, `day of week`), or `schedule`, `time zone`, `duration`.
    pub subject: String,
    pub found: String,
    pub expected: String,
    pub hint: Option<String>,
}

impl ScheduleError {
    pub(crate) fn new(
        subject: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> ScheduleError {
        ScheduleError { subject: subject.into(), found: found.into(), expected: expected.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> ScheduleError {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}, expected {}", self.subject, self.found, self.expected)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; hint: {hint}"))
    }
}

impl std::error::Error for ScheduleError {}
