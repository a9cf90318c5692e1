//! How an agent's work ended: what the runner, the agent and GitHub say in, one outcome and one sentence out.
//!
//! What is not known is for a person to look at; nothing is guessed. What the agent says of itself is a statement: it
//! can make of a success a failure, but what it wrote is read back from GitHub.

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

use super::claim::Outcome;
use super::execution::{AgentResult, Execution};
use super::facts::{Branch, Fact, LabelEvent, ResourceState, Written};
use super::identity::{Actor, Who, who};
use super::key::Resource;
use super::policy::Policy;
use super::text::is_working_notice;

/// The folder of the branches that agents make, as claude-code-action names them: `claude/issue-N-…`, `claude/pr-N-…`.
pub const AGENT_BRANCHES: &str = "claude/";

/// What the labels of run-guard itself start with: they are no evidence of an agent.
const OWN_LABELS: &str = "run-guard:";

/// How a step of the agent ended, by the runner's word (`steps.ID.outcome`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// It succeeded.
    Success,
    /// It failed.
    Failure,
    /// It was cancelled.
    Cancelled,
    /// It did not run.
    Skipped,
}

impl StepOutcome {
    /// The runner's word for it.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "success" => Some(Self::Success),
            "failure" => Some(Self::Failure),
            "cancelled" => Some(Self::Cancelled),
            "skipped" => Some(Self::Skipped),
            _ => None,
        }
    }

    /// What several steps of one job come to: the agent did its work only if each step that ran did.
    pub fn of_all(steps: &[Self]) -> Option<Self> {
        let worst = [Self::Cancelled, Self::Failure, Self::Success, Self::Skipped];
        worst.into_iter().find(|outcome| steps.contains(outcome))
    }
}

/// What the agent is known to have written since the claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrote {
    /// It cannot be told; why, as words that go on from "and".
    Unknown(String),
    /// Nothing that can be seen.
    Nothing,
    /// Something.
    Something {
        /// What, with its article.
        what: String,
        /// Its page, where it has one.
        url: Option<String>,
        /// The comment that it is, by id.
        comment: Option<u64>,
    },
}

/// What was read back of a resource since a claim on it.
#[derive(Clone, Copy, Debug)]
pub struct ReadBack<'a> {
    /// The issue or pull request, as it is now.
    pub resource: &'a Fact<Option<ResourceState>>,
    /// What was written beside comments and labels.
    pub written: &'a Written,
    /// What the claim is about.
    pub about: &'a Resource,
    /// The token's own login.
    pub viewer: Option<&'a str>,
    /// Who counts as an agent.
    pub policy: &'a Policy,
    /// When the claim was made.
    pub since: DateTime<Utc>,
}

impl ReadBack<'_> {
    fn is_agent(&self, actor: Option<&Actor>) -> bool {
        matches!(who(actor, self.viewer, self.policy), Who::SelfBot | Who::Agent)
    }

    /// What the agent wrote: the trace that tells most, or, if there is none, whether one would be seen.
    pub fn wrote(&self) -> Wrote {
        let Fact::Known(resource) = self.resource else {
            return Wrote::Unknown("what it wrote could not be read".to_owned());
        };
        match self.trace(resource.as_ref()) {
            Some(trace) => trace,
            None => self.unseen(resource.as_ref()).map_or(Wrote::Nothing, |why| Wrote::Unknown(why.to_owned())),
        }
    }

    fn trace(&self, resource: Option<&ResourceState>) -> Option<Wrote> {
        let some =
            |what: String, url: Option<&String>, comment| Some(Wrote::Something { what, url: url.cloned(), comment });
        let comments = resource.map_or(&[][..], |resource| &resource.comments);
        let comment = comments
            .iter()
            .rev()
            .find(|c| c.updated_at >= self.since && self.is_agent(c.author.as_ref()) && !is_working_notice(&c.body));
        if let Some(comment) = comment {
            return some("a comment".to_owned(), Some(&comment.url), Some(comment.id));
        }
        let reviews = self.written.reviews.known().map_or(&[][..], Vec::as_slice);
        let by_agent = |author: Option<&Actor>, at| at >= self.since && self.is_agent(author);
        if let Some(review) = reviews.iter().rev().find(|r| by_agent(r.author.as_ref(), r.submitted_at)) {
            return some("a review".to_owned(), Some(&review.url), None);
        }
        let pulls = self.written.pulls.known().map_or(&[][..], Vec::as_slice);
        let opened = |pull: &&super::facts::OpenedPull| pull.created_at >= self.since && self.is_named(&pull.branch);
        if let Some(pull) = pulls.iter().find(opened) {
            return some(format!("pull request {}", pull.number), Some(&pull.url), None);
        }
        let branches = self.written.branches.known().map_or(&[][..], Vec::as_slice);
        if let Some(branch) = branches.iter().find(|branch| self.is_named(&branch.name) && self.is_new(branch)) {
            return some(format!("the branch {}", branch.name), None, None);
        }
        let events = resource.map_or(&[][..], |resource| &resource.label_events);
        let of_agent = |e: &&LabelEvent| by_agent(e.actor.as_ref(), e.at) && !e.label.starts_with(OWN_LABELS);
        let event = events.iter().rev().find(of_agent)?;
        some(format!("the label {}", event.label), None, None)
    }

    /// Whether a branch has the name that an agent at work on the resource gives to one.
    fn is_named(&self, branch: &str) -> bool {
        let (Some(rest), Some(number)) = (branch.strip_prefix(AGENT_BRANCHES), self.about.number()) else {
            return false;
        };
        ["issue", "pr"].iter().any(|kind| rest.starts_with(&format!("{kind}-{number}-")))
    }

    /// Whether a branch was pushed to since the claim, or was made since by the time in its name: a new branch may
    /// still point to an old commit.
    fn is_new(&self, branch: &Branch) -> bool {
        let made = branch.name.get(branch.name.len().saturating_sub("YYYYMMDD-HHMM".len())..);
        let made = made.and_then(|stamp| NaiveDateTime::parse_from_str(&format!("{stamp}00"), "%Y%m%d-%H%M%S").ok());
        // The name tells minutes.
        let named_since = made.is_some_and(|made| made.and_utc() + TimeDelta::minutes(1) > self.since);
        named_since || branch.committed_at.is_none_or(|at| at >= self.since)
    }

    /// Why a trace could be there and not be seen.
    fn unseen(&self, resource: Option<&ResourceState>) -> Option<&'static str> {
        if self.viewer.is_none() {
            return Some("it is not known which account its comments would be by");
        }
        let Some(resource) = resource else { return Some("the item is not there any more") };
        let seen = u64::try_from(resource.comments.len()).unwrap_or(u64::MAX);
        if resource.comment_total > seen && resource.comments.first().is_none_or(|c| c.created_at >= self.since) {
            return Some("so many comments came since the claim that not all can be seen");
        }
        let reviews = self.written.reviews.known().filter(|reviews| {
            !self.written.more_reviews || reviews.first().is_some_and(|oldest| oldest.submitted_at < self.since)
        });
        if reviews.is_none() {
            return Some("the reviews since the claim could not all be read");
        }
        // Every pull request of the agent's has its branch, so that the branches tell of both.
        self.written.branches.known().is_none().then_some("the branches could not be read")
    }
}

/// What is known when the agent has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    /// How the agent's steps ended, as far as it was said.
    pub steps: &'a [StepOutcome],
    /// What the agent's execution files say.
    pub executions: &'a [Execution],
    /// What it wrote.
    pub wrote: &'a Wrote,
    /// Whether everything that the task may do leaves traces that were looked for.
    pub can_be_read_back: bool,
    /// Whether the head commit that the claim is about has been replaced by another.
    pub head_moved: bool,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The outcome.
    pub outcome: Outcome,
    /// Why, in one sentence.
    pub why: String,
}

/// The rule.
pub fn ended(ending: &Ending<'_>) -> Ended {
    let end = by_word(ending);
    // What was to be done again for the new head anyway is not held against it.
    let gives_way = matches!(end.outcome, Outcome::Completed | Outcome::FailedBeforeWrite);
    if ending.head_moved && gives_way {
        let why = format!("{}; the head has moved since the claim", end.why);
        return Ended { outcome: Outcome::Superseded, why };
    }
    end
}

fn by_word(ending: &Ending<'_>) -> Ended {
    let several = ending.steps.len() > 1;
    let (step, steps) = if several { ("steps", "one of the agent's steps") } else { ("step", "the agent's step") };
    let says = |outcome, why: String| Ended { outcome, why };
    let result = all_results(ending.executions);
    match (StepOutcome::of_all(ending.steps), &result) {
        (Some(StepOutcome::Skipped), _) => says(Outcome::Withdrawn, format!("the agent's {step} did not run")),
        (Some(StepOutcome::Cancelled), _) => failed(ending, &format!("{steps} was cancelled")),
        (Some(StepOutcome::Failure), Execution::Result(result)) if !result.success => {
            failed(ending, &format!("the agent failed ({})", in_words(result)))
        }
        (Some(StepOutcome::Failure), _) => failed(ending, &format!("{steps} failed")),
        (Some(StepOutcome::Success) | None, Execution::Result(result)) if !result.success => {
            failed(ending, &format!("the agent says that it failed ({})", in_words(result)))
        }
        (Some(StepOutcome::Success) | None, Execution::Result(_)) => {
            says(Outcome::Completed, "the agent says that it succeeded".to_owned())
        }
        (Some(StepOutcome::Success), Execution::NotGiven) => {
            says(Outcome::Completed, format!("the agent's {step} succeeded"))
        }
        (_, Execution::Unreadable(why)) => {
            says(Outcome::NeedsReview, format!("the execution file could not be read: {why}"))
        }
        (_, Execution::NoResult) => says(Outcome::NeedsReview, "the execution file holds no result".to_owned()),
        (None, Execution::NotGiven) => {
            says(Outcome::NeedsReview, "neither the step's outcome nor an execution file was given".to_owned())
        }
    }
}

/// A failure: what it left behind decides whether the work may simply be tried again.
fn failed(ending: &Ending<'_>, how: &str) -> Ended {
    let (outcome, why) = match ending.wrote {
        Wrote::Something { what, .. } => (Outcome::FailedAfterWrite, format!("{how}, and it had written {what}")),
        Wrote::Unknown(why) => (Outcome::NeedsReview, format!("{how}, and {why}")),
        Wrote::Nothing if ending.can_be_read_back => {
            (Outcome::FailedBeforeWrite, format!("{how}, and it had written nothing"))
        }
        Wrote::Nothing => (Outcome::NeedsReview, format!("{how}, and the task may do what cannot be read back")),
    };
    Ended { outcome, why }
}

fn in_words(result: &AgentResult) -> String {
    let subtype = result.subtype.as_deref().unwrap_or("no subtype");
    // An agent that cannot begin, such as for want of a valid key, says so with a cost of nothing.
    if result.cost_cents == Some(0) { format!("{subtype}, at no cost") } else { subtype.to_owned() }
}

/// What several execution files say together: a success if each holds one, and what cannot be read counts before what
/// can. Costs and turns are added up; one that is not known leaves the sum unknown.
pub fn all_results(executions: &[Execution]) -> Execution {
    let mut sum: Option<AgentResult> = None;
    let mut without_result = false;
    for execution in executions {
        match execution {
            Execution::NotGiven => {}
            Execution::Unreadable(why) => return Execution::Unreadable(why.clone()),
            Execution::NoResult => without_result = true,
            Execution::Result(result) => {
                sum = Some(match sum.take() {
                    None => result.clone(),
                    Some(before) => AgentResult {
                        success: before.success && result.success,
                        subtype: if before.success { result.subtype.clone() } else { before.subtype },
                        cost_cents: before.cost_cents.zip(result.cost_cents).map(|(a, b)| a.saturating_add(b)),
                        turns: before.turns.zip(result.turns).map(|(a, b)| a.saturating_add(b)),
                    },
                });
            }
        }
    }
    match sum {
        _ if without_result => Execution::NoResult,
        Some(result) => Execution::Result(result),
        None => Execution::NotGiven,
    }
}
