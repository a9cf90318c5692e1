//! Claims on GitHub primitives. A ledger carries out what the core decided; it decides nothing.

pub mod check_run;
pub mod git_ref;
pub mod label;

use check_run::CheckRunLedger;
use git_ref::RefLedger;
use label::LabelLedger;

use crate::core::claim::{Claim, ClaimRead, Handle, LedgerKind, Record};
use crate::core::facts::{Claims, Window};
use crate::core::key::{CommitId, Key};
use crate::ports::{Created, GitHub, Ledger, Listing, PortError, Probe, Probed, RepoName, WindowPage};

/// The ledger that policy and key, or a claim's handle, name.
#[derive(Debug)]
pub enum AnyLedger<'a, G> {
    /// Claims as repository labels.
    Label(LabelLedger<'a, G>),
    /// Claims as check runs.
    CheckRun(CheckRunLedger<'a, G>),
    /// Claims as git refs.
    Ref(RefLedger<'a, G>),
}

impl<'a, G: GitHub> AnyLedger<'a, G> {
    /// The ledger of a kind over a GitHub. `anchor` is the commit for check runs of keys that name none.
    pub fn new(kind: LedgerKind, anchor: Option<CommitId>, github: &'a G) -> Self {
        match kind {
            LedgerKind::Label => Self::Label(LabelLedger::new(github)),
            LedgerKind::CheckRun => Self::CheckRun(CheckRunLedger::new(github, anchor)),
            LedgerKind::Ref => Self::Ref(RefLedger::new(github)),
        }
    }

    /// The ledger that keeps the claim of a handle.
    pub fn of(handle: &Handle, github: &'a G) -> Self {
        Self::new(handle.ledger, handle.anchor.clone(), github)
    }
}

macro_rules! each {
    ($self:ident, $ledger:ident => $call:expr) => {
        match $self {
            Self::Label($ledger) => $call,
            Self::CheckRun($ledger) => $call,
            Self::Ref($ledger) => $call,
        }
    };
}

impl<G: GitHub> Ledger for AnyLedger<'_, G> {
    fn kind(&self) -> LedgerKind {
        each!(self, ledger => ledger.kind())
    }

    fn permission(&self) -> &'static str {
        each!(self, ledger => ledger.permission())
    }

    fn probe(&self, key: &Key) -> Probe {
        each!(self, ledger => ledger.probe(key))
    }

    fn probe_one(&self, key: &Key, number: u32) -> Probe {
        each!(self, ledger => ledger.probe_one(key, number))
    }

    fn claims(&self, key: &Key, probed: &Probed) -> Result<Claims, String> {
        each!(self, ledger => ledger.claims(key, probed))
    }

    fn listing(&self) -> Option<Listing> {
        each!(self, ledger => ledger.listing())
    }

    fn add_to_window(&self, window: &mut Window, page: &WindowPage) {
        each!(self, ledger => ledger.add_to_window(window, page));
    }

    async fn create(
        &self,
        repo: &RepoName,
        key: &Key,
        number: u32,
        record: &Record,
        after: Option<&Claim>,
    ) -> Result<Created, PortError> {
        each!(self, ledger => ledger.create(repo, key, number, record, after).await)
    }

    async fn read(&self, repo: &RepoName, key: &Key, number: u32) -> Result<Option<ClaimRead>, PortError> {
        each!(self, ledger => ledger.read(repo, key, number).await)
    }

    fn elects(&self) -> bool {
        each!(self, ledger => ledger.elects())
    }

    async fn candidates(&self, repo: &RepoName, key: &Key, number: u32) -> Result<Vec<ClaimRead>, PortError> {
        each!(self, ledger => ledger.candidates(repo, key, number).await)
    }

    async fn rewrite(&self, repo: &RepoName, key: &Key, claim: &Claim, record: &Record) -> Result<(), PortError> {
        each!(self, ledger => ledger.rewrite(repo, key, claim, record).await)
    }

    fn sweep_listing(&self) -> Option<Listing> {
        each!(self, ledger => ledger.sweep_listing())
    }

    async fn delete(&self, repo: &RepoName, key: &Key, claims: &[ClaimRead]) -> Result<(), PortError> {
        each!(self, ledger => ledger.delete(repo, key, claims).await)
    }
}
