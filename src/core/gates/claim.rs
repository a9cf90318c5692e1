//! Was the claim won? What the answer to its creation means.

use super::{Context, Judgement, clock};
use crate::core::claim::{Claim, ClaimPlan, ClaimRead, ClaimState, MAX_CLAIM_NUMBER};
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

/// The claim belongs to another owner: what that means for this run.
pub fn lost(cx: &Context<'_>, read: &ClaimRead) -> Stop {
    match read {
        ClaimRead::Readable(claim) => lost_to(cx, claim),
        ClaimRead::Unreadable { number, why } => Stop::new(
            Reason::LostRace,
            format!("claim {number} was taken first, by an owner that cannot be read ({why})"),
        ),
    }
}

fn lost_to(cx: &Context<'_>, claim: &Claim) -> Stop {
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
