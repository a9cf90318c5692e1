//! `check --resume` and `check --wait`: the rule as a table, and the whole command on the embedded GitHub.

use std::cell::RefCell;
use std::rc::Rc;

use chrono::{DateTime, TimeDelta, Utc};
use run_guard::app::World;
use run_guard::app::check::{CheckInput, check};
use run_guard::app::finish::{FinishInput, finish};
use run_guard::app::report::CheckReport;
use run_guard::core::claim::{
    Cause, Claim, ClaimRead, ClaimState, Handle, LedgerKind, Nonce, Outcome, Owner, Record, Settlement, SweepPhase,
    Thing,
};
use run_guard::core::decision::{OnError, Reason, Verdict};
use run_guard::core::ended::StepOutcome;
use run_guard::core::facts::{Fact, Facts, Permission};
use run_guard::core::gates::Context;
use run_guard::core::gates::resume::{Resume, judge};
use run_guard::core::policy::Policy;
use run_guard::core::trigger::{RunContext, Trigger};
use run_guard::ports::{Clock, RepoName};
use run_guard::sim::port::InProcess;
use run_guard::sim::{ItemSpec, Op, State, TokenSpec};
use serde_json::{Value, json};

const REPO: &str = "acme/app";
const RUN: u64 = 500;

fn opened() -> Value {
    json!({
        "action": "opened",
        "issue": {"number": 731, "title": "Tokens in the log", "body": null, "state": "open",
                  "user": {"login": "alice", "type": "User"}, "labels": [],
                  "html_url": "https://github.com/acme/app/issues/731"},
        "repository": {"id": 42, "full_name": REPO, "html_url": "https://github.com/acme/app"},
        "sender": {"login": "alice", "type": "User", "id": 7},
    })
}

fn handle() -> Handle {
    let key = "github.com/42/issue/731/triage".parse().unwrap();
    Handle { ledger: LedgerKind::Label, anchor: None, key, number: 2, nonce: Nonce::from_bits(RUN) }
}

fn claim(number: u32, run: u64, attempt: u32, state: ClaimState) -> ClaimRead {
    let record = Record {
        owner: Owner { run, attempt, nonce: Nonce::from_bits(run) },
        cause: Cause::First,
        rerun: None,
        opened_at: DateTime::UNIX_EPOCH,
        number: Some(731),
        actor: None,
        state,
    };
    ClaimRead::Readable(Claim { number, thing: Thing::default(), record })
}

fn settled() -> ClaimState {
    let (outcome, at) = (Outcome::FailedBeforeWrite, DateTime::UNIX_EPOCH);
    ClaimState::Settled(Settlement { outcome, at, cost_cents: None, result_comment: None })
}

#[test]
fn a_claim_is_resumed_by_its_own_attempt_and_followed_by_a_persons_higher_one() {
    let open = || ClaimState::Open;
    let sweep = ClaimState::Sweep { phase: SweepPhase::Holding, at: DateTime::UNIX_EPOCH };
    let odd = ClaimRead::Unreadable { number: 2, thing: Thing::default(), why: "it is odd".to_owned() };
    let stop = Err::<bool, Reason>;
    // The claims, the attempt that asks, who started it; then whether it holds (true), is decided by the ordinary rules
    // (false), or the reason to stop.
    let cases: Vec<(Vec<ClaimRead>, u32, &str, Result<bool, Reason>)> = vec![
        (vec![claim(2, RUN, 1, open())], 1, "alice", Ok(true)),
        (vec![claim(1, 9, 1, settled()), claim(2, RUN, 1, open())], 1, "alice", Ok(true)),
        (vec![claim(2, RUN, 1, open())], 2, "alice", Ok(false)),
        (vec![claim(2, RUN, 1, settled())], 2, "alice", Ok(false)),
        (vec![claim(2, RUN, 1, settled()), claim(3, RUN, 2, settled())], 3, "alice", Ok(false)),
        (vec![claim(2, RUN, 1, open())], 2, "github-actions[bot]", stop(Reason::InProgress)),
        (vec![claim(2, RUN, 1, settled())], 2, "github-actions[bot]", stop(Reason::AlreadyDone)),
        (vec![claim(2, RUN, 1, settled())], 1, "alice", stop(Reason::AlreadyDone)),
        (vec![claim(2, RUN, 2, open())], 1, "alice", stop(Reason::InProgress)),
        (vec![claim(2, RUN, 1, sweep)], 1, "alice", stop(Reason::AlreadyDone)),
        (vec![claim(2, 501, 1, open())], 1, "alice", stop(Reason::InProgress)),
        (vec![claim(2, RUN, 1, open()), claim(3, 501, 1, open())], 1, "alice", stop(Reason::Superseded)),
        (vec![claim(2, RUN, 1, open()), claim(3, 501, 1, open())], 2, "alice", stop(Reason::Superseded)),
        (vec![claim(2, RUN, 1, settled()), claim(3, RUN, 2, open())], 2, "alice", stop(Reason::Superseded)),
        (vec![], 1, "alice", stop(Reason::PreviousFailed)),
        (vec![], 2, "alice", stop(Reason::PreviousFailed)),
        (vec![claim(1, 9, 1, settled())], 1, "alice", stop(Reason::PreviousFailed)),
        (vec![odd], 1, "alice", stop(Reason::PreviousFailed)),
    ];
    let policy = Policy::default();
    let task = "triage".parse().unwrap();
    for (reads, attempt, by, expected) in cases {
        let run = RunContext { run: RUN, attempt, triggering_actor: Some(by.to_owned()) };
        let trigger = Trigger::read("issues", &opened(), "github.com", run).unwrap();
        let claims = reads.iter().map(|read| (read.number(), read.clone())).collect();
        let facts = Facts { claims: Fact::Known(claims), ..Facts::default() };
        let cx = Context {
            trigger: &trigger,
            task: &task,
            key: &handle().key,
            policy: &policy,
            rules: policy.task(&task),
            facts: &facts,
            now: DateTime::UNIX_EPOCH,
        };
        let got = match judge(&cx, &handle()) {
            Resume::Holds => Ok(true),
            Resume::Decide => Ok(false),
            Resume::Stop(stop) => Err(stop.reason),
        };
        assert_eq!(got, expected, "attempt {attempt} by {by}: {reads:?}");
        let unread = Facts { claims: Fact::Unknown("503".to_owned()), ..Facts::default() };
        let Resume::Stop(stop) = judge(&Context { facts: &unread, ..cx }, &handle()) else { panic!("it goes on") };
        assert_eq!(stop.reason, Reason::LedgerUnreachable);
    }
}

/// A change of the embedded GitHub at a time.
type Later = (DateTime<Utc>, fn(&mut State));

/// The embedded GitHub's time. What is to happen while somebody waits happens then.
struct VirtualClock {
    state: Rc<RefCell<State>>,
    later: RefCell<Option<Later>>,
}

impl Clock for VirtualClock {
    fn now(&self) -> DateTime<Utc> {
        self.state.borrow().now
    }

    async fn sleep_until(&self, at: DateTime<Utc>) {
        let mut state = self.state.borrow_mut();
        state.now = state.now.max(at);
        let due = self.later.borrow_mut().take_if(|(when, _)| *when <= at);
        if let Some((_, change)) = due {
            change(&mut state);
        }
    }
}

struct Bench {
    state: Rc<RefCell<State>>,
    github: InProcess,
    clock: VirtualClock,
}

impl Bench {
    fn new() -> Self {
        let mut state = State::new("2026-03-02T09:00:00Z".parse().unwrap());
        state.add_repo(REPO, 42);
        state.grant(REPO, "alice", Permission::Write);
        state.open_issue(REPO, ItemSpec::new("alice", "Tokens in the log").number(731));
        let grants = "contents: read, issues: write, actions: read";
        state.add_token("job", TokenSpec::built_in(REPO, grants.parse().unwrap()));
        for run in [RUN, RUN + 1] {
            state.add_run(REPO, run, "issues", "alice");
        }
        let state = Rc::new(RefCell::new(state));
        let clock = VirtualClock { state: Rc::clone(&state), later: RefCell::new(None) };
        Self { github: InProcess::new(Rc::clone(&state), "job"), clock, state }
    }

    async fn check(&self, run: u64, attempt: u32, wait: i64, resume: Option<Handle>) -> CheckReport {
        let input = CheckInput {
            event_name: "issues".to_owned(),
            payload: opened(),
            host: "github.com".to_owned(),
            run: RunContext { run, attempt, triggering_actor: Some("alice".to_owned()) },
            task: "triage".parse().unwrap(),
            ledger: None,
            config: None,
            anyone: false,
            paused: false,
            dry_run: false,
            on_error: OnError::Default,
            deadline: TimeDelta::seconds(120),
            wait: TimeDelta::seconds(wait),
            resume,
        };
        let nonce = Nonce::from_bits(run * 10 + u64::from(attempt));
        check(&World { github: &self.github, clock: &self.clock, nonce }, &input).await
    }
}

fn verdict(report: &CheckReport) -> (Verdict, Option<Reason>, Option<u32>) {
    (report.verdict, report.reason, report.fence)
}

#[tokio::test]
async fn an_agent_job_goes_on_with_the_guard_jobs_claim() {
    let bench = Bench::new();
    let guard = bench.check(RUN, 1, 0, None).await;
    let claim = guard.claim.clone().unwrap();
    let writes = bench.state.borrow().writes().len();
    let agent = bench.check(RUN, 1, 0, Some(claim.clone())).await;
    assert_eq!(verdict(&agent), (Verdict::Proceed, None, Some(1)), "{agent:?}");
    assert_eq!((agent.claim.as_ref(), &agent.marker), (Some(&claim), &guard.marker));
    assert_eq!(bench.state.borrow().writes().len(), writes, "nothing is written");

    // Another run is given the claim: it stops.
    let other = bench.check(RUN + 1, 1, 0, Some(claim.clone())).await;
    assert_eq!(verdict(&other), (Verdict::Skip, Some(Reason::InProgress), None));

    // The agent's job fails and a person re-runs the failed jobs: the next number, under the same key.
    let repo = RepoName::parse(REPO).unwrap();
    let input = FinishInput {
        claim: claim.clone(),
        repo,
        run: RunContext { run: RUN, attempt: 1, triggering_actor: None },
        steps: vec![StepOutcome::Failure],
        executions: Vec::new(),
        outcome: None,
        deadline: TimeDelta::seconds(120),
    };
    finish(&World { github: &bench.github, clock: &bench.clock, nonce: claim.nonce.clone() }, &input).await;
    assert!(bench.state.borrow_mut().finish_run(REPO, RUN, "failure"));
    assert_eq!(bench.state.borrow_mut().rerun(REPO, RUN, "alice"), Some(2));
    let again = bench.check(RUN, 2, 0, Some(claim.clone())).await;
    assert_eq!(verdict(&again), (Verdict::Proceed, None, Some(2)), "{again:?}");
    assert_ne!(again.claim.unwrap().nonce, claim.nonce);
    let late = bench.check(RUN, 2, 0, Some(claim)).await;
    assert_eq!(verdict(&late), (Verdict::Skip, Some(Reason::Superseded), None));
}

#[tokio::test]
async fn a_claim_of_something_else_is_an_error() {
    let bench = Bench::new();
    let mut claim = bench.check(RUN, 1, 0, None).await.claim.unwrap();
    claim.key = "github.com/42/issue/732/triage".parse().unwrap();
    let report = bench.check(RUN, 1, 0, Some(claim)).await;
    assert_eq!(verdict(&report), (Verdict::Error, Some(Reason::BadPayload), None));
}

#[tokio::test]
async fn a_live_holder_is_waited_for_inside_a_bound_of_requests() {
    // Without the flag there is no wait, and with it the wait ends.
    let bench = Bench::new();
    assert!(bench.check(RUN, 1, 0, None).await.proceeds());
    let start = bench.clock.now();
    assert_eq!(bench.check(RUN + 1, 1, 0, None).await.reason, Some(Reason::InProgress));
    assert_eq!(bench.clock.now(), start);
    bench.state.borrow_mut().forget_calls();
    assert_eq!(bench.check(RUN + 1, 1, 60, None).await.reason, Some(Reason::InProgress));
    assert_eq!(bench.clock.now() - start, TimeDelta::seconds(60));
    let calls = bench.state.borrow().calls().len();
    assert_eq!(calls, 2 + 1 + 6 * 2, "facts, permission and holder, and two a look");
    bench.state.borrow_mut().forget_calls();
    let start = bench.clock.now();
    bench.check(RUN + 1, 1, 3600, None).await;
    assert!(bench.clock.now() - start <= TimeDelta::seconds(120), "the deadline bounds the wait");
    assert!(bench.state.borrow().calls().len() <= 3 + 12 * 2);

    // What the holder leaves is judged by the ordinary rules: here its claim, withdrawn, leaves the work free.
    let bench = Bench::new();
    assert!(bench.check(RUN, 1, 0, None).await.proceeds());
    let later = bench.clock.now() + TimeDelta::seconds(25);
    bench.clock.later.replace(Some((later, |state| {
        let withdrawn = |text: &str| text.replace(" open", " wd@t5n2a8");
        state.edit_repo(REPO, |repo| {
            let label = repo.labels.values_mut().find(|label| label.name.starts_with("rg:")).unwrap();
            label.description = label.description.as_deref().map(withdrawn);
        });
    })));
    let second = bench.check(RUN + 1, 1, 60, None).await;
    assert_eq!(verdict(&second), (Verdict::Proceed, None, Some(2)), "{second:?}");
    assert_eq!(bench.state.borrow().count(Op::CreateLabel), 2);
}
