//! Attempts to make run-guard start an agent twice, start one on facts that it could not read, guess an outcome, fall
//! over, or lose work.

mod faults;
mod ledger;
mod payloads;
mod skew;
mod trust;
mod wire;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use chrono::{DateTime, TimeDelta, Utc};
use run_guard::app::World;
use run_guard::app::check::{CheckInput, check};
use run_guard::app::finish::{FinishInput, finish};
use run_guard::app::report::{CheckReport, FinishReport};
use run_guard::core::claim::{ClaimState, LedgerChoice, LedgerKind, Nonce, Outcome, Record};
use run_guard::core::decision::{OnError, Verdict};
use run_guard::core::ended::StepOutcome;
use run_guard::core::execution::Execution;
use run_guard::core::facts::Permission;
use run_guard::core::identity::ActorKind;
use run_guard::core::key::Key;
use run_guard::core::trigger::RunContext;
use run_guard::ports::{Clock, RepoName};
use run_guard::sim::port::{Hook, InProcess};
use run_guard::sim::{Fault, ItemSpec, Op, State, TokenSpec};
use serde_json::{Value, json};

const REPO: &str = "acme/app";
const TOKEN: &str = "ghs_attack";
const GRANTS: &str = "actions: read, checks: write, contents: write, issues: write, pull-requests: read";
const ISSUE: u64 = 731;
/// The asking runs. What they have in common is the issue.
const RUNS: std::ops::Range<u64> = 500..520;

fn key() -> Key {
    "github.com/42/issue/731/triage".parse().unwrap()
}

fn start() -> DateTime<Utc> {
    "2026-03-02T09:00:00Z".parse().unwrap()
}

/// A private repository with an issue of alice's, who may write, and an outsider.
fn github() -> State {
    let mut state = State::new(start());
    // What the protocol assumes of reads.
    state.oldest_read = Some(TimeDelta::minutes(9));
    state.add_repo(REPO, 42);
    state.make_private(REPO);
    state.grant(REPO, "alice", Permission::Write);
    state.grant(REPO, "mallory", Permission::Read);
    state.add_user("mallory", ActorKind::User);
    state.open_issue(REPO, ItemSpec::new("alice", "Tokens in the log").number(ISSUE).labels(&["security"]));
    state.add_token(TOKEN, TokenSpec::built_in(REPO, GRANTS.parse().unwrap()));
    for run in RUNS {
        state.add_run(REPO, run, "issues", "alice");
    }
    // For the ledger that keeps claims on commits: an issue names none.
    state.set_file(REPO, ".github/run-guard.yml", &policy(""));
    state.now += TimeDelta::minutes(1);
    state
}

/// A policy of these lines.
fn policy(lines: &str) -> String {
    format!("ledger-anchor: \"{:040x}\"\n{lines}\n", 42)
}

fn opened() -> Value {
    json!({
        "action": "opened",
        "issue": {"number": ISSUE, "title": "Tokens in the log", "body": null, "state": "open",
                  "user": {"login": "alice", "type": "User", "id": 7}, "labels": [{"name": "security"}],
                  "html_url": "https://github.com/acme/app/issues/731"},
        "repository": {"id": 42, "full_name": REPO, "html_url": "https://github.com/acme/app"},
        "sender": {"login": "alice", "type": "User", "id": 7},
    })
}

fn commented(id: u64, author: &Value, sender: &Value, body: &str) -> Value {
    let mut payload = opened();
    payload["action"] = json!("created");
    payload["sender"] = sender.clone();
    payload["comment"] = json!({"id": id, "body": body, "user": author, "created_at": "2026-03-02T09:00:30Z",
        "updated_at": "2026-03-02T09:00:30Z",
        "html_url": format!("https://github.com/acme/app/issues/731#issuecomment-{id}")});
    payload
}

fn person(login: &str) -> Value {
    json!({"login": login, "type": "User", "id": 7})
}

fn input(event: &str, payload: Value, run: u64) -> CheckInput {
    CheckInput {
        event_name: event.to_owned(),
        payload,
        host: "github.com".to_owned(),
        run: RunContext { run, attempt: 1, triggering_actor: Some("alice".to_owned()) },
        task: "triage".parse().unwrap(),
        ledger: None,
        config: None,
        anyone: false,
        paused: false,
        dry_run: false,
        on_error: OnError::Default,
        deadline: TimeDelta::seconds(120),
        wait: TimeDelta::zero(),
        resume: None,
    }
}

/// GitHub's clock, read by a machine whose own is off by `skew`. A wait moves it on at once.
struct FakeClock {
    state: Rc<RefCell<State>>,
    skew: Cell<TimeDelta>,
}

impl Clock for FakeClock {
    fn now(&self) -> DateTime<Utc> {
        self.state.borrow().now + self.skew.get()
    }

    async fn sleep_until(&self, at: DateTime<Utc>) {
        let mut state = self.state.borrow_mut();
        state.now = state.now.max(at - self.skew.get());
    }
}

/// Runs what waits for nothing outside; `None`: it waits for ever, as whoever died does.
fn now_or_never<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// What is done to the calls of one command, by their index.
#[derive(Clone, Default)]
struct Plan(BTreeMap<usize, Fault>);

impl Plan {
    fn of(faults: &[(usize, &Fault)]) -> Self {
        Self(faults.iter().map(|(index, fault)| (*index, (*fault).clone())).collect())
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The calls that a command made, and whether each was left alone.
type Calls = Rc<RefCell<Vec<(Op, bool)>>>;

/// One embedded GitHub and the runs on it.
struct Bench {
    state: Rc<RefCell<State>>,
    clock: FakeClock,
    ledger: LedgerKind,
}

impl Bench {
    fn new(state: State) -> Self {
        Self::with_ledger(state, LedgerKind::Label)
    }

    fn with_ledger(state: State, ledger: LedgerKind) -> Self {
        let state = Rc::new(RefCell::new(state));
        let clock = FakeClock { state: Rc::clone(&state), skew: Cell::new(TimeDelta::zero()) };
        Self { state, clock, ledger }
    }

    fn edit<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.borrow_mut())
    }

    /// A view of GitHub through which these faults strike, and the calls through it. `before` runs before each call.
    fn faulty(&self, plan: &Plan, before: impl Fn(usize) + 'static) -> (InProcess, Calls) {
        let calls = Calls::default();
        let (plan, seen) = (plan.clone(), Rc::clone(&calls));
        let hook: Hook = Rc::new(move |call| {
            let index = seen.borrow().len();
            let fault = plan.0.get(&index).cloned();
            seen.borrow_mut().push((call.op, fault.is_none()));
            before(index);
            Box::pin(std::future::ready(fault))
        });
        (InProcess::new(Rc::clone(&self.state), TOKEN).with_hook(hook), calls)
    }

    /// Runs a check; `None`: it died.
    fn check_through(&self, github: &InProcess, input: &CheckInput) -> Option<CheckReport> {
        let world = World { github, clock: &self.clock, nonce: nonce_of(input.run.run, input.run.attempt) };
        let input = CheckInput { ledger: Some(LedgerChoice::Kind(self.ledger)), ..input.clone() };
        let report = now_or_never(check(&world, &input))?;
        assert!(!report.message.trim().is_empty(), "{report:?} says nothing");
        assert!(report.proceeds() || report.reason.is_some(), "{report:?} has no reason");
        Some(report)
    }

    /// A check of this run with nothing in its way.
    fn check(&self, run: u64) -> CheckReport {
        self.check_of(&input("issues", opened(), run))
    }

    fn check_of(&self, input: &CheckInput) -> CheckReport {
        let (github, _) = self.faulty(&Plan::default(), |_| {});
        self.check_through(&github, input).unwrap()
    }

    fn finish_through(&self, github: &InProcess, report: &CheckReport, run: u64) -> Option<FinishReport> {
        let claim = report.claim.clone().unwrap();
        let world = World { github, clock: &self.clock, nonce: claim.nonce.clone() };
        let input = FinishInput {
            claim,
            repo: RepoName::parse(REPO).unwrap(),
            run: RunContext { run, attempt: 1, triggering_actor: Some("alice".to_owned()) },
            steps: vec![StepOutcome::Success],
            executions: vec![Execution::NotGiven],
            outcome: None,
            deadline: TimeDelta::seconds(120),
        };
        now_or_never(finish(&world, &input))
    }

    fn finish(&self, report: &CheckReport, run: u64) -> FinishReport {
        let (github, _) = self.faulty(&Plan::default(), |_| {});
        self.finish_through(&github, report, run).unwrap()
    }

    /// Every run is over, long enough ago.
    fn all_over(&self) {
        self.edit(|state| {
            for run in RUNS {
                state.finish_run(REPO, run, "failure");
            }
            state.now += TimeDelta::minutes(10);
            for run in RUNS.end..RUNS.end + 5 {
                state.add_run(REPO, run, "issues", "alice");
            }
        });
    }

    /// The readable claims of the issue's key as they stand, whatever the ledger.
    fn claims(&self) -> BTreeMap<u32, Record> {
        self.edit(|state| state.claims_of(REPO, &key()))
    }

    /// The run's own claim, if it has one.
    fn claim_of(&self, run: u64) -> Option<Record> {
        self.claims().into_values().find(|record| record.owner.run == run)
    }
}

fn nonce_of(run: u64, attempt: u32) -> Nonce {
    Nonce::from_bits(run * 100 + u64::from(attempt))
}

fn outcome_of(record: &Record) -> Option<Outcome> {
    match &record.state {
        ClaimState::Settled(settlement) => Some(settlement.outcome),
        ClaimState::Open | ClaimState::Sweep { .. } => None,
    }
}

/// Verdict and reason in words.
fn words(report: &CheckReport) -> (&'static str, &'static str) {
    (report.verdict.as_str(), report.reason.map_or("", |reason| reason.code()))
}
