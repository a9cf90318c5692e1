//! Scenarios: what happens on GitHub, step by step, and what run-guard is expected to say to it. `docs/scenarios.md`
//! describes the file for those who write one.

mod build;
mod read;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

pub use build::{GUARD_TOKEN, claim_key};

use super::{Access, Scope};
use crate::config::located::LocatedError;
use crate::core::claim::{Cause, LedgerChoice, Outcome};
use crate::core::decision::{OnError, Reason, Verdict};
use crate::core::facts::Permission;
use crate::core::key::Task;

/// A scenario that was read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The file's name, for messages.
    pub origin: String,
    /// What it is about, in one line.
    pub about: String,
    /// When it starts.
    pub start: DateTime<Utc>,
    /// `owner/name`.
    pub repository: String,
    /// The repository's numeric id.
    pub repository_id: u64,
    /// Whether the repository is private.
    pub private: bool,
    /// People and their permissions.
    pub people: Vec<(String, Permission)>,
    /// Bots, beside `claude[bot]` and `github-actions[bot]`.
    pub bots: Vec<String>,
    /// The text of the policy file, if there is one.
    pub policy: Option<String>,
    /// What the guard step's token may do.
    pub permissions: Vec<(Scope, Access)>,
    /// The workflows that have a guard step.
    pub workflows: Vec<Workflow>,
    /// What is on GitHub before the first step.
    pub before: Before,
    /// What happens.
    pub timeline: Vec<Step>,
    /// What must hold at the end.
    pub expect: End,
}

/// What is wrong with a scenario file, and where.
pub type ScenarioError = LocatedError;

impl Scenario {
    /// Reads a scenario file; `origin` is its name in errors.
    ///
    /// # Errors
    ///
    /// The first mistake in it.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        read::scenario(text, origin)
    }
}

/// A workflow with a guard step, an agent step and a finish step.
#[derive(Clone, Debug, PartialEq)]
pub struct Workflow {
    /// Its name.
    pub name: String,
    /// What the agent would do.
    pub task: Task,
    /// The events that start it, each with its actions; no actions: every one.
    pub on: Vec<(String, Vec<String>)>,
    /// The inputs of the guard step.
    pub inputs: Inputs,
    /// What its agent does, where a step does not say.
    pub agent: Agent,
}

impl Workflow {
    /// Whether an event starts it.
    pub fn wants(&self, event: &str, action: &str) -> bool {
        self.on.iter().any(|(name, actions)| {
            name == event && (actions.is_empty() || actions.iter().any(|wanted| wanted == action))
        })
    }
}

/// The inputs of a guard step that differ from their defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs {
    /// The ledger, if not the policy's.
    pub ledger: Option<LedgerChoice>,
    /// Whether people without write permission may start it.
    pub anyone: bool,
    /// Whether everything is paused.
    pub paused: bool,
    /// What becomes of a verdict that says that no decision could be made.
    pub on_error: OnError,
    /// How long the guard step may take.
    pub deadline: TimeDelta,
}

impl Default for Inputs {
    fn default() -> Self {
        Self {
            ledger: None,
            anyone: false,
            paused: false,
            on_error: OnError::Default,
            deadline: TimeDelta::seconds(120),
        }
    }
}

/// What the stand-in for the agent does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// How long it takes.
    pub takes: TimeDelta,
    /// What it comments before it ends; `None`: nothing.
    pub comments: Option<String>,
    /// What it says that it cost, in cents.
    pub costs: Option<u64>,
    /// How it ends.
    pub ends: AgentEnd,
    /// What is expected of the runs that its comment starts.
    pub expect: Expected,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            takes: TimeDelta::minutes(3),
            comments: None,
            costs: None,
            ends: AgentEnd::Success,
            expect: Expected::Anything,
        }
    }
}

impl Agent {
    /// The same but for what `says` says.
    #[must_use]
    pub fn with(&self, says: &AgentSays) -> Self {
        Self {
            takes: says.takes.unwrap_or(self.takes),
            comments: says.comments.clone().unwrap_or_else(|| self.comments.clone()),
            costs: says.costs.or(self.costs),
            ends: says.ends.unwrap_or(self.ends),
            expect: says.expect.clone().unwrap_or_else(|| self.expect.clone()),
        }
    }
}

/// What a scenario says of an agent; the rest is as usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSays {
    /// How long it takes.
    pub takes: Option<TimeDelta>,
    /// What it comments, or that it does not.
    pub comments: Option<Option<String>>,
    /// What it says that it cost, in cents.
    pub costs: Option<u64>,
    /// How it ends.
    pub ends: Option<AgentEnd>,
    /// What is expected of the runs that its comment starts.
    pub expect: Option<Expected>,
}

/// How an agent ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentEnd {
    /// It succeeds.
    Success,
    /// It fails, and its step too.
    Failure,
    /// Its step is cancelled; `finish` runs.
    Cancelled,
    /// The whole run is killed: `finish` never runs, and GitHub shows the run as cancelled.
    Killed,
    /// It never ends.
    Never,
}

/// What is on GitHub before the first step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Issues and pull requests.
    pub items: Vec<ItemBefore>,
    /// Labels of the repository.
    pub labels: Vec<String>,
    /// Workflow runs.
    pub runs: Vec<RunBefore>,
    /// Claims of the ledger.
    pub claims: Vec<ClaimBefore>,
}

/// An issue or pull request that is there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemBefore {
    /// Its number.
    pub number: u64,
    /// Whether it is a pull request.
    pub pull_request: bool,
    /// When it was opened.
    pub at: DateTime<Utc>,
    /// Who opened it.
    pub author: String,
    /// Its title.
    pub title: String,
    /// Its text; empty for none.
    pub body: String,
    /// Its labels, put on by the author when it was opened.
    pub labels: Vec<String>,
    /// Whether it is open.
    pub open: bool,
    /// Whether it is a draft.
    pub draft: bool,
    /// Whether it is merged.
    pub merged: bool,
    /// Whether its conversation is locked.
    pub locked: bool,
    /// Its comments.
    pub comments: Vec<CommentBefore>,
}

/// A comment that is there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentBefore {
    /// The name by which steps and claims refer to it.
    pub id: Option<String>,
    /// Who wrote it.
    pub by: String,
    /// When.
    pub at: DateTime<Utc>,
    /// What it says.
    pub text: String,
}

/// A workflow run that is there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunBefore {
    /// Its id.
    pub id: u64,
    /// The event that started it.
    pub event: String,
    /// Whose event it was.
    pub by: String,
    /// Its newest attempt.
    pub attempt: u32,
    /// When that started.
    pub at: DateTime<Utc>,
    /// How it ended and when; `None`: it is still going.
    pub ended: Option<(String, DateTime<Utc>)>,
    /// The last sign of life of a run that is still going.
    pub active: DateTime<Utc>,
}

/// A claim that is there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimBefore {
    /// Which one.
    pub name: ClaimName,
    /// The run that owns it.
    pub run: u64,
    /// The run's attempt.
    pub attempt: u32,
    /// Why it was opened.
    pub cause: Cause,
    /// When it was opened.
    pub opened: DateTime<Utc>,
    /// How it ended and when; `None`: it is open.
    pub settled: Option<(Outcome, DateTime<Utc>)>,
    /// What it cost, in cents.
    pub costs: Option<u64>,
    /// The comment that holds its result, by name.
    pub result: Option<String>,
}

/// A claim by what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimName {
    /// The task.
    pub task: Task,
    /// The issue or pull request.
    pub item: u64,
    /// The comment that is the version of its key, by name.
    pub comment: Option<String>,
    /// Its number.
    pub number: u32,
}

/// One step of the timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The line of the file on which it starts.
    pub line: usize,
    /// The name by which others refer to it.
    pub id: Option<String>,
    /// When it happens.
    pub at: DateTime<Utc>,
    /// Who does it.
    pub by: String,
    /// What happens.
    pub act: Act,
    /// The event's name, instead of what the act gives.
    pub event: Option<String>,
    /// What is put over the payload that the act gives.
    pub payload: Option<Value>,
    /// How its events are delivered.
    pub delivery: Delivery,
    /// What the agent does in runs that this step starts, where it is not as usual.
    pub agent: AgentSays,
    /// What is expected of the runs that it starts.
    pub expect: Expected,
}

/// What somebody does on GitHub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Opens an issue.
    Open {
        /// Its number.
        number: u64,
        /// Its title.
        title: String,
        /// Its text; empty for none.
        body: String,
        /// Labels that it is opened with.
        labels: Vec<String>,
    },
    /// Writes a comment.
    Comment {
        /// On which item.
        item: u64,
        /// What it says.
        text: String,
    },
    /// Edits an issue's title or text.
    EditIssue {
        /// Which one.
        number: u64,
        /// The new title.
        title: Option<String>,
        /// The new text.
        body: Option<String>,
    },
    /// Edits a comment.
    EditComment {
        /// Which one, by name.
        comment: String,
        /// The new text.
        text: String,
    },
    /// Deletes a comment.
    DeleteComment {
        /// Which one, by name.
        comment: String,
    },
    /// Puts labels on an issue.
    AddLabels {
        /// On which one.
        number: u64,
        /// Which.
        labels: Vec<String>,
    },
    /// Takes labels off an issue.
    RemoveLabels {
        /// Off which one.
        number: u64,
        /// Which.
        labels: Vec<String>,
    },
    /// Deletes labels in the whole repository, which tells no workflow.
    DeleteLabels {
        /// Which.
        labels: Vec<String>,
    },
    /// Does something to an issue that needs no more words.
    Issue {
        /// To which one.
        number: u64,
        /// What.
        what: IssueAct,
    },
    /// Assigns an issue.
    Assign {
        /// Which one.
        number: u64,
        /// To whom.
        to: String,
        /// Whether it is taken away instead.
        away: bool,
    },
    /// Commits another policy file on the default branch, which tells no workflow here.
    Policy {
        /// Its text; `None` removes the file.
        text: Option<String>,
    },
    /// Re-runs a workflow run that an earlier step started.
    Rerun(Reference),
    /// Cancels a workflow run that an earlier step started.
    Cancel(Reference),
    /// GitHub delivers the events of an earlier step once more.
    Again(Reference),
    /// Nothing but the event that the step names.
    Raw,
}

/// What can be done to an issue in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssueAct {
    /// Close it.
    Close,
    /// Open it again.
    Reopen,
    /// Lock its conversation.
    Lock,
    /// Unlock it.
    Unlock,
    /// Delete it.
    Delete,
}

/// An earlier step, or one of the events that it gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The step's place in the timeline.
    pub step: usize,
    /// The action of the event, if one of several is meant.
    pub action: Option<String>,
}

/// How GitHub delivers a step's events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// How much later than it happens.
    pub late: Option<TimeDelta>,
    /// Whether each is delivered twice.
    pub twice: bool,
    /// Whether none is delivered.
    pub never: bool,
}

/// What is expected of the runs of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing is said.
    Anything,
    /// No run at all.
    NoRun(usize),
    /// The same of every run, of which there is at least one.
    Each(Box<Expect>),
    /// As many runs as entries, each run as one of them says, in any order.
    All(usize, Vec<Expect>),
}

/// What is expected of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// The line of the file.
    pub line: usize,
    /// The event's action, or its name and action.
    pub event: Option<String>,
    /// The verdict.
    pub verdict: Option<Verdict>,
    /// The reason.
    pub reason: Option<Reason>,
    /// Why the claim was opened.
    pub cause: Option<Cause>,
    /// The number of the claim.
    pub claim: Option<u32>,
    /// What the sentence contains.
    pub message: Option<String>,
    /// What one of the links contains.
    pub link: Option<String>,
    /// A link to a run of this step.
    pub points_to: Option<PointsTo>,
    /// How the claim ended.
    pub outcome: Option<Outcome>,
}

/// Whose run is linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PointsTo {
    /// Another run of the same step.
    Other,
    /// A run of an earlier step.
    Step(Reference),
}

/// What must hold at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// How often an agent was started.
    pub agent_starts: Option<(usize, usize)>,
    /// How many runs the guard step judged.
    pub runs: Option<(usize, usize)>,
    /// Issues and pull requests.
    pub items: Vec<ItemEnd>,
    /// Claims.
    pub claims: Vec<ClaimEnd>,
}

/// What must hold of an issue or pull request at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemEnd {
    /// The line of the file.
    pub line: usize,
    /// Which one.
    pub number: u64,
    /// Whether it is open.
    pub open: Option<bool>,
    /// All labels that it carries, in any order.
    pub labels: Option<Vec<String>>,
    /// How many comments it has.
    pub comments: Option<usize>,
}

/// What must hold of a claim at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimEnd {
    /// The line of the file.
    pub line: usize,
    /// Which one.
    pub name: ClaimName,
    /// Whether there is none of that name.
    pub absent: bool,
    /// Why it was opened.
    pub cause: Option<Cause>,
    /// How it ended; `Some(None)`: it is open.
    pub outcome: Option<Option<Outcome>>,
    /// What it cost, in cents.
    pub costs: Option<u64>,
}
