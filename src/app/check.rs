//! `check`: the step before the agent. It decides and, if every gate passes, claims.

use std::cell::RefCell;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::World;
use super::gather::Gathered;
use super::patient::Patient;
use super::report::{BudgetLeft, CheckReport};
use crate::config;
use crate::core::claim::{
    Claim, ClaimPlan, ClaimRead, ClaimState, Handle, LedgerChoice, LedgerKind, Nonce, Outcome, Owner, Record,
    Settlement, Thing,
};
use crate::core::decide::{before_reading, decide};
use crate::core::decision::{Decision, Gate, Judgement, OnError, Reason, Seen, Stop, Verdict};
use crate::core::facts::{Fact, Question, Window, WindowClaim};
use crate::core::gates::resume::Resume;
use crate::core::gates::{self, Context};
use crate::core::key::{Key, Task};
use crate::core::lease::{Acquire, CreateAnswer, Next};
use crate::core::marker::Marker;
use crate::core::policy::{Effect, Policy, TaskPolicy};
use crate::core::trigger::{RunContext, Trigger};
use crate::ledger::AnyLedger;
use crate::ports::{Clock, Created, GitHub, Ledger, PolicyRead, PortError, RepoName};

/// How often a claim that another owner turned out to have is judged anew.
const MOST_LOSSES: u32 = 4;

/// More questions than any decision has.
const MOST_QUESTIONS: u32 = 64;

/// A policy that is not read from GitHub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigText {
    /// Where it comes from, for messages.
    pub origin: String,
    /// Its text.
    pub text: String,
}

/// What `check` is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckInput {
    /// The event's name.
    pub event_name: String,
    /// The event's payload.
    pub payload: Value,
    /// The GitHub host.
    pub host: String,
    /// The run that asks.
    pub run: RunContext,
    /// The task.
    pub task: Task,
    /// The ledger, if not the policy's.
    pub ledger: Option<LedgerChoice>,
    /// The policy, if not the repository's.
    pub config: Option<ConfigText>,
    /// Whether people without write permission may start it.
    pub anyone: bool,
    /// Whether everything is paused.
    pub paused: bool,
    /// Whether nothing is to be written.
    pub dry_run: bool,
    /// What becomes of a verdict that says that no decision could be made.
    pub on_error: OnError,
    /// How long the command may take.
    pub deadline: TimeDelta,
    /// How long a live holder is waited for.
    pub wait: TimeDelta,
    /// The claim of an earlier job of this run, to go on with.
    pub resume: Option<Handle>,
}

/// How often a live holder is looked at again, at most.
const MOST_LOOKS: u32 = 12;

/// How long after each look the next one comes.
const LOOK_AGAIN: TimeDelta = TimeDelta::seconds(10);

/// Decides and claims. It always gives a report: what fails is a verdict too.
pub async fn check<G: GitHub, C: Clock>(world: &World<'_, G, C>, input: &CheckInput) -> CheckReport {
    let trigger = match Trigger::read(&input.event_name, &input.payload, &input.host, input.run.clone()) {
        Ok(trigger) => trigger,
        Err(stop) => return finished(CheckReport::stopped(input.task.clone(), stop), input),
    };
    let Some(repo) = RepoName::parse(&trigger.repository) else {
        let stop = Stop::new(Reason::BadPayload, "the payload has no usable `repository.full_name`");
        return finished(CheckReport::stopped(input.task.clone(), stop), input);
    };
    let deadline = world.clock.now() + input.deadline;
    let patient = Patient::new(world.github, world.clock, deadline);
    let world = &World { github: &patient, clock: world.clock, nonce: world.nonce.clone() };
    let key = trigger.key(&input.task, &TaskPolicy::default());
    // Without a policy, check runs of a key that names no commit have no place; where there is one shows later.
    let kind = Policy::default().ledger_of(&key, input.ledger).unwrap_or(LedgerKind::CheckRun);
    let (key, ledger) = match &input.resume {
        Some(handle) => (handle.key.clone(), AnyLedger::of(handle, world.github)),
        None => (key, AnyLedger::new(kind, None, world.github)),
    };
    let mut session = Session {
        world,
        input,
        trigger: &trigger,
        repo: &repo,
        gathered: Gathered::new(world, ledger, &repo),
        deadline,
        policy: Policy::default(),
        key,
        warnings: RefCell::new(Vec::new()),
    };
    let report = match session.run().await {
        Ok(report) => report,
        Err(stop) => session.stopped(Vec::new(), *stop),
    };
    let starts_all_the_same = report.reason.is_some_and(|reason| {
        report.verdict != Verdict::Proceed && input.on_error.verdict(reason, report.verdict) == Verdict::Proceed
    });
    let report = match starts_all_the_same.then(|| session.refuses_all_the_same()).flatten() {
        Some(stop) => session.stopped(Vec::new(), stop),
        None => report,
    };
    finished(report, input)
}

/// What holds for every report, however it came about.
fn finished(mut report: CheckReport, input: &CheckInput) -> CheckReport {
    report.dry_run = input.dry_run;
    if let Some(reason) = report.reason {
        let verdict = input.on_error.verdict(reason, report.verdict);
        if verdict != report.verdict && verdict == Verdict::Proceed {
            report
                .warnings
                .push("the agent starts without a claim (`on-error: proceed`): it may start twice".to_owned());
        }
        report.verdict = verdict;
    }
    report
}

/// One `check` on its way.
struct Session<'a, G, C> {
    world: &'a World<'a, G, C>,
    input: &'a CheckInput,
    trigger: &'a Trigger,
    repo: &'a RepoName,
    gathered: Gathered<'a, G, C>,
    deadline: DateTime<Utc>,
    policy: Policy,
    key: Key,
    warnings: RefCell<Vec<String>>,
}

type Stopped = Box<Stop>;

/// What came of an attempt to claim.
enum Claimed {
    /// All that there is to say.
    Told(Box<CheckReport>),
    /// Another owner has the number.
    Lost {
        /// What the gates before the claim saw.
        before: Vec<Seen>,
        /// Its claim.
        read: ClaimRead,
    },
}

/// Why a claim was not made.
enum NotMade {
    Lost(Box<ClaimRead>),
    Stop(Stopped),
}

impl From<Stop> for NotMade {
    fn from(stop: Stop) -> Self {
        Self::Stop(Box::new(stop))
    }
}

impl<'a, G: GitHub, C: Clock> Session<'a, G, C> {
    async fn run(&mut self) -> Result<CheckReport, Stopped> {
        if let Some(stop) = before_reading(self.trigger, self.input.paused) {
            return Ok(self.stopped(Vec::new(), stop));
        }
        if let Some(stop) = self.resume_of_another() {
            return Ok(self.stopped(Vec::new(), stop));
        }
        self.read_policy_and_facts().await?;
        if let Some(handle) = &self.input.resume {
            match gates::resume::judge(&self.context(), handle) {
                Resume::Holds => return Ok(self.proceeds(Vec::new(), handle.number, &handle.nonce)),
                Resume::Stop(stop) => return Ok(self.stopped(Vec::new(), *stop)),
                Resume::Decide => {}
            }
        }
        let (mut losses, mut looks) = (0, 0);
        let patience = (self.world.clock.now() + self.input.wait).min(self.deadline);
        for _ in 0..MOST_QUESTIONS {
            match decide(&self.context()) {
                Decision::Stop { stop, .. }
                    if stop.reason == Reason::InProgress
                        && looks < MOST_LOOKS
                        && !self.input.dry_run
                        && self.world.clock.now() + LOOK_AGAIN <= patience =>
                {
                    looks += 1;
                    self.world.clock.sleep_until(self.world.clock.now() + LOOK_AGAIN).await;
                    self.gathered.look_again(self.trigger, &self.key).await;
                }
                Decision::Stop { path, stop } => return Ok(self.stopped(path, *stop)),
                Decision::Claim { path, plan } if self.input.dry_run => return Ok(self.would_proceed(path, &plan)),
                Decision::Claim { path, plan } => match self.claim(path, &plan).await {
                    Claimed::Told(report) => return Ok(*report),
                    Claimed::Lost { before, read } => {
                        losses += 1;
                        if losses > MOST_LOSSES {
                            let stop = gates::claim::lost(&self.context(), &read);
                            return Ok(self.stopped(before, stop));
                        }
                        // What was read first did not show it. The same rules say what it means, its owner's end included.
                        self.gathered.now_shows(read);
                    }
                },
                Decision::Ask(question) => self.answer(&question).await?,
            }
        }
        Err(Box::new(Stop::new(Reason::LedgerUnreachable, "GitHub's answers kept changing while they were read")))
    }

    /// What is wrong with the trigger as far as anything is known of it: an outage lets nobody in who would have been
    /// refused, and starts no agent for the agent's own words.
    fn refuses_all_the_same(&mut self) -> Option<Stop> {
        self.gathered.close_unasked();
        let cx = self.context();
        for judge in [gates::trigger::judge, gates::r#loop::judge] {
            match judge(&cx) {
                Judgement::Pass(_) => {}
                Judgement::Stop(stop) => return Some(*stop),
                Judgement::Ask(_) => {
                    let message = "GitHub could not be asked whether this trigger may start an agent";
                    return Some(Stop::new(Reason::PermissionUnknown, message));
                }
            }
        }
        None
    }

    /// The claim to go on with must be of what the event is about.
    fn resume_of_another(&self) -> Option<Stop> {
        let handle = self.input.resume.as_ref()?;
        let own = self.trigger.key(&self.input.task, &TaskPolicy::default());
        let same = own.repository() == handle.key.repository() && own.resource() == handle.key.resource();
        (!same).then(|| Stop::new(Reason::BadPayload, format!("claim {handle} is not of what this event is about")))
    }

    fn context(&self) -> Context<'_> {
        Context {
            trigger: self.trigger,
            task: &self.input.task,
            key: &self.key,
            policy: &self.policy,
            rules: self.policy.task(&self.input.task),
            facts: &self.gathered.facts,
            now: self.gathered.now(),
        }
    }

    async fn read_policy_and_facts(&mut self) -> Result<(), Stopped> {
        let given = match &self.input.config {
            Some(config) => Some(parse(&config.text, &config.origin)?),
            None => None,
        };
        if let Some(policy) = given.clone() {
            self.adopt(policy)?;
            self.gathered.ledger = self.ledger()?;
        }
        let window = given.is_none() || self.policy.task(&self.input.task).budget.window().is_some();
        let anyone = self.input.anyone || self.policy.task(&self.input.task).anyone;
        let asked = self.key.clone();
        let looked = (self.gathered.ledger.kind(), self.gathered.ledger.probe(&asked));
        let read = self.gathered.first_read(self.trigger, &asked, anyone, window).await;
        let read = read.map_err(|error| Box::new(first_read_failed(&error)))?;
        if given.is_none() {
            let policy = match read {
                PolicyRead::Absent => Policy::default(),
                PolicyRead::Text(text) => parse(&text, crate::core::policy::POLICY_PATH)?,
                PolicyRead::Unreadable(why) => {
                    let path = crate::core::policy::POLICY_PATH;
                    return Err(Box::new(Stop::new(
                        Reason::PolicyUnreadable,
                        format!("{path} on the default branch could not be read: {why}"),
                    )));
                }
            };
            self.adopt(policy)?;
        }
        let ledger = self.ledger()?;
        let to_look = (ledger.kind(), ledger.probe(&self.key));
        if to_look.0 != looked.0 {
            let window = self.policy.task(&self.input.task).budget.window().is_some();
            self.gathered.switch_to(ledger, window).await;
        } else if to_look.1 != looked.1 {
            self.gathered.ledger = ledger;
        }
        if to_look != looked {
            self.gathered.read_claims(&self.key).await;
        }
        Ok(())
    }

    /// The ledger of the key, as policy and input have it.
    fn ledger(&self) -> Result<AnyLedger<'a, G>, Stopped> {
        if let Some(handle) = &self.input.resume {
            return Ok(AnyLedger::of(handle, self.world.github));
        }
        let kind = self
            .policy
            .ledger_of(&self.key, self.input.ledger)
            .map_err(|why| Box::new(Stop::new(Reason::PolicyInvalid, why)))?;
        Ok(AnyLedger::new(kind, self.policy.ledger_anchor.clone(), self.world.github))
    }

    /// Takes a policy up, with what the inputs say on top.
    fn adopt(&mut self, mut policy: Policy) -> Result<(), Stopped> {
        if self.input.anyone {
            let mut rules = policy.task(&self.input.task).clone();
            open_to_anyone(&mut rules)?;
            policy.tasks.insert(self.input.task.clone(), rules);
        }
        self.key = match &self.input.resume {
            Some(handle) => handle.key.clone(),
            None => self.trigger.key(&self.input.task, policy.task(&self.input.task)),
        };
        self.policy = policy;
        Ok(())
    }

    async fn answer(&mut self, question: &Question) -> Result<(), Stopped> {
        if let Question::WaitUntil(at) = question {
            let wait = *at - self.gathered.now();
            if self.input.dry_run || self.world.clock.now() + wait > self.deadline {
                let message = format!(
                    "the run that held the claim ended only just now; it can be taken over at {}",
                    at.format("%H:%M:%S UTC")
                );
                return Err(Box::new(Stop::new(Reason::Settling, message).with_retry_at(*at)));
            }
        }
        self.gathered.answer(question, self.trigger, &self.key).await;
        Ok(())
    }

    async fn claim(&mut self, path: Vec<Seen>, plan: &ClaimPlan) -> Claimed {
        // That the claim was free is what the claim gate saw before; what comes of it now is its answer.
        let before = || path.iter().filter(|seen| seen.gate != Gate::Claim).cloned().collect();
        let now = self.gathered.now();
        let record = Record {
            owner: Owner {
                run: self.trigger.run.run,
                attempt: self.trigger.run.attempt,
                nonce: self.world.nonce.clone(),
            },
            cause: plan.cause,
            rerun: plan.rerun.clone(),
            opened_at: DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now),
            number: self.trigger.resource.number(),
            actor: self.trigger.actor_id(),
            state: ClaimState::Open,
        };
        let claim = match self.create(plan.number, record).await {
            Ok(claim) => claim,
            Err(NotMade::Lost(read)) => return Claimed::Lost { before: before(), read: *read },
            Err(NotMade::Stop(stop)) => return Claimed::Told(Box::new(self.stopped(before(), *stop))),
        };
        if plan.rank_after
            && let Some(stop) = self.rank(&claim).await
        {
            return Claimed::Told(Box::new(self.withdraw(before(), &claim, *stop).await));
        }
        Claimed::Told(Box::new(self.proceeds(path, plan.number, &self.world.nonce)))
    }

    /// Carries out what the protocol says until it is known whose the claim is; `Ok` means one's own.
    async fn create(&self, number: u32, record: Record) -> Result<Claim, NotMade> {
        let highest = self.highest_claim();
        let mut thing = Thing::default();
        let elects = self.gathered.ledger.elects();
        let owner = record.owner.clone();
        let mut acquire = if elects { Acquire::elected(owner) } else { Acquire::new(owner) };
        let mut next = Next::Create;
        let mut last = None;
        loop {
            next = match next {
                Next::Create => {
                    // What was read is too old to be acted upon, and a sweep may have freed the number since.
                    if self.world.clock.now() > self.deadline {
                        return Err(undecided(number, "the deadline has passed", last).into());
                    }
                    let answer = match self.gathered.ledger.create(self.repo, &self.key, number, &record, highest).await
                    {
                        Ok(Created::Made(made)) => {
                            thing = made;
                            CreateAnswer::Made
                        }
                        Ok(Created::Exists) => CreateAnswer::Exists,
                        Err(error @ (PortError::Ambiguous { .. } | PortError::Malformed { .. })) => {
                            last = Some(error.to_string());
                            CreateAnswer::Unknown
                        }
                        Err(error) => return Err(write_failed(&error).into()),
                    };
                    acquire.created(answer)
                }
                Next::Read(pause) => {
                    let at = self.world.clock.now() + pause;
                    if at > self.deadline {
                        let made = Claim { number, thing, record };
                        return Err(NotMade::Stop(self.gives_up(made, "the deadline is near", last).await));
                    }
                    if pause > TimeDelta::zero() {
                        self.world.clock.sleep_until(at).await;
                    }
                    let (next, found) = self.look(&mut acquire, number, &mut last).await;
                    thing = found.unwrap_or(thing);
                    next
                }
                Next::Won => {
                    self.give_back(acquire.leftovers()).await;
                    return Ok(Claim { number, thing, record });
                }
                Next::Lost(read) => {
                    self.give_back(acquire.leftovers()).await;
                    return Err(NotMade::Lost(Box::new(read)));
                }
                Next::GiveUp(why) => {
                    let made = Claim { number, thing, record };
                    return Err(NotMade::Stop(self.gives_up(made, why, last).await));
                }
            };
        }
    }

    /// Reads what there is of the claim, or of the candidates for its number, and tells the protocol. With what is next
    /// comes what holds the claim, where that was seen.
    async fn look(&self, acquire: &mut Acquire, number: u32, last: &mut Option<String>) -> (Next, Option<Thing>) {
        let ledger = &self.gathered.ledger;
        let of = |read: &ClaimRead| match read {
            ClaimRead::Readable(claim) => Some(claim.thing.clone()),
            ClaimRead::Unreadable { .. } => None,
        };
        if ledger.elects() {
            let seen = ledger.candidates(self.repo, &self.key, number).await;
            let seen = seen.map_err(|error| *last = Some(error.to_string())).ok();
            let first = seen.as_ref().and_then(|seen| seen.first());
            let next = acquire.listed(seen.as_deref());
            let thing = first.filter(|_| next == Next::Won).and_then(of);
            return (next, thing);
        }
        let seen = ledger.read(self.repo, &self.key, number).await;
        let seen = seen.unwrap_or_else(|error| {
            *last = Some(error.to_string());
            None
        });
        let thing = seen.as_ref().and_then(of);
        (acquire.read(seen), thing)
    }

    /// It cannot be told whose the number is. A candidate that is known to be made is given back: should it be elected, the
    /// next number is free at once, and not only when this run is over.
    async fn gives_up(&self, made: Claim, why: &str, last: Option<String>) -> Stopped {
        let number = made.number;
        if self.gathered.ledger.elects() && made.thing != Thing::default() {
            self.give_back(&[made]).await;
        }
        Box::new(undecided(number, why, last))
    }

    /// Settles candidates of one's own that were not elected. They hold nothing, so that a failure is worth a warning.
    async fn give_back(&self, candidates: &[Claim]) {
        for claim in candidates {
            if let Err(error) = self.write_withdrawn(claim).await {
                let number = claim.number;
                let warning = format!("a candidate for claim {number} could not be given back: {error}");
                self.warnings.borrow_mut().push(warning);
            }
        }
    }

    async fn write_withdrawn(&self, claim: &Claim) -> Result<(), PortError> {
        let settlement = Settlement {
            outcome: Outcome::Withdrawn,
            at: claim.record.opened_at,
            cost_cents: None,
            result_comment: None,
        };
        let settled = Record { state: ClaimState::Settled(settlement), ..claim.record.clone() };
        let write = async || self.gathered.ledger.rewrite(self.repo, &self.key, claim, &settled).await;
        // To write one's own claim once more with the same text is safe. One that stays open is taken over later.
        match write().await {
            Err(PortError::Ambiguous { .. } | PortError::Unreachable { .. }) => write().await,
            result => result,
        }
    }

    /// The key's highest claim that could be read.
    fn highest_claim(&self) -> Option<&Claim> {
        match self.gathered.facts.claims.known()?.last_key_value()? {
            (_, ClaimRead::Readable(claim)) => Some(claim),
            (_, ClaimRead::Unreadable { .. }) => None,
        }
    }

    /// Near a cap: whether one's own claim is over it when the window's claims are ranked.
    async fn rank(&self, claim: &Claim) -> Option<Box<Stop>> {
        let span = self.policy.task(&self.input.task).budget.window()?;
        let window = match self.gathered.fresh_window(self.gathered.now() - span).await {
            Ok(window) => window,
            Err(error) => {
                let message = format!("the claims could not be listed after the claim was made: {error}");
                return Some(Box::new(Stop::new(Reason::UnknownUsage, message)));
            }
        };
        let own = WindowClaim {
            task: self.key.task().to_string(),
            digest: self.key.digest().to_string(),
            claim: claim.clone(),
        };
        gates::budget::rank(&self.context(), &window, &own).map(Box::new)
    }

    async fn withdraw(&self, path: Vec<Seen>, claim: &Claim, stop: Stop) -> CheckReport {
        let number = claim.number;
        let written = self.write_withdrawn(claim).await;
        let mut report = self.stopped(path, stop);
        if let Err(error) = written {
            report.warnings.push(format!("claim {number} could not be given back: {error}"));
        }
        report
    }

    /// The parts of a report that do not depend on the verdict.
    fn base(&self, path: Vec<Seen>, stop: Stop) -> CheckReport {
        let mut report = CheckReport::stopped(self.input.task.clone(), stop);
        report.path = path;
        report.warnings.clone_from(&self.warnings.borrow());
        report.repository = Some(self.trigger.repository.clone());
        let comment_url = self.trigger.comment.as_ref().and_then(|c| c.url.clone());
        report.resource_url = comment_url.or_else(|| self.trigger.url.clone());
        report.key = Some(self.key.clone());
        let cx = self.context();
        report.source_run_url = (self.trigger.run.run > 0).then(|| cx.run_url(self.trigger.run.run));
        report.head_sha =
            self.gathered.facts.resource.known().and_then(Option::as_ref).and_then(|r| r.head_sha.clone());
        report.decided_at = self.world.github.server_time().map(|_| self.gathered.now());
        report.budget = budget_left(&cx, u32::from(report.proceeds()));
        report
    }

    fn stopped(&self, path: Vec<Seen>, stop: Stop) -> CheckReport {
        let hint = match stop.reason {
            Reason::LedgerDenied => {
                Some(format!("Give the job `{}`, or choose another ledger.", self.gathered.ledger.permission()))
            }
            _ => None,
        };
        let mut report = self.base(path, stop);
        report.hint = hint;
        report
    }

    fn proceeding(&self, path: Vec<Seen>, number: u32, message: String) -> CheckReport {
        let mut report = self.base(path, Stop::new(Reason::LostRace, message).with_verdict(Verdict::Proceed));
        report.reason = None;
        report.fence = Some(number);
        report
    }

    fn would_proceed(&self, path: Vec<Seen>, plan: &ClaimPlan) -> CheckReport {
        let message = format!("claim {} would be made (cause: {})", plan.number, plan.cause.as_str());
        self.proceeding(path, plan.number, message)
    }

    fn proceeds(&self, path: Vec<Seen>, number: u32, nonce: &Nonce) -> CheckReport {
        let message = format!("this run holds claim {number}");
        let mut report = self.proceeding(path, number, message);
        report.claim = Some(Handle {
            ledger: self.gathered.ledger.kind(),
            anchor: match self.gathered.ledger.kind() {
                LedgerKind::CheckRun if self.key.head_sha().is_none() => self.policy.ledger_anchor.clone(),
                _ => None,
            },
            key: self.key.clone(),
            number,
            nonce: nonce.clone(),
        });
        report.marker = Some(Marker {
            key: self.key.clone(),
            claim: number,
            source_run_id: self.trigger.run.run,
            nonce: nonce.clone(),
            outcome: None,
        });
        report
    }
}

/// It is not known whose claim `number` is.
fn undecided(number: u32, why: &str, last: Option<String>) -> Stop {
    let last = last.map(|error| format!(": {error}")).unwrap_or_default();
    Stop::new(Reason::LedgerUnreachable, format!("whose claim {number} is cannot be told; {why}{last}"))
}

/// The claim could not be written.
fn write_failed(error: &PortError) -> Stop {
    match error {
        PortError::RateLimited { retry_at, .. } => {
            Stop::new(Reason::LedgerUnreachable, error.to_string()).with_retry_at(*retry_at)
        }
        PortError::Denied { .. } | PortError::Missing { .. } | PortError::Exists { .. } => {
            Stop::new(Reason::LedgerDenied, error.to_string())
        }
        PortError::Ambiguous { .. } | PortError::Unreachable { .. } | PortError::Malformed { .. } => {
            Stop::new(Reason::LedgerUnreachable, error.to_string())
        }
    }
}

/// What the caps leave, counting `own` runs on top of the window.
fn budget_left(cx: &Context<'_>, own: u32) -> BudgetLeft {
    let Fact::Known(window) = &cx.facts.window else { return BudgetLeft::default() };
    let budget = &cx.rules.budget;
    let left = |limit: Option<u32>, span| {
        let used = u32::try_from(gates::budget::runs_within(window, cx.now, span)).unwrap_or(u32::MAX);
        limit.map(|limit| limit.saturating_sub(used.saturating_add(own)))
    };
    let spent = |window: &Window| {
        let reserved = u64::from(own) * budget.estimate_cents.unwrap_or(0);
        gates::budget::spent_cents(cx, window).saturating_add(reserved)
    };
    BudgetLeft {
        runs_hour: left(budget.max_runs_per_hour, TimeDelta::hours(1)),
        runs_day: left(budget.max_runs_per_day, TimeDelta::hours(24)),
        cost_day_cents: budget.max_cost_per_day_cents.map(|limit| limit.saturating_sub(spent(window))),
    }
}

fn parse(text: &str, origin: &str) -> Result<Policy, Stopped> {
    config::parse(text, origin).map_err(|error| Box::new(Stop::new(Reason::PolicyInvalid, error.to_string())))
}

/// The input `anyone` opens a task to people without write permission, which is for agents that only talk. A task whose
/// `may` the policy leaves alone is narrowed to that.
fn open_to_anyone(rules: &mut TaskPolicy) -> Result<(), Stopped> {
    if rules.may == TaskPolicy::default().may {
        rules.may = std::collections::BTreeSet::from([Effect::Comment, Effect::Label]);
    } else if !config::may_be_open_to_anyone(&rules.may) {
        return Err(Box::new(Stop::new(
            Reason::PolicyInvalid,
            "the input `anyone` is set, but the policy lets the task do more than comment and label (`may:`)",
        )));
    }
    rules.anyone = true;
    Ok(())
}

/// Neither policy nor facts could be read.
fn first_read_failed(error: &PortError) -> Stop {
    match error {
        PortError::RateLimited { retry_at, .. } => {
            Stop::new(Reason::LedgerUnreachable, error.to_string()).with_retry_at(*retry_at)
        }
        PortError::Unreachable { .. } | PortError::Ambiguous { .. } | PortError::Malformed { .. } => {
            Stop::new(Reason::LedgerUnreachable, error.to_string())
        }
        PortError::Denied { .. } | PortError::Missing { .. } | PortError::Exists { .. } => {
            Stop::new(Reason::PolicyUnreadable, format!("policy and facts could not be read: {error}"))
        }
    }
}
