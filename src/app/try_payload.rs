//! `check --sim`: decides against an embedded GitHub that is filled from the payload alone, so that anyone can try one
//! without a token.

use std::cell::RefCell;
use std::rc::Rc;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::World;
use super::check::{CheckInput, check};
use super::report::CheckReport;
use crate::core::claim::Nonce;
use crate::core::facts::Permission;
use crate::core::identity::{Actor, ActorKind};
use crate::core::trigger::Trigger;
use crate::ports::Clock;
use crate::sim::port::InProcess;
use crate::sim::{Grants, ItemSpec, State, TokenSpec};

/// The one token of that GitHub.
const TOKEN: &str = "embedded";

/// A clock that stands still: nothing in such a GitHub is worth waiting for.
struct Stopped(DateTime<Utc>);

impl Clock for Stopped {
    fn now(&self) -> DateTime<Utc> {
        self.0
    }

    async fn sleep_until(&self, _at: DateTime<Utc>) {}
}

/// Decides and claims in a GitHub that holds what the payload says and nothing else. What the payload does not say is
/// taken for granted and named in the report's warnings.
pub async fn check_against_payload(input: &CheckInput, now: DateTime<Utc>) -> CheckReport {
    let clock = Stopped(now);
    let mut state = State::new(now);
    let mut taken = Vec::new();
    if let Ok(trigger) = Trigger::read(&input.event_name, &input.payload, &input.host, input.run.clone()) {
        fill(&mut state, &trigger, &input.payload, &mut taken);
    }
    let github = InProcess::new(Rc::new(RefCell::new(state)), TOKEN);
    let mut report = check(&World { github: &github, clock: &clock, nonce: Nonce::from_bits(0) }, input).await;
    report.warnings.push(
        "this was decided against an embedded GitHub that holds what the payload says and nothing else".to_owned(),
    );
    report.warnings.extend(taken);
    report
}

fn fill(state: &mut State, trigger: &Trigger, payload: &Value, taken: &mut Vec<String>) {
    let full = trigger.repository.as_str();
    state.add_repo(full, trigger.repository_id);
    state.add_token(TOKEN, TokenSpec::built_in(full, Grants::all()));
    for actor in [&trigger.sender, &trigger.author].into_iter().flatten() {
        add_user(state, actor);
    }
    if let Some(sender) = trigger.sender.as_ref().filter(|s| s.kind == ActorKind::User) {
        let (permission, why) = permission(trigger, payload, sender);
        state.grant(full, &sender.login, permission);
        let word = if permission >= Permission::Write { "write" } else { "read" };
        taken.push(format!("{} is taken to have {word} permission: {why}", sender.login));
    }
    let Some(number) = payload.pointer("/issue/number").and_then(Value::as_u64) else { return };
    let text = |path: &str| payload.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let labels: Vec<&str> = payload
        .pointer("/issue/labels")
        .and_then(Value::as_array)
        .map(|labels| labels.iter().filter_map(|l| l.get("name").and_then(Value::as_str)).collect())
        .unwrap_or_default();
    let author = trigger.author.as_ref().map_or("ghost", |a| a.login.as_str());
    let mut issue =
        ItemSpec::new(author, text("/issue/title")).number(number).body(text("/issue/body")).labels(&labels);
    if payload.pointer("/issue/pull_request").is_some_and(|p| !p.is_null()) {
        issue = issue.pull_request("0000000000000000000000000000000000000000");
    }
    state.open_issue(full, issue);
    state.edit_item(full, number, |item| {
        item.draft = payload.pointer("/issue/draft").and_then(Value::as_bool).unwrap_or(false);
        item.locked = payload.pointer("/issue/locked").and_then(Value::as_bool).unwrap_or(false);
        item.merged = payload.pointer("/issue/pull_request/merged_at").is_some_and(|at| !at.is_null());
    });
    if text("/issue/state") == "closed" {
        state.close(full, number);
    }
    if let Some(comment) = &trigger.comment {
        let author = comment.author.as_ref().map_or("ghost", |a| a.login.as_str());
        state.comment(full, number, author, &trigger.text);
    }
    state.add_run(full, trigger.run.run, trigger.event.as_str(), author);
}

fn add_user(state: &mut State, actor: &Actor) {
    match actor.id {
        Some(id) => state.add_user_with_id(&actor.login, actor.kind, id),
        None => state.add_user(&actor.login, actor.kind),
    }
}

/// A payload does not say what permission somebody has; it says how the author is associated with the repository, which
/// is near enough to try a payload.
fn permission(trigger: &Trigger, payload: &Value, sender: &Actor) -> (Permission, String) {
    let (place, author) = match &trigger.comment {
        Some(comment) => ("/comment/author_association", comment.author.as_ref()),
        None => ("/issue/author_association", trigger.author.as_ref()),
    };
    let is_author = author.is_some_and(|a| a.login.eq_ignore_ascii_case(&sender.login));
    match payload.pointer(place).and_then(Value::as_str).filter(|_| is_author) {
        Some(word @ ("OWNER" | "MEMBER" | "COLLABORATOR")) => {
            (Permission::Write, format!("the payload says {word} (the real permission is asked from GitHub)"))
        }
        Some(_) => {
            (Permission::Read, "the payload says no member (the real permission is asked from GitHub)".to_owned())
        }
        None => (Permission::Write, "the payload does not say".to_owned()),
    }
}
