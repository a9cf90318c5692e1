//! `finish` on the embedded GitHub in process, over the ledgers: what it settles and why, and the sweep that it does on
//! the side.

use std::cell::RefCell;
use std::rc::Rc;

use chrono::{DateTime, TimeDelta, Utc};
use run_guard::app::World;
use run_guard::app::finish::{FinishInput, finish};
use run_guard::app::report::FinishReport;
use run_guard::core::claim::{
    Cause, Claim, ClaimRead, ClaimState, Handle, LedgerKind, Nonce, Outcome, Owner, Record, SweepPhase,
};
use run_guard::core::ended::StepOutcome;
use run_guard::core::execution::{self, Execution};
use run_guard::core::facts::Claims;
use run_guard::core::key::Key;
use run_guard::core::marker::Marker;
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
            steps: vec![StepOutcome::Success],
            executions: vec![Execution::NotGiven],
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

/// What an agent does between the claim and `finish`.
type Acts = fn(&mut State);

#[tokio::test]
async fn what_a_failed_agent_wrote_is_read_back() {
    let cases: &[(&str, Acts, Outcome, &str)] = &[
        ("issue/731", |_| {}, Outcome::FailedBeforeWrite, "it had written nothing"),
        (
            "issue/731",
            |s| assert!(s.comment(REPO, 731, "claude[bot]", "Here is what I found").is_some()),
            Outcome::FailedAfterWrite,
            "it had written a comment",
        ),
        (
            "issue/731",
            |s| assert!(s.comment(REPO, 731, "alice", "Any news?").is_some()),
            Outcome::FailedBeforeWrite,
            "it had written nothing",
        ),
        (
            "issue/731",
            |s| assert!(s.comment(REPO, 731, "claude[bot]", "Claude Code is working…").is_some()),
            Outcome::FailedBeforeWrite,
            "it had written nothing",
        ),
        (
            "issue/731",
            |s| assert!(s.label_item(REPO, 731, &["bug"], "claude[bot]")),
            Outcome::FailedAfterWrite,
            "it had written the label bug",
        ),
        (
            "pr/733",
            |s| assert!(s.review(REPO, 733, "claude[bot]", "Look here").is_some()),
            Outcome::FailedAfterWrite,
            "it had written a review",
        ),
        (
            "issue/731",
            |s| {
                let head = s.repo(REPO).unwrap().head_sha.clone().unwrap();
                s.add_commit(REPO, &"c".repeat(40), Some(&head), "Repair it");
                s.set_ref(REPO, "refs/heads/claude/issue-731-20260302-0901", &"c".repeat(40));
            },
            Outcome::FailedAfterWrite,
            "it had written the branch claude/issue-731-20260302-0901",
        ),
        (
            "issue/731",
            |s| {
                let head = s.repo(REPO).unwrap().head_sha.clone().unwrap();
                s.set_ref(REPO, "refs/heads/claude/issue-731-x", &head);
                let pull = ItemSpec::new("claude[bot]", "Repair it").number(740).pull_request(&head);
                s.open_issue(REPO, pull.from_branch("claude/issue-731-x"));
            },
            Outcome::FailedAfterWrite,
            "it had written pull request 740",
        ),
        (
            "issue/731",
            |s| {
                for n in 0..60 {
                    s.comment(REPO, 731, "alice", &format!("{n}")).unwrap();
                }
            },
            Outcome::NeedsReview,
            "so many comments came since the claim that not all can be seen",
        ),
        ("issue/731", |s| s.delete_issue(REPO, 731), Outcome::NeedsReview, "the item is not there any more"),
        (
            "issue/731",
            |s| {
                let policy = "tasks:\n  triage:\n    may: [comment, merge]\n";
                s.set_file(REPO, ".github/run-guard.yml", policy);
            },
            Outcome::NeedsReview,
            "the task may do what cannot be read back",
        ),
    ];
    for (about, acts, outcome, why) in cases {
        let bench = Bench::new(LedgerKind::Label);
        let claim = bench.claim(&format!("github.com/42/{about}/triage").parse().unwrap(), RUN).await;
        bench.pass(1);
        bench.edit(acts);
        let input = FinishInput { steps: vec![StepOutcome::Failure], ..bench.input(&claim, RUN) };
        let report = bench.finish(&input).await;
        assert_eq!((report.outcome, report.warnings.as_slice()), (Some(*outcome), &[][..]), "{why}: {report:?}");
        assert_eq!(report.message, format!("the agent's step failed, and {why}"));
        let ClaimState::Settled(settlement) = bench.state_of(&claim.key, 1).await else { panic!("not settled") };
        assert_eq!(settlement.outcome, *outcome);
        assert_eq!(settlement.result_comment.is_some(), why.contains("a comment"), "{why}");
    }
}

#[tokio::test]
async fn what_the_token_may_not_read_is_unknown() {
    let bench = Bench::new(LedgerKind::Label);
    bench.edit(|state| {
        state.make_private(REPO);
        state.add_token("poor", TokenSpec::built_in(REPO, "issues: write".parse().unwrap()));
    });
    let claim = bench.claim(&key_of(731), RUN).await;
    let bench = Bench { github: InProcess::new(Rc::clone(&bench.state), "poor"), ..bench };
    let input = FinishInput { steps: vec![StepOutcome::Failure], ..bench.input(&claim, RUN) };
    let report = bench.finish(&input).await;
    assert_eq!(report.outcome, Some(Outcome::NeedsReview));
    assert_eq!(report.message, "the agent's step failed, and the branches could not be read");
    assert_eq!(bench.state.borrow().item_labels(REPO, 731), ["run-guard:triage:review"]);
}

#[tokio::test]
async fn a_claim_that_is_not_ones_own_any_more_is_left_alone() {
    for kind in SWEEPABLE {
        // Settled already: nothing is written again.
        let bench = Bench::new(kind);
        let claim = bench.claim(&key_of(731), RUN).await;
        bench.finish(&bench.input(&claim, RUN)).await;
        let before = bench.claims(&key_of(731)).await;
        let again = bench.finish(&FinishInput { steps: vec![StepOutcome::Failure], ..bench.input(&claim, RUN) }).await;
        assert_eq!((again.outcome, again.warnings.len()), (Some(Outcome::Completed), 0));
        assert_eq!(again.message, "claim 1 was settled completed already");
        assert_eq!(bench.claims(&key_of(731)).await, before);

        // Lost: the number is another's.
        let theirs = Handle { nonce: Nonce::from_bits(99), ..claim };
        let lost = bench.finish(&bench.input(&theirs, RUN)).await;
        assert_eq!((lost.outcome, lost.message.as_str()), (None, "the claim was not settled"));
        assert_eq!(lost.warnings, [format!("claim 1 belongs to run {RUN} and not to this step, so it was left alone")]);
        assert_eq!(bench.claims(&key_of(731)).await, before);

        // Taken over: one's own lower claim is settled, and no other.
        let bench = Bench::new(kind);
        let own = bench.claim(&key_of(731), RUN).await;
        let next = bench.claim(&key_of(731), RUN + 1).await;
        bench.finish(&bench.input(&own, RUN)).await;
        assert!(matches!(bench.state_of(&key_of(731), 1).await, ClaimState::Settled(_)));
        assert_eq!(bench.state_of(&key_of(731), next.number).await, ClaimState::Open);
    }
}

#[tokio::test]
async fn a_claim_that_has_vanished_is_remembered_by_a_label_and_never_made_again() {
    let vanished = async |change: fn(&mut State), with_another: bool| {
        let bench = Bench::new(LedgerKind::Label);
        let claim = bench.claim(&key_of(731), RUN).await;
        if with_another {
            bench.claim(&key_of(731), RUN + 1).await;
        }
        let first = bench.ledger().read(&bench.repo, &key_of(731), 1).await.unwrap().unwrap();
        bench.ledger().delete(&bench.repo, &key_of(731), &[first]).await.unwrap();
        bench.edit(change);
        let report = bench.finish(&bench.input(&claim, RUN)).await;
        assert_eq!(bench.claims(&key_of(731)).await.len(), usize::from(with_another));
        assert_eq!(report.warnings, ["claim 1 is not there any more, so nothing can be settled"]);
        (report.outcome, bench.state.borrow().item_labels(REPO, 731))
    };
    let review = "run-guard:triage:review".to_owned();
    let done = "run-guard:triage:done".to_owned();
    assert_eq!(vanished(|_| {}, false).await, (Some(Outcome::NeedsReview), vec![review]));
    // Where something else remembers, or nobody can ask again, nothing is added.
    assert_eq!(vanished(|_| {}, true).await, (None, vec![]));
    let is_done: fn(&mut State) = |s| assert!(s.label_item(REPO, 731, &["run-guard:triage:done"], "alice"));
    assert_eq!(vanished(is_done, false).await, (None, vec![done]));
    assert_eq!(vanished(|s| assert!(s.close(REPO, 731)), false).await, (None, vec![]));
}

#[tokio::test]
async fn the_agents_comments_are_stamped_after_it_has_ended() {
    let bench = Bench::new(LedgerKind::Label);
    bench.edit(|state| state.comment(REPO, 731, "claude[bot]", "An older report").unwrap());
    bench.pass(1);
    let claim = bench.claim(&key_of(731), RUN).await;
    bench.edit(|state| {
        state.comment(REPO, 731, "alice", "Thanks").unwrap();
        state.comment(REPO, 731, "claude[bot]", "**Claude finished @alice's task**\n\n---\n").unwrap();
    });
    let report = bench.finish(&bench.input(&claim, RUN)).await;
    assert_eq!(report.warnings, Vec::<String>::new());
    let bodies = |bench: &Bench| -> Vec<String> {
        bench.state.borrow().comments(REPO, 731).iter().map(|row| row.body.clone()).collect()
    };
    let [older, thanks, done] = &bodies(&bench)[..] else { panic!("three comments") };
    assert_eq!((older.as_str(), thanks.as_str()), ("An older report", "Thanks"));
    let marker = Marker::find(done).expect("the last line is a marker");
    assert_eq!((marker.source_run_id, marker.claim, marker.outcome), (RUN, 1, Some(Outcome::Completed)));
    assert_eq!(marker.key, key_of(731));
    assert!(done.starts_with("**Claude finished @alice's task**\n\n---\n\n<!-- run-guard/v1 "), "{done}");

    // What the token may not edit is a warning; a text of full length is cut for the marker.
    let bench = Bench::new(LedgerKind::Label);
    let claim = bench.claim(&key_of(731), RUN).await;
    bench.edit(|state| {
        state.comment(REPO, 731, "claude[bot]", &"é".repeat(65_536)).unwrap();
        state.plan(Planned::next(Op::UpdateComment, Fault::Denied));
    });
    let report = bench.finish(&bench.input(&claim, RUN)).await;
    assert_eq!(report.outcome, Some(Outcome::Completed));
    assert!(report.warnings[0].starts_with("the marker was not written into https://github.com/"), "{report:?}");
    let again = bench.claim(&key_of(731), RUN + 1).await;
    bench.finish(&bench.input(&again, RUN + 1)).await;
    assert_eq!(Marker::find(&bodies(&bench)[0]).map(|marker| marker.claim), Some(2));
    assert_eq!(bodies(&bench)[0].chars().count(), 65_536);
}

#[tokio::test]
async fn two_agent_steps_are_one_outcome_and_a_cost_that_is_at_least_known() {
    let bench = Bench::new(LedgerKind::Label);
    let claim = bench.claim(&key_of(731), RUN).await;
    let file = execution::read(r#"[{"type":"result","subtype":"success","total_cost_usd":0.5,"num_turns":2}]"#);
    let input = FinishInput {
        steps: vec![StepOutcome::Success, StepOutcome::Success],
        executions: vec![file],
        ..bench.input(&claim, RUN)
    };
    let report = bench.finish(&input).await;
    assert_eq!((report.outcome, report.cost_cents, report.turns), (Some(Outcome::Completed), Some(50), Some(2)));
    assert!(report.warnings[0].starts_with("there are more steps than execution files"), "{report:?}");
}

/// Every write of `finish`, and all that can become of its answer: what is to be done is done, and nothing twice.
#[tokio::test]
async fn whatever_becomes_of_an_answer_each_write_is_done_once() {
    let limited = |status, retry_after| Fault::RateLimited { status, retry_after, reset_in: None };
    let faults = [
        Fault::Lost { effect: false },
        Fault::Lost { effect: true },
        Fault::Server { status: 502, effect: false },
        Fault::Server { status: 502, effect: true },
        limited(403, Some(5)),
        limited(403, None),
        limited(429, Some(5)),
        limited(429, None),
    ];
    let settling = |kind| match kind {
        LedgerKind::Ref => vec![Op::CreateCommit, Op::UpdateRef],
        _ => vec![Op::UpdateLabel],
    };
    for kind in SWEEPABLE {
        for op in settling(kind).into_iter().chain([Op::AddLabels, Op::RemoveLabel, Op::UpdateComment]) {
            for fault in &faults {
                let bench = Bench::new(kind);
                bench.edit(|state| assert!(state.label_item(REPO, 731, &["run-guard:triage:review"], "alice")));
                let claim = bench.claim(&key_of(731), RUN).await;
                bench.pass(1);
                bench.edit(|state| {
                    state.comment(REPO, 731, "claude[bot]", "Done.").unwrap();
                    state.plan(Planned::next(op, fault.clone()));
                });
                let world = World { github: &bench.github, clock: &bench.clock, nonce: claim.nonce.clone() };
                let report = finish(&world, &bench.input(&claim, RUN)).await;
                let context = format!("{kind:?} {op} {fault:?}: {report:?}");
                assert_eq!(report.outcome, Some(Outcome::Completed), "{context}");
                let ClaimState::Settled(settlement) = bench.state_of(&key_of(731), 1).await else {
                    panic!("not settled: {context}")
                };
                assert_eq!(settlement.outcome, Outcome::Completed, "{context}");
                assert_eq!(bench.claims(&key_of(731)).await.len(), 1, "{context}");
                let state = bench.state.borrow();
                assert_eq!(state.item_labels(REPO, 731), ["run-guard:triage:done"], "{context}");
                let [comment] = &state.comments(REPO, 731)[..] else { panic!("one comment: {context}") };
                // Where the requests are used up, the comment is left and a warning says so.
                let stamped = comment.body.matches("run-guard/v1").count();
                assert_eq!(stamped + report.warnings.len(), 1, "{context}");
            }
        }
    }
}

/// What is refused for good, or for longer than the deadline, is a warning and fails no job.
#[tokio::test]
async fn what_cannot_be_written_is_a_warning() {
    let faults = [
        Fault::Denied,
        Fault::Lost { effect: false },
        Fault::RateLimited { status: 403, retry_after: Some(3600), reset_in: None },
        Fault::RateLimited { status: 403, retry_after: None, reset_in: Some(3600) },
    ];
    for op in [Op::UpdateLabel, Op::AddLabels, Op::UpdateComment] {
        for fault in &faults {
            let bench = Bench::new(LedgerKind::Label);
            let claim = bench.claim(&key_of(731), RUN).await;
            bench.edit(|state| {
                state.comment(REPO, 731, "claude[bot]", "Done.").unwrap();
                state.plan(Planned::always(op, fault.clone()));
            });
            let world = World { github: &bench.github, clock: &bench.clock, nonce: claim.nonce.clone() };
            let report = finish(&world, &bench.input(&claim, RUN)).await;
            assert_eq!(report.outcome.is_none(), op == Op::UpdateLabel, "{op} {fault:?}: {report:?}");
            assert!(!report.warnings.is_empty(), "{op} {fault:?}: {report:?}");
            assert!(bench.clock.now() <= "2026-03-02T09:02:00Z".parse::<DateTime<Utc>>().unwrap(), "{op} {fault:?}");
        }
    }
}
