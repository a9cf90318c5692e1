//! Every kind of fault at every call of `check` and of `finish`, alone and in pairs, and another run in between.

use super::*;

fn kinds() -> Vec<Fault> {
    let limited = |status, retry_after, reset_in| Fault::RateLimited { status, retry_after, reset_in };
    vec![
        Fault::Lost { effect: true },
        Fault::Lost { effect: false },
        Fault::Server { status: 500, effect: true },
        Fault::Server { status: 503, effect: false },
        Fault::Denied,
        limited(403, None, None),
        limited(429, None, None),
        limited(429, Some(5), None),
        limited(403, Some(600), None),
        limited(403, None, Some(30)),
        Fault::Stale(1),
        Fault::Stale(100),
        Fault::Crash { effect: true },
        Fault::Crash { effect: false },
    ]
}

/// The kinds of which two strike together: one of each that differs in what it leaves behind.
fn kinds_in_pairs() -> Vec<Fault> {
    kinds().into_iter().filter(|kind| !matches!(kind, Fault::Server { .. } | Fault::Stale(1))).collect()
}

/// Tries no fault, and each kind at each call, with every ledger. What is tried says how many calls there were.
fn each_alone(try_it: impl Fn(LedgerKind, &Plan) -> usize) {
    for ledger in LedgerKind::ALL {
        for index in 0..try_it(ledger, &Plan::default()) {
            for kind in kinds() {
                try_it(ledger, &Plan::of(&[(index, &kind)]));
            }
        }
    }
}

/// The same and two at a time: with the default ledger alone, but for `RUN_GUARD_RACE=full`.
fn each_and_pairs(try_it: impl Fn(LedgerKind, &Plan) -> usize) {
    each_alone(&try_it);
    let mut ledgers = LedgerKind::ALL.to_vec();
    if std::env::var("RUN_GUARD_RACE").is_ok_and(|size| size == "full") {
        assert!(ledgers.len() > 1);
    } else {
        ledgers.retain(|kind| *kind == LedgerKind::Label);
    }
    for ledger in ledgers {
        let mut tried = 0;
        for first in 0..try_it(ledger, &Plan::default()) {
            for kind in kinds_in_pairs() {
                for second in first + 1..try_it(ledger, &Plan::of(&[(first, &kind)])) {
                    for other in kinds_in_pairs() {
                        try_it(ledger, &Plan::of(&[(first, &kind), (second, &other)]));
                        tried += 1;
                    }
                }
            }
        }
        assert!(tried > 100, "only {tried} pairs were tried");
    }
}

/// A claim was made, by this very run, after everything that lets an agent start was read.
fn backed(bench: &Bench, run: u64, report: &CheckReport, calls: &Calls) {
    let answered = |op| calls.borrow().iter().any(|(o, well)| *o == op && *well);
    // A stale answer is an answer.
    let stale = calls.borrow().iter().any(|(_, well)| !well);
    assert!(answered(Op::Graphql) || stale, "{calls:?}");
    let record = bench.claim_of(run).unwrap_or_else(|| panic!("run {run} has no claim: {report:?}"));
    assert_eq!(report.claim.as_ref().unwrap().nonce, record.owner.nonce);
    assert_eq!(record.state, ClaimState::Open);
}

#[test]
fn no_fault_of_check_starts_an_agent_twice_or_loses_the_work() {
    each_and_pairs(|ledger, plan| {
        let bench = Bench::with_ledger(github(), ledger);
        let (github, calls) = bench.faulty(plan, |_| {});
        let first = bench.check_through(&github, &input("issues", opened(), 500));
        let proceeds = first.as_ref().is_some_and(CheckReport::proceeds);
        if let Some(report) = first.as_ref().filter(|report| report.proceeds()) {
            backed(&bench, 500, report, &calls);
        }

        // While the first run goes on, another comes.
        let second = bench.check(501);
        if bench.claim_of(500).is_some() {
            assert_eq!(words(&second), ("skip", "in-progress"), "{ledger} {plan:?}: {first:?} {second:?}");
        } else {
            assert!(!proceeds && second.proceeds(), "{ledger} {plan:?}: {first:?} {second:?}");
        }
        assert_eq!(bench.claims().len(), 1, "{ledger} {plan:?}");

        // Nobody finished, and nothing was written: whoever comes next does the work.
        bench.all_over();
        let third = bench.check(RUNS.end);
        assert!(third.proceeds(), "{ledger} {plan:?}: {third:?}");
        let done = bench.finish(&third, RUNS.end);
        assert_eq!(done.outcome, Some(Outcome::Completed), "{ledger} {plan:?}: {done:?}");
        assert_eq!(words(&bench.check(RUNS.end + 1)), ("skip", "already-done"), "{ledger} {plan:?}");
        calls.borrow().len()
    });
}

#[test]
fn of_two_runs_that_cross_at_any_call_under_any_fault_one_starts() {
    for at in 0..4 {
        each_alone(|ledger, plan| {
            let bench = Rc::new(Bench::with_ledger(github(), ledger));
            let crossing = Rc::new(RefCell::new(None));
            let (other, result) = (Rc::clone(&bench), Rc::clone(&crossing));
            let (github, calls) = bench.faulty(plan, move |index| {
                if index == at {
                    *result.borrow_mut() = Some(other.check(501));
                }
            });
            let first = bench.check_through(&github, &input("issues", opened(), 500));
            let crossing = crossing.take();
            let started =
                |report: &Option<CheckReport>| usize::from(report.as_ref().is_some_and(CheckReport::proceeds));
            assert!(started(&first) + started(&crossing) <= 1, "{ledger} {at} {plan:?}: {first:?} {crossing:?}");
            let third = bench.check(502);
            assert!(
                !third.proceeds() || started(&first) + started(&crossing) == 0,
                "{ledger} {at} {plan:?}: {third:?}"
            );
            bench.all_over();
            assert!(bench.check(RUNS.end).proceeds(), "{ledger} {at} {plan:?}");
            calls.borrow().len()
        });
    }
}

#[test]
fn a_take_over_under_any_fault_is_one() {
    each_and_pairs(|ledger, plan| {
        let bench = Bench::with_ledger(github(), ledger);
        assert!(bench.check(500).proceeds());
        let ended = bench.edit(|state| {
            state.finish_run(REPO, 500, "cancelled");
            state.now += TimeDelta::seconds(20);
            state.now - TimeDelta::seconds(20)
        });
        let (github, calls) = bench.faulty(plan, |_| {});
        let first = bench.check_through(&github, &input("issues", opened(), 501));
        let proceeds = first.as_ref().is_some_and(CheckReport::proceeds);
        if proceeds {
            let age = bench.edit(|state| state.now) - ended;
            assert!(age >= TimeDelta::seconds(60), "{ledger} {plan:?}: taken over {age} after its owner's end");
        }
        let taken = bench.claim_of(501).is_some();
        assert!(taken || !proceeds, "{ledger} {plan:?}: {first:?}");
        let second = bench.check(502);
        assert_eq!(second.proceeds(), !taken, "{ledger} {plan:?}: {first:?} {second:?}");
        assert_eq!(bench.claims().len(), 2, "{ledger} {plan:?}");
        calls.borrow().len()
    });
}

#[test]
fn no_fault_of_finish_makes_it_guess_or_starts_finished_work_again() {
    for comments in [false, true] {
        each_and_pairs(|ledger, plan| {
            let bench = Bench::with_ledger(github(), ledger);
            let started = bench.check(500);
            bench.edit(|state| {
                state.now += TimeDelta::minutes(2);
                if comments {
                    state.comment(REPO, ISSUE, "github-actions[bot]", "Here is what I found.").unwrap();
                }
            });
            let (github, calls) = bench.faulty(plan, |_| {});
            let first = bench.finish_through(&github, &started, 500);
            let written = outcome_of(&bench.claim_of(500).unwrap());
            let context = format!("{ledger} {plan:?}, comments {comments}: {first:?}, written {written:?}");
            if let Some(report) = &first {
                assert!(!report.message.is_empty(), "{context}");
                assert!(report.outcome.is_none() || report.outcome == written, "{context}");
                assert!(report.outcome.is_some() || !report.warnings.is_empty(), "{context}");
            }
            assert!(matches!(written, None | Some(Outcome::Completed)), "{context}");

            // Asked again with nothing in the way, it ends well.
            let again = bench.finish(&started, 500);
            assert_eq!(again.outcome, Some(Outcome::Completed), "{context}: {again:?}");
            bench.all_over();
            assert_eq!(words(&bench.check(RUNS.end)), ("skip", "already-done"), "{context}");
            calls.borrow().len()
        });
    }
}

/// What goes by is waited for: a finish that gives up leaves work that may be started again.
#[test]
fn a_finish_outlasts_what_goes_by() {
    let limited = |retry_after| Fault::RateLimited { status: 429, retry_after, reset_in: None };
    let passing = [
        Fault::Lost { effect: true },
        Fault::Lost { effect: false },
        Fault::Server { status: 502, effect: false },
        limited(Some(5)),
        limited(None),
        Fault::Stale(100),
    ];
    let ledgers = LedgerKind::ALL.into_iter();
    for (ledger, first) in ledgers.flat_map(|ledger| (0..3).map(move |first| (ledger, first))) {
        for fault in &passing {
            // Two waits of a minute are more than the deadline.
            let most = if *fault == limited(None) { 1 } else { 2 };
            for times in 1..=most {
                let bench = Bench::with_ledger(github(), ledger);
                let started = bench.check(500);
                let strikes: Vec<_> = (first..first + times).map(|index| (index, fault)).collect();
                let (github, _) = bench.faulty(&Plan::of(&strikes), |_| {});
                let report = bench.finish_through(&github, &started, 500).unwrap();
                assert_eq!(report.outcome, Some(Outcome::Completed), "{ledger} {strikes:?}: {report:?}");
                assert_eq!(outcome_of(&bench.claim_of(500).unwrap()), Some(Outcome::Completed), "{ledger} {strikes:?}");
            }
        }
    }
}

/// `on-error: proceed` starts without a claim where GitHub could not be asked, and only there.
#[test]
fn on_error_proceed_never_overrules_what_was_read() {
    each_alone(|ledger, plan| {
        let bench = Bench::with_ledger(github(), ledger);
        assert!(bench.check(500).proceeds());
        let mut second = input("issues", opened(), 501);
        second.on_error = OnError::Proceed;
        let (github, calls) = bench.faulty(plan, |_| {});
        let Some(report) = bench.check_through(&github, &second) else { return 0 };
        let struck = calls.borrow().iter().any(|(_, well)| !well);
        assert!(!report.proceeds() || struck, "{ledger} {plan:?}: {report:?}");
        if report.proceeds() {
            assert!(report.claim.is_none() && !report.warnings.is_empty(), "{ledger} {plan:?}: {report:?}");
            assert_eq!(report.verdict, Verdict::Proceed);
        }
        calls.borrow().len()
    });
}
