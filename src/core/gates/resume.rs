//! What a job may do that was given a claim by an earlier job: re-running failed jobs does not run the guard again.

use super::Context;
use crate::core::claim::{Claim, Handle};
use crate::core::decision::{Reason, Stop};
use crate::core::facts::Fact;
use crate::core::held::{Held, held};

/// What comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The claim is still this attempt's: the agent may start under it.
    Holds,
    /// A person started the run again: the ordinary rules say whether the next number may be taken.
    Decide,
    /// The agent may not start.
    Stop(Box<Stop>),
}

impl From<Stop> for Resume {
    fn from(stop: Stop) -> Self {
        Self::Stop(Box::new(stop))
    }
}

/// The rule. A claim that has vanished is never made again, and what ended is not started again by automation.
pub fn judge(cx: &Context<'_>, handle: &Handle) -> Resume {
    let number = handle.number;
    let stop = |reason, message: String| Resume::from(Stop::new(reason, message));
    let claims = match &cx.facts.claims {
        Fact::Known(claims) => claims,
        Fact::Unknown(why) => {
            return stop(Reason::LedgerUnreachable, format!("the key's claims could not be read: {why}"));
        }
        Fact::Unasked => return stop(Reason::LedgerUnreachable, "the key's claims were not read".to_owned()),
    };
    let own = &cx.trigger.run;
    let is_later_attempt = |claim: &Claim| {
        let owner = &claim.record.owner;
        owner.run == own.run && owner.attempt < own.attempt && cx.rerun_by_person().is_some()
    };
    let (reason, message, claim) = match held(claims, handle, own.run) {
        Held::Yes(claim) if claim.record.owner.attempt == own.attempt => return Resume::Holds,
        Held::Yes(claim) | Held::Closed(claim) | Held::Followed(claim) if is_later_attempt(claim) => {
            return Resume::Decide;
        }
        Held::Vanished => {
            let message = format!("claim {number} has vanished, and a vanished claim is never made again");
            return stop(Reason::PreviousFailed, message);
        }
        Held::Unreadable(why) => return stop(Reason::PreviousFailed, format!("{why}, so it cannot be resumed")),
        Held::Yes(claim) => {
            let attempt = claim.record.owner.attempt;
            (
                Reason::InProgress,
                format!("claim {number} is attempt {attempt}'s, and no person started it again"),
                claim,
            )
        }
        Held::Closed(claim) => (Reason::AlreadyDone, format!("claim {number} is settled already"), claim),
        Held::Others(claim) => {
            (Reason::InProgress, format!("claim {number} belongs to run {}", claim.record.owner.run), claim)
        }
        Held::Followed(claim) => {
            let (next, run) = (claim.number, claim.record.owner.run);
            (Reason::Superseded, format!("claim {next} of run {run} has followed claim {number}"), claim)
        }
    };
    cx.with_claim_links(Stop::new(reason, message), claim).into()
}
