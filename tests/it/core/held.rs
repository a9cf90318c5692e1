//! Whether a claim is still held, and whether its holder may publish: tables.

use chrono::DateTime;
use run_guard::core::claim::{
    Cause, Claim, ClaimRead, ClaimState, Handle, LedgerKind, Nonce, Outcome, Owner, Record, Settlement, SweepPhase,
    Thing,
};
use run_guard::core::facts::{Claims, Fact, ResourceState};
use run_guard::core::held::{Held, held, may_publish};
use run_guard::core::policy::{Effect, TaskPolicy};

const RUN: u64 = 500;

fn handle() -> Handle {
    let key = "github.com/42/issue/731/triage".parse().unwrap();
    Handle { ledger: LedgerKind::Label, anchor: None, key, number: 2, nonce: Nonce::from_bits(RUN) }
}

fn claim(number: u32, run: u64, state: ClaimState) -> ClaimRead {
    let record = Record {
        owner: Owner { run, attempt: 1, nonce: Nonce::from_bits(run) },
        cause: Cause::First,
        rerun: None,
        opened_at: DateTime::UNIX_EPOCH,
        number: Some(731),
        actor: None,
        state,
    };
    ClaimRead::Readable(Claim { number, thing: Thing::default(), record })
}

fn settled() -> ClaimState {
    let at = DateTime::UNIX_EPOCH;
    ClaimState::Settled(Settlement { outcome: Outcome::Completed, at, cost_cents: None, result_comment: None })
}

fn unreadable(number: u32) -> ClaimRead {
    ClaimRead::Unreadable { number, thing: Thing::default(), why: "it is odd".to_owned() }
}

fn claims(reads: Vec<ClaimRead>) -> Claims {
    reads.into_iter().map(|read| (read.number(), read)).collect()
}

fn item() -> ResourceState {
    ResourceState {
        is_pull_request: false,
        number: 731,
        open: true,
        merged: false,
        draft: false,
        locked: false,
        author: None,
        labels: Vec::new(),
        label_events: Vec::new(),
        comments: Vec::new(),
        comment_total: 0,
        head_sha: None,
        url: String::new(),
    }
}

/// What `verify` says of these claims, with the item as it is.
fn told(
    reads: Vec<ClaimRead>,
    resource: &Fact<Option<ResourceState>>,
    effect: Option<Effect>,
) -> Result<String, String> {
    may_publish(&claims(reads), &handle(), RUN, resource, &TaskPolicy::default(), effect)
}

#[test]
fn only_the_highest_claim_that_is_open_and_ones_own_is_held() {
    let open = Fact::Known(Some(item()));
    let sweep = ClaimState::Sweep { phase: SweepPhase::Holding, at: DateTime::UNIX_EPOCH };
    let cases: Vec<(Vec<ClaimRead>, Result<&str, &str>)> = vec![
        (vec![claim(2, RUN, ClaimState::Open)], Ok("this run holds claim 2, and issue 731 is as the claim has it")),
        (
            vec![claim(1, 9, settled()), claim(2, RUN, ClaimState::Open)],
            Ok("this run holds claim 2, and issue 731 is as the claim has it"),
        ),
        (
            vec![unreadable(1), claim(2, RUN, ClaimState::Open)],
            Ok("this run holds claim 2, and issue 731 is as the claim has it"),
        ),
        (vec![], Err("claim 2 is not there any more")),
        (vec![claim(1, RUN, ClaimState::Open)], Err("claim 2 does not show")),
        (vec![unreadable(2)], Err("claim 2 cannot be read: it is odd")),
        (vec![claim(2, RUN, ClaimState::Open), unreadable(3)], Err("claim 3 cannot be read: it is odd")),
        (vec![claim(2, 501, ClaimState::Open)], Err("claim 2 belongs to run 501")),
        (
            vec![claim(2, RUN, ClaimState::Open), claim(3, 501, settled())],
            Err("claim 3 of run 501 has followed claim 2"),
        ),
        (vec![claim(2, RUN, settled())], Err("claim 2 is settled")),
        (vec![claim(2, RUN, sweep)], Err("claim 2 is settled")),
    ];
    for (reads, expected) in cases {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(told(reads.clone(), &open, None), expected, "{reads:?}");
        assert_eq!(matches!(held(&claims(reads), &handle(), RUN), Held::Yes(_)), expected.is_ok());
    }
}

#[test]
fn the_item_and_the_policy_must_allow_it_too_and_what_cannot_be_read_is_a_no() {
    let mine = || vec![claim(2, RUN, ClaimState::Open)];
    let closed = ResourceState { open: false, ..item() };
    let cases = [
        (Fact::Known(Some(item())), Some(Effect::Comment), Ok(())),
        (Fact::Known(Some(item())), Some(Effect::Merge), Err("the policy does not let the task merge (`may:`)")),
        (Fact::Known(Some(closed)), None, Err("issue 731 is closed")),
        (Fact::Known(None), None, Err("issue 731 is not there any more")),
        (Fact::Unknown("503".to_owned()), None, Err("issue 731 could not be read: 503")),
        (Fact::Unasked, None, Ok(())),
    ];
    for (resource, effect, expected) in cases {
        let expected = expected.map_err(str::to_owned);
        assert_eq!(told(mine(), &resource, effect).map(drop), expected, "{resource:?} {effect:?}");
    }
}
