//! What goes wrong under a seed, and what must hold all the same.
//!
//! The same scenario is run once for each seed. The seed decides who is next at every request and what strikes it: a
//! crash, an answer that is lost before or after the effect, a 5xx, a rate limit, or a read that is older than the last
//! writes. It also decides how agents end, which events come twice, and what a person runs again. Whether the promises
//! hold is read from the embedded GitHub and from the agents that were at work, never from what a run said of itself.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use super::{AtWork, RunStory};
use crate::core::claim::{Cause, ClaimState, Outcome, Record};
use crate::core::key::Key;
use crate::sim::scenario::{Agent, AgentEnd};
use crate::sim::schedule::Dice;
use crate::sim::{CallInfo, Fault, Op, State};

/// One request in so many is struck.
const ONE_IN: u64 = 14;
/// No read is older than this under a seed: an owner must have ended at least so long ago before its claim is taken
/// over, which counts on the second read being no older.
pub(super) const OLDEST_READ: TimeDelta = TimeDelta::seconds(55);

/// What a seed has done, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Agents that were started.
    pub starts: u64,
    /// Runs that died at a request.
    pub crashes: u64,
    /// Requests that were struck, crashes included.
    pub faults: u64,
    /// Claims that were taken over.
    pub takeovers: u64,
    /// Reruns that a person asked for and got.
    pub reruns: u64,
    /// Pieces of work that ended with a person's review.
    pub reviews: u64,
}

impl Counts {
    /// Adds another seed's.
    pub fn add(&mut self, other: &Self) {
        self.starts += other.starts;
        self.crashes += other.crashes;
        self.faults += other.faults;
        self.takeovers += other.takeovers;
        self.reruns += other.reruns;
        self.reviews += other.reviews;
    }
}

/// The dice of one seed, and what came of them.
pub(super) struct Chaos {
    dice: Dice,
    /// Whether faults strike; off when the end is looked at.
    pub(super) strikes: bool,
    pub(super) counts: Counts,
    /// The claims under which agents were started.
    started: BTreeMap<Key, BTreeSet<u32>>,
}

impl Chaos {
    pub(super) const fn new(seed: u64) -> Self {
        // Another sequence than the scheduler's, which starts from the same seed.
        Self {
            dice: Dice::new(seed ^ 0x5bd1_e995_9e37_79b9),
            strikes: true,
            counts: Counts { starts: 0, crashes: 0, faults: 0, takeovers: 0, reruns: 0, reviews: 0 },
            started: BTreeMap::new(),
        }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.strikes && self.dice.next().is_multiple_of(n)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.dice.next() % n.max(1)
    }

    /// What strikes a request, if anything does.
    pub(super) fn fault(&mut self, call: &CallInfo) -> Option<Fault> {
        if !self.one_in(ONE_IN) {
            return None;
        }
        let effect = self.below(2) == 0;
        let fault = match self.below(8) {
            0 => Fault::Crash { effect },
            1 | 2 => Fault::Lost { effect },
            3 => Fault::Server { status: 502, effect },
            4 => Fault::RateLimited { status: 429, retry_after: Some(1 + self.below(40)), reset_in: None },
            5 => Fault::RateLimited { status: 403, retry_after: None, reset_in: None },
            _ if call.op.is_write() => Fault::Lost { effect },
            _ => Fault::Stale(1 + usize::try_from(self.below(4)).unwrap_or(0)),
        };
        self.counts.faults += 1;
        self.counts.crashes += u64::from(matches!(fault, Fault::Crash { .. }));
        Some(fault)
    }

    /// How an agent behaves under this seed.
    pub(super) fn agent(&mut self, agent: Agent) -> Agent {
        if !self.strikes {
            return Agent { ends: AgentEnd::Success, ..agent };
        }
        let ends = match self.below(12) {
            0 => AgentEnd::Failure,
            1 => AgentEnd::Cancelled,
            2 | 3 => AgentEnd::Killed,
            4 => AgentEnd::Never,
            _ => AgentEnd::Success,
        };
        let says = self.below(3) == 0;
        let comments = agent.comments.or_else(|| says.then(|| "I have looked at it.".to_owned()));
        let writes = ends == AgentEnd::Success || says;
        Agent { ends, comments: comments.filter(|_| writes), ..agent }
    }

    /// Whether an event comes twice.
    pub(super) fn twice(&mut self) -> bool {
        self.one_in(5)
    }

    /// After how long a person runs it again, if somebody does.
    pub(super) fn rerun(&mut self) -> Option<TimeDelta> {
        self.one_in(8).then(|| TimeDelta::minutes(i64::try_from(1 + self.below(90)).unwrap_or(1)))
    }

    /// How long after a run's death GitHub ends it.
    pub(super) fn noticed(&mut self) -> TimeDelta {
        TimeDelta::seconds(i64::try_from(20 + self.below(900)).unwrap_or(60))
    }

    /// Looks at the start of an agent; what is wrong with it, in words. `own` is the claim under which it starts, as it
    /// stands on GitHub.
    pub(super) fn starts(
        &mut self,
        run: &RunStory,
        key: &Key,
        number: u32,
        claims: &BTreeMap<u32, Record>,
        before: &[Start],
    ) -> Vec<String> {
        self.counts.starts += 1;
        let mut wrong = Vec::new();
        let Some(own) = claims.get(&number) else {
            return vec![format!("run {} starts an agent under claim {number}, which does not stand", run.id)];
        };
        self.counts.takeovers += u64::from(own.cause == Cause::Takeover);
        self.counts.reruns += u64::from(own.cause == Cause::Rerun);
        if (own.owner.run, own.owner.attempt) != (run.id, run.attempt) {
            wrong.push(format!("run {} starts an agent under claim {number} of run {}", run.id, own.owner.run));
        }
        if !self.started.entry(key.clone()).or_default().insert(number) {
            wrong.push(format!("two agents were started under claim {number} of {key}"));
        }
        let lower: Vec<&Record> = claims.range(..number).map(|(_, record)| record).collect();
        let is_new = own.rerun.is_some() && lower.iter().all(|record| record.rerun != own.rerun);
        let done = lower.last().is_some_and(|record| {
            matches!(&record.state, ClaimState::Settled(s) if matches!(s.outcome, Outcome::Completed | Outcome::NoChange))
        });
        if done && !is_new {
            wrong.push(format!("run {} starts {key} again, which was done, and nobody asked anew", run.id));
        }
        // Since a person last asked for it, whether or not the agent came to start then.
        let asked = claims.range(..number).rfind(|(_, record)| record.cause == Cause::Rerun).map_or(0, |(n, _)| *n);
        let wrote = before.iter().find(|start| start.claim >= asked && start.wrote);
        if let Some(first) = wrote.filter(|_| !is_new) {
            wrong.push(format!(
                "run {} starts {key} again, of which the agent of run {} had written something",
                run.id, first.run
            ));
        }
        wrong
    }
}

/// An agent that was started.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) run: u64,
    /// Whether it had written something.
    pub(super) wrote: bool,
    /// The number of its claim.
    pub(super) claim: u32,
}

/// A request that changes a claim must be its owner's.
pub(super) fn foreign_write(state: &State, repo: &str, call: &CallInfo, run: (u64, u32)) -> Option<String> {
    if !matches!(call.op, Op::UpdateLabel | Op::UpdateRef | Op::UpdateCheckRun) {
        return None;
    }
    let owner = state.claim_at(repo, &call.path)?.owner;
    ((owner.run, owner.attempt) != run)
        .then(|| format!("run {} writes to the claim of run {} ({call})", run.0, owner.run))
}

/// Whether another agent is at work on a key in a way that a new one must not join.
pub(super) fn joins(at_work: &[AtWork], key: &Key, takes_over: bool) -> Option<usize> {
    at_work.iter().find(|other| other.key == *key && !(other.wedged && takes_over)).map(|other| other.run)
}
