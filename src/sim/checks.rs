//! Check runs: any App may make any number of one name, and only the App that made one may change it.

use chrono::{DateTime, Utc};

use super::error::{ApiError, Code};
use super::state::{Caller, Session, State, TokenKind};
use super::world::{Access, Repository, Scope, World};
use crate::core::facts::Permission;
use crate::core::identity::bare_login;
use crate::ports::{CheckRun, RepoName};

/// The longest summary and the longest text, in characters.
const MAX_OUTPUT: usize = 65_535;
/// The words for how a check run ended that its maker may use.
const CONCLUSIONS: [&str; 7] =
    ["action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out"];

/// What lists of check runs show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckLists {
    /// Everything.
    #[default]
    Whole,
    /// A check run shows in the lists of its commit from so many requests after its creation on: late, but in order.
    Late(usize),
    /// The same, but the newest shows at once: out of order.
    NewestFirst(usize),
}

/// A check run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRow {
    /// The id.
    pub id: u64,
    /// The login of the App that made it.
    pub app: String,
    /// The check suite that it is in: one for an App and a commit.
    pub suite: u64,
    /// The name.
    pub name: String,
    /// The commit.
    pub head_sha: String,
    /// Which request made it, counted from 1.
    pub made_at: usize,
    /// What its maker said of it.
    pub said: CheckWords,
}

/// What the maker of a check run says of it. In a change, what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckWords {
    /// What the maker knows it by.
    pub external_id: Option<String>,
    /// `queued`, `in_progress` or `completed`.
    pub status: Option<String>,
    /// How it ended.
    pub conclusion: Option<String>,
    /// When it began.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub completed_at: Option<DateTime<Utc>>,
    /// The page that it leads to.
    pub details_url: Option<String>,
    /// The heading.
    pub title: Option<String>,
    /// The summary.
    pub summary: Option<String>,
    /// The text.
    pub text: Option<String>,
}

impl CheckRow {
    /// The App's slug.
    pub fn slug(&self) -> &str {
        bare_login(&self.app)
    }

    /// As the client sees it.
    pub fn seen(&self) -> CheckRun {
        CheckRun {
            id: self.id,
            app: Some(self.slug().to_owned()),
            external_id: self.said.external_id.clone().unwrap_or_default(),
            text: self.said.text.clone().unwrap_or_default(),
        }
    }

    /// Its page.
    pub fn page(&self, web: &str, repo: &Repository) -> String {
        format!("{web}/{}/runs/{}", repo.full_name(), self.id)
    }

    fn say(&mut self, words: CheckWords, now: DateTime<Utc>) {
        let said = &mut self.said;
        let ended = words.conclusion.is_some() || words.status.as_deref() == Some("completed");
        let open = words.status.as_deref().is_some_and(|status| status != "completed");
        let set = |old: &mut Option<String>, new: Option<String>| *old = new.or_else(|| old.take());
        set(&mut said.external_id, words.external_id);
        set(&mut said.details_url, words.details_url);
        set(&mut said.title, words.title);
        set(&mut said.summary, words.summary);
        set(&mut said.text, words.text);
        set(&mut said.status, words.status);
        set(&mut said.conclusion, words.conclusion);
        said.started_at = words.started_at.or(said.started_at).or(Some(now));
        if ended {
            said.status = Some("completed".to_owned());
            said.completed_at = words.completed_at.or(Some(now));
        } else if open {
            (said.conclusion, said.completed_at) = (None, None);
        }
        said.status.get_or_insert_with(|| "queued".to_owned());
    }
}

impl CheckWords {
    fn check(&self) -> Result<(), ApiError> {
        let invalid = |field: &'static str| Err(ApiError::field("CheckRun", Code::Invalid, field));
        let long = |text: &Option<String>| text.as_ref().is_some_and(|text| text.chars().count() > MAX_OUTPUT);
        if self.conclusion.as_deref().is_some_and(|word| !CONCLUSIONS.contains(&word)) {
            return invalid("conclusion");
        }
        if self.status.as_deref().is_some_and(|word| !["queued", "in_progress", "completed"].contains(&word)) {
            return invalid("status");
        }
        if self.status.as_deref() == Some("completed") && self.conclusion.is_none() {
            return Err(ApiError::field("CheckRun", Code::MissingField, "conclusion"));
        }
        if long(&self.text) {
            return invalid("text");
        }
        if long(&self.summary) { invalid("summary") } else { Ok(()) }
    }
}

/// GitHub's refusal where there is no such commit.
pub(super) fn no_commit(commit: &str) -> ApiError {
    ApiError::Unprocessable(format!("No commit found for SHA: {commit}").trim_end().to_owned())
}

impl Repository {
    /// Whether there is a commit of this id, which may have been the head of a pull request or of a run.
    pub fn knows_commit(&self, oid: &str) -> bool {
        self.commit(oid).is_some()
            || self.items.values().any(|item| item.head_sha.as_deref() == Some(oid))
            || self.runs.values().any(|run| run.head_sha == oid)
            || self.checks.values().any(|check| check.head_sha == oid)
    }
}

impl World {
    /// A repository whose check runs the caller may read.
    pub fn with_checks<'a>(&'a self, caller: &Caller, repo: &RepoName) -> Result<&'a Repository, ApiError> {
        let found = self.visible(caller, repo)?;
        self.allow(caller, found, Scope::Checks, Access::Read, Permission::Read)?;
        Ok(found)
    }
}

impl State {
    /// The check runs of a commit that lists show now, oldest first.
    pub fn listed_checks<'a>(&self, repo: &'a Repository, commit: &str) -> Vec<&'a CheckRow> {
        let mut rows: Vec<_> = repo.checks.values().filter(|row| row.head_sha == commit).collect();
        let newest = rows.last().map(|row| row.id);
        let requests = self.requests;
        rows.retain(|row| match self.check_lists {
            CheckLists::Whole => true,
            CheckLists::Late(by) => requests > row.made_at + by,
            CheckLists::NewestFirst(by) => requests > row.made_at + by || newest == Some(row.id),
        });
        rows
    }

    /// Every check run of a repository, oldest first.
    pub fn checks(&self, full: &str) -> Vec<&CheckRow> {
        self.repo(full).map(|repo| repo.checks.values().collect()).unwrap_or_default()
    }

    /// The App that may write check runs with this session's token: no person's token may.
    fn checks_writable(&self, session: &Session, repo: &RepoName) -> Result<String, ApiError> {
        let full = self.writable(session, repo, Scope::Checks)?;
        if session.caller.kind == TokenKind::Personal { Err(session.caller.refused()) } else { Ok(full) }
    }

    /// Creates a check run.
    pub fn create_check_run(
        &mut self,
        session: &Session,
        repo: &RepoName,
        name: &str,
        commit: &str,
        words: CheckWords,
    ) -> Result<CheckRow, ApiError> {
        let full = self.checks_writable(session, repo)?;
        words.check()?;
        let (now, app, made_at) = (self.stamp(), session.caller.login.clone(), self.requests);
        self.commit(session, &full, None, name, |repo, ids| {
            if !repo.knows_commit(commit) {
                return Err(no_commit(commit));
            }
            let same = repo.checks.values().find(|row| row.head_sha == commit && row.app == app);
            let suite = same.map_or_else(|| ids.fresh(), |row| row.suite);
            let mut row = CheckRow {
                id: ids.fresh(),
                app: app.clone(),
                suite,
                name: name.to_owned(),
                head_sha: commit.to_owned(),
                made_at,
                said: CheckWords::default(),
            };
            row.say(words, now);
            repo.checks.insert(row.id, row.clone());
            Ok(row)
        })
    }

    /// Changes a check run.
    pub fn update_check_run(
        &mut self,
        session: &Session,
        repo: &RepoName,
        id: u64,
        words: CheckWords,
    ) -> Result<CheckRow, ApiError> {
        let full = self.checks_writable(session, repo)?;
        words.check()?;
        let (now, app) = (self.stamp(), session.caller.login.clone());
        let refused = session.caller.refused();
        self.commit(session, &full, None, &id.to_string(), |repo, _| {
            let row = repo.checks.get_mut(&id).ok_or(ApiError::NotFound)?;
            if !row.app.eq_ignore_ascii_case(&app) {
                return Err(refused);
            }
            row.say(words, now);
            Ok(row.clone())
        })
    }
}
