//! The gates: one file each, one pure check of facts against policy. The first that objects decides.

pub mod budget;
pub mod claim;
pub mod duplicate;
pub mod r#loop;
pub mod state;
pub mod trigger;

use chrono::{DateTime, Utc};

pub use super::decision::Judgement;

use super::facts::Facts;
use super::identity::{Who, who};
use super::key::{Key, Task};
use super::policy::{Policy, TaskPolicy};
use super::trigger::Trigger;

/// Everything that a gate may look at.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// What happened.
    pub trigger: &'a Trigger,
    /// What the agent would do.
    pub task: &'a Task,
    /// The piece of work.
    pub key: &'a Key,
    /// The repository's policy.
    pub policy: &'a Policy,
    /// The task's policy.
    pub rules: &'a TaskPolicy,
    /// What is known of GitHub.
    pub facts: &'a Facts,
    /// The time of the decision.
    pub now: DateTime<Utc>,
}

impl Context<'_> {
    /// What the trigger's sender is.
    pub fn sender(&self) -> Who {
        who(self.trigger.sender.as_ref(), self.facts.viewer.known().map(String::as_str), self.policy)
    }

    /// What whoever asks is: the person who re-ran the workflow, else the sender.
    pub fn asker(&self) -> Who {
        let asker = self.trigger.asker();
        who(asker.as_ref(), self.facts.viewer.known().map(String::as_str), self.policy)
    }

    /// The page of a workflow run of this repository.
    pub fn run_url(&self, run: u64) -> String {
        format!("https://{}/{}/actions/runs/{run}", self.trigger.host, self.trigger.repository)
    }
}

/// A span of time in words: the largest unit, rounded down.
pub(crate) fn in_words(span: chrono::TimeDelta) -> String {
    let seconds = span.num_seconds().max(0);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A time of day, UTC.
pub(crate) fn clock(at: DateTime<Utc>) -> String {
    at.format("%H:%M UTC").to_string()
}
