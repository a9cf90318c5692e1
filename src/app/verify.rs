//! `verify`: may I still publish? One request, which only reads. Reads can lag, so that it is a check and not a lock.

use chrono::TimeDelta;

use super::World;
use super::patient::Patient;
use super::report::VerifyReport;
use crate::config;
use crate::core::claim::Handle;
use crate::core::held::may_publish;
use crate::core::policy::{Effect, POLICY_PATH, Policy};
use crate::core::trigger::RunContext;
use crate::ledger::AnyLedger;
use crate::ports::{Clock, FactsQuery, FactsReply, GitHub, Ledger, PolicyRead, RepoName};

/// What `verify` is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyInput {
    /// The guard step's claim.
    pub claim: Handle,
    /// The repository.
    pub repo: RepoName,
    /// The run that asks.
    pub run: RunContext,
    /// What is about to be done, if that is to be allowed too.
    pub effect: Option<Effect>,
    /// How long the command may take.
    pub deadline: TimeDelta,
}

/// Says whether the run still holds its claim and may publish. What cannot be read is a no.
pub async fn verify<G: GitHub, C: Clock>(world: &World<'_, G, C>, input: &VerifyInput) -> VerifyReport {
    let patient = Patient::new(world.github, world.clock, world.clock.now() + input.deadline);
    let ledger = AnyLedger::of(&input.claim, &patient);
    let key = &input.claim.key;
    let query = FactsQuery {
        repo: input.repo.clone(),
        number: key.resource().number(),
        claims: ledger.probe(key),
        window: None,
        written: None,
    };
    let mut head_sha = None;
    let verdict = match patient.facts(&query).await {
        Ok(reply) => {
            head_sha = reply.resource.known().and_then(Option::as_ref).and_then(|item| item.head_sha.clone());
            judge(&ledger, input, &reply)
        }
        Err(error) => Err(error.to_string()),
    };
    let holds = verdict.is_ok();
    let message = verdict.unwrap_or_else(|why| why);
    VerifyReport { claim: Some(input.claim.clone()), holds, message, head_sha }
}

fn judge<G: GitHub>(ledger: &AnyLedger<'_, G>, input: &VerifyInput, reply: &FactsReply) -> Result<String, String> {
    let key = &input.claim.key;
    if reply.repository.known().is_some_and(|repository| repository.id != key.repository()) {
        return Err(format!("the claim is of another repository (id {}) than {}", key.repository(), input.repo));
    }
    let policy = match &reply.policy {
        PolicyRead::Absent => Policy::default(),
        PolicyRead::Text(text) => config::parse(text, POLICY_PATH).map_err(|error| error.in_one_line())?,
        PolicyRead::Unreadable(why) => return Err(format!("the policy could not be read: {why}")),
    };
    let probed = reply.claims.known().ok_or("the claims could not be read")?;
    let claims = ledger.claims(key, probed)?;
    may_publish(&claims, &input.claim, input.run.run, &reply.resource, policy.task(key.task()), input.effect)
}
