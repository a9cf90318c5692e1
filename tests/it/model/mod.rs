//! The protocol of claims, explored whole: every order of steps, crashes, lost and late answers and old reads within
//! the bounds. `docs/lease.md` says what is assumed.

mod election;
mod gate;
mod protocol;
mod rules;

use run_guard::core::claim::Outcome;
use stateright::{Checker, HasDiscoveries, Model};

use protocol::{
    DONE_STAYS, Faults, Guard, Holder, NO_REPEAT, ONE_PROCEED, OWNER_WRITES, Object, Protocol, Slot, Sometimes,
    Standing,
};
use rules::{Election, Evidence, Lower, Naming, Primitive, Rules, SecondRead, Stamp};

const fn run(run: u64) -> Guard {
    Guard { run, attempt: 1, wish: None }
}

const fn asked(run: u64, attempt: u32, wish: u8) -> Guard {
    Guard { run, attempt, wish: Some(wish) }
}

const fn earlier(standing: Standing) -> Object {
    Object { holder: Holder::Earlier, standing, rerun: None }
}

/// Two guard steps of one run and a third of another, all at once.
fn race(primitive: Primitive) -> Protocol {
    Protocol {
        primitive,
        rules: Rules::SAFE,
        guards: vec![run(1), run(1), run(2)],
        start: Vec::new(),
        first_is_presumed_dead: false,
        numbers: 3,
        ticks: 1,
        faults: Faults { lost: 1, crashes: 1, presumed: 0 },
        outcomes: vec![Outcome::Completed, Outcome::Withdrawn],
        sweeps: false,
        allowances: 0,
        sometimes: vec![Sometimes::LostAnswerWon],
        memo: gate::Memo::default(),
    }
}

/// Owners that crash, fail, or finish after GitHub took them for dead.
fn takeover(primitive: Primitive) -> Protocol {
    Protocol {
        guards: vec![run(1), run(2), run(3)],
        ticks: 3,
        faults: Faults { lost: 0, crashes: 1, presumed: 1 },
        outcomes: vec![Outcome::Completed, Outcome::FailedBeforeWrite, Outcome::FailedAfterWrite],
        sometimes: vec![Sometimes::CrashRecovered, Sometimes::WinsAfterAbandoned, Sometimes::LateFinish],
        ..race(primitive)
    }
}

/// A person re-runs a run with two guard steps, and another asks for it again in a comment.
fn rerun(primitive: Primitive) -> Protocol {
    Protocol {
        guards: vec![run(1), asked(1, 2, 1), asked(1, 2, 1), asked(2, 1, 2)],
        numbers: 4,
        ticks: 2,
        faults: Faults { lost: 0, crashes: 0, presumed: 0 },
        outcomes: vec![Outcome::Completed],
        sometimes: vec![Sometimes::RerunProceeds],
        ..race(primitive)
    }
}

/// A settled claim is swept by any number of sweepers, while contenders act upon what they read before.
fn sweep(primitive: Primitive) -> Protocol {
    let withdrawn = Some(earlier(Standing::Settled(Outcome::Withdrawn, 0)));
    Protocol {
        guards: vec![run(1), run(2)],
        start: vec![Slot::new(withdrawn, vec![(None, 0), (Some(earlier(Standing::Open)), 0)])],
        numbers: 3,
        ticks: 5,
        faults: Faults { lost: 0, crashes: 1, presumed: 0 },
        outcomes: vec![Outcome::Withdrawn],
        sweeps: true,
        sometimes: vec![Sometimes::SweptAndUsedAgain],
        ..race(primitive)
    }
}

/// The same with a third contender and the key held from the start, a moment ago.
fn sweep_of_three(primitive: Primitive) -> Protocol {
    let held = Object { holder: Holder::Sweep(0), standing: Standing::Sweep { cleared: false, at: 0 }, rerun: None };
    let mut model = sweep(primitive);
    model.start.push(Slot::new(Some(held), vec![(None, 0)]));
    Protocol { guards: vec![run(1), run(2), run(3)], faults: Faults { lost: 0, crashes: 0, presumed: 0 }, ..model }
}

/// The same with two contenders and two claims to sweep, both made a moment ago.
fn sweep_of_two_claims(primitive: Primitive) -> Protocol {
    let mut model = sweep(primitive);
    model.start.extend(model.start.clone());
    Protocol { faults: Faults { lost: 0, crashes: 0, presumed: 0 }, ..model }
}

/// The same with an abandoned claim below a completed one.
fn sweep_over_abandoned(primitive: Primitive) -> Protocol {
    Protocol {
        start: vec![
            Slot::new(Some(earlier(Standing::Open)), Vec::new()),
            Slot::new(Some(earlier(Standing::Settled(Outcome::Completed, 0))), Vec::new()),
        ],
        outcomes: vec![Outcome::Completed],
        faults: Faults { lost: 0, crashes: 0, presumed: 0 },
        allowances: 1,
        ticks: 5,
        ..sweep(primitive)
    }
}

/// The same with an owner that GitHub took for dead and that finishes at any time.
fn sweep_under_late_finish(primitive: Primitive) -> Protocol {
    let owned = Object { holder: Holder::Guard(0), standing: Standing::Open, rerun: None };
    Protocol {
        guards: vec![run(1), run(2)],
        start: vec![
            Slot::new(Some(owned), Vec::new()),
            Slot::new(Some(earlier(Standing::Settled(Outcome::Withdrawn, 0))), Vec::new()),
        ],
        first_is_presumed_dead: true,
        ticks: 6,
        faults: Faults { lost: 0, crashes: 0, presumed: 0 },
        outcomes: vec![Outcome::Completed, Outcome::Withdrawn],
        ..sweep(primitive)
    }
}

/// Explores a model whole, holds it to its properties and to the number of its states.
fn explore(model: impl Fn(Primitive) -> Protocol, pinned: &[(Primitive, usize)]) {
    for (primitive, states) in pinned {
        let checker = model(*primitive).checker().threads(2).spawn_bfs().join();
        checker.assert_properties();
        let counted = checker.unique_state_count();
        assert_eq!(
            counted, *states,
            "{primitive:?}: the number of states has changed, so the protocol or the model has"
        );
    }
}

#[test]
fn of_all_that_race_one_proceeds() {
    explore(race, &[(Primitive::Label, 66_984), (Primitive::Ref, 66_984), (Primitive::CheckRun, 66_984)]);
}

#[test]
fn what_a_crash_leaves_is_taken_over_once() {
    explore(takeover, &[(Primitive::Label, 106_963), (Primitive::Ref, 106_963), (Primitive::CheckRun, 106_963)]);
}

#[test]
fn a_rerun_counts_once() {
    explore(rerun, &[(Primitive::Label, 55_919), (Primitive::Ref, 55_919), (Primitive::CheckRun, 55_919)]);
}

#[test]
fn a_key_is_swept_and_used_again() {
    explore(sweep, &[(Primitive::Label, 64_476), (Primitive::Ref, 54_281)]);
}

#[test]
fn three_contend_for_a_key_that_is_swept() {
    explore(sweep_of_three, &[(Primitive::Label, 264_687)]);
}

#[test]
fn two_claims_are_swept() {
    explore(sweep_of_two_claims, &[(Primitive::Label, 109_297), (Primitive::Ref, 95_986)]);
}

#[test]
fn a_sweep_takes_abandoned_claims_along() {
    explore(sweep_over_abandoned, &[(Primitive::Label, 530), (Primitive::Ref, 354)]);
}

#[test]
fn a_late_finish_finds_its_claim_swept() {
    explore(sweep_under_late_finish, &[(Primitive::Label, 15_276), (Primitive::Ref, 13_982)]);
}

/// The shortest run that breaks a property, in words, or `None` if the model keeps it.
fn counterexample(model: Protocol, property: &'static str) -> Option<Vec<String>> {
    let checker = model.checker().finish_when(HasDiscoveries::AnyOf([property].into())).spawn_bfs().join();
    checker.discovery(property).map(|path| path.into_actions().iter().map(|a| format!("{a:?}")).collect())
}

/// One rule less, and the property that falls with it.
struct Broken {
    what: &'static str,
    model: fn(Primitive) -> Protocol,
    primitive: Primitive,
    rules: Rules,
    property: &'static str,
}

fn broken() -> Vec<Broken> {
    use Primitive::{CheckRun, Label};
    const SAFE: Rules = Rules::SAFE;
    let case = |what, model, primitive, property, rules| Broken { what, model, primitive, rules, property };
    vec![
        case("a sweep that deletes at once", sweep, Label, ONE_PROCEED, Rules { sweep_waits: [0, 0], ..SAFE }),
        case("lower claims deleted early", sweep, Label, ONE_PROCEED, Rules { sweep_waits: [0, 2], ..SAFE }),
        case("all deleted after a single wait", sweep, Label, ONE_PROCEED, Rules { sweep_waits: [2, 0], ..SAFE }),
        case("reads older than the wait", sweep, Label, ONE_PROCEED, Rules { read_age: 2, ..SAFE }),
        case(
            "two sweepers that delete by name",
            sweep_of_three,
            Label,
            ONE_PROCEED,
            Rules { naming: Naming::Name, ..SAFE },
        ),
        case(
            "a sweep stamped before it is there",
            sweep_of_two_claims,
            Label,
            ONE_PROCEED,
            Rules { stamp: Stamp::Sent, ..SAFE },
        ),
        case(
            "a sweep that leaves abandoned claims",
            sweep_over_abandoned,
            Label,
            DONE_STAYS,
            Rules { lower: Lower::Settled, ..SAFE },
        ),
        case(
            "take-over without the second read",
            takeover,
            Label,
            DONE_STAYS,
            Rules { second_read: SecondRead::Never, ..SAFE },
        ),
        case(
            "a second read before the owner is over",
            takeover,
            Label,
            DONE_STAYS,
            Rules { second_read: SecondRead::Anytime, ..SAFE },
        ),
        case("no grace, or answers older than it", takeover, Label, DONE_STAYS, Rules { grace: 0, ..SAFE }),
        case(
            "evidence from the first read",
            takeover,
            Label,
            NO_REPEAT,
            Rules { evidence: Evidence::FirstRead, ..SAFE },
        ),
        case("live take-over", takeover, Label, ONE_PROCEED, Rules { live_is_left_alone: false, ..SAFE }),
        case("a number used again", takeover, Label, ONE_PROCEED, Rules { numbers_are_new: false, ..SAFE }),
        case("one nonce for a run", race, Label, ONE_PROCEED, Rules { own_nonce: false, ..SAFE }),
        case("what does not show is free", race, Label, ONE_PROCEED, Rules { hidden_is_not_free: false, ..SAFE }),
        case("settling after a loss", race, Label, OWNER_WRITES, Rules { losers_write_nothing: false, ..SAFE }),
        case(
            "a rerun neither recorded nor newer",
            rerun,
            Label,
            DONE_STAYS,
            Rules { rerun_is_recorded: false, rerun_is_newer: false, ..SAFE },
        ),
        case(
            "a rerun not recorded, under early clocks",
            rerun,
            Label,
            DONE_STAYS,
            Rules { rerun_is_recorded: false, clocks_lag: true, gaps_stop: true, ..SAFE },
        ),
        case("answers with gaps, under early clocks", rerun, Label, DONE_STAYS, Rules { clocks_lag: true, ..SAFE }),
        case("lists out of order", race, CheckRun, ONE_PROCEED, Rules { lists_in_order: false, ..SAFE }),
        case(
            "an election among those not withdrawn",
            race,
            CheckRun,
            ONE_PROCEED,
            Rules { election: Election::LowestNotWithdrawn, ..SAFE },
        ),
        case(
            "an election among the unconcluded",
            race,
            CheckRun,
            DONE_STAYS,
            Rules { election: Election::LowestLive, ..SAFE },
        ),
    ]
}

#[test]
fn each_rule_is_needed() {
    let kept = broken().into_iter().filter_map(|Broken { what, model, primitive, rules, property }| {
        counterexample(Protocol { rules, ..model(primitive) }, property).is_none().then_some(what)
    });
    assert_eq!(kept.collect::<Vec<_>>(), Vec::<&str>::new(), "these break no property, so the model does not see them");
}

/// Rules that stand in for each other: with one of them less nothing breaks yet.
#[test]
fn some_rules_cover_for_each_other() {
    let covered = [
        // A rerun that is not recorded is older than the settlement of the claim that it opened.
        Rules { rerun_is_recorded: false, ..Rules::SAFE },
        // Where times may be early, an answer with a gap must not be acted upon.
        Rules { clocks_lag: true, gaps_stop: true, ..Rules::SAFE },
    ];
    for rules in covered {
        let checker = Protocol { rules, ..rerun(Primitive::Label) }.checker().threads(2).spawn_bfs().join();
        for property in [ONE_PROCEED, OWNER_WRITES, DONE_STAYS, NO_REPEAT] {
            assert!(checker.discovery(property).is_none(), "{property} under {rules:?}");
        }
    }
}
