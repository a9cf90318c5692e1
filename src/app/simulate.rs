//! `simulate`: runs a scenario against the embedded GitHub. Each run of a guarded workflow is the real `check`, a
//! stand-in for the agent, and the real `finish`.

mod act;
mod chaos;
mod judge;
#[cfg(feature = "serve")]
pub mod serve;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use super::World;
use super::check::{CheckInput, check};
use super::command::Printed;
use super::finish::{FinishInput, finish};
use super::report::{CheckReport, FinishReport};
use crate::cli::Format;
use crate::core::claim::{Cause, Nonce};
use crate::core::decision::{Reason, Verdict};
use crate::core::ended::StepOutcome;
use crate::core::execution::{AgentResult, Execution};
use crate::core::facts::Permission;
use crate::core::key::{Key, Task};
use crate::core::trigger::RunContext;
use crate::output::terminal::Style;
use crate::output::timeline;
use crate::ports::{Clock, RepoName};
use crate::sim::port::{Hook, InProcess};
use crate::sim::scenario::{
    Act, Agent, AgentEnd, AgentSays, Delivery, Expected, GUARD_TOKEN, Reference, Scenario, Step,
};
use crate::sim::schedule::{Order, Scheduler, TooManyTurns};
use crate::sim::webhook::{Event, Webhook};
use crate::sim::{CallInfo, Fault, State};

use chaos::Chaos;
pub use chaos::Counts;
use judge::Judge;

/// The story that runs where no file is named, and its name.
pub const BUILT_IN: (&str, &str) =
    ("examples/scenarios/issue-731.yml", include_str!("../../examples/scenarios/issue-731.yml"));

/// The host of every scenario.
const HOST: &str = "github.com";

/// The account of the stand-in for the agent.
const AGENT: &str = "claude[bot]";

/// The account whose events start no workflow: they are made with the built-in token.
const BUILT_IN_TOKEN: &str = "github-actions[bot]";

/// The id of the first run; later ones count up.
const FIRST_RUN: u64 = 8_812_345;

/// After how long GitHub ends every job.
const LONGEST_JOB: TimeDelta = TimeDelta::hours(7);

/// How long `finish` may take.
const FINISH_DEADLINE: TimeDelta = TimeDelta::seconds(60);

/// More turns than any scenario needs.
const MOST_TURNS: u64 = 200_000;

/// More runs than any scenario needs: one that reaches it feeds itself.
const MOST_RUNS: usize = 1000;

/// What happened in a scenario.
#[derive(Clone, Debug)]
pub struct Story {
    /// The scenario.
    pub scenario: Scenario,
    /// What happened on GitHub, in order.
    pub entries: Vec<Entry>,
    /// The runs of guarded workflows, in the order in which they began.
    pub runs: Vec<RunStory>,
    /// How many expectations hold.
    pub held: usize,
    /// Those that do not.
    pub failures: Vec<Failure>,
    /// How many requests the runs made of GitHub.
    pub requests: usize,
}

impl Story {
    /// Whether everything came as expected.
    pub fn holds(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Something that happened at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: DateTime<Utc>,
    /// What.
    pub what: What,
    /// The runs that it started, by their place in [`Story::runs`].
    pub runs: Vec<usize>,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Somebody did something on GitHub.
    Act {
        /// Who; empty where GitHub itself did it.
        by: String,
        /// What, in words that follow the name.
        words: String,
        /// Something that is worth to know about it.
        note: Option<String>,
    },
    /// An agent ended.
    Agent {
        /// Its run, by its place in [`Story::runs`].
        run: usize,
        /// How, in words that follow "the agent".
        words: String,
    },
}

/// A run of a guarded workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct RunStory {
    /// Its id.
    pub id: u64,
    /// Its attempt.
    pub attempt: u32,
    /// The event that started it.
    pub event: Event,
    /// The workflow, by its place in the scenario.
    pub workflow: usize,
    /// Its task.
    pub task: Task,
    /// When it began.
    pub began: DateTime<Utc>,
    /// When the guard step had its verdict.
    pub decided: Option<DateTime<Utc>>,
    /// What the guard step said; `None`: it never came to say anything.
    pub report: Option<CheckReport>,
    /// Why its claim was opened, if it has one.
    pub cause: Option<Cause>,
    /// What `finish` said.
    pub finish: Option<FinishReport>,
    /// How the agent of this run behaves.
    says: AgentSays,
    /// Whether its agent has written something.
    wrote: bool,
}

impl RunStory {
    /// Whether its agent was started.
    pub fn started(&self) -> bool {
        self.report.as_ref().is_some_and(CheckReport::proceeds)
    }

    /// Verdict and reason, or verdict and cause, in two words.
    pub fn in_words(&self) -> String {
        match &self.report {
            None => "no verdict".to_owned(),
            Some(report) => match (report.reason, self.cause) {
                (Some(reason), _) => format!("{} {reason}", report.verdict),
                (None, Some(cause)) => format!("{} {}", report.verdict, cause.as_str()),
                (None, None) => report.verdict.to_string(),
            },
        }
    }
}

/// An expectation that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The line of the file; 0 where it is no line's.
    pub line: usize,
    /// What was expected.
    pub expected: String,
    /// What came.
    pub came: String,
}

/// Runs that one step, or one comment of an agent, started, and what is expected of them.
#[derive(Clone, Debug)]
struct Group {
    what: String,
    expected: Expected,
    runs: Vec<usize>,
}

/// An agent at work.
struct AtWork {
    run: usize,
    key: Key,
    wedged: bool,
}

/// What is written down while a scenario runs.
#[derive(Default)]
struct Book {
    entries: Vec<Entry>,
    runs: Vec<RunStory>,
    groups: Vec<Group>,
    /// The events of each step.
    events: BTreeMap<usize, Vec<Event>>,
    /// The comments that have names.
    comments: BTreeMap<String, u64>,
    at_work: Vec<AtWork>,
    /// The runs that were cancelled.
    cancelled: BTreeMap<usize, Rc<Cell<bool>>>,
    failures: Vec<Failure>,
    /// The events that came to workflows, each once, with the step that they are of.
    came: Vec<(Event, usize)>,
}

struct Engine {
    scenario: Scenario,
    clock: Scheduler,
    state: Rc<RefCell<State>>,
    book: RefCell<Book>,
    /// What a seed makes of it; none in a scenario that runs as it is written.
    chaos: Option<RefCell<Chaos>>,
}

/// Runs a scenario to its end.
///
/// # Errors
///
/// It does not come to an end.
pub fn run(scenario: &Scenario, order: Order) -> Result<Story, TooManyTurns> {
    let engine = Engine::new(scenario, order, None);
    engine.clock.spawn("the timeline", Rc::clone(&engine).drive());
    engine.clock.run(MOST_TURNS)?;
    Ok(engine.story())
}

/// Runs a scenario under a seed: see the module `chaos`. Its failures are the promises that did not hold, not the scenario's own
/// expectations, which are about what happens when nothing goes wrong.
///
/// # Errors
///
/// It does not come to an end.
pub fn run_seed(scenario: &Scenario, seed: u64) -> Result<(Story, Counts), TooManyTurns> {
    let engine = Engine::new(scenario, Order::Seed(seed), Some(Chaos::new(seed)));
    engine.clock.spawn("the timeline", Rc::clone(&engine).drive());
    engine.clock.run(MOST_TURNS)?;
    engine.come_to_rest()?;
    let counts = engine.chaos.as_ref().map(|chaos| chaos.borrow().counts).unwrap_or_default();
    let mut story = engine.story();
    let nowhere = story.failures.iter().filter(|failure| failure.line == 0).cloned();
    (story.failures, story.held) = (nowhere.collect(), 0);
    Ok((story, counts))
}

/// Runs a scenario under many seeds, from the first one on, until a promise does not hold; in words.
pub fn explore(scenario: &Scenario, first: u64, seeds: u64) -> Explored {
    let mut explored = Explored { seeds: 0, counts: Counts::default(), broken: None };
    for seed in (0..seeds).map(|n| first.wrapping_add(n)) {
        explored.seeds += 1;
        match run_seed(scenario, seed) {
            Ok((story, counts)) => {
                explored.counts.add(&counts);
                if !story.holds() {
                    explored.broken = Some((seed, Ok(Box::new(story))));
                    break;
                }
            }
            Err(endless) => {
                explored.broken = Some((seed, Err(endless)));
                break;
            }
        }
    }
    explored
}

/// What many seeds showed.
#[derive(Debug)]
pub struct Explored {
    /// How many were run.
    pub seeds: u64,
    /// What happened in all of them.
    pub counts: Counts,
    /// The first seed under which a promise did not hold, with its story.
    pub broken: Option<(u64, Result<Box<Story>, TooManyTurns>)>,
}

impl Engine {
    /// The stage before the first step.
    fn new(scenario: &Scenario, order: Order, chaos: Option<Chaos>) -> Rc<Self> {
        let (mut state, comments) = scenario.github();
        let clock = Scheduler::new(scenario.start, order);
        if chaos.is_some() {
            state.oldest_read = Some(chaos::OLDEST_READ);
        }
        let groups = scenario.timeline.iter().map(|step| Group {
            what: format!("the step on line {}", step.line),
            expected: step.expect.clone(),
            runs: Vec::new(),
        });
        let book = Book { comments, groups: groups.collect(), ..Book::default() };
        Rc::new(Self {
            scenario: scenario.clone(),
            clock,
            state: Rc::new(RefCell::new(state)),
            book: RefCell::new(book),
            chaos: chaos.map(RefCell::new),
        })
    }

    /// What the seed says, if there is one.
    fn dice<T>(&self, ask: impl FnOnce(&mut Chaos) -> T) -> Option<T> {
        self.chaos.as_ref().map(|chaos| ask(&mut chaos.borrow_mut()))
    }

    /// Lets faults stop and GitHub end every run, and brings every event once more, twice over: what was wanted is then
    /// done, or a person is asked to look.
    fn come_to_rest(self: &Rc<Self>) -> Result<(), TooManyTurns> {
        self.dice(|chaos| chaos.strikes = false);
        for round in 0..3 {
            let engine = Rc::clone(self);
            self.clock.spawn("the end", async move {
                engine.clock.sleep_until(engine.clock.now() + LONGEST_JOB).await;
                engine.end_all_runs();
                // Runs that ended just now are not taken over yet.
                engine.clock.sleep_until(engine.clock.now() + TimeDelta::minutes(5)).await;
                let came = engine.book.borrow().came.clone();
                for (event, group) in came {
                    let entry = engine.enter("GitHub", format!("delivers {} once more", event.in_words()), None);
                    engine.arrive(&event, group, entry, &AgentSays::default());
                    engine.clock.sleep_until(engine.clock.now() + TimeDelta::hours(1)).await;
                }
            });
            let first = self.book.borrow().runs.len();
            self.clock.run(MOST_TURNS)?;
            if round == 2 {
                self.at_rest(first);
            }
        }
        Ok(())
    }

    fn end_all_runs(&self) {
        let runs: Vec<u64> = self.book.borrow().runs.iter().map(|run| run.id).collect();
        for id in runs.into_iter().filter(|id| !self.has_ended(*id)) {
            self.github(|state| state.finish_run(&self.scenario.repository, id, "cancelled"));
        }
        self.book.borrow_mut().at_work.clear();
    }

    /// Nothing is left undone without a person being told: what the runs since `first` say.
    fn at_rest(&self, first: usize) {
        let book = self.book.borrow();
        let mut wrong = Vec::new();
        let mut reviews = 0;
        for run in book.runs.iter().skip(first) {
            let Some(report) = &run.report else {
                wrong.push(format!("run {} came to no verdict though nothing went wrong", run.id));
                continue;
            };
            let reason = report.reason;
            let settled = matches!(report.verdict, Verdict::Skip | Verdict::Review)
                && !matches!(reason, Some(Reason::InProgress | Reason::LostRace));
            // What GitHub's payload or the policy settles for good, whatever struck before.
            let put_off_by_policy = matches!(
                reason,
                Some(
                    Reason::BudgetHour
                        | Reason::BudgetDay
                        | Reason::BudgetCost
                        | Reason::Paused
                        | Reason::BadPayload
                        | Reason::MissingNumber
                        | Reason::AmbiguousResource
                        | Reason::PolicyInvalid
                        | Reason::ResourceMissing
                        | Reason::ResourceMoved
                )
            );
            reviews += u64::from(report.verdict == Verdict::Review);
            if !settled && !put_off_by_policy {
                wrong.push(format!(
                    "long after the last fault, {} is {}: {}",
                    run.event.in_words(),
                    run.in_words(),
                    report.message
                ));
            }
        }
        drop(book);
        self.dice(|chaos| chaos.counts.reviews += reviews);
        for words in wrong {
            self.trouble(0, "work that is done, or a person who is asked", words);
        }
    }

    /// GitHub at the present time.
    fn github<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.borrow_mut();
        state.now = self.clock.now();
        act(&mut state)
    }

    async fn drive(self: Rc<Self>) {
        for (place, step) in self.scenario.timeline.iter().enumerate() {
            if step.at > self.clock.now() {
                self.clock.sleep_until(step.at).await;
            }
            self.step(place, step);
        }
    }

    fn step(self: &Rc<Self>, place: usize, step: &Step) {
        match &step.act {
            Act::Rerun(reference) => self.rerun(place, step, reference),
            Act::Cancel(reference) => self.cancel(step, reference),
            Act::Again(reference) => {
                let events = self.events_of(reference);
                let names: Vec<String> = events.iter().map(Event::in_words).collect();
                let words = format!("delivers {} once more", names.join(" and "));
                let entry = self.enter("GitHub", words, None);
                self.deliver(&events, place, entry, &step.delivery, &step.agent);
            }
            _ => {
                let (words, mut events) = self.act(step);
                for event in &mut events {
                    event.change(step.event.as_deref(), step.payload.as_ref());
                }
                if let (Act::Comment { .. }, Some(name)) = (&step.act, &step.id)
                    && let Some(id) = events.first().and_then(Event::comment_id)
                {
                    self.book.borrow_mut().comments.insert(name.clone(), id);
                }
                let note = note(&step.delivery, &events);
                let by = if step.by.is_empty() { "somebody" } else { &step.by };
                let entry = self.enter(by, words, note);
                self.book.borrow_mut().events.insert(place, events.clone());
                if step.by != BUILT_IN_TOKEN {
                    self.deliver(&events, place, entry, &step.delivery, &step.agent);
                }
            }
        }
    }

    fn enter(&self, by: &str, words: String, note: Option<String>) -> usize {
        let mut book = self.book.borrow_mut();
        let what = What::Act { by: by.to_owned(), words, note };
        book.entries.push(Entry { at: self.clock.now(), what, runs: Vec::new() });
        book.entries.len() - 1
    }

    fn trouble(&self, line: usize, expected: impl Into<String>, came: impl Into<String>) {
        self.book.borrow_mut().failures.push(Failure { line, expected: expected.into(), came: came.into() });
    }

    fn events_of(&self, reference: &Reference) -> Vec<Event> {
        let book = self.book.borrow();
        let events = book.events.get(&reference.step).cloned().unwrap_or_default();
        events.into_iter().filter(|e| reference.action.as_ref().is_none_or(|a| *a == e.action)).collect()
    }

    /// Does on GitHub what the step says; gives it in words, and the events that GitHub makes of it.
    fn act(&self, step: &Step) -> (String, Vec<Event>) {
        let repo = self.scenario.repository.as_str();
        let comment = |name: &str| self.book.borrow().comments.get(name).copied().unwrap_or_default();
        self.github(|state| act::act(state, repo, &step.by, &step.act, step.event.as_deref(), comment))
    }

    /// Hands events to the workflows, now or later.
    fn deliver(self: &Rc<Self>, events: &[Event], group: usize, entry: usize, how: &Delivery, says: &AgentSays) {
        if how.never {
            return;
        }
        let times = if how.twice || self.dice(Chaos::twice) == Some(true) { 2 } else { 1 };
        for event in events {
            for _ in 0..times {
                match how.late {
                    None => self.arrive(event, group, entry, says),
                    Some(late) => {
                        let (engine, event, says) = (Rc::clone(self), event.clone(), says.clone());
                        let made = self.clock.now();
                        self.clock.spawn(format!("late {}", event.in_words()), async move {
                            engine.clock.sleep_until(made + late).await;
                            let words = format!(
                                "delivers {} of {}, {} late",
                                event.in_words(),
                                made.format("%H:%M"),
                                crate::core::gates::in_words(late)
                            );
                            let entry = engine.enter("GitHub", words, None);
                            engine.arrive(&event, group, entry, &says);
                        });
                    }
                }
            }
        }
    }

    /// Starts the runs that an event starts.
    fn arrive(self: &Rc<Self>, event: &Event, group: usize, entry: usize, says: &AgentSays) {
        {
            let mut book = self.book.borrow_mut();
            if self.chaos.is_some() && !book.came.iter().any(|(came, _)| came == event) {
                book.came.push((event.clone(), group));
            }
        }
        for (place, workflow) in self.scenario.workflows.iter().enumerate() {
            if !workflow.wants(&event.name, &event.action) {
                continue;
            }
            let begun = self.book.borrow().runs.iter().filter(|run| run.attempt == 1).count();
            if begun == MOST_RUNS {
                self.trouble(0, format!("at most {MOST_RUNS} runs"), "more: the scenario feeds itself");
                return;
            }
            let id = FIRST_RUN + u64::try_from(begun).unwrap_or(u64::MAX);
            let actor = sender(event);
            self.github(|state| {
                state.add_run(&self.scenario.repository, id, &event.name, &actor);
                state.edit_run(&self.scenario.repository, id, |run| run.name.clone_from(&workflow.name));
            });
            self.begin(event, place, id, 1, group, entry, says, actor);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "each is one plain part of a run, and this is its one constructor")]
    fn begin(
        self: &Rc<Self>,
        event: &Event,
        workflow: usize,
        id: u64,
        attempt: u32,
        group: usize,
        entry: usize,
        says: &AgentSays,
        actor: String,
    ) {
        let Some(task) = self.scenario.workflows.get(workflow).map(|w| w.task.clone()) else { return };
        let cancelled = Rc::new(Cell::new(false));
        let mut book = self.book.borrow_mut();
        let place = book.runs.len();
        book.runs.push(RunStory {
            id,
            attempt,
            event: event.clone(),
            workflow,
            task,
            began: self.clock.now(),
            decided: None,
            report: None,
            cause: None,
            finish: None,
            says: says.clone(),
            wrote: false,
        });
        if let Some(entry) = book.entries.get_mut(entry) {
            entry.runs.push(place);
        }
        if let Some(group) = book.groups.get_mut(group) {
            group.runs.push(place);
        }
        book.cancelled.insert(place, Rc::clone(&cancelled));
        let job = Box::pin(Rc::clone(self).job(place, actor));
        drop(book);
        self.clock.spawn(format!("run {id}"), Cancellable { cancelled, job });
        if let Some(after) = self.dice(Chaos::rerun).flatten() {
            self.run_again_later(place, after);
        }
    }

    /// A person with write permission runs it again after a while, if it has ended by then.
    fn run_again_later(self: &Rc<Self>, place: usize, after: TimeDelta) {
        let person = self.scenario.people.iter().find(|(_, permission)| *permission >= Permission::Write);
        let Some((person, _)) = person.cloned() else { return };
        let (engine, at) = (Rc::clone(self), self.clock.now() + after);
        self.clock.spawn(format!("a re-run by {person}"), async move {
            engine.clock.sleep_until(at).await;
            let repo = engine.scenario.repository.clone();
            let newest = {
                let book = engine.book.borrow();
                let Some(first) = book.runs.get(place) else { return };
                book.runs.iter().rev().find(|run| run.id == first.id).cloned()
            };
            let Some(run) = newest else { return };
            if !engine.has_ended(run.id) {
                return;
            }
            let attempt = engine.github(|state| state.rerun(&repo, run.id, &person)).unwrap_or(run.attempt + 1);
            let entry = engine.enter(&person, format!("re-runs run {}", run.id), None);
            engine.begin(&run.event, run.workflow, run.id, attempt, usize::MAX, entry, &run.says, person);
        });
    }

    fn has_ended(&self, run: u64) -> bool {
        let state = self.state.borrow();
        let found = state.repo(&self.scenario.repository).and_then(|repo| repo.runs.get(&run));
        found.is_some_and(|found| found.status == "completed")
    }

    /// A person re-runs a run of an earlier step.
    fn rerun(self: &Rc<Self>, place: usize, step: &Step, reference: &Reference) {
        let Some(run) = self.run_of(step, reference) else { return };
        if self.chaos.is_some() && !self.has_ended(run.id) {
            // GitHub runs nothing again that still runs, and under a seed anything may still run.
            return;
        }
        let attempt = self.github(|state| state.rerun(&self.scenario.repository, run.id, &step.by));
        let attempt = attempt.unwrap_or(run.attempt + 1);
        let entry = self.enter(&step.by, format!("re-runs run {}", run.id), None);
        self.begin(&run.event, run.workflow, run.id, attempt, place, entry, &step.agent, step.by.clone());
    }

    /// A person cancels a run of an earlier step.
    fn cancel(&self, step: &Step, reference: &Reference) {
        let Some(run) = self.run_of(step, reference) else { return };
        self.github(|state| state.finish_run(&self.scenario.repository, run.id, "cancelled"));
        let mut book = self.book.borrow_mut();
        let places: Vec<usize> =
            (0..book.runs.len()).filter(|p| book.runs.get(*p).is_some_and(|r| r.id == run.id)).collect();
        for place in &places {
            if let Some(flag) = book.cancelled.get(place) {
                flag.set(true);
            }
        }
        book.at_work.retain(|agent| !places.contains(&agent.run));
        drop(book);
        self.enter(&step.by, format!("cancels run {}", run.id), None);
    }

    /// The newest run of an earlier step.
    fn run_of(&self, step: &Step, reference: &Reference) -> Option<RunStory> {
        let book = self.book.borrow();
        let group = book.groups.get(reference.step)?;
        let fits = |run: &&RunStory| reference.action.as_ref().is_none_or(|a| *a == run.event.action);
        let first = group.runs.iter().filter_map(|place| book.runs.get(*place)).find(fits);
        let newest = first.and_then(|first| book.runs.iter().rev().find(|run| run.id == first.id)).cloned();
        drop(book);
        if newest.is_none() {
            self.trouble(step.line, "a run of that earlier step", "that step has started none");
        }
        newest
    }

    fn input(&self, run: &RunStory, actor: String) -> Option<CheckInput> {
        let workflow = self.scenario.workflows.get(run.workflow)?;
        Some(CheckInput {
            event_name: run.event.name.clone(),
            payload: run.event.payload.clone(),
            host: HOST.to_owned(),
            run: RunContext { run: run.id, attempt: run.attempt, triggering_actor: Some(actor) },
            task: workflow.task.clone(),
            ledger: workflow.inputs.ledger,
            config: None,
            anyone: workflow.inputs.anyone,
            paused: workflow.inputs.paused,
            dry_run: false,
            on_error: workflow.inputs.on_error,
            deadline: workflow.inputs.deadline,
            wait: TimeDelta::zero(),
            resume: None,
        })
    }

    /// GitHub as one run's token sees it, where every request is a turn.
    fn face(self: &Rc<Self>, place: usize) -> InProcess {
        let engine = Rc::downgrade(self);
        let hook: Hook = Rc::new(move |call| {
            let (engine, call) = (engine.clone(), call.clone());
            Box::pin(async move {
                let engine = engine.upgrade()?;
                engine.clock.turn().await;
                engine.state.borrow_mut().now = engine.clock.now();
                engine.strike(place, &call)
            })
        });
        InProcess::new(Rc::clone(&self.state), GUARD_TOKEN).with_hook(hook)
    }

    /// What strikes a request of a run under this seed. A run that dies is ended by GitHub a while later.
    fn strike(self: &Rc<Self>, place: usize, call: &CallInfo) -> Option<Fault> {
        let run = self.book.borrow().runs.get(place).map(|run| (run.id, run.attempt))?;
        let repo = &self.scenario.repository;
        if let Some(words) = chaos::foreign_write(&self.state.borrow(), repo, call, run) {
            self.trouble(0, "a claim is written by its owner only", words);
        }
        let fault = self.dice(|chaos| chaos.fault(call))??;
        self.enter("GitHub", format!("strikes run {} at {call}: {fault:?}", run.0), None);
        if matches!(fault, Fault::Crash { .. }) {
            let at = self.clock.now() + self.dice(Chaos::noticed).unwrap_or_default();
            let engine = Rc::clone(self);
            self.book.borrow_mut().at_work.retain(|agent| agent.run != place);
            self.clock.spawn(format!("the end of run {}", run.0), async move {
                engine.clock.sleep_until(at).await;
                let dead = engine.book.borrow().runs.get(place).cloned();
                let still = dead.filter(|dead| {
                    let state = engine.state.borrow();
                    let found = state.repo(&engine.scenario.repository).and_then(|repo| repo.runs.get(&dead.id));
                    found.is_some_and(|found| found.attempt == dead.attempt && found.status != "completed")
                });
                if let Some(dead) = still {
                    engine.conclude(&dead, "failure");
                }
            });
        }
        Some(fault)
    }

    /// The job of one run: guard, agent, finish.
    async fn job(self: Rc<Self>, place: usize, actor: String) {
        let Some(run) = self.book.borrow().runs.get(place).cloned() else { return };
        let Some(input) = self.input(&run, actor) else { return };
        let Some(workflow) = self.scenario.workflows.get(run.workflow) else { return };
        let github = self.face(place);
        let nonce = Nonce::from_bits(run.id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(run.attempt));
        let world = World { github: &github, clock: &self.clock, nonce };
        let report = check(&world, &input).await;
        self.write_down(place, &report);
        if !report.proceeds() {
            self.conclude(&run, if report.verdict == Verdict::Error { "failure" } else { "success" });
            return;
        }
        let agent = workflow.agent.with(&run.says);
        let agent = self.dice(|chaos| chaos.agent(agent.clone())).unwrap_or(agent);
        self.goes_to_work(place, &run, &report, &agent);
        if agent.ends == AgentEnd::Never {
            return;
        }
        self.clock.sleep_until(self.clock.now() + agent.takes).await;
        if self.comment(&agent, &report)
            && let Some(run) = self.book.borrow_mut().runs.get_mut(place)
        {
            run.wrote = true;
        }
        if agent.ends == AgentEnd::Killed {
            self.conclude(&run, "cancelled");
            self.leaves_work(place, "is killed, and its job with it".to_owned(), None);
            return;
        }
        let settled = match &report.claim {
            None => None,
            Some(claim) => {
                let repo = RepoName::parse(&self.scenario.repository);
                let Some(repo) = repo else { return };
                let input = FinishInput {
                    claim: claim.clone(),
                    repo,
                    run: input.run,
                    steps: vec![step_outcome(agent.ends)],
                    executions: vec![execution(&agent)],
                    outcome: None,
                    deadline: FINISH_DEADLINE,
                };
                Some(finish(&world, &input).await)
            }
        };
        self.conclude(&run, if agent.ends == AgentEnd::Success { "success" } else { "failure" });
        let how = match agent.ends {
            AgentEnd::Success => "is done",
            AgentEnd::Cancelled => "is cancelled",
            AgentEnd::Failure | AgentEnd::Killed | AgentEnd::Never => "fails",
        };
        let words = format!("{how} after {}", crate::core::gates::in_words(agent.takes));
        self.leaves_work(place, words, settled);
    }

    fn write_down(&self, place: usize, report: &CheckReport) {
        let cause = report.claim.as_ref().and_then(|claim| {
            let state = self.state.borrow();
            state.claim_of(&self.scenario.repository, &claim.key, claim.number).map(|record| record.cause)
        });
        let mut book = self.book.borrow_mut();
        if let Some(run) = book.runs.get_mut(place) {
            run.decided = Some(self.clock.now());
            run.report = Some(report.clone());
            run.cause = cause;
        }
    }

    fn conclude(&self, run: &RunStory, conclusion: &str) {
        self.github(|state| state.finish_run(&self.scenario.repository, run.id, conclusion));
    }

    /// Two agents at work on one key at the same time are what run-guard is there to prevent: no scenario may have it.
    fn goes_to_work(&self, place: usize, run: &RunStory, report: &CheckReport, agent: &Agent) {
        let Some(key) = &report.key else { return };
        let mut book = self.book.borrow_mut();
        let takeover = book.runs.get(place).is_some_and(|run| run.cause == Some(Cause::Takeover));
        let other = chaos::joins(&book.at_work, key, takeover);
        let other = other.and_then(|other| book.runs.get(other)).map(|other| other.id);
        let before = self.starts_of(&book, key, place);
        book.at_work.push(AtWork { run: place, key: key.clone(), wedged: agent.ends == AgentEnd::Never });
        drop(book);
        if let Some(other) = other {
            self.trouble(
                0,
                format!("one agent at a time on {key}"),
                format!("run {} started one while that of run {other} was at work", run.id),
            );
        }
        let claims = self.state.borrow().claims_of(&self.scenario.repository, key);
        let number = report.fence.unwrap_or_default();
        let wrong = self.dice(|chaos| chaos.starts(run, key, number, &claims, &before)).unwrap_or_default();
        for words in wrong {
            self.trouble(0, "an agent starts once for each piece of work", words);
        }
    }

    /// The agents that were started for a key before the run at `place`.
    fn starts_of(&self, book: &Book, key: &Key, place: usize) -> Vec<chaos::Start> {
        if self.chaos.is_none() {
            return Vec::new();
        }
        let of_key = |report: &&CheckReport| report.key.as_ref() == Some(key) && report.proceeds();
        let runs = book
            .runs
            .iter()
            .enumerate()
            .filter(|(other, run)| *other != place && run.report.as_ref().as_ref().is_some_and(of_key));
        runs.filter_map(|(_, run)| {
            let claim = run.report.as_ref()?.fence?;
            Some(chaos::Start { run: run.id, wrote: run.wrote, claim })
        })
        .collect()
    }

    fn leaves_work(&self, place: usize, words: String, settled: Option<FinishReport>) {
        let mut book = self.book.borrow_mut();
        book.at_work.retain(|agent| agent.run != place);
        if let Some(run) = book.runs.get_mut(place) {
            run.finish = settled;
        }
        let what = What::Agent { run: place, words };
        book.entries.push(Entry { at: self.clock.now(), what, runs: Vec::new() });
    }

    /// The agent's comment, which is an event like any other; whether it wrote one.
    fn comment(self: &Rc<Self>, agent: &Agent, report: &CheckReport) -> bool {
        let resource = report.key.as_ref().map(crate::core::key::Key::resource);
        let (Some(text), Some(resource)) = (&agent.comments, resource) else { return false };
        let Some(number) = resource.number() else { return false };
        let repo = &self.scenario.repository;
        let event = self.github(|state| {
            let id = state.comment(repo, number, AGENT, text)?;
            Webhook::new(state, repo, AGENT)?.comment("created", id, json!({}))
        });
        let Some(event) = event else { return false };
        let entry =
            self.enter(AGENT, format!("comments on {}: “{}”", resource.in_words(), act::first_line(text)), None);
        let mut book = self.book.borrow_mut();
        let what = "the agent's comment".to_owned();
        book.groups.push(Group { what, expected: agent.expect.clone(), runs: Vec::new() });
        let group = book.groups.len() - 1;
        drop(book);
        self.deliver(&[event], group, entry, &Delivery::default(), &AgentSays::default());
        true
    }

    // --- the end --------------------------------------------------------------------------------------------------

    fn story(&self) -> Story {
        let book = self.book.take();
        let state = self.state.borrow();
        let mut judge = Judge::new(&book.runs, book.failures.clone());
        for group in &book.groups {
            judge.group(group, &book.groups);
        }
        let end = &self.scenario.expect;
        if let Some((line, wanted)) = end.agent_starts {
            let count = book.runs.iter().filter(|run| run.started()).count();
            judge.that(count == wanted, line, || (format!("agent-starts: {wanted}"), count.to_string()));
        }
        if let Some((line, wanted)) = end.runs {
            let count = book.runs.len();
            judge.that(count == wanted, line, || (format!("runs: {wanted}"), count.to_string()));
        }
        for item in &end.items {
            judge.item(&self.scenario.repository, &state, item);
        }
        for claim in &end.claims {
            judge.claim(&self.scenario, &state, &book.comments, claim);
        }
        let (held, failures) = judge.verdict();
        Story {
            scenario: self.scenario.clone(),
            entries: book.entries,
            runs: book.runs,
            held,
            failures,
            requests: state.calls().len(),
        }
    }
}

/// Who is named as the sender of an event; empty for nobody.
fn sender(event: &Event) -> String {
    let login = event.payload.pointer("/sender/login").and_then(serde_json::Value::as_str);
    login.unwrap_or_default().to_owned()
}

/// What is worth to know about how a step's events are delivered.
fn note(delivery: &Delivery, events: &[Event]) -> Option<String> {
    if events.is_empty() {
        return None;
    }
    if delivery.never {
        return Some("GitHub loses the event".to_owned());
    }
    delivery.late.map(|late| format!("GitHub delivers it {} later", crate::core::gates::in_words(late)))
}

const fn step_outcome(ends: AgentEnd) -> StepOutcome {
    match ends {
        AgentEnd::Success => StepOutcome::Success,
        AgentEnd::Cancelled => StepOutcome::Cancelled,
        AgentEnd::Failure | AgentEnd::Killed | AgentEnd::Never => StepOutcome::Failure,
    }
}

/// What stands in the execution file of the stand-in. One that was cancelled never came to write a result.
fn execution(agent: &Agent) -> Execution {
    match agent.ends {
        AgentEnd::Success | AgentEnd::Failure => Execution::Result(AgentResult {
            success: agent.ends == AgentEnd::Success,
            subtype: Some(
                if agent.ends == AgentEnd::Success { "success" } else { "error_during_execution" }.to_owned(),
            ),
            cost_cents: agent.costs,
            turns: None,
        }),
        AgentEnd::Cancelled | AgentEnd::Killed | AgentEnd::Never => Execution::NoResult,
    }
}

/// A run's job, until it is cancelled: then nothing of it happens any more.
struct Cancellable {
    cancelled: Rc<Cell<bool>>,
    job: Pin<Box<dyn Future<Output = ()>>>,
}

impl Future for Cancellable {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.cancelled.get() { Poll::Ready(()) } else { self.job.as_mut().poll(cx) }
    }
}

/// `--seeds`: each scenario under many seeds, a line each; a promise that does not hold is told with its seed and the
/// whole story.
pub fn seeds(files: &[std::path::PathBuf], first: u64, seeds: u64, color: bool) -> Printed {
    let mut printed = Printed::default();
    for read in scenarios(files) {
        let scenario = match read {
            Ok(scenario) => scenario,
            Err(error) => {
                printed.err.push_str(&error);
                printed.code = 1;
                continue;
            }
        };
        let explored = explore(&scenario, first, seeds);
        let name = crate::output::escape::visible(&scenario.origin);
        let Counts { starts, crashes, faults, takeovers, reruns, reviews } = explored.counts;
        let counted = format!(
            "{} seeds: {starts} agents started, {faults} faults, {crashes} of them crashes, {takeovers} claims taken over, \
             {reruns} reruns, {reviews} reviews",
            explored.seeds
        );
        let _ = match &explored.broken {
            None => writeln!(printed.out, "holds  {name}  ({counted})"),
            Some((seed, broken)) => {
                printed.code = 1;
                match broken {
                    Ok(story) => printed.out.push_str(&timeline::story(story, Style { color, now: scenario.start })),
                    Err(endless) => _ = writeln!(printed.out, "{endless}"),
                }
                writeln!(
                    printed.out,
                    "\nbroken  {name}  under seed {seed} ({counted})\n\nhint: `run-guard simulate {name} --seed {seed}` tells \
                     the same story again"
                )
            }
        };
    }
    printed
}

/// The command: runs each scenario. One is told as a timeline, several in a line each. It ends with 0 if every
/// expectation of every one holds.
pub fn command(files: &[std::path::PathBuf], format: Format, color: bool) -> Printed {
    tell(files, format, color, |scenario| run(scenario, Order::Fair))
}

/// `--seed`: the story of each scenario under one seed.
pub fn one_seed(files: &[std::path::PathBuf], seed: u64, format: Format, color: bool) -> Printed {
    tell(files, format, color, |scenario| run_seed(scenario, seed).map(|(story, _)| story))
}

fn tell(
    files: &[std::path::PathBuf],
    format: Format,
    color: bool,
    run: impl Fn(&Scenario) -> Result<Story, TooManyTurns>,
) -> Printed {
    let mut printed = Printed::default();
    let mut stories = Vec::new();
    for read in scenarios(files) {
        let story = read
            .and_then(|scenario| run(&scenario).map_err(|endless| format!("error: {}: {endless}\n", scenario.origin)));
        match story {
            Ok(story) => {
                if !story.holds() {
                    printed.code = 1;
                }
                stories.push(story);
            }
            Err(error) => {
                printed.err.push_str(&error);
                printed.code = 1;
            }
        }
    }
    printed.out = match (format, stories.as_slice()) {
        (Format::Json, [story]) if files.len() < 2 => format!("{:#}\n", timeline::json(story)),
        (Format::Json, stories) => format!("{:#}\n", stories.iter().map(timeline::json).collect::<serde_json::Value>()),
        (Format::Text, [story]) if files.len() < 2 => {
            timeline::story(story, Style { color, now: story.scenario.start })
        }
        (Format::Text, stories) => {
            stories.iter().map(|story| timeline::line(story, Style { color, now: story.scenario.start })).collect()
        }
    };
    printed
}

/// The scenarios that are named, or the one that is built in; what cannot be read as its whole error message.
pub fn scenarios(files: &[std::path::PathBuf]) -> Vec<Result<Scenario, String>> {
    let parse = |text: &str, name: &str| Scenario::parse(text, name).map_err(|error| format!("error: {error}\n"));
    if files.is_empty() {
        return vec![parse(BUILT_IN.1, BUILT_IN.0)];
    }
    let read = |file: &std::path::PathBuf| {
        let name = file.display().to_string();
        match std::fs::read_to_string(file) {
            Ok(text) => parse(&text, &name),
            Err(error) => Err(format!(
                "error: the scenario {} cannot be read: {error}\n\nhint: without a file, the story of issue 731 runs\n",
                crate::output::escape::visible(&name)
            )),
        }
    };
    files.iter().map(read).collect()
}
