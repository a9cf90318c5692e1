//! The embedded GitHub as it is before a scenario's first step.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::{ClaimBefore, ClaimName, Scenario};
use crate::core::claim::{ClaimState, Nonce, Owner, Record, Settlement, label_name};
use crate::core::identity::ActorKind;
use crate::core::key::{Key, Resource, Version};
use crate::core::policy::POLICY_PATH;
use crate::sim::{Grants, ItemSpec, State, TokenSpec};

/// The guard step's token in a scenario's GitHub.
pub const GUARD_TOKEN: &str = "guard";

/// The host of every scenario.
const HOST: &str = "github.com";

impl Scenario {
    /// GitHub before the first step, and the ids of the comments that have names.
    pub fn github(&self) -> (State, BTreeMap<String, u64>) {
        let repo = &self.repository;
        let mut state = State::new(self.start);
        let mut comments = BTreeMap::new();
        for bot in &self.bots {
            state.add_user(bot, ActorKind::Bot);
        }
        state.add_repo(repo, self.repository_id);
        if self.private {
            state.make_private(repo);
        }
        for (login, permission) in &self.people {
            state.add_user(login, ActorKind::User);
            state.grant(repo, login, *permission);
        }
        if let Some(policy) = &self.policy {
            state.set_file(repo, POLICY_PATH, policy);
        }
        state.add_token(GUARD_TOKEN, TokenSpec::built_in(repo, Grants::of(&self.permissions)));
        for label in &self.before.labels {
            state.add_label(repo, label, "");
        }
        // Oldest first, so that ids grow with time as GitHub's do.
        let mut items: Vec<_> = self.before.items.iter().collect();
        items.sort_by_key(|item| (item.at, item.number));
        for item in &items {
            state.now = item.at;
            let labels: Vec<&str> = item.labels.iter().map(String::as_str).collect();
            let mut spec =
                ItemSpec::new(&item.author, &item.title).number(item.number).body(&item.body).labels(&labels);
            if item.pull_request {
                spec = spec.pull_request(&format!("{:040x}", item.number));
                spec.draft = item.draft;
            }
            state.open_issue(repo, spec);
        }
        let mut written: Vec<_> =
            items.iter().flat_map(|item| item.comments.iter().map(|comment| (item.number, comment))).collect();
        written.sort_by_key(|(_, comment)| comment.at);
        for (number, comment) in written {
            state.now = comment.at;
            if let (Some(id), Some(name)) = (state.comment(repo, number, &comment.by, &comment.text), &comment.id) {
                comments.insert(name.clone(), id);
            }
        }
        for item in items {
            state.now = self.start;
            if !item.open {
                state.close(repo, item.number);
            }
            state.edit_item(repo, item.number, |row| {
                row.locked = item.locked;
                row.merged = item.merged;
                row.updated_at = item.comments.last().map_or(item.at, |c| c.at);
            });
        }
        for run in &self.before.runs {
            state.now = run.at;
            state.add_run(repo, run.id, &run.event, &run.by);
            state.now = run.ended.as_ref().map_or(run.active, |(_, at)| *at);
            state.edit_run(repo, run.id, |row| row.attempt = run.attempt);
            if let Some((conclusion, _)) = &run.ended {
                state.finish_run(repo, run.id, conclusion);
            }
        }
        for claim in &self.before.claims {
            state.now = claim.opened;
            let Some(key) = claim_key(self, &state, &comments, &claim.name) else { continue };
            let record = record(claim, &comments);
            state.add_label(repo, &label_name(key.task(), &key.digest(), claim.name.number), &record.encode());
        }
        state.now = self.start;
        (state, comments)
    }
}

/// The key of a claim that the scenario names; `None` if it names a comment that nobody has written yet.
pub fn claim_key(
    scenario: &Scenario,
    state: &State,
    comments: &BTreeMap<String, u64>,
    name: &ClaimName,
) -> Option<Key> {
    let version = match &name.comment {
        Some(comment) => Some(Version::Comment(*comments.get(comment)?)),
        None => None,
    };
    let is_pull_request = state.item(&scenario.repository, name.item).is_some_and(|item| item.is_pull_request);
    let resource = if is_pull_request { Resource::PullRequest(name.item) } else { Resource::Issue(name.item) };
    Some(Key::new(HOST, scenario.repository_id, resource, name.task.clone(), version))
}

fn record(claim: &ClaimBefore, comments: &BTreeMap<String, u64>) -> Record {
    let to_the_second = |at: DateTime<Utc>| DateTime::from_timestamp(at.timestamp(), 0).unwrap_or(at);
    Record {
        owner: Owner { run: claim.run, attempt: claim.attempt, nonce: Nonce::from_bits(claim.run) },
        cause: claim.cause,
        rerun: None,
        opened_at: to_the_second(claim.opened),
        number: Some(claim.name.item),
        actor: None,
        state: match &claim.settled {
            None => ClaimState::Open,
            Some((outcome, at)) => ClaimState::Settled(Settlement {
                outcome: *outcome,
                at: to_the_second(*at),
                cost_cents: claim.costs,
                result_comment: claim.result.as_ref().and_then(|name| comments.get(name)).copied(),
            }),
        },
    }
}
