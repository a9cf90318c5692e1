//! How many requests each path takes, counted in the loopback GitHub, and what the binary makes of each answer to the
//! creation of a claim.

use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};
use run_guard::core::facts::Permission;
use run_guard::core::identity::ActorKind;
use run_guard::sim::http::Server;
use run_guard::sim::{CheckLists, Fault, ItemSpec, Op, Planned, State, TokenSpec};
use serde_json::{Value, json};

use crate::support::{Ended, run_guard, start_server};

const REPO: &str = "acme/app";
const RUN: u64 = 8_812_345;
/// Looked for in everything that is captured.
const TOKEN: &str = "ghs_canary0123456789abcdefghijklmnop";
const GRANTS: &str = "actions: read, contents: write, issues: write, pull-requests: read";
const POLICY: &str = "\
max-runs-per-hour: 50
tasks:
  investigate:
    trigger-labels: [security]
";

fn start() -> DateTime<Utc> {
    DateTime::parse_from_rfc3339("2026-03-02T09:00:00Z").unwrap().to_utc()
}

/// A repository with an issue, so many comments by people, a policy, and two runs.
fn github(comments: usize) -> State {
    let mut state = State::new(start());
    state.add_repo(REPO, 42);
    state.grant(REPO, "alice", Permission::Write);
    state.add_user("mallory", ActorKind::User);
    state.set_file(REPO, ".github/run-guard.yml", POLICY);
    state.open_issue(REPO, ItemSpec::new("alice", "Tokens in the log").number(731).labels(&["security"]));
    for n in 0..comments {
        state.comment(REPO, 731, "mallory", &format!("me too, {n}")).unwrap();
    }
    state.add_token(TOKEN, TokenSpec::built_in(REPO, GRANTS.parse().unwrap()));
    for run in [RUN, RUN + 1] {
        state.add_run(REPO, run, "issues", "alice");
    }
    state.now += TimeDelta::minutes(1);
    state
}

fn payload(action: &str, sender: &Value) -> Value {
    json!({
        "action": action,
        "issue": {"number": 731, "title": "Tokens in the log", "body": null, "state": "open",
                  "user": {"login": "alice", "type": "User"}, "labels": [{"name": "security"}],
                  "html_url": "https://github.com/acme/app/issues/731"},
        "label": {"name": "security"},
        "repository": {"id": 42, "full_name": REPO},
        "sender": sender,
    })
}

fn alice() -> Value {
    json!({"login": "alice", "type": "User", "id": 7})
}

/// A folder with a payload and the runner's files, and the server that the binary is pointed at.
struct Step<'a> {
    folder: tempfile::TempDir,
    server: &'a Server,
    run: u64,
    attempt: u32,
}

impl<'a> Step<'a> {
    fn new(server: &'a Server, payload: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("event.json"), payload.to_string()).unwrap();
        Self { folder, server, run: RUN, attempt: 1 }
    }

    fn of_run(mut self, run: u64, attempt: u32) -> Self {
        (self.run, self.attempt) = (run, attempt);
        self
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the binary as a step does and gives what it wrote. The token stands nowhere in it.
    async fn ends(&self, args: &[&str]) -> Ended {
        let mut command = run_guard();
        command
            .args(args)
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_EVENT_PATH", self.file("event.json"))
            .env("GITHUB_EVENT_NAME", "issues")
            .env("GITHUB_REPOSITORY", REPO)
            .env("GITHUB_RUN_ID", self.run.to_string())
            .env("GITHUB_RUN_ATTEMPT", self.attempt.to_string())
            .env("GITHUB_TRIGGERING_ACTOR", "alice")
            .env("GITHUB_API_URL", self.server.base_url())
            .env("GITHUB_GRAPHQL_URL", self.server.graphql_url())
            .env("GITHUB_SERVER_URL", "https://github.com")
            .env("GITHUB_TOKEN", TOKEN)
            .env("GITHUB_OUTPUT", self.file("output"))
            .env("GITHUB_STEP_SUMMARY", self.file("summary"));
        let ended = Ended::of(command).await;
        for text in [&ended.out, &ended.err, &self.read("output"), &self.read("summary")] {
            assert!(!text.contains(TOKEN), "the token is in\n{text}");
        }
        ended
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// The verdict and reason that a check ends with.
    async fn check(&self, more: &[&str]) -> (String, String, Value) {
        let args = [&["check", "--task", "investigate", "--format", "json", "--verbose"], more].concat();
        let ended = self.ends(&args).await;
        let json = ended.out.rsplit_once("\n::").map_or(ended.out.as_str(), |(json, _)| json);
        let value: Value = serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}\n{}\n{}", ended.out, ended.err));
        let word = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        (word("verdict"), word("reason"), value)
    }
}

/// The requests since the last look, without the one that is asked at the same time.
fn requests(server: &Server) -> Vec<Op> {
    let mut state = server.state();
    let ops = state.calls().iter().map(|call| call.op).collect();
    state.forget_calls();
    ops
}

#[tokio::test]
async fn each_path_takes_its_requests_whatever_the_number_of_comments() {
    for comments in [10, 1_000, 10_000] {
        let server = start_server(github(comments)).await;

        // An agent's event is refused on facts alone.
        let agent = json!({"login": "claude[bot]", "type": "Bot", "id": 209_825_114});
        let (verdict, reason, _) = Step::new(&server, &payload("labeled", &agent)).check(&[]).await;
        assert_eq!((verdict.as_str(), reason.as_str()), ("skip", "loop-self"));
        assert_eq!(requests(&server), [Op::Graphql], "{comments} comments: a skip on facts");

        // What payload and inputs alone decide takes none.
        let (_, reason, _) = Step::new(&server, &payload("opened", &alice())).check(&["--paused"]).await;
        assert_eq!(reason, "paused");
        assert_eq!(requests(&server), [], "{comments} comments: decided by an input");

        // A person's permission is asked at the same time as the facts; then the claim is made.
        let (verdict, _, value) = Step::new(&server, &payload("opened", &alice())).check(&[]).await;
        assert_eq!(verdict, "proceed");
        let mut accept = requests(&server);
        accept.sort();
        let mut expected = [Op::Graphql, Op::Permission, Op::CreateLabel];
        expected.sort();
        assert_eq!(accept, expected, "{comments} comments: an accept");

        // The run that holds the claim is looked up.
        let (_, reason, _) = Step::new(&server, &payload("labeled", &alice())).of_run(RUN + 1, 1).check(&[]).await;
        assert_eq!(reason, "in-progress");
        assert_eq!(requests(&server).len(), 3, "{comments} comments: in progress");

        // `finish` reads, settles and labels.
        let step = Step::new(&server, &payload("opened", &alice()));
        let claim = value["claim"].as_str().unwrap();
        step.ends(&["finish", "--claim", claim, "--step-outcome", "success"]).await;
        let finish = requests(&server);
        assert!(finish.len() <= 6, "{comments} comments: finish took {finish:?}");
        assert_eq!(finish.len(), 3, "{comments} comments: finish took {finish:?}");

        // A skip with a person's permission.
        let (_, reason, _) = Step::new(&server, &payload("opened", &alice())).of_run(RUN + 1, 1).check(&[]).await;
        assert_eq!(reason, "already-done");
        assert_eq!(requests(&server).len(), 2, "{comments} comments: already done");
    }
}

#[tokio::test]
async fn the_ref_ledger_takes_one_request_more_to_accept() {
    let server = start_server(github(10)).await;
    let ledger = ["--ledger", "ref"];
    let agent = json!({"login": "claude[bot]", "type": "Bot", "id": 209_825_114});
    let (_, reason, _) = Step::new(&server, &payload("labeled", &agent)).check(&ledger).await;
    assert_eq!(reason, "loop-self");
    assert_eq!(requests(&server), [Op::Graphql], "a skip on facts");

    let (verdict, _, value) = Step::new(&server, &payload("opened", &alice())).check(&ledger).await;
    assert_eq!(verdict, "proceed");
    let mut accept = requests(&server);
    accept.sort();
    let mut expected = [Op::Graphql, Op::Permission, Op::CreateCommit, Op::CreateRef];
    expected.sort();
    assert_eq!(accept, expected, "an accept, with a person's permission");

    // The facts are older than the claim, so this run tries to create what is there already.
    server.state().plan(Planned::next(Op::Graphql, Fault::Stale(2)));
    let (_, reason, _) = Step::new(&server, &payload("labeled", &alice())).of_run(RUN + 1, 1).check(&ledger).await;
    assert_eq!(reason, "in-progress");
    assert_eq!(requests(&server).len(), 6, "a lost race, and the holder looked up");

    let step = Step::new(&server, &payload("opened", &alice()));
    step.ends(&["finish", "--claim", value["claim"].as_str().unwrap(), "--step-outcome", "success"]).await;
    let finish = requests(&server);
    assert_eq!(finish, [Op::Graphql, Op::CreateCommit, Op::UpdateRef, Op::AddLabels]);
    let (_, reason, _) = Step::new(&server, &payload("opened", &alice())).of_run(RUN + 1, 1).check(&ledger).await;
    assert_eq!(reason, "already-done");
    assert_eq!(requests(&server).len(), 2);

    // A ledger that only the policy names is known after the first read.
    server.state().set_file(REPO, ".github/run-guard.yml", "ledger: ref");
    let mut other = payload("opened", &alice());
    other["issue"]["number"] = json!(731);
    let (_, reason, _) = Step::new(&server, &other).of_run(RUN + 1, 1).check(&[]).await;
    assert_eq!(reason, "already-done");
    assert_eq!(requests(&server).len(), 3);
}

#[tokio::test]
async fn the_check_run_ledger_takes_one_request_more_to_accept() {
    let mut state = github(10);
    let policy = format!("ledger-anchor: \"{:040x}\"\ntasks: {{investigate: {{trigger-labels: [security]}}}}\n", 42);
    state.set_file(REPO, ".github/run-guard.yml", &policy);
    state.add_token(TOKEN, TokenSpec::built_in(REPO, format!("{GRANTS}, checks: write").parse().unwrap()));
    let server = start_server(state).await;
    let ledger = ["--ledger", "check-run"];
    let agent = json!({"login": "claude[bot]", "type": "Bot", "id": 209_825_114});
    let (_, reason, _) = Step::new(&server, &payload("labeled", &agent)).check(&ledger).await;
    assert_eq!(reason, "loop-self");
    // An issue names no commit, so that where to look is known only from the policy.
    let anchor_read = [Op::Graphql];
    assert_eq!(requests(&server), [&[Op::Graphql][..], &anchor_read].concat(), "a skip on facts");

    let (verdict, _, value) = Step::new(&server, &payload("opened", &alice())).check(&ledger).await;
    assert_eq!(verdict, "proceed", "{value}");
    let mut accept = requests(&server);
    accept.sort();
    let mut expected =
        [&[Op::Graphql, Op::Permission, Op::CreateCheckRun, Op::ListCheckRuns][..], &anchor_read].concat();
    expected.sort();
    assert_eq!(accept, expected, "an accept, with a person's permission");
    let claim = value["claim"].as_str().unwrap().to_owned();

    // The facts are older than the claim, so this run makes a candidate, which is not elected and given back.
    server.state().plan(Planned { times: 2, ..Planned::next(Op::Graphql, Fault::Stale(1)) });
    let other = || Step::new(&server, &payload("labeled", &alice())).of_run(RUN + 1, 1);
    let (verdict, reason, value) = other().check(&ledger).await;
    assert_eq!((verdict.as_str(), reason.as_str()), ("skip", "in-progress"), "{value}");
    assert!(value["evidence"].to_string().contains("/actions/runs/8812345"), "{value}");
    let lost = requests(&server);
    let expected = [Op::CreateCheckRun, Op::ListCheckRuns, Op::UpdateCheckRun, Op::GetRun];
    assert_eq!(lost[lost.len() - 4..], expected, "{lost:?}");
    assert_eq!(lost.len(), 7, "a lost race, and the holder looked up: {lost:?}");
    let ended: Vec<_> = server.state().checks(REPO).iter().map(|check| check.said.conclusion.clone()).collect();
    assert_eq!(ended, [None, Some("neutral".to_owned())]);

    let step = Step::new(&server, &payload("opened", &alice()));
    step.ends(&["finish", "--claim", &claim, "--step-outcome", "success"]).await;
    assert_eq!(requests(&server), [Op::Graphql, Op::UpdateCheckRun, Op::AddLabels]);
    let (_, reason, _) = other().check(&ledger).await;
    assert_eq!(reason, "already-done");
    assert_eq!(requests(&server).len(), 3);
}

/// A candidate that does not show in time starts nothing, and does not stand in the way of the next run.
#[tokio::test]
async fn a_check_run_that_does_not_show_in_time_is_given_back() {
    let mut state = github(0);
    state.set_file(REPO, ".github/run-guard.yml", &format!("ledger: check-run\nledger-anchor: \"{:040x}\"\n", 42));
    state.add_token(TOKEN, TokenSpec::built_in(REPO, format!("{GRANTS}, checks: write").parse().unwrap()));
    state.check_lists = CheckLists::Late(1_000);
    let server = start_server(state).await;
    let opened = payload("opened", &alice());
    let (verdict, reason, value) = Step::new(&server, &opened).check(&["--deadline", "1s"]).await;
    assert_eq!((verdict.as_str(), reason.as_str()), ("defer", "ledger-unreachable"), "{value}");
    let ended = |server: &Server| -> Vec<_> {
        server.state().checks(REPO).iter().map(|check| check.said.conclusion.clone()).collect()
    };
    assert_eq!(ended(&server), [Some("neutral".to_owned())]);

    server.state().check_lists = CheckLists::Whole;
    let (verdict, _, value) = Step::new(&server, &opened).of_run(RUN + 1, 1).check(&[]).await;
    assert_eq!((verdict.as_str(), &value["fence"]), ("proceed", &json!(2)), "{value}");
    assert_eq!(ended(&server), [Some("neutral".to_owned()), None]);
}

/// A cap over a time cannot be counted in claims that lie on many commits.
#[tokio::test]
async fn a_check_run_ledger_with_a_cap_over_a_time_is_refused() {
    let server = start_server(github(0)).await;
    let step = Step::new(&server, &payload("opened", &alice()));
    let ended = step.ends(&["check", "--task", "investigate", "--ledger", "check-run"]).await;
    assert_eq!(ended.code, 1, "{}", ended.out);
    assert!(step.read("output").contains("policy-invalid"), "{}", ended.out);
    assert!(ended.out.contains("cannot count the runs of `investigate`"), "{}", ended.out);
}

#[tokio::test]
async fn near_a_cap_an_accept_takes_a_page_more_and_the_cap_holds() {
    let mut state = github(0);
    state.set_file(REPO, ".github/run-guard.yml", "max-runs-per-hour: 1");
    for number in [732, 733] {
        state.open_issue(REPO, ItemSpec::new("alice", "Another").number(number));
    }
    let server = start_server(state).await;
    let (verdict, _, _) = Step::new(&server, &payload("opened", &alice())).check(&[]).await;
    assert_eq!(verdict, "proceed");
    assert_eq!(requests(&server).len(), 4);

    // The facts are older than that claim, so the cap shows only when the claims are ranked.
    let mut other = payload("opened", &alice());
    other["issue"]["number"] = json!(732);
    server.state().now += TimeDelta::seconds(5);
    server.state().plan(Planned::next(Op::Graphql, Fault::Stale(1)));
    let (verdict, reason, _) = Step::new(&server, &other).of_run(RUN + 1, 1).check(&[]).await;
    assert_eq!((verdict.as_str(), reason.as_str()), ("defer", "budget-hour"));
    let outcome = server
        .state()
        .labels(REPO)
        .iter()
        .filter(|l| l.description.as_deref().unwrap_or_default().contains(" wd@"))
        .count();
    assert_eq!(outcome, 1, "the claim that was over the cap is withdrawn");

    other["issue"]["number"] = json!(733);
    requests(&server);
    let (_, reason, value) = Step::new(&server, &other).of_run(RUN + 1, 2).check(&[]).await;
    assert_eq!((reason.as_str(), &value["retry_at"]), ("budget-hour", &json!("2026-03-02T10:01:00Z")));
    assert_eq!(requests(&server).len(), 2);
}

#[tokio::test]
async fn a_lost_race_takes_two_requests_more_and_the_holder_is_looked_up() {
    let server = start_server(github(10)).await;
    let (verdict, _, _) = Step::new(&server, &payload("opened", &alice())).check(&[]).await;
    assert_eq!(verdict, "proceed");
    requests(&server);

    // The facts are older than the claim, so this run tries to create what is there already.
    server.state().plan(Planned::next(Op::Graphql, Fault::Stale(1)));
    let (verdict, reason, value) =
        Step::new(&server, &payload("labeled", &alice())).of_run(RUN + 1, 1).check(&[]).await;
    assert_eq!((verdict.as_str(), reason.as_str()), ("skip", "in-progress"));
    assert!(value["evidence"].to_string().contains("/actions/runs/8812345"), "{value}");
    let ops = requests(&server);
    assert_eq!(ops.len(), 5, "{ops:?}");
    assert_eq!(ops[2..], [Op::CreateLabel, Op::GetLabel, Op::GetRun]);
}

/// The claims there are, by name.
fn claims(server: &Server) -> Vec<String> {
    let state = server.state();
    state.labels(REPO).iter().map(|l| l.name.clone()).filter(|name| name.starts_with("rg:")).collect()
}

#[tokio::test]
async fn an_answer_to_the_creation_that_is_lost_starts_the_agent_once() {
    for effect in [true, false] {
        for fault in [Fault::Lost { effect }, Fault::Server { status: 502, effect }] {
            let server = start_server(github(0)).await;
            server.state().plan(Planned::next(Op::CreateLabel, fault.clone()));
            let (verdict, _, value) = Step::new(&server, &payload("opened", &alice())).check(&[]).await;
            assert_eq!(verdict, "proceed", "{fault:?}: {value}");
            assert_eq!(claims(&server).len(), 1, "{fault:?}");
            let (_, reason, _) = Step::new(&server, &payload("labeled", &alice())).of_run(RUN + 1, 1).check(&[]).await;
            assert_eq!(reason, "in-progress", "{fault:?}");
        }
    }
}

#[tokio::test]
async fn what_github_refuses_is_an_error_with_its_words_and_the_permission_to_grant() {
    let refused = |grants: &'static str| async move {
        let mut state = github(0);
        // What is public may be read with any token.
        state.make_private(REPO);
        state.add_token(TOKEN, TokenSpec::built_in(REPO, grants.parse().unwrap()));
        let server = start_server(state).await;
        let step = Step::new(&server, &payload("opened", &alice()));
        let ended = step.ends(&["check", "--task", "investigate"]).await;
        assert_eq!(ended.code, 1, "{}", ended.out);
        assert_eq!(claims(&server), [""; 0]);
        ended.out + &step.read("output")
    };
    let out = refused("actions: read, contents: read, issues: read, pull-requests: read").await;
    assert!(out.contains("Resource not accessible by integration"), "{out}");
    assert!(out.contains("POST /repos/acme/app/labels"), "{out}");
    assert!(out.contains("issues: write"), "{out}");
    assert!(out.contains("ledger-denied"), "{out}");

    // A policy that cannot be read is no "no policy".
    let out = refused("actions: read, issues: write, pull-requests: read").await;
    assert!(out.contains("policy-unreadable"), "{out}");
    assert!(out.contains("contents: read"), "{out}");
}

#[tokio::test]
async fn a_github_that_does_not_answer_defers_unless_on_error_says_otherwise() {
    for (on_error, verdict, code) in
        [("", "defer", 0), ("stop", "error", 1), ("skip", "skip", 0), ("proceed", "proceed", 0)]
    {
        let server = start_server(github(0)).await;
        server.state().plan(Planned::always(Op::Graphql, Fault::Server { status: 502, effect: false }));
        let step = Step::new(&server, &payload("opened", &alice()));
        let ended = step.ends(&["check", "--task", "investigate", "--deadline", "1s", "--on-error", on_error]).await;
        assert_eq!(ended.code, code, "{on_error}: {}", ended.out);
        let output = step.read("output");
        assert!(output.contains(&format!("\n{verdict}\n")), "{on_error}: {output}");
        assert!(output.contains("\nledger-unreachable\n"), "{on_error}: {output}");
        if on_error == "proceed" {
            assert!(ended.out.contains("without a claim"), "{}", ended.out);
        }
        assert_eq!(claims(&server), [""; 0]);
    }
}

/// Starting all the same where GitHub does not answer is for triggers that would have been let in.
#[tokio::test]
async fn an_outage_lets_nobody_in_who_would_have_been_refused() {
    let agent = json!({"login": "claude[bot]", "type": "Bot", "id": 209_825_114});
    let bot = json!({"login": "renovate[bot]", "type": "Bot", "id": 9});
    let mallory = json!({"login": "mallory", "type": "User", "id": 8});
    for (sender, permission, reason) in [
        (&agent, false, "loop-self"),
        (&bot, false, "automation-actor"),
        (&mallory, false, "not-authorized"),
        (&alice(), true, "permission-unknown"),
    ] {
        let server = start_server(github(0)).await;
        let down = Fault::Server { status: 502, effect: false };
        server.state().plan(Planned::always(Op::Graphql, down.clone()));
        if permission {
            server.state().plan(Planned::always(Op::Permission, down));
        }
        let step = Step::new(&server, &payload("opened", sender));
        let (verdict, came, value) = step.check(&["--deadline", "1s", "--on-error", "proceed"]).await;
        assert_eq!((verdict == "proceed", came.as_str()), (false, reason), "{sender}: {value}");
    }
    // A step without a token is no outage.
    let server = start_server(github(0)).await;
    let step = Step::new(&server, &payload("opened", &alice()));
    let (verdict, ..) = step.check(&["--on-error", "proceed", "--token", "ghs_bad\u{7f}"]).await;
    assert_eq!(verdict, "error");
}

#[tokio::test]
async fn a_rate_limit_says_when_to_ask_again() {
    let server = start_server(github(0)).await;
    let limited = Fault::RateLimited { status: 403, retry_after: None, reset_in: Some(540) };
    server.state().plan(Planned::always(Op::Graphql, limited));
    let (verdict, reason, value) = Step::new(&server, &payload("opened", &alice())).check(&[]).await;
    assert_eq!((verdict.as_str(), reason.as_str()), ("defer", "ledger-unreachable"));
    assert_eq!(value["retry_at"], "2026-03-02T09:10:00Z");
}

#[tokio::test]
async fn the_token_is_in_no_output_at_any_verbosity_and_no_failure() {
    let faults = [
        Fault::Lost { effect: false },
        Fault::Server { status: 500, effect: false },
        Fault::Denied,
        Fault::RateLimited { status: 429, retry_after: Some(600), reset_in: None },
    ];
    for fault in faults {
        for op in [Op::Graphql, Op::Permission, Op::CreateLabel] {
            for verbosity in [&["--format", "text"][..], &["--verbose"], &["--format", "json", "--verbose"]] {
                let server = start_server(github(0)).await;
                server.state().plan(Planned::always(op, fault.clone()));
                let args = [&["check", "--task", "investigate", "--deadline", "1s"], verbosity].concat();
                // `ends` looks for it in all that the step wrote.
                let ended = Step::new(&server, &payload("opened", &alice())).ends(&args).await;
                assert!(!ended.out.is_empty());
            }
        }
    }
    // A token that GitHub does not know, and one that cannot stand in a header.
    let server = start_server(github(0)).await;
    for bad in ["ghs_canary_unknown", "ghs_canary\u{7f}bad", "ghs_canary\nbad"] {
        let step = Step::new(&server, &payload("opened", &alice()));
        let ended = step.ends(&["check", "--task", "investigate", "--verbose", "--token", bad]).await;
        assert_eq!(ended.code, 1, "{}", ended.out);
        let written = [ended.out, ended.err, step.read("output"), step.read("summary")].concat();
        assert!(!written.contains("ghs_canary"), "{written}");
    }
}

#[tokio::test]
async fn nothing_is_claimed_on_reads_that_are_too_old() {
    let server = start_server(github(0)).await;
    let step = Step::new(&server, &payload("opened", &alice()));
    let ended = step.ends(&["check", "--task", "investigate", "--deadline", "9m"]).await;
    assert_eq!(ended.code, 2, "{}", ended.err);
    assert!(ended.err.contains("shorter than 9 min"), "{}", ended.err);
    assert_eq!(requests(&server), []);

    let (verdict, reason, _) = step.check(&["--deadline", "0s"]).await;
    assert_eq!((verdict.as_str(), reason.as_str()), ("defer", "ledger-unreachable"));
    assert_eq!(claims(&server), [""; 0]);

    let (verdict, ..) = step.check(&["--deadline", "8m"]).await;
    assert_eq!(verdict, "proceed");
}

#[tokio::test]
async fn what_an_owner_wrote_last_is_seen_before_its_claim_is_taken_over() {
    let server = start_server(github(0)).await;
    let (verdict, ..) = Step::new(&server, &payload("opened", &alice())).check(&[]).await;
    assert_eq!(verdict, "proceed");
    {
        let mut state = server.state();
        state.remember();
        state.add_user("claude[bot]", ActorKind::Bot);
        state.comment(REPO, 731, "claude[bot]", "I have opened a pull request.").unwrap();
        assert!(state.finish_run(REPO, RUN, "cancelled"));
        state.now += TimeDelta::minutes(5);
        // The first read was answered just before the agent wrote, and its run ended right after.
        state.plan(Planned::next(Op::Graphql, Fault::Stale(1)));
    }
    requests(&server);
    let (verdict, reason, _) = Step::new(&server, &payload("labeled", &alice())).of_run(RUN + 1, 1).check(&[]).await;
    assert_eq!((verdict.as_str(), reason.as_str()), ("review", "previous-failed"));
    assert_eq!(requests(&server).len(), 4, "facts, permission, the owner's run, and both once more");
}

/// `verify` is one request, which only reads.
#[tokio::test]
async fn verify_takes_one_request_and_writes_nothing() {
    let server = start_server(github(3)).await;
    let step = Step::new(&server, &payload("opened", &alice()));
    let (verdict, _, value) = step.check(&[]).await;
    assert_eq!(verdict, "proceed");
    let claim = value["claim"].as_str().unwrap().to_owned();
    requests(&server);
    let writes = server.state().writes().len();

    let ended = step.ends(&["verify", "--claim", &claim]).await;
    assert_eq!((ended.code, requests(&server)), (0, vec![Op::Graphql]), "{}", ended.out);
    assert!(step.read("output").contains("holds"), "{}", step.read("output"));
    let ended = step.ends(&["verify", "--claim", &claim, "--for", "deploy"]).await;
    assert_eq!((ended.code, requests(&server)), (10, vec![Op::Graphql]), "{}", ended.out);

    // Another run does not hold it, nor does anybody once the item is closed or the claim settled.
    let other = Step::new(&server, &payload("opened", &alice())).of_run(RUN + 1, 1);
    assert_eq!(other.ends(&["verify", "--claim", &claim]).await.code, 10);
    server.state().close(REPO, 731);
    let ended = step.ends(&["verify", "--claim", &claim]).await;
    assert_eq!(ended.code, 10);
    assert!(ended.out.contains("issue 731 is closed"), "{}", ended.out);
    server.state().reopen(REPO, 731);
    assert_eq!(step.ends(&["verify", "--claim", &claim]).await.code, 0);
    assert_eq!(server.state().writes().len(), writes);
    step.ends(&["finish", "--claim", &claim, "--step-outcome", "success"]).await;
    assert_eq!(step.ends(&["verify", "--claim", &claim]).await.code, 10);

    // GitHub that does not answer is a no; a claim that is none is a wrong call.
    server.state().plan(Planned::always(Op::Graphql, Fault::Denied));
    assert_eq!(step.ends(&["verify", "--claim", &claim]).await.code, 10);
    assert_eq!(step.ends(&["verify", "--claim", "nonsense"]).await.code, 2);
}
