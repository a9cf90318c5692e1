//! The real `check` and `finish` under many seeds: whatever strikes, the promises hold, on what happened on GitHub.

use std::path::{Path, PathBuf};

use run_guard::app::simulate::{explore, run_seed, scenarios};
use run_guard::core::claim::{LedgerChoice, LedgerKind};
use run_guard::core::decision::OnError;
use run_guard::sim::scenario::Scenario;

/// How many seeds of each scenario and ledger a plain test run tries; `RUN_GUARD_SEEDS` names another number.
fn seeds() -> u64 {
    std::env::var("RUN_GUARD_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

fn examples() -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scenarios");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    scenarios(&files).into_iter().map(Result::unwrap).collect()
}

fn example(name: &str) -> Scenario {
    examples().into_iter().find(|scenario| scenario.origin.ends_with(name)).unwrap()
}

fn over(scenario: &Scenario, ledger: LedgerKind) -> Scenario {
    let mut scenario = scenario.clone();
    for workflow in &mut scenario.workflows {
        workflow.inputs.ledger = Some(LedgerChoice::Kind(ledger));
    }
    // Keys of issues name no commit.
    let policy = scenario.policy.take().unwrap_or_default();
    scenario.policy = Some(format!("ledger-anchor: {:040x}\n{policy}", scenario.repository_id));
    scenario.permissions.push((run_guard::sim::Scope::Contents, run_guard::sim::Access::Write));
    scenario.permissions.push((run_guard::sim::Scope::Checks, run_guard::sim::Access::Write));
    scenario
}

#[test]
fn the_promises_hold_under_every_seed() {
    for scenario in examples() {
        for ledger in LedgerKind::ALL {
            let explored = explore(&over(&scenario, ledger), 0, seeds());
            if let Some((seed, broken)) = explored.broken {
                let what = broken.map(|story| story.failures);
                panic!("{} over {ledger} breaks under seed {seed}: {what:#?}", scenario.origin);
            }
        }
    }
}

/// What the seeds above try is worth something: all that can happen does.
#[test]
fn everything_that_can_go_wrong_does_under_some_seed() {
    let counts = explore(&example("storm.yml"), 0, 60).counts;
    assert!(counts.starts > 200 && counts.faults > 200, "{counts:?}");
    assert!(counts.crashes > 20 && counts.takeovers > 20 && counts.reruns > 20, "{counts:?}");
}

#[test]
fn a_seed_tells_the_same_story_again() {
    let scenario = example("storm.yml");
    let told = |seed| {
        let (story, counts) = run_seed(&scenario, seed).unwrap();
        (story.entries, story.runs, counts)
    };
    assert_eq!(told(11), told(11));
    assert_ne!(told(11), told(12));
}

/// The seeds find what is wrong where something is.
#[test]
fn a_broken_promise_is_found_with_its_seed() {
    // An agent that starts without a claim where GitHub does not answer may start twice.
    let mut scenario = example("storm.yml");
    for workflow in &mut scenario.workflows {
        workflow.inputs.on_error = OnError::Proceed;
    }
    let (seed, broken) = explore(&scenario, 0, 200).broken.expect("it is found");
    let story = broken.expect("it ends");
    assert!(!story.failures.is_empty());
    let (again, _) = run_seed(&scenario, seed).unwrap();
    assert_eq!(again.failures, story.failures);

    // Whoever takes a run that is quiet for dead joins the living.
    let mut scenario = example("storm.yml");
    let policy = scenario.policy.take().unwrap_or_default();
    scenario.policy = Some(format!("max-lifetime: 2m\n{policy}"));
    let (_, broken) = explore(&scenario, 0, 200).broken.expect("it is found");
    let failures = broken.expect("it ends").failures;
    assert!(failures.iter().any(|failure| failure.expected.starts_with("one agent at a time")), "{failures:?}");
}
