//! What is known of GitHub at the moment of a decision. Whatever could not be read says so.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::claim::{Claim, ClaimRead};
use super::identity::Actor;

/// Something that GitHub may have told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fact<T> {
    /// Nobody has asked yet.
    #[default]
    Unasked,
    /// It was asked and could not be read; why.
    Unknown(String),
    /// It was read.
    Known(T),
}

impl<T> Fact<T> {
    /// The value, if it was read.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unasked | Self::Unknown(_) => None,
        }
    }
}

/// A read that a gate needs before it can judge.
///
/// Each is about one fact that is [`Fact::Unasked`], or that does not reach far enough. Its answer sets that fact to a
/// value that does, or to [`Fact::Unknown`]; so no question comes twice and every decision ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The one query for policy and facts: `viewer`, `repository`, `resource`, `claims` and `window`. None of them is
    /// left unasked.
    Facts,
    /// The permission of the person with this login, into `permissions`.
    Permission(String),
    /// The state of the workflow run with this id: into `own_run` if it is the run that asks, else into `holder`.
    HolderRun(u64),
    /// The claim with this number once more, by name, before it is taken over: into `second_read` as it is. `claims`
    /// stays as it was, since the gate holds the two against each other. The resource is read anew with it, since an
    /// older answer may not show what the claim's owner wrote just before its end.
    SecondRead(u32),
    /// One more page of the claims in the budget window: `complete_since` moves back, or is `None` after the last page.
    MoreWindow,
    /// The claim with this number of the key with this digest and task, to confirm a marker: into `marker_claim`.
    MarkerClaim {
        /// The task of the marker's key.
        task: String,
        /// The digest of the marker's key.
        digest: String,
        /// The claim's number.
        number: u32,
    },
    /// Nothing can be said before this time, by the clock that `now` is read from. The caller waits and decides again
    /// with a later `now`; it may forget `holder` to have it looked up anew. A caller that cannot wait so long defers.
    WaitUntil(DateTime<Utc>),
}

/// The permission of a person in the repository, from the permission endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// None.
    None,
    /// May read.
    Read,
    /// May write. `maintain` counts as write here, as GitHub's own answer has it.
    Write,
    /// May administrate.
    Admin,
}

impl Permission {
    /// From the endpoint's `permission` word, which folds `triage` into `read` and `maintain` into `write`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "read" | "triage" => Some(Self::Read),
            "write" | "maintain" => Some(Self::Write),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }
}

/// A comment, as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// GitHub's numeric id.
    pub id: u64,
    /// Who wrote it; `None` for a deleted account.
    pub author: Option<Actor>,
    /// The login of the author of the last edit, if there was one.
    pub editor: Option<String>,
    /// The text.
    pub body: String,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
    /// Its page.
    pub url: String,
}

/// Somebody put a label on the item or took it off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelEvent {
    /// GraphQL's node id of the event, unique.
    pub id: String,
    /// `true` for put on, `false` for taken off.
    pub added: bool,
    /// The label's name.
    pub label: String,
    /// Who did it; `None` for a deleted account.
    pub actor: Option<Actor>,
    /// When.
    pub at: DateTime<Utc>,
}

/// An issue or pull request as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceState {
    /// Whether it is a pull request.
    pub is_pull_request: bool,
    /// Its number.
    pub number: u64,
    /// Whether it is open.
    pub open: bool,
    /// Whether it is a merged pull request.
    pub merged: bool,
    /// Whether it is a draft pull request.
    pub draft: bool,
    /// Whether its conversation is locked.
    pub locked: bool,
    /// Who opened it; `None` for a deleted account.
    pub author: Option<Actor>,
    /// The labels on it.
    pub labels: Vec<String>,
    /// The newest label events, oldest first.
    pub label_events: Vec<LabelEvent>,
    /// The newest comments, oldest first.
    pub comments: Vec<Comment>,
    /// How many comments there are in all.
    pub comment_total: u64,
    /// The head commit of a pull request.
    pub head_sha: Option<String>,
    /// Its page.
    pub url: String,
}

impl ResourceState {
    /// Whether it carries this label, ignoring case.
    pub fn has_label(&self, name: &str) -> bool {
        self.labels.iter().any(|l| l.eq_ignore_ascii_case(name))
    }
}

/// What was written beside comments and labels, as far as it can be read back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The branches below the prefix that was asked for.
    pub branches: Fact<Vec<Branch>>,
    /// The newest pull request of each of these branches that has one.
    pub pulls: Fact<Vec<OpenedPull>>,
    /// The newest submitted reviews of the pull request, oldest first; none of an issue.
    pub reviews: Fact<Vec<Review>>,
    /// Whether there are older reviews than those.
    pub more_reviews: bool,
}

/// A branch, as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its name.
    pub name: String,
    /// When its last commit was made, by the commit's own word.
    pub committed_at: Option<DateTime<Utc>>,
}

/// A pull request from a branch, as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedPull {
    /// The branch's name.
    pub branch: String,
    /// Its number.
    pub number: u64,
    /// When it was opened.
    pub created_at: DateTime<Utc>,
    /// Its page.
    pub url: String,
}

/// A submitted review, as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// Who wrote it; `None` for a deleted account.
    pub author: Option<Actor>,
    /// When it was submitted.
    pub submitted_at: DateTime<Utc>,
    /// Its page.
    pub url: String,
}

/// The repository as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryState {
    /// The numeric id.
    pub id: u64,
    /// `owner/name`.
    pub name_with_owner: String,
}

/// Whether a workflow run is still going.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It exists.
    Found {
        /// The newest attempt.
        attempt: u32,
        /// Whether the newest attempt has concluded, and how.
        conclusion: Option<String>,
        /// The last time anything about it changed. For a concluded run: when it ended.
        updated_at: DateTime<Utc>,
        /// When the newest attempt started.
        started_at: Option<DateTime<Utc>>,
        /// Its page.
        url: String,
    },
    /// GitHub knows no such run.
    Missing,
}

/// The claims of one key, by number.
pub type Claims = BTreeMap<u32, ClaimRead>;

/// Claims of all keys of this repository, newest first, for the budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The claims that were listed.
    pub claims: Vec<WindowClaim>,
    /// The list is known to hold every claim created at or after this time; `None`: every claim there is.
    pub complete_since: Option<DateTime<Utc>>,
    /// Names in the ledger's own form whose record could not be read.
    pub unreadable: Vec<String>,
}

/// One claim of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowClaim {
    /// The task part of its name.
    pub task: String,
    /// The digest part of its name.
    pub digest: String,
    /// The claim.
    pub claim: Claim,
}

/// Everything that a decision rests on, beside trigger and policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The login of the token that run-guard uses.
    pub viewer: Fact<String>,
    /// The repository.
    pub repository: Fact<RepositoryState>,
    /// The issue or pull request; `Known(None)`: GitHub says there is none.
    pub resource: Fact<Option<ResourceState>>,
    /// The permissions that were asked for, by login in lower case.
    pub permissions: BTreeMap<String, Fact<Permission>>,
    /// The key's claims.
    pub claims: Fact<Claims>,
    /// The run that owns the key's highest claim; unasked again when another claim becomes the highest.
    pub holder: Fact<RunState>,
    /// One's own run: when this attempt began, and whether runs can be read at all, which tells a missing run from a
    /// missing permission.
    pub own_run: Fact<RunState>,
    /// The highest claim, read once more after its owner was known to be over; `Known(None)`: it has vanished.
    pub second_read: Fact<Option<ClaimRead>>,
    /// The claim that a marker names; `Known(None)`: there is none.
    pub marker_claim: Fact<Option<ClaimRead>>,
    /// The budget window.
    pub window: Fact<Window>,
}

impl Facts {
    /// The permission of a person, as far as it was asked for.
    pub fn permission(&self, login: &str) -> &Fact<Permission> {
        self.permissions.get(&login.to_ascii_lowercase()).unwrap_or(&Fact::Unasked)
    }

    /// Takes up what the permission endpoint answered for a person.
    pub fn set_permission(&mut self, login: &str, permission: Fact<Permission>) {
        self.permissions.insert(login.to_ascii_lowercase(), permission);
    }

    /// The resource, if it was read and is there.
    pub fn live(&self) -> Option<&ResourceState> {
        self.resource.known().and_then(Option::as_ref)
    }

    /// The login of the token's account, if it was read.
    pub fn viewer(&self) -> Option<&str> {
        self.viewer.known().map(String::as_str)
    }
}
