//! The payloads of GitHub's events, made from the embedded GitHub's state: what GitHub would send at this moment, in
//! the form of its webhook documentation.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::{CommentRow, Item, RepoLabel, Repository, State, node_id};
use crate::core::facts::Permission;
use crate::core::identity::{ActorKind, bare_login};

/// An event that GitHub would tell workflows of.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name, such as `issues`.
    pub name: String,
    /// Its action; empty if it has none.
    pub action: String,
    /// Its payload.
    pub payload: Value,
}

impl Event {
    /// Name and action as people say them.
    pub fn in_words(&self) -> String {
        format!("{} {}", self.name, self.action).trim_end().to_owned()
    }

    /// Takes another name, and puts values over the payload.
    pub fn change(&mut self, name: Option<&str>, payload: Option<&Value>) {
        if let Some(name) = name {
            name.clone_into(&mut self.name);
        }
        if let Some(payload) = payload {
            overlay(&mut self.payload, payload);
            let action = self.payload.get("action").and_then(Value::as_str);
            self.action = action.unwrap_or_default().to_owned();
        }
    }

    /// The id of the comment that it is about.
    pub fn comment_id(&self) -> Option<u64> {
        self.payload.pointer("/comment/id")?.as_u64()
    }
}

/// Makes the payloads of one repository's events.
#[derive(Debug)]
pub struct Webhook<'a> {
    state: &'a State,
    repo: &'a Repository,
    sender: &'a str,
}

impl<'a> Webhook<'a> {
    /// Events of a repository by a sender; `None` if there is no such repository.
    pub fn new(state: &'a State, full: &str, sender: &'a str) -> Option<Self> {
        Some(Self { state, repo: state.repo(full)?, sender })
    }

    /// An `issues` event; `more` is put beside the usual fields. `None` if there is no such issue.
    pub fn issues(&self, action: &str, number: u64, more: Value) -> Option<Event> {
        let item = self.repo.items.get(&number)?;
        Some(self.event("issues", action, json!({"issue": self.item(item)}), more))
    }

    /// An `issues` event about a label of the repository.
    pub fn issues_label(&self, action: &str, number: u64, label: &str) -> Option<Event> {
        let label = self.repo.label(label).map_or_else(|| json!({"name": label}), |l| self.label(l));
        self.issues(action, number, json!({"label": label}))
    }

    /// An `issues` event about somebody to whom an issue is assigned.
    pub fn issues_assignee(&self, action: &str, number: u64, login: &str) -> Option<Event> {
        let mut event = self.issues(action, number, json!({"assignee": self.user(Some(login))}))?;
        if action == "assigned"
            && let Some(issue) = event.payload.get_mut("issue").and_then(Value::as_object_mut)
        {
            issue.insert("assignee".into(), self.user(Some(login)));
            issue.insert("assignees".into(), json!([self.user(Some(login))]));
        }
        Some(event)
    }

    /// An `issue_comment` event. `None` if there is no such comment.
    pub fn comment(&self, action: &str, id: u64, more: Value) -> Option<Event> {
        let comment = self.repo.comments.get(&id)?;
        let item = self.repo.items.get(&comment.number)?;
        let about = json!({"issue": self.item(item), "comment": self.comment_row(comment, item)});
        Some(self.event("issue_comment", action, about, more))
    }

    /// An event with nothing but the fields that every event has.
    pub fn bare(&self, name: &str) -> Event {
        let mut event = self.event(name, "", json!({}), json!({}));
        if let Some(payload) = event.payload.as_object_mut() {
            payload.remove("action");
        }
        event
    }

    fn event(&self, name: &str, action: &str, about: Value, more: Value) -> Event {
        let mut payload = Map::new();
        payload.insert("action".into(), action.into());
        for part in [about, more] {
            if let Value::Object(part) = part {
                payload.extend(part);
            }
        }
        payload.insert("repository".into(), self.repository());
        if !self.sender.is_empty() {
            payload.insert("sender".into(), self.user(Some(self.sender)));
        }
        Event { name: name.to_owned(), action: action.to_owned(), payload: Value::Object(payload) }
    }

    fn api(&self) -> String {
        format!("https://api.github.com/repos/{}", self.repo.full_name())
    }

    /// An account; `null` for one that was deleted.
    fn user(&self, login: Option<&str>) -> Value {
        let Some(user) = login.and_then(|login| self.state.world().user(login)) else { return Value::Null };
        let kind = match user.kind {
            ActorKind::Bot => "Bot",
            ActorKind::Organization => "Organization",
            ActorKind::User | ActorKind::Other => "User",
        };
        let page = match user.kind {
            ActorKind::Bot => format!("apps/{}", bare_login(&user.login)),
            _ => user.login.clone(),
        };
        json!({
            "login": user.login,
            "id": user.id,
            "node_id": node_id(kind, user.id),
            "avatar_url": format!("https://avatars.githubusercontent.com/u/{}?v=4", user.id),
            "gravatar_id": "",
            "url": format!("https://api.github.com/users/{}", user.login),
            "html_url": format!("{}/{page}", self.state.web),
            "type": kind,
            "site_admin": false,
        })
    }

    fn repository(&self) -> Value {
        let repo = self.repo;
        json!({
            "id": repo.id,
            "node_id": node_id("Repository", repo.id),
            "name": repo.name,
            "full_name": repo.full_name(),
            "private": repo.private,
            "visibility": if repo.private { "private" } else { "public" },
            "owner": self.user(Some(&repo.owner)),
            "html_url": format!("{}/{}", self.state.web, repo.full_name()),
            "url": self.api(),
            "description": null,
            "fork": false,
            "archived": false,
            "disabled": false,
            "default_branch": repo.default_branch,
            "created_at": time(repo.created_at),
            "updated_at": time(self.state.now),
        })
    }

    fn label(&self, label: &RepoLabel) -> Value {
        json!({
            "id": label.id,
            "node_id": node_id("Label", label.id),
            "url": format!("{}/labels/{}", self.api(), label.name.replace(' ', "%20")),
            "name": label.name,
            "color": label.color,
            "default": false,
            "description": label.description,
        })
    }

    fn item(&self, item: &Item) -> Value {
        let url = format!("{}/issues/{}", self.api(), item.number);
        let page = self.repo.item_url(&self.state.web, item);
        let mut value = json!({
            "url": url,
            "repository_url": self.api(),
            "labels_url": format!("{url}/labels{{/name}}"),
            "comments_url": format!("{url}/comments"),
            "events_url": format!("{url}/events"),
            "html_url": page,
            "id": item.id,
            "node_id": node_id("Issue", item.id),
            "number": item.number,
            "title": item.title,
            "user": self.user(item.author.as_deref()),
            "labels": self.repo.labels_of(item).map(|label| self.label(label)).collect::<Vec<_>>(),
            "state": if item.open { "open" } else { "closed" },
            "state_reason": null,
            "locked": item.locked,
            "active_lock_reason": null,
            "assignee": null,
            "assignees": [],
            "milestone": null,
            "comments": item.comments.len(),
            "created_at": time(item.created_at),
            "updated_at": time(item.updated_at),
            "closed_at": item.closed_at.map(time),
            "author_association": self.association(item.author.as_deref()),
            "body": item.body,
        });
        if item.is_pull_request
            && let Some(fields) = value.as_object_mut()
        {
            fields.insert("draft".into(), item.draft.into());
            fields.insert(
                "pull_request".into(),
                json!({
                    "url": format!("{}/pulls/{}", self.api(), item.number),
                    "html_url": page,
                    "diff_url": format!("{page}.diff"),
                    "patch_url": format!("{page}.patch"),
                    "merged_at": item.closed_at.filter(|_| item.merged).map(time),
                }),
            );
        }
        value
    }

    fn comment_row(&self, comment: &CommentRow, item: &Item) -> Value {
        json!({
            "url": format!("{}/issues/comments/{}", self.api(), comment.id),
            "html_url": self.repo.comment_url(&self.state.web, comment),
            "issue_url": format!("{}/issues/{}", self.api(), item.number),
            "id": comment.id,
            "node_id": node_id("IssueComment", comment.id),
            "user": self.user(comment.author.as_deref()),
            "created_at": time(comment.created_at),
            "updated_at": time(comment.updated_at),
            "author_association": self.association(comment.author.as_deref()),
            "body": comment.body,
            "performed_via_github_app": null,
        })
    }

    fn association(&self, login: Option<&str>) -> &'static str {
        match login.map(|login| self.state.world().permission_of(self.repo, login)) {
            Some(Permission::Admin) => "OWNER",
            Some(Permission::Write) => "COLLABORATOR",
            Some(Permission::None | Permission::Read) | None => "NONE",
        }
    }
}

/// A time as GitHub writes it.
fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Puts a value over another: mappings are merged, everything else takes the place of what was there, `null` too.
pub fn overlay(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                overlay(under.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}
