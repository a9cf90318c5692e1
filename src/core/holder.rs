//! Whether the owner of an open claim still works, or is over.
//!
//! This is looked up, not guessed: the owner's workflow run is asked for. Only if it cannot be read does the claim's
//! own age decide, and then the words say so. This module says nothing of what may follow.

use chrono::{DateTime, TimeDelta, Utc};

use super::claim::Claim;
use super::facts::{Fact, Question, RunState};
use super::gates::{Context, clock, in_words};

/// A run that GitHub does not know is over only if one's own can be read and the claim is older than this: a new run
/// may not show yet.
const MISSING_RUN_MIN_AGE: TimeDelta = TimeDelta::minutes(10);

/// What is known of an open claim's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It cannot be said before this is read.
    Ask(Question),
    /// It works, or counts as working; the words go on from "run R has held claim N, and".
    Live(String),
    /// It is over and left no outcome.
    Over {
        /// Since when, at the latest.
        since: DateTime<Utc>,
        /// What shows it.
        why: String,
    },
}

/// Looks an open claim's owner up in the facts.
pub fn standing(cx: &Context<'_>, claim: &Claim) -> Standing {
    let owner = &claim.record.owner;
    if owner.run == cx.trigger.run.run { of_own_run(cx, claim) } else { of_other_run(cx, claim) }
}

/// The attempts of one run follow each other, so that a lower one was over when this one began.
fn of_own_run(cx: &Context<'_>, claim: &Claim) -> Standing {
    let (own, owner) = (&cx.trigger.run, &claim.record.owner);
    if owner.attempt >= own.attempt {
        return Standing::Live("another step of this run may start the agent".to_owned());
    }
    match &cx.facts.own_run {
        Fact::Unasked => Standing::Ask(Question::HolderRun(own.run)),
        Fact::Known(RunState::Found { attempt, started_at: Some(since), .. }) if *attempt == own.attempt => {
            Standing::Over { since: *since, why: format!("attempt {} of this run is over", owner.attempt) }
        }
        Fact::Unknown(why) => by_age(cx, claim, &format!("when its attempt ended cannot be read ({why})")),
        Fact::Known(_) => by_age(cx, claim, "GitHub does not say when its attempt ended"),
    }
}

fn of_other_run(cx: &Context<'_>, claim: &Claim) -> Standing {
    let owner = &claim.record.owner;
    let run = owner.run;
    match &cx.facts.holder {
        Fact::Unasked => Standing::Ask(Question::HolderRun(run)),
        Fact::Unknown(why) => by_age(cx, claim, &format!("its run cannot be read ({why})")),
        Fact::Known(RunState::Missing) => of_missing_run(cx, claim),
        Fact::Known(RunState::Found { attempt, conclusion, updated_at, started_at, .. }) => {
            if *attempt < owner.attempt {
                // The answer is older than the claim: it tells of an attempt before the owner's.
                return by_age(cx, claim, "GitHub does not show its attempt");
            }
            if *attempt > owner.attempt {
                let why = format!("run {run} was started again and its attempt {} is over", owner.attempt);
                return Standing::Over { since: started_at.unwrap_or(*updated_at), why };
            }
            let quiet = cx.now - *updated_at;
            match conclusion {
                Some(conclusion) => {
                    Standing::Over { since: *updated_at, why: format!("run {run} is over ({conclusion})") }
                }
                None if quiet > cx.rules.max_lifetime => Standing::Over {
                    since: *updated_at,
                    why: format!("run {run} has shown no activity for {}", in_words(quiet)),
                },
                None => Standing::Live("is still running".to_owned()),
            }
        }
    }
}

fn of_missing_run(cx: &Context<'_>, claim: &Claim) -> Standing {
    let old_enough = claim.record.opened_at + MISSING_RUN_MIN_AGE;
    match &cx.facts.own_run {
        Fact::Unasked => Standing::Ask(Question::HolderRun(cx.trigger.run.run)),
        Fact::Known(RunState::Found { .. }) if cx.now > old_enough => {
            Standing::Over { since: old_enough, why: format!("GitHub knows no run {}", claim.record.owner.run) }
        }
        Fact::Known(RunState::Found { .. }) => by_age(cx, claim, "GitHub does not show its run yet"),
        Fact::Known(RunState::Missing) | Fact::Unknown(_) => by_age(cx, claim, "GitHub shows neither its run nor this"),
    }
}

/// Nothing tells of the owner: the claim's own age decides.
fn by_age(cx: &Context<'_>, claim: &Claim, why: &str) -> Standing {
    let expires = claim.record.opened_at + cx.rules.max_lifetime;
    if cx.now > expires {
        let why = format!("{why}, and the claim is older than {}", in_words(cx.rules.max_lifetime));
        return Standing::Over { since: expires, why };
    }
    Standing::Live(format!("counts as running until {}, since {why}", clock(expires)))
}
