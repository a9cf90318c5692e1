//! Every row of the tables of claims and of trust, and both sides of every reason.

use std::collections::{BTreeMap, BTreeSet};

use run_guard::core::claim::{Claim, ClaimRead};
use run_guard::core::decide::before_reading;
use run_guard::core::decision::{Decision, Reason};
use run_guard::core::gates;
use serde_json::Value;

use super::case::{Built, Case, Situation, merged, outcome, plain, time};

const FILES: [(&str, &str); 6] = [
    ("trigger.yml", include_str!("cases/trigger.yml")),
    ("loop.yml", include_str!("cases/loop.yml")),
    ("state.yml", include_str!("cases/state.yml")),
    ("duplicate.yml", include_str!("cases/duplicate.yml")),
    ("abandoned.yml", include_str!("cases/abandoned.yml")),
    ("budget.yml", include_str!("cases/budget.yml")),
];

/// The reasons that no gate of this version gives: other parts of the program do, or what they are about comes with
/// later versions.
const GIVEN_ELSEWHERE: [(Reason, &str); 11] = [
    (Reason::PolicyInvalid, "the policy is parsed outside the core"),
    (Reason::PolicyUnreadable, "the policy is read outside the core"),
    (Reason::LedgerDenied, "the claim is written outside the core"),
    (Reason::LostRace, "the answer to the creation, see below"),
    (Reason::LoopChain, "pull requests"),
    (Reason::ReadOnlyToken, "pull requests from forks"),
    (Reason::StaleHead, "pull requests"),
    (Reason::Debounced, "debounce"),
    (Reason::Superseded, "debounce"),
    (Reason::RivalWork, "evidence of branches and pull requests"),
    (Reason::AmbiguousResource, "check and workflow_run events"),
];

fn cases() -> Vec<(&'static str, Case)> {
    FILES
        .iter()
        .flat_map(|(file, text)| {
            let cases: Vec<Case> = serde_yaml::from_str(text).unwrap_or_else(|e| panic!("{file}: {e}"));
            cases.into_iter().map(move |case| (*file, case))
        })
        .collect()
}

/// Decides a situation: the line of its outcome, and the whole.
fn run(situation: &Value) -> (String, Decision) {
    let stopped = |stop: run_guard::core::decision::Stop| {
        (format!("{} {}", stop.verdict, stop.reason), Decision::Stop { path: Vec::new(), stop: Box::new(stop) })
    };
    let built = match Situation::read(situation).build() {
        Ok(built) => built,
        Err(stop) => return stopped(stop),
    };
    if let Some(stop) = before_reading(&built.trigger, false) {
        return stopped(stop);
    }
    let decision = built.decide();
    (outcome(&decision), decision)
}

fn check(place: &str, situation: &Value, expect: &str, says: &[String], wrong: &mut Vec<String>) -> Decision {
    let (got, decision) = run(situation);
    if got != expect {
        wrong.push(format!("{place}: expected {expect}, got {got}: {decision:?}"));
        return decision;
    }
    let said = match &decision {
        Decision::Stop { stop, .. } => stop.message.clone(),
        Decision::Claim { path, .. } => path.iter().map(|seen| seen.saw.as_str()).collect::<Vec<_>>().join("\n"),
        Decision::Ask(_) => String::new(),
    };
    for words in says {
        if !said.contains(words) {
            wrong.push(format!("{place}: {words:?} is not in {said:?}"));
        }
    }
    decision
}

#[test]
fn every_case_is_decided_as_its_file_says() {
    let mut wrong = Vec::new();
    for (file, case) in cases() {
        let place = format!("{file}: {}", case.name);
        let situation = merged(&plain(), &case.when);
        let decision = check(&place, &situation, &case.expect, &case.says, &mut wrong);
        if let Decision::Stop { stop, .. } = &decision {
            let links: Vec<String> = stop.evidence.iter().map(|l| format!("{} {}", l.what, l.url)).collect();
            assert!(case.links.iter().all(|l| links.contains(l)), "{place}: {links:?}");
            if let Some(at) = &case.retry_at {
                let expected = (at != "never").then(|| time(at));
                assert_eq!(stop.retry_at, expected, "{place}");
            }
        } else {
            assert!(case.links.is_empty() && case.retry_at.is_none(), "{place}: only a no has links and a time");
        }
        for (n, variation) in case.but.iter().enumerate() {
            let place = format!("{place}, variation {}", n + 1);
            check(&place, &merged(&situation, &variation.change), &variation.expect, &variation.says, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_of_cases_are_unique() {
    let cases = cases();
    let names: BTreeSet<&str> = cases.iter().map(|(_, case)| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
}

/// Each reason has a case that gives it and a variation of that case which is not refused for it.
#[test]
fn every_reason_is_given_and_is_not_given_without_its_cause() {
    let mut given: BTreeMap<Reason, bool> = BTreeMap::new();
    for (_, case) in cases() {
        let Some(reason) = case.expect.split(' ').nth(1).and_then(Reason::parse) else { continue };
        let other_way = case.but.iter().any(|v| !v.expect.ends_with(&format!(" {reason}")));
        *given.entry(reason).or_default() |= other_way;
    }
    let elsewhere: BTreeSet<Reason> = GIVEN_ELSEWHERE.iter().map(|(reason, _)| *reason).collect();
    let missing: Vec<_> = Reason::ALL.iter().filter(|r| !given.contains_key(r) && !elsewhere.contains(r)).collect();
    assert_eq!(missing, Vec::<&Reason>::new(), "reasons without a case");
    let one_sided: Vec<_> = given.iter().filter(|(_, both)| !**both).map(|(r, _)| r).collect();
    assert_eq!(one_sided, Vec::<&Reason>::new(), "reasons without a case of what allows it");
    let stale: Vec<_> = elsewhere.iter().filter(|r| given.contains_key(r)).collect();
    assert_eq!(stale, Vec::<&Reason>::new(), "reasons that are given by now");
}

/// The table of reasons: code, gate and verdict, each once.
#[test]
fn reasons_are_those_of_the_table() {
    let table = include_str!("cases/reasons.txt");
    let expected: Vec<&str> = table.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let got: Vec<String> = Reason::ALL.iter().map(|r| format!("{} {} {}", r.gate(), r.verdict(), r.code())).collect();
    assert_eq!(got, expected);
    for reason in Reason::ALL {
        assert_eq!(Reason::parse(reason.code()), Some(*reason));
        for sentence in [reason.meaning(), reason.next_step()] {
            assert!(sentence.ends_with('.') && !sentence.contains('\n'), "{reason}: {sentence}");
        }
    }
    assert_eq!(Reason::parse("proceed"), None);
}

fn built(patch: &Value) -> Built {
    Situation::read(&merged(&plain(), patch)).build().unwrap()
}

#[test]
fn the_lost_race_says_who_won() {
    let built = built(&serde_json::json!({ "second_read": { "number": 1, "run": 100 } }));
    let won = |patch: Value| {
        let patch = merged(&serde_json::json!({ "second_read": { "number": 1, "run": 100 } }), &patch);
        let other = Situation::read(&merged(&plain(), &patch)).build().unwrap();
        let read = other.facts.second_read.known().unwrap().clone().unwrap();
        let stop = gates::claim::lost(&built.context(), &read);
        (format!("{} {}", stop.verdict, stop.reason), stop.evidence.len(), stop.message)
    };
    let of_state = |state: &str| won(serde_json::json!({ "second_read": { "state": state } }));
    for (state, expected) in [
        ("open", "skip in-progress"),
        ("completed", "skip already-done"),
        ("no-change", "skip already-done"),
        ("failed-before-write", "skip lost-race"),
        ("needs-review", "skip lost-race"),
        ("withdrawn", "skip lost-race"),
        ("sweep", "defer settling"),
    ] {
        let (got, links, message) = of_state(state);
        assert_eq!((got.as_str(), links), (expected, 1), "{state}: {message}");
    }
    let (got, links, message) = won(serde_json::json!({ "second_read": { "unreadable": true } }));
    assert_eq!((got.as_str(), links), ("review previous-failed", 0), "{message}");
}

#[test]
fn the_input_paused_and_a_deletion_need_no_read() {
    let plain = built(&serde_json::json!({}));
    assert_eq!(before_reading(&plain.trigger, false), None);
    assert_eq!(before_reading(&plain.trigger, true).map(|s| s.reason), Some(Reason::Paused));
    let deleted = built(&serde_json::json!({ "action": "deleted" }));
    assert_eq!(before_reading(&deleted.trigger, true).map(|s| s.reason), Some(Reason::NoRequest));
}

#[test]
fn near_a_cap_the_claims_are_ranked_and_the_later_ones_withdrawn() {
    let patch = serde_json::json!({
        "policy": { "per_hour": 2 },
        "window": [{ "opened": "14:50" }, { "opened": "14:55" }, { "opened": "14:55" }]
    });
    let built = built(&patch);
    let window = built.facts.window.known().unwrap();
    let over: Vec<bool> =
        window.claims.iter().map(|own| gates::budget::rank(&built.context(), window, own).is_some()).collect();
    // Those of the same second are told apart by name, the same for everybody who looks.
    assert_eq!(over, [false, false, true]);
    let mut reversed = window.clone();
    reversed.claims.reverse();
    let again: Vec<bool> =
        window.claims.iter().map(|own| gates::budget::rank(&built.context(), &reversed, own).is_some()).collect();
    assert_eq!(over, again);
    let mut damaged = window.clone();
    damaged.unreadable.push("rg:investigate:000000000000:1".to_owned());
    let stop = gates::budget::rank(&built.context(), &damaged, &window.claims[0]);
    assert_eq!(stop.map(|s| s.reason), Some(Reason::UnknownUsage));
}

/// With ten free places or fewer there may be as many at work at once.
#[test]
fn near_means_ten_free_places_or_fewer() {
    for (limit, near) in [(12, false), (11, true), (1, true)] {
        let patch = serde_json::json!({ "policy": { "per_hour": limit }, "window": [{ "opened": "14:59" }] });
        let mut built = built(&patch);
        if limit == 1 {
            built.policy.tasks.get_mut(&built.task).unwrap().budget.max_runs_per_hour = Some(2);
        }
        assert_eq!(gates::budget::is_near(&built.context()), near, "{limit}");
    }
}

#[test]
fn keys_are_as_the_table_says() {
    let key = |patch: Value| built(&patch).key.to_string();
    let comment = |body: &str| serde_json::json!({ "id": 9001, "by": "alice", "at": "14:59", "body": body });
    let commented =
        |body: &str| serde_json::json!({ "event": "issue_comment", "action": "created", "comment": comment(body) });
    assert_eq!(key(serde_json::json!({})), "github.com/42/issue/731/investigate");
    assert_eq!(key(serde_json::json!({ "action": "labeled", "label": "bug" })), "github.com/42/issue/731/investigate");
    assert_eq!(key(commented("@claude look")), "github.com/42/issue/731/investigate/comment-9001");
    let on_pull_request = merged(&commented("@claude look"), &serde_json::json!({ "pull_request": true }));
    assert_eq!(key(on_pull_request), "github.com/42/pr/731/investigate/comment-9001");
    let edited = |new: &str, old: &str| {
        let change = serde_json::json!({ "action": "edited", "changes": { "body": { "from": old } } });
        key(merged(&commented(new), &change))
    };
    let first = edited("Hello.\n\n@claude look", "Hello.");
    assert!(first.starts_with("github.com/42/issue/731/investigate/comment-9001."), "{first}");
    assert_eq!(edited("Hello!\n\n@claude   look", "Hello."), first, "white space and other words change nothing");
    assert_ne!(edited("@claude look again", "Hello."), first);
    let rerun = merged(&commented("/again"), &serde_json::json!({ "policy": { "rerun_phrase": "/again" } }));
    assert_eq!(key(rerun), "github.com/42/issue/731/investigate", "a rerun addresses the key that it asks for again");
}

#[test]
fn a_claim_that_is_taken_over_is_the_one_that_was_read() {
    let built = built(&serde_json::json!({
        "claims": { "1": { "run": 100 } }, "holder": { "conclusion": "failure", "updated": "14:30" },
        "second_read": { "number": 1, "run": 100 }
    }));
    let Decision::Claim { plan, .. } = built.decide() else { panic!("no claim") };
    let Some(ClaimRead::Readable(Claim { number, record, .. })) = built.facts.claims.known().and_then(|c| c.get(&1))
    else {
        panic!("no claim 1")
    };
    let over = plan.takes_over.unwrap();
    assert_eq!((over.number, &over.record), (*number, record));
}
