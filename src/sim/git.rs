//! Commits and refs: as much of git as claims need.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};

use super::error::ApiError;
use super::state::{Caller, Session, State};
use super::world::{Access, Repository, Scope, World, node_id};
use crate::core::facts::Permission;
use crate::ports::{GitRef, NewCommit, RepoName};

/// GitHub's words when a ref of the name exists. It gives no code with them.
pub(super) const REF_EXISTS: &str = "Reference already exists";
/// GitHub's words when a ref that is to be changed does not exist.
const NO_REF: &str = "Reference does not exist";
/// The object id that stands for no object.
pub(super) const NO_OBJECT: &str = "0000000000000000000000000000000000000000";

/// A change of a ref among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefUpdate {
    /// Its full name.
    pub name: String,
    /// What it must point to before, if that matters; forty zeros for no such ref.
    pub before: Option<String>,
    /// What it is to point to; forty zeros to delete it.
    pub after: String,
    /// Whether it may go anywhere.
    pub force: bool,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRow {
    /// Its id.
    pub oid: String,
    /// Its message.
    pub message: String,
    /// The id of its tree.
    pub tree: String,
    /// The ids of its parents.
    pub parents: Vec<String>,
    /// Author's and committer's time.
    pub at: DateTime<Utc>,
}

/// An object id for some content.
fn oid(kind: &str, content: &str) -> String {
    let hash = Sha256::digest(format!("{kind}\n{content}").as_bytes());
    let half_bytes = hash.iter().take(20).flat_map(|byte| [byte >> 4, byte & 0xf]);
    half_bytes.filter_map(|half| char::from_digit(u32::from(half), 16)).collect()
}

impl Repository {
    /// The tip of the default branch as a commit; `None` in an empty repository.
    fn tip(&self) -> Option<CommitRow> {
        let head = self.head_sha.clone()?;
        Some(CommitRow {
            tree: oid("tree", &head),
            oid: head,
            message: "Work".to_owned(),
            parents: Vec::new(),
            at: self.created_at,
        })
    }

    /// A commit by id.
    pub fn commit(&self, oid: &str) -> Option<CommitRow> {
        self.commits.get(oid).cloned().or_else(|| self.tip().filter(|tip| tip.oid == oid))
    }

    /// The tree of the default branch.
    pub fn default_tree(&self) -> Option<String> {
        self.tip().map(|tip| tip.tree)
    }

    /// What a ref points to, by full name.
    pub fn target(&self, name: &str) -> Option<&str> {
        if name.strip_prefix("refs/heads/") == Some(&self.default_branch) {
            return self.head_sha.as_deref();
        }
        self.refs.get(name).map(String::as_str)
    }

    /// The refs whose full name starts with this, by name.
    pub fn refs_below(&self, prefix: &str) -> Vec<(String, String)> {
        let own = format!("refs/heads/{}", self.default_branch);
        let tip = self.head_sha.iter().map(|oid| (own.clone(), oid.clone()));
        let mut all: Vec<_> = tip.chain(self.refs.iter().map(|(name, oid)| (name.clone(), oid.clone()))).collect();
        all.retain(|(name, _)| name.starts_with(prefix));
        all.sort();
        all
    }

    /// A ref as the client sees it.
    pub fn git_ref(&self, name: &str) -> Option<GitRef> {
        let oid = self.target(name)?;
        let commit = self.commit(oid);
        Some(GitRef {
            name: name.to_owned(),
            oid: oid.to_owned(),
            message: commit.as_ref().map(|commit| commit.message.clone()),
            committed_at: commit.map(|commit| commit.at),
        })
    }

    fn descends(&self, from: &str, of: &str) -> bool {
        let (mut left, mut seen) = (vec![from.to_owned()], BTreeSet::new());
        while let Some(oid) = left.pop() {
            if oid == of {
                return true;
            }
            if seen.insert(oid.clone()) {
                left.extend(self.commit(&oid).map(|commit| commit.parents).unwrap_or_default());
            }
        }
        false
    }
}

impl World {
    /// A repository whose commits and refs the caller may read.
    pub fn with_contents<'a>(&'a self, caller: &Caller, repo: &RepoName) -> Result<&'a Repository, ApiError> {
        let found = self.visible(caller, repo)?;
        self.allow(caller, found, Scope::Contents, Access::Read, Permission::Read)?;
        Ok(found)
    }
}

impl State {
    /// Builds a commit that no request made.
    pub fn add_commit(&mut self, full: &str, oid: &str, parent: Option<&str>, message: &str) {
        let at = self.now;
        self.edit_repo(full, |repo| {
            let row = CommitRow {
                oid: oid.to_owned(),
                message: message.to_owned(),
                tree: repo.default_tree().unwrap_or_default(),
                parents: parent.map(str::to_owned).into_iter().collect(),
                at,
            };
            repo.commits.insert(oid.to_owned(), row);
        });
    }

    /// Builds a ref, or moves it, whatever it pointed to.
    pub fn set_ref(&mut self, full: &str, name: &str, oid: &str) {
        self.edit_repo(full, |repo| repo.refs.insert(name.to_owned(), oid.to_owned()));
    }

    /// Takes a ref away; whether it was there.
    pub fn remove_ref(&mut self, full: &str, name: &str) -> bool {
        self.edit_repo(full, |repo| repo.refs.remove(name).is_some())
    }

    /// The refs whose full name starts with this, by name.
    pub fn refs(&self, full: &str, prefix: &str) -> Vec<GitRef> {
        let Some(repo) = self.repo(full) else { return Vec::new() };
        repo.refs_below(prefix).iter().filter_map(|(name, _)| repo.git_ref(name)).collect()
    }

    /// Creates a commit.
    pub fn create_commit(
        &mut self,
        session: &Session,
        repo: &RepoName,
        commit: &NewCommit,
    ) -> Result<CommitRow, ApiError> {
        let full = self.writable(session, repo, Scope::Contents)?;
        self.commit(session, &full, None, &commit.message, |repo, _| {
            let Some(tip) = repo.tip() else { return Err(ApiError::EmptyRepository) };
            let trees = repo.commits.values().map(|row| &row.tree);
            if commit.tree != tip.tree && !trees.into_iter().any(|tree| *tree == commit.tree) {
                return Err(ApiError::Unprocessable("Tree SHA does not exist".to_owned()));
            }
            if commit.parent.as_ref().is_some_and(|parent| repo.commit(parent).is_none()) {
                return Err(ApiError::Unprocessable("Parent SHA does not exist or is not a commit object".to_owned()));
            }
            let content = format!("{:?} {} {:?} {}", commit.parent, commit.tree, commit.at, commit.message);
            let row = CommitRow {
                oid: oid("commit", &content),
                message: commit.message.clone(),
                tree: commit.tree.clone(),
                parents: commit.parent.iter().cloned().collect(),
                at: commit.at,
            };
            repo.commits.insert(row.oid.clone(), row.clone());
            Ok(row)
        })
    }

    /// Creates a ref.
    pub fn create_ref(&mut self, session: &Session, repo: &RepoName, name: &str, oid: &str) -> Result<(), ApiError> {
        let full = self.writable(session, repo, Scope::Contents)?;
        self.commit(session, &full, None, name, |repo, _| {
            if repo.head_sha.is_none() {
                return Err(ApiError::EmptyRepository);
            }
            if !name.starts_with("refs/") || name.matches('/').count() < 2 || name.ends_with('/') {
                let message = "Reference name must start with 'refs/' and contain at least two slashes.";
                return Err(ApiError::Unprocessable(message.to_owned()));
            }
            if repo.target(name).is_some() {
                return Err(ApiError::Unprocessable(REF_EXISTS.to_owned()));
            }
            if repo.commit(oid).is_none() {
                return Err(ApiError::Unprocessable("Object does not exist".to_owned()));
            }
            repo.refs.insert(name.to_owned(), oid.to_owned());
            Ok(())
        })
    }

    /// Changes refs of the repository with this node id: all of them, or none.
    pub fn update_refs(&mut self, session: &Session, id: &str, updates: &[RefUpdate]) -> Result<(), ApiError> {
        let found = self.world().repositories.values().find(|repo| node_id("R", repo.id) == id);
        let found = found.ok_or(ApiError::NotFound)?;
        let repo = RepoName { owner: found.owner.clone(), name: found.name.clone() };
        let full = self.writable(session, &repo, Scope::Contents)?;
        let names: Vec<_> = updates.iter().map(|update| update.name.as_str()).collect();
        self.commit(session, &full, None, &names.join(", "), |repo, _| {
            for RefUpdate { name, before, after, force } in updates {
                let now = repo.target(name).map(str::to_owned);
                let expected = before.as_deref().is_none_or(|before| before == now.as_deref().unwrap_or(NO_OBJECT));
                if !expected {
                    return Err(ApiError::Unprocessable(format!("Reference {name} is not at the expected object")));
                }
                if after == NO_OBJECT {
                    repo.refs.remove(name).ok_or_else(|| ApiError::Unprocessable(NO_REF.to_owned()))?;
                    continue;
                }
                if repo.commit(after).is_none() {
                    return Err(ApiError::Unprocessable("Object does not exist".to_owned()));
                }
                if !force && now.is_some_and(|now| !repo.descends(after, &now)) {
                    return Err(ApiError::Unprocessable("Update is not a fast forward".to_owned()));
                }
                repo.refs.insert(name.clone(), after.clone());
            }
            Ok(())
        })
    }

    /// Moves a ref.
    pub fn update_ref(
        &mut self,
        session: &Session,
        repo: &RepoName,
        name: &str,
        oid: &str,
        force: bool,
    ) -> Result<(), ApiError> {
        let full = self.writable(session, repo, Scope::Contents)?;
        self.commit(session, &full, None, name, |repo, _| {
            let Some(before) = repo.target(name) else { return Err(ApiError::Unprocessable(NO_REF.to_owned())) };
            if repo.commit(oid).is_none() {
                return Err(ApiError::Unprocessable("Object does not exist".to_owned()));
            }
            if !force && !repo.descends(oid, before) {
                return Err(ApiError::Unprocessable("Update is not a fast forward".to_owned()));
            }
            repo.refs.insert(name.to_owned(), oid.to_owned());
            Ok(())
        })
    }
}
