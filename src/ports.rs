//! The seams to the world: GitHub, the ledger and the clock. Everything that does IO stands behind these traits.
//!
//! One method of [`GitHub`] is one request, so that requests can be counted and any of them can fail. The client in
//! `github/` implements it over HTTP, the embedded GitHub in `sim/` in memory.

#![allow(async_fn_in_trait, reason = "one thread drives every future, so none need be Send")]

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};

use crate::core::claim::{Claim, ClaimRead, LedgerKind, Record, Thing};
use crate::core::facts::{Claims, Fact, Permission, RepositoryState, ResourceState, RunState, Window, Written};
use crate::core::key::Key;

/// A repository by its present name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoName {
    /// The owner's login.
    pub owner: String,
    /// The repository's name.
    pub name: String,
}

impl RepoName {
    /// From `owner/name`; `None` if it is not of that form or could not stand in an address.
    pub fn parse(full: &str) -> Option<Self> {
        if !crate::core::trigger::is_repository_name(full) {
            return None;
        }
        let (owner, name) = full.split_once('/')?;
        Some(Self { owner: owner.to_owned(), name: name.to_owned() })
    }
}

impl fmt::Display for RepoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// Why a request gave no result. Each kind asks for another answer from the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// The server answered that the thing to be created exists: `already_exists` alone.
    #[error("it exists already ({request})")]
    Exists {
        /// Method and path.
        request: String,
    },
    /// The server refused: 401, 403 or another 422. GitHub's words and the request.
    #[error("GitHub answered {status} \"{message}\" to {request}")]
    Denied {
        /// The HTTP status.
        status: u16,
        /// GitHub's `message`, with the details of `errors` where there are any.
        message: String,
        /// Method and path.
        request: String,
    },
    /// The server says that there is no such thing, or that the token may not see it: 404 or 410.
    #[error("GitHub answered {status} \"{message}\" to {request}")]
    Missing {
        /// The HTTP status.
        status: u16,
        /// GitHub's `message`.
        message: String,
        /// Method and path.
        request: String,
    },
    /// A primary or secondary rate limit.
    #[error("GitHub's rate limit is used up until {} ({request})", retry_at.format("%H:%M:%S UTC"))]
    RateLimited {
        /// When to ask again.
        retry_at: DateTime<Utc>,
        /// Method and path.
        request: String,
    },
    /// A write whose answer is lost (time-out, reset, 5xx): it may have taken effect.
    #[error("the answer to {request} was lost, so it may or may not have taken effect: {why}")]
    Ambiguous {
        /// Method and path.
        request: String,
        /// What happened.
        why: String,
    },
    /// A read that got no answer, or a 5xx; or a write for which no connection was made, so that it was never sent.
    #[error("{request} got no answer: {why}")]
    Unreachable {
        /// Method and path.
        request: String,
        /// What happened.
        why: String,
    },
    /// An answer that is not of the form that GitHub's API description promises.
    #[error("the answer to {request} cannot be understood: {why}")]
    Malformed {
        /// Method and path.
        request: String,
        /// What is wrong.
        why: String,
    },
}

/// What the policy file on the default branch holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyRead {
    /// The query answered for the default branch, reported no error on the path, and there is no such file.
    Absent,
    /// Its text.
    Text(String),
    /// Anything else; why. Never to be taken for "no policy".
    Unreadable(String),
}

/// What the one facts query asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactsQuery {
    /// The repository.
    pub repo: RepoName,
    /// The issue or pull request.
    pub number: Option<u64>,
    /// What to look up to see the key's claims.
    pub claims: Probe,
    /// What to list for the budget window too: the first page of it.
    pub window: Option<Listing>,
    /// Branches below this prefix of full names, which ends with a slash, their pull requests, and the reviews of the
    /// pull request.
    pub written: Option<String>,
}

/// Where the claims of one key are looked up, within the one facts query or in a query of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Nowhere.
    Nothing,
    /// Repository labels, by exact name. At most [`MAX_CLAIM_NUMBER`](crate::core::claim::MAX_CLAIM_NUMBER).
    Labels(Vec<String>),
    /// Refs that start with this, a full name that ends with a slash: the first 100 by name. With them comes the tree of
    /// the default branch, which every commit of a claim needs.
    Refs(String),
    /// The ref of this full name, and the tree of the default branch.
    Ref(String),
    /// The check runs of this name on this commit, of whatever App: the first 100 of each of the first 20 suites.
    Checks {
        /// The commit's full id.
        commit: String,
        /// The name.
        name: String,
    },
}

/// What a [`Probe`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// Nothing was asked.
    Nothing,
    /// The labels that exist of those that were asked for, by the name that was asked for.
    Labels(BTreeMap<String, Label>),
    /// Refs.
    Refs(FoundRefs),
    /// Check runs.
    Checks(FoundChecks),
}

/// Check runs of one name on one commit, and who looks at them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundChecks {
    /// The check runs, in no order.
    pub runs: Vec<CheckRun>,
    /// Whether there are more.
    pub more: bool,
    /// The token's login, where the answer says.
    pub viewer: Option<String>,
}

/// A check run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRun {
    /// Its id. A later one has a higher id.
    pub id: u64,
    /// The slug of the App that made it, where GitHub says.
    pub app: Option<String>,
    /// What its maker knows it by; empty if it has no such thing.
    pub external_id: String,
    /// The text of its output; empty if it has none.
    pub text: String,
}

/// One page of check runs: at most 100.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckPage {
    /// The check runs.
    pub runs: Vec<CheckRun>,
    /// Whether there is a next page.
    pub more: bool,
}

/// A check run to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCheckRun {
    /// Its name.
    pub name: String,
    /// The commit that it is about.
    pub commit: String,
    /// What its maker knows it by.
    pub external_id: String,
    /// What it shows.
    pub face: CheckFace,
}

/// What a check run shows to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFace {
    /// How it ended, as one of GitHub's words such as `success`; `None`: it is in progress.
    pub conclusion: Option<&'static str>,
    /// When it began, to the second.
    pub started_at: DateTime<Utc>,
    /// When it ended, to the second.
    pub completed_at: Option<DateTime<Utc>>,
    /// The page that it leads to.
    pub details_url: String,
    /// The heading.
    pub title: String,
    /// A sentence.
    pub summary: String,
    /// What stands below it.
    pub text: String,
}

/// Refs, and what is needed to make more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundRefs {
    /// The refs.
    pub refs: Vec<GitRef>,
    /// Whether there are more of the prefix.
    pub more: bool,
    /// The id of the default branch's tree; `None` in an empty repository.
    pub tree: Option<String>,
    /// GitHub's node id of the repository, which the deletion of refs names.
    pub repository: Option<String>,
}

/// Things to be deleted, each named by an identity that is not given out again: what was made anew under the same name
/// is another thing and stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Repository labels by node id. GraphQL `deleteLabel`.
    Labels(Vec<String>),
    /// Refs, each only while it points to what it pointed to. GraphQL `updateRefs` with `beforeOid`.
    Refs {
        /// GitHub's node id of the repository.
        repository: String,
        /// Full names, and the ids of the objects that they must point to.
        refs: Vec<(String, String)>,
    },
}

/// A ref and the commit that it points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitRef {
    /// Its full name.
    pub name: String,
    /// The id of the object that it points to.
    pub oid: String,
    /// The message, if that object is a commit.
    pub message: Option<String>,
    /// When the commit was made, by its own word.
    pub committed_at: Option<DateTime<Utc>>,
}

/// What is listed for the budget window, or to find what can be swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// The repository's labels, newest first.
    Labels,
    /// The repository's labels, oldest first.
    OldestLabels,
    /// The refs of all claims, by name.
    Refs,
}

/// One page of a [`Listing`]: at most 100.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowPage {
    /// Labels.
    Labels(LabelPage),
    /// Refs.
    Refs(RefPage),
}

impl WindowPage {
    /// Where the next page starts; `None` on the last.
    pub fn next(&self) -> Option<&str> {
        match self {
            Self::Labels(page) => page.next.as_deref(),
            Self::Refs(page) => page.next.as_deref(),
        }
    }
}

/// One page of refs, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefPage {
    /// The refs.
    pub refs: Vec<GitRef>,
    /// Where the next page starts; `None` on the last.
    pub next: Option<String>,
}

/// A commit to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCommit {
    /// The message.
    pub message: String,
    /// The id of the tree.
    pub tree: String,
    /// The id of the parent, if it has one.
    pub parent: Option<String>,
    /// Author's and committer's time, to the second: with it, the same commit asked for twice is one commit.
    pub at: DateTime<Utc>,
}

/// A repository label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// Its description; empty if it has none.
    pub description: String,
    /// GitHub's node id of it; `None` for one that is yet to be created.
    pub node_id: Option<String>,
    /// When it was created, by GitHub's clock, where the answer says.
    pub created_at: Option<DateTime<Utc>>,
}

/// One page of labels, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelPage {
    /// The labels.
    pub labels: Vec<Label>,
    /// Where the next page starts; `None` on the last.
    pub next: Option<String>,
}

/// What the one facts query answered. Parts of it can be unknown on their own: a denied field nulls its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactsReply {
    /// The token's login.
    pub viewer: Fact<String>,
    /// The policy file.
    pub policy: PolicyRead,
    /// The repository.
    pub repository: Fact<RepositoryState>,
    /// The issue or pull request; `Known(None)`: there is none.
    pub resource: Fact<Option<ResourceState>>,
    /// What was found where the key's claims were looked up.
    pub claims: Fact<Probed>,
    /// The first page of the budget window, if it was asked for.
    pub window: Fact<WindowPage>,
    /// Branches, pull requests and reviews, each known or unknown on its own, if they were asked for.
    pub written: Option<Written>,
}

/// What people can react to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReactTo {
    /// An issue or pull request, by number.
    Issue(u64),
    /// A comment, by id.
    Comment(u64),
}

/// GitHub, one method a request. Reads that fail are `Unreachable`, writes whose answer is lost `Ambiguous`.
/// No method repeats a write on its own.
pub trait GitHub {
    /// GitHub's own time: the newest `Date` header that was seen.
    fn server_time(&self) -> Option<DateTime<Utc>>;

    /// Policy and facts in one GraphQL query.
    async fn facts(&self, query: &FactsQuery) -> Result<FactsReply, PortError>;

    /// One page of the budget window: the first, or the one after a cursor. GraphQL.
    async fn window_page(
        &self,
        repo: &RepoName,
        listing: Listing,
        after: Option<&str>,
    ) -> Result<WindowPage, PortError>;

    /// What the facts query would find of a key's claims, in a query of its own. GraphQL.
    async fn probe(&self, repo: &RepoName, probe: &Probe) -> Result<Probed, PortError>;

    /// A person's permission. REST `GET /repos/{}/collaborators/{}/permission`; a 404 is [`Permission::None`].
    async fn permission(&self, repo: &RepoName, login: &str) -> Result<Permission, PortError>;

    /// A workflow run. REST `GET /repos/{}/actions/runs/{}`; a 404 is [`RunState::Missing`].
    async fn run(&self, repo: &RepoName, id: u64) -> Result<RunState, PortError>;

    /// Creates a repository label and gives it as it was made; `Exists` if there is one of that name.
    async fn create_label(&self, repo: &RepoName, label: &Label, color: &str) -> Result<Label, PortError>;

    /// Reads one repository label by name; a 404 is `None`.
    async fn label(&self, repo: &RepoName, name: &str) -> Result<Option<Label>, PortError>;

    /// Replaces the description of a repository label.
    async fn describe_label(&self, repo: &RepoName, name: &str, description: &str) -> Result<(), PortError>;

    /// Creates a commit that no ref points to, and gives its id. REST `POST /repos/{}/git/commits`.
    async fn create_commit(&self, repo: &RepoName, commit: &NewCommit) -> Result<String, PortError>;

    /// Creates a ref by full name; `Exists` if there is one of that name. REST `POST /repos/{}/git/refs`.
    async fn create_ref(&self, repo: &RepoName, name: &str, oid: &str) -> Result<(), PortError>;

    /// Moves a ref on to a descendant of where it is; anything else is refused. REST `PATCH /repos/{}/git/refs/{}`.
    async fn forward_ref(&self, repo: &RepoName, name: &str, oid: &str) -> Result<(), PortError>;

    /// Deletes things in one request, each on its own. One that is not there any more is no error, nor is one that
    /// GitHub leaves because it is not what was named; a read afterwards tells which are gone.
    async fn delete(&self, deletion: &Deletion) -> Result<(), PortError>;

    /// Creates a check run and gives it as it was made: there is no such thing as one that exists already. REST
    /// `POST /repos/{}/check-runs`.
    async fn create_check_run(&self, repo: &RepoName, check: &NewCheckRun) -> Result<CheckRun, PortError>;

    /// One page, from 1, of all check runs of a name on a commit. REST `GET /repos/{}/commits/{}/check-runs`.
    async fn check_runs(&self, repo: &RepoName, commit: &str, name: &str, page: u32) -> Result<CheckPage, PortError>;

    /// Changes what a check run shows. REST `PATCH /repos/{}/check-runs/{}`.
    async fn update_check_run(&self, repo: &RepoName, id: u64, face: &CheckFace) -> Result<(), PortError>;

    /// Puts labels on an issue or pull request; those that the repository does not have are created.
    async fn add_labels(&self, repo: &RepoName, number: u64, names: &[String]) -> Result<(), PortError>;

    /// Takes a label off an issue or pull request; a 404 is fine.
    async fn remove_label(&self, repo: &RepoName, number: u64, name: &str) -> Result<(), PortError>;

    /// Replaces the text of a comment. REST `PATCH /repos/{}/issues/comments/{}`.
    async fn update_comment(&self, repo: &RepoName, id: u64, body: &str) -> Result<(), PortError>;

    /// Writes a comment and gives its id.
    async fn create_comment(&self, repo: &RepoName, number: u64, body: &str) -> Result<u64, PortError>;

    /// Reacts; reacting twice in the same way is one reaction. `content` is one of GitHub's words, such as `confused`.
    async fn react(&self, repo: &RepoName, to: ReactTo, content: &str) -> Result<(), PortError>;
}

/// Plain reads of REST, which building a trigger from live state needs.
pub trait RestRead {
    /// The JSON of a path below a repository, given by its segments.
    async fn get_json(&self, repo: &RepoName, below: &[&str]) -> Result<serde_json::Value, PortError>;
}

/// What the creation of a claim answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    /// It is made, by this very request.
    Made(Thing),
    /// A claim of that number is there already: lost, unless its nonce is one's own.
    Exists,
}

/// Where claims are kept. Implementations carry out what `core` decided; none decides.
pub trait Ledger {
    /// Which one this is.
    fn kind(&self) -> LedgerKind;

    /// The permission that a workflow must grant so that this ledger can be written, such as `issues: write`.
    fn permission(&self) -> &'static str;

    /// Where to look for every claim that the key can have.
    fn probe(&self, key: &Key) -> Probe;

    /// Where to look for one claim of the key.
    fn probe_one(&self, key: &Key, number: u32) -> Probe;

    /// The key's claims in what was found there; in words, why it cannot be said.
    fn claims(&self, key: &Key, probed: &Probed) -> Result<Claims, String>;

    /// What to list for the budget window; `None` if its claims cannot be listed across keys.
    fn listing(&self) -> Option<Listing>;

    /// Adds a page of that to the budget window.
    fn add_to_window(&self, window: &mut Window, page: &WindowPage);

    /// Creates claim `number` of a key, if it is absent. The answer alone decides a race. `after` is the highest claim
    /// that was seen of the key, for a ledger whose claims form a chain.
    async fn create(
        &self,
        repo: &RepoName,
        key: &Key,
        number: u32,
        record: &Record,
        after: Option<&Claim>,
    ) -> Result<Created, PortError>;

    /// Reads claim `number` of a key; `None` if it is not there or does not show yet.
    async fn read(&self, repo: &RepoName, key: &Key, number: u32) -> Result<Option<ClaimRead>, PortError>;

    /// Whether a number is won by election, where the server has no create-if-absent: [`Ledger::create`] then makes a
    /// candidate, and the first of the [`Ledger::candidates`] has the number.
    fn elects(&self) -> bool {
        false
    }

    /// All that stand for claim `number` of a key, the one that has it first.
    async fn candidates(&self, repo: &RepoName, key: &Key, number: u32) -> Result<Vec<ClaimRead>, PortError> {
        Ok(self.read(repo, key, number).await?.into_iter().collect())
    }

    /// Writes one's own claim anew, to settle it: `claim` as it was read last, with the new record.
    async fn rewrite(&self, repo: &RepoName, key: &Key, claim: &Claim, record: &Record) -> Result<(), PortError>;

    /// What to list to find claims that can be swept; `None`: claims of this ledger cannot be deleted.
    fn sweep_listing(&self) -> Option<Listing> {
        None
    }

    /// Deletes claims of a key, each by what holds it and as it was read. One that is gone already is fine; one that was
    /// made again under its number stays. Which are gone is for a read afterwards to tell.
    async fn delete(&self, _repo: &RepoName, key: &Key, _claims: &[ClaimRead]) -> Result<(), PortError> {
        Err(PortError::Malformed {
            request: format!("the deletion of claims of {key}"),
            why: format!("claims in the ledger `{}` cannot be deleted", self.kind().as_str()),
        })
    }
}

/// Time.
pub trait Clock {
    /// The time now, UTC.
    fn now(&self) -> DateTime<Utc>;

    /// Waits until a time.
    async fn sleep_until(&self, at: DateTime<Utc>);
}
