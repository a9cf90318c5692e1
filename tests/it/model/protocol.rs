//! The protocol of claims as a state machine that a checker explores whole.
//!
//! One key. Contenders are guard steps of workflow runs; sweepers are commands of which any number may be at work.
//! Time is in ticks. A process that has read and not yet written cannot be told from one that reads later and gets an
//! old answer, so reading for a decision is no step of its own: the step that writes picks, for each number by itself,
//! any answer that is young enough. What a sweeper does depends on such answers alone, so it has no state.

use std::collections::BTreeMap;
use std::fmt;

use run_guard::core::claim::{Cause, Nonce, Outcome, Owner};
use run_guard::core::lease::{Acquire, CreateAnswer, Next};
use stateright::{Model, Property};

use super::gate::{Asked, Memo, Run, Said, Sweeps, claim};
use super::rules::{Election, Evidence, Naming, Primitive, Rules, SecondRead, Stamp};

pub(super) type Tick = u8;

/// Who made a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    Guard(usize),
    /// A run that was over before the model starts.
    Earlier,
    /// A sweep, by the tick in which it began.
    Sweep(Tick),
}

/// How a claim stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Standing {
    Open,
    Settled(Outcome, Tick),
    Sweep { cleared: bool, at: Tick },
}

/// A claim on GitHub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Object {
    pub(super) holder: Holder,
    pub(super) standing: Standing,
    pub(super) rerun: Option<u8>,
}

/// What GitHub has under a number, and the older answers that a read may still give, each with the last tick in which
/// it was true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    now: Option<Object>,
    past: Vec<(Option<Object>, Tick)>,
}

impl Slot {
    pub(super) fn new(now: Option<Object>, past: Vec<(Option<Object>, Tick)>) -> Self {
        Self { now, past }
    }

    fn set(&mut self, to: Option<Object>, tick: Tick) {
        let old = std::mem::replace(&mut self.now, to);
        self.past.retain(|(o, _)| *o != old && *o != to);
        if old != to {
            self.past.push((old, tick));
        }
    }

    /// Every answer that was true in the tick `oldest` or later, with the last tick in which it was.
    fn answers(&self, oldest: Tick, now: Tick) -> Vec<(Option<Object>, Tick)> {
        let past = self.past.iter().filter(|(_, until)| *until >= oldest).copied();
        std::iter::once((self.now, now)).chain(past).collect()
    }
}

/// A contender as it is set up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    pub(super) run: u64,
    pub(super) attempt: u32,
    /// The wish for a rerun that its trigger carries: a comment, or the person's re-run if the attempt is above 1.
    pub(super) wish: Option<u8>,
}

/// What a contender does next in creating its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Create,
    Read,
}

/// How far a contender is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    /// It is creating its claim, which must take effect by the tick `by`.
    Acquiring {
        machine: Acquire,
        step: Step,
        plan: Plan,
        by: Tick,
    },
    /// It answered `proceed`, and the agent works.
    Working {
        number: usize,
    },
    /// It answered something else to the creation of this number.
    Refused {
        number: usize,
    },
    Ended,
}

/// A claim to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Plan {
    number: usize,
    cause: Cause,
    rerun: Option<u8>,
    from: Option<Holder>,
}

/// A contender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Process {
    phase: Phase,
    /// The tick in which its run ended, by GitHub's word.
    ended: Option<Tick>,
    /// The tick in which its agent first wrote something that others can see.
    wrote: Option<Tick>,
    /// Its claim was made although the work was done and nobody asked for it again.
    again: bool,
    /// Its claim was made on top of one whose owner had written something, and nobody asked for it.
    repeats: bool,
}

/// A write on its way, whose sender had no answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Flight {
    guard: usize,
    by: Tick,
    write: Write,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Write {
    Create(Plan),
    Settle(usize, Outcome, Tick),
}

/// What may still go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Faults {
    /// Answers to writes that get lost, before or after the write took effect, or with the effect yet to come.
    pub(super) lost: u8,
    /// Processes that stop between two steps; their run is over then.
    pub(super) crashes: u8,
    /// Runs that GitHub takes for over while their process goes on.
    pub(super) presumed: u8,
}

/// All there is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    now: Tick,
    slots: Vec<Slot>,
    guards: Vec<Process>,
    flights: Vec<Flight>,
    asked: BTreeMap<u8, Tick>,
    /// The tick in which the item was labelled done.
    labelled: Option<Tick>,
    allowances: u8,
    faults: Faults,
    /// The work is done, and nobody has asked for it again since.
    done: bool,
    /// Which wishes a claim was made for.
    granted: Vec<u8>,
    /// A claim was written by another than its owner.
    trespassed: bool,
    swept: bool,
}

/// A step: in words, and the world after it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Action {
    words: String,
    world: World,
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// What the model is about and how far it goes.
#[derive(Clone, Debug)]
pub(super) struct Protocol {
    pub(super) primitive: Primitive,
    pub(super) rules: Rules,
    pub(super) guards: Vec<Guard>,
    /// The claims that are there at the start, from number 1.
    pub(super) start: Vec<Slot>,
    /// The first contender has claim 1 at the start, and GitHub takes its run for over while its process goes on.
    pub(super) first_is_presumed_dead: bool,
    pub(super) numbers: usize,
    pub(super) ticks: Tick,
    pub(super) faults: Faults,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) sweeps: bool,
    /// How often a person takes the label off that says done.
    pub(super) allowances: u8,
    pub(super) sometimes: Vec<Sometimes>,
    pub(super) memo: Memo,
}

/// What must be possible.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sometimes {
    CrashRecovered,
    WinsAfterAbandoned,
    SweptAndUsedAgain,
    LateFinish,
    RerunProceeds,
    LostAnswerWon,
}

pub(super) const ONE_PROCEED: &str = "at most one live proceed";
pub(super) const OWNER_WRITES: &str = "a claim is written by its owner only";
pub(super) const DONE_STAYS: &str = "done work starts again only on a rerun that no claim has recorded";
pub(super) const NO_REPEAT: &str = "work that had written something is not taken over";

/// How a write went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    Answered,
    /// It took effect and the answer was lost.
    Unanswered,
    /// It took no effect.
    Dropped,
    /// It takes effect later.
    Delayed,
}

/// What a reader was shown, from number 1.
pub(super) type View = Vec<Option<Object>>;

impl Protocol {
    fn run(&self, guard: usize) -> (u64, u32) {
        (self.guards[guard].run, self.guards[guard].attempt)
    }

    pub(super) fn owner(&self, guard: usize) -> Owner {
        let (run, attempt) = self.run(guard);
        let nonce = if self.rules.own_nonce { guard } else { 0 };
        Owner { run, attempt, nonce: Nonce::from_bits(u64::try_from(nonce).unwrap()) }
    }

    /// Since when the owner's run is over, if it is.
    fn over(&self, world: &World, holder: Holder) -> Option<Tick> {
        match holder {
            Holder::Earlier => Some(0),
            Holder::Sweep(_) => None,
            Holder::Guard(guard) => {
                let of_run = (0..self.guards.len()).filter(|g| self.run(*g) == self.run(guard));
                of_run.map(|g| world.guards[g].ended).collect::<Option<Vec<_>>>()?.into_iter().max()
            }
        }
    }

    fn oldest(&self, world: &World) -> Tick {
        world.now.saturating_sub(self.rules.read_age)
    }

    /// Every combination of answers that are young enough, each with the tick of its oldest.
    fn views(&self, world: &World) -> Vec<(View, Tick)> {
        let mut views = vec![(View::new(), world.now)];
        for slot in &world.slots {
            let answers = slot.answers(self.oldest(world), world.now);
            views = views
                .into_iter()
                .flat_map(|(view, since)| {
                    answers.iter().map(move |(object, until)| {
                        let mut view = view.clone();
                        view.push(*object);
                        (view, since.min(*until))
                    })
                })
                .collect();
        }
        views
    }

    /// What contender `guard` may plan, each with the tick of the oldest answer that the plan stands on.
    fn plans(&self, world: &World, guard: usize) -> Vec<(Plan, Tick)> {
        let mut plans: Vec<(Plan, Tick)> = Vec::new();
        for (view, since) in self.views(world) {
            for (plan, since) in self.plans_of(world, guard, &view, since) {
                match plans.iter_mut().find(|(p, _)| *p == plan) {
                    Some((_, best)) => *best = since.max(*best),
                    None => plans.push((plan, since)),
                }
            }
        }
        plans.retain(|(plan, _)| plan.number <= self.numbers);
        plans
    }

    fn plans_of(&self, world: &World, guard: usize, view: &View, since: Tick) -> Vec<(Plan, Tick)> {
        let rules = &self.rules;
        if rules.gaps_stop && view.windows(2).any(|pair| pair[0].is_none() && pair[1].is_some()) {
            return Vec::new();
        }
        let oldest = self.oldest(world);
        let highest = view.iter().enumerate().rev().find_map(|(at, object)| object.map(|o| (at + 1, o)));
        let wished = self.guards[guard].wish.map(|id| world.asked[&id]);
        let mut asked = Asked {
            guard,
            now: world.now,
            wished: if rules.rerun_is_newer { wished } else { wished.map(|_| world.now + 1) },
            view: self.as_recorded(view),
            holder: highest.and_then(|(_, object)| self.holder(world, guard, object)),
            second: None,
            wrote: None,
            labelled: None,
        };
        let plan = |said: Said| match said {
            Said::Yes { number, cause, rerun, from } => {
                let number = if rules.numbers_are_new || from.is_none() { number } else { number - 1 };
                Some(Plan { number, cause, rerun: self.guards[guard].wish.filter(|_| rerun), from })
            }
            Said::No | Said::ReadAgain(_) => None,
        };
        let Some((_, object)) = highest else {
            // Since the label was put on, an old answer may not show it yet.
            let labels = match world.labelled {
                None => vec![(None, since)],
                Some(at) if at >= oldest => vec![(Some(at), since), (None, since.min(at))],
                Some(at) => vec![(Some(at), since)],
            };
            let said = labels.into_iter().filter_map(|(labelled, since)| {
                asked.labelled = labelled;
                Some((plan(self.memo.say(self, &asked))?, since))
            });
            return said.collect();
        };
        let said = self.memo.say(self, &asked);
        let Said::ReadAgain(number) = said else {
            return plan(said).map(|plan| (plan, since)).into_iter().collect();
        };
        let over = match object.standing {
            Standing::Settled(_, at) => at,
            Standing::Open | Standing::Sweep { .. } => self.over_since(world, guard, object).unwrap_or(world.now),
        };
        let after_grace = oldest.max(over + rules.grace);
        let second = match rules.second_read {
            SecondRead::Never => vec![(Some(object), since)],
            SecondRead::AfterGrace => world.slots[number - 1].answers(after_grace, world.now),
            SecondRead::Anytime => world.slots[number - 1].answers(oldest, world.now),
        };
        let evidence_from = match rules.evidence {
            Evidence::AfterGrace => after_grace,
            Evidence::FirstRead => oldest,
        };
        let wrote = match object.holder {
            Holder::Guard(other) => world.guards[other].wrote,
            Holder::Earlier | Holder::Sweep(_) => None,
        };
        let saw = match wrote {
            None => vec![None],
            Some(at) if at >= evidence_from => vec![Some(at), None],
            Some(at) => vec![Some(at)],
        };
        let mut plans = Vec::new();
        for (second, until) in second {
            asked.second = Some(self.as_recorded(&vec![second]));
            for wrote in &saw {
                asked.wrote = *wrote;
                plans.extend(plan(self.memo.say(self, &asked)).map(|plan| (plan, since.min(until))));
            }
        }
        plans
    }

    /// A view as it is with what the rules leave out of the records.
    fn as_recorded(&self, view: &View) -> View {
        let recorded = self.rules.rerun_is_recorded;
        view.iter().map(|o| o.map(|o| Object { rerun: o.rerun.filter(|_| recorded), ..o })).collect()
    }

    /// How GitHub shows the run that has a claim, if it is another than the one that asks.
    fn holder(&self, world: &World, guard: usize, object: Object) -> Option<Run> {
        let run = match object.holder {
            Holder::Guard(other) if self.guards[other].run == self.guards[guard].run => return None,
            Holder::Guard(other) => self.run_state(world, other),
            Holder::Earlier | Holder::Sweep(_) => Run { attempt: 1, started: 0, ended: Some(0) },
        };
        if self.rules.live_is_left_alone {
            return Some(run);
        }
        Some(Run { ended: Some(world.now.saturating_sub(self.rules.grace)), ..run })
    }

    /// The run of a guard: its newest attempt.
    fn run_state(&self, world: &World, guard: usize) -> Run {
        let of_run = |g: &usize| self.guards[*g].run == self.guards[guard].run;
        let begun = |g: &usize| {
            self.guards[*g].attempt == 1 || self.guards[*g].wish.is_some_and(|w| world.asked.contains_key(&w))
        };
        let newest: Vec<usize> = (0..self.guards.len()).filter(|g| of_run(g) && begun(g)).collect();
        let attempt = newest.iter().map(|g| self.guards[*g].attempt).max().unwrap();
        let last = newest.into_iter().filter(|g| self.guards[*g].attempt == attempt);
        let started =
            if attempt == 1 { 0 } else { world.asked[&self.guards[last.clone().next().unwrap()].wish.unwrap()] };
        let ended = last.map(|g| world.guards[g].ended).collect::<Option<Vec<_>>>();
        Run { attempt, started, ended: ended.and_then(|ended| ended.into_iter().max()) }
    }

    /// Since when the owner of a claim is over, as the asking contender sees it.
    fn over_since(&self, world: &World, guard: usize, object: Object) -> Option<Tick> {
        match object.holder {
            Holder::Guard(other) if self.guards[other].run == self.guards[guard].run => {
                self.guards[guard].wish.and_then(|wish| world.asked.get(&wish).copied())
            }
            Holder::Guard(other) => {
                let run = self.run_state(world, other);
                if run.attempt > self.guards[other].attempt { Some(run.started) } else { run.ended }
            }
            Holder::Earlier | Holder::Sweep(_) => Some(0),
        }
    }

    /// The effect of a creation; what the server answers.
    fn create(&self, world: &mut World, guard: usize, plan: Plan) -> Vec<CreateAnswer> {
        let now = world.now;
        let slot = &mut world.slots[plan.number - 1];
        let standing = slot.now.map(|o| o.standing);
        let passed_over = match self.rules.election {
            Election::Lowest => false,
            Election::LowestNotWithdrawn => matches!(standing, Some(Standing::Settled(Outcome::Withdrawn, _))),
            Election::LowestLive => matches!(standing, Some(Standing::Settled(..))),
        };
        let vacant = slot.now.is_none()
            || (!self.rules.numbers_are_new && plan.from.is_some())
            || (self.primitive == Primitive::CheckRun && passed_over);
        if !vacant {
            let others = slot.now.is_some_and(|o| o.holder != Holder::Guard(guard));
            let unseen = slot.past.iter().any(|(object, until)| object.is_none() && *until >= now);
            if self.primitive == Primitive::CheckRun && others && unseen && !self.rules.lists_in_order {
                return vec![CreateAnswer::Made, CreateAnswer::Exists];
            }
            return vec![CreateAnswer::Exists];
        }
        let rerun = plan.rerun.filter(|_| self.rules.rerun_is_recorded);
        slot.set(Some(Object { holder: Holder::Guard(guard), standing: Standing::Open, rerun }), now);
        match plan.rerun {
            Some(id) if !world.granted.contains(&id) => {
                world.granted.push(id);
                world.granted.sort_unstable();
                world.done = false;
            }
            _ => world.guards[guard].again |= world.done,
        }
        if plan.cause == Cause::Takeover
            && let Some(Holder::Guard(other)) = plan.from
        {
            world.guards[guard].repeats |= world.guards[other].wrote.is_some();
        }
        vec![CreateAnswer::Made]
    }

    /// The effect of settling.
    fn settle(&self, world: &mut World, guard: usize, number: usize, outcome: Outcome, at: Tick) {
        let now = world.now;
        let in_time = self.over(world, Holder::Guard(guard)).is_none_or(|ended| now <= ended);
        let slot = &mut world.slots[number - 1];
        let Some(object) = slot.now else { return };
        if object.holder == Holder::Guard(guard) {
            slot.set(Some(Object { standing: Standing::Settled(outcome, at), ..object }), now);
            // What a presumed-dead owner says after the grace cannot bind those who went on without it.
            if outcome == Outcome::Completed && in_time {
                world.done = true;
            }
        } else if self.primitive == Primitive::Label {
            world.trespassed = true;
        }
    }

    /// Moves a contender on by what its machine says.
    fn advance(&self, world: &mut World, guard: usize, machine: Acquire, next: &Next, plan: Plan, by: Tick) {
        let step = match next {
            Next::Create => Step::Create,
            Next::Read(_) => Step::Read,
            Next::Won => {
                let mine = world.slots[plan.number - 1].now.is_some_and(|o| o.holder == Holder::Guard(guard));
                let process = &mut world.guards[guard];
                process.phase = Phase::Working { number: plan.number };
                process.again |= !mine && world.done;
                return;
            }
            Next::Lost(_) | Next::GiveUp(_) => {
                world.guards[guard].phase = if self.rules.losers_write_nothing {
                    world.guards[guard].ended.get_or_insert(world.now);
                    Phase::Ended
                } else {
                    Phase::Refused { number: plan.number }
                };
                return;
            }
        };
        world.guards[guard].phase = Phase::Acquiring { machine, step, plan, by };
    }

    fn end(world: &mut World, guard: usize) {
        let now = world.now;
        let process = &mut world.guards[guard];
        process.phase = Phase::Ended;
        process.ended.get_or_insert(now);
    }

    fn deliveries(world: &World) -> &'static [Delivery] {
        use Delivery::{Answered, Delayed, Dropped, Unanswered};
        if world.faults.lost > 0 { &[Answered, Unanswered, Dropped, Delayed] } else { &[Answered] }
    }

    fn steps(&self, world: &World) -> Vec<Action> {
        let mut steps = Vec::new();
        if world.now < self.ticks {
            let mut next = world.clone();
            next.now += 1;
            self.forget(&mut next);
            steps.push(Action { words: format!("tick {}", next.now), world: next });
        }
        self.people(world, &mut steps);
        for at in 0..world.flights.len() {
            let mut next = world.clone();
            let Flight { guard, write, .. } = next.flights.remove(at);
            let words = format!("what guard {guard} sent takes effect: {write:?}");
            match write {
                Write::Create(plan) => drop(self.create(&mut next, guard, plan)),
                Write::Settle(number, outcome, stamp) => self.settle(&mut next, guard, number, outcome, stamp),
            }
            steps.push(Action { words, world: next });
        }
        for guard in 0..self.guards.len() {
            self.guard(world, guard, &mut steps);
        }
        if self.sweeps {
            self.sweeper(world, &mut steps);
        }
        steps
    }

    /// Answers that are too old to be given and writes that are too late to take effect are gone.
    fn forget(&self, world: &mut World) {
        let oldest = self.oldest(world);
        for slot in &mut world.slots {
            slot.past.retain(|(_, until)| *until >= oldest);
        }
        let now = world.now;
        world.flights.retain(|f| f.by >= now);
    }

    fn people(&self, world: &World, steps: &mut Vec<Action>) {
        for id in self.guards.iter().filter_map(|g| g.wish) {
            if world.asked.contains_key(&id) {
                continue;
            }
            // GitHub runs a run again only after it is over.
            let mut asking = (0..self.guards.len()).filter(|g| self.guards[*g].wish == Some(id));
            let ready = asking.all(|g| {
                let (run, attempt) = self.run(g);
                let mut before = (0..self.guards.len()).filter(|b| self.run(*b).0 == run && self.run(*b).1 < attempt);
                before.all(|b| world.guards[b].ended.is_some())
            });
            if ready {
                let mut next = world.clone();
                next.asked.insert(id, world.now);
                steps.push(Action { words: format!("a person asks for it again (wish {id})"), world: next });
            }
        }
        if world.labelled.is_some() && world.allowances > 0 && world.slots.iter().all(|s| s.now.is_none()) {
            let mut next = world.clone();
            next.allowances -= 1;
            next.labelled = None;
            next.done = false;
            steps.push(Action { words: "a person takes the label off that says done".to_owned(), world: next });
        }
    }

    fn guard(&self, world: &World, guard: usize, steps: &mut Vec<Action>) {
        let process = &world.guards[guard];
        let alive = !matches!(process.phase, Phase::Idle | Phase::Ended);
        if alive && world.faults.crashes > 0 {
            let mut next = world.clone();
            next.faults.crashes -= 1;
            Self::end(&mut next, guard);
            steps.push(Action { words: format!("guard {guard} crashes"), world: next });
        }
        match &process.phase {
            Phase::Idle => self.begin(world, guard, steps),
            Phase::Acquiring { machine, step: Step::Create, plan, by } => {
                self.send_creation(world, guard, &(machine.clone(), *plan, *by), steps);
                Self::deadline(world, guard, steps);
            }
            Phase::Acquiring { machine, step: Step::Read, plan, by } => {
                let slot = &world.slots[plan.number - 1];
                for (seen, _) in slot.answers(world.now, world.now) {
                    let mut next = world.clone();
                    let mut machine = machine.clone();
                    let what = machine.read(seen.map(|object| claim(self, plan.number, object)));
                    let hidden = seen.is_none() && matches!(what, Next::Read(_));
                    let what = if hidden && !self.rules.hidden_is_not_free { Next::Won } else { what };
                    self.advance(&mut next, guard, machine, &what, *plan, *by);
                    let words = format!("guard {guard} reads {} and sees {}", plan.number, shown(seen));
                    steps.push(Action { words, world: next });
                }
                Self::deadline(world, guard, steps);
            }
            Phase::Working { number } => self.work(world, guard, *number, steps),
            Phase::Refused { number } => {
                let mut next = world.clone();
                self.settle(&mut next, guard, *number, Outcome::Withdrawn, world.now);
                Self::end(&mut next, guard);
                steps.push(Action { words: format!("guard {guard} settles {number}, which it lost"), world: next });
            }
            Phase::Ended => {}
        }
    }

    fn begin(&self, world: &World, guard: usize, steps: &mut Vec<Action>) {
        let this = &self.guards[guard];
        if this.wish.is_some_and(|id| !world.asked.contains_key(&id)) {
            return;
        }
        // Runs that differ in nothing but their id begin in the order of their ids.
        let alike = |g: usize| {
            let other = &self.guards[g];
            let alone = |r: u64| self.guards.iter().filter(|g| g.run == r).count() == 1;
            other.wish == this.wish && alone(other.run) && alone(this.run)
        };
        if (0..guard).any(|g| alike(g) && world.guards[g].phase == Phase::Idle) {
            return;
        }
        for (plan, since) in self.plans(world, guard) {
            let machine = Acquire::new(self.owner(guard));
            self.send_creation(world, guard, &(machine, plan, since + self.rules.read_age), steps);
        }
    }

    /// The command's deadline is near and it says `defer`.
    fn deadline(world: &World, guard: usize, steps: &mut Vec<Action>) {
        let mut next = world.clone();
        Self::end(&mut next, guard);
        steps.push(Action { words: format!("guard {guard} gives up: the deadline is near"), world: next });
    }

    fn send_creation(
        &self,
        world: &World,
        guard: usize,
        (machine, plan, by): &(Acquire, Plan, Tick),
        steps: &mut Vec<Action>,
    ) {
        if world.now > *by {
            return;
        }
        for delivery in Self::deliveries(world) {
            let mut sent = world.clone();
            let answers = match delivery {
                Delivery::Answered => self.create(&mut sent, guard, *plan),
                Delivery::Unanswered => {
                    self.create(&mut sent, guard, *plan);
                    vec![CreateAnswer::Unknown]
                }
                Delivery::Dropped => vec![CreateAnswer::Unknown],
                Delivery::Delayed => {
                    sent.flights.push(Flight { guard, by: *by, write: Write::Create(*plan) });
                    vec![CreateAnswer::Unknown]
                }
            };
            sent.faults.lost -= u8::from(*delivery != Delivery::Answered);
            for answer in answers {
                let mut next = sent.clone();
                let mut machine = machine.clone();
                let what = machine.created(answer);
                self.advance(&mut next, guard, machine, &what, *plan, *by);
                let words = format!(
                    "guard {guard} creates {} ({}): {delivery:?}, {answer:?}",
                    plan.number,
                    plan.cause.as_str()
                );
                steps.push(Action { words, world: next });
            }
        }
    }

    fn work(&self, world: &World, guard: usize, number: usize, steps: &mut Vec<Action>) {
        let process = &world.guards[guard];
        if process.ended.is_none() && world.faults.presumed > 0 {
            let mut next = world.clone();
            next.faults.presumed -= 1;
            next.guards[guard].ended = Some(world.now);
            let words = format!("GitHub takes the run of guard {guard} for over; its process goes on");
            steps.push(Action { words, world: next });
        }
        let may_write = self.outcomes.contains(&Outcome::FailedAfterWrite);
        if process.wrote.is_none() && process.ended.is_none() && may_write {
            let mut next = world.clone();
            next.guards[guard].wrote = Some(world.now);
            steps.push(Action { words: format!("the agent of guard {guard} writes a comment"), world: next });
        }
        // `finish` reads its own claim first, as old as a read may be.
        let own = world.slots[number - 1].answers(self.oldest(world), world.now).into_iter();
        let since = own.filter(|(o, _)| o.is_some_and(|o| o.holder == Holder::Guard(guard))).map(|(_, at)| at).max();
        let Some(since) = since else {
            let mut next = world.clone();
            Self::end(&mut next, guard);
            steps.push(Action { words: format!("guard {guard} finds its claim {number} gone"), world: next });
            return;
        };
        for outcome in &self.outcomes {
            let fits = match outcome {
                Outcome::FailedAfterWrite => process.wrote.is_some(),
                Outcome::Completed => true,
                _ => process.wrote.is_none(),
            };
            if !fits {
                continue;
            }
            // Only a rerun asks when a claim was settled.
            let early = u8::from(self.rules.clocks_lag);
            let at = if world.asked.is_empty() && !self.has_wishes() { 0 } else { world.now.saturating_sub(early) };
            let mut next = world.clone();
            self.settle(&mut next, guard, number, *outcome, at);
            Self::end(&mut next, guard);
            steps.push(Action { words: format!("guard {guard} settles {number} {outcome}"), world: next });
            if world.faults.lost > 0 {
                let mut next = world.clone();
                next.faults.lost -= 1;
                let by = if process.ended.is_some() { since + self.rules.read_age } else { world.now };
                next.flights.push(Flight { guard, by, write: Write::Settle(number, *outcome, at) });
                Self::end(&mut next, guard);
                let words = format!("guard {guard} settles {number} {outcome}, which is delayed, and ends");
                steps.push(Action { words, world: next });
            }
        }
    }

    fn has_wishes(&self) -> bool {
        self.guards.iter().any(|g| g.wish.is_some())
    }

    fn sweeper(&self, world: &World, steps: &mut Vec<Action>) {
        let mut push = |words: String, next: World| {
            let action = Action { words, world: next };
            if action.world != *world && !steps.contains(&action) {
                steps.push(action);
            }
        };
        let now = world.now;
        for (view, since) in self.views(world) {
            let seen = |number: usize| view[number - 1].unwrap();
            match self.memo.sweep(self, &view, now) {
                Sweeps::Nothing => {}
                Sweeps::Hold(number) => {
                    if number > world.slots.len() || world.slots[number - 1].now.is_some() {
                        continue;
                    }
                    let stamps = match self.rules.stamp {
                        Stamp::There => now..=now,
                        Stamp::Sent => since..=now,
                    };
                    for at in stamps {
                        let mut next = world.clone();
                        // The outcome is kept elsewhere before a key is swept.
                        let completed = |o: &Object| matches!(o.standing, Standing::Settled(Outcome::Completed, _));
                        if view.iter().flatten().any(completed) {
                            next.labelled.get_or_insert(now);
                        }
                        let standing = Standing::Sweep { cleared: false, at };
                        let claim = Object { holder: Holder::Sweep(now), standing, rerun: None };
                        next.slots[number - 1].set(Some(claim), now);
                        push(format!("a sweep takes {number} (stamped {at})"), next);
                    }
                }
                // Whoever deletes may stop after each of them.
                Sweeps::Delete(lower) => {
                    for number in lower {
                        let mut next = world.clone();
                        if self.delete(&mut next, number, seen(number)) {
                            push(format!("a sweep deletes {number}"), next);
                        }
                    }
                }
                Sweeps::Clear(number) => {
                    let mut next = world.clone();
                    self.clear(&mut next, number, seen(number), now);
                    push(format!("a sweep writes into {number} that the lower are gone"), next);
                }
                Sweeps::Drop(number) => {
                    let mut next = world.clone();
                    if self.delete(&mut next, number, seen(number)) {
                        next.swept = true;
                        push(format!("a sweep deletes {number}, its own"), next);
                    }
                }
            }
        }
    }

    /// Deletes what was seen under a number; whether anything was.
    fn delete(&self, world: &mut World, number: usize, seen: Object) -> bool {
        let now = world.now;
        let slot = &mut world.slots[number - 1];
        let Some(object) = slot.now else { return false };
        let same = match (self.rules.naming, self.primitive) {
            (Naming::Name, _) => true,
            (Naming::Id, Primitive::Ref) => object == seen,
            (Naming::Id, _) => object.holder == seen.holder,
        };
        if same {
            slot.set(None, now);
        }
        same
    }

    fn clear(&self, world: &mut World, number: usize, seen: Object, at: Tick) {
        let now = world.now;
        let slot = &mut world.slots[number - 1];
        let Some(object) = slot.now else { return };
        let same = match self.primitive {
            Primitive::Ref => object == seen,
            _ => object.holder == seen.holder,
        };
        if same {
            slot.set(Some(Object { standing: Standing::Sweep { cleared: true, at }, ..object }), now);
        } else if self.primitive == Primitive::Label {
            world.trespassed = true;
        }
    }

    fn live_proceeds(world: &World) -> usize {
        let live = |p: &&Process| matches!(p.phase, Phase::Working { .. }) && p.ended.is_none();
        world.guards.iter().filter(live).count()
    }

    fn working(world: &World) -> impl Iterator<Item = (usize, &Process, usize)> {
        world.guards.iter().enumerate().filter_map(|(at, p)| match p.phase {
            Phase::Working { number } => Some((at, p, number)),
            _ => None,
        })
    }
}

fn shown(seen: Option<Object>) -> String {
    seen.map_or_else(|| "nothing".to_owned(), |o| format!("{:?} {:?}", o.holder, o.standing))
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let process = Process { phase: Phase::Idle, ended: None, wrote: None, again: false, repeats: false };
        let mut guards = vec![process; self.guards.len()];
        if self.first_is_presumed_dead {
            guards[0].phase = Phase::Working { number: 1 };
            guards[0].ended = Some(0);
        }
        let mut slots = self.start.clone();
        slots.resize(self.numbers, Slot::default());
        let done = slots
            .iter()
            .any(|s| matches!(s.now, Some(Object { standing: Standing::Settled(Outcome::Completed, _), .. })));
        vec![World {
            // A run that was presumed dead before the start was so in an earlier tick.
            now: Tick::from(self.first_is_presumed_dead),
            slots,
            guards,
            flights: Vec::new(),
            asked: BTreeMap::new(),
            labelled: None,
            allowances: self.allowances,
            faults: self.faults,
            done,
            granted: Vec::new(),
            trespassed: false,
            swept: false,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.extend(self.steps(world));
    }

    fn next_state(&self, _: &World, action: Action) -> Option<World> {
        Some(action.world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(ONE_PROCEED, |_, world: &World| Self::live_proceeds(world) <= 1),
            Property::always(OWNER_WRITES, |_, world: &World| !world.trespassed),
            Property::always(DONE_STAYS, |_, world: &World| !Self::working(world).any(|(_, p, _)| p.again)),
            Property::always(NO_REPEAT, |_, world: &World| !Self::working(world).any(|(_, p, _)| p.repeats)),
        ];
        properties.extend(self.sometimes.iter().map(|what| match what {
            Sometimes::CrashRecovered => Property::sometimes("a crash is recovered", |model: &Self, world: &World| {
                world.faults.crashes < model.faults.crashes
                    && world.slots.windows(2).any(|pair| {
                        pair[0].now.is_some_and(|o| o.standing == Standing::Open)
                            && pair[1]
                                .now
                                .is_some_and(|o| matches!(o.standing, Standing::Settled(Outcome::Completed, _)))
                    })
            }),
            Sometimes::WinsAfterAbandoned => {
                Property::sometimes("a contender wins after an abandoned claim", |_, world: &World| {
                    Self::live_proceeds(world) == 1
                        && Self::working(world).any(|(_, p, number)| {
                            p.ended.is_none()
                                && number > 1
                                && world.slots[number - 2].now.is_some_and(|o| o.standing == Standing::Open)
                        })
                })
            }
            Sometimes::SweptAndUsedAgain => Property::sometimes("a key is swept and used again", |_, world: &World| {
                world.swept && Self::working(world).any(|(_, _, number)| number == 1)
            }),
            Sometimes::LateFinish => Property::sometimes("a presumed-dead owner finishes late", |_, world: &World| {
                world.slots.windows(2).any(|pair| {
                    pair[0].now.is_some_and(|o| matches!(o.standing, Standing::Settled(Outcome::Completed, _)))
                        && pair[1].now.is_some_and(|o| o.standing == Standing::Open)
                }) && world.faults.presumed == 0
            }),
            Sometimes::RerunProceeds => Property::sometimes("a rerun starts done work again", |_, world: &World| {
                Self::working(world)
                    .any(|(_, _, number)| world.slots[number - 1].now.is_some_and(|o| o.rerun.is_some()))
            }),
            Sometimes::LostAnswerWon => {
                Property::sometimes("a claim is won although its answer was lost", |model: &Self, world: &World| {
                    world.faults.lost < model.faults.lost && Self::live_proceeds(world) == 1
                })
            }
        }));
        properties
    }
}
