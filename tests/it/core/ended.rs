//! How an agent's work ended: a table of what is known and what follows, and what counts as written.

use chrono::{DateTime, TimeDelta, Utc};
use run_guard::core::claim::Outcome::{self, *};
use run_guard::core::ended::StepOutcome::{self, *};
use run_guard::core::ended::{Ending, ReadBack, Wrote, all_results, ended};
use run_guard::core::execution::{AgentResult, Execution, read};
use run_guard::core::facts::{Branch, Comment, Fact, LabelEvent, OpenedPull, ResourceState, Review, Written};
use run_guard::core::identity::{Actor, ActorKind};
use run_guard::core::key::Resource;
use run_guard::core::policy::Policy;

/// An agent that says that it succeeded, that it failed, and that it failed before it began.
const OK: &str = r#"[{"type":"result","subtype":"success","total_cost_usd":0.25,"num_turns":3}]"#;
const FAILED: &str = r#"[{"type":"result","subtype":"error_max_turns","is_error":true,"total_cost_usd":1.0}]"#;
const AT_NO_COST: &str = r#"[{"type":"result","subtype":"success","is_error":true,"total_cost_usd":0}]"#;
const NO_RESULT: &str = r#"[{"type":"system"}]"#;
const NO_JSON: &str = "Killed";

fn nothing() -> Wrote {
    Wrote::Nothing
}

fn comment() -> Wrote {
    Wrote::Something { what: "a comment".to_owned(), url: None, comment: Some(9) }
}

fn unknown() -> Wrote {
    Wrote::Unknown("the branches could not be read".to_owned())
}

#[test]
fn what_is_known_says_how_it_ended() {
    type Case<'a> = (&'a [StepOutcome], &'a [&'a str], fn() -> Wrote, Outcome, &'a str);
    let cases: &[Case<'_>] = &[
        // One step.
        (&[Success], &[OK], comment, Completed, "the agent says that it succeeded"),
        (&[Success], &[OK], nothing, Completed, "the agent says that it succeeded"),
        (&[Success], &[OK], unknown, Completed, "the agent says that it succeeded"),
        (&[Success], &[], nothing, Completed, "the agent's step succeeded"),
        (&[Success], &[NO_RESULT], nothing, NeedsReview, "the execution file holds no result"),
        (&[Success], &[NO_JSON], nothing, NeedsReview, "the execution file could not be read: it is not JSON: "),
        (
            &[Success],
            &[FAILED],
            nothing,
            FailedBeforeWrite,
            "the agent says that it failed (error_max_turns), and it had written nothing",
        ),
        (
            &[Success],
            &[FAILED],
            comment,
            FailedAfterWrite,
            "the agent says that it failed (error_max_turns), and it had written a comment",
        ),
        (
            &[Success],
            &[FAILED],
            unknown,
            NeedsReview,
            "the agent says that it failed (error_max_turns), and the branches could not be read",
        ),
        (
            &[Success],
            &[AT_NO_COST],
            nothing,
            FailedBeforeWrite,
            "the agent says that it failed (success, at no cost), and it had written nothing",
        ),
        (
            &[Failure],
            &[AT_NO_COST],
            nothing,
            FailedBeforeWrite,
            "the agent failed (success, at no cost), and it had written nothing",
        ),
        (&[Failure], &[OK], nothing, FailedBeforeWrite, "the agent's step failed, and it had written nothing"),
        (&[Failure], &[], nothing, FailedBeforeWrite, "the agent's step failed, and it had written nothing"),
        (&[Failure], &[NO_RESULT], comment, FailedAfterWrite, "the agent's step failed, and it had written a comment"),
        (&[Failure], &[NO_JSON], unknown, NeedsReview, "the agent's step failed, and the branches could not be read"),
        (&[Cancelled], &[], nothing, FailedBeforeWrite, "the agent's step was cancelled, and it had written nothing"),
        (
            &[Cancelled],
            &[NO_RESULT],
            comment,
            FailedAfterWrite,
            "the agent's step was cancelled, and it had written a comment",
        ),
        (
            &[Cancelled],
            &[OK],
            unknown,
            NeedsReview,
            "the agent's step was cancelled, and the branches could not be read",
        ),
        (&[Skipped], &[], nothing, Withdrawn, "the agent's step did not run"),
        (&[Skipped], &[], comment, Withdrawn, "the agent's step did not run"),
        // No step was named.
        (&[], &[OK], nothing, Completed, "the agent says that it succeeded"),
        (
            &[],
            &[FAILED],
            nothing,
            FailedBeforeWrite,
            "the agent says that it failed (error_max_turns), and it had written nothing",
        ),
        (&[], &[NO_RESULT], nothing, NeedsReview, "the execution file holds no result"),
        (&[], &[], nothing, NeedsReview, "neither the step's outcome nor an execution file was given"),
        // Two steps in one job, with one file or two.
        (&[Success, Success], &[OK], nothing, Completed, "the agent says that it succeeded"),
        (&[Success, Success], &[], nothing, Completed, "the agent's steps succeeded"),
        (
            &[Success, Failure],
            &[OK],
            comment,
            FailedAfterWrite,
            "one of the agent's steps failed, and it had written a comment",
        ),
        (
            &[Failure, Success],
            &[OK],
            nothing,
            FailedBeforeWrite,
            "one of the agent's steps failed, and it had written nothing",
        ),
        (
            &[Success, Cancelled],
            &[OK],
            comment,
            FailedAfterWrite,
            "one of the agent's steps was cancelled, and it had written a comment",
        ),
        (&[Success, Skipped], &[OK], nothing, Completed, "the agent says that it succeeded"),
        (&[Skipped, Skipped], &[], nothing, Withdrawn, "the agent's steps did not run"),
        (
            &[Success, Success],
            &[OK, FAILED],
            comment,
            FailedAfterWrite,
            "the agent says that it failed (error_max_turns), and it had written a comment",
        ),
        (
            &[Success, Success],
            &[FAILED, OK],
            nothing,
            FailedBeforeWrite,
            "the agent says that it failed (error_max_turns), and it had written nothing",
        ),
        (&[Success, Success], &[OK, NO_RESULT], nothing, NeedsReview, "the execution file holds no result"),
    ];
    for (steps, files, wrote, outcome, why) in cases {
        let executions: Vec<_> = files.iter().map(|text| read(text)).collect();
        let wrote = wrote();
        let ending =
            Ending { steps, executions: &executions, wrote: &wrote, can_be_read_back: true, head_moved: false };
        let end = ended(&ending);
        assert_eq!(end.outcome, *outcome, "{steps:?} {files:?} {wrote:?}: {}", end.why);
        assert!(end.why.starts_with(why), "{steps:?} {files:?}: {}", end.why);

        // What a task does that leaves no trace cannot be excluded.
        let blind = ended(&Ending { can_be_read_back: false, ..ending }).outcome;
        let expected = if *outcome == FailedBeforeWrite { NeedsReview } else { *outcome };
        assert_eq!(blind, expected, "{steps:?} {files:?} {wrote:?}, blind");

        // A head that has moved makes done work and work that left nothing give way, and hides nothing else.
        let moved = ended(&Ending { head_moved: true, ..ending });
        let gives_way = matches!(outcome, Completed | FailedBeforeWrite);
        assert_eq!(moved.outcome, if gives_way { Superseded } else { *outcome }, "{steps:?} {files:?}, moved");
        assert_eq!(moved.why.ends_with("; the head has moved since the claim"), gives_way);
    }
}

#[test]
fn several_files_add_up_as_far_as_they_are_known() {
    let sum = |files: &[&str]| all_results(&files.iter().map(|text| read(text)).collect::<Vec<_>>());
    let result = |success, subtype: &str, cost_cents, turns| {
        Execution::Result(AgentResult { success, subtype: Some(subtype.to_owned()), cost_cents, turns })
    };
    assert_eq!(sum(&[]), Execution::NotGiven);
    assert_eq!(sum(&[OK, OK]), result(true, "success", Some(50), Some(6)));
    assert_eq!(sum(&[OK, FAILED]), result(false, "error_max_turns", Some(125), None));
    assert_eq!(sum(&[FAILED, OK]), result(false, "error_max_turns", Some(125), None));
    assert_eq!(sum(&[OK, NO_RESULT]), Execution::NoResult);
    assert!(matches!(sum(&[NO_RESULT, NO_JSON]), Execution::Unreadable(_)));
    assert_eq!(all_results(&[Execution::NotGiven, read(OK)]), read(OK));
}

fn at(minutes: i64) -> DateTime<Utc> {
    "2026-03-02T09:00:00Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::minutes(minutes)
}

fn bot(login: &str) -> Actor {
    Actor::new(login, ActorKind::Bot)
}

fn person() -> Actor {
    Actor::new("alice", ActorKind::User)
}

fn text(author: Actor, body: &str, minutes: i64) -> Comment {
    let url = "https://github.com/acme/app/issues/731#issuecomment-9".to_owned();
    let (created_at, updated_at) = (at(minutes), at(minutes));
    Comment { id: 9, author: Some(author), editor: None, body: body.to_owned(), created_at, updated_at, url }
}

fn label(actor: Actor, name: &str, minutes: i64) -> LabelEvent {
    LabelEvent { id: "LE_1".to_owned(), added: true, label: name.to_owned(), actor: Some(actor), at: at(minutes) }
}

/// An item on which nothing happened, and that all of it was read.
fn quiet() -> (ResourceState, Written) {
    let item = ResourceState {
        is_pull_request: false,
        number: 731,
        open: true,
        merged: false,
        draft: false,
        locked: false,
        author: Some(person()),
        labels: Vec::new(),
        label_events: Vec::new(),
        comments: Vec::new(),
        comment_total: 0,
        head_sha: None,
        url: String::new(),
    };
    let known = Written {
        branches: Fact::Known(Vec::new()),
        pulls: Fact::Known(Vec::new()),
        reviews: Fact::Known(Vec::new()),
        more_reviews: false,
    };
    (item, known)
}

/// What is made of an item and what is known beside it, for a claim made at minute 0.
fn wrote(change: impl FnOnce(&mut ResourceState, &mut Written)) -> String {
    let (mut item, mut written) = quiet();
    change(&mut item, &mut written);
    item.comment_total = item.comment_total.max(u64::try_from(item.comments.len()).unwrap());
    told(&Fact::Known(Some(item)), &written, Some("github-actions[bot]"))
}

fn told(resource: &Fact<Option<ResourceState>>, written: &Written, viewer: Option<&str>) -> String {
    let about = Resource::Issue(731);
    let policy = Policy::default();
    match (ReadBack { resource, written, about: &about, viewer, policy: &policy, since: at(0) }).wrote() {
        Wrote::Nothing => "nothing".to_owned(),
        Wrote::Unknown(why) => format!("unknown: {why}"),
        Wrote::Something { what, .. } => what,
    }
}

fn branch(name: &str, minutes: i64) -> Fact<Vec<Branch>> {
    Fact::Known(vec![Branch { name: name.to_owned(), committed_at: Some(at(minutes)) }])
}

#[test]
fn what_an_agent_wrote_since_the_claim_is_seen() {
    assert_eq!(wrote(|_, _| {}), "nothing");
    // Comments: by agents and by the token's own bot, since the claim, and no mere notice of being at work.
    assert_eq!(wrote(|item, _| item.comments = vec![text(bot("claude"), "Done.", 1)]), "a comment");
    assert_eq!(wrote(|item, _| item.comments = vec![text(bot("github-actions"), "Done.", 1)]), "a comment");
    assert_eq!(wrote(|item, _| item.comments = vec![text(bot("claude"), "Done.", -1)]), "nothing");
    assert_eq!(wrote(|item, _| item.comments = vec![text(person(), "Done.", 1)]), "nothing");
    assert_eq!(wrote(|item, _| item.comments = vec![text(bot("renovate"), "Done.", 1)]), "nothing");
    assert_eq!(wrote(|item, _| item.comments = vec![text(bot("claude"), "Claude Code is working…", 1)]), "nothing");
    // Labels, but run-guard's own.
    assert_eq!(wrote(|item, _| item.label_events = vec![label(bot("claude"), "bug", 1)]), "the label bug");
    assert_eq!(wrote(|item, _| item.label_events = vec![label(person(), "bug", 1)]), "nothing");
    let own = "run-guard:triage:done";
    assert_eq!(wrote(|item, _| item.label_events = vec![label(bot("github-actions"), own, 1)]), "nothing");
    // Reviews.
    let review = |author, minutes| {
        Fact::Known(vec![Review { author: Some(author), submitted_at: at(minutes), url: String::new() }])
    };
    assert_eq!(wrote(|_, w| w.reviews = review(bot("claude"), 1)), "a review");
    assert_eq!(wrote(|_, w| w.reviews = review(bot("claude"), -1)), "nothing");
    assert_eq!(wrote(|_, w| w.reviews = review(person(), 1)), "nothing");
    // Branches: of the agent's naming for this item, with a newer commit or a newer name.
    assert_eq!(wrote(|_, w| w.branches = branch("claude/issue-731-fix", 1)), "the branch claude/issue-731-fix");
    assert_eq!(wrote(|_, w| w.branches = branch("claude/issue-731-fix", -1)), "nothing");
    assert_eq!(
        wrote(|_, w| w.branches = branch("claude/issue-731-20260302-0900", -99)),
        "the branch claude/issue-731-20260302-0900"
    );
    assert_eq!(wrote(|_, w| w.branches = branch("claude/issue-731-20260302-0859", -99)), "nothing");
    assert_eq!(wrote(|_, w| w.branches = branch("claude/issue-7310-20260302-0901", 1)), "nothing");
    assert_eq!(wrote(|_, w| w.branches = branch("alice/issue-731-20260302-0901", 1)), "nothing");
    // Pull requests from such a branch.
    let pull = |branch: &str, minutes| {
        let (branch, url) = (branch.to_owned(), String::new());
        Fact::Known(vec![OpenedPull { branch, number: 800, created_at: at(minutes), url }])
    };
    assert_eq!(wrote(|_, w| w.pulls = pull("claude/pr-731-x", 1)), "pull request 800");
    assert_eq!(wrote(|_, w| w.pulls = pull("claude/issue-731-x", -1)), "nothing");
    assert_eq!(wrote(|_, w| w.pulls = pull("claude/issue-732-x", 1)), "nothing");
}

#[test]
fn what_could_not_be_seen_is_unknown_and_a_trace_is_a_trace_all_the_same() {
    let denied = || "it was denied".to_owned();
    assert_eq!(wrote(|_, w| w.branches = Fact::Unknown(denied())), "unknown: the branches could not be read");
    assert_eq!(wrote(|_, w| w.pulls = Fact::Unknown(denied())), "nothing", "each has its branch");
    let reviews = "unknown: the reviews since the claim could not all be read";
    assert_eq!(wrote(|_, w| w.reviews = Fact::Unknown(denied())), reviews);
    assert_eq!(wrote(|_, w| w.more_reviews = true), reviews);
    let old = || Review { author: Some(person()), submitted_at: at(-1), url: String::new() };
    assert_eq!(wrote(|_, w| (w.more_reviews, w.reviews) = (true, Fact::Known(vec![old()]))), "nothing");
    let many = "unknown: so many comments came since the claim that not all can be seen";
    assert_eq!(wrote(|item, _| (item.comment_total, item.comments) = (99, vec![text(person(), "x", 1)])), many);
    assert_eq!(wrote(|item, _| (item.comment_total, item.comments) = (99, vec![text(person(), "x", -1)])), "nothing");
    let agent_among_many = |item: &mut ResourceState, w: &mut Written| {
        (item.comment_total, item.comments) = (99, vec![text(bot("claude"), "x", 1)]);
        w.branches = Fact::Unknown(denied());
    };
    assert_eq!(wrote(agent_among_many), "a comment");

    let (item, written) = quiet();
    let viewer = "unknown: it is not known which account its comments would be by";
    assert_eq!(told(&Fact::Known(Some(item)), &written, None), viewer);
    assert_eq!(told(&Fact::Unknown(denied()), &written, Some("x")), "unknown: what it wrote could not be read");
    assert_eq!(told(&Fact::Known(None), &written, Some("x")), "unknown: the item is not there any more");
}
