//! The `ref` ledger: claim N of a key is the ref `refs/run-guard/DIGEST/N`, its record the message of the commit that the
//! ref points to.
//!
//! The server creates a ref only if there is none of that name, which is what arbitrates. The first commit of a claim is
//! the child of the last commit of the claim before it, and an outcome the child of the claim, so that every change of a
//! key stays in one chain of commits.

use std::cell::RefCell;

use crate::core::claim::{
    Claim, ClaimRead, LedgerKind, Record, Thing, commit_message, parse_commit_message, parse_ref_name, ref_name,
    ref_prefix,
};
use crate::core::facts::{Claims, Window, WindowClaim};
use crate::core::key::Key;
use crate::ports::{
    Created, Deletion, FoundRefs, GitHub, GitRef, Ledger, Listing, NewCommit, PortError, Probe, Probed, RepoName,
    WindowPage,
};

/// Claims as git refs.
#[derive(Debug)]
pub struct RefLedger<'a, G> {
    github: &'a G,
    /// The default branch's tree as last seen. Any tree of the repository would do.
    tree: RefCell<Option<String>>,
    /// The repository's node id as last seen.
    repository: RefCell<Option<String>>,
}

impl<'a, G: GitHub> RefLedger<'a, G> {
    /// The ledger over a GitHub.
    pub const fn new(github: &'a G) -> Self {
        Self { github, tree: RefCell::new(None), repository: RefCell::new(None) }
    }

    /// Makes the commit that says `record`, as a child of `parent`.
    async fn commit(
        &self,
        repo: &RepoName,
        key: &Key,
        number: u32,
        record: &Record,
        parent: Option<&Thing>,
    ) -> Result<String, PortError> {
        let known = self.tree.borrow().clone();
        let tree = match known {
            Some(tree) => tree,
            None => self.read_tree(repo, key, number).await?,
        };
        let commit = NewCommit {
            message: commit_message(key, number, record),
            tree,
            parent: parent.map(|thing| thing.0.clone()),
            at: record.state.changed_at().unwrap_or(record.opened_at),
        };
        self.github.create_commit(repo, &commit).await
    }

    async fn read_tree(&self, repo: &RepoName, key: &Key, number: u32) -> Result<String, PortError> {
        let probe = self.probe_one(key, number);
        let Probed::Refs(FoundRefs { tree: Some(tree), .. }) = self.github.probe(repo, &probe).await? else {
            return Err(PortError::Denied {
                status: 409,
                message: "the repository is empty, and a ref needs a commit".to_owned(),
                request: format!("the default branch of {repo}"),
            });
        };
        self.tree.replace(Some(tree.clone()));
        Ok(tree)
    }

    /// The claims of a key among refs.
    fn among(key: &Key, refs: &[GitRef]) -> Claims {
        let digest = key.digest();
        refs.iter()
            .filter_map(|found| {
                let (of, number) = parse_ref_name(&found.name)?;
                (of == digest).then(|| (number, read(number, Some(key), found)))
            })
            .collect()
    }
}

/// A ref as a claim: one whose commit holds no record, or one of another task, is there all the same.
fn read(number: u32, key: Option<&Key>, found: &GitRef) -> ClaimRead {
    let thing = Thing(found.oid.clone());
    let message = found.message.as_deref().ok_or("the ref points to no commit".to_owned());
    let parsed = message.and_then(|message| parse_commit_message(message).map_err(|bad| bad.to_string()));
    match parsed {
        Ok((task, record)) if key.is_none_or(|key| *key.task() == task) => {
            ClaimRead::Readable(Claim { number, thing, record })
        }
        Ok((task, _)) => ClaimRead::Unreadable { number, thing, why: format!("its commit is about the task {task}") },
        Err(why) => ClaimRead::Unreadable { number, thing, why },
    }
}

impl<G: GitHub> Ledger for RefLedger<'_, G> {
    fn kind(&self) -> LedgerKind {
        LedgerKind::Ref
    }

    fn permission(&self) -> &'static str {
        "contents: write"
    }

    fn probe(&self, key: &Key) -> Probe {
        Probe::Refs(ref_prefix(&key.digest()))
    }

    fn probe_one(&self, key: &Key, number: u32) -> Probe {
        Probe::Ref(ref_name(&key.digest(), number))
    }

    fn claims(&self, key: &Key, probed: &Probed) -> Result<Claims, String> {
        let Probed::Refs(found) = probed else { return Ok(Claims::new()) };
        if found.tree.is_some() {
            self.tree.replace(found.tree.clone());
        }
        if found.repository.is_some() {
            self.repository.replace(found.repository.clone());
        }
        if found.more {
            return Err(format!("there are more refs below {} than a key has claims", ref_prefix(&key.digest())));
        }
        Ok(Self::among(key, &found.refs))
    }

    fn listing(&self) -> Option<Listing> {
        Some(Listing::Refs)
    }

    fn add_to_window(&self, window: &mut Window, page: &WindowPage) {
        let WindowPage::Refs(page) = page else { return };
        for found in &page.refs {
            let Some((digest, number)) = parse_ref_name(&found.name) else { continue };
            let task = found.message.as_deref().and_then(|message| parse_commit_message(message).ok());
            match (task, read(number, None, found)) {
                (Some((task, _)), ClaimRead::Readable(claim)) => {
                    let entry = WindowClaim { task: task.to_string(), digest: digest.to_string(), claim };
                    if !window.claims.contains(&entry) {
                        window.claims.push(entry);
                    }
                }
                _ => window.unreadable.push(found.name.clone()),
            }
        }
        // Refs come by name, so that only the last page makes the list whole.
        window.complete_since = page.next.as_ref().map(|_| chrono::DateTime::<chrono::Utc>::MAX_UTC);
    }

    async fn create(
        &self,
        repo: &RepoName,
        key: &Key,
        number: u32,
        record: &Record,
        after: Option<&Claim>,
    ) -> Result<Created, PortError> {
        let oid = self.commit(repo, key, number, record, after.map(|claim| &claim.thing)).await?;
        match self.github.create_ref(repo, &ref_name(&key.digest(), number), &oid).await {
            Ok(()) => Ok(Created::Made(Thing(oid))),
            Err(PortError::Exists { .. }) => Ok(Created::Exists),
            Err(error) => Err(error),
        }
    }

    async fn read(&self, repo: &RepoName, key: &Key, number: u32) -> Result<Option<ClaimRead>, PortError> {
        let probed = self.github.probe(repo, &self.probe_one(key, number)).await?;
        let claims = self.claims(key, &probed);
        let unreadable = |why| PortError::Malformed { request: format!("a look at claim {number}"), why };
        Ok(claims.map_err(unreadable)?.remove(&number))
    }

    async fn rewrite(&self, repo: &RepoName, key: &Key, claim: &Claim, record: &Record) -> Result<(), PortError> {
        let oid = self.commit(repo, key, claim.number, record, Some(&claim.thing)).await?;
        self.github.forward_ref(repo, &ref_name(&key.digest(), claim.number), &oid).await
    }

    fn sweep_listing(&self) -> Option<Listing> {
        Some(Listing::Refs)
    }

    async fn delete(&self, _repo: &RepoName, key: &Key, claims: &[ClaimRead]) -> Result<(), PortError> {
        let Some(repository) = self.repository.borrow().clone() else {
            return Err(PortError::Malformed {
                request: format!("the deletion of claims of {key}"),
                why: "GitHub did not tell the repository's node id".to_owned(),
            });
        };
        let digest = key.digest();
        let named = |claim: &ClaimRead| (ref_name(&digest, claim.number()), claim.thing().0.clone());
        let refs = claims.iter().map(named).filter(|(_, oid)| !oid.is_empty()).collect();
        self.github.delete(&Deletion::Refs { repository, refs }).await
    }
}
