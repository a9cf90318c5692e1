//! The gates: one file each, one pure check of facts against policy. The first that objects decides.

pub mod budget;
pub mod claim;
pub mod duplicate;
pub mod r#loop;
pub mod resume;
pub mod state;
pub mod trigger;

use chrono::{DateTime, Utc};

pub use super::decision::Judgement;

use super::claim::{Claim, ClaimState, Settlement};
use super::decision::Stop;
use super::facts::Facts;
use super::identity::{Actor, Who, who};
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
    /// What an account is under this policy.
    pub fn who(&self, actor: Option<&Actor>) -> Who {
        who(actor, self.facts.viewer(), self.policy)
    }

    /// What the trigger's sender is.
    pub fn sender(&self) -> Who {
        self.who(self.trigger.sender.as_ref())
    }

    /// The person who re-ran the workflow, if a person did: a re-run by automation is no wish of anybody's.
    pub fn rerun_by_person(&self) -> Option<Actor> {
        self.trigger.rerunner().filter(|rerunner| self.who(Some(rerunner)) == Who::Person)
    }

    /// Who asks: the person who re-ran the workflow, else the sender.
    pub fn asker(&self) -> Option<Actor> {
        self.rerun_by_person().or_else(|| self.trigger.sender.clone())
    }

    /// The page of a workflow run of this repository.
    pub fn run_url(&self, run: u64) -> String {
        format!("{}/actions/runs/{run}", self.trigger.repository_url)
    }

    /// Adds to a stop the link of the run that a claim belongs to and, if the claim names one, of its result.
    fn with_claim_links(&self, stop: Stop, claim: &Claim) -> Stop {
        let run = claim.record.owner.run;
        let stop = stop.with_link(format!("run {run}"), self.run_url(run));
        let ClaimState::Settled(Settlement { result_comment: Some(id), .. }) = &claim.record.state else {
            return stop;
        };
        match self.facts.live().and_then(|resource| resource.comments.iter().find(|c| c.id == *id)) {
            Some(comment) => stop.with_link("the result", comment.url.clone()),
            None => stop,
        }
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
