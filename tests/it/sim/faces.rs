//! The two faces of the embedded GitHub: what the client makes of the answers over HTTP is what the face in process gives.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use run_guard::github::{Client, Hosts, Token};
use run_guard::ports::{self, Deletion, FactsQuery, GitHub, Label, Listing, PortError, ReactTo, RepoName};
use run_guard::sim::port::InProcess;
use run_guard::sim::{Fault, FileContent, Planned, node_id};

use super::*;
use crate::support::start_server;

/// A commit on top of the default branch.
const CHILD: &str = "cccccccccccccccccccccccccccccccccccccccc";
/// The head of the pull request.
const PULL_HEAD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const POLICY: &str = ".github/run-guard.yml";

/// One request of the port.
#[derive(Clone, Debug)]
enum Ask {
    Facts { number: Option<u64>, labels: &'static [&'static str], window: bool },
    LabelsPage { after: Option<String> },
    OldestLabels { after: Option<String> },
    Probe(&'static [&'static str]),
    RefsBelow(&'static str),
    RefNamed(&'static str),
    RefsPage { after: Option<&'static str> },
    CreateCommit { message: &'static str, parent: Option<String>, tree: Option<String> },
    CreateRef(&'static str, String),
    ForwardRef(&'static str, String),
    Checks { commit: String, name: &'static str },
    ChecksPage { commit: String, name: &'static str, page: u32 },
    CreateCheck { commit: String, name: &'static str, conclusion: Option<&'static str>, text: String },
    UpdateCheck { nth: usize, conclusion: Option<&'static str>, text: String },
    Permission(&'static str),
    Run(u64),
    CreateLabel(String, String),
    Label(&'static str),
    DescribeLabel(&'static str, String),
    AddLabels(u64, &'static [&'static str]),
    RemoveLabel(u64, &'static str),
    DeleteLabels(Vec<String>),
    Written(Option<u64>),
    UpdateComment(u64, String),
    DeleteRefs(&'static str, Vec<(&'static str, String)>),
    CreateComment(u64, String),
    React(ReactTo, &'static str),
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Every request of the port, some of them in vain.
fn asks(state: &State, repo: &str) -> Vec<Ask> {
    use Ask::*;
    let comment = comment_on(state, repo, 731);
    let head = state.repo(repo).and_then(|found| found.head_sha.clone()).unwrap_or_default();
    let security = state.label(repo, "security").map(|label| node_id("LA", label.id)).unwrap_or_default();
    let tip = head.clone();
    let cursor = state.labels(repo).first().map(|label| label.cursor());
    let head_again = head.clone();
    let mut asks = vec![
        Facts { number: Some(731), labels: &["security", "SECURITY", "none"], window: true },
        Facts { number: Some(732), labels: &[], window: false },
        Facts { number: Some(9), labels: &["security"], window: false },
        Facts { number: Some(10), labels: &[], window: true },
        Facts { number: None, labels: &[], window: false },
        LabelsPage { after: None },
        LabelsPage { after: cursor.clone() },
        OldestLabels { after: None },
        OldestLabels { after: cursor },
        Probe(&["security", "Security", "none"]),
        RefsBelow("refs/run-guard/0123456789ab/"),
        RefNamed("refs/run-guard/0123456789ab/1"),
        CreateCommit { message: "rg1", parent: None, tree: None },
        CreateCommit { message: "rg1", parent: Some(head.clone()), tree: None },
        CreateCommit { message: "rg1", parent: Some("f".repeat(40)), tree: None },
        CreateCommit { message: "rg1", parent: None, tree: Some("f".repeat(40)) },
        CreateRef("refs/run-guard/0123456789ab/1", head.clone()),
        CreateRef("refs/run-guard/0123456789ab/1", head.clone()),
        CreateRef("refs/run-guard/0123456789ab/2", "f".repeat(40)),
        CreateRef("run-guard", head.clone()),
        ForwardRef("refs/run-guard/0123456789ab/1", head.clone()),
        ForwardRef("refs/run-guard/0123456789ab/1", CHILD.to_owned()),
        ForwardRef("refs/run-guard/0123456789ab/1", head.clone()),
        ForwardRef("refs/run-guard/0123456789ab/3", head),
        RefsBelow("refs/run-guard/0123456789ab/"),
        RefNamed("refs/run-guard/0123456789ab/1"),
        RefsPage { after: None },
        Checks { commit: PULL_HEAD.to_owned(), name: "run-guard a" },
        CreateCheck { commit: PULL_HEAD.to_owned(), name: "run-guard a", conclusion: None, text: "one".to_owned() },
        CreateCheck { commit: PULL_HEAD.to_owned(), name: "run-guard a", conclusion: None, text: "two".to_owned() },
        CreateCheck {
            commit: PULL_HEAD.to_owned(),
            name: "run-guard b",
            conclusion: Some("neutral"),
            text: "é".to_owned(),
        },
        CreateCheck { commit: tip.clone(), name: "run-guard a", conclusion: Some("success"), text: String::new() },
        CreateCheck { commit: "f".repeat(40), name: "run-guard a", conclusion: None, text: String::new() },
        CreateCheck { commit: tip.clone(), name: "run-guard a", conclusion: Some("stale"), text: String::new() },
        UpdateCheck { nth: 0, conclusion: Some("action_required"), text: "done".to_owned() },
        UpdateCheck { nth: 0, conclusion: Some("failure"), text: "done again".to_owned() },
        UpdateCheck { nth: 9, conclusion: None, text: "none".to_owned() },
        Checks { commit: PULL_HEAD.to_owned(), name: "run-guard a" },
        Checks { commit: tip.clone(), name: "run-guard a" },
        Checks { commit: "f".repeat(40), name: "run-guard a" },
        ChecksPage { commit: PULL_HEAD.to_owned(), name: "run-guard a", page: 1 },
        ChecksPage { commit: PULL_HEAD.to_owned(), name: "run-guard a", page: 2 },
        ChecksPage { commit: PULL_HEAD.to_owned(), name: "run-guard c", page: 1 },
        ChecksPage { commit: "f".repeat(40), name: "run-guard a", page: 1 },
        RefsPage { after: Some("refs/run-guard/0123456789ab/1") },
        Run(RUN),
        Run(9),
        CreateLabel("rg:a:1".to_owned(), "first".to_owned()),
        CreateLabel("rg:a:1".to_owned(), "second".to_owned()),
        CreateLabel("RG:A:1".to_owned(), String::new()),
        CreateLabel("é".repeat(51), String::new()),
        CreateLabel("rg:a:2".to_owned(), "x".repeat(101)),
        CreateLabel("rg/é %?#:3".to_owned(), String::new()),
        Label("rg:a:1"),
        Label("RG:A:1"),
        Label("rg/é %?#:3"),
        Label("none"),
        DescribeLabel("rg:a:1", "done".to_owned()),
        DescribeLabel("none", "done".to_owned()),
        DescribeLabel("rg:a:1", "é".repeat(101)),
        AddLabels(731, &["run-guard:a:done", "security"]),
        AddLabels(732, &["run-guard:a:done"]),
        AddLabels(9, &["run-guard:a:done"]),
        AddLabels(10, &["run-guard:a:done"]),
        RemoveLabel(731, "Security"),
        RemoveLabel(731, "security"),
        RemoveLabel(9, "security"),
        RemoveLabel(10, "security"),
        Written(Some(731)),
        Written(Some(732)),
        Written(Some(9)),
        Written(Some(10)),
        Written(None),
        CreateRef("refs/heads/claude/issue-731-20260302-0900", head_again.clone()),
        CreateRef("refs/heads/claude/pr-732-20260302-0900", head_again),
        Written(Some(732)),
        UpdateComment(comment, "again".to_owned()),
        UpdateComment(comment, " ".to_owned()),
        UpdateComment(9, "again".to_owned()),
        DeleteLabels(vec![]),
        DeleteLabels(vec!["LA_none".to_owned(), security, "LA_none".to_owned()]),
        DeleteRefs("refs/run-guard/0123456789ab/", vec![("1", "f".repeat(40)), ("1", CHILD.to_owned())]),
        DeleteRefs("refs/run-guard/0123456789ab/", vec![("1", CHILD.to_owned())]),
        RefsBelow("refs/run-guard/0123456789ab/"),
        CreateComment(731, "attached".to_owned()),
        CreateComment(732, "é".repeat(65_537)),
        CreateComment(9, "attached".to_owned()),
        CreateComment(10, "attached".to_owned()),
        React(ReactTo::Issue(731), "confused"),
        React(ReactTo::Issue(731), "confused"),
        React(ReactTo::Issue(9), "confused"),
        React(ReactTo::Comment(comment), "eyes"),
        React(ReactTo::Comment(9), "eyes"),
        Facts { number: Some(731), labels: &["rg:a:1", "run-guard:a:done"], window: true },
    ];
    asks.extend(["alice", "ALICE", "mallory", "claude[bot]", "stranger"].map(Permission));
    asks
}

fn face(conclusion: Option<&'static str>, text: &str) -> ports::CheckFace {
    let at = "2026-03-02T09:00:00Z".parse().unwrap();
    ports::CheckFace {
        conclusion,
        started_at: at,
        completed_at: conclusion.map(|_| at),
        details_url: "https://github.com/acme/app/actions/runs/7".to_owned(),
        title: "in progress".to_owned(),
        summary: "Claim 1.".to_owned(),
        text: text.to_owned(),
    }
}

async fn give<G: GitHub>(github: &G, repo: &RepoName, ask: &Ask) -> Result<String, PortError> {
    fn told<T: std::fmt::Debug>(value: T) -> String {
        format!("{value:#?}")
    }
    let label = |name: &str, description: &str| Label {
        name: name.to_owned(),
        description: description.to_owned(),
        node_id: None,
        created_at: None,
    };
    match ask {
        Ask::Facts { number, labels, window } => {
            let claims = if labels.is_empty() { ports::Probe::Nothing } else { ports::Probe::Labels(owned(labels)) };
            let query = FactsQuery {
                repo: repo.clone(),
                number: *number,
                claims,
                window: window.then_some(Listing::Labels),
                written: None,
            };
            github.facts(&query).await.map(told)
        }
        Ask::OldestLabels { after } => {
            github.window_page(repo, Listing::OldestLabels, after.as_deref()).await.map(told)
        }
        Ask::LabelsPage { after } => github.window_page(repo, Listing::Labels, after.as_deref()).await.map(told),
        Ask::Probe(names) => github.probe(repo, &ports::Probe::Labels(owned(names))).await.map(told),
        Ask::RefsBelow(prefix) => github.probe(repo, &ports::Probe::Refs((*prefix).to_owned())).await.map(told),
        Ask::RefNamed(name) => github.probe(repo, &ports::Probe::Ref((*name).to_owned())).await.map(told),
        Ask::RefsPage { after } => github.window_page(repo, Listing::Refs, *after).await.map(told),
        Ask::CreateCommit { message, parent, tree } => {
            let known = github.probe(repo, &ports::Probe::Ref("refs/heads/main".to_owned())).await;
            let known = match known {
                Ok(ports::Probed::Refs(found)) => found.tree,
                _ => None,
            };
            let commit = ports::NewCommit {
                message: (*message).to_owned(),
                tree: tree.clone().or(known).unwrap_or_default(),
                parent: parent.clone(),
                at: "2026-03-02T09:00:00Z".parse().unwrap(),
            };
            github.create_commit(repo, &commit).await.map(told)
        }
        Ask::CreateRef(name, oid) => github.create_ref(repo, name, oid).await.map(told),
        Ask::ForwardRef(name, oid) => github.forward_ref(repo, name, oid).await.map(told),
        Ask::Checks { commit, name } => {
            let probe = ports::Probe::Checks { commit: commit.clone(), name: (*name).to_owned() };
            // Lists of check runs have no order that means anything.
            github.probe(repo, &probe).await.map(|probed| match probed {
                ports::Probed::Checks(mut found) => {
                    found.runs.sort_by_key(|check| check.id);
                    told(found)
                }
                other => told(other),
            })
        }
        Ask::ChecksPage { commit, name, page } => github.check_runs(repo, commit, name, *page).await.map(told),
        Ask::CreateCheck { commit, name, conclusion, text } => {
            let check = ports::NewCheckRun {
                name: (*name).to_owned(),
                commit: commit.clone(),
                external_id: "0123456789ab".to_owned(),
                face: face(*conclusion, text),
            };
            github.create_check_run(repo, &check).await.map(told)
        }
        Ask::UpdateCheck { nth, conclusion, text } => {
            let made = github.check_runs(repo, PULL_HEAD, "run-guard a", 1).await;
            let id = made.ok().and_then(|page| page.runs.into_iter().rev().nth(*nth)).map_or(9, |check| check.id);
            github.update_check_run(repo, id, &face(*conclusion, text)).await.map(told)
        }
        Ask::Permission(login) => github.permission(repo, login).await.map(told),
        Ask::Run(id) => github.run(repo, *id).await.map(told),
        Ask::CreateLabel(name, description) => {
            github.create_label(repo, &label(name, description), "ededed").await.map(told)
        }
        Ask::Label(name) => github.label(repo, name).await.map(told),
        Ask::DescribeLabel(name, description) => github.describe_label(repo, name, description).await.map(told),
        Ask::AddLabels(number, names) => github.add_labels(repo, *number, &owned(names)).await.map(told),
        Ask::RemoveLabel(number, name) => github.remove_label(repo, *number, name).await.map(told),
        Ask::Written(number) => {
            let written = Some("refs/heads/claude/".to_owned());
            let claims = ports::Probe::Nothing;
            let query = FactsQuery { repo: repo.clone(), number: *number, claims, window: None, written };
            github.facts(&query).await.map(told)
        }
        Ask::UpdateComment(id, body) => github.update_comment(repo, *id, body).await.map(told),
        Ask::DeleteLabels(ids) => github.delete(&Deletion::Labels(ids.clone())).await.map(told),
        Ask::DeleteRefs(below, refs) => {
            let found = github.probe(repo, &ports::Probe::Refs((*below).to_owned())).await;
            let repository = match found {
                Ok(ports::Probed::Refs(found)) => found.repository,
                _ => None,
            };
            let refs = refs.iter().map(|(name, oid)| (format!("{below}{name}"), oid.clone())).collect();
            github.delete(&Deletion::Refs { repository: repository.unwrap_or_default(), refs }).await.map(told)
        }
        Ask::CreateComment(number, body) => github.create_comment(repo, *number, body).await.map(told),
        Ask::React(to, content) => github.react(repo, *to, content).await.map(told),
    }
}

/// A result as text. Paths are told as they are before they are encoded, and a broken connection in one way.
fn told(result: Result<String, PortError>, lost: bool) -> String {
    let error = match result {
        Ok(value) => return value,
        Err(error) => error,
    };
    let error = match error {
        PortError::Ambiguous { request, .. } if lost => PortError::Ambiguous { request, why: String::new() },
        PortError::Unreachable { request, .. } if lost => PortError::Unreachable { request, why: String::new() },
        error => error,
    };
    percent_encoding::percent_decode_str(&format!("{error:?}")).decode_utf8_lossy().into_owned()
}

/// Asks everything of both faces of one state, and compares after each request; how many there were.
async fn compare(what: &str, state: State, token: &str, repo: &str, fault: Option<Fault>) -> usize {
    let lost = matches!(fault, Some(Fault::Lost { .. }));
    let mut state = state;
    state.forget_calls();
    if let Some(fault) = fault {
        state.plan(Planned { op: None, skip: 0, times: usize::MAX, fault });
    }
    let asks = asks(&state, repo);
    let name = RepoName::parse(repo).unwrap();
    let server = start_server(state.clone()).await;
    let hosts = Hosts::new(Some(&server.base_url()), Some(&server.graphql_url()), Some("https://github.com")).unwrap();
    let now = || "2026-03-02T09:00:00Z".parse().unwrap();
    let over_http = Client::new(hosts, Token::new(token).unwrap(), Duration::from_secs(30), now).unwrap();
    let shared = Rc::new(RefCell::new(state));
    let in_process = InProcess::new(Rc::clone(&shared), token);
    for ask in &asks {
        let http = told(give(&over_http, &name, ask).await, lost);
        let process = told(give(&in_process, &name, ask).await, lost);
        assert_eq!(http, process, "{what}, {token} on {repo}: {ask:?} over HTTP (left) and in process");
        assert_eq!(over_http.server_time(), in_process.server_time(), "{what}, {token} on {repo}: {ask:?}");
    }
    let (http, process) = (server.state(), shared.borrow());
    let paths = |state: &State| state.calls().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(paths(&http), paths(&process), "{what}, {token} on {repo}");
    assert_eq!(http.world(), process.world(), "{what}, {token} on {repo}");
    assert_eq!(http.writes(), process.writes(), "{what}, {token} on {repo}");
    asks.len()
}

/// The state of [`github`], and a deleted issue 10 beside it.
fn with_deleted() -> State {
    let mut state = github();
    for full in [REPO, VAULT] {
        let head = state.repo(full).unwrap().head_sha.clone();
        state.add_commit(full, CHILD, head.as_deref(), "on top");
        state.open_issue(full, ItemSpec::new("alice", "Gone").number(10));
        state.delete_issue(full, 10);
    }
    state
}

#[tokio::test]
async fn both_faces_let_a_token_do_the_same() {
    let people = ["alice", "mallory", "unknown"];
    for token in JOBS.iter().map(|(name, ..)| *name).chain(people) {
        for repo in [REPO, VAULT] {
            assert!(compare("tokens", with_deleted(), token, repo, None).await > 40);
        }
    }
}

#[tokio::test]
async fn both_faces_fail_in_the_same_way() {
    let limited = |status, retry_after, reset_in| Fault::RateLimited { status, retry_after, reset_in };
    let faults = [
        Fault::Lost { effect: false },
        Fault::Lost { effect: true },
        Fault::Server { status: 500, effect: false },
        Fault::Server { status: 502, effect: true },
        Fault::Server { status: 503, effect: false },
        Fault::Denied,
        limited(403, None, None),
        limited(429, Some(7), None),
        limited(403, None, Some(540)),
        limited(429, Some(7), Some(540)),
        Fault::Stale(1),
        Fault::Stale(3),
    ];
    for fault in faults {
        compare(&format!("{fault:?}"), with_deleted(), "job", REPO, Some(fault)).await;
    }
    let mut spent = with_deleted();
    spent.exhaust("job");
    compare("no requests left", spent, "job", REPO, None).await;
    let mut busy = with_deleted();
    busy.content_per_minute = Some(3);
    compare("no content left", busy, "job", REPO, None).await;
}

/// A name and what it does to the state.
type Change = (&'static str, fn(&mut State));

#[tokio::test]
async fn both_faces_show_the_same_things() {
    let changes: [Change; 17] = [
        ("no policy", |s| s.edit_repo(REPO, |repo| repo.files.clear())),
        ("a policy that is no text", |s| {
            s.edit_repo(REPO, |repo| repo.files.insert(POLICY.to_owned(), FileContent::Binary(7)));
        }),
        ("a folder for a policy", |s| {
            s.edit_repo(REPO, |repo| repo.files.clear());
            s.set_file(REPO, ".github/run-guard.yml/part.yml", "x");
        }),
        ("an empty repository", |s| s.edit_repo(REPO, |repo| repo.head_sha = None)),
        ("deleted accounts", |s| {
            s.delete_user("alice");
            s.delete_user("mallory");
        }),
        ("a deleted label", |s| assert!(s.remove_label(REPO, "security"))),
        ("a label in other letter case", |s| {
            assert!(s.remove_label(REPO, "security"));
            assert!(s.add_label(REPO, "Security", "words"));
        }),
        ("closed", |s| assert!(s.close(REPO, 731) && s.close(REPO, 732))),
        ("merged", |s| s.edit_item(REPO, 732, |item| (item.open, item.merged) = (false, true)).unwrap()),
        ("a draft", |s| s.edit_item(REPO, 732, |item| item.draft = true).unwrap()),
        ("what an agent wrote", |s| {
            let head = s.repo(REPO).unwrap().head_sha.clone().unwrap();
            for n in 0..35 {
                s.review(REPO, 732, "claude[bot]", &format!("review {n}")).unwrap();
            }
            for n in 0..2 {
                s.set_ref(REPO, &format!("refs/heads/claude/issue-731-{n}"), &head);
                let spec = ItemSpec::new("claude[bot]", "Repair").number(800 + n).pull_request(&head);
                s.open_issue(REPO, spec.from_branch("claude/issue-731-1"));
            }
        }),
        ("more branches of agents than a page holds", |s| {
            let head = s.repo(REPO).unwrap().head_sha.clone().unwrap();
            for n in 0..120 {
                s.set_ref(REPO, &format!("refs/heads/claude/issue-1-{n}"), &head);
            }
        }),
        ("locked", |s| s.edit_item(REPO, 731, |item| item.locked = true).unwrap()),
        ("sixty comments, some edited", |s| {
            for n in 0..60 {
                s.now += chrono::TimeDelta::seconds(n % 2);
                let id = s.comment(REPO, 731, "claude[bot]", &format!("{n}")).unwrap();
                assert!(n % 3 > 0 || s.edit_comment(REPO, id, "alice", "edited"));
            }
        }),
        ("forty label events", |s| {
            for n in 0..20 {
                s.now += chrono::TimeDelta::seconds(n % 2);
                assert!(s.label_item(REPO, 731, &["again"], "claude[bot]"));
                assert!(s.unlabel_item(REPO, 731, "again", "alice"));
            }
        }),
        ("more labels than a page holds", |s| {
            for n in 0..230 {
                s.now += chrono::TimeDelta::seconds(n % 2);
                assert!(s.add_label(REPO, &format!("l{n}"), "words"));
            }
        }),
        ("a run that was made again and ended", |s| {
            assert_eq!(s.rerun(REPO, RUN, "alice"), Some(2));
            assert!(s.finish_run(REPO, RUN, "cancelled"));
        }),
    ];
    for (what, change) in changes {
        let mut state = with_deleted();
        change(&mut state);
        for token in ["job", "alice"] {
            compare(what, state.clone(), token, REPO, None).await;
        }
    }
}
