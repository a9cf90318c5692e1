//! Triggers: the GitHub event behind this workflow run, in one form whatever the event.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::claim::RerunId;
use super::decision::{Reason, Stop};
use super::identity::{Actor, ActorKind, is_written_as_bot};
use super::key::{Key, Resource, Task, Version};
use super::policy::{Edits, PhraseRule, TaskPolicy};
use super::text;

/// The workflow run in which the guard step runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunContext {
    /// The run's id.
    pub run: u64,
    /// The run's attempt, from 1.
    pub attempt: u32,
    /// The login of whoever started this attempt, if the runner says.
    pub triggering_actor: Option<String>,
}

/// The events that run-guard makes triggers of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventName {
    /// `issues`.
    Issues,
    /// `issue_comment`.
    IssueComment,
}

impl EventName {
    /// GitHub's name of the event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Issues => "issues",
            Self::IssueComment => "issue_comment",
        }
    }

    /// The actions that ask something of an agent where the policy does not say which do.
    pub const fn default_actions(self) -> &'static [&'static str] {
        match self {
            Self::Issues => &["opened", "reopened", "labeled", "assigned", "edited"],
            Self::IssueComment => &["created", "edited"],
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Issues, Self::IssueComment].into_iter().find(|e| e.as_str() == name)
    }
}

/// The comment that a trigger is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentRef {
    /// GitHub's numeric id.
    pub id: u64,
    /// Who wrote it; `None` for a deleted account.
    pub author: Option<Actor>,
    /// When it was written.
    pub created_at: Option<DateTime<Utc>>,
    /// Its page.
    pub url: Option<String>,
}

/// What happened, as the payload tells it. It is a snapshot: gates use live state where both have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The event.
    pub event: EventName,
    /// The action, such as `opened`.
    pub action: String,
    /// The GitHub host, lower case.
    pub host: String,
    /// The repository's numeric id.
    pub repository_id: u64,
    /// `owner/name` at the time of the event.
    pub repository: String,
    /// Who did it; `None` where the payload names nobody.
    pub sender: Option<Actor>,
    /// What it is about.
    pub resource: Resource,
    /// Who opened the issue or pull request.
    pub author: Option<Actor>,
    /// The page of the resource.
    pub url: Option<String>,
    /// The text in which a request may stand.
    pub text: String,
    /// The same text before an edit; `None` if nothing of it was edited.
    pub old_text: Option<String>,
    /// The comment, for comment events.
    pub comment: Option<CommentRef>,
    /// The label, for label events.
    pub label: Option<String>,
    /// The run that asks.
    pub run: RunContext,
}

impl Trigger {
    /// Reads a payload.
    ///
    /// # Errors
    ///
    /// A [`Stop`] with `bad-payload` or `missing-number` that names the field which is missing or wrong.
    pub fn read(event: &str, payload: &Value, host: &str, run: RunContext) -> Result<Self, Stop> {
        let Some(name) = EventName::parse(event) else {
            return Err(Stop::new(
                Reason::BadPayload,
                format!("this version makes no triggers of `{}` events, only of issues and issue_comment", word(event)),
            ));
        };
        if !payload.is_object() {
            return Err(Stop::new(Reason::BadPayload, "the payload is JSON, but not an object"));
        }
        let need =
            |path: &'static str| move || Stop::new(Reason::BadPayload, format!("the payload has no usable `{path}`"));
        let at = |path: &str| payload.pointer(path);
        let string = |path: &str| at(path).and_then(Value::as_str).map(str::to_owned);
        let action = string("/action").ok_or_else(need("action"))?;
        let repository_id = at("/repository/id").and_then(Value::as_u64).ok_or_else(need("repository.id"))?;
        let repository = string("/repository/full_name")
            .filter(|full| is_repository_name(full))
            .ok_or_else(need("repository.full_name"))?;
        if at("/issue").is_none_or(|issue| !issue.is_object()) {
            return Err(need("issue")());
        }
        let number = at("/issue/number").and_then(Value::as_u64).filter(|n| *n > 0).ok_or_else(|| {
            Stop::new(
                Reason::MissingNumber,
                "the payload's `issue` has no number, so nothing says which issue is meant",
            )
        })?;
        let is_pull_request = at("/issue/pull_request").is_some_and(|v| !v.is_null());
        let resource = if is_pull_request { Resource::PullRequest(number) } else { Resource::Issue(number) };

        let (text, old_text, comment) = match name {
            EventName::Issues => {
                let title = string("/issue/title").unwrap_or_default();
                let body = string("/issue/body").unwrap_or_default();
                let old_title = string("/changes/title/from");
                let old_body = string("/changes/body/from");
                let old = (old_title.is_some() || old_body.is_some()).then(|| {
                    let title = old_title.as_deref().unwrap_or(&title);
                    format!("{title}\n\n{}", old_body.as_deref().unwrap_or(&body))
                });
                (format!("{title}\n\n{body}"), old, None)
            }
            EventName::IssueComment => {
                let id = at("/comment/id").and_then(Value::as_u64).ok_or_else(need("comment.id"))?;
                let comment = CommentRef {
                    id,
                    author: at("/comment/user").and_then(actor),
                    created_at: string("/comment/created_at").and_then(|s| time(&s)),
                    url: string("/comment/html_url"),
                };
                (string("/comment/body").unwrap_or_default(), string("/changes/body/from"), Some(comment))
            }
        };
        Ok(Self {
            event: name,
            action,
            host: host.to_ascii_lowercase(),
            repository_id,
            repository,
            sender: at("/sender").and_then(actor),
            resource,
            author: at("/issue/user").and_then(actor),
            url: string("/issue/html_url"),
            text,
            old_text,
            comment,
            label: string("/label/name"),
            run,
        })
    }

    /// The login of the person who re-ran the workflow, if a person did.
    pub fn rerun_by_person(&self) -> Option<&str> {
        let login = self.run.triggering_actor.as_deref()?;
        (self.run.attempt > 1 && !login.is_empty() && !is_written_as_bot(login)).then_some(login)
    }

    /// Who asks: the person who re-ran the workflow, else the sender.
    pub fn asker(&self) -> Option<Actor> {
        match self.rerun_by_person() {
            Some(login) => match &self.sender {
                Some(sender) if sender.login.eq_ignore_ascii_case(login) => Some(sender.clone()),
                _ => Some(Actor::new(login, ActorKind::User)),
            },
            None => self.sender.clone(),
        }
    }

    /// What the text asks of the agent under a policy.
    pub fn asks(&self, policy: &TaskPolicy) -> Asks {
        if self.action == "deleted" {
            return Asks::Nothing;
        }
        let edited = self.action == "edited";
        if let (EventName::IssueComment, Some(phrase), Some(comment)) =
            (self.event, policy.rerun_phrase.as_deref(), &self.comment)
        {
            let now = text::requests(&self.text, phrase);
            let before = self.old_text.as_deref().map(|old| text::requests(old, phrase)).unwrap_or_default();
            if !now.is_empty() && (!edited || before.is_empty()) {
                return Asks::Rerun(RerunId::Comment(comment.id));
            }
        }
        let needs_phrase = match policy.phrase_rule {
            PhraseRule::Always => true,
            PhraseRule::Comments => self.event == EventName::IssueComment,
            PhraseRule::Never => false,
        };
        if !edited {
            if needs_phrase && text::requests(&self.text, &policy.phrase).is_empty() {
                return Asks::Nothing;
            }
            return Asks::Work(None);
        }
        let now = text::requests(&self.text, &policy.phrase);
        let before = self.old_text.as_deref().map(|old| text::requests(old, &policy.phrase));
        match before {
            _ if now.is_empty() && needs_phrase => Asks::Nothing,
            _ if now.is_empty() || policy.edits == Edits::Ignored => Asks::NothingNew,
            None => Asks::NothingNew,
            Some(before) if before.is_empty() => Asks::Work(Some(text::digest_of(&now).to_string())),
            Some(before) if policy.edits == Edits::Changed && before != now => {
                Asks::Work(Some(text::digest_of(&now).to_string()))
            }
            Some(_) => Asks::NothingNew,
        }
    }

    /// The business key of this trigger for a task.
    pub fn key(&self, task: &Task, policy: &TaskPolicy) -> Key {
        let version = match (&self.comment, self.asks(policy)) {
            (None, _) | (Some(_), Asks::Rerun(_)) => None,
            (Some(comment), Asks::Work(Some(digest))) => Some(Version::EditedComment(comment.id, digest)),
            (Some(comment), _) => Some(Version::Comment(comment.id)),
        };
        Key::new(&self.host, self.repository_id, self.resource.clone(), task.clone(), version)
    }
}

/// What a trigger's text asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Nothing.
    Nothing,
    /// Nothing that it did not ask before the edit.
    NothingNew,
    /// Work; for an edit with the digest of the request.
    Work(Option<String>),
    /// The work of the resource once more.
    Rerun(RerunId),
}

/// An account from a payload; `None` for `null` and for anything without a login.
fn actor(value: &Value) -> Option<Actor> {
    let login = value.get("login")?.as_str()?.to_owned();
    let kind = value.get("type").and_then(Value::as_str).map_or(ActorKind::Other, ActorKind::parse);
    Some(Actor { login, kind, id: value.get("id").and_then(Value::as_u64) })
}

fn time(s: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(s).ok().map(|t| t.to_utc())
}

/// Whether a text is `owner/name` as GitHub allows them, so that it can stand in an address.
pub fn is_repository_name(full: &str) -> bool {
    let ok = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part.len() <= 100
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    full.split_once('/').is_some_and(|(owner, name)| ok(owner) && ok(name))
}

/// A word from outside, fit for a message.
fn word(s: &str) -> String {
    s.chars().filter(|c| c.is_ascii_graphic()).take(40).collect()
}
