//! Triggers: the GitHub event behind this workflow run, in one form whatever the event.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::claim::RerunId;
use super::decision::{Reason, Stop};
use super::identity::{Actor, ActorKind, is_written_as_bot};
use super::key::{Digest, Key, Resource, Task, Version};
use super::policy::{Edits, PhraseRule, TaskPolicy};
use super::text::{self, Request};

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
    /// When it was last changed.
    pub updated_at: Option<DateTime<Utc>>,
    /// Its page.
    pub url: Option<String>,
}

/// What title and body were before an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The title before.
    pub old_title: Option<String>,
    /// The body before.
    pub old_text: String,
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
    /// The repository's page.
    pub repository_url: String,
    /// Who did it; `None` where the payload names nobody.
    pub sender: Option<Actor>,
    /// What it is about.
    pub resource: Resource,
    /// Who opened the issue or pull request.
    pub author: Option<Actor>,
    /// The page of the resource.
    pub url: Option<String>,
    /// The title of the issue, for events in which it can hold a request.
    pub title: Option<String>,
    /// The body of the comment or issue, as Markdown.
    pub text: String,
    /// What the edit changed; `None` if the payload names no change of title or body.
    pub edit: Option<Edit>,
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

        let (title, text, comment) = match name {
            EventName::Issues => (Some(string("/issue/title").unwrap_or_default()), string("/issue/body"), None),
            EventName::IssueComment => {
                let comment = CommentRef {
                    id: at("/comment/id").and_then(Value::as_u64).ok_or_else(need("comment.id"))?,
                    author: at("/comment/user").and_then(actor),
                    created_at: string("/comment/created_at").and_then(|s| time(&s)),
                    updated_at: string("/comment/updated_at").and_then(|s| time(&s)),
                    url: string("/comment/html_url"),
                };
                (None, string("/comment/body"), Some(comment))
            }
        };
        let text = text.unwrap_or_default();
        // GitHub names only what changed, and an empty body that was filled in comes as `null`.
        let changed = |path: &str| at(path).map(|from| from.as_str().unwrap_or_default().to_owned());
        let (old_title, old_text) = (changed("/changes/title/from"), changed("/changes/body/from"));
        let edit = (old_title.is_some() || old_text.is_some()).then(|| Edit {
            old_title: old_title.or_else(|| title.clone()),
            old_text: old_text.unwrap_or_else(|| text.clone()),
        });
        // Only a GitHub on this machine is reached without TLS.
        let page = format!("{}/{repository}", host.to_ascii_lowercase());
        let insecure = string("/repository/html_url").is_some_and(|url| url == format!("http://{page}"));
        let scheme = if insecure { "http" } else { "https" };
        Ok(Self {
            event: name,
            action,
            host: host.to_ascii_lowercase(),
            repository_id,
            repository,
            repository_url: format!("{scheme}://{page}"),
            sender: at("/sender").and_then(actor),
            resource,
            author: at("/issue/user").and_then(actor),
            url: string("/issue/html_url"),
            title,
            text,
            edit,
            comment,
            label: string("/label/name"),
            run,
        })
    }

    /// Whoever started this attempt, if the workflow was re-run and that account is not written as a bot's. A machine
    /// user looks like a person here: see [`super::gates::Context::rerun_by_person`].
    pub fn rerunner(&self) -> Option<Actor> {
        let login = self.run.triggering_actor.as_deref()?;
        if self.run.attempt <= 1 || login.is_empty() || is_written_as_bot(login) {
            return None;
        }
        let sender = self.sender.as_ref().filter(|sender| sender.login.eq_ignore_ascii_case(login));
        Some(sender.cloned().unwrap_or_else(|| Actor::new(login, ActorKind::User)))
    }

    /// The account id under which this trigger counts against a cap per actor: the sender's, on a re-run too.
    pub fn actor_id(&self) -> Option<u64> {
        self.sender.as_ref().and_then(|sender| sender.id)
    }

    /// What the text asks of the agent under a policy.
    pub fn asks(&self, policy: &TaskPolicy) -> Asks {
        let edited = self.action == "edited";
        if self.action == "deleted" {
            return Asks::Nothing;
        }
        if let Some(id) = self.rerun_comment(policy) {
            return Asks::Rerun(RerunId::Comment(id));
        }
        let needs_phrase = match policy.phrase_rule {
            PhraseRule::Always => true,
            PhraseRule::Comments => self.event == EventName::IssueComment,
            PhraseRule::Never => false,
        };
        if !edited && !needs_phrase {
            return Asks::Work(None);
        }
        let now = self.requests(&policy.phrase);
        if needs_phrase && now.is_empty() {
            return Asks::Nothing;
        }
        if !edited {
            return Asks::Work(None);
        }
        let Some(before) = self.old_requests(&policy.phrase) else { return Asks::NothingNew };
        let counts = match policy.edits {
            Edits::Added => before.is_empty() && !now.is_empty(),
            Edits::Changed => !now.is_empty() && before != now,
            Edits::Ignored => false,
        };
        if counts { Asks::Work(Some(text::digest_of(&now))) } else { Asks::NothingNew }
    }

    /// The comment that asks for a rerun: one that was written with the rerun phrase, or to which an edit added it.
    fn rerun_comment(&self, policy: &TaskPolicy) -> Option<u64> {
        let (phrase, comment) = (policy.rerun_phrase.as_deref()?, self.comment.as_ref()?);
        let asks = match self.action.as_str() {
            "created" => !self.requests(phrase).is_empty(),
            "edited" if policy.edits != Edits::Ignored => {
                !self.requests(phrase).is_empty() && self.old_requests(phrase).is_some_and(|old| old.is_empty())
            }
            _ => false,
        };
        asks.then_some(comment.id)
    }

    fn requests(&self, phrase: &str) -> Vec<Request> {
        requests_in(self.title.as_deref(), &self.text, phrase)
    }

    fn old_requests(&self, phrase: &str) -> Option<Vec<Request>> {
        let edit = self.edit.as_ref()?;
        Some(requests_in(edit.old_title.as_deref(), &edit.old_text, phrase))
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

fn requests_in(title: Option<&str>, body: &str, phrase: &str) -> Vec<Request> {
    let mut requests = title.map(|title| text::requests_in_title(title, phrase)).unwrap_or_default();
    requests.extend(text::requests(body, phrase));
    requests
}

/// What a trigger's text asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Nothing.
    Nothing,
    /// Nothing that it did not ask before the edit.
    NothingNew,
    /// Work; for an edit with the digest of the request.
    Work(Option<Digest>),
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
    s.chars().filter(char::is_ascii_graphic).take(40).collect()
}
