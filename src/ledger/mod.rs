//! Claims on GitHub primitives. A ledger carries out what the core decided; it decides nothing.

pub mod git_ref;
pub mod label;

use git_ref::RefLedger;
use label::LabelLedger;

use crate::core::claim::{Claim, ClaimRead, LedgerKind, Record};
use crate::core::facts::{Claims, Window};
use crate::core::key::Key;
use crate::ports::{Created, GitHub, Ledger, Listing, PortError, Probe, Probed, RepoName, WindowPage};

/// The ledger that policy and key, or a claim's handle, name.
#[derive(Debug)]
pub enum AnyLedger<'a, G> {
    /// Claims as repository labels.
    Label(LabelLedger<'a, G>),
    /// Claims as git refs.
    Ref(RefLedger<'a, G>),
}

impl<'a, G: GitHub> AnyLedger<'a, G> {
    /// The ledger of a kind over a GitHub.
    pub const fn new(kind: LedgerKind, github: &'a G) -> Self {
        match kind {
            LedgerKind::Label => Self::Label(LabelLedger::new(github)),
            LedgerKind::Ref => Self::Ref(RefLedger::new(github)),
        }
    }
}

macro_rules! each {
    ($self:ident, $ledger:ident => $call:expr) => {
        match $self {
            Self::Label($ledger) => $call,
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

    fn listing(&self) -> Listing {
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
