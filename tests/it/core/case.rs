//! The form of a case: what happened, what is known, what must follow. Whatever a case leaves out has the value of the
//! plain situation: issue 731 of acme/app was opened by alice, who may write, nothing is claimed, no cap is set.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use run_guard::core::claim::{
    Cause, Claim, ClaimRead, ClaimState, Nonce, Outcome, Owner, Record, RerunId, Settlement, SweepPhase, Thing,
};
use run_guard::core::decide::decide;
use run_guard::core::decision::{Decision, Stop};
use run_guard::core::facts::{
    Comment, Fact, Facts, LabelEvent, Permission, RepositoryState, ResourceState, RunState, Window, WindowClaim,
};
use run_guard::core::gates::Context;
use run_guard::core::identity::{Actor, ActorKind};
use run_guard::core::key::{Key, Task};
use run_guard::core::policy::{Burst, BurstPer, Edits, Effect, Memory, OnAbandoned, PhraseRule, Policy, TaskPolicy};
use run_guard::core::trigger::{RunContext, Trigger};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A case as it stands in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// The situation, as a patch of the plain one.
    #[serde(default = "nothing")]
    pub(crate) when: Value,
    /// What must follow.
    pub(crate) expect: String,
    /// Words that the sentence must hold.
    #[serde(default)]
    pub(crate) says: Vec<String>,
    /// Links that the evidence must hold.
    #[serde(default)]
    pub(crate) links: Vec<String>,
    /// When asking again makes sense.
    #[serde(default)]
    pub(crate) retry_at: Option<String>,
    /// Variations: what must follow if this differs too.
    #[serde(default)]
    pub(crate) but: Vec<Variation>,
}

fn nothing() -> Value {
    json!({})
}

/// A case that differs from another in little.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variation {
    #[serde(rename = "if")]
    pub(crate) change: Value,
    pub(crate) expect: String,
    #[serde(default)]
    pub(crate) says: Vec<String>,
}

/// The situation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Situation {
    now: String,
    event: String,
    action: String,
    sender: Value,
    author: Value,
    title: Value,
    body: Value,
    comment: Option<CommentCase>,
    label: Option<String>,
    changes: Option<Value>,
    pull_request: bool,
    number: Value,
    run: u64,
    attempt: u32,
    by: Option<String>,
    policy: PolicyCase,
    viewer: Value,
    repository: Value,
    issue: Value,
    permissions: BTreeMap<String, String>,
    claims: Value,
    holder: Value,
    own_run: Value,
    second_read: Value,
    marker_claim: Value,
    window: Value,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommentCase {
    id: u64,
    by: Value,
    at: String,
    #[serde(default)]
    edited: Option<String>,
    body: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PolicyCase {
    agents: Option<Vec<String>>,
    allow: Vec<String>,
    paused: bool,
    on: Option<BTreeMap<String, std::collections::BTreeSet<String>>>,
    trigger_labels: Vec<String>,
    required_labels: Vec<String>,
    blocking_labels: Vec<String>,
    phrase_rule: Option<String>,
    rerun_phrase: Option<String>,
    edits: Option<String>,
    anyone: bool,
    closed: bool,
    drafts: bool,
    may: Vec<String>,
    max_attempts: Option<u32>,
    on_abandoned: Option<String>,
    no_memory: bool,
    per_hour: Option<u32>,
    per_day: Option<u32>,
    cost_cents: Option<u64>,
    estimate_cents: Option<u64>,
    burst: Option<(u32, String, i64)>,
    cool_down_min: Option<i64>,
}

/// What everything is about, built from a situation.
pub(crate) struct Built {
    pub(crate) trigger: Trigger,
    pub(crate) task: Task,
    pub(crate) key: Key,
    pub(crate) policy: Policy,
    pub(crate) facts: Facts,
    pub(crate) now: DateTime<Utc>,
}

impl Built {
    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            trigger: &self.trigger,
            task: &self.task,
            key: &self.key,
            policy: &self.policy,
            rules: self.policy.task(&self.task),
            facts: &self.facts,
            now: self.now,
        }
    }

    pub(crate) fn decide(&self) -> Decision {
        decide(&self.context())
    }
}

/// The plain situation.
pub(crate) fn plain() -> Value {
    json!({
        "now": "15:00", "event": "issues", "action": "opened", "sender": "alice", "author": "alice",
        "title": "The login form hangs", "body": "It hangs after a wrong password.",
        "comment": null, "label": null, "changes": null, "pull_request": false, "number": 731,
        "run": 500, "attempt": 1, "by": null, "policy": {},
        "viewer": "github-actions[bot]", "repository": 42,
        "issue": {
            "open": true, "merged": false, "draft": false, "labels": [], "label_events": [], "comments": [],
            "comment_total": null
        },
        "permissions": { "alice": "write", "outsider": "read", "mallory": "none" },
        "claims": {}, "holder": null, "own_run": null, "second_read": null, "marker_claim": null,
        "window": []
    })
}

/// `patch` laid over `base`: maps are merged, everything else is replaced.
pub(crate) fn merged(base: &Value, patch: &Value) -> Value {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            let mut out: Map<String, Value> = base.clone();
            for (name, value) in patch {
                let merged = merged(base.get(name).unwrap_or(&Value::Null), value);
                out.insert(name.clone(), merged);
            }
            Value::Object(out)
        }
        (_, patch) => patch.clone(),
    }
}

/// A time of the day on which the cases play, or a whole time.
pub(crate) fn time(text: &str) -> DateTime<Utc> {
    let full = match text.len() {
        5 => format!("2026-11-30T{text}:00Z"),
        8 => format!("2026-11-30T{text}Z"),
        _ => text.to_owned(),
    };
    DateTime::parse_from_rfc3339(&full).unwrap_or_else(|e| panic!("{text}: {e}")).to_utc()
}

fn rfc(text: &str) -> String {
    time(text).to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// An account: `alice` is a person, `x[bot]` a Bot, `null` nobody, and a map says all.
fn payload_actor(value: &Value) -> Value {
    match value {
        Value::String(login) => {
            let kind = if login.ends_with("[bot]") { "Bot" } else { "User" };
            json!({ "login": login, "type": kind, "id": id_of(login) })
        }
        other => other.clone(),
    }
}

/// A made-up account id that is the same for the same login.
pub(crate) fn id_of(login: &str) -> u64 {
    login.bytes().map(u64::from).sum()
}

fn actor(value: &Value) -> Option<Actor> {
    let value = payload_actor(value);
    let login = value.get("login")?.as_str().unwrap().to_owned();
    // GraphQL, where facts come from, leaves the suffix out.
    let login = login.strip_suffix("[bot]").map(str::to_owned).unwrap_or(login);
    Some(Actor { login, kind: ActorKind::parse(value["type"].as_str().unwrap()), id: value["id"].as_u64() })
}

impl Situation {
    pub(crate) fn read(value: &Value) -> Self {
        serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{e} in {value}"))
    }

    fn payload(&self) -> Value {
        let mut payload = json!({
            "action": self.action,
            "repository": { "id": 42, "full_name": "acme/app" },
            "sender": payload_actor(&self.sender),
            "issue": {
                "number": self.number, "title": self.title, "body": self.body, "user": payload_actor(&self.author),
                "html_url": "https://github.com/acme/app/issues/731"
            }
        });
        if self.pull_request {
            payload["issue"]["pull_request"] = json!({ "url": "https://api.github.com/repos/acme/app/pulls/731" });
        }
        if let Some(comment) = &self.comment {
            payload["comment"] = json!({
                "id": comment.id, "user": payload_actor(&comment.by), "body": comment.body,
                "created_at": rfc(&comment.at), "updated_at": rfc(comment.edited.as_ref().unwrap_or(&comment.at)),
                "html_url": format!("https://github.com/acme/app/issues/731#issuecomment-{}", comment.id)
            });
        }
        if let Some(label) = &self.label {
            payload["label"] = json!({ "name": label });
        }
        if let Some(changes) = &self.changes {
            payload["changes"] = changes.clone();
        }
        payload
    }

    /// Reads the payload, or says what is wrong with it.
    pub(crate) fn build(&self) -> Result<Built, Stop> {
        let run = RunContext { run: self.run, attempt: self.attempt, triggering_actor: self.by.clone() };
        let trigger = Trigger::read(&self.event, &self.payload(), "GitHub.com", run)?;
        let task: Task = "investigate".parse().unwrap();
        let policy = self.policy.build(&task);
        let key = trigger.key(&task, policy.task(&task));
        let mut facts = Facts {
            viewer: fact(&self.viewer, |v| v.as_str().unwrap().to_owned()),
            repository: fact(&self.repository, |id| RepositoryState {
                id: id.as_u64().unwrap(),
                name_with_owner: "acme/app".to_owned(),
            }),
            resource: fact(&self.issue, |issue| if issue == "none" { None } else { Some(self.resource(issue)) }),
            permissions: BTreeMap::new(),
            claims: fact(&self.claims, |claims| {
                let claims = claims.as_object().unwrap();
                claims.iter().map(|(n, c)| (n.parse().unwrap(), claim_read(n.parse().unwrap(), c))).collect()
            }),
            holder: fact(&self.holder, run_state),
            own_run: fact(&self.own_run, run_state),
            second_read: fact(&self.second_read, named_claim),
            marker_claim: fact(&self.marker_claim, named_claim),
            window: fact(&self.window, window),
        };
        for (login, permission) in &self.permissions {
            let permission = match permission.strip_prefix("unknown: ") {
                Some(why) => Fact::Unknown(why.to_owned()),
                None if permission == "unasked" => Fact::Unasked,
                None => Fact::Known(Permission::parse(permission).unwrap()),
            };
            facts.set_permission(login, permission);
        }
        Ok(Built { trigger, task, key, policy, facts, now: time(&self.now) })
    }

    fn resource(&self, issue: &Value) -> ResourceState {
        let comments: Vec<Comment> = list(issue, "comments")
            .iter()
            .map(|c| {
                let at = time(c["at"].as_str().unwrap());
                let id = c["id"].as_u64().unwrap();
                Comment {
                    id,
                    author: actor(&c["by"]),
                    editor: c["editor"].as_str().map(str::to_owned),
                    body: c["body"].as_str().unwrap_or("words").to_owned(),
                    created_at: at,
                    updated_at: c["edited"].as_str().map_or(at, time),
                    url: format!("https://github.com/acme/app/issues/731#issuecomment-{id}"),
                }
            })
            .collect();
        let total = issue["comment_total"].as_u64().unwrap_or(u64::try_from(comments.len()).unwrap());
        ResourceState {
            is_pull_request: self.pull_request,
            number: 731,
            open: issue["open"].as_bool().unwrap(),
            merged: issue["merged"].as_bool().unwrap(),
            draft: issue["draft"].as_bool().unwrap(),
            locked: false,
            author: actor(&self.author),
            labels: list(issue, "labels").iter().map(|l| l.as_str().unwrap().to_owned()).collect(),
            label_events: list(issue, "label_events").iter().enumerate().map(label_event).collect(),
            comment_total: total,
            comments,
            head_sha: None,
            url: "https://github.com/acme/app/issues/731".to_owned(),
        }
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap()
}

fn label_event((n, event): (usize, &Value)) -> LabelEvent {
    LabelEvent {
        id: format!("LE_{n}"),
        added: event["on"].as_bool().unwrap_or(true),
        label: event["label"].as_str().unwrap().to_owned(),
        actor: actor(&event["by"]),
        at: time(event["at"].as_str().unwrap()),
    }
}

/// `null` is not asked, `unknown: WHY` could not be read.
fn fact<T>(value: &Value, known: impl Fn(&Value) -> T) -> Fact<T> {
    match value {
        Value::Null => Fact::Unasked,
        Value::String(text) if text.starts_with("unknown: ") => Fact::Unknown(text["unknown: ".len()..].to_owned()),
        value => Fact::Known(known(value)),
    }
}

fn run_state(value: &Value) -> RunState {
    if value == "missing" {
        return RunState::Missing;
    }
    RunState::Found {
        attempt: u32::try_from(value["attempt"].as_u64().unwrap_or(1)).unwrap(),
        conclusion: value["conclusion"].as_str().map(str::to_owned),
        updated_at: time(value["updated"].as_str().unwrap_or("14:00")),
        started_at: value["started"].as_str().map(time),
        url: "https://github.com/acme/app/actions/runs/1".to_owned(),
    }
}

fn named_claim(value: &Value) -> Option<ClaimRead> {
    if value == "none" {
        return None;
    }
    Some(claim_read(u32::try_from(value["number"].as_u64().unwrap()).unwrap(), value))
}

fn claim_read(number: u32, value: &Value) -> ClaimRead {
    if value == "unreadable" || value["unreadable"] == true {
        return ClaimRead::Unreadable { number, thing: Thing::default(), why: "not a claim record".to_owned() };
    }
    ClaimRead::Readable(Claim { number, thing: Thing::default(), record: record(value) })
}

fn record(value: &Value) -> Record {
    let at = |name: &str, default: &str| time(value[name].as_str().unwrap_or(default));
    let word = value["state"].as_str().unwrap_or("open");
    let state = match word {
        "open" => ClaimState::Open,
        "sweep" => ClaimState::Sweep { phase: SweepPhase::Holding, at: at("at", "14:10") },
        outcome => ClaimState::Settled(Settlement {
            outcome: Outcome::parse(outcome).unwrap_or_else(|| panic!("{outcome} is no outcome")),
            at: at("at", "14:10"),
            cost_cents: value["cost"].as_u64(),
            result_comment: value["result"].as_u64(),
        }),
    };
    let cause = value["cause"].as_str().unwrap_or("first");
    Record {
        owner: Owner {
            run: value["run"].as_u64().unwrap_or(100),
            attempt: u32::try_from(value["attempt"].as_u64().unwrap_or(1)).unwrap(),
            nonce: Nonce::from_bits(value["nonce"].as_u64().unwrap_or(7)),
        },
        cause: Cause::ALL.into_iter().find(|c| c.as_str() == cause).unwrap(),
        rerun: value["rerun"].as_str().map(rerun),
        opened_at: at("opened", "14:00"),
        number: Some(value["issue"].as_u64().unwrap_or(731)),
        actor: value["actor"].as_str().map(id_of),
        state,
    }
}

fn rerun(text: &str) -> RerunId {
    let (kind, id) = text.split_once(' ').unwrap();
    match kind {
        "comment" => RerunId::Comment(id.parse().unwrap()),
        "label" => RerunId::Label(u64::try_from(time(id).timestamp()).unwrap()),
        "attempt" => {
            let (run, attempt) = id.split_once('.').unwrap();
            RerunId::Attempt(run.parse().unwrap(), attempt.parse().unwrap())
        }
        _ => panic!("{text} is no wish"),
    }
}

fn window(value: &Value) -> Window {
    if let Some(since) = value["complete_since"].as_str() {
        return Window { complete_since: Some(time(since)), ..Window::default() };
    }
    if let Some(name) = value["unreadable"].as_str() {
        return Window { unreadable: vec![name.to_owned()], ..Window::default() };
    }
    let claims = value.as_array().unwrap().iter().enumerate().map(|(n, claim)| WindowClaim {
        task: claim["task"].as_str().unwrap_or("investigate").to_owned(),
        digest: format!("{n:012x}"),
        claim: Claim { number: 1, thing: Thing::default(), record: record(claim) },
    });
    Window { claims: claims.collect(), complete_since: None, unreadable: Vec::new() }
}

impl PolicyCase {
    fn build(&self, task: &Task) -> Policy {
        let mut rules = TaskPolicy {
            on: self.on.clone(),
            trigger_labels: self.trigger_labels.clone(),
            required_labels: self.required_labels.clone(),
            blocking_labels: self.blocking_labels.clone(),
            rerun_phrase: self.rerun_phrase.clone(),
            anyone: self.anyone,
            closed: self.closed,
            drafts: self.drafts,
            ..TaskPolicy::default()
        };
        rules.phrase_rule = match self.phrase_rule.as_deref() {
            None | Some("comments") => PhraseRule::Comments,
            Some("always") => PhraseRule::Always,
            Some("never") => PhraseRule::Never,
            Some(other) => panic!("{other} is no phrase rule"),
        };
        rules.edits = match self.edits.as_deref() {
            None | Some("added") => Edits::Added,
            Some("changed") => Edits::Changed,
            Some("ignored") => Edits::Ignored,
            Some(other) => panic!("{other} is no rule for edits"),
        };
        rules.on_abandoned = match self.on_abandoned.as_deref() {
            None | Some("retry") => OnAbandoned::Retry,
            Some("review") => OnAbandoned::Review,
            Some(other) => panic!("{other} is no way with abandoned claims"),
        };
        for effect in &self.may {
            rules.may.insert(Effect::ALL.into_iter().find(|e| e.as_str() == effect).unwrap());
        }
        if self.no_memory {
            rules.memory = Memory::None;
        }
        rules.max_attempts = self.max_attempts.unwrap_or(rules.max_attempts);
        rules.budget.max_runs_per_hour = self.per_hour;
        rules.budget.max_runs_per_day = self.per_day;
        rules.budget.max_cost_per_day_cents = self.cost_cents;
        rules.budget.estimate_cents = self.estimate_cents;
        rules.budget.cool_down = self.cool_down_min.map(TimeDelta::minutes);
        rules.budget.burst = self.burst.as_ref().map(|(runs, per, minutes)| Burst {
            runs: *runs,
            per: if per == "actor" { BurstPer::Actor } else { BurstPer::Resource },
            within: TimeDelta::minutes(*minutes),
        });
        let mut policy = Policy { automation_allow: self.allow.clone(), paused: self.paused, ..Policy::default() };
        if let Some(agents) = &self.agents {
            policy.agents.clone_from(agents);
        }
        policy.tasks.insert(task.clone(), rules);
        policy
    }
}

/// What follows, in one line: `VERDICT REASON`, `claim N CAUSE [for WISH] [over M] [near]`, or `ask QUESTION`.
pub(crate) fn outcome(decision: &Decision) -> String {
    match decision {
        Decision::Ask(question) => format!("ask {question:?}"),
        Decision::Stop { stop, .. } => format!("{} {}", stop.verdict, stop.reason),
        Decision::Claim { plan, .. } => {
            let mut words = vec![format!("claim {} {}", plan.number, plan.cause.as_str())];
            match &plan.rerun {
                None => {}
                Some(RerunId::Comment(id)) => words.push(format!("for comment {id}")),
                Some(RerunId::Attempt(run, attempt)) => words.push(format!("for attempt {run}.{attempt}")),
                Some(RerunId::Label(at)) => {
                    let at = DateTime::from_timestamp(i64::try_from(*at).unwrap(), 0).unwrap();
                    words.push(format!("for label {}", at.format("%H:%M")));
                }
            }
            words.extend(plan.takes_over.as_ref().map(|claim| format!("over {}", claim.number)));
            words.extend(plan.rank_after.then(|| "near".to_owned()));
            words.join(" ")
        }
    }
}
