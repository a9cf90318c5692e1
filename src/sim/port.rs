//! The embedded GitHub as [`GitHub`], in process: what the client makes of the answers over HTTP, without the HTTP.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{self, Future};
use std::pin::Pin;
use std::rc::Rc;

use chrono::{DateTime, TimeDelta, Utc};

use super::checks::{CheckRow, CheckWords, no_commit};
use super::error::ApiError;
use super::fault::{CallInfo, Fault, Op};
use super::git::{NO_OBJECT, RefUpdate};
use super::state::{Answer, Session, State};
use super::world::{
    Access, CommentRow, FileContent, Item, LabelEventRow, RepoLabel, Repository, ReviewRow, Scope, TreeEntry, World,
    node_id,
};
use crate::core::claim::REF_PREFIX;
use crate::core::facts::{
    Branch, Comment, Fact, LabelEvent, OpenedPull, Permission, RepositoryState, ResourceState, Review, RunState,
    Written,
};
use crate::core::identity::Actor;
use crate::core::policy::POLICY_PATH;
use crate::ports::{
    CheckFace, CheckPage, CheckRun, Deletion, FactsQuery, FactsReply, FoundChecks, FoundRefs, GitHub, GitRef, Label,
    LabelPage, Listing, NewCheckRun, NewCommit, PolicyRead, PortError, Probe, Probed, ReactTo, RefPage, RepoName,
    WindowPage,
};

/// How many of the newest comments the facts hold.
pub const COMMENTS: usize = 50;
/// How many of the newest label events the facts hold.
pub const LABEL_EVENTS: usize = 30;
/// How many of the newest reviews the facts hold.
pub const REVIEWS: usize = 30;
/// How many labels a page holds.
pub const LABEL_PAGE: usize = 100;
/// How many check suites of a commit are looked at.
pub const CHECK_SUITES: usize = 20;
/// How many check runs a page holds.
pub const CHECK_PAGE: usize = 100;
/// How many refs a page holds.
pub const REF_PAGE: usize = 100;
/// How long to wait after a secondary limit that does not say, in seconds: GitHub's documentation asks for a minute.
const UNSAID_WAIT: i64 = 60;

/// What a [`Hook`] answers with.
pub type HookFuture = Pin<Box<dyn Future<Output = Option<Fault>>>>;

/// Awaited before each call: whoever schedules several runs decides here which goes on, and what goes wrong.
pub type Hook = Rc<dyn Fn(&CallInfo) -> HookFuture>;

/// One token's view of a shared [`State`].
#[derive(Clone)]
pub struct InProcess {
    state: Rc<RefCell<State>>,
    token: String,
    hook: Hook,
    date: Cell<Option<DateTime<Utc>>>,
}

impl InProcess {
    /// With a token of the state.
    pub fn new(state: Rc<RefCell<State>>, token: &str) -> Self {
        let hook: Hook = Rc::new(|_| Box::pin(future::ready(None)));
        Self { state, token: token.to_owned(), hook, date: Cell::new(None) }
    }

    /// With a hook before each call.
    #[must_use]
    pub fn with_hook(mut self, hook: Hook) -> Self {
        self.hook = hook;
        self
    }

    /// The shared state.
    pub const fn state(&self) -> &Rc<RefCell<State>> {
        &self.state
    }

    async fn call<T>(
        &self,
        op: Op,
        method: &'static str,
        path: String,
        run: impl FnOnce(&mut State, &Session) -> Result<T, ApiError>,
    ) -> Result<T, PortError> {
        let call = CallInfo { op, method, path };
        let fault = (self.hook)(&call).await;
        let request = call.to_string();
        let (answer, now) = {
            let mut state = self.state.borrow_mut();
            (state.request(Some(&self.token), call, fault, run), state.now)
        };
        let lost = |why: String| {
            let request = request.clone();
            if op.is_write() { PortError::Ambiguous { request, why } } else { PortError::Unreachable { request, why } }
        };
        let result = match answer {
            Answer::Crashed => future::pending().await,
            Answer::Lost => return Err(lost("the connection broke".to_owned())),
            Answer::Answered(result) => result,
        };
        self.date.set(Some(now));
        result.map_err(|error| match &error {
            _ if error.is_already_exists() => PortError::Exists { request: request.clone() },
            ApiError::RateLimited { retry_after, reset, .. } => {
                let after = |s: u64| now + TimeDelta::seconds(i64::try_from(s).unwrap_or(UNSAID_WAIT));
                let unsaid = now + TimeDelta::seconds(UNSAID_WAIT);
                PortError::RateLimited {
                    retry_at: retry_after.map(after).or(*reset).unwrap_or(unsaid),
                    request: request.clone(),
                }
            }
            ApiError::Server(status) => lost(format!("status {status} \"{}\"", error.message())),
            ApiError::NotFound | ApiError::NoSuchLabel | ApiError::Deleted => {
                PortError::Missing { status: error.status(), message: error.message(), request: request.clone() }
            }
            _ => PortError::Denied { status: error.status(), message: error.words(), request: request.clone() },
        })
    }

    async fn graphql<T>(&self, run: impl FnOnce(&State, &Session) -> Result<T, ApiError>) -> Result<T, PortError> {
        self.call(Op::Graphql, "POST", "/graphql".to_owned(), |state, session| run(state, session)).await
    }
}

fn no_repository(repo: &RepoName) -> String {
    format!("Could not resolve to a Repository with the name '{repo}'.")
}

fn words<T>(error: &ApiError) -> Fact<T> {
    Fact::Unknown(error.message())
}

fn label(label: &RepoLabel) -> Label {
    Label {
        name: label.name.clone(),
        description: label.description.clone().unwrap_or_default(),
        node_id: Some(node_id("LA", label.id)),
        created_at: Some(label.created_at),
    }
}

/// A label as REST gives it, which does not tell when it was created.
fn rest_label(found: &RepoLabel) -> Label {
    Label { created_at: None, ..label(found) }
}

fn by_name(repo: &Repository, names: &[String]) -> BTreeMap<String, Label> {
    names.iter().filter_map(|name| Some((name.clone(), label(repo.label_exactly(name)?)))).collect()
}

/// What was written beside comments and labels.
fn written(world: &World, session: &Session, repo: &Repository, web: &str, query: &FactsQuery, below: &str) -> Written {
    let (reviews, more_reviews) = match query.number.map(|number| world.item(&session.caller, &query.repo, number)) {
        None => (Fact::Known(Vec::new()), false),
        Some(Err(error)) => match error {
            ApiError::NotFound | ApiError::Deleted => (Fact::Known(Vec::new()), false),
            error => (words(&error), false),
        },
        Some(Ok((_, item))) => {
            let rows = item.reviews.iter().skip(item.reviews.len().saturating_sub(REVIEWS));
            let review = |row: &ReviewRow| Review {
                author: actor(world, row.author.as_ref()),
                submitted_at: row.submitted_at,
                url: repo.review_url(web, item, row),
            };
            (Fact::Known(rows.map(review).collect()), item.reviews.len() > REVIEWS)
        }
    };
    if let Err(error) = allow_contents(world, session, repo) {
        return Written { branches: words(&error), pulls: words(&error), reviews, more_reviews };
    }
    let RefPage { refs, next } = ref_page(repo, below, None);
    if next.is_some() {
        let many = format!("there are more than {REF_PAGE} branches below {below}");
        let (branches, pulls) = (Fact::Unknown(many.clone()), Fact::Unknown(many));
        return Written { branches, pulls, reviews, more_reviews };
    }
    let name = |full: &str| full.strip_prefix("refs/heads/").unwrap_or(full).to_owned();
    let pulls = refs.iter().filter_map(|found| {
        let branch = name(&found.name);
        let item = repo.items.values().rev().find(|item| item.head_ref.as_deref() == Some(branch.as_str()))?;
        Some(OpenedPull { branch, number: item.number, created_at: item.created_at, url: repo.item_url(web, item) })
    });
    let may_read = world.allow(&session.caller, repo, Scope::PullRequests, Access::Read, Permission::Read);
    let pulls = match may_read {
        Err(error) if !refs.is_empty() => words(&error),
        _ => Fact::Known(pulls.collect()),
    };
    let branch = |found: &GitRef| Branch { name: name(&found.name), committed_at: found.committed_at };
    Written { branches: Fact::Known(refs.iter().map(branch).collect()), pulls, reviews, more_reviews }
}

/// What is found of a key's claims.
fn probed(state: &State, session: &Session, repo: &Repository, probe: &Probe) -> Result<Probed, ApiError> {
    let world = state.view(session);
    match probe {
        Probe::Nothing => Ok(Probed::Nothing),
        Probe::Labels(_) if !world.may_read_labels(&session.caller, repo) => Err(session.caller.refused()),
        Probe::Labels(names) => Ok(Probed::Labels(by_name(repo, names))),
        Probe::Refs(prefix) => {
            allow_contents(world, session, repo)?;
            let RefPage { refs, next } = ref_page(repo, prefix, None);
            Ok(Probed::Refs(found(repo, refs, next.is_some())))
        }
        Probe::Checks { commit, name } => {
            allow_contents(world, session, repo)?;
            if repo.knows_commit(commit) {
                world.allow(&session.caller, repo, Scope::Checks, Access::Read, Permission::Read)?;
            }
            let mut rows = state.listed_checks(repo, commit);
            rows.retain(|row| row.name == *name);
            let mut suites = BTreeMap::<u64, Vec<&CheckRow>>::new();
            for row in rows {
                suites.entry(row.suite).or_default().push(row);
            }
            let more = suites.len() > CHECK_SUITES || suites.values().any(|rows| rows.len() > CHECK_PAGE);
            let shown = suites.values().take(CHECK_SUITES).flat_map(|rows| rows.iter().take(CHECK_PAGE));
            let runs = shown.map(|row| row.seen()).collect();
            Ok(Probed::Checks(FoundChecks { runs, more, viewer: Some(session.caller.login.clone()) }))
        }
        Probe::Ref(name) => {
            allow_contents(world, session, repo)?;
            let refs = repo.git_ref(name).into_iter().collect();
            Ok(Probed::Refs(found(repo, refs, false)))
        }
    }
}

fn found(repo: &Repository, refs: Vec<GitRef>, more: bool) -> FoundRefs {
    FoundRefs { refs, more, tree: repo.default_tree(), repository: Some(node_id("R", repo.id)) }
}

fn allow_contents(world: &World, session: &Session, repo: &Repository) -> Result<(), ApiError> {
    world.allow(&session.caller, repo, Scope::Contents, Access::Read, Permission::Read)
}

fn ref_page(repo: &Repository, prefix: &str, after: Option<&str>) -> RefPage {
    let mut all = repo.refs_below(prefix);
    all.retain(|(name, _)| after.is_none_or(|after| name.as_str() > after));
    let more = all.len() > REF_PAGE;
    all.truncate(REF_PAGE);
    let next = all.last().filter(|_| more).map(|(name, _)| name.clone());
    RefPage { refs: all.iter().filter_map(|(name, _)| repo.git_ref(name)).collect(), next }
}

fn page(
    world: &World,
    session: &Session,
    repo: &Repository,
    listing: Listing,
    after: Option<&str>,
) -> Result<WindowPage, ApiError> {
    match listing {
        Listing::Labels | Listing::OldestLabels if !world.may_read_labels(&session.caller, repo) => {
            Err(session.caller.refused())
        }
        Listing::Labels => {
            let (labels, next) = repo.newest_labels(LABEL_PAGE, after);
            Ok(WindowPage::Labels(LabelPage { labels: labels.into_iter().map(label).collect(), next }))
        }
        Listing::OldestLabels => {
            let (labels, next) = repo.oldest_labels(LABEL_PAGE, after);
            Ok(WindowPage::Labels(LabelPage { labels: labels.into_iter().map(label).collect(), next }))
        }
        Listing::Refs => {
            allow_contents(world, session, repo)?;
            Ok(WindowPage::Refs(ref_page(repo, REF_PREFIX, after)))
        }
    }
}

/// What a check run shows, as the embedded GitHub takes it.
fn words_of(face: &CheckFace) -> CheckWords {
    CheckWords {
        external_id: None,
        status: Some(if face.conclusion.is_some() { "completed" } else { "in_progress" }.to_owned()),
        conclusion: face.conclusion.map(str::to_owned),
        started_at: Some(face.started_at),
        completed_at: face.completed_at,
        details_url: Some(face.details_url.clone()),
        title: Some(face.title.clone()),
        summary: Some(face.summary.clone()),
        text: Some(face.text.clone()),
    }
}

/// An account as GraphQL shows it.
fn actor(world: &World, login: Option<&String>) -> Option<Actor> {
    let user = world.user(login?)?;
    Some(Actor { login: World::graphql_login(user).to_owned(), kind: user.kind, id: Some(user.id) })
}

fn comment(world: &World, repo: &Repository, web: &str, row: &CommentRow) -> Comment {
    Comment {
        id: row.id,
        author: actor(world, row.author.as_ref()),
        editor: actor(world, row.editor.as_ref()).map(|a| a.login),
        body: row.body.clone(),
        created_at: row.created_at,
        updated_at: row.updated_at,
        url: repo.comment_url(web, row),
    }
}

fn label_event(world: &World, row: &LabelEventRow) -> LabelEvent {
    LabelEvent {
        id: row.node_id(),
        added: row.added,
        label: row.label.clone(),
        actor: actor(world, row.actor.as_ref()),
        at: row.at,
    }
}

fn resource(world: &World, repo: &Repository, web: &str, item: &Item) -> ResourceState {
    let comments: Vec<_> = repo.comments_of(item).rev().take(COMMENTS).collect();
    let events = item.label_events.iter().rev().take(LABEL_EVENTS).rev();
    ResourceState {
        is_pull_request: item.is_pull_request,
        number: item.number,
        open: item.open,
        merged: item.merged,
        draft: item.draft,
        locked: item.locked,
        author: actor(world, item.author.as_ref()),
        labels: repo.label_names_of(item),
        label_events: events.map(|row| label_event(world, row)).collect(),
        comments: comments.into_iter().rev().map(|row| comment(world, repo, web, row)).collect(),
        comment_total: u64::try_from(item.comments.len()).unwrap_or(u64::MAX),
        head_sha: item.head_sha.clone(),
        url: repo.item_url(web, item),
    }
}

fn policy(world: &World, session: &Session, repo: &Repository) -> PolicyRead {
    match world.file(&session.caller, repo, POLICY_PATH) {
        Ok(None) => PolicyRead::Absent,
        Ok(Some(TreeEntry::File(FileContent::Text(text)))) => PolicyRead::Text(text.clone()),
        Ok(Some(TreeEntry::File(FileContent::Binary(_)))) => PolicyRead::Unreadable("the file is not text".to_owned()),
        Ok(Some(TreeEntry::Folder)) => {
            PolicyRead::Unreadable(format!("{POLICY_PATH} is no file on the default branch"))
        }
        Err(error) => PolicyRead::Unreadable(error.message()),
    }
}

impl GitHub for InProcess {
    fn server_time(&self) -> Option<DateTime<Utc>> {
        self.date.get()
    }

    async fn facts(&self, query: &FactsQuery) -> Result<FactsReply, PortError> {
        self.graphql(|state, session| {
            let world = state.view(session);
            let caller = &session.caller;
            let viewer = Fact::Known(caller.login.clone());
            let Ok(repo) = world.visible(caller, &query.repo) else {
                let why = no_repository(&query.repo);
                return Ok(FactsReply {
                    viewer,
                    policy: PolicyRead::Unreadable(why.clone()),
                    repository: Fact::Unknown(why.clone()),
                    resource: query.number.map_or(Fact::Unasked, |_| Fact::Unknown(why.clone())),
                    claims: match query.claims {
                        Probe::Nothing => Fact::Known(Probed::Nothing),
                        Probe::Labels(_) | Probe::Refs(_) | Probe::Ref(_) | Probe::Checks { .. } => {
                            Fact::Unknown(why.clone())
                        }
                    },
                    window: query.window.map_or(Fact::Unasked, |_| Fact::Unknown(why.clone())),
                    written: query.written.is_some().then(|| Written {
                        branches: Fact::Unknown(why.clone()),
                        pulls: Fact::Unknown(why.clone()),
                        reviews: query.number.map_or(Fact::Known(Vec::new()), |_| Fact::Unknown(why)),
                        more_reviews: false,
                    }),
                });
            };
            let resource = query.number.map_or(Fact::Unasked, |number| match world.item(caller, &query.repo, number) {
                Ok((repo, item)) => Fact::Known(Some(resource(world, repo, &state.web, item))),
                Err(ApiError::NotFound | ApiError::Deleted) => Fact::Known(None),
                Err(error) => words(&error),
            });
            Ok(FactsReply {
                viewer,
                policy: policy(world, session, repo),
                repository: Fact::Known(RepositoryState { id: repo.id, name_with_owner: repo.full_name() }),
                resource,
                claims: match probed(state, session, repo, &query.claims) {
                    Ok(found) => Fact::Known(found),
                    Err(error) => words(&error),
                },
                window: match query.window.map(|listing| page(world, session, repo, listing, None)) {
                    None => Fact::Unasked,
                    Some(Ok(page)) => Fact::Known(page),
                    Some(Err(error)) => words(&error),
                },
                written: query.written.as_deref().map(|below| written(world, session, repo, &state.web, query, below)),
            })
        })
        .await
    }

    async fn window_page(
        &self,
        repo: &RepoName,
        listing: Listing,
        after: Option<&str>,
    ) -> Result<WindowPage, PortError> {
        let result = self.graphql(|state, session| {
            let world = state.view(session);
            let found = world.visible(&session.caller, repo);
            Ok(found.and_then(|repo| page(world, session, repo, listing, after)))
        });
        part(repo, result.await?)
    }

    async fn probe(&self, repo: &RepoName, probe: &Probe) -> Result<Probed, PortError> {
        let result = self.graphql(|state, session| {
            let world = state.view(session);
            Ok(world.visible(&session.caller, repo).and_then(|repo| probed(state, session, repo, probe)))
        });
        part(repo, result.await?)
    }

    async fn permission(&self, repo: &RepoName, login: &str) -> Result<Permission, PortError> {
        let path = format!("/repos/{repo}/collaborators/{login}/permission");
        let answer = self.call(Op::Permission, "GET", path, |state, session| {
            state.view(session).permission(&session.caller, repo, login).map(|(_, permission)| permission)
        });
        match answer.await {
            Err(PortError::Missing { .. }) => Ok(Permission::None),
            other => other,
        }
    }

    async fn run(&self, repo: &RepoName, id: u64) -> Result<RunState, PortError> {
        let path = format!("/repos/{repo}/actions/runs/{id}");
        let answer = self.call(Op::GetRun, "GET", path, |state, session| {
            let (repo, run) = state.view(session).run(&session.caller, repo, id)?;
            let concluded = run.status == "completed";
            Ok(RunState::Found {
                attempt: run.attempt,
                conclusion: concluded.then(|| run.conclusion.clone().unwrap_or_else(|| "unknown".to_owned())),
                updated_at: run.updated_at,
                started_at: Some(run.run_started_at),
                url: repo.run_url(&state.web, run),
            })
        });
        match answer.await {
            Err(PortError::Missing { .. }) => Ok(RunState::Missing),
            other => other,
        }
    }

    async fn create_label(&self, repo: &RepoName, label: &Label, color: &str) -> Result<Label, PortError> {
        self.call(Op::CreateLabel, "POST", format!("/repos/{repo}/labels"), |state, session| {
            state
                .create_label(session, repo, &label.name, Some(color), Some(&label.description))
                .map(|made| rest_label(&made))
        })
        .await
    }

    async fn label(&self, repo: &RepoName, name: &str) -> Result<Option<Label>, PortError> {
        let answer = self.call(Op::GetLabel, "GET", format!("/repos/{repo}/labels/{name}"), |state, session| {
            let found = state.view(session).label(&session.caller, repo, name)?;
            Ok(rest_label(found))
        });
        match answer.await {
            Err(PortError::Missing { .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    async fn describe_label(&self, repo: &RepoName, name: &str, description: &str) -> Result<(), PortError> {
        self.call(Op::UpdateLabel, "PATCH", format!("/repos/{repo}/labels/{name}"), |state, session| {
            state.update_label(session, repo, name, None, None, Some(description)).map(drop)
        })
        .await
    }

    async fn create_commit(&self, repo: &RepoName, commit: &NewCommit) -> Result<String, PortError> {
        self.call(Op::CreateCommit, "POST", format!("/repos/{repo}/git/commits"), |state, session| {
            state.create_commit(session, repo, commit).map(|row| row.oid)
        })
        .await
    }

    async fn create_ref(&self, repo: &RepoName, name: &str, oid: &str) -> Result<(), PortError> {
        self.call(Op::CreateRef, "POST", format!("/repos/{repo}/git/refs"), |state, session| {
            state.create_ref(session, repo, name, oid)
        })
        .await
    }

    async fn forward_ref(&self, repo: &RepoName, name: &str, oid: &str) -> Result<(), PortError> {
        self.call(Op::UpdateRef, "PATCH", format!("/repos/{repo}/git/{name}"), |state, session| {
            state.update_ref(session, repo, name, oid, false)
        })
        .await
    }

    async fn delete(&self, deletion: &Deletion) -> Result<(), PortError> {
        let is_empty = match deletion {
            Deletion::Labels(ids) => ids.is_empty(),
            Deletion::Refs { refs, .. } => refs.is_empty(),
        };
        if is_empty {
            return Ok(());
        }
        let results = self.call(Op::Mutation, "POST", "/graphql".to_owned(), |state, session| {
            Ok(match deletion {
                Deletion::Labels(ids) => ids.iter().map(|id| state.delete_label_by_id(session, id)).collect::<Vec<_>>(),
                Deletion::Refs { repository, refs } => refs
                    .iter()
                    .map(|(name, oid)| {
                        let before = Some(oid.clone());
                        let update =
                            RefUpdate { name: name.clone(), before, after: NO_OBJECT.to_owned(), force: false };
                        state.update_refs(session, repository, &[update])
                    })
                    .collect(),
            })
        });
        let refused = results.await?.into_iter().filter_map(Result::err).find(ApiError::is_forbidden);
        let request = || "POST /graphql".to_owned();
        refused.map_or(Ok(()), |error| {
            Err(PortError::Denied { status: 200, message: error.message(), request: request() })
        })
    }

    async fn create_check_run(&self, repo: &RepoName, check: &NewCheckRun) -> Result<CheckRun, PortError> {
        self.call(Op::CreateCheckRun, "POST", format!("/repos/{repo}/check-runs"), |state, session| {
            let words = CheckWords { external_id: Some(check.external_id.clone()), ..words_of(&check.face) };
            state.create_check_run(session, repo, &check.name, &check.commit, words).map(|row| row.seen())
        })
        .await
    }

    async fn check_runs(&self, repo: &RepoName, commit: &str, name: &str, page: u32) -> Result<CheckPage, PortError> {
        let path = format!("/repos/{repo}/commits/{commit}/check-runs");
        self.call(Op::ListCheckRuns, "GET", path, |state, session| {
            let found = state.view(session).with_checks(&session.caller, repo)?;
            if !found.knows_commit(commit) {
                return Err(no_commit(commit));
            }
            let mut rows = state.listed_checks(found, commit);
            rows.retain(|row| row.name == name);
            let before = usize::try_from(page).unwrap_or(usize::MAX).saturating_sub(1).saturating_mul(CHECK_PAGE);
            let runs: Vec<_> = rows.iter().rev().skip(before).take(CHECK_PAGE).map(|row| row.seen()).collect();
            Ok(CheckPage { more: runs.len() == CHECK_PAGE, runs })
        })
        .await
    }

    async fn update_check_run(&self, repo: &RepoName, id: u64, face: &CheckFace) -> Result<(), PortError> {
        self.call(Op::UpdateCheckRun, "PATCH", format!("/repos/{repo}/check-runs/{id}"), |state, session| {
            state.update_check_run(session, repo, id, words_of(face)).map(drop)
        })
        .await
    }

    async fn add_labels(&self, repo: &RepoName, number: u64, names: &[String]) -> Result<(), PortError> {
        self.call(Op::AddLabels, "POST", format!("/repos/{repo}/issues/{number}/labels"), |state, session| {
            state.add_labels(session, repo, number, names).map(drop)
        })
        .await
    }

    async fn remove_label(&self, repo: &RepoName, number: u64, name: &str) -> Result<(), PortError> {
        let path = format!("/repos/{repo}/issues/{number}/labels/{name}");
        let answer = self.call(Op::RemoveLabel, "DELETE", path, |state, session| {
            state.take_label_off(session, repo, number, name).map(drop)
        });
        match answer.await {
            Err(PortError::Missing { status: 404, .. }) => Ok(()),
            other => other,
        }
    }

    async fn update_comment(&self, repo: &RepoName, id: u64, body: &str) -> Result<(), PortError> {
        self.call(Op::UpdateComment, "PATCH", format!("/repos/{repo}/issues/comments/{id}"), |state, session| {
            state.update_comment(session, repo, id, body).map(drop)
        })
        .await
    }

    async fn create_comment(&self, repo: &RepoName, number: u64, body: &str) -> Result<u64, PortError> {
        self.call(Op::CreateComment, "POST", format!("/repos/{repo}/issues/{number}/comments"), |state, session| {
            state.create_comment(session, repo, number, body).map(|row| row.id)
        })
        .await
    }

    async fn react(&self, repo: &RepoName, to: ReactTo, content: &str) -> Result<(), PortError> {
        let (op, path) = match to {
            ReactTo::Issue(number) => (Op::ReactIssue, format!("/repos/{repo}/issues/{number}/reactions")),
            ReactTo::Comment(id) => (Op::ReactComment, format!("/repos/{repo}/issues/comments/{id}/reactions")),
        };
        self.call(op, "POST", path, |state, session| state.react(session, repo, to, content).map(drop)).await
    }
}

/// An answer of GraphQL of which one part alone was asked: HTTP says 200, and the part says why it is not there.
fn part<T>(repo: &RepoName, result: Result<T, ApiError>) -> Result<T, PortError> {
    let request = "POST /graphql".to_owned();
    result.map_err(|error| match error {
        ApiError::NotFound => PortError::Missing { status: 200, message: no_repository(repo), request },
        other => PortError::Denied { status: 200, message: other.message(), request },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Grants, ItemSpec, Planned, TokenSpec};

    const REPO: &str = "acme/app";

    fn state() -> State {
        let mut state = State::new("2026-11-30T12:00:00Z".parse().unwrap());
        state.add_repo(REPO, 42);
        state.open_issue(REPO, ItemSpec::new("ada", "It fails").number(731).labels(&["security"]));
        state.open_issue(REPO, ItemSpec::new("ada", "Repair it").number(732).pull_request("abc"));
        state.add_token(
            "full",
            TokenSpec::built_in(REPO, "issues: write, actions: read, checks: write".parse().unwrap()),
        );
        state.add_token("poor", TokenSpec::built_in(REPO, "contents: read".parse().unwrap()));
        state.add_token("pulls", TokenSpec::built_in(REPO, "pull-requests: write".parse().unwrap()));
        state.add_token("ada", TokenSpec::personal("ada", "write-all".parse().unwrap()));
        state
    }

    fn name() -> RepoName {
        RepoName::parse(REPO).unwrap()
    }

    fn claim(name: &str) -> Label {
        Label { name: name.to_owned(), description: "first".to_owned(), node_id: None, created_at: None }
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    fn faces(state: State) -> (Rc<RefCell<State>>, impl Fn(&str) -> InProcess) {
        let state = Rc::new(RefCell::new(state));
        let shared = Rc::clone(&state);
        (state, move |token: &str| InProcess::new(Rc::clone(&shared), token))
    }

    fn query(labels: &[&str]) -> FactsQuery {
        let labels = labels.iter().map(|&l| l.to_owned()).collect();
        FactsQuery {
            repo: name(),
            number: Some(731),
            claims: Probe::Labels(labels),
            window: Some(Listing::Labels),
            written: None,
        }
    }

    #[test]
    fn creating_a_label_decides_a_race_whatever_its_letter_case() {
        let (state, face) = faces(state());
        run(async {
            face("full").create_label(&name(), &claim("rg:a:1"), "ededed").await.unwrap();
            let again = face("full").create_label(&name(), &claim("RG:A:1"), "ededed").await;
            assert!(matches!(again, Err(PortError::Exists { .. })), "{again:?}");
            // GraphQL looks a name up by its exact letters, REST does not.
            let exact = face("full")
                .probe(&name(), &Probe::Labels(vec!["RG:A:1".to_owned(), "rg:a:1".to_owned()]))
                .await
                .unwrap();
            assert!(matches!(exact, Probed::Labels(found) if found.keys().eq(["rg:a:1"])));
            assert!(face("full").label(&name(), "RG:A:1").await.unwrap().is_some());
        });
        let state = state.borrow();
        let write = &state.writes()[0];
        assert_eq!(
            (write.login.as_str(), write.op, write.what.as_str()),
            ("github-actions[bot]", Op::CreateLabel, "rg:a:1")
        );
        assert_eq!((state.writes().len(), state.count(Op::CreateLabel)), (1, 2));
    }

    #[test]
    fn a_token_writes_what_it_was_granted_and_its_person_may() {
        let mut start = state();
        start.grant(REPO, "bob", Permission::Write);
        start.add_token("bob", TokenSpec::personal("bob", "write-all".parse().unwrap()));
        let (_, face) = faces(start);
        let cases = [
            ("full", 731, true),
            ("full", 732, false),
            ("pulls", 731, false),
            ("pulls", 732, true),
            ("poor", 731, false),
            ("ada", 731, false),
            ("bob", 731, true),
        ];
        for (token, number, may) in cases {
            let done = run(face(token).add_labels(&name(), number, &["security".to_owned()]));
            assert_eq!(done.is_ok(), may, "{token} on {number}: {done:?}");
        }
        // A label that the repository lacks is created on the way, which belongs to issues.
        let made = run(face("pulls").add_labels(&name(), 732, &["new".to_owned()]));
        assert!(matches!(made, Err(PortError::Denied { status: 403, .. })), "{made:?}");
        let unknown = run(face("nobody").label(&name(), "security")).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            r#"GitHub answered 401 "Bad credentials" to GET /repos/acme/app/labels/security"#
        );
        // Whoever may only read still comments.
        run(face("ada").create_comment(&name(), 731, "me too")).unwrap();
    }

    #[test]
    fn a_private_repository_hides_from_tokens_that_are_not_for_it() {
        let mut start = state();
        start.make_private(REPO);
        start.add_repo("acme/other", 43);
        start.add_token("other", TokenSpec::built_in("acme/other", Grants::all()));
        let (_, face) = faces(start);
        let facts = run(face("other").facts(&query(&["security"]))).unwrap();
        let why = "Could not resolve to a Repository with the name 'acme/app'.";
        assert_eq!(facts.repository, Fact::Unknown(why.to_owned()));
        assert_eq!(facts.resource, Fact::Unknown(why.to_owned()));
        assert_eq!(facts.policy, PolicyRead::Unreadable(why.to_owned()));
        assert_eq!(run(face("other").label(&name(), "security")), Ok(None));
        // One that is for it and lacks a permission knows of it all the same.
        let facts = run(face("poor").facts(&query(&["security"]))).unwrap();
        assert!(facts.repository.known().is_some());
        assert_eq!(facts.policy, PolicyRead::Absent);
        let refused = "Resource not accessible by integration".to_owned();
        assert_eq!(facts.resource, Fact::Unknown(refused.clone()));
        assert_eq!(facts.claims, Fact::Unknown(refused.clone()));
        let facts = run(face("full").facts(&query(&["security"]))).unwrap();
        assert_eq!(facts.policy, PolicyRead::Unreadable(refused));
        assert!(matches!(facts.claims.known(), Some(Probed::Labels(found)) if found.len() == 1));
    }

    #[test]
    fn facts_show_the_newest_comments_and_label_events_oldest_first() {
        let mut start = state();
        for i in 0..120 {
            start.comment(REPO, 731, "claude[bot]", &format!("comment {i}")).unwrap();
        }
        let last = start.comments(REPO, 731).last().map(|c| c.id).unwrap();
        assert!(start.edit_comment(REPO, last, "claude[bot]", "edited"));
        assert!(start.unlabel_item(REPO, 731, "security", "bob"));
        start.close(REPO, 731);
        let (_, face) = faces(start);
        let facts = run(face("full").facts(&query(&[]))).unwrap();
        let Fact::Known(Some(item)) = facts.resource else { panic!("{:?}", facts.resource) };
        assert_eq!((item.comment_total, item.comments.len(), item.open), (120, COMMENTS, false));
        assert_eq!((item.comments[0].body.as_str(), item.comments[49].body.as_str()), ("comment 70", "edited"));
        let author = item.comments[49].author.clone().unwrap();
        assert_eq!((author.login.as_str(), author.id), ("claude", Some(209_825_114)));
        assert_eq!(item.comments[49].editor.as_deref(), Some("claude"));
        assert_eq!(item.comments[48].editor, None);
        assert_eq!(item.labels, Vec::<String>::new());
        let events: Vec<_> = item.label_events.iter().map(|e| (e.added, e.label.as_str())).collect();
        assert_eq!(events, [(true, "security"), (false, "security")]);
        assert_eq!(facts.viewer, Fact::Known("github-actions[bot]".to_owned()));
    }

    #[test]
    fn labels_are_paged_newest_first_and_a_deleted_one_loses_no_other() {
        let mut start = state();
        for i in 0..250 {
            start.now += TimeDelta::seconds(i % 2);
            assert!(start.add_label(REPO, &format!("l{i}"), ""));
        }
        let (state, face) = faces(start);
        let first = run(face("full").facts(&query(&[]))).unwrap().window;
        let labels = |page: WindowPage| match page {
            WindowPage::Labels(page) => page,
            WindowPage::Refs(_) => panic!("no labels"),
        };
        let after =
            |cursor: &str| labels(run(face("full").window_page(&name(), Listing::Labels, Some(cursor))).unwrap());
        let first = labels(first.known().unwrap().clone());
        assert_eq!((first.labels.len(), first.labels[0].name.as_str()), (LABEL_PAGE, "l249"));
        let next = first.next.unwrap();
        // The label at the cursor goes; the page after it is the same.
        assert!(state.borrow_mut().remove_label(REPO, "l150"));
        let second = after(&next);
        assert_eq!(second.labels[0].name, "l149");
        let third = after(&second.next.unwrap());
        assert_eq!(
            (third.labels.len(), third.labels.last().unwrap().name.as_str(), third.next),
            (51, "security", None)
        );
    }

    #[test]
    fn faults_strike_before_or_after_the_effect() {
        let exists = |state: &Rc<RefCell<State>>| state.borrow().label(REPO, "x").is_some();
        let cases: [(Fault, bool, fn(&PortError) -> bool); 6] = [
            (Fault::Lost { effect: true }, true, |e| matches!(e, PortError::Ambiguous { .. })),
            (Fault::Lost { effect: false }, false, |e| matches!(e, PortError::Ambiguous { .. })),
            (Fault::Server { status: 502, effect: true }, true, |e| matches!(e, PortError::Ambiguous { .. })),
            (Fault::Server { status: 500, effect: false }, false, |e| matches!(e, PortError::Ambiguous { .. })),
            (Fault::Denied, false, |e| matches!(e, PortError::Denied { status: 403, .. })),
            (
                Fault::RateLimited { status: 429, retry_after: Some(30), reset_in: None },
                false,
                |e| matches!(e, PortError::RateLimited { retry_at, .. } if retry_at.to_rfc3339() == "2026-11-30T12:00:30+00:00"),
            ),
        ];
        for (fault, effect, expected) in cases {
            let mut start = state();
            start.plan(Planned::next(Op::CreateLabel, fault.clone()).after(1));
            let (state, face) = faces(start);
            run(face("full").create_label(&name(), &claim("before"), "ededed")).unwrap();
            let error = run(face("full").create_label(&name(), &claim("x"), "ededed")).unwrap_err();
            assert!(expected(&error), "{fault:?}: {error}");
            assert_eq!(exists(&state), effect, "{fault:?}");
            run(face("full").create_label(&name(), &claim("after"), "ededed")).unwrap();
        }
    }

    #[test]
    fn a_stale_read_sees_the_world_of_some_writes_ago() {
        let (_, face) = faces(state());
        for n in 1..4 {
            run(face("full").create_label(&name(), &claim(&format!("x{n}")), "ededed")).unwrap();
        }
        let seen = |writes: usize| {
            let face = face("full").with_hook(Rc::new(move |_| Box::pin(future::ready(Some(Fault::Stale(writes))))));
            (1..4).filter(|n| run(face.label(&name(), &format!("x{n}"))).unwrap().is_some()).count()
        };
        assert_eq!([seen(0), seen(1), seen(2), seen(3), seen(99)], [3, 2, 1, 0, 0]);
    }

    #[test]
    fn a_crash_never_returns_and_the_hook_sees_every_call() {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let log = Rc::clone(&seen);
        let (state, face) = faces(state());
        let face = face("full").with_hook(Rc::new(move |call| {
            log.borrow_mut().push(call.to_string());
            let crash = (call.op == Op::CreateLabel).then_some(Fault::Crash { effect: true });
            Box::pin(future::ready(crash))
        }));
        run(async {
            face.run(&name(), 7).await.unwrap();
            let (repo, label) = (name(), claim("x"));
            let created = std::pin::pin!(face.create_label(&repo, &label, "ededed"));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(created.poll(&mut context).is_pending());
        });
        assert!(state.borrow().label(REPO, "x").is_some());
        assert_eq!(*seen.borrow(), ["GET /repos/acme/app/actions/runs/7", "POST /repos/acme/app/labels"]);
    }

    #[test]
    fn runs_and_permissions_are_told_as_the_endpoints_do() {
        let mut start = state();
        start.add_run(REPO, 9, "issues", "ada");
        start.grant(REPO, "ada", Permission::Write);
        let (state, face) = faces(start);
        let found = |conclusion: Option<&str>| {
            let RunState::Found { attempt, conclusion: was, .. } = run(face("full").run(&name(), 9)).unwrap() else {
                panic!("no run")
            };
            assert_eq!(was.as_deref(), conclusion);
            attempt
        };
        assert_eq!(found(None), 1);
        assert!(state.borrow_mut().finish_run(REPO, 9, "failure"));
        assert_eq!(found(Some("failure")), 1);
        assert_eq!(state.borrow_mut().rerun(REPO, 9, "ada"), Some(2));
        assert_eq!(found(None), 2);
        let permission = |login: &str| run(face("full").permission(&name(), login)).unwrap();
        state.borrow_mut().add_user("eve", crate::core::identity::ActorKind::User);
        assert_eq!(permission("ADA"), Permission::Write);
        assert_eq!(permission("eve"), Permission::Read);
        assert_eq!(permission("claude[bot]"), Permission::None);
        assert_eq!(permission("stranger"), Permission::None);
    }

    #[test]
    fn limits_are_those_of_github() {
        let (state, face) = faces(state());
        let face = face("full");
        let create = |label: Label| run(face.create_label(&name(), &label, "ededed"));
        create(claim(&"é".repeat(50))).unwrap();
        let refused = create(claim(&"é".repeat(51))).unwrap_err().to_string();
        assert!(refused.contains("name is too long (maximum is 50 characters)"), "{refused}");
        let long = Label { description: "x".repeat(101), ..claim("d") };
        assert!(matches!(create(long), Err(PortError::Denied { status: 422, .. })));
        run(face.create_comment(&name(), 731, &"é".repeat(65_536))).unwrap();
        let long = run(face.create_comment(&name(), 731, &"é".repeat(65_537)));
        assert!(matches!(long, Err(PortError::Denied { status: 422, .. })), "{long:?}");
        let check = |length: usize| {
            let at = state.borrow().now;
            let shows = CheckFace {
                conclusion: None,
                started_at: at,
                completed_at: None,
                details_url: "https://github.com/acme/app".to_owned(),
                title: String::new(),
                summary: String::new(),
                text: "é".repeat(length),
            };
            let commit = state.borrow().repo(REPO).unwrap().head_sha.clone().unwrap();
            let check = NewCheckRun { name: "a".to_owned(), commit, external_id: String::new(), face: shows };
            run(face.create_check_run(&name(), &check))
        };
        check(65_535).unwrap();
        assert!(matches!(check(65_536), Err(PortError::Denied { status: 422, .. })));
        let names: Vec<_> = (0..99).map(|i| format!("l{i}")).collect();
        run(face.add_labels(&name(), 731, &names)).unwrap();
        let full = run(face.add_labels(&name(), 731, &["one-more".to_owned()]));
        assert!(matches!(full, Err(PortError::Denied { status: 422, .. })), "{full:?}");
        assert_eq!(state.borrow().item_labels(REPO, 731).len(), 100);
        assert!(state.borrow().label(REPO, "one-more").is_none(), "a refused write leaves nothing behind");
        assert_eq!(state.borrow().item(REPO, 731).unwrap().label_events.len(), 100);
        // Deleting a repository label takes it off the item.
        assert!(state.borrow_mut().remove_label(REPO, "l5"));
        assert_eq!(state.borrow().item_labels(REPO, 731).len(), 99);
    }

    #[test]
    fn the_primary_limit_is_used_up_and_comes_back() {
        let (state, face) = faces(state());
        state.borrow_mut().exhaust("full");
        let error = run(face("full").label(&name(), "security")).unwrap_err();
        assert!(
            matches!(error, PortError::RateLimited { retry_at, .. } if retry_at.to_rfc3339().contains("T13:00:00"))
        );
        run(face("poor").label(&name(), "security")).unwrap();
        state.borrow_mut().now += TimeDelta::hours(1);
        run(face("full").label(&name(), "security")).unwrap();
        state.borrow_mut().content_per_minute = Some(1);
        run(face("full").create_comment(&name(), 731, "one")).unwrap();
        let error = run(face("full").create_comment(&name(), 731, "two")).unwrap_err();
        assert!(matches!(error, PortError::RateLimited { .. }), "{error}");
    }

    #[test]
    fn reacting_twice_is_one_reaction() {
        let (state, face) = faces(state());
        for _ in 0..2 {
            run(face("full").react(&name(), ReactTo::Issue(731), "confused")).unwrap();
        }
        assert_eq!(state.borrow().reactions(REPO, ReactTo::Issue(731)).len(), 1);
        let odd = run(face("full").react(&name(), ReactTo::Issue(731), "shrug"));
        assert!(matches!(odd, Err(PortError::Denied { status: 422, .. })), "{odd:?}");
    }
}
