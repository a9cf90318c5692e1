//! The decision: the gates in their order, over what is known.

use super::decision::{Decision, Gate, Judgement, Seen, Stop};
use super::gates::{self, Context};

/// Decides as far as the facts reach. It never fails: what is missing is asked for, what could not be read is judged
/// by the gate that needs it.
///
/// The caller answers each [`Decision::Ask`] by filling in the fact (with a value or as unknown) and decides again;
/// every question is about one fact, so this ends.
pub fn decide(cx: &Context<'_>) -> Decision {
    let mut path = Vec::new();
    for (gate, judge) in [
        (Gate::Trigger, gates::trigger::judge as fn(&Context<'_>) -> Judgement),
        (Gate::Loop, gates::r#loop::judge),
        (Gate::State, gates::state::judge),
    ] {
        match judge(cx) {
            Judgement::Pass(saw) => path.push(Seen { gate, saw }),
            Judgement::Stop(stop) => return Decision::Stop { path, stop },
            Judgement::Ask(question) => return Decision::Ask(question),
        }
    }
    let mut plan = match gates::duplicate::judge(cx) {
        gates::duplicate::Next::Yes(plan, saw) => {
            path.push(Seen { gate: Gate::Duplicate, saw });
            *plan
        }
        gates::duplicate::Next::No(Judgement::Ask(question)) => return Decision::Ask(question),
        gates::duplicate::Next::No(Judgement::Stop(stop)) => return Decision::Stop { path, stop },
        gates::duplicate::Next::No(Judgement::Pass(saw)) => {
            let stop = Stop::new(super::decision::Reason::PreviousFailed, saw);
            return Decision::Stop { path, stop: Box::new(stop) };
        }
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
pub fn before_reading(trigger: &super::trigger::Trigger, paused: bool) -> Option<Stop> {
    gates::trigger::from_payload_alone(trigger).or_else(|| gates::state::paused_by_input(paused))
}
