//! `finish`: the step after the agent. It reads how the agent ended, writes the outcome into the run's own claim and
//! puts the shared label on the item. Failing to do so warns; it never fails the job.

use chrono::{DateTime, TimeDelta, Utc};

use super::World;
use super::patient::Patient;
use super::report::FinishReport;
use super::sweep::Sweep;
use crate::config;
use crate::core::claim::{
    Claim, ClaimRead, ClaimState, Handle, Outcome, Owner, Record, Settlement, done_label, review_label,
};
use crate::core::execution::Execution;
use crate::core::facts::{Comment, Fact, ResourceState, Window};
use crate::core::identity::{Who, who};
use crate::core::policy::{Memory, Policy};
use crate::core::sweep::{Waits, pick};
use crate::core::trigger::RunContext;
use crate::ledger::AnyLedger;
use crate::ports::{Clock, FactsQuery, FactsReply, GitHub, Ledger, PolicyRead, PortError, RepoName};

/// The most requests that `finish` takes, if none has to be repeated.
const MOST_REQUESTS: u32 = 6;

/// How the agent's step ended, by the runner's word (`steps.ID.outcome`).
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
}

/// What `finish` is told.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishInput {
    /// The guard step's claim.
    pub claim: Handle,
    /// The repository.
    pub repo: RepoName,
    /// The run that finishes.
    pub run: RunContext,
    /// How the agent's step ended, if it was said.
    pub step: Option<StepOutcome>,
    /// What the agent's execution file says.
    pub execution: Execution,
    /// The outcome, if a person or workflow names it.
    pub outcome: Option<Outcome>,
    /// How long the command may take.
    pub deadline: TimeDelta,
}

/// Settles the run's claim.
pub async fn finish<G: GitHub, C: Clock>(world: &World<'_, G, C>, input: &FinishInput) -> FinishReport {
    let (cost_cents, turns) = match &input.execution {
        Execution::Result(result) => (result.cost_cents, result.turns),
        _ => (None, None),
    };
    let mut report = FinishReport {
        claim: Some(input.claim.clone()),
        outcome: None,
        message: String::new(),
        cost_cents,
        turns,
        warnings: Vec::new(),
    };
    let deadline = world.clock.now() + input.deadline;
    let patient = Patient::new(world.github, world.clock, deadline);
    let world = &World { github: &patient, clock: world.clock, nonce: world.nonce.clone() };
    let ledger = AnyLedger::of(&input.claim, world.github);
    match settle(world, &ledger, input, &mut report).await {
        Err(warning) => {
            "the claim was not settled".clone_into(&mut report.message);
            report.warnings.push(warning);
        }
        Ok(Some((policy, listed))) => {
            let requests = MOST_REQUESTS.saturating_sub(patient.asked());
            let owner = Owner { run: input.run.run, attempt: input.run.attempt, nonce: world.nonce.clone() };
            let sweep = Sweep { world, ledger: &ledger, repo: &input.repo, policy: &policy, owner, deadline, requests };
            sweep_on_the_side(sweep, input, &listed, &mut report).await;
        }
        Ok(None) => {}
    }
    report
}

/// Does one phase of one sweep, if one is due. A sweep that cannot be done waits for the next one who can.
async fn sweep_on_the_side<G: GitHub, C: Clock>(
    mut sweep: Sweep<'_, G, C>,
    input: &FinishInput,
    listed: &Window,
    report: &mut FinishReport,
) {
    let Some(now) = sweep.world.github.server_time() else { return };
    let waits = Waits::new(sweep.policy.longest_window());
    let Some(key) = pick(listed, &input.claim.key, now, waits, input.run.run) else { return };
    if let Err(error @ (PortError::Denied { .. } | PortError::Malformed { .. })) = sweep.one_phase(&key).await {
        report.warnings.push(format!("old claims of {key} could not be swept: {error}"));
    }
}

/// Settles the claim; what a sweep on the side needs, if the claim was one's own to settle.
async fn settle<G: GitHub, C: Clock>(
    world: &World<'_, Patient<'_, G, C>, C>,
    ledger: &AnyLedger<'_, Patient<'_, G, C>>,
    input: &FinishInput,
    report: &mut FinishReport,
) -> Result<Option<(Policy, Window)>, String> {
    let Handle { key, number, .. } = &input.claim;
    let query = FactsQuery {
        repo: input.repo.clone(),
        number: key.resource().number(),
        claims: ledger.probe_one(key, *number),
        window: ledger.sweep_listing(),
        written: None,
    };
    // The claim was made by this run, so a read that does not show it is most likely one that lags.
    let shows = |reply: &FactsReply| match reply.claims.known().map(|probed| ledger.claims(key, probed)) {
        Some(Ok(claims)) => claims.contains_key(number),
        Some(Err(_)) | None => true,
    };
    let read = world.github.await_sight(async || world.github.facts(&query).await, shows);
    let reply = read.await.map_err(|e| e.to_string())?;
    if let Some(repository) = reply.repository.known()
        && repository.id != key.repository()
    {
        return Err(format!("the claim is of another repository (id {}) than {}", key.repository(), input.repo));
    }
    let probed = reply.claims.known().ok_or("the claim could not be read")?;
    let claim = own_claim(ledger.claims(key, probed)?.remove(number), input)?;
    if let ClaimState::Settled(settlement) = &claim.record.state {
        report.outcome = Some(settlement.outcome);
        report.message = format!("claim {number} was settled {} already", settlement.outcome);
        return Ok(None);
    }
    let policy = match &reply.policy {
        PolicyRead::Text(text) => config::parse(text, crate::core::policy::POLICY_PATH).unwrap_or_else(|e| {
            report.warnings.push(format!("the policy has a mistake, so its defaults were used: {}", e.in_one_line()));
            Policy::default()
        }),
        PolicyRead::Absent => Policy::default(),
        PolicyRead::Unreadable(why) => {
            report.warnings.push(format!("the policy could not be read, so its defaults were used: {why}"));
            Policy::default()
        }
    };
    let wrote = Wrote::since(&reply, &claim, &policy);
    let (outcome, why) = match input.outcome {
        Some(outcome) => (outcome, "as it was told".to_owned()),
        None => judge(input, &wrote),
    };
    let now = world.github.server_time().unwrap_or_else(|| world.clock.now());
    let settled = Record {
        state: ClaimState::Settled(Settlement {
            outcome,
            at: DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now),
            cost_cents: report.cost_cents,
            result_comment: wrote.comment_id(),
        }),
        ..claim.record.clone()
    };
    // One's own claim can be written once more with the same text. What is not settled may be started again.
    let settling = world.github.insist(async || ledger.rewrite(&input.repo, key, &claim, &settled).await);
    settling.await.map_err(|e| format!("claim {number} could not be settled: {e}"))?;
    report.outcome = Some(outcome);
    report.message = why;
    let resource = reply.resource.known().and_then(Option::as_ref);
    if key.version().is_none()
        && policy.task(key.task()).memory == Memory::Label
        && let Some(resource) = resource
        && let Err(error) = remember(world.github, &input.repo, key.task(), resource, outcome).await
    {
        report.warnings.push(format!("the item was not labelled: {error}"));
    }
    let mut listed = Window::default();
    if let Fact::Known(page) = &reply.window {
        ledger.add_to_window(&mut listed, page);
    }
    Ok(Some((policy, listed)))
}

/// The claim, if it is one's own: nobody else's is ever written to.
fn own_claim(read: Option<ClaimRead>, input: &FinishInput) -> Result<Claim, String> {
    let number = input.claim.number;
    match read {
        None => Err(format!("claim {number} is not there any more, so nothing can be settled")),
        Some(ClaimRead::Unreadable { why, .. }) => Err(format!("claim {number} cannot be read: {why}")),
        Some(ClaimRead::Readable(claim)) => {
            let owner = &claim.record.owner;
            if owner.nonce == input.claim.nonce && owner.run == input.run.run {
                Ok(claim)
            } else {
                Err(format!("claim {number} belongs to run {} and not to this step, so it was left alone", owner.run))
            }
        }
    }
}

/// What the agent is known to have written since the claim.
enum Wrote {
    /// It cannot be told; why.
    Unknown(&'static str),
    /// Nothing that can be seen.
    Nothing,
    /// A comment, by id; the newest.
    Comment(u64),
}

impl Wrote {
    fn since(reply: &FactsReply, claim: &Claim, policy: &Policy) -> Self {
        let Some(Some(resource)) = reply.resource.known() else {
            return Self::Unknown("what the agent wrote could not be read");
        };
        let viewer = reply.viewer.known().map(String::as_str);
        let since = claim.record.opened_at;
        let by_agent = |c: &&Comment| {
            c.updated_at >= since && matches!(who(c.author.as_ref(), viewer, policy), Who::SelfBot | Who::Agent)
        };
        if let Some(comment) = resource.comments.iter().rev().find(by_agent) {
            return Self::Comment(comment.id);
        }
        if reaches_back_to(resource, since) {
            Self::Nothing
        } else {
            Self::Unknown("so many comments came since the claim that not all can be seen")
        }
    }

    const fn comment_id(&self) -> Option<u64> {
        match self {
            Self::Comment(id) => Some(*id),
            Self::Unknown(_) | Self::Nothing => None,
        }
    }
}

/// Whether the comments that were read hold every one written since a time.
fn reaches_back_to(resource: &ResourceState, since: DateTime<Utc>) -> bool {
    let all = usize::try_from(resource.comment_total).is_ok_and(|total| total <= resource.comments.len());
    all || resource.comments.first().is_some_and(|c| c.created_at < since)
}

/// How the run ended, from what the runner, the agent and GitHub say. What is not known is for a person to look at.
fn judge(input: &FinishInput, wrote: &Wrote) -> (Outcome, String) {
    let failed = |how: &str| match wrote {
        Wrote::Nothing => (Outcome::FailedBeforeWrite, format!("{how}, and it had written nothing")),
        Wrote::Comment(_) => (Outcome::FailedAfterWrite, format!("{how}, and it had written a comment")),
        Wrote::Unknown(why) => (Outcome::NeedsReview, format!("{how}, and {why}")),
    };
    let says = |text: &str| (Outcome::NeedsReview, text.to_owned());
    match (input.step, &input.execution) {
        (Some(StepOutcome::Skipped), _) => (Outcome::Withdrawn, "the agent's step did not run".to_owned()),
        (Some(StepOutcome::Cancelled), _) => failed("the agent's step was cancelled"),
        (Some(StepOutcome::Failure), Execution::Result(r)) if !r.success => {
            failed(&format!("the agent failed ({})", r.subtype.as_deref().unwrap_or("no subtype")))
        }
        (Some(StepOutcome::Failure), _) => failed("the agent's step failed"),
        (Some(StepOutcome::Success) | None, Execution::Result(r)) if r.success => {
            (Outcome::Completed, "the agent says that it succeeded".to_owned())
        }
        (Some(StepOutcome::Success) | None, Execution::Result(r)) => {
            failed(&format!("the agent says that it failed ({})", r.subtype.as_deref().unwrap_or("no subtype")))
        }
        (Some(StepOutcome::Success), Execution::NotGiven) => {
            (Outcome::Completed, "the agent's step succeeded".to_owned())
        }
        (_, Execution::Unreadable(why)) => says(&format!("the execution file could not be read: {why}")),
        (_, Execution::NoResult) => says("the execution file holds no result"),
        (None, Execution::NotGiven) => says("neither the step's outcome nor an execution file was given"),
    }
}

/// Puts the shared label on the item that says what became of a task, and takes off the one that no longer holds.
async fn remember<G: GitHub>(
    github: &G,
    repo: &RepoName,
    task: &crate::core::key::Task,
    resource: &ResourceState,
    outcome: Outcome,
) -> Result<(), PortError> {
    let (done, review) = (done_label(task), review_label(task));
    let (put, take) = match outcome {
        Outcome::Completed | Outcome::NoChange => (done, review),
        Outcome::FailedAfterWrite | Outcome::NeedsReview => (review, done),
        Outcome::FailedBeforeWrite | Outcome::Superseded | Outcome::Withdrawn => return Ok(()),
    };
    if !resource.has_label(&put) {
        github.add_labels(repo, resource.number, &[put]).await?;
    }
    if resource.has_label(&take) {
        github.remove_label(repo, resource.number, &take).await?;
    }
    Ok(())
}
