//! Sweeping: how the settled claims of a key that nobody can ask for again are deleted, as a pure state machine.
//!
//! Deleting is the one dangerous write. A contender that read the key before may still be about to create a number that
//! the deletion has just freed. So a sweep goes in phases, each in a sweep of its own and some time after the one
//! before: it takes the next number with a claim that holds the key, deletes the claims below it, and deletes its own.
//! How far it is, and since when, is written in that claim, so that whoever sweeps next goes on from there.
//!
//! What the caller must keep to:
//! - A deletion names the thing that was seen ([`Thing`](super::claim::Thing)), never its number or name: what was made
//!   again under that name meanwhile is another claim.
//! - A time in a record is GitHub's time when the write is sent, and the write is sent once: sent again later, it would
//!   carry a time at which the claim was not there yet. If the answer is lost, a later sweep sees what became of it.
//! - No write is sent more than [`OLDEST_READ`] after the read that it rests on.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use super::claim::{Claim, ClaimRead, ClaimState, MAX_CLAIM_NUMBER, SweepPhase, done_label, review_label};
use super::facts::{Claims, Fact, ResourceState, Window, WindowClaim};
use super::key::{Key, Resource, Task};
use super::policy::Memory;

/// The age up to which an answer may be acted upon. A command that read something longer ago must not write any more.
pub const OLDEST_READ: TimeDelta = TimeDelta::minutes(9);

/// How long GitHub delivers an event again, and for how long a settled claim is therefore kept at least.
const REDELIVERY: TimeDelta = TimeDelta::hours(72);

/// How long a phase lasts at least: longer than [`OLDEST_READ`], by what a write takes to arrive.
const PHASE: TimeDelta = TimeDelta::minutes(10);

/// How long a sweep waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// From the last settlement until a sweep may begin.
    pub kept: TimeDelta,
    /// From the time at which the key is held until the lower claims are deleted.
    pub held: TimeDelta,
    /// From the time at which the lower claims are gone until the sweep's own is deleted.
    pub cleared: TimeDelta,
}

impl Waits {
    /// The waits where claims count for a budget during `window`, the longest one there is.
    pub fn new(window: Option<TimeDelta>) -> Self {
        Self { kept: window.map_or(REDELIVERY, |window| window.max(REDELIVERY)), held: PHASE, cleared: PHASE }
    }
}

/// What a sweep does next with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing; in a few words, why.
    Nothing(&'static str),
    /// Nothing before this time.
    Wait(DateTime<Utc>),
    /// Create the claim of this number, if it is absent, as a sweep in the phase [`SweepPhase::Holding`].
    Hold(u32),
    /// Delete these claims below the sweep's own, each by the thing that holds it.
    Delete(Vec<ClaimRead>),
    /// Write into the sweep's claim that the lower claims are gone: [`SweepPhase::Cleared`].
    Clear(Claim),
    /// Delete the sweep's claim, by the thing that holds it.
    Drop(Claim),
}

/// What is next for a key with these claims, of which all were read.
///
/// `forgettable` is what [`forgettable`] says; it matters only before the sweep begins, since a key that is held must
/// become free again. Claims without an outcome below the highest are deleted too: their owners were over when the
/// number above was taken. Left there, the first of them would look abandoned once the sweep's own claim is gone, and
/// done work would start again.
pub fn next(claims: &Claims, forgettable: Result<(), &'static str>, now: DateTime<Utc>, waits: Waits) -> Next {
    let highest = match claims.last_key_value() {
        None => return Next::Nothing("it has no claims"),
        Some((_, ClaimRead::Unreadable { .. })) => return Next::Nothing("its highest claim cannot be read"),
        Some((_, ClaimRead::Readable(claim))) => claim,
    };
    let until = |at: DateTime<Utc>, wait: TimeDelta| (now < at + wait).then(|| Next::Wait(at + wait));
    match &highest.record.state {
        ClaimState::Open => Next::Nothing("its highest claim has no outcome"),
        ClaimState::Settled(settlement) => {
            if let Err(why) = forgettable {
                return Next::Nothing(why);
            }
            if highest.number >= MAX_CLAIM_NUMBER {
                return Next::Nothing("no number is left for a sweep");
            }
            until(settlement.at, waits.kept).unwrap_or(Next::Hold(highest.number.saturating_add(1)))
        }
        ClaimState::Sweep { phase: SweepPhase::Holding, at } => until(*at, waits.held).unwrap_or_else(|| {
            let lower: Vec<ClaimRead> = claims.range(..highest.number).map(|(_, read)| read.clone()).collect();
            if lower.is_empty() { Next::Clear(highest.clone()) } else { Next::Delete(lower) }
        }),
        // No number below the sweep's was free while it held the key, so what shows there was read too early.
        ClaimState::Sweep { phase: SweepPhase::Cleared, at } => {
            until(*at, waits.cleared).unwrap_or_else(|| Next::Drop(highest.clone()))
        }
    }
}

/// The key that a sweep on the side looks at, among claims that were listed: one whose sweep can go on, else one whose
/// highest claim of the list has been settled for long enough. `turn` chooses where there are several, so that one that
/// cannot be forgotten yet does not stand before the others for ever.
///
/// A list names keys by task and digest alone, so only those can be found whose other parts are known: the keys without
/// a version of items in the repository of `own`.
pub fn pick(listed: &Window, own: &Key, now: DateTime<Utc>, waits: Waits, turn: u64) -> Option<Key> {
    let mut highest: BTreeMap<(&str, &str), &Claim> = BTreeMap::new();
    for WindowClaim { task, digest, claim } in &listed.claims {
        let seen = highest.entry((task, digest)).or_insert(claim);
        if claim.number > seen.number {
            *seen = claim;
        }
    }
    let due = |claim: &Claim, begun: bool| match &claim.record.state {
        ClaimState::Open => false,
        ClaimState::Settled(settlement) => !begun && now >= settlement.at + waits.kept,
        ClaimState::Sweep { phase: SweepPhase::Holding, at } => begun && now >= *at + waits.held,
        ClaimState::Sweep { phase: SweepPhase::Cleared, at } => begun && now >= *at + waits.cleared,
    };
    let keys = |begun: bool| -> Vec<Key> {
        let due = highest.iter().filter(|(_, claim)| due(claim, begun));
        due.filter_map(|((task, digest), claim)| key_of(own, task, digest, claim.record.number?)).collect()
    };
    [true, false].into_iter().find_map(|begun| {
        let mut keys = keys(begun);
        let len = u64::try_from(keys.len()).ok().filter(|len| *len > 0)?;
        let at = usize::try_from(turn % len).ok()?;
        Some(keys.swap_remove(at))
    })
}

/// The key without a version that has this digest.
fn key_of(own: &Key, task: &str, digest: &str, number: u64) -> Option<Key> {
    let task: Task = task.parse().ok()?;
    [Resource::Issue(number), Resource::PullRequest(number)]
        .into_iter()
        .map(|resource| Key::new(own.host(), own.repository(), resource, task.clone(), None))
        .find(|key| key.digest().as_str() == digest)
}

/// Whether a settled key may be forgotten, which is so if it cannot be asked for again: its resource is closed, or,
/// where its name holds no version, a label on the item remembers the outcome. In a few words, why not.
pub fn forgettable(key: &Key, resource: &Fact<Option<ResourceState>>, memory: Memory) -> Result<(), &'static str> {
    let Fact::Known(Some(resource)) = resource else { return Err("its resource cannot be read") };
    if !resource.open {
        return Ok(());
    }
    if key.version().is_some() {
        return Err("its resource is open");
    }
    match memory {
        Memory::None => Err("its resource is open, and only its claims remember"),
        Memory::Label if [done_label(key.task()), review_label(key.task())].iter().any(|l| resource.has_label(l)) => {
            Ok(())
        }
        Memory::Label => Err("its resource is open and no label on it remembers the outcome"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::claim::{Cause, Nonce, Outcome, Owner, Record, Settlement, Thing};

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    fn claim(number: u32, state: ClaimState) -> ClaimRead {
        let record = Record {
            owner: Owner { run: u64::from(number), attempt: 1, nonce: Nonce::from_bits(u64::from(number)) },
            cause: Cause::First,
            rerun: None,
            opened_at: at(0),
            number: None,
            actor: None,
            state,
        };
        ClaimRead::Readable(Claim { number, thing: Thing(format!("thing {number}")), record })
    }

    fn settled(number: u32, minutes: i64) -> ClaimRead {
        let settlement =
            Settlement { outcome: Outcome::Completed, at: at(minutes), cost_cents: None, result_comment: None };
        claim(number, ClaimState::Settled(settlement))
    }

    fn sweep(number: u32, phase: SweepPhase, minutes: i64) -> ClaimRead {
        claim(number, ClaimState::Sweep { phase, at: at(minutes) })
    }

    fn unreadable(number: u32) -> ClaimRead {
        ClaimRead::Unreadable { number, thing: Thing("odd".to_owned()), why: "it is odd".to_owned() }
    }

    fn claims(reads: &[ClaimRead]) -> Claims {
        reads.iter().map(|read| (read.number(), read.clone())).collect()
    }

    fn next_of(reads: &[ClaimRead], minutes: i64) -> Next {
        next(&claims(reads), Ok(()), at(minutes), Waits::new(None))
    }

    const DAY: i64 = 24 * 60;

    #[test]
    fn a_settled_key_is_held_after_72_hours_and_after_the_budget_window() {
        let reads = [settled(1, 0), settled(2, 5)];
        assert_eq!(next_of(&reads, 3 * DAY), Next::Wait(at(3 * DAY + 5)));
        assert_eq!(next_of(&reads, 3 * DAY + 5), Next::Hold(3));
        let week = Waits::new(Some(TimeDelta::days(7)));
        assert_eq!(next(&claims(&reads), Ok(()), at(3 * DAY + 5), week), Next::Wait(at(7 * DAY + 5)));
        assert_eq!(Waits::new(Some(TimeDelta::hours(1))), Waits::new(None));
    }

    #[test]
    fn what_can_be_asked_for_or_is_not_settled_is_left() {
        let nothing = |reads: &[ClaimRead]| matches!(next_of(reads, 30 * DAY), Next::Nothing(_));
        assert!(nothing(&[]));
        assert!(nothing(&[settled(1, 0), claim(2, ClaimState::Open)]));
        assert!(nothing(&[settled(1, 0), unreadable(2)]));
        assert!(nothing(&[settled(MAX_CLAIM_NUMBER, 0)]));
        let open = next(&claims(&[settled(1, 0)]), Err("it is open"), at(30 * DAY), Waits::new(None));
        assert_eq!(open, Next::Nothing("it is open"));
    }

    #[test]
    fn each_phase_waits_ten_minutes() {
        let lower = [settled(1, 0), claim(2, ClaimState::Open), unreadable(3)];
        let with = |top: ClaimRead| [&lower[..], &[top]].concat();
        let holding = with(sweep(4, SweepPhase::Holding, 100));
        assert_eq!(next_of(&holding, 109), Next::Wait(at(110)));
        assert_eq!(next_of(&holding, 110), Next::Delete(lower.to_vec()));

        let alone = [sweep(4, SweepPhase::Holding, 100)];
        let ClaimRead::Readable(own) = alone[0].clone() else { panic!("it is readable") };
        assert_eq!(next_of(&alone, 109), Next::Wait(at(110)));
        assert_eq!(next_of(&alone, 110), Next::Clear(own));

        let cleared = sweep(4, SweepPhase::Cleared, 111);
        let ClaimRead::Readable(own) = cleared.clone() else { panic!("it is readable") };
        assert_eq!(next_of(std::slice::from_ref(&cleared), 120), Next::Wait(at(121)));
        assert_eq!(next_of(&[cleared], 121), Next::Drop(own));
    }

    #[test]
    fn a_sweep_that_has_begun_ends_also_if_the_key_can_be_asked_for_again() {
        let reads = claims(&[settled(1, 0), sweep(2, SweepPhase::Holding, 100)]);
        assert_eq!(next(&reads, Err("it is open"), at(110), Waits::new(None)), Next::Delete(vec![settled(1, 0)]));
    }

    #[test]
    fn what_nobody_can_ask_for_again_may_be_forgotten() {
        let key = |text: &str| text.parse::<Key>().unwrap();
        let (whole, comment) = (key("github.com/1/issue/7/triage"), key("github.com/1/issue/7/triage/comment-9"));
        let item = |open: bool, labels: &[&str]| {
            Fact::Known(Some(ResourceState {
                is_pull_request: false,
                number: 7,
                open,
                merged: false,
                draft: false,
                locked: false,
                author: None,
                labels: labels.iter().map(|&label| label.to_owned()).collect(),
                label_events: Vec::new(),
                comments: Vec::new(),
                comment_total: 0,
                head_sha: None,
                url: String::new(),
            }))
        };
        let may =
            |key: &Key, resource: &Fact<Option<ResourceState>>, memory| forgettable(key, resource, memory).is_ok();
        assert!(may(&whole, &item(false, &[]), Memory::None));
        assert!(may(&comment, &item(false, &[]), Memory::Label));
        assert!(may(&whole, &item(true, &["run-guard:triage:done"]), Memory::Label));
        assert!(may(&whole, &item(true, &["run-guard:triage:review"]), Memory::Label));
        assert!(!may(&whole, &item(true, &["run-guard:other:done"]), Memory::Label));
        assert!(!may(&whole, &item(true, &["run-guard:triage:done"]), Memory::None));
        assert!(!may(&comment, &item(true, &["run-guard:triage:done"]), Memory::Label));
        assert!(!may(&whole, &Fact::Known(None), Memory::Label));
        assert!(!may(&whole, &Fact::Unknown("503".to_owned()), Memory::Label));
        assert!(!may(&whole, &Fact::Unasked, Memory::Label));
    }

    #[test]
    fn a_sweep_that_has_begun_is_picked_first_and_the_others_take_turns() {
        let own: Key = "github.com/1/issue/7/triage".parse().unwrap();
        let listed = |entries: &[(u64, ClaimRead)]| {
            let claims = entries.iter().map(|(issue, read)| {
                let ClaimRead::Readable(claim) = read.clone() else { panic!("it is readable") };
                let key: Key = format!("github.com/1/issue/{issue}/triage").parse().unwrap();
                let record = Record { number: Some(*issue), ..claim.record };
                let digest = key.digest().to_string();
                WindowClaim { task: "triage".to_owned(), digest, claim: Claim { record, ..claim } }
            });
            Window { claims: claims.collect(), ..Window::default() }
        };
        let pick = |window: &Window, minutes, turn| {
            pick(window, &own, at(minutes), Waits::new(None), turn).map(|key| key.resource().number().unwrap())
        };
        let old = listed(&[(1, settled(1, 0)), (2, settled(1, 5)), (3, claim(1, ClaimState::Open))]);
        assert_eq!(pick(&old, 3 * DAY - 1, 0), None);
        assert_eq!(pick(&old, 3 * DAY, 0), Some(1));
        let mut turns: Vec<_> = (0..2).filter_map(|turn| pick(&old, 3 * DAY + 5, turn)).collect();
        turns.sort_unstable();
        assert_eq!(turns, [1, 2]);
        let begun = listed(&[(1, settled(1, 0)), (2, settled(1, 0)), (2, sweep(2, SweepPhase::Holding, 4 * DAY))]);
        assert_eq!(pick(&begun, 4 * DAY + 9, 1), Some(1));
        assert_eq!(pick(&begun, 4 * DAY + 10, 1), Some(2));
        // The highest claim of a key counts, in whatever order they are listed.
        let busy = listed(&[(4, claim(2, ClaimState::Open)), (4, settled(1, 0))]);
        assert_eq!(pick(&busy, 9 * DAY, 0), None);
        // A digest that no known key has names nothing that could be looked up.
        let mut odd = old;
        odd.claims.iter_mut().for_each(|claim| "0123456789ab".clone_into(&mut claim.digest));
        assert_eq!(pick(&odd, 9 * DAY, 0), None);
    }

    #[test]
    fn a_phase_outlasts_the_oldest_read() {
        assert!(PHASE > OLDEST_READ);
    }
}
