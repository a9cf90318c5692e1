//! The decision: the gates in their order, over what is known.

use super::decision::{Decision, Gate, Judgement, Seen, Stop};
use super::gates::{self, Context, duplicate::Next};
use super::trigger::Trigger;

type Judge = fn(&Context<'_>) -> Judgement;

/// The gates that judge before it is known which claim would be made.
const BEFORE_THE_PLAN: [(Gate, Judge); 3] =
    [(Gate::Trigger, gates::trigger::judge), (Gate::Loop, gates::r#loop::judge), (Gate::State, gates::state::judge)];

/// Decides as far as the facts reach. It never fails: what is missing is asked for, what could not be read is judged
/// by the gate that needs it.
///
/// The caller answers each [`Decision::Ask`] as its question says and decides again. No answered question comes twice,
/// so this ends.
pub fn decide(cx: &Context<'_>) -> Decision {
    let mut path = Vec::new();
    for (gate, judge) in BEFORE_THE_PLAN {
        match judge(cx) {
            Judgement::Pass(saw) => path.push(Seen { gate, saw }),
            Judgement::Stop(stop) => return Decision::Stop { path, stop },
            Judgement::Ask(question) => return Decision::Ask(question),
        }
    }
    let mut plan = match gates::duplicate::judge(cx) {
        Next::Yes(plan, saw) => {
            path.push(Seen { gate: Gate::Duplicate, saw });
            *plan
        }
        Next::Stop(stop) => return Decision::Stop { path, stop },
        Next::Ask(question) => return Decision::Ask(question),
    };
    for (gate, judgement) in [(Gate::Budget, gates::budget::judge(cx)), (Gate::Claim, gates::claim::judge(&plan))] {
        match judgement {
            Judgement::Pass(saw) => path.push(Seen { gate, saw }),
            Judgement::Stop(stop) => return Decision::Stop { path, stop },
            Judgement::Ask(question) => return Decision::Ask(question),
        }
    }
    plan.rank_after = gates::budget::is_near(cx);
    Decision::Claim { path, plan }
}

/// What payload and inputs alone decide, before any request.
pub fn before_reading(trigger: &Trigger, paused: bool) -> Option<Stop> {
    gates::trigger::from_payload_alone(trigger).or_else(|| gates::state::paused_by_input(paused))
}
