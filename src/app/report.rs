//! What a command found, before anyone renders it: the terminal, JSON and Actions outputs are all made from this.

use chrono::{DateTime, Utc};

use crate::core::claim::{Handle, Outcome};
use crate::core::decision::{Link, Reason, Seen, Stop, Verdict};
use crate::core::key::{Key, Task};
use crate::core::marker::Marker;

/// What is left of the budget when the verdict fell, where the policy sets a cap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetLeft {
    /// Runs that may still start this hour.
    pub runs_hour: Option<u32>,
    /// Runs that may still start this day.
    pub runs_day: Option<u32>,
    /// Cents that may still be spent this day.
    pub cost_day_cents: Option<u64>,
}

/// The result of `check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason; `None` for a plain `proceed`.
    pub reason: Option<Reason>,
    /// One sentence.
    pub message: String,
    /// A further line for errors: what can be done.
    pub hint: Option<String>,
    /// What each gate saw, up to the one that objected.
    pub path: Vec<Seen>,
    /// Links that show it.
    pub evidence: Vec<Link>,
    /// When asking again may have another answer, by GitHub's clock.
    pub retry_at: Option<DateTime<Utc>>,
    /// When it was decided, by GitHub's clock; `None`: nothing was asked from GitHub.
    pub decided_at: Option<DateTime<Utc>>,
    /// `owner/name`, if the payload could be read.
    pub repository: Option<String>,
    /// The page of the issue, pull request or comment.
    pub resource_url: Option<String>,
    /// The task.
    pub task: Task,
    /// The key, if the payload could be read.
    pub key: Option<Key>,
    /// The claim that was made, or with `--dry-run` none.
    pub claim: Option<Handle>,
    /// The claim's number, or with `--dry-run` the number that it would have had.
    pub fence: Option<u32>,
    /// The marker for what the agent writes.
    pub marker: Option<Marker>,
    /// The page of the run that asked.
    pub source_run_url: Option<String>,
    /// The page of an earlier result.
    pub result_url: Option<String>,
    /// The head commit of a pull request: the only one to check out.
    pub head_sha: Option<String>,
    /// What is left of the budget.
    pub budget: BudgetLeft,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Things that a person should know and that changed nothing: a degraded read, a refused reaction.
    pub warnings: Vec<String>,
}

impl CheckReport {
    /// Whether the agent may start.
    pub fn proceeds(&self) -> bool {
        self.verdict == Verdict::Proceed
    }

    /// A report of a stop of which nothing but the task is known.
    pub fn stopped(task: Task, stop: Stop) -> Self {
        let result_url = stop.evidence.iter().find(|l| l.what == "the result").map(|l| l.url.clone());
        Self {
            verdict: stop.verdict,
            reason: Some(stop.reason),
            message: stop.message,
            hint: None,
            path: Vec::new(),
            evidence: stop.evidence,
            retry_at: stop.retry_at,
            decided_at: None,
            repository: None,
            resource_url: None,
            task,
            key: None,
            claim: None,
            fence: None,
            marker: None,
            source_run_url: None,
            result_url,
            head_sha: None,
            budget: BudgetLeft::default(),
            dry_run: false,
            warnings: Vec::new(),
        }
    }

    /// A group name per resource, for the agent job's own `concurrency`.
    pub fn partition(&self) -> Option<String> {
        let key = self.key.as_ref()?;
        Some(format!("run-guard-{}", key.resource().to_string().replace('/', "-")))
    }
}

/// The result of `finish`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishReport {
    /// The claim, if the handle could be read.
    pub claim: Option<Handle>,
    /// How it ended; `None` if nothing was settled.
    pub outcome: Option<Outcome>,
    /// One sentence: why this outcome, or why none.
    pub message: String,
    /// What the agent cost, in cents, where it is known.
    pub cost_cents: Option<u64>,
    /// How many turns the agent took, where it is known.
    pub turns: Option<u64>,
    /// What a person should know. A failed release is here: it does not fail the job.
    pub warnings: Vec<String>,
}

/// The result of `verify`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// The claim, if the handle could be read.
    pub claim: Option<Handle>,
    /// Whether the run may still publish.
    pub holds: bool,
    /// One sentence: what was seen, or why not.
    pub message: String,
    /// The head commit of a pull request, as it is now.
    pub head_sha: Option<String>,
}
