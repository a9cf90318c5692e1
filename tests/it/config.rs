//! Policies that are read, and policies that are refused with the right place.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use chrono::TimeDelta;
use proptest::prelude::*;
use run_guard::config::{self, Type, located};
use run_guard::core::policy::{BurstPer, Edits, Effect, Memory, OnAbandoned, PhraseRule, Policy};

const ORIGIN: &str = ".github/run-guard.yml";

fn parse(text: &str) -> Policy {
    config::parse(text, ORIGIN).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn what_says_nothing_is_the_default() {
    for text in ["", "\u{feff}", "# nothing\n", "---\n", "{}", "version: 1", "tasks:", "tasks: {}\n...\n", "~"] {
        assert_eq!(parse(text), Policy::default(), "{text:?}");
    }
}

#[test]
fn every_key_can_be_set() {
    let policy = parse(
        r#"
version: 1
agents: ["claude[bot]", robot-account]
automation:
  allow: dependabot[bot]
paused: true
ledger: label
reply: true
blocking-labels: hands-off
max-runs-per-day: 20
tasks:
  investigate:
    on:
      issues: [opened, labeled]
      issue_comment:
    trigger-labels: [security, 2024]
    required-labels: triaged
    phrase: "@bot"
    phrase-in: always
    rerun-phrase: "@bot again"
    edits: changed
    anyone: true
    closed: true
    drafts: true
    may: [comment, label]
    max-attempts: 5
    on-abandoned: review
    settle-grace: 90s
    max-lifetime: 2d
    memory: none
    max-bot-rounds: 0
    max-runs-per-hour: 5
    max-cost-per-day-usd: 12.50
    estimate-usd: "0.29"
    burst: {runs: 2, per: actor, within: 10m}
    cool-down: 1h
  mention:
    on: issue_comment
    max-runs-per-day: none
  plain:
"#,
    );
    assert_eq!(policy.agents, ["claude[bot]", "robot-account"]);
    assert_eq!(policy.automation_allow, ["dependabot[bot]"]);
    assert!(policy.paused && policy.reply);
    assert_eq!(policy.defaults.blocking_labels, ["hands-off"]);
    let names: Vec<&str> = policy.tasks.keys().map(run_guard::core::key::Task::as_str).collect();
    assert_eq!(names, ["investigate", "mention", "plain"]);
    let task = |name: &str| policy.task(&name.parse().unwrap()).clone();
    assert_eq!(task("plain"), policy.defaults);
    assert_eq!(task("never-named"), policy.defaults);
    let mention = task("mention");
    assert_eq!(mention.budget.max_runs_per_day, None);
    assert_eq!(mention.on.unwrap().into_iter().collect::<Vec<_>>(), [("issue_comment".into(), BTreeSet::new())]);
    let t = task("investigate");
    let on = t.on.unwrap();
    assert_eq!(on["issues"], BTreeSet::from(["opened".into(), "labeled".into()]));
    assert_eq!(on["issue_comment"], BTreeSet::new());
    assert_eq!(t.trigger_labels, ["security", "2024"]);
    assert_eq!(t.required_labels, ["triaged"]);
    assert_eq!(t.blocking_labels, ["hands-off"]);
    assert_eq!((t.phrase.as_str(), t.phrase_rule), ("@bot", PhraseRule::Always));
    assert_eq!(t.rerun_phrase.as_deref(), Some("@bot again"));
    assert_eq!(t.edits, Edits::Changed);
    assert!(t.anyone && t.closed && t.drafts);
    assert_eq!(t.may, BTreeSet::from([Effect::Comment, Effect::Label]));
    assert_eq!(t.max_attempts, 5);
    assert_eq!(t.on_abandoned, OnAbandoned::Review);
    assert_eq!(t.settle_grace, TimeDelta::seconds(90));
    assert_eq!(t.max_lifetime, TimeDelta::days(2));
    assert_eq!(t.memory, Memory::None);
    assert_eq!(t.max_bot_rounds, 0);
    assert_eq!(t.budget.max_runs_per_hour, Some(5));
    assert_eq!(t.budget.max_runs_per_day, Some(20));
    assert_eq!(t.budget.max_cost_per_day_cents, Some(1250));
    assert_eq!(t.budget.estimate_cents, Some(29));
    let burst = t.budget.burst.unwrap();
    assert_eq!((burst.runs, burst.per, burst.within), (2, BurstPer::Actor, TimeDelta::minutes(10)));
    assert_eq!(t.budget.cool_down, Some(TimeDelta::hours(1)));
}

/// Each printed default, written out, changes nothing; so it is the real one, and the parser knows the key.
#[test]
fn printed_defaults_are_the_real_ones() {
    for doc in config::policy_keys().chain(config::task_keys()).filter(|doc| !doc.default.is_empty()) {
        let text = format!("{}: {}", doc.name, doc.default);
        assert_eq!(parse(&text), Policy::default(), "{text}");
    }
    for doc in config::task_keys().filter(|doc| !doc.default.is_empty()) {
        let text = format!("tasks: {{a: {{{}: {}}}}}", doc.name, doc.default);
        assert_eq!(*parse(&text).task(&"a".parse().unwrap()), Policy::default().defaults, "{text}");
    }
    let without: Vec<&str> = config::task_keys().filter(|doc| doc.default.is_empty()).map(|doc| doc.name).collect();
    assert_eq!(without, ["on"], "whose default cannot be written");
}

/// A value other than the default, of the type that the table prints, changes the policy: the key does something.
#[test]
fn every_key_of_the_table_has_an_effect() {
    for doc in config::policy_keys().chain(config::task_keys()) {
        let other = match (doc.name, doc.kind) {
            ("version", _) => continue,
            ("agents", _) => "[]",
            ("may", _) => "comment",
            (_, Type::Bool) => "true",
            (_, Type::Count { .. }) => "7",
            (_, Type::Duration { .. }) => "7m",
            (_, Type::Dollars) => "7.77",
            (_, Type::Word(words)) => words.iter().find(|word| **word != doc.default).unwrap(),
            ("ledger-anchor", _) => "\"7777777777777777777777777777777777777777\"",
            (_, Type::Text { .. } | Type::Texts) => "seven",
            (_, Type::Effects) => "label",
            (_, Type::Events) => "issues",
            ("burst", _) => "{runs: 7, within: 7m}",
            ("automation", _) => "{allow: seven}",
            (_, Type::Mapping(_)) => panic!("{} needs a case here", doc.name),
            (_, Type::Tasks) => "{seven: {}}",
        };
        // What must go together with the key.
        let with = if doc.name == "anyone" { "\nmay: comment" } else { "" };
        let text = format!("{}: {other}{with}", doc.name);
        assert_ne!(parse(&text), parse(with), "{text}");
    }
}

/// The page for users has a row for each key, with the default and the sentence of the table.
#[test]
fn the_page_lists_every_key() {
    let page = include_str!("../../docs/policy.md");
    let mut names = BTreeSet::new();
    for doc in config::policy_keys().chain(config::task_keys()) {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", doc.name)));
        let row = row.unwrap_or_else(|| panic!("{} is missing", doc.name));
        assert!(row.contains(doc.meaning), "{row}");
        assert!(doc.default.is_empty() || row.contains(&format!("| `{}` |", doc.default)), "{row}");
        if let Type::Word(words) = doc.kind {
            assert!(words.iter().all(|word| row.contains(&format!("`{word}`"))), "{row}");
        }
        names.insert(doc.name);
    }
    assert_eq!(page.lines().filter(|line| line.starts_with("| `")).count(), names.len());
}

#[test]
fn the_words_of_the_table_are_those_of_the_parser() {
    for doc in config::policy_keys().chain(config::task_keys()) {
        let Type::Word(words) = doc.kind else { continue };
        for word in words {
            parse(&format!("{}: {word}", doc.name));
        }
        let error = config::parse(&format!("{}: zzz", doc.name), ORIGIN).unwrap_err();
        let listed: Vec<&str> = error.sentence().split('`').skip(3).step_by(2).filter(|w| *w != "zzz").collect();
        assert_eq!(listed, words, "{}", doc.name);
    }
}

/// Text, position, and a part of what is said.
type Case<'a> = (&'a str, Option<(usize, usize)>, &'a str);

#[test]
fn mistakes_are_shown_where_they_are() {
    let many = "x".repeat(65 * 1024);
    let deep = "[".repeat(65_000);
    let bomb = format!("a: &a [{}]\nb: &b [{}]\nc: [{}]", "1,".repeat(200), "*a,".repeat(200), "*b,".repeat(200));
    let cases: &[Case] = &[
        ("max-run-per-hour: 5", Some((1, 1)), "did you mean `max-runs-per-hour`?"),
        ("paused: false\nmax_runs_per_hour: 5", Some((2, 1)), "did you mean `max-runs-per-hour`?"),
        ("tasks:\n  a:\n    phrse: x", Some((3, 5)), "did you mean `phrase`?"),
        ("tasks:\n  a:\n    agents: [x]", Some((3, 5)), "top level"),
        ("tasks:\n  Bad Name: {}", Some((2, 3)), "not a task name"),
        ("tasks: [a]", Some((1, 8)), "mapping"),
        ("tasks:\n  a: 3", Some((2, 6)), "mapping"),
        ("- a", Some((1, 1)), "the policy must be a mapping"),
        ("paused: yes", Some((1, 9)), "write `true`"),
        ("anyone: \"true\"", Some((1, 9)), "without quotes"),
        ("phrase:", Some((1, 8)), "must be a text, not empty"),
        ("phrase: \"\"", Some((1, 9)), "is empty"),
        ("phrase: \" x\"", Some((1, 9)), "white space"),
        ("phrase: \"a\\nb\"", Some((1, 9)), "line break"),
        ("phrase: [a]", Some((1, 9)), "a list"),
        ("phrase: @claude", Some((1, 9)), "put the value in quotes"),
        ("agents: [claude[bot]]", Some((1, 16)), "in quotes: \"claude[bot]\""),
        ("agents: ['@claude']", Some((1, 10)), "without the `@`"),
        ("phrase-in: comment", Some((1, 12)), "did you mean `comments`?"),
        ("may: [comment, pull_request]", Some((1, 16)), "did you mean `pull-request`?"),
        ("may:\n  - comment\n  - {a: b}", Some((3, 5)), "not a mapping"),
        ("anyone: true", Some((1, 9)), "`review`, `branch` and `pull-request`"),
        ("anyone: true\nmay: comment\ntasks:\n  a:\n    may:\n      - merge", Some((6, 7)), "`merge`"),
        ("max-attempts: 0", Some((1, 15)), "from 1 to 32"),
        ("max-attempts: 3.5", Some((1, 15)), "from 1 to 32, not the number 3.5"),
        ("max-attempts: -1", Some((1, 15)), "from 1 to 32"),
        ("max-attempts: 99999999999", Some((1, 15)), "from 1 to 32"),
        ("max-attempts: \"3\"", Some((1, 15)), "not the text `3`"),
        ("cool-down: 30", Some((1, 12)), "`30m`"),
        ("cool-down: 0s", Some((1, 12)), "no time at all"),
        ("cool-down: 31d", Some((1, 12)), "longer than 30 days"),
        ("settle-grace: 30m\nmax-lifetime: 10m", Some((1, 15)), "longer than `max-lifetime`"),
        ("max-lifetime: 36d", Some((1, 15)), "longer than 35 days"),
        ("max-cost-per-day-usd: -1", Some((1, 23)), "less than nothing"),
        ("max-cost-per-day-usd: 0.001", Some((1, 23)), "finer than a cent"),
        ("max-cost-per-day-usd: 0", Some((1, 23)), "nothing at all"),
        ("estimate-usd: 3\nmax-cost-per-day-usd: 2", Some((1, 15)), "nothing could ever start"),
        ("max-runs-per-hour: 0", Some((1, 20)), "paused: true"),
        ("max-runs-per-hour: 9\nmax-runs-per-day: 5", Some((1, 20)), "a whole day may have only 5"),
        ("burst: 3", Some((1, 8)), "{runs: 3, per: actor, within: 10m}"),
        ("burst: {runs: 3}", Some((1, 8)), "no `within`"),
        ("burst: {runs: 3, within: 1m, pre: actor}", Some((1, 30)), "did you mean `per`?"),
        ("automation:\n  alow: [x]", Some((2, 3)), "did you mean `allow`?"),
        ("on: pull_request", Some((1, 5)), "handles `issues` and `issue_comment`, not `pull_request`"),
        ("on:\n  isues: opened", Some((2, 3)), "did you mean `issues`?"),
        ("on: [issue-comment]", Some((1, 6)), "did you mean `issue_comment`?"),
        ("on:\n  issues: [open]", Some((2, 12)), "did you mean `opened`?"),
        ("on:\n  issues: labelled", Some((2, 11)), "did you mean `labeled`?"),
        ("on:\n  issue_comment:\n    - deleted", Some((3, 7)), "what is gone asks for nothing"),
        ("on:", Some((1, 4)), "names no event"),
        ("ledger-anchor: main", Some((1, 16)), "`main` is not the full id of a commit"),
        ("ledger: lable", Some((1, 9)), "did you mean `label`?"),
        ("version: 2", Some((1, 10)), "reads version 1"),
        ("trigger-labels: [Stop]\nblocking-labels: [stop]", Some((2, 18)), "nothing can start"),
        ("rerun-phrase: '@Claude'", Some((1, 15)), "every request would count as a rerun"),
        ("paused: true\nreply: true\npaused: false", Some((3, 1)), "stands here twice"),
        ("tasks:\n  a: {}\n  b: {}\n  'a': {}", Some((4, 3)), "stands here twice"),
        ("a: 1\n---\nb: 2", Some((3, 1)), "more than one YAML document"),
        ("tasks:\n\ta: {}", Some((2, 1)), "no tabs"),
        ("tasks:\n  a:\n  \tphrase: x", Some((3, 3)), "no tabs"),
        ("phrase: \"abc", Some((1, 13)), "not valid YAML"),
        ("paused: true\n  reply: true", Some((2, 8)), "not valid YAML"),
        ("paused: !!python/object x", Some((1, 9)), "not the text `x`"),
        ("paused: !x true", Some((1, 9)), "custom YAML tags"),
        ("? [a]\n: b", Some((1, 3)), "a key must be a plain word"),
        ("a: *nope", Some((1, 4)), "anchor"),
        ("a: &a [*a]", None, "too deeply"),
        ("<<: {paused: true}", Some((1, 1)), "merge keys"),
        ("# Ä 🦀\nphrase: \"🦀\"\nreply: [🦀, oops]", Some((3, 8)), "true or false"),
        ("\u{feff}reply: maybe", Some((1, 8)), "true or false"),
        ("a: b\nc: \0", Some((2, 4)), "control character"),
        ("reply: true\r\npaused: maybe\r\n", Some((2, 9)), "true or false"),
        (&many, None, "at most 65536 are read"),
        (&deep, None, ""),
        (&bomb, None, "too many values"),
    ];
    let mut wrong = String::new();
    for (text, position, part) in cases {
        let short: String = text.chars().take(80).collect();
        match config::parse(text, ORIGIN) {
            Ok(_) => writeln!(wrong, "{short:?} was read").unwrap(),
            Err(error) => {
                let shown = error.to_string();
                if !shown.contains(part) || position.is_some_and(|at| error.position() != Some(at)) {
                    writeln!(wrong, "{short:?}: expected {position:?} {part:?}, got\n{shown}\n").unwrap();
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn what_looks_like_a_secret_is_not_repeated() {
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let cases = [
        format!("marker-secret: {token}"),
        "marker-secret: hunter2".to_owned(),
        format!("phrase-in: {token}"),
        format!("reply: {token}"),
        format!("{token}: 1"),
        format!("ledger: sk-{}", "abcd".repeat(10)),
        format!("on: [{}]", "a1".repeat(20)),
    ];
    for text in cases {
        let shown = config::parse(&text, ORIGIN).unwrap_err().to_string();
        for secret in ["a1B2a1B2", "hunter2", "abcdabcd", "a1a1a1a1"] {
            assert!(!shown.contains(secret), "{text}: {shown}");
        }
    }
}

#[test]
fn long_and_hidden_text_is_cut_and_written_out() {
    let text = format!("tasks: {{a: {{}}, {} b: {{phrase-in: \u{202e}evil{}}}}}", " ".repeat(300), "z".repeat(500));
    let error = config::parse(&text, ORIGIN).unwrap_err();
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn an_error_has_sentence_place_line_caret_and_hint() {
    let text = "tasks:\n  investigate:\n    max-run-per-hour: 5\n";
    let error = config::parse(text, ORIGIN).unwrap_err();
    insta::assert_snapshot!(error.to_string());
    assert_eq!(error.in_one_line(), ".github/run-guard.yml:3:5: `max-run-per-hour` is no key of a task");
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    #[expect(dead_code, reason = "only its name matters")]
    triggers: Vec<u32>,
}

#[test]
fn types_of_their_own_get_the_same_errors() {
    let error = located::from_yaml::<Own>("triggers: [1, 2,\n  x]", "s.yml").unwrap_err();
    assert_eq!(error.position(), Some((2, 3)));
    let error = located::from_yaml::<Own>("# c\ntriger: []", "s.yml").unwrap_err();
    assert_eq!((error.position(), error.hint()), (Some((2, 1)), Some("did you mean `triggers`?")));
    assert!(located::from_yaml::<Own>("triggers: [1]", "s.yml").is_ok());
}

/// A tree of lists and mappings whose scalars are all different.
fn yaml() -> impl Strategy<Value = serde_json::Value> {
    let leaf = "[a-zäß🦀][a-z ä\u{85}\"']{0,12}[a-z]".prop_map(serde_json::Value::from);
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            proptest::collection::btree_map("[a-z]{1,6}", inner, 0..5)
                .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
        ]
    })
}

/// The scalars of a document with what stands at the place that an error at them would show.
fn check_places(document: &located::Document<'_>, text: &str, node: &located::Node) {
    match &node.kind {
        located::Kind::Scalar(_, raw) => {
            let (line, column) = document.error_at(node, "x").position().unwrap();
            let line = text.split(['\n', '\u{85}']).nth(line - 1).unwrap();
            let there: String = line.chars().skip(column - 1).collect();
            let there = there.trim_start_matches(['"', '\'']);
            let first: String = raw.chars().take_while(|c| c.is_alphanumeric()).collect();
            assert!(there.starts_with(&first), "{raw:?} is not at {there:?} in\n{text}");
        }
        located::Kind::List(items) => items.iter().for_each(|item| check_places(document, text, item)),
        located::Kind::Map(entries) => {
            for (key, value) in entries {
                check_places(document, text, key);
                check_places(document, text, value);
            }
        }
    }
}

proptest! {
    #[test]
    fn every_value_can_be_pointed_at(value in yaml()) {
        let block = serde_yaml::to_string(&value).unwrap();
        let flow = serde_json::to_string_pretty(&value).unwrap();
        for text in [block, flow] {
            let document = located::Document::parse(&text, "x.yml").unwrap_or_else(|e| panic!("{e}\n{text}"));
            check_places(&document, &text, &document.root);
        }
    }

    #[test]
    fn no_text_breaks_the_parser_or_the_terminal(text in "\\PC{0,40}|([a-z-]{1,12}|[:\\[\\]{},&*!|>'\"%@`?# \n\t-]|\\u{1b}|\\u{202e}){0,60}") {
        if let Err(error) = config::parse(&text, ORIGIN) {
            let shown = error.to_string();
            prop_assert!(shown.len() < 2000, "{}", shown);
            prop_assert!(!shown.contains(|c: char| c != '\n' && run_guard::output::escape::is_hidden(c)), "{:?}", shown);
            prop_assert!(shown.lines().count() <= 7, "{}", shown);
        }
    }
}
