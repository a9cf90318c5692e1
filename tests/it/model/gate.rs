//! The real gate as the model asks it, and claims in its form.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, TimeDelta, Utc};
use run_guard::core::claim::{
    Cause, Claim, ClaimRead, ClaimState, Nonce, Owner, Record, RerunId, Settlement, SweepPhase, Thing,
};
use run_guard::core::facts::{Claims, Fact, Question, RunState};
use run_guard::core::gates::duplicate::{self, Next};
use run_guard::core::sweep::{self, Waits};
use serde_json::json;

use super::protocol::{Guard, Holder, Object, Protocol, Standing, Tick, View};
use super::rules::Lower;
use crate::core::case::{Built, Situation, merged, plain};

/// A tick of the model in the gate's time: the waits of a sweep are two, an answer is at most one old.
const TICK: TimeDelta = TimeDelta::minutes(5);

const START: &str = "2026-11-30T00:00:00Z";

fn time(tick: Tick) -> DateTime<Utc> {
    crate::core::case::time(START) + TICK * i32::from(tick)
}

/// Another workflow run, as GitHub shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Run {
    pub(super) attempt: u32,
    pub(super) started: Tick,
    pub(super) ended: Option<Tick>,
}

/// All that the gate is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) guard: usize,
    pub(super) now: Tick,
    /// When the wish for a rerun that the trigger carries was made.
    pub(super) wished: Option<Tick>,
    pub(super) view: View,
    /// The run that has the highest claim, if it is another than the one that asks.
    pub(super) holder: Option<Run>,
    /// What a second read of the highest claim showed, once there was one.
    pub(super) second: Option<View>,
    /// When the agent of the highest claim's owner is seen to have written something.
    pub(super) wrote: Option<Tick>,
    /// Since when the item carries the label that says done.
    pub(super) labelled: Option<Tick>,
}

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    No,
    Yes { number: usize, cause: Cause, rerun: bool, from: Option<Holder> },
    ReadAgain(usize),
}

/// What a sweep does next, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sweeps {
    Nothing,
    Hold(usize),
    Delete(Vec<usize>),
    Clear(usize),
    Drop(usize),
}

/// What the gate and the sweep have said before: they are pure.
#[derive(Clone, Debug, Default)]
pub(super) struct Memo(Arc<(Mutex<Answers<Asked, Said>>, Mutex<Answers<(View, Tick), Sweeps>>)>);

type Answers<Asked, Said> = HashMap<Asked, Said>;

impl Memo {
    pub(super) fn say(&self, model: &Protocol, asked: &Asked) -> Said {
        let (gate, _) = &*self.0;
        if let Some(said) = gate.lock().unwrap().get(asked) {
            return *said;
        }
        let said = say(model, asked);
        gate.lock().unwrap().insert(asked.clone(), said);
        said
    }

    pub(super) fn sweep(&self, model: &Protocol, view: &View, now: Tick) -> Sweeps {
        let (_, sweep) = &*self.0;
        let asked = (view.clone(), now);
        if let Some(said) = sweep.lock().unwrap().get(&asked) {
            return said.clone();
        }
        let said = next_sweep(model, view, now);
        sweep.lock().unwrap().insert(asked, said.clone());
        said
    }
}

fn next_sweep(model: &Protocol, view: &View, now: Tick) -> Sweeps {
    let [held, cleared] = model.rules.sweep_waits.map(|ticks| TICK * i32::from(ticks));
    // That 72 h have passed and nobody can ask for the key again is taken for given from the start.
    let waits = Waits { kept: TimeDelta::zero(), held, cleared };
    let leave = |read: &ClaimRead| match (model.rules.lower, read) {
        (Lower::Settled, ClaimRead::Readable(claim)) => claim.record.state == ClaimState::Open,
        _ => false,
    };
    let mut shown = claims(model, view);
    if let Some(highest) = shown.last_key_value().map(|(number, _)| *number) {
        shown.retain(|number, read| *number == highest || !leave(read));
    }
    let number = |number: u32| usize::try_from(number).unwrap();
    match sweep::next(&shown, Ok(()), time(now), waits) {
        sweep::Next::Nothing(_) | sweep::Next::Wait(_) => Sweeps::Nothing,
        sweep::Next::Hold(n) => Sweeps::Hold(number(n)),
        sweep::Next::Delete(lower) => Sweeps::Delete(lower.iter().map(|read| number(read.number())).collect()),
        sweep::Next::Clear(claim) => Sweeps::Clear(number(claim.number)),
        sweep::Next::Drop(claim) => Sweeps::Drop(number(claim.number)),
    }
}

fn say(model: &Protocol, asked: &Asked) -> Said {
    let built = built(model, asked);
    match duplicate::judge(&built.context()) {
        Next::Stop(_) | Next::Ask(Question::WaitUntil(_)) => Said::No,
        Next::Ask(Question::SecondRead(number)) => Said::ReadAgain(usize::try_from(number).unwrap()),
        Next::Ask(other) => panic!("the model has no answer to {other:?}"),
        Next::Yes(plan, _) => Said::Yes {
            number: usize::try_from(plan.number).unwrap(),
            cause: plan.cause,
            rerun: plan.rerun.is_some(),
            from: plan.takes_over.map(|claim| {
                let number = usize::try_from(claim.number).unwrap();
                asked.view[number - 1].unwrap().holder
            }),
        },
    }
}

fn built(model: &Protocol, asked: &Asked) -> Built {
    let Guard { run, attempt, wish } = model.guards[asked.guard];
    let stamp = |tick: Tick| time(tick).to_rfc3339();
    let mut patch =
        json!({ "run": run, "attempt": attempt, "now": stamp(asked.now), "policy": { "rerun_phrase": "/again" } });
    let wished = asked.wished.unwrap_or(asked.now);
    match wish {
        Some(_) if attempt > 1 => patch["by"] = json!("alice"),
        Some(id) => {
            patch["event"] = json!("issue_comment");
            patch["action"] = json!("created");
            patch["comment"] = json!({ "id": id, "by": "alice", "at": stamp(wished), "body": "/again" });
        }
        None => {}
    }
    if let Some(at) = asked.wrote {
        let comment = json!({ "id": 1, "by": "claude[bot]", "at": stamp(at) });
        patch["issue"]["comments"] = json!([comment]);
    }
    if let Some(at) = asked.labelled {
        let label = "run-guard:investigate:done";
        patch["issue"]["labels"] = json!([label]);
        let event = json!({ "label": label, "by": "github-actions[bot]", "at": stamp(at) });
        patch["issue"]["label_events"] = json!([event]);
    }
    let mut built = Situation::read(&merged(&plain(), &patch)).build().unwrap();
    built.policy.defaults.settle_grace = TICK * i32::from(model.rules.grace);
    for rules in built.policy.tasks.values_mut() {
        rules.settle_grace = TICK * i32::from(model.rules.grace);
    }
    built.facts.claims = Fact::Known(claims(model, &asked.view));
    let found = |run: Run| RunState::Found {
        attempt: run.attempt,
        conclusion: run.ended.map(|_| "cancelled".to_owned()),
        updated_at: time(run.ended.unwrap_or(asked.now)),
        started_at: Some(time(run.started)),
        url: String::new(),
    };
    if let Some(run) = asked.holder {
        built.facts.holder = Fact::Known(found(run));
    }
    built.facts.own_run = Fact::Known(found(Run { attempt, started: wished, ended: None }));
    if let Some(second) = &asked.second {
        let number = asked.view.iter().rposition(Option::is_some).unwrap();
        built.facts.second_read = Fact::Known(second[0].map(|object| claim(model, number + 1, object)));
    }
    built
}

/// The claims that a view shows, as run-guard reads them.
fn claims(model: &Protocol, view: &View) -> Claims {
    let shown = view.iter().enumerate().filter_map(|(at, object)| object.map(|o| claim(model, at + 1, o)));
    shown.map(|read| (read.number(), read)).collect()
}

/// A claim as run-guard reads it.
pub(super) fn claim(model: &Protocol, number: usize, object: Object) -> ClaimRead {
    let owner = match object.holder {
        Holder::Guard(guard) => model.owner(guard),
        Holder::Earlier => Owner { run: 1000, attempt: 1, nonce: Nonce::from_bits(1000) },
        Holder::Sweep(at) => Owner { run: 1001, attempt: 1, nonce: Nonce::from_bits(1001 + u64::from(at)) },
    };
    let state = match object.standing {
        Standing::Open => ClaimState::Open,
        Standing::Settled(outcome, at) => {
            ClaimState::Settled(Settlement { outcome, at: time(at), cost_cents: None, result_comment: None })
        }
        Standing::Sweep { cleared, at } => {
            let phase = if cleared { SweepPhase::Cleared } else { SweepPhase::Holding };
            ClaimState::Sweep { phase, at: time(at) }
        }
    };
    let rerun = object.rerun.map(|wish| {
        let asks = model.guards.iter().find(|g| g.wish == Some(wish)).unwrap();
        if asks.attempt > 1 { RerunId::Attempt(asks.run, asks.attempt) } else { RerunId::Comment(u64::from(wish)) }
    });
    let record = Record {
        owner,
        cause: if rerun.is_some() { Cause::Rerun } else { Cause::Retry },
        rerun,
        opened_at: time(0),
        number: None,
        actor: None,
        state,
    };
    let thing = Thing(format!("{:?}", object.holder));
    ClaimRead::Readable(Claim { number: u32::try_from(number).unwrap(), thing, record })
}
