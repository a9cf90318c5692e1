//! Was the claim won? What the answer to its creation means.

use super::{Context, Judgement, clock};
use crate::core::claim::{Claim, ClaimPlan, ClaimRead, ClaimState, MAX_CLAIM_NUMBER, Outcome, Settlement};
use crate::core::decision::{Reason, Stop};

/// Before the claim is made: whether the ledger has a place for it.
pub fn judge(plan: &ClaimPlan) -> Judgement {
    // The last number is kept for a sweep, without which a full key would stay full.
    if plan.number >= MAX_CLAIM_NUMBER {
        return Judgement::stop(
            Reason::LedgerFull,
            format!(
                "the key has {} claims, and no more are made before it has been swept",
                plan.number.saturating_sub(1)
            ),
        );
    }
    Judgement::pass(format!("claim {} is free", plan.number))
}

/// The claim belongs to another owner: what that means for this run.
pub fn lost(cx: &Context<'_>, read: &ClaimRead) -> Stop {
    match read {
        ClaimRead::Readable(claim) => lost_to(cx, claim),
        // Nobody can say that the work is in hands, so a person must look, as at any claim that cannot be read.
        ClaimRead::Unreadable { number, why, .. } => Stop::new(
            Reason::PreviousFailed,
            format!("claim {number} is there already, by an owner that cannot be read ({why})"),
        ),
    }
}

fn lost_to(cx: &Context<'_>, claim: &Claim) -> Stop {
    let (owner, n) = (&claim.record.owner, claim.number);
    let took = format!("run {} (attempt {}) took claim {n} first", owner.run, owner.attempt);
    let stop = match &claim.record.state {
        ClaimState::Open => Stop::new(Reason::InProgress, format!("{took}, at {}", clock(claim.record.opened_at))),
        ClaimState::Settled(Settlement { outcome: outcome @ (Outcome::Completed | Outcome::NoChange), .. }) => {
            Stop::new(Reason::AlreadyDone, format!("{took} and ended {outcome}"))
        }
        ClaimState::Settled(s) => Stop::new(Reason::LostRace, format!("{took} and ended {}", s.outcome)),
        ClaimState::Sweep { .. } => Stop::new(Reason::Settling, format!("claim {n} holds the key for a sweep")),
    };
    cx.with_claim_links(stop, claim)
}
