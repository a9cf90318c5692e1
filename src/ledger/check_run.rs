//! The `check-run` ledger: claim N of a key is a check run on the commit that the key is about, or on the policy's anchor.
//! Its `external_id` is the key's digest; number and record stand in the text of its output, and its conclusion shows
//! people the outcome.
//!
//! GitHub makes any number of check runs alike, so a number is won by election: of the check runs that say it, the one with
//! the lowest id has it, whatever became of that one since. Were a withdrawn one passed over, a late candidate could win
//! a number below one that is held. The rest is not even read. That holds as long as lists show writes in order: who
//! sees its own check run must see every older one.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::core::claim::{
    Claim, ClaimRead, ClaimState, LedgerKind, Outcome, Record, Thing, check_name, check_text, parse_check_text,
};
use crate::core::facts::{Claims, Window};
use crate::core::identity::{bare_login, is_written_as_bot};
use crate::core::key::{CommitId, Key};
use crate::ports::{
    CheckFace, CheckRun, Created, GitHub, Ledger, Listing, NewCheckRun, PortError, Probe, Probed, RepoName, WindowPage,
};

/// How many pages of check runs are read: as many as GitHub keeps of one name.
const MOST_PAGES: u32 = 10;

/// Whose check runs count.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Whose {
    /// It is not known yet who looks.
    Unknown,
    /// Those of the App whose token this is, by its slug. No other can have made a claim.
    App(String),
    /// Those of every App: a person's token makes none, and looks at those of the workflows.
    Anyone,
}

/// Claims as check runs.
#[derive(Debug)]
pub struct CheckRunLedger<'a, G> {
    github: &'a G,
    anchor: Option<CommitId>,
    whose: RefCell<Whose>,
}

/// The claims of a key by number, and within a number by the id of the check run.
type Candidates = BTreeMap<u32, BTreeMap<u64, ClaimRead>>;

impl<'a, G: GitHub> CheckRunLedger<'a, G> {
    /// The ledger over a GitHub. `anchor` is the commit for keys that name none.
    pub const fn new(github: &'a G, anchor: Option<CommitId>) -> Self {
        Self { github, anchor, whose: RefCell::new(Whose::Unknown) }
    }

    fn commit(&self, key: &Key) -> Option<CommitId> {
        key.head_sha().or_else(|| self.anchor.clone())
    }

    fn commit_needed(&self, key: &Key) -> Result<CommitId, PortError> {
        self.commit(key).ok_or_else(|| PortError::Malformed {
            request: "a check run".to_owned(),
            why: format!("the key {key} names no commit, and there is no `ledger-anchor`"),
        })
    }

    /// The candidates of a key among check runs. One that says its key but not its number could be any claim.
    fn among(&self, key: &Key, runs: &[CheckRun]) -> Result<Candidates, String> {
        let digest = key.digest();
        let whose = self.whose.borrow();
        let mut found = Candidates::new();
        for run in runs.iter().filter(|run| run.external_id == digest.as_str()) {
            match &*whose {
                Whose::Unknown => return Err("GitHub did not say whose token this is".to_owned()),
                Whose::App(slug) if run.app.as_ref() != Some(slug) => continue,
                Whose::App(_) | Whose::Anyone => {}
            }
            let (number, record) = parse_check_text(&run.text)
                .map_err(|bad| format!("the check run {} of the key cannot be read: {bad}", run.id))?;
            let thing = Thing(run.id.to_string());
            let read = match record {
                Ok(record) => ClaimRead::Readable(Claim { number, thing, record }),
                Err(bad) => ClaimRead::Unreadable { number, thing, why: bad.to_string() },
            };
            found.entry(number).or_default().insert(run.id, read);
        }
        Ok(found)
    }
}

/// GitHub's word for an outcome. Of those that it takes, `action_required` alone asks people to look.
const fn conclusion(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "success",
        Outcome::NoChange | Outcome::Superseded | Outcome::Withdrawn => "neutral",
        Outcome::FailedBeforeWrite | Outcome::FailedAfterWrite => "failure",
        Outcome::NeedsReview => "action_required",
    }
}

/// What the check run of a claim shows.
fn face(repo: &RepoName, key: &Key, number: u32, record: &Record) -> CheckFace {
    let run = record.owner.run;
    let (ended, completed_at, title) = match &record.state {
        ClaimState::Open => (None, None, "in progress".to_owned()),
        ClaimState::Settled(s) => (Some(conclusion(s.outcome)), Some(s.at), s.outcome.to_string()),
        ClaimState::Sweep { .. } => (None, None, "sweeps".to_owned()),
    };
    CheckFace {
        conclusion: ended,
        started_at: record.opened_at,
        completed_at,
        details_url: format!("https://{}/{repo}/actions/runs/{run}", key.host()),
        summary: format!("Claim {number} of the task `{}` on {}, by run {run}.", key.task(), key.resource().in_words()),
        title,
        text: check_text(number, record),
    }
}

impl<G: GitHub> Ledger for CheckRunLedger<'_, G> {
    fn kind(&self) -> LedgerKind {
        LedgerKind::CheckRun
    }

    fn permission(&self) -> &'static str {
        "checks: write"
    }

    fn probe(&self, key: &Key) -> Probe {
        match self.commit(key) {
            Some(commit) => Probe::Checks { commit: commit.to_string(), name: check_name(key) },
            None => Probe::Nothing,
        }
    }

    fn probe_one(&self, key: &Key, _number: u32) -> Probe {
        self.probe(key)
    }

    fn claims(&self, key: &Key, probed: &Probed) -> Result<Claims, String> {
        let Probed::Checks(found) = probed else {
            return Err(format!("the key {key} names no commit, and there is no `ledger-anchor`"));
        };
        if let Some(login) = &found.viewer {
            let app = is_written_as_bot(login).then(|| bare_login(login).to_owned());
            self.whose.replace(app.map_or(Whose::Anyone, Whose::App));
        }
        if found.more {
            return Err(format!("there are more check runs called `{}` than are read", check_name(key)));
        }
        let candidates = self.among(key, &found.runs)?;
        let first = |of: BTreeMap<u64, ClaimRead>| of.into_values().next();
        Ok(candidates.into_iter().filter_map(|(number, of)| Some((number, first(of)?))).collect())
    }

    fn listing(&self) -> Option<Listing> {
        None
    }

    fn add_to_window(&self, _window: &mut Window, _page: &WindowPage) {}

    async fn create(
        &self,
        repo: &RepoName,
        key: &Key,
        number: u32,
        record: &Record,
        _after: Option<&Claim>,
    ) -> Result<Created, PortError> {
        let check = NewCheckRun {
            name: check_name(key),
            commit: self.commit_needed(key)?.to_string(),
            external_id: key.digest().to_string(),
            face: face(repo, key, number, record),
        };
        let made = self.github.create_check_run(repo, &check).await?;
        if let Some(slug) = made.app {
            self.whose.replace(Whose::App(slug));
        }
        Ok(Created::Made(Thing(made.id.to_string())))
    }

    async fn read(&self, repo: &RepoName, key: &Key, number: u32) -> Result<Option<ClaimRead>, PortError> {
        self.commit_needed(key)?;
        let probed = self.github.probe(repo, &self.probe_one(key, number)).await?;
        let unreadable = |why| PortError::Malformed { request: format!("a look at claim {number}"), why };
        Ok(self.claims(key, &probed).map_err(unreadable)?.remove(&number))
    }

    fn elects(&self) -> bool {
        true
    }

    async fn candidates(&self, repo: &RepoName, key: &Key, number: u32) -> Result<Vec<ClaimRead>, PortError> {
        let (commit, name) = (self.commit_needed(key)?, check_name(key));
        let unreadable = |why| PortError::Malformed { request: format!("a look at claim {number}"), why };
        let mut runs = Vec::new();
        for page in 1..=MOST_PAGES {
            let mut listed = self.github.check_runs(repo, commit.as_str(), &name, page).await?;
            runs.append(&mut listed.runs);
            if !listed.more {
                let mut candidates = self.among(key, &runs).map_err(unreadable)?;
                return Ok(candidates.remove(&number).unwrap_or_default().into_values().collect());
            }
        }
        Err(unreadable(format!("there are more check runs called `{name}` than are read")))
    }

    async fn rewrite(&self, repo: &RepoName, key: &Key, claim: &Claim, record: &Record) -> Result<(), PortError> {
        let id = claim.thing.0.parse().map_err(|_| PortError::Malformed {
            request: format!("a look at claim {}", claim.number),
            why: format!("`{}` is no id of a check run", claim.thing.0),
        })?;
        self.github.update_check_run(repo, id, &face(repo, key, claim.number, record)).await
    }
}
