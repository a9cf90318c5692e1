//! A runner whose clock is wrong. GitHub's is the one that counts.

use super::*;

fn skews() -> impl Iterator<Item = TimeDelta> {
    [-3_600, -90, 0, 90, 3_600, 86_400].into_iter().map(TimeDelta::seconds)
}

#[test]
fn a_wrong_clock_neither_takes_over_early_nor_never() {
    for skew in skews() {
        for seconds_since_end in [0, 30, 59, 60, 61, 600] {
            let bench = Bench::new(github());
            bench.clock.skew.set(skew);
            assert!(bench.check(500).proceeds(), "{skew}");
            let opened = bench.claim_of(500).unwrap().opened_at;
            assert_eq!(opened, start() + TimeDelta::minutes(1), "{skew}: the claim is dated by GitHub's clock");
            assert_eq!(words(&bench.check(501)), ("skip", "in-progress"), "{skew}");
            let ended = bench.edit(|state| {
                state.now += TimeDelta::minutes(3);
                state.finish_run(REPO, 500, "failure");
                let ended = state.now;
                state.now += TimeDelta::seconds(seconds_since_end);
                ended
            });
            let report = bench.check(502);
            assert!(report.proceeds(), "{skew}, {seconds_since_end} s: {report:?}");
            let waited = bench.edit(|state| state.now) - ended;
            assert!(waited >= TimeDelta::seconds(60) && waited <= TimeDelta::seconds(600), "{skew}: {waited}");
        }
    }
}

#[test]
fn a_wrong_clock_dates_no_outcome() {
    for skew in skews() {
        let bench = Bench::new(github());
        bench.clock.skew.set(skew);
        let started = bench.check(500);
        bench.edit(|state| state.now += TimeDelta::minutes(5));
        assert_eq!(bench.finish(&started, 500).outcome, Some(Outcome::Completed));
        let record = bench.claim_of(500).unwrap();
        assert_eq!(record.state.changed_at(), Some(start() + TimeDelta::minutes(6)), "{skew}");

        // A wish that is newer than the outcome counts, whatever the runner's clock says.
        bench.edit(|state| {
            state.now += TimeDelta::minutes(1);
            state.finish_run(REPO, 500, "success");
            state.rerun(REPO, 500, "alice").unwrap();
        });
        let mut again = input("issues", opened(), 500);
        again.run.attempt = 2;
        assert!(bench.check_of(&again).proceeds(), "{skew}");
    }
}

#[test]
fn a_wrong_clock_moves_no_budget_window() {
    for skew in skews() {
        let mut state = github();
        state.set_file(REPO, ".github/run-guard.yml", "max-runs-per-hour: 1\n");
        state.open_issue(REPO, ItemSpec::new("alice", "Another").number(732));
        let bench = Bench::new(state);
        bench.clock.skew.set(skew);
        assert!(bench.check(500).proceeds());
        let mut other = opened();
        other["issue"]["number"] = json!(732);
        let other = input("issues", other, 501);
        assert_eq!(words(&bench.check_of(&other)), ("defer", "budget-hour"), "{skew}");
        bench.edit(|state| state.now += TimeDelta::minutes(61));
        assert!(bench.check_of(&other).proceeds(), "{skew}");
    }
}
