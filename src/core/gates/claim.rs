//! Was the claim won? What the answer to its creation means.

use super::{Context, Judgement, clock};
use crate::core::claim::{Claim, ClaimPlan, ClaimRead, ClaimState, MAX_CLAIM_NUMBER, Nonce};
use crate::core::decision::{Reason, Stop};

/// Before the claim is made: whether the ledger has a place for it.
pub fn judge(plan: &ClaimPlan) -> Judgement {
    if plan.number > MAX_CLAIM_NUMBER {
        return Judgement::stop(
            Reason::LedgerFull,
            format!("the key has {} claims; no more than {MAX_CLAIM_NUMBER} are made", plan.number.saturating_sub(1)),
        );
    }
    Judgement::pass(format!("claim {} is free", plan.number))
}

/// What follows when GitHub says that the claim exists already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exists {
    /// The nonce is one's own: the first answer was lost, and the claim is won.
    Mine,
    /// Another owner has it.
    Lost(Box<Stop>),
}

/// Judges the claim that was there first.
pub fn exists(cx: &Context<'_>, read: &ClaimRead, own: &Nonce) -> Exists {
    let claim = match read {
        ClaimRead::Readable(claim) => claim,
        ClaimRead::Unreadable { number, why } => {
            return Exists::Lost(Box::new(Stop::new(
                Reason::LostRace,
                format!("claim {number} was taken first, by an owner that cannot be read ({why})"),
            )));
        }
    };
    let owner = &claim.record.owner;
    if owner.nonce == *own && owner.run == cx.trigger.run.run && owner.attempt == cx.trigger.run.attempt {
        return Exists::Mine;
    }
    Exists::Lost(Box::new(lost(cx, claim)))
}

fn lost(cx: &Context<'_>, claim: &Claim) -> Stop {
    let owner = &claim.record.owner;
    let who = format!("run {} (attempt {})", owner.run, owner.attempt);
    let stop = match &claim.record.state {
        ClaimState::Open => Stop::new(
            Reason::InProgress,
            format!("{who} took claim {} first, at {}", claim.number, clock(claim.record.opened_at)),
        ),
        ClaimState::Settled(s)
            if matches!(s.outcome, crate::core::claim::Outcome::Completed | crate::core::claim::Outcome::NoChange) =>
        {
            Stop::new(Reason::AlreadyDone, format!("{who} took claim {} first and ended {}", claim.number, s.outcome))
        }
        ClaimState::Settled(s) => {
            Stop::new(Reason::LostRace, format!("{who} took claim {} first and ended {}", claim.number, s.outcome))
        }
        ClaimState::Sweep { .. } => {
            Stop::new(Reason::Settling, format!("claim {} holds the key for a sweep", claim.number))
        }
    };
    stop.with_link(format!("run {}", owner.run), cx.run_url(owner.run))
}
