//! Real processes against the loopback GitHub, many on one key at the same time: one starts the agent, and every other
//! is told which.
//!
//! Few by default; `RUN_GUARD_RACE=full` makes it 50 processes and 20 rounds.

use std::collections::BTreeSet;
use std::process::Stdio;

use chrono::{DateTime, TimeDelta};
use run_guard::core::claim::{
    ClaimState, Handle, LedgerKind, Outcome, REF_PREFIX, Record, parse_check_text, parse_commit_message,
};
use run_guard::core::facts::Permission;
use run_guard::sim::http::Server;
use run_guard::sim::{ItemSpec, Op, State, TokenSpec};
use serde_json::{Value, json};
use tokio::process::Child;

use crate::support::{Ended, run_guard, start_server_unrecorded};

const REPO: &str = "acme/app";
const TOKEN: &str = "ghs_race";
const GRANTS: &str = "actions: read, checks: write, contents: write, issues: write, pull-requests: read";
const FIRST_RUN: u64 = 9_000_000;

/// How many processes and rounds.
fn size() -> (u64, u64) {
    if std::env::var("RUN_GUARD_RACE").is_ok_and(|size| size == "full") { (50, 20) } else { (8, 3) }
}

fn github(runs: u64) -> State {
    let start = DateTime::parse_from_rfc3339("2026-03-02T09:00:00Z").unwrap().to_utc();
    let mut state = State::new(start);
    state.add_repo(REPO, 42);
    state.grant(REPO, "alice", Permission::Write);
    state.open_issue(REPO, ItemSpec::new("alice", "Tokens in the log").number(731).labels(&["security"]));
    state.add_token(TOKEN, TokenSpec::built_in(REPO, GRANTS.parse().unwrap()));
    for run in 0..runs {
        state.add_run(REPO, FIRST_RUN + run, "issues", "alice");
    }
    // For the ledger that keeps claims on commits: an issue names none.
    state.set_file(REPO, ".github/run-guard.yml", &format!("ledger-anchor: \"{:040x}\"", 42));
    state.now += TimeDelta::minutes(1);
    state
}

fn payload(action: &str) -> Value {
    json!({
        "action": action,
        "issue": {"number": 731, "title": "Tokens in the log", "body": null, "state": "open",
                  "user": {"login": "alice", "type": "User"}, "labels": [{"name": "security"}],
                  "html_url": "https://github.com/acme/app/issues/731"},
        "label": {"name": "security"},
        "repository": {"id": 42, "full_name": REPO},
        "sender": {"login": "alice", "type": "User", "id": 7},
    })
}

/// A server and the payloads that its runs were started by.
struct Race {
    server: Server,
    folder: tempfile::TempDir,
    ledger: LedgerKind,
    /// What the checks are called with beside.
    more: Vec<&'static str>,
}

impl Race {
    async fn new(ledger: LedgerKind, runs: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for action in ["opened", "labeled"] {
            std::fs::write(folder.path().join(action), payload(action).to_string()).unwrap();
        }
        Self { server: start_server_unrecorded(github(runs)).await, folder, ledger, more: Vec::new() }
    }

    fn command(&self, run: u64, attempt: u32, args: &[&str]) -> tokio::process::Command {
        let action = if run.is_multiple_of(2) { "opened" } else { "labeled" };
        let mut command = run_guard();
        command
            .args(args)
            .env("GITHUB_EVENT_PATH", self.folder.path().join(action))
            .env("GITHUB_EVENT_NAME", "issues")
            .env("GITHUB_REPOSITORY", REPO)
            .env("GITHUB_RUN_ID", run.to_string())
            .env("GITHUB_RUN_ATTEMPT", attempt.to_string())
            .env("GITHUB_ACTOR", "alice")
            .env("GITHUB_API_URL", self.server.base_url())
            .env("GITHUB_GRAPHQL_URL", self.server.graphql_url())
            .env("GITHUB_SERVER_URL", "https://github.com")
            .env("GITHUB_TOKEN", TOKEN);
        command
    }

    fn check(&self, run: u64) -> tokio::process::Command {
        let args = ["check", "--task", "triage", "--format", "json", "--ledger", self.ledger.as_str()];
        self.command(run, 1, &[&args[..], &self.more].concat())
    }

    /// Runs a check to its end.
    async fn checked(&self, run: u64) -> Checked {
        Checked::of(run, &Ended::of(self.check(run)).await)
    }

    async fn finish(&self, run: u64, claim: &str) -> Ended {
        Ended::of(self.command(run, 1, &["finish", "--claim", claim, "--step-outcome", "success"])).await
    }

    /// Lets all of these runs check at the same time; in the order in which they were started.
    async fn all_at_once(&self, runs: impl Iterator<Item = u64>) -> Vec<Checked> {
        let children: Vec<(u64, Child)> = runs
            .map(|run| {
                let mut command = self.check(run);
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                (run, command.spawn().unwrap())
            })
            .collect();
        let mut ended = Vec::new();
        for (run, child) in children {
            let output = child.wait_with_output().await.unwrap();
            let text = |bytes| String::from_utf8(bytes).unwrap();
            let code = output.status.code().unwrap();
            ended.push(Checked::of(run, &Ended { code, out: text(output.stdout), err: text(output.stderr) }));
        }
        ended
    }

    /// Ends a run, long enough ago that its claim can be taken over without waiting.
    fn over(&self, run: u64) {
        let mut state = self.server.state();
        assert!(state.finish_run(REPO, run, "cancelled"));
        state.now += TimeDelta::minutes(5);
    }
}

/// What a check said.
#[derive(Debug)]
struct Checked {
    run: u64,
    verdict: String,
    reason: String,
    report: Value,
}

impl Checked {
    fn of(run: u64, ended: &Ended) -> Self {
        let report: Value =
            serde_json::from_str(&ended.out).unwrap_or_else(|e| panic!("run {run}: {e}\n{}\n{}", ended.out, ended.err));
        let word = |name: &str| report[name].as_str().unwrap_or_default().to_owned();
        Self { run, verdict: word("verdict"), reason: word("reason"), report }
    }

    fn proceeds(&self) -> bool {
        self.verdict == "proceed"
    }

    fn claim(&self) -> &str {
        self.report["claim"].as_str().unwrap()
    }
}

/// Exactly one proceeds, and every other says `in-progress` and names its run.
#[track_caller]
fn one_winner(all: &[Checked]) -> &Checked {
    let winners: Vec<&Checked> = all.iter().filter(|checked| checked.proceeds()).collect();
    let [winner] = winners[..] else { panic!("{} of {} proceed: {all:#?}", winners.len(), all.len()) };
    let page = format!("/actions/runs/{}", winner.run);
    for other in all.iter().filter(|other| other.run != winner.run) {
        assert_eq!((other.verdict.as_str(), other.reason.as_str()), ("skip", "in-progress"), "{other:#?}");
        assert!(other.report["evidence"].to_string().contains(&page), "{other:#?} does not name {page}");
    }
    winner
}

#[tokio::test]
async fn of_many_at_once_one_proceeds_and_the_rest_name_it() {
    let (processes, rounds) = size();
    for ledger in LedgerKind::ALL {
        for _ in 0..rounds {
            let race = Race::new(ledger, processes).await;
            let all = race.all_at_once((0..processes).map(|n| FIRST_RUN + n)).await;
            let winner = one_winner(&all);
            let handle: Handle = winner.claim().parse().unwrap();
            assert_eq!((handle.ledger, handle.number), (ledger, 1));

            // The same again, one after the other, and after the end.
            let late = race.checked(FIRST_RUN + (winner.run - FIRST_RUN + 1) % processes).await;
            assert_eq!(late.reason, "in-progress");
            assert_eq!(race.finish(winner.run, winner.claim()).await.code, 0);
            let after = race.all_at_once((0..processes).map(|n| FIRST_RUN + n).filter(|run| *run != winner.run)).await;
            for checked in &after {
                assert_eq!((checked.verdict.as_str(), checked.reason.as_str()), ("skip", "already-done"));
            }
        }
    }
}

/// The winner is killed as soon as its claim stands, its run ends, and all others come again: one takes over.
#[tokio::test]
async fn a_winner_that_is_killed_is_followed_by_one_other() {
    let (processes, rounds) = size();
    for ledger in LedgerKind::ALL {
        for _ in 0..rounds {
            let race = Race::new(ledger, processes).await;
            let mut winner = race.check(FIRST_RUN).stdout(Stdio::null()).spawn().unwrap();
            // Until the creation was asked for: the claim then stands, or the process is gone before it could be.
            while !race.server.state().calls().iter().any(|call| call.op == creation(ledger)) {
                tokio::task::yield_now().await;
            }
            winner.kill().await.unwrap();
            race.over(FIRST_RUN);

            let all = race.all_at_once((1..processes).map(|n| FIRST_RUN + n)).await;
            let second = one_winner(&all);
            let handle: Handle = second.claim().parse().unwrap();
            assert_eq!(handle.number, 2, "{second:#?}");
            assert_eq!(race.finish(second.run, second.claim()).await.code, 0);
            assert_eq!(settled_by(&race.server), BTreeSet::from([second.run]), "claim 1 was left as it was");

            let last = race.checked(FIRST_RUN + 1).await;
            assert_eq!(last.reason, "already-done");
        }
    }
}

/// One delivery that starts two steps of one run: another step is not the same owner.
#[tokio::test]
async fn of_two_steps_of_one_run_one_proceeds() {
    let (_, rounds) = size();
    for ledger in LedgerKind::ALL {
        for _ in 0..rounds {
            let race = Race::new(ledger, 1).await;
            let both = race.all_at_once([FIRST_RUN, FIRST_RUN].into_iter()).await;
            let mut verdicts: Vec<_> = both.iter().map(|c| (c.verdict.as_str(), c.reason.as_str())).collect();
            verdicts.sort_unstable();
            assert_eq!(verdicts, [("proceed", ""), ("skip", "in-progress")], "{both:#?}");
            let other = both.iter().find(|checked| !checked.proceeds()).unwrap();
            assert!(other.report["evidence"].to_string().contains(&format!("/actions/runs/{FIRST_RUN}")), "{other:#?}");
        }
    }
}

/// Who comes too early after the end of the owner's run is told when; when that time has come, one takes over.
#[tokio::test]
async fn an_owner_that_ended_just_now_is_followed_when_github_says_it_is_time() {
    let (processes, _) = size();
    for ledger in LedgerKind::ALL {
        let mut race = Race::new(ledger, processes).await;
        assert!(race.checked(FIRST_RUN).await.proceeds());
        assert!(race.server.state().finish_run(REPO, FIRST_RUN, "failure"));
        let ended = race.server.state().now;
        // Less than the time that is left, so that nobody waits here.
        race.more = vec!["--deadline", "30s"];
        let early = race.all_at_once((1..processes).map(|n| FIRST_RUN + n)).await;
        let time = ended + TimeDelta::seconds(60);
        for checked in &early {
            assert_eq!((checked.verdict.as_str(), checked.reason.as_str()), ("defer", "settling"), "{checked:#?}");
            assert_eq!(checked.report["retry_at"], time.format("%Y-%m-%dT%H:%M:%SZ").to_string());
        }
        race.server.state().now = time;
        let late = race.all_at_once((1..processes).map(|n| FIRST_RUN + n)).await;
        let handle: Handle = one_winner(&late).claim().parse().unwrap();
        assert_eq!(handle.number, 2);
    }
}

/// The request whose answer decides a race.
const fn creation(ledger: LedgerKind) -> Op {
    match ledger {
        LedgerKind::Label => Op::CreateLabel,
        LedgerKind::CheckRun => Op::CreateCheckRun,
        LedgerKind::Ref => Op::CreateRef,
    }
}

/// The runs whose claims carry an outcome.
fn settled_by(server: &Server) -> BTreeSet<u64> {
    let state = server.state();
    let labels = state.labels(REPO).into_iter().filter(|label| label.name.starts_with("rg:"));
    let of_labels = labels.map(|label| Record::decode(label.description.as_deref().unwrap()).unwrap());
    let refs = state.refs(REPO, REF_PREFIX).into_iter();
    let of_refs = refs.map(|found| parse_commit_message(&found.message.unwrap()).unwrap().1);
    let checks = state.checks(REPO).into_iter();
    let of_checks = checks.map(|check| parse_check_text(check.said.text.as_deref().unwrap()).unwrap().1.unwrap());
    of_labels
        .chain(of_refs)
        .chain(of_checks)
        // What lost an election was withdrawn, and never was a claim.
        .filter(|record| match &record.state {
            ClaimState::Settled(settlement) => settlement.outcome != Outcome::Withdrawn,
            _ => false,
        })
        .map(|record| record.owner.run)
        .collect()
}
