//! `finish` on the embedded GitHub in process, over the ledgers: what it settles and why, and the sweep that it does on
//! the side.

use std::cell::RefCell;
use std::rc::Rc;

use chrono::{DateTime, TimeDelta, Utc};
use run_guard::app::World;
use run_guard::app::finish::{FinishInput, StepOutcome, finish};
use run_guard::app::report::FinishReport;
use run_guard::core::claim::{
    Cause, Claim, ClaimRead, ClaimState, Handle, LedgerKind, Nonce, Outcome, Owner, Record, SweepPhase,
};
use run_guard::core::execution::Execution;
use run_guard::core::facts::Claims;
use run_guard::core::key::Key;
use run_guard::core::trigger::RunContext;
use run_guard::ledger::AnyLedger;
use run_guard::ports::{Clock, Created, GitHub, Ledger, RepoName};
use run_guard::sim::port::InProcess;
use run_guard::sim::{Fault, ItemSpec, Op, Planned, State, TokenSpec};

const REPO: &str = "acme/app";
const TOKEN: &str = "ghs_finish";
const RUN: u64 = 8_812_345;

/// The ledgers whose claims can be deleted.
const SWEEPABLE: [LedgerKind; 2] = [LedgerKind::Label, LedgerKind::Ref];

/// The embedded GitHub's time, which goes on where somebody waits.
struct VirtualClock(Rc<RefCell<State>>);

impl Clock for VirtualClock {
    fn now(&self) -> DateTime<Utc> {
        self.0.borrow().now
    }

    async fn sleep_until(&self, at: DateTime<Utc>) {
        let mut state = self.0.borrow_mut();
        state.now = state.now.max(at);
    }
}

/// An embedded GitHub with issues and the runs of a task on them.
struct Bench {
    state: Rc<RefCell<State>>,
    github: InProcess,
    clock: VirtualClock,
    kind: LedgerKind,
    repo: RepoName,
}

fn key_of(issue: u64) -> Key {
    format!("github.com/42/issue/{issue}/triage").parse().unwrap()
}

impl Bench {
    fn new(kind: LedgerKind) -> Self {
        let mut state = State::new("2026-03-02T09:00:00Z".parse().unwrap());
        state.add_repo(REPO, 42);
        state.open_issue(REPO, ItemSpec::new("alice", "Tokens in the log").number(731));
        state.open_issue(REPO, ItemSpec::new("alice", "Another").number(732));
        state.open_issue(REPO, ItemSpec::new("alice", "A change").number(733).pull_request("abc"));
        let grants = "contents: write, issues: write, pull-requests: write, actions: read";
        state.add_token(TOKEN, TokenSpec::built_in(REPO, grants.parse().unwrap()));
        let state = Rc::new(RefCell::new(state));
        Self {
            github: InProcess::new(Rc::clone(&state), TOKEN),
            clock: VirtualClock(Rc::clone(&state)),
            state,
            kind,
            repo: RepoName::parse(REPO).unwrap(),
        }
    }

    fn edit<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.borrow_mut())
    }

    fn pass(&self, minutes: i64) {
        self.edit(|state| state.now += TimeDelta::minutes(minutes));
    }

    fn ledger(&self) -> AnyLedger<'_, InProcess> {
        AnyLedger::new(self.kind, None, &self.github)
    }

    async fn claims(&self, key: &Key) -> Claims {
        let ledger = self.ledger();
        let probed = self.github.probe(&self.repo, &ledger.probe(key)).await.unwrap();
        ledger.claims(key, &probed).unwrap()
    }

    /// Claims the next number of a key for a run.
    async fn claim(&self, key: &Key, run: u64) -> Handle {
        let claims = self.claims(key).await;
        let highest = claims.last_key_value().and_then(|(_, read)| match read {
            ClaimRead::Readable(claim) => Some(claim.clone()),
            ClaimRead::Unreadable { .. } => None,
        });
        let number = claims.last_key_value().map_or(1, |(number, _)| number + 1);
        let nonce = Nonce::from_bits(run);
        let record = Record {
            owner: Owner { run, attempt: 1, nonce: nonce.clone() },
            cause: Cause::First,
            rerun: None,
            opened_at: self.clock.now(),
            number: key.resource().number(),
            actor: None,
            state: ClaimState::Open,
        };
        let made = self.ledger().create(&self.repo, key, number, &record, highest.as_ref()).await.unwrap();
        assert!(matches!(made, Created::Made(_)));
        Handle { ledger: self.kind, anchor: None, key: key.clone(), number, nonce }
    }

    fn input(&self, claim: &Handle, run: u64) -> FinishInput {
        FinishInput {
            claim: claim.clone(),
            repo: self.repo.clone(),
            run: RunContext { run, attempt: 1, triggering_actor: None },
            step: Some(StepOutcome::Success),
            execution: Execution::NotGiven,
            outcome: None,
            deadline: TimeDelta::seconds(120),
        }
    }

    /// Finishes, and sees to it that no more requests are taken than allowed.
    async fn finish(&self, input: &FinishInput) -> FinishReport {
        self.edit(State::forget_calls);
        let world = World { github: &self.github, clock: &self.clock, nonce: input.claim.nonce.clone() };
        let report = finish(&world, input).await;
        let calls: Vec<_> = self.state.borrow().calls().iter().map(|call| call.op).collect();
        assert!(calls.len() <= 6, "{calls:?}");
        report
    }

    /// A run of the task on another issue: it claims and finishes.
    async fn a_run(&self, issue: u64, run: u64) -> FinishReport {
        let claim = self.claim(&key_of(issue), run).await;
        self.finish(&self.input(&claim, run)).await
    }

    /// A run of the task for a comment on a pull request, which leaves requests for a sweep.
    async fn another_run(&self, run: u64) {
        let claim = self.claim(&"github.com/42/pr/733/triage/comment-5".parse().unwrap(), run).await;
        let report = self.finish(&self.input(&claim, run)).await;
        assert_eq!((report.outcome, report.warnings.len()), (Some(Outcome::Completed), 0), "{report:?}");
    }

    async fn state_of(&self, key: &Key, number: u32) -> ClaimState {
        match self.claims(key).await.remove(&number) {
            Some(ClaimRead::Readable(Claim { record, .. })) => record.state,
            other => panic!("claim {number} is {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_key_is_swept_by_the_runs_of_others_in_three_phases() {
    for kind in SWEEPABLE {
        let bench = Bench::new(kind);
        let old = key_of(731);
        bench.a_run(731, RUN).await;
        let again = bench.claim(&old, RUN + 1).await;
        bench.finish(&FinishInput { outcome: Some(Outcome::Superseded), ..bench.input(&again, RUN + 1) }).await;
        bench.edit(|state| state.close(REPO, 731));
        let numbers = async || bench.claims(&old).await.into_keys().collect::<Vec<_>>();
        let mut run = RUN + 10;
        let mut others = async || {
            run += 1;
            bench.another_run(run).await;
        };

        bench.pass(72 * 60 - 2);
        others().await;
        assert_eq!(numbers().await, [1, 2], "{kind:?}: nothing is swept before its time");
        bench.pass(5);
        others().await;
        assert_eq!(numbers().await, [1, 2, 3], "{kind:?}: the key is held");
        let ClaimState::Sweep { phase: SweepPhase::Holding, at } = bench.state_of(&old, 3).await else {
            panic!("no sweep")
        };
        assert_eq!(at, bench.clock.now(), "by GitHub's time");
        bench.pass(9);
        others().await;
        assert_eq!(numbers().await, [1, 2, 3], "{kind:?}: not before ten minutes");
        bench.pass(1);
        others().await;
        assert_eq!(numbers().await, [3], "{kind:?}: the lower claims are deleted");
        // Where the requests do not suffice for the note, the next one writes it.
        others().await;
        let ClaimState::Sweep { phase: SweepPhase::Cleared, .. } = bench.state_of(&old, 3).await else {
            panic!("not cleared")
        };
        others().await;
        assert_eq!(numbers().await, [3], "{kind:?}: not before ten minutes");
        bench.pass(10);
        others().await;
        assert_eq!(numbers().await, Vec::<u32>::new(), "{kind:?}: the key is free again");
        assert_eq!(bench.claim(&old, RUN + 99).await.number, 1);
    }
}

#[tokio::test]
async fn only_what_nobody_can_ask_for_again_is_swept() {
    for (kind, policy, swept) in [
        (LedgerKind::Label, "", true),
        (LedgerKind::Ref, "", true),
        (LedgerKind::Label, "tasks:\n  triage:\n    memory: none\n", false),
    ] {
        let bench = Bench::new(kind);
        if !policy.is_empty() {
            bench.edit(|state| state.set_file(REPO, ".github/run-guard.yml", policy));
        }
        // Done, open, and remembered by the label that `finish` puts on it unless the policy says otherwise.
        bench.a_run(731, RUN).await;
        bench.pass(73 * 60);
        bench.another_run(RUN + 1).await;
        assert_eq!(bench.claims(&key_of(731)).await.len(), 1 + usize::from(swept), "{kind:?} {policy}");
    }
}

#[tokio::test]
async fn a_sweep_whose_writes_fail_is_gone_on_with_later_and_fails_no_job() {
    let creation = |kind| if kind == LedgerKind::Label { Op::CreateLabel } else { Op::CreateRef };
    for kind in SWEEPABLE {
        for held in [true, false] {
            let fault = Fault::Lost { effect: held };
            let bench = Bench::new(kind);
            bench.a_run(731, RUN).await;
            bench.pass(73 * 60);
            // The first creation is that of the run's own claim.
            bench.edit(|state| state.plan(Planned::next(creation(kind), fault).after(1)));
            bench.another_run(RUN + 1).await;
            let sent = bench.state.borrow().count(creation(kind));
            assert_eq!(sent, 1, "{kind:?}: what holds the key is sent once");
            assert_eq!(bench.claims(&key_of(731)).await.len(), 1 + usize::from(held));
            // The lost answer of a deletion is no harm either.
            bench.pass(11);
            for run in 2..6 {
                bench.edit(|state| state.plan(Planned::next(Op::Mutation, Fault::Lost { effect: run % 2 == 0 })));
                bench.another_run(RUN + run).await;
                bench.pass(11);
            }
            for run in 6..9 {
                bench.another_run(RUN + run).await;
                bench.pass(11);
            }
            assert_eq!(bench.claims(&key_of(731)).await, Claims::new(), "{kind:?} {held}");
        }
    }
}
