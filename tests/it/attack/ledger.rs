//! Labels that somebody tampered with. Whoever may write to the ledger can make it say anything, so nothing is promised
//! but that run-guard says what it sees, never falls over, and takes no claim that it cannot read for free.

use super::*;
use run_guard::core::claim::{MAX_CLAIM_NUMBER, Settlement, SweepPhase, label_name};

fn name(number: u32) -> String {
    label_name(key().task(), &key().digest(), number)
}

/// A GitHub with these labels beside its own.
fn with(labels: &[(String, String)]) -> Bench {
    let mut state = github();
    for (name, description) in labels {
        assert!(state.add_label(REPO, name, description), "{name}");
    }
    Bench::new(state)
}

/// A record of another run's, as it stands in a label.
fn record(run: u64) -> String {
    let bench = Bench::new(github());
    assert!(bench.check(run).proceeds());
    bench.claim_of(run).unwrap().encode()
}

/// The verdict over a key of which claim 1 says this.
fn over(description: &str) -> CheckReport {
    let bench = with(&[(name(1), description.to_owned())]);
    bench.check(501)
}

#[test]
fn a_description_that_is_no_record_is_never_free() {
    let good = record(500);
    let mut texts =
        vec![String::new(), "rg1".to_owned(), "rg2 anything".to_owned(), "A label".to_owned(), good.to_uppercase()];
    // Every byte of a record cut off, doubled, or something else.
    for at in 0..good.len() {
        texts.push(good[..at].to_owned());
        for put in ["", " ", "z", "~", "\u{202e}", "\n::error::x", "zzzzzzzz"] {
            texts.push(format!("{}{put}{}", &good[..at], &good[at + 1..]));
        }
    }
    for text in texts {
        let report = over(&text);
        assert!(!report.proceeds() || readable_as_other(&text), "{text:?}: {report:?}");
        assert!(!report.message.contains(['\n', '\u{202e}', '\u{1b}']), "{text:?}: {report:?}");
    }
}

/// What is a record may be acted upon: of a run that is over, or that never was, with an old time.
fn readable_as_other(text: &str) -> bool {
    Record::decode(text).is_ok_and(|record| record.owner.run != 500)
}

#[test]
fn a_time_that_no_clock_shows_starts_nothing_and_breaks_nothing() {
    let good = Record::decode(&record(500)).unwrap();
    let times = [
        DateTime::<Utc>::MAX_UTC,
        DateTime::UNIX_EPOCH + TimeDelta::days(365 * 8_100),
        start() + TimeDelta::days(3_650),
    ];
    let settled = |at| Settlement { outcome: Outcome::FailedBeforeWrite, at, cost_cents: None, result_comment: None };
    for at in times {
        for state in
            [ClaimState::Open, ClaimState::Settled(settled(at)), ClaimState::Sweep { phase: SweepPhase::Cleared, at }]
        {
            let record = Record { opened_at: at, state, ..good.clone() };
            for policy in
                ["max-runs-per-hour: 1", "cool-down: 30m", "max-cost-per-day-usd: 1\nestimate-usd: 1", "paused: false"]
            {
                for run_is_there in [false, true] {
                    let bench = with(&[(name(1), record.encode())]);
                    bench.edit(|state| {
                        state.set_file(REPO, ".github/run-guard.yml", policy);
                        if !run_is_there {
                            state.edit_repo(REPO, |repo| repo.runs.remove(&500));
                        }
                    });
                    let report = bench.check(501);
                    let retry =
                        matches!(record.state, ClaimState::Settled(_)) && at < times[1] && policy == "paused: false";
                    assert_eq!(report.proceeds(), retry, "{policy} {record:?}: {report:?}");
                }
            }
        }
    }
}

#[test]
fn another_owner_in_ones_own_claim_is_not_written_over() {
    let bench = Bench::new(github());
    let started = bench.check(500);
    let theirs = record(503);
    bench.edit(|state| {
        assert!(state.remove_label(REPO, &name(1)));
        assert!(state.add_label(REPO, &name(1), &theirs));
    });
    let report = bench.finish(&started, 500);
    assert_eq!(report.outcome, None, "{report:?}");
    assert!(report.warnings[0].contains("belongs to run 503"), "{report:?}");
    assert_eq!(bench.claims()[&1].encode(), theirs);
    // With garbage in it, it says so.
    bench.edit(|state| {
        assert!(state.remove_label(REPO, &name(1)));
        assert!(state.add_label(REPO, &name(1), "garbage"));
    });
    assert_eq!(bench.finish(&started, 500).outcome, None);
}

#[test]
fn a_thousand_labels_that_look_like_claims_change_nothing_of_a_key_that_has_none() {
    let other: Vec<_> = (0..1_000).map(|n| (format!("rg:triage:{n:012x}:1"), "garbage".to_owned())).collect();
    let bench = with(&other);
    let started = bench.check(500);
    assert!(started.proceeds(), "{started:?}");
    assert_eq!(words(&bench_again(&bench, 501)), ("skip", "in-progress"));

    // Where a budget is counted, claims that cannot be read stop the count, and a person is told.
    let bench = with(&other);
    bench.edit(|state| state.set_file(REPO, ".github/run-guard.yml", "max-runs-per-hour: 5\n"));
    let report = bench.check(500);
    assert_eq!(words(&report), ("review", "unknown-usage"), "{report:?}");
}

/// The same as [`Bench::check`]: the claims of this bench cannot all be read.
fn bench_again(bench: &Bench, run: u64) -> CheckReport {
    bench.check(run)
}

#[test]
fn a_name_in_upper_case_a_gap_and_a_number_past_the_last() {
    // GitHub holds a name taken whatever its letter case; a look-up by name may not find it.
    let theirs = record(500);
    let report = with(&[(name(1).to_uppercase(), theirs.clone())]).check(501);
    assert!(!report.proceeds(), "{report:?}");
    let report = with(&[(name(1).to_uppercase(), "garbage".to_owned())]).check(501);
    assert_eq!(words(&report), ("review", "previous-failed"), "{report:?}");

    // The highest decides, whatever is missing below it.
    let bench = with(&[(name(5), theirs.clone())]);
    assert_eq!(words(&bench.check(501)), ("skip", "in-progress"));
    bench.all_over();
    let report = bench.check(501);
    assert_eq!((report.proceeds(), report.fence), (true, Some(6)), "{report:?}");

    // Nothing is made past the last number, and what lies beyond it is not counted.
    let done = theirs.replace("open", "co@6ypkmt");
    let failed = theirs.replace("open", "fb@6ypkmt");
    for (text, expected) in [(&done, "already-done"), (&theirs, "in-progress"), (&failed, "ledger-full")] {
        let report = with(&[(name(MAX_CLAIM_NUMBER), text.clone())]).check(501);
        assert!(!report.proceeds(), "{expected}: {report:?}");
        assert_eq!(report.reason.unwrap().code(), expected, "{report:?}");
    }
    for number in [MAX_CLAIM_NUMBER + 1, 64, 65, u32::MAX] {
        let report = with(&[(name(number), theirs.clone())]).check(501);
        assert!(report.proceeds() && report.fence == Some(1), "{number}: {report:?}");
    }
}

#[test]
fn a_claim_that_somebody_deletes_is_not_made_again_by_its_owner() {
    let bench = Bench::new(github());
    let started = bench.check(500);
    bench.edit(|state| assert!(state.remove_label(REPO, &name(1))));
    let report = bench.finish(&started, 500);
    // Nothing else remembers that the work was begun, so the item's label asks a person to look.
    assert_eq!(report.outcome, Some(Outcome::NeedsReview));
    assert!(report.warnings[0].contains("not there any more"), "{report:?}");
    assert!(bench.claims().is_empty());
    assert_eq!(words(&bench.check(501)), ("review", "previous-failed"));
}
