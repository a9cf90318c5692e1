//! Has this key been worked on, or is it being worked on?
//!
//! The table of what may follow the highest claim of a key is here and nowhere else.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Context, Judgement, clock, in_words};
use crate::core::claim::{
    Cause, Claim, ClaimPlan, ClaimRead, ClaimState, Outcome, RerunId, Settlement, done_label, review_label,
};
use crate::core::decision::{Reason, Stop};
use crate::core::facts::{Claims, Comment, Fact, Question, ResourceState, RunState};
use crate::core::identity::{Who, who};
use crate::core::policy::{Memory, OnAbandoned};

/// A run that GitHub does not know is over only if one's own can be read and the claim is older than this: a new run
/// may not show yet.
const MISSING_RUN_MIN_AGE: TimeDelta = TimeDelta::minutes(10);

/// What the gate allows: the next claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// An objection, or something to read first.
    No(Judgement),
    /// The claim that may be made, and what was seen.
    Yes(Box<ClaimPlan>, String),
}

impl Next {
    fn stop(reason: Reason, message: impl Into<String>) -> Self {
        Self::No(Judgement::stop(reason, message))
    }

    fn ask(question: Question) -> Self {
        Self::No(Judgement::Ask(question))
    }
}

/// The gate.
pub fn judge(cx: &Context<'_>) -> Next {
    let claims = match &cx.facts.claims {
        Fact::Unasked => return Next::ask(Question::Facts),
        Fact::Unknown(why) => {
            return Next::stop(Reason::LedgerUnreachable, format!("the key's claims could not be read: {why}"));
        }
        Fact::Known(claims) => claims,
    };
    let highest = claims.last_key_value();
    if let Some((number, _)) = highest
        && *number >= cx.facts.claims_probed_to
    {
        return Next::ask(Question::MoreClaims(*number));
    }
    match highest {
        None => without_claims(cx),
        Some((_, ClaimRead::Unreadable { number, why })) => Next::stop(
            Reason::PreviousFailed,
            format!("claim {number} of this key is there but cannot be read ({why}), so it is not free"),
        ),
        Some((_, ClaimRead::Readable(claim))) => after(cx, claims, claim),
    }
}

/// No claim of the key is left: the item's own labels remember.
fn without_claims(cx: &Context<'_>) -> Next {
    let first = |cause, rerun| Next::Yes(Box::new(plan(1, cause, rerun)), "no run has claimed this yet".to_owned());
    let resource = cx.facts.resource.known().and_then(Option::as_ref);
    let Some(resource) = resource.filter(|_| cx.key.version().is_none() && cx.rules.memory == Memory::Label) else {
        return first(Cause::First, None);
    };
    for (label, reason, what) in [
        (done_label(cx.task), Reason::AlreadyDone, "says that it is done"),
        (review_label(cx.task), Reason::PreviousFailed, "says that a person must look first"),
    ] {
        if !resource.has_label(&label) {
            continue;
        }
        let since = added_at(resource, &label);
        return match explicit_rerun(cx, &Claims::new(), since) {
            Wish::None => Next::stop(reason, format!("the label {label} {what}")),
            Wish::Ask(question) => Next::ask(question),
            Wish::Is(id) => first(Cause::Rerun, Some(id)),
        };
    }
    first(Cause::First, None)
}

/// When a label was last put on the item, if that is among the newest label events.
fn added_at(resource: &ResourceState, label: &str) -> Option<DateTime<Utc>> {
    let event = resource.label_events.iter().rev().find(|e| e.label.eq_ignore_ascii_case(label));
    event.filter(|e| e.added).map(|e| e.at)
}

fn plan(number: u32, cause: Cause, rerun: Option<RerunId>) -> ClaimPlan {
    ClaimPlan { number, cause, rerun, takes_over: None, rank_after: false }
}

/// What may follow the highest claim.
fn after(cx: &Context<'_>, claims: &Claims, claim: &Claim) -> Next {
    let next = claim.number.saturating_add(1);
    match &claim.record.state {
        ClaimState::Sweep { .. } => {
            Next::stop(Reason::Settling, format!("claim {} holds the key while older claims are swept", claim.number))
        }
        ClaimState::Settled(settlement) => settled(cx, claims, claim, settlement, next),
        ClaimState::Open => open(cx, claims, claim, next),
    }
}

fn settled(cx: &Context<'_>, claims: &Claims, claim: &Claim, settlement: &Settlement, next: u32) -> Next {
    let owner = &claim.record.owner;
    let ago = in_words(cx.now - settlement.at);
    let n = claim.number;
    // The owner's own run, started again by a person.
    if let Some(login) = cx.trigger.rerun_by_person()
        && owner.run == cx.trigger.run.run
        && owner.attempt < cx.trigger.run.attempt
    {
        let id = RerunId::Attempt(cx.trigger.run.run, cx.trigger.run.attempt);
        if !records(claims, &id) {
            let saw = format!("{login} re-ran run {}, which ended {}", owner.run, settlement.outcome);
            return Next::Yes(Box::new(plan(next, Cause::Rerun, Some(id))), saw);
        }
    }
    match settlement.outcome {
        Outcome::Withdrawn | Outcome::Superseded => {
            let saw = format!("claim {n} of run {} is {}", owner.run, settlement.outcome);
            return Next::Yes(Box::new(plan(next, Cause::Retry, None)), saw);
        }
        _ => {}
    }
    match explicit_rerun(cx, claims, Some(settlement.at)) {
        Wish::Ask(question) => return Next::ask(question),
        Wish::Is(id) => {
            let saw = format!("claim {n} ended {} {ago} ago, and a rerun was asked for since", settlement.outcome);
            return Next::Yes(Box::new(plan(next, Cause::Rerun, Some(id))), saw);
        }
        Wish::None => {}
    }
    let ended = format!("run {} ended {} under claim {n}, {ago} ago", owner.run, settlement.outcome);
    let stop = match settlement.outcome {
        Outcome::Completed | Outcome::NoChange => Stop::new(Reason::AlreadyDone, ended),
        Outcome::FailedAfterWrite | Outcome::NeedsReview => Stop::new(Reason::PreviousFailed, ended),
        Outcome::FailedBeforeWrite => match retry(cx, claims, next, &ended) {
            Ok(yes) => return yes,
            Err(stop) => stop,
        },
        Outcome::Withdrawn | Outcome::Superseded => unreachable_outcome(ended),
    };
    Next::No(with_result(cx, stop, claim, settlement).into())
}

/// Withdrawn and superseded claims were let through above.
fn unreachable_outcome(ended: String) -> Stop {
    Stop::new(Reason::PreviousFailed, ended)
}

fn with_result(cx: &Context<'_>, stop: Stop, claim: &Claim, settlement: &Settlement) -> Stop {
    let run = claim.record.owner.run;
    let stop = stop.with_link(format!("run {run}"), cx.run_url(run));
    let comments =
        cx.facts.resource.known().and_then(Option::as_ref).map(|r| r.comments.as_slice()).unwrap_or_default();
    match settlement.result_comment.and_then(|id| comments.iter().find(|c| c.id == id)) {
        Some(comment) => stop.with_link("the result", comment.url.clone()),
        None => stop,
    }
}

/// One more try after a failure that wrote nothing, or after an abandoned claim.
fn retry(cx: &Context<'_>, claims: &Claims, next: u32, ended: &str) -> Result<Next, Stop> {
    let used = attempts(claims);
    if used >= cx.rules.max_attempts {
        return Err(Stop::new(
            Reason::AttemptsExhausted,
            format!("{ended}; that was attempt {used} of {}", cx.rules.max_attempts),
        ));
    }
    let saw = format!("{ended}; attempt {} of {}", used + 1, cx.rules.max_attempts);
    Ok(Next::Yes(Box::new(plan(next, Cause::Retry, None)), saw))
}

/// How many claims since the last rerun, that one included, ran or may have run.
fn attempts(claims: &Claims) -> u32 {
    let mut used = 0;
    for read in claims.values().rev() {
        let ClaimRead::Readable(claim) = read else {
            used += 1;
            continue;
        };
        let counts = match &claim.record.state {
            ClaimState::Sweep { .. } => false,
            ClaimState::Settled(s) => !matches!(s.outcome, Outcome::Withdrawn | Outcome::Superseded),
            ClaimState::Open => true,
        };
        used += u32::from(counts);
        if claim.record.cause == Cause::Rerun {
            break;
        }
    }
    used
}

fn open(cx: &Context<'_>, claims: &Claims, claim: &Claim, next: u32) -> Next {
    let owner = &claim.record.owner;
    let own = &cx.trigger.run;
    let n = claim.number;
    if owner.run == own.run && owner.attempt >= own.attempt {
        let message = format!(
            "a step of this run (attempt {}) has held claim {n} since {}",
            owner.attempt,
            clock(claim.record.opened_at)
        );
        return Next::No(
            Stop::new(Reason::InProgress, message)
                .with_link(format!("run {}", owner.run), cx.run_url(owner.run))
                .into(),
        );
    }
    if owner.run == own.run {
        // A lower attempt of this very run cannot be going any more: this attempt is.
        if let Some(login) = cx.trigger.rerun_by_person() {
            let id = RerunId::Attempt(own.run, own.attempt);
            let saw = format!("{login} re-ran this run, whose attempt {} left claim {n} open", owner.attempt);
            let mut plan = plan(next, Cause::Rerun, Some(id));
            plan.takes_over = Some(Box::new(claim.clone()));
            return Next::Yes(Box::new(plan), saw);
        }
        return abandoned(cx, claims, claim, next, "this run was started again");
    }
    let held = |status: &str| {
        format!(
            "run {} (attempt {}) has held claim {n} since {}, {} ago, and {status}",
            owner.run,
            owner.attempt,
            clock(claim.record.opened_at),
            in_words(cx.now - claim.record.opened_at)
        )
    };
    let live = |status: &str| {
        Next::No(
            Stop::new(Reason::InProgress, held(status))
                .with_link(format!("run {}", owner.run), cx.run_url(owner.run))
                .into(),
        )
    };
    let age = cx.now - claim.record.opened_at;
    match &cx.facts.holder {
        Fact::Unasked => Next::ask(Question::HolderRun(owner.run)),
        Fact::Unknown(_) if age > cx.rules.max_lifetime => {
            abandoned(cx, claims, claim, next, "its run cannot be read and the claim is older than its lifetime")
        }
        Fact::Unknown(why) => live(&format!("its run cannot be read ({why}), so it counts as running")),
        Fact::Known(RunState::Missing) => match &cx.facts.own_run {
            Fact::Unasked => Next::ask(Question::HolderRun(own.run)),
            Fact::Known(RunState::Found { .. }) if age > MISSING_RUN_MIN_AGE => {
                abandoned(cx, claims, claim, next, "GitHub does not know its run")
            }
            _ if age > cx.rules.max_lifetime => {
                abandoned(cx, claims, claim, next, "its run cannot be seen and the claim is older than its lifetime")
            }
            _ => live("GitHub does not show its run, so it counts as running"),
        },
        Fact::Known(RunState::Found { attempt, conclusion, updated_at, started_at, .. }) => {
            let superseded_attempt = *attempt > owner.attempt;
            let ended = if superseded_attempt {
                Some((started_at.unwrap_or(*updated_at), "was started again".to_owned()))
            } else if let Some(conclusion) = conclusion {
                Some((*updated_at, format!("is over ({conclusion})")))
            } else if cx.now - *updated_at > cx.rules.max_lifetime {
                Some((*updated_at, format!("has shown no activity for {}", in_words(cx.now - *updated_at))))
            } else {
                None
            };
            match ended {
                None => live("is still running"),
                Some((at, _)) if cx.now < at + cx.rules.settle_grace => {
                    Next::ask(Question::WaitUntil(at + cx.rules.settle_grace))
                }
                Some((_, why)) => match &cx.facts.second_read {
                    Fact::Unasked => Next::ask(Question::SecondRead(n)),
                    Fact::Unknown(why) => Next::stop(
                        Reason::LedgerUnreachable,
                        format!("claim {n} could not be read again before it is taken over: {why}"),
                    ),
                    Fact::Known(None) => Next::stop(
                        Reason::PreviousFailed,
                        format!("claim {n} has vanished while it was read; a vanished claim is never made again"),
                    ),
                    Fact::Known(Some(ClaimRead::Readable(again))) if *again == *claim => {
                        abandoned(cx, claims, claim, next, &format!("run {} {why} and left no outcome", owner.run))
                    }
                    // It was settled meanwhile: the caller puts what was read into the claims and asks again.
                    Fact::Known(Some(_)) => Next::ask(Question::MoreClaims(n.saturating_sub(1))),
                },
            }
        }
    }
}

/// The highest claim's owner is over and left no outcome.
fn abandoned(cx: &Context<'_>, claims: &Claims, claim: &Claim, next: u32, why: &str) -> Next {
    let n = claim.number;
    let review = |message: String| {
        let run = claim.record.owner.run;
        Next::No(Stop::new(Reason::PreviousFailed, message).with_link(format!("run {run}"), cx.run_url(run)).into())
    };
    if cx.rules.on_abandoned == OnAbandoned::Review {
        return review(format!("{why}; the policy wants a person to look (`on-abandoned: review`)"));
    }
    if let Some(effect) = cx.rules.may.iter().find(|e| !e.can_be_read_back()) {
        return review(format!("{why}; the task may {}, which cannot be read back", effect.as_str()));
    }
    let resource = match &cx.facts.resource {
        Fact::Known(Some(resource)) => resource,
        _ => return review(format!("{why}; what it wrote cannot be read")),
    };
    let viewer = cx.facts.viewer.known().map(String::as_str);
    let wrote = |c: &&Comment| {
        matches!(who(c.author.as_ref(), viewer, cx.policy), Who::SelfBot | Who::Agent)
            && c.updated_at >= claim.record.opened_at
            && !is_working_notice(&c.body)
    };
    if let Some(comment) = resource.comments.iter().find(wrote) {
        return Next::No(
            Stop::new(Reason::PreviousFailed, format!("{why}, but it had written a comment"))
                .with_link("the comment", comment.url.clone())
                .into(),
        );
    }
    if let Some(first) = resource.comments.first()
        && usize::try_from(resource.comment_total).unwrap_or(usize::MAX) > resource.comments.len()
        && first.created_at > claim.record.opened_at
    {
        return review(format!("{why}; so many comments came since that those before cannot be seen"));
    }
    match retry(cx, claims, next, why) {
        Err(stop) => Next::No(stop.into()),
        Ok(Next::Yes(mut plan, saw)) => {
            plan.cause = Cause::Takeover;
            plan.takes_over = Some(Box::new(claim.clone()));
            Next::Yes(plan, format!("claim {n} is abandoned: {saw}"))
        }
        Ok(no @ Next::No(_)) => no,
    }
}

/// Whether a comment only says that the agent is at work: by a run that is over it is no result. The form is that of
/// claude-code-action's tracking comment (an ellipsis, or one to three dots in older versions).
fn is_working_notice(body: &str) -> bool {
    body.trim_start().strip_prefix("Claude Code is working").is_some_and(|rest| rest.starts_with(['\u{2026}', '.']))
}

/// Whether a claim of the key records this wish already.
fn records(claims: &Claims, id: &RerunId) -> bool {
    claims.values().any(|c| matches!(c, ClaimRead::Readable(c) if c.record.rerun.as_ref() == Some(id)))
}

/// Whether a person wishes the work done again.
enum Wish {
    /// No.
    None,
    /// It cannot be told before this is read.
    Ask(Question),
    /// Yes.
    Is(RerunId),
}

/// The wish for a rerun that this trigger carries, if it is newer than the last settlement and no claim records it.
fn explicit_rerun(cx: &Context<'_>, claims: &Claims, settled_at: Option<DateTime<Utc>>) -> Wish {
    let newer = |at: DateTime<Utc>| settled_at.is_none_or(|settled| at > settled);
    if cx.trigger.rerun_by_person().is_some() {
        let id = RerunId::Attempt(cx.trigger.run.run, cx.trigger.run.attempt);
        if records(claims, &id) {
            return Wish::None;
        }
        return match &cx.facts.own_run {
            Fact::Unasked => Wish::Ask(Question::HolderRun(cx.trigger.run.run)),
            Fact::Known(RunState::Found { started_at: Some(at), .. }) if newer(*at) => Wish::Is(id),
            _ => Wish::None,
        };
    }
    if let crate::core::trigger::Asks::Rerun(id) = cx.trigger.asks(cx.rules) {
        let asked_at = cx.trigger.comment.as_ref().and_then(|c| c.created_at);
        let fresh = asked_at.is_some_and(newer) && !records(claims, &id);
        return if fresh { Wish::Is(id) } else { Wish::None };
    }
    if cx.trigger.action == "labeled"
        && cx.asker() == Who::Person
        && let Some(label) = cx.trigger.label.as_deref()
        && let Some(resource) = cx.facts.resource.known().and_then(Option::as_ref)
    {
        let added =
            resource.label_events.iter().rev().find(|e| e.added && e.label.eq_ignore_ascii_case(label)).filter(|e| {
                who(e.actor.as_ref(), cx.facts.viewer.known().map(String::as_str), cx.policy) == Who::Person
            });
        if let Some(event) = added {
            let id = RerunId::Label(event.at.timestamp());
            if newer(event.at) && !records(claims, &id) {
                return Wish::Is(id);
            }
        }
    }
    Wish::None
}
