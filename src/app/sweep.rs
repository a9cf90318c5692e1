//! Sweeping on the side: carries out at most one phase of one sweep, as [`core::sweep`](crate::core::sweep) says, inside
//! a bound of requests and the command's deadline.

use chrono::{DateTime, Utc};

use super::World;
use crate::core::claim::{Cause, Claim, ClaimRead, ClaimState, LedgerKind, Owner, Record, SweepPhase};
use crate::core::facts::{Claims, Fact};
use crate::core::key::Key;
use crate::core::policy::Policy;
use crate::core::sweep::{Next, Waits, forgettable, next};
use crate::ledger::AnyLedger;
use crate::ports::{Clock, FactsQuery, GitHub, Ledger, PortError, RepoName};

/// One phase of a sweep of one key.
pub struct Sweep<'a, G, C> {
    /// The world.
    pub world: &'a World<'a, G, C>,
    /// Where the key's claims are.
    pub ledger: &'a AnyLedger<'a, G>,
    /// The repository.
    pub repo: &'a RepoName,
    /// The policy.
    pub policy: &'a Policy,
    /// Who sweeps.
    pub owner: Owner,
    /// After this nothing is written.
    pub deadline: DateTime<Utc>,
    /// How many requests it may take.
    pub requests: u32,
}

impl<G: GitHub, C: Clock> Sweep<'_, G, C> {
    /// Does what is next for a key; what it did, in a few words, if anything.
    pub async fn one_phase(&mut self, key: &Key) -> Result<Option<&'static str>, PortError> {
        let mut did = None;
        // The deletion is followed by a read and, if all are gone, by the note that they are.
        for _ in 0..2 {
            let Some((claims, forgettable)) = self.read(key).await? else { break };
            let Some(now) = self.time() else { break };
            let todo = next(&claims, forgettable, now, Waits::new(self.policy.longest_window()));
            let costs = match &todo {
                Next::Nothing(_) | Next::Wait(_) => break,
                Next::Delete(_) | Next::Drop(_) => 1,
                // A ref is made of a commit and its name.
                Next::Hold(_) | Next::Clear(_) => 1 + u32::from(self.ledger.kind() == LedgerKind::Ref),
            };
            if !self.may_spend(costs) {
                break;
            }
            match todo {
                Next::Nothing(_) | Next::Wait(_) => {}
                Next::Hold(number) => {
                    self.hold(key, number, &claims, now).await?;
                    return Ok(Some("the key is held"));
                }
                Next::Delete(lower) => {
                    self.ledger.delete(self.repo, key, &lower).await?;
                    did = Some("its lower claims were deleted");
                }
                Next::Clear(claim) => {
                    self.clear(key, &claim, now).await?;
                    return Ok(Some("its lower claims are gone"));
                }
                Next::Drop(claim) => {
                    self.ledger.delete(self.repo, key, &[ClaimRead::Readable(claim)]).await?;
                    return Ok(Some("the key is free again"));
                }
            }
        }
        Ok(did)
    }

    /// Takes so many requests from the bound; `false` if they are not left or the deadline has passed.
    fn may_spend(&mut self, requests: u32) -> bool {
        let left = self.requests.checked_sub(requests).filter(|_| self.world.clock.now() <= self.deadline);
        self.requests = left.unwrap_or(self.requests);
        left.is_some()
    }

    /// GitHub's time. Without it nothing can be stamped.
    fn time(&self) -> Option<DateTime<Utc>> {
        let now = self.world.github.server_time()?;
        DateTime::from_timestamp(now.timestamp(), 0)
    }

    /// The key's claims, all of them, and whether it may be forgotten.
    async fn read(&mut self, key: &Key) -> Result<Option<(Claims, Result<(), &'static str>)>, PortError> {
        if !self.may_spend(1) {
            return Ok(None);
        }
        let query = FactsQuery {
            repo: self.repo.clone(),
            number: key.resource().number(),
            claims: self.ledger.probe(key),
            window: None,
            written: None,
        };
        let reply = self.world.github.facts(&query).await?;
        let Fact::Known(probed) = &reply.claims else { return Ok(None) };
        let Ok(claims) = self.ledger.claims(key, probed) else { return Ok(None) };
        let memory = self.policy.task(key.task()).memory;
        Ok(Some((claims, forgettable(key, &reply.resource, memory))))
    }

    /// Creates the claim that holds the key. It is sent once, whatever comes of it: it carries the time at which it was
    /// sent, and sent again later it would carry one at which it was not there yet.
    async fn hold(&self, key: &Key, number: u32, claims: &Claims, now: DateTime<Utc>) -> Result<(), PortError> {
        let highest = claims.last_key_value().and_then(|(_, read)| match read {
            ClaimRead::Readable(claim) => Some(claim),
            ClaimRead::Unreadable { .. } => None,
        });
        let record = Record {
            owner: self.owner.clone(),
            cause: Cause::Reconcile,
            rerun: None,
            opened_at: now,
            number: key.resource().number(),
            actor: None,
            state: ClaimState::Sweep { phase: SweepPhase::Holding, at: now },
        };
        self.ledger.create(self.repo, key, number, &record, highest).await.map(drop)
    }

    async fn clear(&self, key: &Key, claim: &Claim, now: DateTime<Utc>) -> Result<(), PortError> {
        let state = ClaimState::Sweep { phase: SweepPhase::Cleared, at: now };
        let record = Record { state, ..claim.record.clone() };
        self.ledger.rewrite(self.repo, key, claim, &record).await
    }
}
