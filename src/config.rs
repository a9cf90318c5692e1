//! The policy file: YAML to a validated policy.
//!
//! Every key is one entry of a table that says its type, its default, what it means and how it is set. The parser is
//! that table, and so are the documentation and the schema that are made from it.

pub mod located;
pub mod values;

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use crate::core::claim::{LedgerChoice, MAX_CLAIM_NUMBER};
use crate::core::key::Task;
use crate::core::policy::{Burst, BurstPer, Edits, Effect, Memory, OnAbandoned, PhraseRule, Policy, TaskPolicy};
use located::{Document, Field, Kind, LocatedError, Node, did_you_mean, listed, shown};

/// What is wrong with a policy file, and where.
pub type PolicyError = LocatedError;

/// The type of a key's value, from which the schema is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `true` or `false`.
    Bool,
    /// A whole number within bounds; with `or_none`, also the word `none`.
    Count {
        /// The least.
        least: u32,
        /// The most.
        most: u32,
        /// Whether `none` takes an inherited value back.
        or_none: bool,
    },
    /// A whole number with a unit, `30s`, `30m`, `6h` or `2d`; with `or_none`, also `none`.
    Duration {
        /// Whether `none` takes an inherited value back.
        or_none: bool,
    },
    /// US dollars with at most two digits after the point, or `none`.
    Dollars,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A text in one line; with `or_none`, also `none`.
    Text {
        /// Whether `none` takes an inherited value back.
        or_none: bool,
    },
    /// A list of texts; one text may stand for a list of one.
    Texts,
    /// A list of the words of [`Effect`]; one word may stand for a list of one.
    Effects,
    /// A mapping of events to lists of actions, or a list of events.
    Events,
    /// A mapping with the keys of this other table.
    Mapping(&'static [Doc]),
    /// A mapping of task names to mappings with the keys of [`task_keys`].
    Tasks,
}

/// A key as it is documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doc {
    /// The key.
    pub name: &'static str,
    /// The type of its value.
    pub kind: Type,
    /// The default, written as in a policy; empty where leaving the key out means something that cannot be written.
    pub default: &'static str,
    /// What it means, in one sentence.
    pub meaning: &'static str,
}

/// A key with the way to set it in a `T`.
struct Key<T> {
    doc: Doc,
    set: fn(&Field<'_>, &mut T) -> Result<(), PolicyError>,
}

const PHRASE_RULES: [(&str, PhraseRule); 3] =
    [("comments", PhraseRule::Comments), ("always", PhraseRule::Always), ("never", PhraseRule::Never)];
const EDITS: [(&str, Edits); 3] = [("added", Edits::Added), ("changed", Edits::Changed), ("ignored", Edits::Ignored)];
const ON_ABANDONED: [(&str, OnAbandoned); 2] = [("retry", OnAbandoned::Retry), ("review", OnAbandoned::Review)];
const MEMORY: [(&str, Memory); 2] = [("label", Memory::Label), ("none", Memory::None)];
const BURST_PER: [(&str, BurstPer); 2] = [("resource", BurstPer::Resource), ("actor", BurstPer::Actor)];

/// GitHub's limit of a label's name, in characters.
const MAX_LABEL: usize = 50;
/// The longest phrase, in characters.
const MAX_PHRASE: usize = 100;
/// The longest id of a commit, in characters: a SHA-256 in hex.
const MAX_COMMIT_ID: usize = 64;
/// The longest login, in characters: 39 and `[bot]`, with room for the names of Apps.
const MAX_LOGIN: usize = 60;
/// How far back runs are counted at most: the claims of that time are all listed for every decision.
const MAX_WINDOW: TimeDelta = TimeDelta::days(30);
/// GitHub ends a workflow run after 35 days.
const MAX_LIFETIME: TimeDelta = TimeDelta::days(35);
/// The most runs that a cap can be set to.
const MAX_RUNS: u32 = 100_000;

const RUNS: Type = Type::Count { least: 1, most: MAX_RUNS, or_none: true };

const TASK_KEYS: &[Key<TaskPolicy>] = &[
    Key {
        doc: Doc {
            name: "on",
            kind: Type::Events,
            default: "",
            meaning: "The events that may start the task, each with its actions; without it, whatever the workflow lets through and asks something of an agent.",
        },
        set: |field, task| {
            task.on = Some(events(field)?);
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "trigger-labels",
            kind: Type::Texts,
            default: "[]",
            meaning: "The labels whose adding may start the task; none: any label.",
        },
        set: |field, task| {
            task.trigger_labels = labels(field)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "required-labels",
            kind: Type::Texts,
            default: "[]",
            meaning: "Labels that must all be on the item.",
        },
        set: |field, task| {
            task.required_labels = labels(field)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "blocking-labels",
            kind: Type::Texts,
            default: "[]",
            meaning: "Labels each of which keeps the agent off.",
        },
        set: |field, task| {
            task.blocking_labels = labels(field)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "phrase",
            kind: Type::Text { or_none: false },
            default: "\"@claude\"",
            meaning: "The words by which people call the agent.",
        },
        set: |field, task| {
            task.phrase = field.text(MAX_PHRASE)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "phrase-in",
            kind: Type::Word(&["comments", "always", "never"]),
            default: "comments",
            meaning: "Where the phrase must stand: in comments only, in every text, or nowhere.",
        },
        set: |field, task| {
            task.phrase_rule = field.word(&PHRASE_RULES)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "rerun-phrase",
            kind: Type::Text { or_none: true },
            default: "none",
            meaning: "The words by which people with write permission ask for a done piece of work once more.",
        },
        set: |field, task| {
            task.rerun_phrase = optional(field, |field| field.text(MAX_PHRASE))?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "edits",
            kind: Type::Word(&["added", "changed", "ignored"]),
            default: "added",
            meaning: "Which edits count: those that add a first request, also those that change one, or none.",
        },
        set: |field, task| {
            task.edits = field.word(&EDITS)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "anyone",
            kind: Type::Bool,
            default: "false",
            meaning: "Whether people without write permission may start the task; only where `may` stays within comment and label.",
        },
        set: |field, task| {
            task.anyone = field.bool()?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "closed",
            kind: Type::Bool,
            default: "false",
            meaning: "Whether the task may start on a closed issue or pull request.",
        },
        set: |field, task| {
            task.closed = field.bool()?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "drafts",
            kind: Type::Bool,
            default: "false",
            meaning: "Whether the task may start on a draft.",
        },
        set: |field, task| {
            task.drafts = field.bool()?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "may",
            kind: Type::Effects,
            default: "[comment, label, review, branch, pull-request]",
            meaning: "What the agent may do.",
        },
        set: |field, task| {
            let words = Effect::ALL.map(|effect| (effect.as_str(), effect));
            task.may = field.items()?.iter().map(|item| field.word_of(item, &words)).collect::<Result<_, _>>()?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "max-attempts",
            kind: Type::Count { least: 1, most: MAX_CLAIM_NUMBER, or_none: false },
            default: "3",
            meaning: "How often a failed piece of work is tried, counted from the last rerun that a person asked for.",
        },
        set: |field, task| {
            task.max_attempts = field.count(1, MAX_CLAIM_NUMBER)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "on-abandoned",
            kind: Type::Word(&["retry", "review"]),
            default: "retry",
            meaning: "What to do about a claim whose run is over without an outcome: take it over if nothing was written, or let a person decide.",
        },
        set: |field, task| {
            task.on_abandoned = field.word(&ON_ABANDONED)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "settle-grace",
            kind: Type::Duration { or_none: false },
            default: "60s",
            meaning: "How long a run must be over before its claim may be taken over.",
        },
        set: |field, task| {
            task.settle_grace = span(field, TimeDelta::hours(1))?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "max-lifetime",
            kind: Type::Duration { or_none: false },
            default: "6h",
            meaning: "How long a run without any activity counts as live.",
        },
        set: |field, task| {
            task.max_lifetime = span(field, MAX_LIFETIME)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "memory",
            kind: Type::Word(&["label", "none"]),
            default: "label",
            meaning: "Where it is remembered that an item is done: in a label `run-guard:TASK:done` on it, or only in the claims.",
        },
        set: |field, task| {
            task.memory = field.word(&MEMORY)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "max-bot-rounds",
            kind: Type::Count { least: 0, most: 1000, or_none: false },
            default: "3",
            meaning: "How many comments in a row may be by bots before a person must decide.",
        },
        set: |field, task| {
            task.max_bot_rounds = field.count(0, 1000)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "max-runs-per-hour",
            kind: RUNS,
            default: "none",
            meaning: "How many runs may start within any 60 minutes.",
        },
        set: |field, task| {
            task.budget.max_runs_per_hour = optional(field, runs)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "max-runs-per-day",
            kind: RUNS,
            default: "none",
            meaning: "How many runs may start within any 24 hours.",
        },
        set: |field, task| {
            task.budget.max_runs_per_day = optional(field, runs)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "max-cost-per-day-usd",
            kind: Type::Dollars,
            default: "none",
            meaning: "How many US dollars may be spent within any 24 hours.",
        },
        set: |field, task| {
            task.budget.max_cost_per_day_cents = optional(field, money)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "estimate-usd",
            kind: Type::Dollars,
            default: "none",
            meaning: "What one run is taken to cost until it says; without it, the median of recent runs.",
        },
        set: |field, task| {
            task.budget.estimate_cents = optional(field, money)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "burst",
            kind: Type::Mapping(&[
                Doc {
                    name: "runs",
                    kind: Type::Count { least: 1, most: MAX_RUNS, or_none: false },
                    default: "",
                    meaning: "How many runs may start.",
                },
                Doc {
                    name: "per",
                    kind: Type::Word(&["resource", "actor"]),
                    default: "resource",
                    meaning: "Counted for each issue or pull request, or for each account that triggers.",
                },
                Doc {
                    name: "within",
                    kind: Type::Duration { or_none: false },
                    default: "",
                    meaning: "Within how long.",
                },
            ]),
            default: "none",
            meaning: "At most so many runs of one resource or actor within a time.",
        },
        set: |field, task| {
            task.budget.burst = optional(field, burst)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "cool-down",
            kind: Type::Duration { or_none: true },
            default: "none",
            meaning: "How long an issue or pull request rests after a run was started on it.",
        },
        set: |field, task| {
            task.budget.cool_down = optional(field, |field| span(field, MAX_WINDOW))?;
            Ok(())
        },
    },
];

const POLICY_KEYS: &[Key<Policy>] = &[
    Key {
        doc: Doc {
            name: "version",
            kind: Type::Count { least: 1, most: 1, or_none: false },
            default: "1",
            meaning: "The version of this format.",
        },
        set: |field, _| match field.count(1, u32::MAX)? {
            1 => Ok(()),
            n => Err(field.wrong(format!("this version of run-guard reads version 1 of the policy, not {n}"))),
        },
    },
    Key {
        doc: Doc {
            name: "agents",
            kind: Type::Texts,
            default: "[\"claude[bot]\"]",
            meaning: "The accounts that are agents: what they do starts no agent. A plain name also means a machine user.",
        },
        set: |field, policy| {
            policy.agents = logins(field)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "automation",
            kind: Type::Mapping(&[Doc {
                name: "allow",
                kind: Type::Texts,
                default: "[]",
                meaning: "Other bots that may start agents.",
            }]),
            default: "{allow: []}",
            meaning: "Which automation may start agents.",
        },
        set: |field, policy| {
            for field in field.fields()? {
                match field.name {
                    "allow" => policy.automation_allow = logins(&field)?,
                    _ => return Err(unknown(&field, "`automation`", ["allow"])),
                }
            }
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "paused",
            kind: Type::Bool,
            default: "false",
            meaning: "Whether no agent may start for now; what is asked meanwhile is deferred.",
        },
        set: |field, policy| {
            policy.paused = field.bool()?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "ledger",
            kind: Type::Word(&["label", "check-run", "ref", "auto"]),
            default: "label",
            meaning: "Where claims are kept. `auto`: in check runs where the work is about one commit and the task has no cap over a time, else in labels.",
        },
        set: |field, policy| {
            policy.ledger = field.word(&LedgerChoice::ALL)?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "ledger-anchor",
            kind: Type::Text { or_none: true },
            default: "none",
            meaning: "The commit, by its full id, on which `check-run` keeps the claims of work that is about no commit.",
        },
        set: |field, policy| {
            policy.ledger_anchor = optional(field, |field| {
                let text = field.text(MAX_COMMIT_ID)?;
                text.parse().map_err(|()| {
                    field
                        .wrong(format!("`{text}` is not the full id of a commit"))
                        .with_hint("write the 40 lower-case hex digits that `git rev-parse HEAD` prints, in quotes")
                })
            })?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: "reply",
            kind: Type::Bool,
            default: "false",
            meaning: "Whether a person who asked and is refused gets a short comment.",
        },
        set: |field, policy| {
            policy.reply = field.bool()?;
            Ok(())
        },
    },
    Key {
        doc: Doc {
            name: TASKS,
            kind: Type::Tasks,
            default: "{}",
            meaning: "The tasks by name, each with what differs from the top level.",
        },
        // Read last, when the defaults of the top level are known.
        set: |_, _| Ok(()),
    },
];

const TASKS: &str = "tasks";

/// The keys of the top level, without those of [`task_keys`], which may all stand there too as every task's default.
pub fn policy_keys() -> impl Iterator<Item = &'static Doc> {
    POLICY_KEYS.iter().map(|key| &key.doc)
}

/// The keys of a task.
pub fn task_keys() -> impl Iterator<Item = &'static Doc> {
    TASK_KEYS.iter().map(|key| &key.doc)
}

/// Whether a task with these effects may be open to people without write permission.
pub fn may_be_open_to_anyone(may: &BTreeSet<Effect>) -> bool {
    may.iter().all(|effect| matches!(effect, Effect::Comment | Effect::Label))
}

/// Reads a policy file; `origin` is its name in errors.
///
/// # Errors
///
/// The first mistake in it.
pub fn parse(text: &str, origin: &str) -> Result<Policy, PolicyError> {
    let document = Document::parse(text, origin)?;
    from_node(&document, &document.root)
}

/// Reads a policy that is part of another document.
///
/// # Errors
///
/// The first mistake in it.
pub fn from_node(document: &Document<'_>, node: &Node) -> Result<Policy, PolicyError> {
    let fields = Field::all(document, node, "the policy")?;
    let mut policy = Policy::default();
    let mut shared = Vec::new();
    for field in &fields {
        if let Some(key) = POLICY_KEYS.iter().find(|key| key.doc.name == field.name) {
            (key.set)(field, &mut policy)?;
        } else if let Some(key) = TASK_KEYS.iter().find(|key| key.doc.name == field.name) {
            (key.set)(field, &mut policy.defaults)?;
            shared.push(*field);
        } else {
            let names = policy_keys().chain(task_keys()).map(|doc| doc.name);
            return Err(unknown(field, "the policy", names));
        }
    }
    consistent(&policy.defaults, &[], &shared)?;
    for field in fields.iter().filter(|field| field.name == TASKS) {
        for field in field.fields()? {
            let task: Task = field.name.parse().map_err(|error| field.wrong_key(shown_error(&error)))?;
            let mut rules = policy.defaults.clone();
            let own = field.fields()?;
            for field in &own {
                let Some(key) = TASK_KEYS.iter().find(|key| key.doc.name == field.name) else {
                    return Err(unknown_in_task(field));
                };
                (key.set)(field, &mut rules)?;
            }
            consistent(&rules, &own, &shared)?;
            policy.tasks.insert(task, rules);
        }
    }
    Ok(policy)
}

fn shown_error(error: &crate::core::key::BadTask) -> String {
    crate::core::key::BadTask(shown(&error.0)).to_string()
}

/// That a mapping has no such key, with the one that was probably meant.
pub(crate) fn unknown<'k>(field: &Field<'_>, of: &str, names: impl IntoIterator<Item = &'k str>) -> PolicyError {
    let error = field.wrong_key(format!("`{}` is no key of {of}", shown(field.name)));
    if field.name == "<<" {
        return error.with_hint("merge keys are not read; keys at the top level hold for every task");
    }
    match did_you_mean(field.name, names) {
        Some(meant) => error.with_hint(format!("did you mean `{meant}`?")),
        None => error,
    }
}

fn unknown_in_task(field: &Field<'_>) -> PolicyError {
    if policy_keys().any(|doc| doc.name == field.name) {
        let sentence = format!("`{}` holds for the whole repository, not for one task", field.name);
        return field.wrong_key(sentence).with_hint("put it at the top level of the file");
    }
    unknown(field, "a task", task_keys().map(|doc| doc.name))
}

/// `none`, or what `read` makes of the value.
fn optional<T>(
    field: &Field<'_>,
    read: impl FnOnce(&Field<'_>) -> Result<T, PolicyError>,
) -> Result<Option<T>, PolicyError> {
    if field.value.text() == Some("none") { Ok(None) } else { read(field).map(Some) }
}

/// A cap on runs.
fn runs(field: &Field<'_>) -> Result<u32, PolicyError> {
    if field.value.text() == Some("0") {
        let sentence = format!("`{}: 0` would never let anything start", field.name);
        return Err(field.wrong(sentence).with_hint("write `paused: true` to pause, or `none` for no cap"));
    }
    field.count(1, MAX_RUNS)
}

/// A duration of more than nothing.
fn span(field: &Field<'_>, most: TimeDelta) -> Result<TimeDelta, PolicyError> {
    let Some(text) = field.value.text() else { return Err(field.must_be("a duration such as `30m`")) };
    let wrong = |rest: String| field.wrong(format!("`{}: {}` {rest}", field.name, shown(text)));
    let span = values::duration(text).map_err(wrong)?;
    if span.is_zero() {
        return Err(wrong("is no time at all".to_owned()));
    }
    if span > most {
        return Err(wrong(format!("is longer than {}", in_words(most))));
    }
    Ok(span)
}

fn in_words(span: TimeDelta) -> String {
    if span >= TimeDelta::days(2) { format!("{} days", span.num_days()) } else { format!("{} min", span.num_minutes()) }
}

/// An amount of money of more than nothing, in cents.
fn money(field: &Field<'_>) -> Result<u64, PolicyError> {
    let Some(text) = field.value.text() else { return Err(field.must_be("an amount of US dollars such as `2.50`")) };
    let wrong = |rest: String| field.wrong(format!("`{}: {}` {rest}", field.name, shown(text)));
    match values::cents(text).map_err(wrong)? {
        0 => Err(wrong("is nothing at all".to_owned()).with_hint("write `none` to leave it open")),
        cents => Ok(cents),
    }
}

fn burst(field: &Field<'_>) -> Result<Burst, PolicyError> {
    let (mut runs, mut per, mut within) = (None, BurstPer::Resource, None);
    if !matches!(field.value.kind, Kind::Map(_)) {
        return Err(field.must_be("a mapping such as `{runs: 3, per: actor, within: 10m}`"));
    }
    for field in field.fields()? {
        match field.name {
            "runs" => runs = Some(field.count(1, MAX_RUNS)?),
            "per" => per = field.word(&BURST_PER)?,
            "within" => within = Some(span(&field, MAX_WINDOW)?),
            _ => return Err(unknown(&field, "`burst`", ["runs", "per", "within"])),
        }
    }
    match (runs, within) {
        (Some(runs), Some(within)) => Ok(Burst { runs, per, within }),
        (None, _) => Err(field.wrong("`burst` says no `runs`, so it is not known how many may start")),
        (_, None) => Err(field.wrong("`burst` says no `within`, so it is not known for how long to count")),
    }
}

fn labels(field: &Field<'_>) -> Result<Vec<String>, PolicyError> {
    field.texts(MAX_LABEL)
}

fn logins(field: &Field<'_>) -> Result<Vec<String>, PolicyError> {
    for item in field.items()? {
        let Some(text) = item.text() else { continue };
        let name = crate::core::identity::bare_login(text);
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) || name.is_empty() {
            let error = field.wrong_at(item, format!("`{}` is no GitHub login", shown(text)));
            return Err(match text.strip_prefix('@') {
                Some(_) => error.with_hint("write it without the `@`"),
                None => error.with_hint("a login has letters, digits and dashes; an App's ends in `[bot]`"),
            });
        }
    }
    field.texts(MAX_LOGIN)
}

/// The events that this version handles, with the actions of each that can start an agent.
const EVENTS: [(&str, &[&str]); 2] = [
    (
        "issues",
        &[
            "opened",
            "edited",
            "reopened",
            "closed",
            "labeled",
            "unlabeled",
            "assigned",
            "unassigned",
            "milestoned",
            "demilestoned",
            "typed",
            "untyped",
            "pinned",
            "unpinned",
            "locked",
            "unlocked",
            "transferred",
        ],
    ),
    ("issue_comment", &["created", "edited"]),
];

/// GitHub's other events that start workflows.
const OTHER_EVENTS: [&str; 34] = [
    "branch_protection_rule",
    "check_run",
    "check_suite",
    "create",
    "delete",
    "deployment",
    "deployment_status",
    "discussion",
    "discussion_comment",
    "fork",
    "gollum",
    "image_version",
    "label",
    "merge_group",
    "milestone",
    "page_build",
    "project",
    "project_card",
    "project_column",
    "public",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_target",
    "push",
    "registry_package",
    "release",
    "repository_dispatch",
    "schedule",
    "status",
    "watch",
    "workflow_call",
    "workflow_dispatch",
    "workflow_run",
];

fn events(field: &Field<'_>) -> Result<BTreeMap<String, BTreeSet<String>>, PolicyError> {
    let mut on = BTreeMap::new();
    if matches!(field.value.kind, Kind::Map(_)) {
        for field in field.fields()? {
            let known = event(field.name).map_err(|(sentence, hint)| hinted(field.wrong_key(sentence), hint))?;
            let mut actions = BTreeSet::new();
            for item in field.items()? {
                actions.insert(action(&field, item, known)?);
            }
            on.insert(known.0.to_owned(), actions);
        }
    } else {
        for item in field.items()? {
            let Some(name) = item.text() else {
                return Err(field.wrong_at(item, format!("an event of `on` must be a name, not {}", item.in_words())));
            };
            let known = event(name).map_err(|(sentence, hint)| hinted(field.wrong_at(item, sentence), hint))?;
            on.insert(known.0.to_owned(), BTreeSet::new());
        }
    }
    if on.is_empty() {
        return Err(field
            .wrong("`on` names no event, so the task would never start")
            .with_hint("leave the key out to take whatever the workflow lets through"));
    }
    Ok(on)
}

fn hinted(error: PolicyError, hint: Option<String>) -> PolicyError {
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

type Event = (&'static str, &'static [&'static str]);

fn event(name: &str) -> Result<Event, (String, Option<String>)> {
    if let Some(known) = EVENTS.iter().find(|(event, _)| *event == name) {
        return Ok(*known);
    }
    let handled = listed(&EVENTS.map(|(event, _)| format!("`{event}`")));
    if OTHER_EVENTS.contains(&name) {
        return Err((format!("this version of run-guard handles {handled}, not `{name}`"), None));
    }
    let meant = did_you_mean(name, EVENTS.iter().map(|(event, _)| *event).chain(OTHER_EVENTS));
    let hint = meant.map_or_else(
        || format!("this version of run-guard handles {handled}"),
        |meant| format!("did you mean `{meant}`?"),
    );
    Err((format!("`{}` is no event of GitHub", shown(name)), Some(hint)))
}

fn action(field: &Field<'_>, item: &Node, (event, actions): Event) -> Result<String, PolicyError> {
    match item.text() {
        Some(name) if actions.contains(&name) => Ok(name.to_owned()),
        Some("deleted") => Err(field
            .wrong_at(item, format!("`{event}` `deleted` can start no agent: what is gone asks for nothing"))
            .with_hint("take `deleted` out")),
        Some(name) => {
            let error = field.wrong_at(item, format!("`{}` is no action of `{event}`", shown(name)));
            let names: Vec<String> = actions.iter().map(|action| format!("`{action}`")).collect();
            Err(match did_you_mean(name, actions.iter().copied()) {
                Some(meant) => error.with_hint(format!("did you mean `{meant}`?")),
                None => error.with_hint(format!("it has {}", listed(&names))),
            })
        }
        None => Err(field.wrong_at(item, format!("an action of `{event}` must be a word, not {}", item.in_words()))),
    }
}

/// The field with the first of these names that is there.
fn first_of<'f, 'd>(names: &[&str], fields: &'f [Field<'d>]) -> Option<&'f Field<'d>> {
    names.iter().find_map(|name| fields.iter().find(|field| field.name == *name))
}

/// Refuses values that are right each, but impossible together. The mistake is shown where the task itself says one
/// of them, else where the top level does.
fn consistent(rules: &TaskPolicy, own: &[Field<'_>], shared: &[Field<'_>]) -> Result<(), PolicyError> {
    let written = |names: &[&str], sentence: String, hint: &str| -> Result<(), PolicyError> {
        match first_of(names, own).or_else(|| first_of(names, shared)) {
            Some(field) => Err(field.wrong(sentence).with_hint(hint)),
            // Defaults agree with each other, so whatever does not was written somewhere.
            None => Ok(()),
        }
    };
    if rules.anyone && !may_be_open_to_anyone(&rules.may) {
        let more: Vec<String> = rules
            .may
            .iter()
            .filter(|effect| !matches!(effect, Effect::Comment | Effect::Label))
            .map(|effect| format!("`{}`", effect.as_str()))
            .collect();
        return written(
            &["anyone", "may"],
            format!("`anyone: true` would let strangers start an agent that may also do {}", listed(&more)),
            "add `may: [comment, label]`, or leave `anyone` out",
        );
    }
    if rules.settle_grace > rules.max_lifetime {
        return written(
            &["settle-grace", "max-lifetime"],
            "`settle-grace` is longer than `max-lifetime`, so a claim would be waited for longer than it can live"
                .to_owned(),
            "make `settle-grace` the shorter one",
        );
    }
    let same = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
    for (name, others) in [("required-labels", &rules.required_labels), ("trigger-labels", &rules.trigger_labels)] {
        if let Some(label) = others.iter().find(|o| rules.blocking_labels.iter().any(|b| same(b, o))) {
            return written(
                &["blocking-labels", name],
                format!(
                    "the label `{}` stands in `{name}` and in `blocking-labels`, so nothing can start",
                    shown(label)
                ),
                "take it out of one of the two",
            );
        }
    }
    if rules.rerun_phrase.as_deref().is_some_and(|rerun| same(rerun, &rules.phrase)) {
        return written(
            &["rerun-phrase", "phrase"],
            "`rerun-phrase` is the same as `phrase`, so every request would count as a rerun".to_owned(),
            "add a word to it, such as `@claude again`",
        );
    }
    if let (Some(estimate), Some(cap)) = (rules.budget.estimate_cents, rules.budget.max_cost_per_day_cents)
        && estimate > cap
    {
        return written(
            &["estimate-usd", "max-cost-per-day-usd"],
            "one run is estimated to cost more than `max-cost-per-day-usd`, so nothing could ever start".to_owned(),
            "raise the cap or lower `estimate-usd`",
        );
    }
    let both = |fields: &[Field<'_>]| {
        ["max-runs-per-hour", "max-runs-per-day"].iter().all(|n| fields.iter().any(|f| f.name == *n))
    };
    // A task that lowers the cap of the day under an inherited cap of the hour means it; both written side by side
    // are most likely exchanged.
    if let (Some(hour), Some(day)) = (rules.budget.max_runs_per_hour, rules.budget.max_runs_per_day)
        && hour > day
        && (both(own) || (own.is_empty() && both(shared)))
    {
        return written(
            &["max-runs-per-hour"],
            format!("`max-runs-per-hour` is {hour}, but a whole day may have only {day}"),
            "exchange the two, or leave `max-runs-per-hour` out",
        );
    }
    Ok(())
}
