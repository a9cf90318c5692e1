//! The GitHub around the [`World`]: its clock, tokens, rate limits, faults and counts, and every write.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

use super::checks::CheckLists;
use super::error::{ApiError, Code};
use super::fault::{CallInfo, Fault, Op, Planned};
use super::world::{
    Access, CommentRow, FileContent, Item, ItemSpec, LabelEventRow, MAX_COMMENT, MAX_LABEL_DESCRIPTION, MAX_LABEL_NAME,
    MAX_LABELS_ON_ITEM, REACTIONS, Reaction, RepoLabel, Repository, ReviewRow, Run, Scope, User, World, node_id,
};
use crate::core::facts::Permission;
use crate::core::identity::{ActorKind, is_written_as_bot};
use crate::ports::{ReactTo, RepoName};

/// The color of labels that are made by putting them on an item.
pub(super) const DEFAULT_COLOR: &str = "ededed";

/// What kind of token it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// The token that a workflow job gets.
    BuiltIn,
    /// An installation token of an App.
    App,
    /// A fine-grained personal access token: it may do what both its grants and its person may.
    Personal,
}

/// What a token may do, by scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants(BTreeMap<Scope, Access>);

impl Grants {
    /// The given scopes.
    pub fn of(grants: &[(Scope, Access)]) -> Self {
        Self(grants.iter().copied().collect())
    }

    /// Everything.
    pub fn all() -> Self {
        Self(Scope::ALL.into_iter().map(|scope| (scope, Access::Write)).collect())
    }

    /// Whether the scope is granted that far.
    pub fn has(&self, scope: Scope, access: Access) -> bool {
        self.0.get(&scope).is_some_and(|granted| *granted >= access)
    }
}

/// Reads the form of a workflow's `permissions:` on one line, such as `issues: write, contents: read`; also
/// `write-all` and `read-all`.
impl FromStr for Grants {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let every = |access| Self(Scope::ALL.into_iter().map(|scope| (scope, access)).collect());
        match s.trim() {
            "" => return Ok(Self::default()),
            "write-all" => return Ok(every(Access::Write)),
            "read-all" => return Ok(every(Access::Read)),
            _ => {}
        }
        let mut grants = BTreeMap::new();
        for part in s.split(',') {
            let (scope, access) = part.split_once(':').ok_or_else(|| format!("`{part}` is not SCOPE: ACCESS"))?;
            let scope = scope.trim();
            let scope = Scope::ALL
                .into_iter()
                .find(|known| known.as_str() == scope)
                .ok_or_else(|| format!("no permission is called `{scope}`"))?;
            match access.trim() {
                "none" => None,
                "read" => grants.insert(scope, Access::Read),
                "write" => grants.insert(scope, Access::Write),
                other => return Err(format!("`{other}` is neither none, read nor write")),
            };
        }
        Ok(Self(grants))
    }
}

/// What a token is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSpec {
    /// Its kind.
    pub kind: TokenKind,
    /// Whose it is: `github-actions[bot]`, an App's login, or a person's.
    pub login: String,
    /// What it may do.
    pub grants: Grants,
    /// The repositories that it is for, as `owner/name`; `None`: all.
    pub repositories: Option<Vec<String>>,
    /// Requests an hour.
    pub hourly: u64,
}

impl TokenSpec {
    /// The token that a job of this repository gets.
    pub fn built_in(repo: &str, grants: Grants) -> Self {
        Self {
            kind: TokenKind::BuiltIn,
            login: "github-actions[bot]".to_owned(),
            grants,
            repositories: Some(vec![repo.to_owned()]),
            hourly: 1000,
        }
    }

    /// An installation token of an App, for all repositories.
    pub fn app(login: &str, grants: Grants) -> Self {
        Self { kind: TokenKind::App, login: login.to_owned(), grants, repositories: None, hourly: 5000 }
    }

    /// A person's token, for all repositories.
    pub fn personal(login: &str, grants: Grants) -> Self {
        Self { kind: TokenKind::Personal, ..Self::app(login, grants) }
    }
}

/// A primary rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests an hour.
    pub limit: u64,
    /// Requests since the window began.
    pub used: u64,
    /// When the window ends.
    pub reset: DateTime<Utc>,
}

impl Rate {
    /// Requests that are left.
    pub const fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// A token with its use.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub spec: TokenSpec,
    /// Use of the REST API.
    pub core: Rate,
    /// Use of the GraphQL API.
    pub graphql: Rate,
    /// When it created content.
    content: VecDeque<DateTime<Utc>>,
}

/// Who makes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The kind of token.
    pub kind: TokenKind,
    /// The login.
    pub login: String,
    /// What the token may do.
    pub grants: Grants,
    /// The ids of the repositories that it is for; `None`: all.
    pub repositories: Option<Vec<u64>>,
}

impl Caller {
    /// Whether the token is for a repository.
    pub fn is_for(&self, repo: &Repository) -> bool {
        self.repositories.as_ref().is_none_or(|ids| ids.contains(&repo.id))
    }

    /// GitHub's refusal for a permission that this token lacks.
    pub fn refused(&self) -> ApiError {
        ApiError::NotAccessible { personal: self.kind == TokenKind::Personal }
    }
}

/// A request that was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Who asks.
    pub caller: Caller,
    /// How many API writes back its reads look.
    stale: usize,
    pub(super) op: Op,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// It is answered.
    Answered(Result<T, ApiError>),
    /// The connection ends without an answer.
    Lost,
    /// The caller is dead.
    Crashed,
}

/// One write that took effect: who, when, what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// When.
    pub at: DateTime<Utc>,
    /// The token's login.
    pub login: String,
    /// What was done.
    pub op: Op,
    /// The repository, as `owner/name`.
    pub repo: String,
    /// The issue or pull request, if it is about one.
    pub number: Option<u64>,
    /// The label's name, the comment's id or the reaction.
    pub what: String,
}

/// The embedded GitHub.
///
/// Whoever drives it sets [`State::now`]; nothing here reads a clock. Its own methods build and inspect it with no
/// token and no limit; those that take a [`Session`] are GitHub's API and are reached through [`State::request`].
#[derive(Clone)]
pub struct State {
    /// The time, by which everything is stamped.
    pub now: DateTime<Utc>,
    /// The address of the web pages, without a slash at the end.
    pub web: String,
    /// How many content-creating requests a minute a token may make; `None`: any number.
    pub content_per_minute: Option<usize>,
    /// How many earlier worlds are kept for stale reads.
    pub history_kept: usize,
    /// No stale read is older than this; `None`: of any age that is kept.
    pub oldest_read: Option<TimeDelta>,
    /// Faults that wait for their call. The first that fits is taken.
    pub faults: Vec<Planned>,
    /// GraphQL fields that are refused to everyone, each as `Type.field`.
    pub denied_fields: BTreeSet<String>,
    /// What lists of check runs show.
    pub check_lists: CheckLists,
    world: Arc<World>,
    /// Earlier worlds, each with when it was over.
    history: VecDeque<(DateTime<Utc>, Arc<World>)>,
    tokens: BTreeMap<String, Token>,
    ids: Ids,
    calls: Vec<CallInfo>,
    /// How many requests there have been.
    pub(super) requests: usize,
    struck: usize,
    writes: Vec<Write>,
}

/// Leaves the tokens out.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("now", &self.now).field("world", &self.world).finish_non_exhaustive()
    }
}

impl State {
    /// A GitHub with no repository. It knows `github-actions[bot]` and `claude[bot]`.
    pub fn new(now: DateTime<Utc>) -> Self {
        let mut state = Self {
            now,
            web: "https://github.com".to_owned(),
            content_per_minute: None,
            history_kept: 16,
            oldest_read: None,
            faults: Vec::new(),
            denied_fields: BTreeSet::new(),
            check_lists: CheckLists::Whole,
            world: Arc::new(World::default()),
            history: VecDeque::new(),
            tokens: BTreeMap::new(),
            ids: Ids(1_000_000),
            calls: Vec::new(),
            requests: 0,
            struck: 0,
            writes: Vec::new(),
        };
        state.add_user_with_id("github-actions[bot]", ActorKind::Bot, 41_898_282);
        state.add_user_with_id("claude[bot]", ActorKind::Bot, 209_825_114);
        state
    }

    // --- building -------------------------------------------------------------------------------------------------

    /// Adds an account, unless there is one of that login.
    pub fn add_user(&mut self, login: &str, kind: ActorKind) {
        let id = self.ids.fresh();
        self.add_user_with_id(login, kind, id);
    }

    /// Adds an account with an id, unless there is one of that login.
    pub fn add_user_with_id(&mut self, login: &str, kind: ActorKind, id: u64) {
        let user = User { login: login.to_owned(), id, kind };
        Arc::make_mut(&mut self.world).users.entry(login.to_lowercase()).or_insert(user);
    }

    /// Deletes an account: what it wrote stays, with no author; its tokens are worth nothing.
    pub fn delete_user(&mut self, login: &str) {
        self.tokens.retain(|_, token| !token.spec.login.eq_ignore_ascii_case(login));
        let world = Arc::make_mut(&mut self.world);
        world.users.remove(&login.to_lowercase());
        let gone = |who: &Option<String>| who.as_ref().is_some_and(|who| who.eq_ignore_ascii_case(login));
        for repo in world.repositories.values_mut() {
            for item in repo.items.values_mut() {
                item.author.take_if(|a| gone(&Some(a.clone())));
                for event in &mut item.label_events {
                    event.actor.take_if(|a| gone(&Some(a.clone())));
                }
            }
            for comment in repo.comments.values_mut() {
                comment.author.take_if(|a| gone(&Some(a.clone())));
                comment.editor.take_if(|a| gone(&Some(a.clone())));
            }
        }
    }

    /// Adds a public repository, `owner/name`. The owner becomes an organisation if it is no account yet.
    pub fn add_repo(&mut self, full: &str, id: u64) {
        let (owner, _) = full.split_once('/').unwrap_or((full, full));
        self.add_user(owner, ActorKind::Organization);
        let repo = Repository::new(id, full, self.stamp());
        Arc::make_mut(&mut self.world).repositories.insert(id, repo);
    }

    /// Changes a repository in any way. One that is named for the first time is added.
    pub fn edit_repo<T>(&mut self, full: &str, change: impl FnOnce(&mut Repository) -> T) -> T {
        self.edit(full, |repo, _| change(repo))
    }

    fn edit<T>(&mut self, full: &str, change: impl FnOnce(&mut Repository, &mut Ids) -> T) -> T {
        let id = self.repo(full).map(|repo| repo.id);
        let id = id.unwrap_or_else(|| {
            let id = self.ids.fresh();
            self.add_repo(full, id);
            id
        });
        let now = self.stamp();
        let repos = &mut Arc::make_mut(&mut self.world).repositories;
        change(repos.entry(id).or_insert_with(|| Repository::new(id, full, now)), &mut self.ids)
    }

    /// Makes a repository private.
    pub fn make_private(&mut self, full: &str) {
        self.edit_repo(full, |repo| repo.private = true);
    }

    /// Gives a person a permission; the account is added if there is none.
    pub fn grant(&mut self, full: &str, login: &str, permission: Permission) {
        self.know(login);
        self.edit_repo(full, |repo| repo.collaborators.insert(login.to_lowercase(), permission));
    }

    /// Writes a text file on the default branch.
    pub fn set_file(&mut self, full: &str, path: &str, text: &str) {
        let content = FileContent::Text(text.to_owned());
        self.edit_repo(full, |repo| repo.files.insert(path.to_owned(), content));
    }

    /// Adds a token. The account is added if there is none.
    pub fn add_token(&mut self, token: &str, spec: TokenSpec) {
        self.know(&spec.login);
        let rate = Rate { limit: spec.hourly, used: 0, reset: DateTime::UNIX_EPOCH };
        let graphql = Rate { limit: rate.limit.max(5000), ..rate };
        self.tokens.insert(token.to_owned(), Token { spec, core: rate, graphql, content: VecDeque::new() });
    }

    /// Opens an issue or pull request, as a person does on the web; gives its number.
    pub fn open_issue(&mut self, full: &str, spec: ItemSpec) -> u64 {
        self.know(&spec.author);
        let now = self.stamp();
        self.edit(full, |repo, ids| insert_item(repo, ids, now, spec))
    }

    /// Changes an issue or pull request in any way; `None` if there is none of that number.
    pub fn edit_item<T>(&mut self, full: &str, number: u64, change: impl FnOnce(&mut Item) -> T) -> Option<T> {
        let now = self.stamp();
        self.edit_repo(full, |repo| {
            let item = repo.items.get_mut(&number)?;
            item.updated_at = now;
            Some(change(item))
        })
    }

    /// Closes an issue or pull request. `false` if there is none.
    pub fn close(&mut self, full: &str, number: u64) -> bool {
        let now = self.stamp();
        let close = |item: &mut Item| (item.open, item.closed_at) = (false, Some(now));
        self.edit_item(full, number, close).is_some()
    }

    /// Opens it again. `false` if there is none.
    pub fn reopen(&mut self, full: &str, number: u64) -> bool {
        self.edit_item(full, number, |item| (item.open, item.closed_at) = (true, None)).is_some()
    }

    /// Deletes an issue for good.
    pub fn delete_issue(&mut self, full: &str, number: u64) {
        self.edit_repo(full, |repo| {
            if repo.items.remove(&number).is_some() {
                repo.deleted.insert(number);
                repo.comments.retain(|_, comment| comment.number != number);
            }
        });
    }

    /// Puts labels on an item on somebody's behalf. `false` if there is no such item.
    pub fn label_item(&mut self, full: &str, number: u64, labels: &[&str], actor: &str) -> bool {
        self.know(actor);
        let now = self.stamp();
        let labels: Vec<_> = labels.iter().map(|&l| l.to_owned()).collect();
        self.edit(full, |repo, ids| {
            let there = repo.items.contains_key(&number);
            if there {
                put_labels(repo, ids, now, number, &labels, actor);
            }
            there
        })
    }

    /// Takes a label off an item on somebody's behalf. `false` if it does not carry it.
    pub fn unlabel_item(&mut self, full: &str, number: u64, label: &str, actor: &str) -> bool {
        self.know(actor);
        let now = self.stamp();
        self.edit(full, |repo, ids| take_label(repo, ids, now, number, label, actor))
    }

    /// Makes a repository label; `false` if the name is taken.
    pub fn add_label(&mut self, full: &str, name: &str, description: &str) -> bool {
        let now = self.stamp();
        let description = (!description.is_empty()).then(|| description.to_owned());
        self.edit(full, |repo, ids| {
            let free = repo.label(name).is_none();
            if free {
                insert_label(repo, ids, now, name, DEFAULT_COLOR, description);
            }
            free
        })
    }

    /// Deletes a repository label, which takes it off every item; `false` if there is none.
    pub fn remove_label(&mut self, full: &str, name: &str) -> bool {
        self.edit_repo(full, |repo| drop_label(repo, name))
    }

    /// Writes a comment on somebody's behalf and gives its id; `None` if there is no such item.
    pub fn comment(&mut self, full: &str, number: u64, author: &str, body: &str) -> Option<u64> {
        self.know(author);
        let now = self.stamp();
        self.edit(full, |repo, ids| insert_comment(repo, ids, now, number, author, body))
    }

    /// Submits a review on somebody's behalf and gives its id; `None` if there is no such pull request.
    pub fn review(&mut self, full: &str, number: u64, author: &str, body: &str) -> Option<u64> {
        self.know(author);
        let now = self.stamp();
        self.edit(full, |repo, ids| {
            let item = repo.items.get_mut(&number).filter(|item| item.is_pull_request)?;
            let id = ids.fresh();
            let author = (!author.is_empty()).then(|| author.to_owned());
            item.reviews.push(ReviewRow { id, author, body: body.to_owned(), submitted_at: now });
            Some(id)
        })
    }

    /// Changes a comment on somebody's behalf; `false` if there is none of that id.
    pub fn edit_comment(&mut self, full: &str, id: u64, editor: &str, body: &str) -> bool {
        self.know(editor);
        let now = self.stamp();
        self.edit_repo(full, |repo| change_comment(repo, now, id, editor, body))
    }

    /// Adds a workflow run that is in progress, in its first attempt.
    pub fn add_run(&mut self, full: &str, id: u64, event: &str, actor: &str) {
        self.know(actor);
        let now = self.stamp();
        self.edit_repo(full, |repo| {
            let run = Run {
                id,
                attempt: 1,
                name: "agent".to_owned(),
                path: ".github/workflows/agent.yml".to_owned(),
                event: event.to_owned(),
                status: "in_progress".to_owned(),
                conclusion: None,
                actor: Some(actor.to_owned()),
                triggering_actor: Some(actor.to_owned()),
                head_sha: repo.head_sha.clone().unwrap_or_default(),
                created_at: now,
                updated_at: now,
                run_started_at: now,
            };
            repo.runs.insert(id, run);
        });
    }

    /// Ends a workflow run; `false` if there is none.
    pub fn finish_run(&mut self, full: &str, id: u64, conclusion: &str) -> bool {
        let finish = |run: &mut Run| {
            "completed".clone_into(&mut run.status);
            run.conclusion = Some(conclusion.to_owned());
        };
        self.edit_run(full, id, finish).is_some()
    }

    /// Starts the next attempt of a workflow run and gives its number; `None` if there is none.
    pub fn rerun(&mut self, full: &str, id: u64, by: &str) -> Option<u32> {
        self.know(by);
        let now = self.stamp();
        self.edit_run(full, id, |run| {
            run.attempt += 1;
            "in_progress".clone_into(&mut run.status);
            run.conclusion = None;
            run.run_started_at = now;
            run.triggering_actor = Some(by.to_owned());
            run.attempt
        })
    }

    /// Changes a workflow run in any way; `None` if there is none.
    pub fn edit_run<T>(&mut self, full: &str, id: u64, change: impl FnOnce(&mut Run) -> T) -> Option<T> {
        let now = self.stamp();
        self.edit_repo(full, |repo| {
            let run = repo.runs.get_mut(&id)?;
            run.updated_at = now;
            Some(change(run))
        })
    }

    /// Remembers the present world as one step of the history, for stale reads of what was built and not written
    /// through the API.
    pub fn remember(&mut self) {
        let before = Arc::clone(&self.world);
        self.push_history(before);
    }

    /// Plans a fault.
    pub fn plan(&mut self, fault: Planned) {
        self.faults.push(fault);
    }

    // --- looking --------------------------------------------------------------------------------------------------

    /// Everything that is stored.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// A repository by `owner/name`.
    pub fn repo(&self, full: &str) -> Option<&Repository> {
        let (owner, name) = full.split_once('/').unwrap_or((full, full));
        self.world.repository(owner, name)
    }

    /// An issue or pull request.
    pub fn item(&self, full: &str, number: u64) -> Option<&Item> {
        self.repo(full)?.items.get(&number)
    }

    /// The names of the labels on an item.
    pub fn item_labels(&self, full: &str, number: u64) -> Vec<String> {
        let names = |repo: &Repository| repo.items.get(&number).map(|item| repo.label_names_of(item));
        self.repo(full).and_then(names).unwrap_or_default()
    }

    /// A repository's labels, oldest first.
    pub fn labels(&self, full: &str) -> Vec<&RepoLabel> {
        self.repo(full).map(Repository::labels_by_age).unwrap_or_default()
    }

    /// A repository label by name, ignoring letter case.
    pub fn label(&self, full: &str, name: &str) -> Option<&RepoLabel> {
        self.repo(full)?.label(name)
    }

    /// An item's comments, oldest first.
    pub fn comments(&self, full: &str, number: u64) -> Vec<&CommentRow> {
        let rows = |repo: &'_ Repository| repo.items.get(&number).map(|item| item.comments.clone());
        let ids = self.repo(full).and_then(rows).unwrap_or_default();
        self.repo(full).map(|repo| ids.iter().filter_map(|id| repo.comments.get(id)).collect()).unwrap_or_default()
    }

    /// Every request so far, in order, those that failed included.
    pub fn calls(&self) -> &[CallInfo] {
        &self.calls
    }

    /// How many requests of a kind there were.
    pub fn count(&self, op: Op) -> usize {
        self.calls.iter().filter(|call| call.op == op).count()
    }

    /// Forgets the requests so far.
    pub fn forget_calls(&mut self) {
        self.calls.clear();
    }

    /// How many calls were struck by a fault.
    pub const fn struck(&self) -> usize {
        self.struck
    }

    /// Every API write that took effect, in order.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// The use of a token's primary limit that an operation counts against, as it is now.
    pub fn rate(&self, token: &str, op: Op) -> Option<Rate> {
        let token = self.tokens.get(token)?;
        let mut rate = if op.is_graphql() { token.graphql } else { token.core };
        if rate.reset <= self.now {
            rate = Rate { used: 0, reset: self.stamp() + TimeDelta::hours(1), ..rate };
        }
        Some(rate)
    }

    /// Uses a token's REST limit up until its window ends.
    pub fn exhaust(&mut self, token: &str) {
        let reset = self.stamp() + TimeDelta::hours(1);
        if let Some(token) = self.tokens.get_mut(token) {
            token.core = Rate { used: token.core.limit, reset, ..token.core };
            token.graphql = Rate { used: token.graphql.limit, reset, ..token.graphql };
        }
    }

    // --- the API ---------------------------------------------------------------------------------------------------

    /// One request: counts it, lets the fault strike, checks the token and the limits, and runs it.
    pub fn request<T>(
        &mut self,
        token: Option<&str>,
        call: CallInfo,
        fault: Option<Fault>,
        run: impl FnOnce(&mut Self, &Session) -> Result<T, ApiError>,
    ) -> Answer<T> {
        let op = call.op;
        self.calls.push(call);
        self.requests += 1;
        let Some(fault) = fault.or_else(|| self.faults.iter_mut().find_map(|f| f.hits(op).then(|| f.fault.clone())))
        else {
            return Answer::Answered(self.admit(token, op, 0).and_then(|session| run(self, &session)));
        };
        self.struck += 1;
        let stale = if let Fault::Stale(writes) = fault { writes } else { 0 };
        let outcome = fault.has_effect().then(|| self.admit(token, op, stale).and_then(|session| run(self, &session)));
        match (fault, outcome) {
            (Fault::Stale(_), Some(outcome)) => Answer::Answered(outcome),
            (Fault::Crash { .. }, _) => Answer::Crashed,
            (Fault::Server { status, .. }, _) => Answer::Answered(Err(ApiError::Server(status))),
            (Fault::Denied, _) => {
                let refused = self.admit(token, op, 0).map_or_else(|e| e, |session| session.caller.refused());
                Answer::Answered(Err(refused))
            }
            (Fault::RateLimited { status, retry_after, reset_in }, _) => {
                let seconds = |s: u64| TimeDelta::seconds(i64::try_from(s).unwrap_or(i64::from(u32::MAX)));
                let reset = reset_in.map(|s| self.stamp() + seconds(s));
                Answer::Answered(Err(ApiError::RateLimited { status, retry_after, reset }))
            }
            (Fault::Lost { .. } | Fault::Stale(_), _) => Answer::Lost,
        }
    }

    /// Knows the caller and counts the request against the limits.
    fn admit(&mut self, token: Option<&str>, op: Op, stale: usize) -> Result<Session, ApiError> {
        let name = token.ok_or(ApiError::NoCredentials)?;
        let rate = self.rate(name, op).ok_or(ApiError::BadCredentials)?;
        let now = self.stamp();
        let per_minute = self.content_per_minute;
        let token = self.tokens.get_mut(name).ok_or(ApiError::BadCredentials)?;
        if op != Op::RateLimit {
            if rate.remaining() == 0 {
                // GraphQL tells it with status 200.
                let status = if op.is_graphql() { 200 } else { 403 };
                return Err(ApiError::RateLimited { status, retry_after: None, reset: Some(rate.reset) });
            }
            let counted = if op.is_graphql() { &mut token.graphql } else { &mut token.core };
            *counted = Rate { used: rate.used + 1, ..rate };
        }
        if let Some(most) = per_minute.filter(|_| op.creates_content()) {
            token.content.retain(|at| now - *at < TimeDelta::minutes(1));
            if token.content.len() >= most {
                return Err(ApiError::RateLimited { status: 403, retry_after: Some(60), reset: None });
            }
            token.content.push_back(now);
        }
        let spec = token.spec.clone();
        let ids = |names: Vec<String>| names.iter().filter_map(|name| self.repo(name).map(|r| r.id)).collect();
        let repositories = spec.repositories.map(ids);
        let caller = Caller { kind: spec.kind, login: spec.login, grants: spec.grants, repositories };
        Ok(Session { caller, stale, op })
    }

    /// The world as this session's reads see it.
    pub fn view(&self, session: &Session) -> &World {
        let old_enough = |over: DateTime<Utc>| self.oldest_read.is_none_or(|oldest| over + oldest >= self.now);
        let back = self.history.iter().rev().take(session.stale).take_while(|(over, _)| old_enough(*over));
        back.last().map_or(&self.world, |(_, world)| world)
    }

    /// Creates a repository label.
    pub fn create_label(
        &mut self,
        session: &Session,
        repo: &RepoName,
        name: &str,
        color: Option<&str>,
        description: Option<&str>,
    ) -> Result<RepoLabel, ApiError> {
        let full = self.writable(session, repo, Scope::Issues)?;
        check_label(Some(name), color, description)?;
        let now = self.stamp();
        self.commit(session, &full, None, name, |repo, ids| {
            if repo.label(name).is_some() {
                return Err(ApiError::already_exists("Label", "name"));
            }
            let color = color.unwrap_or(DEFAULT_COLOR);
            Ok(insert_label(repo, ids, now, name, color, description.map(str::to_owned)))
        })
    }

    /// Changes a repository label.
    pub fn update_label(
        &mut self,
        session: &Session,
        repo: &RepoName,
        name: &str,
        new_name: Option<&str>,
        color: Option<&str>,
        description: Option<&str>,
    ) -> Result<RepoLabel, ApiError> {
        let full = self.writable(session, repo, Scope::Issues)?;
        let now = self.stamp();
        self.commit(session, &full, None, name, |repo, _| {
            let id = *repo.label_names.get(&name.to_lowercase()).ok_or(ApiError::NotFound)?;
            check_label(new_name, color, description)?;
            if let Some(new) = new_name {
                if repo.label(new).is_some_and(|other| other.id != id) {
                    return Err(ApiError::already_exists("Label", "name"));
                }
                repo.label_names.remove(&name.to_lowercase());
                repo.label_names.insert(new.to_lowercase(), id);
            }
            let label = repo.labels.get_mut(&id).ok_or(ApiError::NotFound)?;
            if let Some(new) = new_name {
                new.clone_into(&mut label.name);
            }
            if let Some(color) = color {
                color.clone_into(&mut label.color);
            }
            if let Some(description) = description {
                label.description = Some(description.to_owned());
            }
            label.updated_at = now;
            Ok(label.clone())
        })
    }

    /// Deletes a repository label.
    pub fn delete_label(&mut self, session: &Session, repo: &RepoName, name: &str) -> Result<(), ApiError> {
        let full = self.writable(session, repo, Scope::Issues)?;
        self.commit(
            session,
            &full,
            None,
            name,
            |repo, _| {
                if drop_label(repo, name) { Ok(()) } else { Err(ApiError::NotFound) }
            },
        )
    }

    /// Deletes a repository label by node id.
    pub fn delete_label_by_id(&mut self, session: &Session, id: &str) -> Result<(), ApiError> {
        let found = self.world.repositories.values().find_map(|repo| {
            let label = repo.labels.values().find(|label| node_id("LA", label.id) == id)?;
            Some((RepoName { owner: repo.owner.clone(), name: repo.name.clone() }, label.name.clone()))
        });
        let (repo, name) = found.ok_or(ApiError::NotFound)?;
        self.delete_label(session, &repo, &name)
    }

    /// Puts labels on an item and gives all that it carries. Those that the repository lacks are created, which
    /// needs `issues: write` on pull requests too.
    pub fn add_labels(
        &mut self,
        session: &Session,
        repo: &RepoName,
        number: u64,
        names: &[String],
    ) -> Result<Vec<RepoLabel>, ApiError> {
        let full = self.writable_item(session, repo, number, Permission::Write)?;
        let now = self.stamp();
        for name in names {
            check_label(Some(name), None, None)?;
        }
        let lacks = names.iter().any(|name| self.label(&full, name).is_none());
        if lacks && !session.caller.grants.has(Scope::Issues, Access::Write) {
            return Err(session.caller.refused());
        }
        let login = session.caller.login.clone();
        self.commit(session, &full, Some(number), &names.join(", "), |repo, ids| {
            let carried = |repo: &Repository| {
                let item = repo.items.get(&number).ok_or(ApiError::NotFound)?;
                Ok(repo.labels_of(item).cloned().collect::<Vec<_>>())
            };
            let mut all: Vec<_> = carried(repo)?.iter().map(|l| l.name.to_lowercase()).collect();
            all.extend(names.iter().map(|n| n.to_lowercase()));
            all.sort();
            all.dedup();
            if all.len() > MAX_LABELS_ON_ITEM {
                let message = format!("an issue can have at most {MAX_LABELS_ON_ITEM} labels");
                return Err(ApiError::told("Issue", Code::Custom, "labels", message));
            }
            put_labels(repo, ids, now, number, names, &login);
            carried(repo)
        })
    }

    /// Takes a label off an item and gives those that are left.
    pub fn take_label_off(
        &mut self,
        session: &Session,
        repo: &RepoName,
        number: u64,
        name: &str,
    ) -> Result<Vec<RepoLabel>, ApiError> {
        let full = self.writable_item(session, repo, number, Permission::Write)?;
        let now = self.stamp();
        let login = session.caller.login.clone();
        self.commit(session, &full, Some(number), name, |repo, ids| {
            if !take_label(repo, ids, now, number, name, &login) {
                return Err(ApiError::NoSuchLabel);
            }
            let item = repo.items.get(&number).ok_or(ApiError::NotFound)?;
            Ok(repo.labels_of(item).cloned().collect())
        })
    }

    /// Opens an issue.
    pub fn create_issue(
        &mut self,
        session: &Session,
        repo: &RepoName,
        title: &str,
        body: &str,
        labels: &[String],
    ) -> Result<Item, ApiError> {
        let found = self.world.visible(&session.caller, repo)?;
        self.world.allow(&session.caller, found, Scope::Issues, Access::Write, Permission::Read)?;
        let full = found.full_name();
        if title.trim().is_empty() {
            return Err(ApiError::field("Issue", Code::MissingField, "title"));
        }
        for name in labels {
            check_label(Some(name), None, None)?;
        }
        let now = self.stamp();
        let spec = ItemSpec { labels: labels.to_vec(), ..ItemSpec::new(&session.caller.login, title).body(body) };
        let item = self.commit(session, &full, None, title, |repo, ids| {
            let number = insert_item(repo, ids, now, spec);
            repo.items.get(&number).cloned().ok_or(ApiError::NotFound)
        })?;
        if let Some(write) = self.writes.last_mut() {
            write.number = Some(item.number);
        }
        Ok(item)
    }

    /// Writes a comment.
    pub fn create_comment(
        &mut self,
        session: &Session,
        repo: &RepoName,
        number: u64,
        body: &str,
    ) -> Result<CommentRow, ApiError> {
        let full = self.writable_item(session, repo, number, Permission::Read)?;
        let locked = self.item(&full, number).is_some_and(|item| item.locked);
        if locked && session.caller.kind == TokenKind::Personal {
            let found = self.world.visible(&session.caller, repo)?;
            if self.world.permission_of(found, &session.caller.login) < Permission::Write {
                return Err(ApiError::Locked);
            }
        }
        check_comment(body)?;
        let now = self.stamp();
        let login = session.caller.login.clone();
        let row = self.commit(session, &full, Some(number), "", |repo, ids| {
            let id = insert_comment(repo, ids, now, number, &login, body).ok_or(ApiError::NotFound)?;
            repo.comments.get(&id).cloned().ok_or(ApiError::NotFound)
        })?;
        if let Some(write) = self.writes.last_mut() {
            write.what = row.id.to_string();
        }
        Ok(row)
    }

    /// Changes a comment: one's own, or anybody's for those who may write.
    pub fn update_comment(
        &mut self,
        session: &Session,
        repo: &RepoName,
        id: u64,
        body: &str,
    ) -> Result<CommentRow, ApiError> {
        let (_, row) = self.world.comment(&session.caller, repo, id)?;
        let own = row.author.as_ref().is_some_and(|a| a.eq_ignore_ascii_case(&session.caller.login));
        let number = row.number;
        let people = if own { Permission::Read } else { Permission::Write };
        let full = self.writable_item(session, repo, number, people)?;
        check_comment(body)?;
        let now = self.stamp();
        let login = session.caller.login.clone();
        self.commit(session, &full, Some(number), &id.to_string(), |repo, _| {
            if change_comment(repo, now, id, &login, body) {
                repo.comments.get(&id).cloned().ok_or(ApiError::NotFound)
            } else {
                Err(ApiError::NotFound)
            }
        })
    }

    /// Reacts; gives the reaction and whether it is new.
    pub fn react(
        &mut self,
        session: &Session,
        repo: &RepoName,
        to: ReactTo,
        content: &str,
    ) -> Result<(Reaction, bool), ApiError> {
        let number = match to {
            ReactTo::Issue(number) => number,
            ReactTo::Comment(id) => self.world.comment(&session.caller, repo, id)?.1.number,
        };
        let full = self.writable_item(session, repo, number, Permission::Read)?;
        if !REACTIONS.contains(&content) {
            return Err(ApiError::field("Reaction", Code::Invalid, "content"));
        }
        let now = self.stamp();
        let login = session.caller.login.clone();
        let there = self.reactions(&full, to).iter().find(|r| r.login == login && r.content == content).cloned();
        if let Some(there) = there {
            return Ok((there, false));
        }
        self.commit(session, &full, Some(number), content, |repo, ids| {
            let reactions = match to {
                ReactTo::Issue(number) => repo.items.get_mut(&number).map(|item| &mut item.reactions),
                ReactTo::Comment(id) => repo.comments.get_mut(&id).map(|comment| &mut comment.reactions),
            };
            let reaction = Reaction { id: ids.fresh(), login, content: content.to_owned(), created_at: now };
            reactions.ok_or(ApiError::NotFound)?.push(reaction.clone());
            Ok((reaction, true))
        })
    }

    /// The reactions to an item or a comment.
    pub fn reactions(&self, full: &str, to: ReactTo) -> &[Reaction] {
        let Some(repo) = self.repo(full) else { return &[] };
        match to {
            ReactTo::Issue(number) => repo.items.get(&number).map_or(&[], |item| &item.reactions),
            ReactTo::Comment(id) => repo.comments.get(&id).map_or(&[], |comment| &comment.reactions),
        }
    }

    /// The repository's present name, where the session may change things of this scope.
    pub(super) fn writable(&self, session: &Session, repo: &RepoName, scope: Scope) -> Result<String, ApiError> {
        let found = self.world.visible(&session.caller, repo)?;
        self.world.allow(&session.caller, found, scope, Access::Write, Permission::Write)?;
        Ok(found.full_name())
    }

    fn writable_item(
        &self,
        session: &Session,
        repo: &RepoName,
        number: u64,
        people: Permission,
    ) -> Result<String, ApiError> {
        let (found, item) = self.world.item(&session.caller, repo, number)?;
        self.world.allow(&session.caller, found, item.scope(), Access::Write, people)?;
        Ok(found.full_name())
    }

    /// Carries a write out, or nothing of it, and logs it.
    pub(super) fn commit<T>(
        &mut self,
        session: &Session,
        full: &str,
        number: Option<u64>,
        what: &str,
        change: impl FnOnce(&mut Repository, &mut Ids) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let before = Arc::clone(&self.world);
        match self.edit(full, change) {
            Ok(value) => {
                self.push_history(before);
                self.writes.push(Write {
                    at: self.now,
                    login: session.caller.login.clone(),
                    op: session.op,
                    repo: full.to_owned(),
                    number,
                    what: what.to_owned(),
                });
                Ok(value)
            }
            Err(error) => {
                self.world = before;
                Err(error)
            }
        }
    }

    fn push_history(&mut self, before: Arc<World>) {
        self.history.push_back((self.now, before));
        while self.history.len() > self.history_kept {
            self.history.pop_front();
        }
    }

    /// Adds the account of a login that is met for the first time.
    fn know(&mut self, login: &str) {
        if !login.is_empty() && self.world.user(login).is_none() {
            let kind = if is_written_as_bot(login) { ActorKind::Bot } else { ActorKind::User };
            self.add_user(login, kind);
        }
    }

    /// The time to the second, as GitHub stamps it.
    pub(super) fn stamp(&self) -> DateTime<Utc> {
        self.now.trunc_subsecs(0)
    }
}

/// Numbers for new things.
#[derive(Clone, Debug)]
pub(super) struct Ids(u64);

impl Ids {
    pub(super) const fn fresh(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

fn check_label(name: Option<&str>, color: Option<&str>, description: Option<&str>) -> Result<(), ApiError> {
    let too_long = |field: &'static str, most: usize| {
        ApiError::told("Label", Code::Custom, field, format!("{field} is too long (maximum is {most} characters)"))
    };
    if name.is_some_and(|name| name.trim().is_empty()) {
        return Err(ApiError::field("Label", Code::MissingField, "name"));
    }
    if name.is_some_and(|name| name.chars().count() > MAX_LABEL_NAME) {
        return Err(too_long("name", MAX_LABEL_NAME));
    }
    if color.is_some_and(|c| c.len() != 6 || !c.chars().all(|c| c.is_ascii_hexdigit())) {
        return Err(ApiError::field("Label", Code::Invalid, "color"));
    }
    if description.is_some_and(|d| d.chars().count() > MAX_LABEL_DESCRIPTION) {
        return Err(too_long("description", MAX_LABEL_DESCRIPTION));
    }
    Ok(())
}

fn check_comment(body: &str) -> Result<(), ApiError> {
    let refused = |message: String| Err(ApiError::told("IssueComment", Code::Unprocessable, "data", message));
    if body.trim().is_empty() {
        return refused("Body cannot be blank".to_owned());
    }
    if body.chars().count() > MAX_COMMENT {
        return refused(format!("Body is too long (maximum is {MAX_COMMENT} characters)"));
    }
    Ok(())
}

fn insert_label(
    repo: &mut Repository,
    ids: &mut Ids,
    now: DateTime<Utc>,
    name: &str,
    color: &str,
    description: Option<String>,
) -> RepoLabel {
    let label = RepoLabel {
        id: ids.fresh(),
        name: name.to_owned(),
        color: color.to_owned(),
        description,
        created_at: now,
        updated_at: now,
    };
    repo.label_names.insert(name.to_lowercase(), label.id);
    repo.labels.insert(label.id, label.clone());
    label
}

fn drop_label(repo: &mut Repository, name: &str) -> bool {
    let Some(id) = repo.label_names.remove(&name.to_lowercase()) else { return false };
    repo.labels.remove(&id);
    for item in repo.items.values_mut() {
        item.labels.retain(|label| *label != id);
    }
    true
}

/// Puts labels on an item, with one event for each that it did not carry.
fn put_labels(repo: &mut Repository, ids: &mut Ids, now: DateTime<Utc>, number: u64, names: &[String], actor: &str) {
    for name in names {
        let label = match repo.label(name) {
            Some(label) => label.clone(),
            None => insert_label(repo, ids, now, name, DEFAULT_COLOR, None),
        };
        let Some(item) = repo.items.get_mut(&number) else { return };
        if item.labels.contains(&label.id) {
            continue;
        }
        item.labels.push(label.id);
        item.updated_at = now;
        item.label_events.push(LabelEventRow {
            id: ids.fresh(),
            added: true,
            label: label.name,
            actor: (!actor.is_empty()).then(|| actor.to_owned()),
            at: now,
        });
    }
}

fn take_label(repo: &mut Repository, ids: &mut Ids, now: DateTime<Utc>, number: u64, name: &str, actor: &str) -> bool {
    let Some(label) = repo.label(name).cloned() else { return false };
    let Some(item) = repo.items.get_mut(&number).filter(|item| item.labels.contains(&label.id)) else { return false };
    item.labels.retain(|id| *id != label.id);
    item.updated_at = now;
    item.label_events.push(LabelEventRow {
        id: ids.fresh(),
        added: false,
        label: label.name,
        actor: (!actor.is_empty()).then(|| actor.to_owned()),
        at: now,
    });
    true
}

fn insert_item(repo: &mut Repository, ids: &mut Ids, now: DateTime<Utc>, spec: ItemSpec) -> u64 {
    let number = spec.number.unwrap_or_else(|| repo.items.keys().next_back().map_or(1, |last| last + 1));
    let item = Item {
        number,
        id: ids.fresh(),
        is_pull_request: spec.head_sha.is_some(),
        title: spec.title,
        body: (!spec.body.is_empty()).then_some(spec.body),
        open: true,
        draft: spec.draft,
        merged: false,
        locked: false,
        author: (!spec.author.is_empty()).then(|| spec.author.clone()),
        labels: Vec::new(),
        label_events: Vec::new(),
        comments: Vec::new(),
        reactions: Vec::new(),
        head_ref: spec.head_sha.as_ref().map(|_| spec.head_ref.unwrap_or_else(|| format!("change-{number}"))),
        head_sha: spec.head_sha,
        reviews: Vec::new(),
        created_at: now,
        updated_at: now,
        closed_at: None,
    };
    repo.items.insert(number, item);
    put_labels(repo, ids, now, number, &spec.labels, &spec.author);
    number
}

fn insert_comment(
    repo: &mut Repository,
    ids: &mut Ids,
    now: DateTime<Utc>,
    number: u64,
    author: &str,
    body: &str,
) -> Option<u64> {
    let item = repo.items.get_mut(&number)?;
    let id = ids.fresh();
    item.comments.push(id);
    item.updated_at = now;
    let row = CommentRow {
        id,
        number,
        author: (!author.is_empty()).then(|| author.to_owned()),
        editor: None,
        body: body.to_owned(),
        created_at: now,
        updated_at: now,
        reactions: Vec::new(),
    };
    repo.comments.insert(id, row);
    Some(id)
}

fn change_comment(repo: &mut Repository, now: DateTime<Utc>, id: u64, editor: &str, body: &str) -> bool {
    let Some(row) = repo.comments.get_mut(&id) else { return false };
    body.clone_into(&mut row.body);
    row.editor = Some(editor.to_owned());
    row.updated_at = now;
    if let Some(item) = repo.items.get_mut(&row.number) {
        item.updated_at = now;
    }
    true
}
