//! Whether a claim is still held: the question before an effect, and before a job of a run that was started again.

use super::claim::{Claim, ClaimRead, ClaimState, Handle};
use super::facts::{Claims, Fact, ResourceState};
use super::policy::{Effect, TaskPolicy};

/// How a run stands to the claim that it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held<'a> {
    /// It is the key's highest claim, open, and this run's.
    Yes(&'a Claim),
    /// It is not there, and no other claim of the key is.
    Vanished,
    /// It is there, but there is no telling whose it is, or what came after it; why.
    Unreadable(String),
    /// Another owner has this number.
    Others(&'a Claim),
    /// A higher claim has followed it.
    Followed(&'a Claim),
    /// It has an outcome, or is a sweep's.
    Closed(&'a Claim),
}

/// Looks the claim of `run` up among the claims of its key.
pub fn held<'a>(claims: &'a Claims, handle: &Handle, run: u64) -> Held<'a> {
    let highest = match claims.last_key_value() {
        None => return Held::Vanished,
        Some((number, ClaimRead::Unreadable { why, .. })) => {
            return Held::Unreadable(format!("claim {number} cannot be read: {why}"));
        }
        Some((_, ClaimRead::Readable(claim))) => claim,
    };
    if highest.number > handle.number {
        return Held::Followed(highest);
    }
    if highest.number < handle.number {
        // What is read lags, or the claim is gone: either way nothing shows that it is held.
        return Held::Unreadable(format!("claim {} does not show", handle.number));
    }
    let owner = &highest.record.owner;
    if owner.nonce != handle.nonce || owner.run != run {
        return Held::Others(highest);
    }
    match highest.record.state {
        ClaimState::Open => Held::Yes(highest),
        ClaimState::Settled(_) | ClaimState::Sweep { .. } => Held::Closed(highest),
    }
}

/// Whether the holder of a claim may still publish: the claim is held, the item is open and its head the one that the
/// claim is about, and the task may do this. In one sentence, what is seen, or why not. What cannot be read is a no.
pub fn may_publish(
    claims: &Claims,
    handle: &Handle,
    run: u64,
    resource: &Fact<Option<ResourceState>>,
    rules: &TaskPolicy,
    effect: Option<Effect>,
) -> Result<String, String> {
    let number = handle.number;
    match held(claims, handle, run) {
        Held::Yes(_) => {}
        Held::Vanished => return Err(format!("claim {number} is not there any more")),
        Held::Unreadable(why) => return Err(why),
        Held::Others(claim) => return Err(format!("claim {number} belongs to run {}", claim.record.owner.run)),
        Held::Followed(claim) => {
            let (next, run) = (claim.number, claim.record.owner.run);
            return Err(format!("claim {next} of run {run} has followed claim {number}"));
        }
        Held::Closed(_) => return Err(format!("claim {number} is settled")),
    }
    if let Some(effect) = effect.filter(|effect| !rules.may.contains(effect)) {
        return Err(format!("the policy does not let the task {} (`may:`)", effect.as_str()));
    }
    let what = handle.key.resource().in_words();
    let item = match resource {
        Fact::Known(Some(item)) => item,
        Fact::Known(None) => return Err(format!("{what} is not there any more")),
        Fact::Unknown(why) => return Err(format!("{what} could not be read: {why}")),
        Fact::Unasked => return Ok(format!("this run holds claim {number}")),
    };
    if !item.open && !rules.closed {
        return Err(format!("{what} is closed"));
    }
    if let (Some(mine), Some(live)) = (handle.key.head_sha(), &item.head_sha)
        && mine.to_string() != *live
    {
        return Err(format!("the head of {what} has moved to {live}"));
    }
    Ok(format!("this run holds claim {number}, and {what} is as the claim has it"))
}
