//! The election by which check runs stand for unique names: create, list until one's own is listed, and the lowest id
//! has the claim. The model of the protocol takes the outcome of an election for one step; this one takes it apart.

use stateright::{Checker, HasDiscoveries, Model, Property};

/// What a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lists {
    /// Every check that is older than one it shows.
    InOrder,
    /// Any of the checks.
    Anyhow,
}

/// How far a contender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    /// Its creation was sent so often, and it lists.
    Lists(u8),
    Won,
    Lost,
    /// It stopped, or gave its claim back.
    Over,
}

/// Checks of one number, by id: whose each is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    checks: Vec<usize>,
    contenders: Vec<Phase>,
    lost_answers: u8,
}

impl World {
    fn count(&self, phase: Phase) -> usize {
        self.contenders.iter().filter(|p| **p == phase).count()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Creates(usize),
    /// The answer was lost, and the check was made or not.
    CreatesUnanswered(usize, bool),
    /// Whose the lowest shown check is, if one's own is shown.
    Lists(usize, usize),
    Stops(usize),
}

struct Election {
    contenders: usize,
    lists: Lists,
}

const ONE_WINNER: &str = "at most one has won";

impl Model for Election {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World { checks: Vec::new(), contenders: vec![Phase::Idle; self.contenders], lost_answers: 2 }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (who, phase) in world.contenders.iter().enumerate() {
            let own = world.checks.iter().position(|owner| *owner == who);
            match phase {
                Phase::Idle => actions.push(Action::Creates(who)),
                Phase::Lists(_) => {
                    // One's own that is listed is the newest of one's own at the latest, and the lowest at best.
                    actions.extend(own.into_iter().flat_map(|own| {
                        let others = match self.lists {
                            Lists::InOrder => 0..1,
                            Lists::Anyhow => 0..own + 1,
                        };
                        others.map(|lowest| Action::Lists(who, world.checks[lowest]))
                    }));
                }
                Phase::Won => {}
                Phase::Lost | Phase::Over => continue,
            }
            let again = matches!(phase, Phase::Idle) || (matches!(phase, Phase::Lists(n) if *n < 2) && own.is_none());
            if again && world.lost_answers > 0 {
                actions.push(Action::CreatesUnanswered(who, true));
                actions.push(Action::CreatesUnanswered(who, false));
            }
            actions.push(Action::Stops(who));
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        let sent = |phase: Phase| match phase {
            Phase::Lists(n) => Phase::Lists(n + 1),
            _ => Phase::Lists(1),
        };
        match action {
            Action::Creates(who) => {
                next.checks.push(who);
                next.contenders[who] = sent(next.contenders[who]);
            }
            Action::CreatesUnanswered(who, made) => {
                next.lost_answers -= 1;
                next.contenders[who] = sent(next.contenders[who]);
                if made {
                    next.checks.push(who);
                }
            }
            Action::Lists(who, lowest) => next.contenders[who] = if lowest == who { Phase::Won } else { Phase::Lost },
            Action::Stops(who) => next.contenders[who] = Phase::Over,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_WINNER, |_, world: &World| world.count(Phase::Won) <= 1),
            Property::sometimes("one wins and the others lose", |model: &Self, world: &World| {
                world.count(Phase::Won) == 1 && world.count(Phase::Lost) == model.contenders - 1
            }),
            Property::sometimes("one wins although an answer was lost", |_, world: &World| {
                world.lost_answers < 2 && world.count(Phase::Won) == 1
            }),
        ]
    }
}

#[test]
fn the_lowest_check_wins_where_lists_are_in_order() {
    let checker = Election { contenders: 3, lists: Lists::InOrder }.checker().spawn_bfs().join();
    checker.assert_properties();
    assert_eq!(checker.unique_state_count(), 1_501);
}

#[test]
fn lists_out_of_order_elect_two() {
    let election = Election { contenders: 2, lists: Lists::Anyhow };
    let checker = election.checker().finish_when(HasDiscoveries::AnyOf([ONE_WINNER].into())).spawn_bfs().join();
    let run = checker.discovery(ONE_WINNER).unwrap().into_actions();
    // Both create, and each lists its own check alone.
    assert_eq!(run.len(), 4, "{run:?}");
    assert!(run[2..].iter().all(|action| matches!(action, Action::Lists(who, lowest) if who == lowest)), "{run:?}");
}
