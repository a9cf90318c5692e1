//! `finish`: the step after the agent. It reads what the agent wrote and how it ended, writes the outcome into the run's
//! own claim, puts the shared label on the item and stamps the agent's comments. What the outcome is, the core says
//! ([`ended`]). Failing to do any of it warns; it never fails the job.

use chrono::{DateTime, TimeDelta, Utc};

use super::World;
use super::patient::Patient;
use super::report::FinishReport;
use super::sweep::Sweep;
use crate::config;
use crate::core::claim::{
    Claim, ClaimRead, ClaimState, Handle, Outcome, Owner, Record, Settlement, done_label, review_label,
};
use crate::core::ended::{AGENT_BRANCHES, Ending, ReadBack, StepOutcome, Wrote, all_results, ended};
use crate::core::execution::Execution;
use crate::core::facts::{Claims, Comment, Fact, ResourceState, Window};
use crate::core::identity::{Who, who};
use crate::core::marker::Marker;
use crate::core::policy::{Memory, POLICY_PATH, Policy};
use crate::core::sweep::{Waits, pick};
use crate::core::text::is_working_notice;
use crate::core::trigger::RunContext;
use crate::ledger::AnyLedger;
use crate::ports::{Clock, FactsQuery, FactsReply, GitHub, Ledger, PolicyRead, PortError, RepoName};

/// The most requests that `finish` takes, if none has to be repeated.
const MOST_REQUESTS: u32 = 6;

/// What `finish` is told.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishInput {
    /// The guard step's claim.
    pub claim: Handle,
    /// The repository.
    pub repo: RepoName,
    /// The run that finishes.
    pub run: RunContext,
    /// How the agent's steps ended, as far as it was said.
    pub steps: Vec<StepOutcome>,
    /// What the agent's execution files say.
    pub executions: Vec<Execution>,
    /// The outcome, if a person or workflow names it.
    pub outcome: Option<Outcome>,
    /// How long the command may take.
    pub deadline: TimeDelta,
}

/// Settles the run's claim.
pub async fn finish<G: GitHub, C: Clock>(world: &World<'_, G, C>, input: &FinishInput) -> FinishReport {
    let (cost_cents, turns) = match all_results(&input.executions) {
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
    if input.steps.len() > input.executions.len().max(1) && cost_cents.is_some() {
        let warning = "there are more steps than execution files, so that the cost is at least this: a later step \
                       writes over the file of an earlier one";
        report.warnings.push(warning.to_owned());
    }
    let deadline = world.clock.now() + input.deadline;
    let patient = Patient::new(world.github, world.clock, deadline);
    let world = &World { github: &patient, clock: world.clock, nonce: world.nonce.clone() };
    let ledger = AnyLedger::of(&input.claim, world.github);
    let mut finishing = Finishing { patient: &patient, ledger: &ledger, input, report };
    match finishing.settle().await {
        Err(warning) => {
            if finishing.report.message.is_empty() {
                "the claim was not settled".clone_into(&mut finishing.report.message);
            }
            finishing.report.warnings.push(warning);
        }
        Ok(Some(settled)) => {
            finishing.remember_and_stamp(&settled).await;
            let owner = Owner { run: input.run.run, attempt: input.run.attempt, nonce: world.nonce.clone() };
            let (requests, policy) = (finishing.requests_left(), &settled.policy);
            let sweep = Sweep { world, ledger: &ledger, repo: &input.repo, policy, owner, deadline, requests };
            sweep_on_the_side(sweep, input, &settled.listed, &mut finishing.report).await;
        }
        Ok(None) => {}
    }
    finishing.report
}

/// One `finish` on its way.
struct Finishing<'a, G, C> {
    patient: &'a Patient<'a, G, C>,
    ledger: &'a AnyLedger<'a, Patient<'a, G, C>>,
    input: &'a FinishInput,
    report: FinishReport,
}

/// A claim that was settled, and what was read on the way.
struct Settled {
    reply: FactsReply,
    policy: Policy,
    listed: Window,
    since: DateTime<Utc>,
    outcome: Outcome,
}

impl<G: GitHub, C: Clock> Finishing<'_, G, C> {
    fn requests_left(&self) -> u32 {
        MOST_REQUESTS.saturating_sub(self.patient.asked())
    }

    /// Settles the claim; `None` if it was settled already.
    async fn settle(&mut self) -> Result<Option<Settled>, String> {
        let (input, ledger) = (self.input, self.ledger);
        let Handle { key, number, .. } = &input.claim;
        let query = FactsQuery {
            repo: input.repo.clone(),
            number: key.resource().number(),
            claims: ledger.probe(key),
            window: ledger.sweep_listing(),
            written: Some(format!("refs/heads/{AGENT_BRANCHES}")),
        };
        // The claim was made by this run, so a read that does not show it is most likely one that lags.
        let shows = |reply: &FactsReply| match reply.claims.known().map(|probed| ledger.claims(key, probed)) {
            Some(Ok(claims)) => claims.contains_key(number),
            Some(Err(_)) | None => true,
        };
        let read = self.patient.await_sight(async || self.patient.facts(&query).await, shows);
        let reply = read.await.map_err(|e| e.to_string())?;
        if let Some(repository) = reply.repository.known()
            && repository.id != key.repository()
        {
            return Err(format!("the claim is of another repository (id {}) than {}", key.repository(), input.repo));
        }
        let policy = self.policy(&reply.policy);
        let probed = reply.claims.known().ok_or("the claim could not be read")?;
        let mut claims = ledger.claims(key, probed)?;
        let Some(read) = claims.remove(number) else { return self.vanished(&reply, &policy, &claims).await };
        let claim = own_claim(read, input)?;
        if let ClaimState::Settled(settlement) = &claim.record.state {
            self.report.outcome = Some(settlement.outcome);
            self.report.message = format!("claim {number} was settled {} already", settlement.outcome);
            return Ok(None);
        }
        let (outcome, why, comment) = self.judge(&reply, &claim, &policy);
        let now = self.patient.server_time().unwrap_or_else(|| self.patient.now());
        let record = Record {
            state: ClaimState::Settled(Settlement {
                outcome,
                at: DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now),
                cost_cents: self.report.cost_cents,
                result_comment: comment,
            }),
            ..claim.record.clone()
        };
        // To write one's own claim once more with the same text changes nothing.
        let written = self.patient.insist(async || ledger.rewrite(&input.repo, key, &claim, &record).await).await;
        written.map_err(|e| format!("claim {number} could not be settled: {e}"))?;
        self.report.outcome = Some(outcome);
        self.report.message = why;
        let mut listed = Window::default();
        if let Fact::Known(page) = &reply.window {
            ledger.add_to_window(&mut listed, page);
        }
        Ok(Some(Settled { reply, policy, listed, since: claim.record.opened_at, outcome }))
    }

    fn policy(&mut self, read: &PolicyRead) -> Policy {
        let why = match read {
            PolicyRead::Absent => return Policy::default(),
            PolicyRead::Text(text) => match config::parse(text, POLICY_PATH) {
                Ok(policy) => return policy,
                Err(error) => format!("the policy has a mistake, so its defaults were used: {}", error.in_one_line()),
            },
            PolicyRead::Unreadable(why) => format!("the policy could not be read, so its defaults were used: {why}"),
        };
        self.report.warnings.push(why);
        Policy::default()
    }

    /// How it ended, why, and the comment that holds the result.
    fn judge(&self, reply: &FactsReply, claim: &Claim, policy: &Policy) -> (Outcome, String, Option<u64>) {
        let key = &self.input.claim.key;
        let nothing = crate::core::facts::Written::default();
        let read_back = ReadBack {
            resource: &reply.resource,
            written: reply.written.as_ref().unwrap_or(&nothing),
            about: key.resource(),
            viewer: reply.viewer.known().map(String::as_str),
            policy,
            since: claim.record.opened_at,
        };
        let wrote = read_back.wrote();
        let comment = match &wrote {
            Wrote::Something { comment, .. } => *comment,
            Wrote::Unknown(_) | Wrote::Nothing => None,
        };
        if let Some(outcome) = self.input.outcome {
            return (outcome, "as it was told".to_owned(), comment);
        }
        let head = key.head_sha().map(|head| head.to_string());
        let live = reply.resource.known().and_then(Option::as_ref).and_then(|resource| resource.head_sha.as_ref());
        let end = ended(&Ending {
            steps: &self.input.steps,
            executions: &self.input.executions,
            wrote: &wrote,
            can_be_read_back: policy.task(key.task()).may.iter().all(|effect| effect.can_be_read_back()),
            head_moved: head.zip(live).is_some_and(|(head, live)| head != *live),
        });
        (end.outcome, end.why, comment)
    }

    /// The claim is not there any more, and a claim that has vanished is never made again. Where no other claim of the
    /// key remembers that the work was begun, the item's label does.
    async fn vanished(
        &mut self,
        reply: &FactsReply,
        policy: &Policy,
        others: &Claims,
    ) -> Result<Option<Settled>, String> {
        let Handle { key, number, .. } = &self.input.claim;
        let gone = format!("claim {number} is not there any more, so nothing can be settled");
        let Fact::Known(Some(item)) = &reply.resource else { return Err(gone) };
        let labels = [done_label(key.task()), review_label(key.task())];
        let remembered = !others.is_empty() || labels.iter().any(|label| item.has_label(label));
        let uses_labels = key.version().is_none() && policy.task(key.task()).memory == Memory::Label;
        if remembered || !uses_labels || !item.open {
            return Err(gone);
        }
        let [_, review] = labels;
        let put = async || self.patient.add_labels(&self.input.repo, item.number, std::slice::from_ref(&review)).await;
        match self.patient.insist(put).await {
            Ok(()) => {
                self.report.outcome = Some(Outcome::NeedsReview);
                self.report.message = format!("the label {review} asks a person to look: its claim has vanished");
            }
            Err(error) => self.report.warnings.push(format!("the item was not labelled: {error}")),
        }
        Err(gone)
    }

    async fn remember_and_stamp(&mut self, settled: &Settled) {
        let key = &self.input.claim.key;
        let Fact::Known(Some(item)) = &settled.reply.resource else { return };
        if key.version().is_none()
            && settled.policy.task(key.task()).memory == Memory::Label
            && let Err(error) = self.remember(item, settled.outcome).await
        {
            self.report.warnings.push(format!("the item was not labelled: {error}"));
        }
        self.stamp(settled, item).await;
    }

    /// Puts the shared label on the item that says what became of a task, and takes off the one that no longer holds.
    /// Either can be asked for twice.
    async fn remember(&self, item: &ResourceState, outcome: Outcome) -> Result<(), PortError> {
        let task = self.input.claim.key.task();
        let (done, review) = (done_label(task), review_label(task));
        let (put, take) = match outcome {
            Outcome::Completed | Outcome::NoChange => (done, review),
            Outcome::FailedAfterWrite | Outcome::NeedsReview => (review, done),
            Outcome::FailedBeforeWrite | Outcome::Superseded | Outcome::Withdrawn => return Ok(()),
        };
        let (github, repo) = (self.patient, &self.input.repo);
        if !item.has_label(&put) {
            github.insist(async || github.add_labels(repo, item.number, std::slice::from_ref(&put)).await).await?;
        }
        if item.has_label(&take) {
            github.insist(async || github.remove_label(repo, item.number, &take).await).await?;
        }
        Ok(())
    }

    /// Appends the marker to what the agent wrote since the claim. The agent itself cannot: its tool strips it.
    async fn stamp(&mut self, settled: &Settled, item: &ResourceState) {
        let Handle { key, number, nonce, .. } = &self.input.claim;
        let marker = Marker {
            key: key.clone(),
            claim: *number,
            source_run_id: self.input.run.run,
            nonce: nonce.clone(),
            outcome: Some(settled.outcome),
        };
        let viewer = settled.reply.viewer.known().map(String::as_str);
        let is_agents = |comment: &&Comment| {
            comment.created_at >= settled.since
                && matches!(who(comment.author.as_ref(), viewer, &settled.policy), Who::SelfBot | Who::Agent)
                && Marker::find(&comment.body).is_none()
        };
        // The newest first: it is the result. A notice of being at work is one that was killed.
        let (notices, texts): (Vec<_>, Vec<_>) =
            item.comments.iter().rev().filter(is_agents).partition(|comment| is_working_notice(&comment.body));
        let mut left_out = 0_u32;
        for comment in texts.into_iter().chain(notices) {
            if self.requests_left() == 0 {
                left_out += 1;
                continue;
            }
            let body = marker.append_to(&comment.body);
            let (github, repo) = (self.patient, &self.input.repo);
            // The same text twice is the same comment.
            if let Err(error) = github.insist(async || github.update_comment(repo, comment.id, &body).await).await {
                self.report.warnings.push(format!("the marker was not written into {}: {error}", comment.url));
                return;
            }
        }
        if left_out > 0 {
            let warning = format!("{left_out} more of the agent's comments were left without a marker");
            self.report.warnings.push(warning);
        }
    }
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

/// The claim, if it is one's own: nobody else's is ever written to.
fn own_claim(read: ClaimRead, input: &FinishInput) -> Result<Claim, String> {
    let number = input.claim.number;
    match read {
        ClaimRead::Unreadable { why, .. } => Err(format!("claim {number} cannot be read: {why}")),
        ClaimRead::Readable(claim) => {
            let owner = &claim.record.owner;
            if owner.nonce == input.claim.nonce && owner.run == input.run.run {
                Ok(claim)
            } else {
                Err(format!("claim {number} belongs to run {} and not to this step, so it was left alone", owner.run))
            }
        }
    }
}
