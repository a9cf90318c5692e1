//! Scenarios: what the built-in one tells, what is said of a bad file, and that the same order gives the same story.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use run_guard::app::simulate::{BUILT_IN, Story, command, run};
use run_guard::cli::Format;
use run_guard::output::terminal::Style;
use run_guard::output::timeline;
use run_guard::sim::scenario::Scenario;
use run_guard::sim::schedule::Order;

fn examples() -> Vec<PathBuf> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn story(text: &str, order: Order) -> Story {
    let scenario = Scenario::parse(text, "scenario.yml").unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, order).unwrap()
}

fn told(story: &Story) -> String {
    timeline::story(story, Style { color: false, now: story.scenario.start })
}

/// One issue whose opening gives two events at the same instant.
const RACE: &str = r"
people: {maria: write}
workflows: [{task: fix, on: {issues: [opened, labeled]}}]
timeline:
  - by: maria
    open: {issue: 1, title: Race, labels: [bug]}
    expect:
      - proceed first
      - {verdict: skip in-progress, points-to: other}
expect: {agent-starts: 1}
";

#[test]
fn the_built_in_story() {
    let printed = command(&[], Format::Text, false);
    assert_eq!((printed.code, printed.err.as_str()), (0, ""));
    insta::assert_snapshot!(printed.out);
}

#[test]
fn colour_changes_no_word_and_no_line() {
    let story = story(BUILT_IN.1, Order::Fair);
    let colored = timeline::story(&story, Style { color: true, now: story.scenario.start });
    let mut plain = String::new();
    let mut rest = colored.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    assert_ne!(colored, plain);
    assert_eq!(plain, told(&story));
}

#[test]
fn every_example_holds_in_whatever_order_the_runs_go_on() {
    let files = examples();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for order in std::iter::once(Order::Fair).chain((0..40).map(Order::Seed)) {
            let story = story(&text, order);
            assert!(story.holds(), "{} under {order:?}:\n{}", file.display(), told(&story));
            assert!(story.held > 0, "{} expects nothing", file.display());
        }
    }
}

#[test]
fn the_files_of_the_examples_are_read_and_told_in_a_line_each() {
    let printed = command(&examples(), Format::Text, false);
    assert_eq!((printed.code, printed.err.as_str()), (0, ""));
    assert_eq!(printed.out.lines().count(), examples().len());
    assert!(printed.out.lines().all(|line| line.starts_with("holds  ")), "{}", printed.out);
}

#[test]
fn either_of_two_simultaneous_events_can_win() {
    let mut winners = BTreeSet::new();
    for seed in 0..64 {
        let story = story(RACE, Order::Seed(seed));
        assert!(story.holds(), "seed {seed}:\n{}", told(&story));
        let started: Vec<_> = story.runs.iter().filter(|run| run.started()).collect();
        assert_eq!(started.len(), 1, "seed {seed}");
        winners.insert(started[0].event.action.clone());
    }
    assert_eq!(winners.into_iter().collect::<Vec<_>>(), ["labeled", "opened"]);
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let orders = [Order::Fair, Order::Seed(0), Order::Seed(1), Order::Seed(u64::MAX)];
    let stories: Vec<_> = orders.iter().map(|order| story(RACE, *order)).collect();
    for (order, first) in orders.iter().zip(&stories) {
        let again = story(RACE, *order);
        assert_eq!(told(first), told(&again), "{order:?}");
        assert_eq!(timeline::json(first), timeline::json(&again), "{order:?}");
    }
}

#[test]
fn programs_get_the_same_story() {
    let printed = command(&[], Format::Json, false);
    let value: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
    assert_eq!(value["schema"], "run-guard/simulate/v1");
    assert_eq!(value["holds"], true);
    assert_eq!((&value["triggers"], &value["agent_starts"]), (&9.into(), &2.into()));
    let checks: Vec<_> = value["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|entry| entry["runs"].as_array().unwrap())
        .map(|run| format!("{} {}", run["check"]["verdict"], run["check"]["reason"]).replace('"', ""))
        .collect();
    assert_eq!(
        checks,
        [
            "proceed null",
            "skip in-progress",
            "skip in-progress",
            "skip in-progress",
            "skip loop-self",
            "skip already-done",
            "proceed null",
            "skip loop-self",
            "defer budget-hour",
        ]
    );
    let several: serde_json::Value = serde_json::from_str(&command(&examples(), Format::Json, false).out).unwrap();
    assert_eq!(several.as_array().unwrap().len(), examples().len());
}

#[test]
fn what_does_not_come_as_expected_is_told_with_its_line() {
    let text = r"
people: {maria: write, sven: read}
workflows: [{task: fix, on: {issues: [opened]}}]
agent: {takes: 1m, costs: 0.10}
timeline:
  - id: first
    by: maria
    open: {issue: 1, title: One}
    expect: skip already-done
  - by: sven
    open: {issue: 2, title: Two}
    expect: {verdict: review not-authorized, message: maria, points-to: first}
  - by: maria
    comment: {issue: 1, text: Hello}
    expect: proceed
  - deliver: again first
    expect: [proceed, proceed takeover]
  - at: +1h
    deliver: [again first, twice]
    expect: [skip already-done]
  - by: maria
    close: {issue: 1}
    expect: no run
expect:
  agent-starts: 2
  issues:
    1: {state: open, labels: [bug], comments: 4}
  claims:
    - {task: fix, issue: 1, cause: rerun, outcome: open, costs: 0.20}
    - {task: fix, issue: 1, number: 2}
    - {task: fix, issue: 1, outcome: absent}
";
    let story = story(text, Order::Fair);
    assert!(!story.holds());
    insta::assert_snapshot!(timeline::line(&story, Style { color: false, now: story.scenario.start }));
}

#[test]
fn two_agents_at_once_are_never_as_expected() {
    // The one way to have them: a ledger that cannot be written, and the choice to start all the same.
    let text = r"
people: {maria: write}
permissions: {contents: read, issues: read}
workflows: [{task: fix, on: {issues: [opened, labeled]}, inputs: {on-error: proceed}}]
timeline:
  - by: maria
    open: {issue: 1, title: Race, labels: [bug]}
    expect: proceed
";
    let story = story(text, Order::Fair);
    assert_eq!((story.held, story.failures.len()), (2, 1));
    assert!(story.failures[0].expected.starts_with("one agent at a time on "), "{:?}", story.failures);
}

#[test]
fn a_cancelled_run_says_nothing_more_and_a_wedged_one_is_taken_over() {
    let text = r"
people: {maria: write}
workflows: [{task: fix, on: {issues: [opened]}}]
timeline:
  - id: one
    by: maria
    open: {issue: 1, title: One}
    agent: {takes: 30m, comments: Never seen}
    expect: {verdict: proceed}
  - at: +10m
    by: maria
    cancel: one
  - id: two
    at: +10m
    deliver: again one
    agent: {ends: never}
    expect: proceed takeover
  - at: +5h
    deliver: again one
    expect: {verdict: skip in-progress, points-to: two}
  - at: +2h
    deliver: again one
    expect: {verdict: proceed takeover, claim: 3}
expect:
  agent-starts: 3
  issues: {1: {comments: 0}}
";
    let story = story(text, Order::Fair);
    assert!(story.holds(), "{}", told(&story));
}

#[test]
fn what_was_there_before_counts() {
    let text = r#"
start: 2026-03-02 09:00
people: {maria: write}
bots: ["renovate[bot]"]
workflows: [{task: fix}]
github:
  issues:
    1:
      by: maria
      at: 2026-02-01 12:00
      labels: [bug]
      comments:
        - {id: result, by: "claude[bot]", at: -30m, text: Mended.}
    2: {by: maria, state: closed}
  labels: [agent]
  runs:
    700: {by: maria, at: -1h, ended: -30m, conclusion: success}
    701: {by: maria, at: -20m}
  claims:
    - {task: fix, issue: 1, run: 700, opened: -1h, outcome: completed, settled: -30m, costs: 0.5, result: result}
    - {task: fix, issue: 2, number: 3, run: 701, opened: 08:40, cause: rerun}
timeline:
  - by: maria
    assign: {issue: 1, to: maria}
    expect: {verdict: skip already-done, link: 'issuecomment-', message: 30 min ago}
  - by: maria
    reopen: {issue: 2}
    expect: {verdict: skip in-progress, link: /actions/runs/701}
  - by: renovate[bot]
    add-label: {issue: 1, label: [agent, bug]}
    expect: [skip automation-actor, skip automation-actor]
"#;
    let story = story(text, Order::Fair);
    assert!(story.holds(), "{}", told(&story));
}

/// Each kind of mistake, and nothing else of note.
const BAD: &[&str] = &[
    "timeline: []",
    "workflows: [{task: fix}]\ntimeline: []",
    "workflow: [{task: fix}]",
    "workflows: [{task: Fix It}]",
    "workflows: [{task: fix, on: {isues: [opened]}}]",
    "workflows: [{task: fix, on: {issues: [opend]}}]",
    "workflows: [{task: fix, inputs: {on-error: retry}}]",
    "start: tomorrow",
    "people: {maria: rite}",
    "bots: [renovate]",
    "repository: acme",
    "policy: {tasks: {fix: {max-atempts: 2}}}",
    "permissions: {issue: write}",
    "workflows: [{task: fix}]\nagent: {ends: badly}",
    "workflows: [{task: fix}]\nagent: {takes: 5}",
    "people: {maria: write}\nworkflows: [{task: fix}]\ngithub:\n  issues: {1: {by: maria, at: 10:00}}",
    "people: {maria: write}\nworkflows: [{task: fix}]\ngithub:\n  issues: {1: {by: maria}}\n  pull-requests: {1: {by: maria}}",
    "workflows: [{task: fix}]\ngithub: {claims: [{task: fix, issue: 1, run: 1, opened: -1h}]}",
];

/// The same for steps, of which each is the only one.
const BAD_STEPS: &[&str] = &[
    "{by: maria}",
    "{open: {issue: 2}}",
    "{by: mario, open: {issue: 2}}",
    "{by: maria, open: {issue: 1}}",
    "{by: maria, open: {title: None}}",
    "{by: maria, comment: {issue: 99, text: Hi}}",
    "{by: maria, close: {issue: 1}, reopen: {issue: 1}}",
    "{by: maria, edit: {comment: nothing, text: Hi}}",
    "{by: maria, edit: {issue: 1}}",
    "{by: maria, commment: {issue: 1, text: Hi}}",
    "{by: maria, rerun: nothing}",
    "{by: maria, close: {issue: 1}, at: 08:00}",
    "{by: maria, close: {issue: 1}, at: soon}",
    "{by: maria, close: {issue: 1}, deliver: later}",
    "{by: maria, close: {issue: 1}, payload: [1]}",
    "{by: maria, close: {issue: 1}, expect: skipp}",
    "{by: maria, close: {issue: 1}, expect: skip in-progres}",
    "{by: maria, close: {issue: 1}, expect: proceed again}",
    "{by: maria, close: {issue: 1}, expect: {reason: in-progress}}",
];

#[test]
fn a_bad_file_gets_one_clear_error() {
    let steps = BAD_STEPS.iter().map(|step| {
        let top = "people: {maria: write}\nworkflows: [{task: fix}]\ngithub: {issues: {1: {by: maria}}}";
        format!("{top}\ntimeline:\n  - {step}")
    });
    let mut page = String::new();
    for text in BAD.iter().map(|text| (*text).to_owned()).chain(steps) {
        let error = Scenario::parse(&text, "bad.yml").err().unwrap_or_else(|| panic!("this was read:\n{text}"));
        page += &error.to_string();
        page += "\n\n";
    }
    insta::assert_snapshot!(page);
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let printed = command(&[PathBuf::from("/no/such/scenario.yml")], Format::Text, false);
    assert_eq!((printed.code, printed.out.as_str()), (1, ""));
    assert!(printed.err.starts_with("error: the scenario /no/such/scenario.yml cannot be read: "), "{}", printed.err);
}

#[test]
fn the_scenario_in_the_documentation_holds() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/scenarios.md")).unwrap();
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let whole: Vec<_> = blocks.filter(|block| block.contains("\ntimeline:")).collect();
    assert_eq!(whole.len(), 1);
    let story = story(whole[0], Order::Fair);
    assert!(story.holds(), "{}", told(&story));
    assert_eq!(story.held, 2);
}

/// The types that stand at each path of a value; the items of lists are one path.
fn types(value: &serde_json::Value, path: &str, into: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    use serde_json::Value;
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    into.entry(path.to_owned()).or_default().insert(kind);
    match value {
        Value::Array(items) => items.iter().for_each(|item| types(item, &format!("{path}/*"), into)),
        Value::Object(fields) => fields.iter().for_each(|(name, item)| types(item, &format!("{path}/{name}"), into)),
        _ => {}
    }
}

#[test]
fn payloads_have_the_fields_and_types_of_githubs_own_examples() {
    /// What GitHub sends today and its older examples do not show.
    const NEWER: &[&str] = &[
        "/repository/visibility",
        "/issue/state_reason",
        "/issue/active_lock_reason",
        "/issue/draft",
        "/issue/pull_request",
        "/comment/performed_via_github_app",
    ];
    /// What can be null by GitHub's documentation, and never is in its examples.
    const NULLABLE: &[&str] = &["/issue/body", "/issue/labels/*/description", "/label/description"];
    let Some(file) = super::tools::tool("node_modules/@octokit/webhooks-examples/api.github.com/index.json") else {
        return;
    };
    let index: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut compared = BTreeSet::new();
    for file in examples().iter().filter(|file| !file.ends_with("odd-payloads.yml")) {
        let story = story(&std::fs::read_to_string(file).unwrap(), Order::Fair);
        for run in &story.runs {
            let entry =
                index.as_array().unwrap().iter().find(|entry| entry["name"] == run.event.name.as_str()).unwrap();
            let theirs = entry["examples"].as_array().unwrap();
            let (mut known, mut ours) = (BTreeMap::new(), BTreeMap::new());
            for example in theirs {
                types(example, "", &mut known);
            }
            types(&run.event.payload, "", &mut ours);
            for (path, kinds) in &ours {
                if NEWER.iter().any(|newer| path.starts_with(newer)) {
                    continue;
                }
                if NULLABLE.contains(&path.as_str()) && kinds.contains("null") {
                    continue;
                }
                let known = known.get(path).unwrap_or_else(|| panic!("{} has no {path}", run.event.name));
                assert!(kinds.is_subset(known), "{} {path}: {kinds:?}, not {known:?}", run.event.name);
            }
            for part in ["issue", "comment", "label"] {
                let Some(own) = run.event.payload.get(part) else { continue };
                let with_part = theirs.iter().filter_map(|example| example.get(part)?.as_object());
                let always = with_part
                    .map(|fields| fields.keys().cloned().collect::<BTreeSet<_>>())
                    .reduce(|a, b| a.intersection(&b).cloned().collect())
                    .unwrap();
                let missing: Vec<_> = always.iter().filter(|field| own.get(field.as_str()).is_none()).collect();
                assert!(missing.is_empty(), "{} {part} lacks {missing:?}", run.event.name);
            }
            compared.insert(run.event.in_words());
        }
    }
    for event in ["issues opened", "issues labeled", "issue_comment created", "issue_comment edited"] {
        assert!(compared.contains(event), "{compared:?}");
    }
}

/// The server that a test started, which ends with the test.
struct Served(std::process::Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The binary in a world of its own.
fn run_guard(folder: &std::path::Path) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_run-guard"));
    command.env_clear().env("TMPDIR", folder).current_dir(folder);
    command
}

#[test]
fn what_is_served_can_be_tried_as_the_directions_say() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let folder = tempfile::tempdir().unwrap();
    let mut server = run_guard(folder.path());
    server.args(["simulate", "--serve", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut process = Served(server.spawn().unwrap());
    let mut directions = Vec::new();
    for line in BufReader::new(process.0.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let is_last = line.trim_start().starts_with("joe ");
        directions.push(line);
        if is_last {
            break;
        }
    }
    let exports: Vec<(&str, &str)> =
        directions.iter().filter_map(|line| line.trim().strip_prefix("export ")?.split_once('=')).collect();
    assert_eq!(
        exports.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["GITHUB_API_URL", "GITHUB_TOKEN", "GITHUB_REPOSITORY"]
    );
    let directions = directions.join("\n").replace("\\\n", "");
    let mut claim = String::new();
    let mut answers = Vec::new();
    for call in directions.lines().map(str::trim).filter(|line| line.starts_with("GITHUB_RUN_ID=")) {
        let (run, rest) = call.split_once(" run-guard ").unwrap();
        let args = rest.replace("'CLAIM'", &claim);
        let mut command = run_guard(folder.path());
        command.envs(exports.iter().copied()).env("GITHUB_RUN_ID", run.split_once('=').unwrap().1);
        let output = command.args(args.split_whitespace()).args(["--format", "json"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let said = ["verdict", "reason", "outcome"].map(|name| answer[name].as_str().unwrap_or_default());
        answers.push(said.join(" ").trim().to_owned());
        if said[0] == "proceed" {
            answer["claim"].as_str().unwrap().clone_into(&mut claim);
        }
    }
    assert_eq!(answers, ["proceed", "skip in-progress", "completed"]);
}

#[test]
fn flags_that_cannot_be_followed_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (args, part) in [
        (["simulate", "--serve", "0.0.0.0:0"].as_slice(), "would show the embedded GitHub to others"),
        (&["simulate", "--serve", "127.0.0.1:0", "a.yml", "b.yml"], "`--serve` serves one scenario"),
        (&["simulate", "--seeds", "0"], "0 is not in 1.."),
        (
            &["check", "--task", "a", "--sim", "--dry-run", "https://github.com/o/r/issues/1"],
            "`--sim` judges a payload",
        ),
    ] {
        let output = run_guard(folder.path()).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(part), "{error}");
    }
}
