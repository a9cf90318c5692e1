//! Patience: reads that got no answer are asked again, with growing pauses, inside the command's one deadline.
//!
//! Writes are never repeated here on their own. Whether a write may be sent again is for the protocol to say, which
//! knows what it would mean: see [`Patient::insist`].

use std::cell::Cell;

use chrono::{DateTime, TimeDelta, Utc};

use crate::core::facts::{Permission, RunState};
use crate::ports::{
    CheckFace, CheckPage, CheckRun, Clock, Deletion, FactsQuery, FactsReply, GitHub, Label, Listing, NewCheckRun,
    NewCommit, PortError, Probe, Probed, ReactTo, RepoName, WindowPage,
};

/// The pauses before a read is asked again, in seconds.
const PAUSES: [i64; 6] = [1, 2, 4, 8, 16, 32];

/// The pauses before a read is asked again that does not show what must be there, in seconds.
const LAG: [i64; 4] = [1, 2, 4, 8];

/// A GitHub whose reads are asked again.
#[derive(Debug)]
pub struct Patient<'a, G, C> {
    github: &'a G,
    clock: &'a C,
    deadline: DateTime<Utc>,
    asked: Cell<u32>,
}

impl<'a, G: GitHub, C: Clock> Patient<'a, G, C> {
    /// Reads of `github` are asked again until `deadline`.
    pub const fn new(github: &'a G, clock: &'a C, deadline: DateTime<Utc>) -> Self {
        Self { github, clock, deadline, asked: Cell::new(0) }
    }

    /// How many requests were made, each counted once however often it was asked again.
    pub fn asked(&self) -> u32 {
        self.asked.get()
    }

    fn count(&self) -> &'a G {
        self.asked.set(self.asked.get().saturating_add(1));
        self.github
    }

    /// Asks until there is an answer, or until the next try would be past the deadline. What GitHub says of a rate limit
    /// is honoured: the next try is at the time that it names.
    async fn ask<T>(&self, read: impl AsyncFn() -> Result<T, PortError>) -> Result<T, PortError> {
        let goes_by =
            |error: &PortError| matches!(error, PortError::Unreachable { .. } | PortError::RateLimited { .. });
        self.count();
        self.repeat(read, goes_by).await
    }

    /// The time by this machine's clock.
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// The same for a write that may be repeated: one that leaves the same behind however often it is done.
    pub async fn insist<T>(&self, write: impl AsyncFn() -> Result<T, PortError>) -> Result<T, PortError> {
        let goes_by = |error: &PortError| {
            matches!(error, PortError::Unreachable { .. } | PortError::RateLimited { .. } | PortError::Ambiguous { .. })
        };
        self.repeat(write, goes_by).await
    }

    /// Asks until what was read is there, for what is known to be there: a read can lag behind the write.
    pub async fn await_sight<T>(
        &self,
        read: impl AsyncFn() -> Result<T, PortError>,
        is_there: impl Fn(&T) -> bool,
    ) -> Result<T, PortError> {
        let mut pauses = LAG.iter();
        loop {
            let seen = read().await?;
            let (false, Some(pause)) = (is_there(&seen), pauses.next()) else { return Ok(seen) };
            let again = self.clock.now() + TimeDelta::seconds(*pause);
            if again >= self.deadline {
                return Ok(seen);
            }
            self.clock.sleep_until(again).await;
        }
    }

    async fn repeat<T>(
        &self,
        ask: impl AsyncFn() -> Result<T, PortError>,
        goes_by: impl Fn(&PortError) -> bool,
    ) -> Result<T, PortError> {
        let mut pauses = PAUSES.iter();
        loop {
            let error = match ask().await {
                Err(error) if goes_by(&error) => error,
                other => return other,
            };
            let Some(pause) = pauses.next() else { return Err(error) };
            let mut again = self.clock.now() + TimeDelta::seconds(*pause);
            if let PortError::RateLimited { retry_at, .. } = &error {
                // The time is GitHub's, and this machine's clock may be off.
                let skew = self.github.server_time().map_or(TimeDelta::zero(), |theirs| theirs - self.clock.now());
                again = again.max(*retry_at - skew);
            }
            if again >= self.deadline {
                return Err(error);
            }
            self.clock.sleep_until(again).await;
        }
    }
}

impl<G: GitHub, C: Clock> GitHub for Patient<'_, G, C> {
    fn server_time(&self) -> Option<DateTime<Utc>> {
        self.github.server_time()
    }

    async fn facts(&self, query: &FactsQuery) -> Result<FactsReply, PortError> {
        self.ask(async || self.github.facts(query).await).await
    }

    async fn window_page(
        &self,
        repo: &RepoName,
        listing: Listing,
        after: Option<&str>,
    ) -> Result<WindowPage, PortError> {
        self.ask(async || self.github.window_page(repo, listing, after).await).await
    }

    async fn probe(&self, repo: &RepoName, probe: &Probe) -> Result<Probed, PortError> {
        self.ask(async || self.github.probe(repo, probe).await).await
    }

    async fn permission(&self, repo: &RepoName, login: &str) -> Result<Permission, PortError> {
        self.ask(async || self.github.permission(repo, login).await).await
    }

    async fn run(&self, repo: &RepoName, id: u64) -> Result<RunState, PortError> {
        self.ask(async || self.github.run(repo, id).await).await
    }

    async fn create_label(&self, repo: &RepoName, label: &Label, color: &str) -> Result<Label, PortError> {
        self.count().create_label(repo, label, color).await
    }

    async fn label(&self, repo: &RepoName, name: &str) -> Result<Option<Label>, PortError> {
        self.ask(async || self.github.label(repo, name).await).await
    }

    async fn describe_label(&self, repo: &RepoName, name: &str, description: &str) -> Result<(), PortError> {
        self.count().describe_label(repo, name, description).await
    }

    async fn create_commit(&self, repo: &RepoName, commit: &NewCommit) -> Result<String, PortError> {
        self.count().create_commit(repo, commit).await
    }

    async fn create_ref(&self, repo: &RepoName, name: &str, oid: &str) -> Result<(), PortError> {
        self.count().create_ref(repo, name, oid).await
    }

    async fn forward_ref(&self, repo: &RepoName, name: &str, oid: &str) -> Result<(), PortError> {
        self.count().forward_ref(repo, name, oid).await
    }

    async fn delete(&self, deletion: &Deletion) -> Result<(), PortError> {
        self.count().delete(deletion).await
    }

    async fn create_check_run(&self, repo: &RepoName, check: &NewCheckRun) -> Result<CheckRun, PortError> {
        self.count().create_check_run(repo, check).await
    }

    async fn check_runs(&self, repo: &RepoName, commit: &str, name: &str, page: u32) -> Result<CheckPage, PortError> {
        self.ask(async || self.github.check_runs(repo, commit, name, page).await).await
    }

    async fn update_check_run(&self, repo: &RepoName, id: u64, face: &CheckFace) -> Result<(), PortError> {
        self.count().update_check_run(repo, id, face).await
    }

    async fn add_labels(&self, repo: &RepoName, number: u64, names: &[String]) -> Result<(), PortError> {
        self.count().add_labels(repo, number, names).await
    }

    async fn remove_label(&self, repo: &RepoName, number: u64, name: &str) -> Result<(), PortError> {
        self.count().remove_label(repo, number, name).await
    }

    async fn update_comment(&self, repo: &RepoName, id: u64, body: &str) -> Result<(), PortError> {
        self.count().update_comment(repo, id, body).await
    }

    async fn create_comment(&self, repo: &RepoName, number: u64, body: &str) -> Result<u64, PortError> {
        self.count().create_comment(repo, number, body).await
    }

    async fn react(&self, repo: &RepoName, to: ReactTo, content: &str) -> Result<(), PortError> {
        self.count().react(repo, to, content).await
    }
}
