//! What GitHub stores, as plain data, with the reads of its API and the one rule of who may do what.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::checks::CheckRow;
use super::error::ApiError;
use super::git::CommitRow;
use super::state::{Caller, TokenKind};
use crate::core::facts::Permission;
use crate::core::identity::{ActorKind, bare_login};
use crate::ports::RepoName;

/// The longest name of a label, in characters.
pub(super) const MAX_LABEL_NAME: usize = 50;
/// The longest description of a label, in characters.
pub(super) const MAX_LABEL_DESCRIPTION: usize = 100;
/// The most labels that one item carries.
pub(super) const MAX_LABELS_ON_ITEM: usize = 100;
/// The longest text of a comment, in characters.
pub(super) const MAX_COMMENT: usize = 65_536;
/// What people can react with, in REST's words.
pub(super) const REACTIONS: [&str; 8] = ["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"];

/// What a permission of a token is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Names and collaborators. Every token has it for the repositories it is for.
    Metadata,
    /// Files, commits and refs.
    Contents,
    /// Issues, their comments, and the repository's labels.
    Issues,
    /// The same of pull requests.
    PullRequests,
    /// Workflow runs.
    Actions,
    /// Check runs.
    Checks,
}

impl Scope {
    /// Every scope that can be granted.
    pub const ALL: [Self; 6] =
        [Self::Metadata, Self::Contents, Self::Issues, Self::PullRequests, Self::Actions, Self::Checks];

    /// The word of a workflow's `permissions:`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Contents => "contents",
            Self::Issues => "issues",
            Self::PullRequests => "pull-requests",
            Self::Actions => "actions",
            Self::Checks => "checks",
        }
    }
}

/// How much of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Look.
    Read,
    /// Change.
    Write,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The login as REST writes it: an App's ends in `[bot]`.
    pub login: String,
    /// The numeric id.
    pub id: u64,
    /// User, Bot or Organization.
    pub kind: ActorKind,
}

/// A file on the default branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// Text.
    Text(String),
    /// Something of so many bytes that is no text.
    Binary(usize),
}

/// A repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The numeric id.
    pub id: u64,
    /// The owner's login.
    pub owner: String,
    /// The name.
    pub name: String,
    /// Whether only those with a permission see it.
    pub private: bool,
    /// The default branch.
    pub default_branch: String,
    /// The commit at its tip; `None`: the repository is empty.
    pub head_sha: Option<String>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// The files on the default branch, by path.
    pub files: BTreeMap<String, FileContent>,
    /// Permissions of people, by login in lower case.
    pub collaborators: BTreeMap<String, Permission>,
    /// Labels by id.
    pub labels: BTreeMap<u64, RepoLabel>,
    /// Label ids by name in lower case: a name is taken whatever its letter case.
    pub label_names: BTreeMap<String, u64>,
    /// Issues and pull requests by number.
    pub items: BTreeMap<u64, Item>,
    /// The numbers of deleted issues.
    pub deleted: BTreeSet<u64>,
    /// Comments on issues and pull requests by id.
    pub comments: BTreeMap<u64, CommentRow>,
    /// Workflow runs by id.
    pub runs: BTreeMap<u64, Run>,
    /// Commits that were made through the API or built, by id; the tip of the default branch is not among them.
    pub commits: BTreeMap<String, CommitRow>,
    /// What each ref but the default branch points to, by full name.
    pub refs: BTreeMap<String, String>,
    /// Check runs by id.
    pub checks: BTreeMap<u64, CheckRow>,
}

/// A label of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoLabel {
    /// The numeric id.
    pub id: u64,
    /// The name.
    pub name: String,
    /// Six hexadecimal digits.
    pub color: String,
    /// The description, if it was given one.
    pub description: Option<String>,
    /// When it was created, to the second.
    pub created_at: DateTime<Utc>,
    /// When it was last changed, to the second.
    pub updated_at: DateTime<Utc>,
}

impl RepoLabel {
    /// Where it stands among the labels by age.
    pub fn cursor(&self) -> String {
        format!("{:012}.{:020}", self.created_at.timestamp(), self.id)
    }
}

/// GraphQL's name of a thing: its kind's letters and its id.
pub fn node_id(kind: &str, id: u64) -> String {
    format!("{kind}_kwDO{id:010x}")
}

/// An issue or pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The number.
    pub number: u64,
    /// The numeric id.
    pub id: u64,
    /// Whether it is a pull request.
    pub is_pull_request: bool,
    /// The title.
    pub title: String,
    /// The text.
    pub body: Option<String>,
    /// Whether it is open.
    pub open: bool,
    /// Whether it is a draft pull request.
    pub draft: bool,
    /// Whether it is a merged pull request.
    pub merged: bool,
    /// Whether its conversation is locked.
    pub locked: bool,
    /// Who opened it; `None` for a deleted account.
    pub author: Option<String>,
    /// The ids of its labels, in the order in which they were put on.
    pub labels: Vec<u64>,
    /// Every label event, oldest first.
    pub label_events: Vec<LabelEventRow>,
    /// The ids of its comments, oldest first.
    pub comments: Vec<u64>,
    /// Reactions to it.
    pub reactions: Vec<Reaction>,
    /// The head commit of a pull request.
    pub head_sha: Option<String>,
    /// The branch of a pull request.
    pub head_ref: Option<String>,
    /// The submitted reviews of a pull request, oldest first.
    pub reviews: Vec<ReviewRow>,
    /// When it was opened.
    pub created_at: DateTime<Utc>,
    /// When anything about it last changed.
    pub updated_at: DateTime<Utc>,
    /// When it was closed.
    pub closed_at: Option<DateTime<Utc>>,
}

impl Item {
    /// What a token needs to read or change it.
    pub const fn scope(&self) -> Scope {
        if self.is_pull_request { Scope::PullRequests } else { Scope::Issues }
    }
}

/// A submitted review of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewRow {
    /// The numeric id.
    pub id: u64,
    /// Who wrote it; `None` for a deleted account.
    pub author: Option<String>,
    /// The text.
    pub body: String,
    /// When it was submitted.
    pub submitted_at: DateTime<Utc>,
}

/// A new issue or pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemSpec {
    /// Its number; `None` takes the next.
    pub number: Option<u64>,
    /// Its title.
    pub title: String,
    /// Its text; empty for none.
    pub body: String,
    /// Who opens it.
    pub author: String,
    /// Labels that it has from the start; those that the repository lacks are made.
    pub labels: Vec<String>,
    /// Its head commit, which makes it a pull request.
    pub head_sha: Option<String>,
    /// The branch of a pull request; `None` for one of no particular name.
    pub head_ref: Option<String>,
    /// Whether it is a draft pull request.
    pub draft: bool,
}

impl ItemSpec {
    /// A title and who opens it.
    pub fn new(author: &str, title: &str) -> Self {
        Self { title: title.to_owned(), author: author.to_owned(), ..Self::default() }
    }

    /// With a number.
    #[must_use]
    pub const fn number(mut self, number: u64) -> Self {
        self.number = Some(number);
        self
    }

    /// With a text.
    #[must_use]
    pub fn body(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }

    /// With labels.
    #[must_use]
    pub fn labels(mut self, labels: &[&str]) -> Self {
        self.labels = labels.iter().map(|&l| l.to_owned()).collect();
        self
    }

    /// As a pull request.
    #[must_use]
    pub fn pull_request(mut self, head_sha: &str) -> Self {
        self.head_sha = Some(head_sha.to_owned());
        self
    }

    /// As a pull request from this branch.
    #[must_use]
    pub fn from_branch(mut self, name: &str) -> Self {
        self.head_ref = Some(name.to_owned());
        self
    }
}

/// A label was put on an item or taken off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelEventRow {
    /// The numeric id.
    pub id: u64,
    /// `true` for put on.
    pub added: bool,
    /// The label's name then.
    pub label: String,
    /// Who did it; `None` for a deleted account.
    pub actor: Option<String>,
    /// When, to the second.
    pub at: DateTime<Utc>,
}

impl LabelEventRow {
    /// GraphQL's name of it.
    pub fn node_id(&self) -> String {
        node_id(if self.added { "LE" } else { "UNLE" }, self.id)
    }
}

/// A comment on an issue or pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentRow {
    /// The numeric id.
    pub id: u64,
    /// The number of the item.
    pub number: u64,
    /// Who wrote it; `None` for a deleted account.
    pub author: Option<String>,
    /// Who last edited it.
    pub editor: Option<String>,
    /// The text.
    pub body: String,
    /// When it was written, to the second.
    pub created_at: DateTime<Utc>,
    /// When it was last changed, to the second.
    pub updated_at: DateTime<Utc>,
    /// Reactions to it.
    pub reactions: Vec<Reaction>,
}

/// A reaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// The numeric id.
    pub id: u64,
    /// Who reacted.
    pub login: String,
    /// One of REST's eight words, such as `+1` and `confused`.
    pub content: String,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// A workflow run, its newest attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The id.
    pub id: u64,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The workflow's name.
    pub name: String,
    /// The workflow's file.
    pub path: String,
    /// The event that started it.
    pub event: String,
    /// `queued`, `in_progress` or `completed`.
    pub status: String,
    /// How it ended.
    pub conclusion: Option<String>,
    /// Whose event started it.
    pub actor: Option<String>,
    /// Who started the newest attempt.
    pub triggering_actor: Option<String>,
    /// The commit that it runs on.
    pub head_sha: String,
    /// When the first attempt was made.
    pub created_at: DateTime<Utc>,
    /// When anything about it last changed.
    pub updated_at: DateTime<Utc>,
    /// When the newest attempt started.
    pub run_started_at: DateTime<Utc>,
}

/// What a path of a branch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeEntry<'a> {
    /// A file.
    File(&'a FileContent),
    /// A folder.
    Folder,
}

impl Repository {
    /// What a path of the default branch holds; `None` if there is nothing or the repository is empty.
    pub fn entry(&self, path: &str) -> Option<TreeEntry<'_>> {
        self.head_sha.as_ref()?;
        if let Some(content) = self.files.get(path) {
            return Some(TreeEntry::File(content));
        }
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.files.keys().any(|file| file.starts_with(&folder)).then_some(TreeEntry::Folder)
    }

    /// A public repository with one commit and nothing else.
    pub fn new(id: u64, full: &str, created_at: DateTime<Utc>) -> Self {
        let (owner, name) = full.split_once('/').unwrap_or((full, full));
        Self {
            id,
            owner: owner.to_owned(),
            name: name.to_owned(),
            private: false,
            default_branch: "main".to_owned(),
            head_sha: Some(format!("{id:040x}")),
            created_at,
            files: BTreeMap::new(),
            collaborators: BTreeMap::new(),
            labels: BTreeMap::new(),
            label_names: BTreeMap::new(),
            items: BTreeMap::new(),
            deleted: BTreeSet::new(),
            comments: BTreeMap::new(),
            runs: BTreeMap::new(),
            commits: BTreeMap::new(),
            refs: BTreeMap::new(),
            checks: BTreeMap::new(),
        }
    }

    /// `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// A label by name, ignoring letter case as REST does.
    pub fn label(&self, name: &str) -> Option<&RepoLabel> {
        self.labels.get(self.label_names.get(&name.to_lowercase())?)
    }

    /// A label by its exact name, as GraphQL does.
    pub fn label_exactly(&self, name: &str) -> Option<&RepoLabel> {
        self.label(name).filter(|label| label.name == name)
    }

    /// The labels, oldest first.
    pub fn labels_by_age(&self) -> Vec<&RepoLabel> {
        let mut labels: Vec<_> = self.labels.values().collect();
        labels.sort_by_key(|label| (label.created_at, label.id));
        labels
    }

    /// The names of an item's labels, in the order in which they were put on.
    pub fn label_names_of(&self, item: &Item) -> Vec<String> {
        self.labels_of(item).map(|label| label.name.clone()).collect()
    }

    /// An item's labels.
    pub fn labels_of<'a>(&'a self, item: &'a Item) -> impl Iterator<Item = &'a RepoLabel> {
        item.labels.iter().filter_map(|id| self.labels.get(id))
    }

    /// A page of the labels, newest first, from after a cursor; with the cursor of its end if there is more.
    pub fn newest_labels(&self, first: usize, after: Option<&str>) -> (Vec<&RepoLabel>, Option<String>) {
        let mut labels = self.labels_by_age();
        labels.reverse();
        let mut rest = labels.into_iter().skip_while(|label| after.is_some_and(|after| *label.cursor() >= *after));
        let page: Vec<_> = rest.by_ref().take(first).collect();
        let more = rest.next().is_some();
        let end = page.last().filter(|_| more).map(|label| label.cursor());
        (page, end)
    }

    /// The same, oldest first.
    pub fn oldest_labels(&self, first: usize, after: Option<&str>) -> (Vec<&RepoLabel>, Option<String>) {
        let labels = self.labels_by_age().into_iter();
        let mut rest = labels.skip_while(|label| after.is_some_and(|after| *label.cursor() <= *after));
        let page: Vec<_> = rest.by_ref().take(first).collect();
        let more = rest.next().is_some();
        let end = page.last().filter(|_| more).map(|label| label.cursor());
        (page, end)
    }

    /// The page of a review under the address of the web pages.
    pub fn review_url(&self, web: &str, item: &Item, row: &ReviewRow) -> String {
        format!("{}#pullrequestreview-{}", self.item_url(web, item), row.id)
    }

    /// The page of an item under the address of the web pages.
    pub fn item_url(&self, web: &str, item: &Item) -> String {
        let kind = if item.is_pull_request { "pull" } else { "issues" };
        format!("{web}/{}/{kind}/{}", self.full_name(), item.number)
    }

    /// The page of a comment.
    pub fn comment_url(&self, web: &str, comment: &CommentRow) -> String {
        let item = self.items.get(&comment.number).map(|item| self.item_url(web, item)).unwrap_or_default();
        format!("{item}#issuecomment-{}", comment.id)
    }

    /// The page of a workflow run.
    pub fn run_url(&self, web: &str, run: &Run) -> String {
        format!("{web}/{}/actions/runs/{}", self.full_name(), run.id)
    }

    /// An item's comments, oldest first.
    pub fn comments_of<'a>(&'a self, item: &'a Item) -> impl DoubleEndedIterator<Item = &'a CommentRow> {
        item.comments.iter().filter_map(|id| self.comments.get(id))
    }
}

/// Everything that GitHub stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Accounts by login in lower case.
    pub users: BTreeMap<String, User>,
    /// Repositories by id.
    pub repositories: BTreeMap<u64, Repository>,
}

impl World {
    /// A repository by its name, ignoring letter case.
    pub fn repository(&self, owner: &str, name: &str) -> Option<&Repository> {
        let same = |r: &&Repository| r.owner.eq_ignore_ascii_case(owner) && r.name.eq_ignore_ascii_case(name);
        self.repositories.values().find(same)
    }

    /// An account by login, ignoring letter case.
    pub fn user(&self, login: &str) -> Option<&User> {
        self.users.get(&login.to_lowercase())
    }

    /// A person's permission in a repository. An App has none of its own.
    pub fn permission_of(&self, repo: &Repository, login: &str) -> Permission {
        match self.user(login) {
            Some(user) if user.kind == ActorKind::User => {}
            _ => return Permission::None,
        }
        if repo.owner.eq_ignore_ascii_case(login) {
            return Permission::Admin;
        }
        let public = if repo.private { Permission::None } else { Permission::Read };
        repo.collaborators.get(&login.to_lowercase()).copied().unwrap_or(public)
    }

    /// The repository, if the caller may know of it.
    pub fn visible(&self, caller: &Caller, repo: &RepoName) -> Result<&Repository, ApiError> {
        let found = self.repository(&repo.owner, &repo.name).ok_or(ApiError::NotFound)?;
        if found.private && (!caller.is_for(found) || self.rank(caller, found) == Permission::None) {
            return Err(ApiError::NotFound);
        }
        Ok(found)
    }

    /// Whether a caller may do something in a repository that it may know of. A public repository can be read by
    /// everyone. A change needs the token's own grant and, for a person's token, that the person may do it:
    /// `people` is the least permission of theirs.
    pub fn may(&self, caller: &Caller, repo: &Repository, scope: Scope, access: Access, people: Permission) -> bool {
        if access == Access::Read && !repo.private {
            return true;
        }
        caller.is_for(repo)
            && self.rank(caller, repo) >= people
            && (caller.grants.has(scope, access) || (scope == Scope::Metadata && access == Access::Read))
    }

    /// [`World::may`] as a result with GitHub's refusal.
    pub fn allow(
        &self,
        caller: &Caller,
        repo: &Repository,
        scope: Scope,
        access: Access,
        people: Permission,
    ) -> Result<(), ApiError> {
        if self.may(caller, repo, scope, access, people) { Ok(()) } else { Err(caller.refused()) }
    }

    /// Whether a caller may read the labels of a repository: they belong to issues and pull requests alike.
    pub fn may_read_labels(&self, caller: &Caller, repo: &Repository) -> bool {
        [Scope::Issues, Scope::PullRequests]
            .into_iter()
            .any(|scope| self.may(caller, repo, scope, Access::Read, Permission::Read))
    }

    fn rank(&self, caller: &Caller, repo: &Repository) -> Permission {
        if caller.kind == TokenKind::Personal { self.permission_of(repo, &caller.login) } else { Permission::Admin }
    }

    /// The repository, where its labels may be read.
    pub fn with_labels(&self, caller: &Caller, repo: &RepoName) -> Result<&Repository, ApiError> {
        let repo = self.visible(caller, repo)?;
        if self.may_read_labels(caller, repo) { Ok(repo) } else { Err(caller.refused()) }
    }

    /// A repository label by name, ignoring letter case.
    pub fn label(&self, caller: &Caller, repo: &RepoName, name: &str) -> Result<&RepoLabel, ApiError> {
        self.with_labels(caller, repo)?.label(name).ok_or(ApiError::NotFound)
    }

    /// An issue or pull request.
    pub fn item(&self, caller: &Caller, repo: &RepoName, number: u64) -> Result<(&Repository, &Item), ApiError> {
        let repo = self.visible(caller, repo)?;
        let Some(item) = repo.items.get(&number) else {
            return Err(if repo.deleted.contains(&number) { ApiError::Deleted } else { ApiError::NotFound });
        };
        self.allow(caller, repo, item.scope(), Access::Read, Permission::Read)?;
        Ok((repo, item))
    }

    /// Issues and pull requests that the caller may read, newest first.
    pub fn items(&self, caller: &Caller, repo: &RepoName) -> Result<(&Repository, Vec<&Item>), ApiError> {
        let repo = self.with_labels(caller, repo)?;
        let readable = |item: &&Item| self.may(caller, repo, item.scope(), Access::Read, Permission::Read);
        Ok((repo, repo.items.values().rev().filter(readable).collect()))
    }

    /// A comment on an issue or pull request.
    pub fn comment(&self, caller: &Caller, repo: &RepoName, id: u64) -> Result<(&Repository, &CommentRow), ApiError> {
        let found = self.visible(caller, repo)?;
        let comment = found.comments.get(&id).ok_or(ApiError::NotFound)?;
        self.item(caller, repo, comment.number)?;
        Ok((found, comment))
    }

    /// A person's permission, as the endpoint tells it. An App's login is known and has none.
    pub fn permission(&self, caller: &Caller, repo: &RepoName, login: &str) -> Result<(&User, Permission), ApiError> {
        let repo = self.visible(caller, repo)?;
        if !caller.is_for(repo) {
            return Err(caller.refused());
        }
        let user = self.user(login).ok_or(ApiError::NotFound)?;
        Ok((user, self.permission_of(repo, login)))
    }

    /// A workflow run.
    pub fn run(&self, caller: &Caller, repo: &RepoName, id: u64) -> Result<(&Repository, &Run), ApiError> {
        let (repo, _) = self.runs(caller, repo)?;
        Ok((repo, repo.runs.get(&id).ok_or(ApiError::NotFound)?))
    }

    /// Workflow runs, newest first.
    pub fn runs(&self, caller: &Caller, repo: &RepoName) -> Result<(&Repository, Vec<&Run>), ApiError> {
        let repo = self.visible(caller, repo)?;
        self.allow(caller, repo, Scope::Actions, Access::Read, Permission::Read)?;
        let mut runs: Vec<_> = repo.runs.values().collect();
        runs.sort_by_key(|run| std::cmp::Reverse((run.created_at, run.id)));
        Ok((repo, runs))
    }

    /// What a path of the default branch holds; `None` if there is nothing or the repository is empty.
    pub fn file<'a>(
        &self,
        caller: &Caller,
        repo: &'a Repository,
        path: &str,
    ) -> Result<Option<TreeEntry<'a>>, ApiError> {
        self.allow(caller, repo, Scope::Contents, Access::Read, Permission::Read)?;
        Ok(repo.entry(path))
    }

    /// The login as GraphQL writes an author: an App's without `[bot]`.
    pub fn graphql_login(user: &User) -> &str {
        if user.kind == ActorKind::Bot { bare_login(&user.login) } else { &user.login }
    }
}
