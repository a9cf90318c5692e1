//! What holds for every input: decisions end, nothing unknown lets an agent start, keys and records are canonical.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use run_guard::core::claim::{
    Cause, Claim, ClaimRead, ClaimState, Handle, LedgerKind, MAX_RECORD_LEN, Nonce, Outcome, Owner, Record, RerunId,
    Settlement, SweepPhase, Thing,
};
use run_guard::core::decision::{Decision, Reason};
use run_guard::core::facts::{Claims, Fact, Facts, Permission, Question, RunState, Window};
use run_guard::core::key::{Digest, Key, Resource, Task, Version};
use run_guard::core::marker::Marker;
use run_guard::core::text;
use serde_json::{Value, json};

use super::case::{Built, Situation, merged, plain};

/// Far more questions than any decision needs: claims and window come in parts, everything else is asked once.
const MOST_QUESTIONS: usize = 40;

fn nonce() -> impl Strategy<Value = Nonce> {
    prop_oneof![Just(7_u64), any::<u64>()].prop_map(Nonce::from_bits)
}

/// Run ids that collide with the asking run (500) and the marker's (100) often.
fn run_id() -> impl Strategy<Value = u64> {
    prop_oneof![Just(100_u64), Just(500_u64), 0..36_u64.pow(9)]
}

/// Times around the decision, which is at 15:00 on the day of the cases.
fn at() -> impl Strategy<Value = DateTime<Utc>> {
    (-3_000_i64..200).prop_map(|minutes| super::case::time("15:00") + TimeDelta::minutes(minutes))
}

fn rerun_id() -> impl Strategy<Value = RerunId> {
    prop_oneof![
        prop_oneof![Just(9001_u64), 0..36_u64.pow(9)].prop_map(RerunId::Comment),
        (run_id(), 1..60_u32).prop_map(|(run, attempt)| RerunId::Attempt(run, attempt)),
        (0..36_u64.pow(7)).prop_map(RerunId::Label),
    ]
}

fn settlement() -> impl Strategy<Value = Settlement> {
    let outcome = prop::sample::select(Outcome::ALL.to_vec());
    let cost = prop::option::of(0..36_u64.pow(5));
    (outcome, at(), cost, prop::option::of(0..36_u64.pow(9)))
        .prop_map(|(outcome, at, cost_cents, result_comment)| Settlement { outcome, at, cost_cents, result_comment })
}

fn state() -> impl Strategy<Value = ClaimState> {
    prop_oneof![
        2 => Just(ClaimState::Open),
        3 => settlement().prop_map(ClaimState::Settled),
        1 => (prop::sample::select(SweepPhase::ALL.to_vec()), at())
            .prop_map(|(phase, at)| ClaimState::Sweep { phase, at }),
    ]
}

/// Records with numbers of the size that GitHub may reach one day.
fn record() -> impl Strategy<Value = Record> {
    let owner = (run_id(), 1..60_u32, nonce()).prop_map(|(run, attempt, nonce)| Owner { run, attempt, nonce });
    let cause = prop::sample::select(Cause::ALL.to_vec());
    let number = prop::option::of(1..36_u64.pow(6));
    let actor = prop::option::of(0..36_u64.pow(7));
    (owner, cause, prop::option::of(rerun_id()), at(), number, actor, state()).prop_map(
        |(owner, cause, rerun, opened_at, number, actor, state)| Record {
            owner,
            cause,
            rerun,
            opened_at,
            number,
            actor,
            state,
        },
    )
}

fn claim_read(number: u32) -> impl Strategy<Value = ClaimRead> {
    prop_oneof![
        8 => record().prop_map(move |record| ClaimRead::Readable(Claim { number, thing: Thing::default(), record })),
        1 => Just(ClaimRead::Unreadable { number, thing: Thing::default(), why: "damaged".to_owned() }),
    ]
}

fn claims() -> impl Strategy<Value = Claims> {
    prop_oneof![Just(0_u32), 0..5_u32].prop_flat_map(|most| {
        let reads: Vec<_> = (1..=most).map(claim_read).collect();
        reads.prop_map(|reads| reads.into_iter().map(|read| (read.number(), read)).collect())
    })
}

fn run_state() -> impl Strategy<Value = RunState> {
    let conclusion = prop::option::of(prop::sample::select(vec!["success", "failure", "cancelled"]));
    let found = (1..4_u32, conclusion, at(), prop::option::of(at())).prop_map(
        |(attempt, conclusion, updated_at, started_at)| RunState::Found {
            attempt,
            conclusion: conclusion.map(str::to_owned),
            updated_at,
            started_at,
            url: String::new(),
        },
    );
    prop_oneof![4 => found, 1 => Just(RunState::Missing)]
}

fn known_or_not<T: std::fmt::Debug + Clone>(known: impl Strategy<Value = T>) -> impl Strategy<Value = Fact<T>> {
    prop_oneof![12 => known.prop_map(Fact::Known), 1 => Just(Fact::Unknown("502".to_owned()))]
}

/// What a second read shows: most often what the first one did, which stands here as an unreadable claim.
fn second_read() -> impl Strategy<Value = Option<ClaimRead>> {
    let same = ClaimRead::Unreadable { number: 0, thing: Thing::default(), why: String::new() };
    prop_oneof![4 => Just(Some(same)), 1 => claim_read(4).prop_map(Some), 1 => Just(None)]
}

/// What GitHub would answer to each question, were it asked.
#[derive(Clone, Debug)]
struct Answers {
    claims: Fact<Claims>,
    holder: Fact<RunState>,
    own_run: Fact<RunState>,
    second_read: Fact<Option<ClaimRead>>,
    marker_claim: Fact<Option<ClaimRead>>,
    permission: Fact<Permission>,
    viewer: Fact<String>,
    window_is_unknown: bool,
}

fn answers() -> impl Strategy<Value = Answers> {
    let permission =
        prop_oneof![4 => Just(Permission::Write), 1 => Just(Permission::Read), 1 => Just(Permission::None)];
    let viewer = prop::sample::select(vec!["github-actions[bot]".to_owned(), "alice".to_owned()]);
    (
        known_or_not(claims()),
        known_or_not(run_state()),
        known_or_not(run_state()),
        known_or_not(second_read()),
        known_or_not(prop::option::of(claim_read(1))),
        known_or_not(permission),
        known_or_not(viewer),
        any::<bool>(),
    )
        .prop_map(|(claims, holder, own_run, second_read, marker_claim, permission, viewer, window_is_unknown)| {
            Answers { claims, holder, own_run, second_read, marker_claim, permission, viewer, window_is_unknown }
        })
}

/// Triggers and policies of every kind that this version knows.
fn situation() -> impl Strategy<Value = Value> {
    let marker = "<!-- run-guard/v1 {\"claim\":1,\"key\":\"github.com/42/issue/731/investigate\",\
                  \"nonce\":\"70000000\",\"source_run_id\":100} -->";
    let bodies = vec![
        "@claude look".to_owned(),
        "@claude look".to_owned(),
        "/again".to_owned(),
        "words".to_owned(),
        format!("@claude look\n{marker}"),
        "**Claude finished @alice's task** —— [View job](https://github.com/acme/app/actions/runs/100) @claude"
            .to_owned(),
    ];
    let events = prop::sample::select(vec![
        ("issues", "opened"),
        ("issues", "opened"),
        ("issue_comment", "created"),
        ("issues", "labeled"),
        ("issues", "edited"),
        ("issue_comment", "created"),
        ("issue_comment", "edited"),
    ]);
    let sender = prop::sample::select(vec![
        json!("alice"),
        json!("alice"),
        json!("alice"),
        json!("alice"),
        json!("outsider"),
        json!("claude[bot]"),
        json!("github-actions[bot]"),
        json!("work-app[bot]"),
        Value::Null,
    ]);
    let by = prop::sample::select(vec![json!("alice"), json!("github-actions[bot]"), Value::Null]);
    let policy = prop::sample::select(vec![
        json!({}),
        json!({ "allow": ["work-app"], "rerun_phrase": "/again", "trigger_labels": ["agent"] }),
        json!({ "rerun_phrase": "/again", "anyone": true, "on_abandoned": "review" }),
        json!({ "per_hour": 3, "cost_cents": 500, "burst": [2, "actor", 60], "cool_down_min": 5 }),
        json!({ "blocking_labels": ["agent"], "no_memory": true, "edits": "changed" }),
    ]);
    let labels = prop::sample::select(vec![
        json!([]),
        json!(["agent"]),
        json!(["agent"]),
        json!(["run-guard:investigate:done"]),
        json!(["agent", "run-guard:investigate:review"]),
    ]);
    let label_events = prop::sample::select(vec![
        json!([]),
        json!([{ "label": "agent", "by": "alice", "at": "14:30" }]),
        json!([{ "label": "run-guard:investigate:done", "by": "github-actions[bot]", "at": "14:30" }]),
    ]);
    let comments = prop::sample::select(vec![
        json!([]),
        json!([{ "id": 9001, "by": "alice", "at": "14:59" }]),
        json!([{ "id": 7, "by": "claude[bot]", "at": "14:05" }]),
    ]);
    (events, sender, by, 1..4_u32, prop::sample::select(bodies), policy, labels, label_events, comments).prop_map(
        |((event, action), sender, by, attempt, body, policy, labels, label_events, comments)| {
            let patch = json!({
                "event": event, "action": action, "sender": sender, "by": by, "attempt": attempt, "body": body,
                "label": (action == "labeled").then_some("agent"), "policy": policy,
                "changes": (action == "edited").then(|| json!({ "body": { "from": "words" } })),
                "comment": (event == "issue_comment").then(|| json!({
                    "id": 9001, "by": sender, "at": "14:59", "body": body
                })),
                "issue": { "labels": labels, "label_events": label_events, "comments": comments },
                "permissions": {}
            });
            merged(&plain(), &patch)
        },
    )
}

/// A situation of which nothing has been read yet.
fn unread(situation: &Value) -> Built {
    let mut situation = situation.clone();
    situation["permissions"] = json!({});
    let mut built = Situation::read(&situation).build().unwrap();
    built.facts = Facts { repository: built.facts.repository, resource: built.facts.resource, ..Facts::default() };
    built
}

fn answer(built: &mut Built, question: &Question, answers: &Answers) {
    let facts = &mut built.facts;
    match question {
        Question::Facts => {
            facts.viewer = answers.viewer.clone();
            facts.claims = answers.claims.clone();
            facts.window = if answers.window_is_unknown {
                Fact::Unknown("502".to_owned())
            } else {
                Fact::Known(Window { complete_since: Some(built.now), ..Window::default() })
            };
        }
        Question::Permission(login) => facts.set_permission(login, answers.permission.clone()),
        Question::HolderRun(id) if *id == built.trigger.run.run => facts.own_run = answers.own_run.clone(),
        Question::HolderRun(_) => facts.holder = answers.holder.clone(),
        Question::SecondRead(number) => {
            facts.second_read = match &answers.second_read {
                Fact::Known(Some(ClaimRead::Readable(claim))) => {
                    let again = Claim { number: *number, thing: Thing::default(), record: claim.record.clone() };
                    Fact::Known(Some(ClaimRead::Readable(again)))
                }
                Fact::Known(Some(ClaimRead::Unreadable { .. })) => {
                    facts.claims.known().map_or(Fact::Known(None), |claims| Fact::Known(claims.get(number).cloned()))
                }
                other => other.clone(),
            };
        }
        Question::MoreWindow => {
            if let Fact::Known(window) = &mut facts.window {
                window.complete_since = None;
            }
        }
        Question::MarkerClaim { .. } => facts.marker_claim = answers.marker_claim.clone(),
        Question::WaitUntil(at) => built.now = *at,
    }
}

/// Asks and answers to the end.
fn to_the_end(built: &mut Built, answers: &Answers) -> (Decision, Vec<Question>) {
    let mut asked = Vec::new();
    loop {
        match built.decide() {
            Decision::Ask(question) => {
                assert!(!asked.contains(&question), "{question:?} comes twice: {asked:?}");
                assert!(asked.len() < MOST_QUESTIONS, "{asked:?}");
                answer(built, &question, answers);
                asked.push(question);
            }
            decision => return (decision, asked),
        }
    }
}

fn all_known(facts: &Facts, asked: &[Question]) -> bool {
    let unknown = |question: &Question| match question {
        Question::Permission(login) => matches!(facts.permission(login), Fact::Unknown(_)),
        Question::SecondRead(_) => matches!(facts.second_read, Fact::Unknown(_)),
        Question::MarkerClaim { .. } => matches!(facts.marker_claim, Fact::Unknown(_)),
        // The claim's own age decides where runs cannot be read, and only a cap needs the window and only some
        // triggers the token's login.
        _ => false,
    };
    !asked.iter().any(unknown)
}

/// The properties below are about something: a good part of what they try lets an agent start, and all else is refused
/// for many different reasons.
#[test]
fn what_is_tried_is_of_every_kind() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..2000 {
        let situation = situation().new_tree(&mut runner).unwrap().current();
        let answers = answers().new_tree(&mut runner).unwrap().current();
        let (decision, _) = to_the_end(&mut unread(&situation), &answers);
        let kind = match decision {
            Decision::Claim { plan, .. } => format!("claim {}", plan.cause.as_str()),
            Decision::Stop { stop, .. } => stop.reason.to_string(),
            Decision::Ask(question) => panic!("{question:?}"),
        };
        *outcomes.entry(kind).or_default() += 1;
    }
    let claims: usize = outcomes.iter().filter(|(kind, _)| kind.starts_with("claim ")).map(|(_, n)| n).sum();
    assert!(claims > 200, "{outcomes:?}");
    for kind in
        ["claim first", "claim retry", "claim rerun", "claim takeover", "loop-marker", "settling", "in-progress"]
    {
        assert!(outcomes.contains_key(kind), "no {kind}: {outcomes:?}");
    }
    assert!(outcomes.len() > 20, "{outcomes:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever GitHub answers, and be it that it does not answer, a decision is reached, no question comes twice, and
    /// what could not be read has let nobody start.
    #[test]
    fn decisions_end_and_the_unknown_starts_no_agent(situation in situation(), answers in answers()) {
        let mut built = unread(&situation);
        let (decision, asked) = to_the_end(&mut built, &answers);
        if matches!(decision, Decision::Claim { .. }) {
            prop_assert!(all_known(&built.facts, &asked), "{:?}", asked);
            prop_assert!(matches!(built.facts.claims, Fact::Known(_)));
            prop_assert!(matches!(built.facts.resource, Fact::Known(Some(_))));
            if built.context().rules.budget.window().is_some() {
                prop_assert!(matches!(built.facts.window, Fact::Known(_)));
            }
        }
        if let Decision::Stop { stop, path } = decision {
            prop_assert!(!stop.message.is_empty() && !stop.message.contains('\n'), "{:?}", stop);
            prop_assert!(path.is_sorted_by(|a, b| a.gate < b.gate), "{:?}", path);
        }
    }

    /// A claim's number is always one above the highest, and nothing ever follows a live claim or a sweep of another.
    #[test]
    fn the_next_claim_is_one_above_the_highest(situation in situation(), answers in answers()) {
        let mut built = unread(&situation);
        if let (Decision::Claim { plan, .. }, _) = to_the_end(&mut built, &answers) {
            let claims = built.facts.claims.known().unwrap();
            let highest = claims.last_key_value();
            prop_assert_eq!(plan.number, highest.map_or(0, |(n, _)| *n) + 1);
            let Some((_, read)) = highest else { return Ok(()) };
            let ClaimRead::Readable(claim) = read else { panic!("an unreadable claim was taken for free") };
            match &claim.record.state {
                ClaimState::Sweep { .. } => panic!("a sweep was passed over"),
                ClaimState::Open => {
                    let own = built.trigger.run.run == claim.record.owner.run
                        && claim.record.owner.attempt < built.trigger.run.attempt;
                    prop_assert!(own || matches!(built.facts.second_read, Fact::Known(Some(_))));
                }
                ClaimState::Settled(s) if matches!(s.outcome, Outcome::Completed | Outcome::NoChange) => {
                    prop_assert_eq!(plan.cause, Cause::Rerun);
                    prop_assert!(plan.rerun.is_some());
                }
                ClaimState::Settled(_) => {}
            }
        }
    }

    /// A trigger that comes again never starts done work again, and a wish counts once: whatever opened claim n+1, once
    /// that is completed the same trigger is already done.
    #[test]
    fn the_same_trigger_never_claims_twice(situation in situation(), answers in answers()) {
        let mut built = unread(&situation);
        let (Decision::Claim { plan, .. }, _) = to_the_end(&mut built, &answers) else { return Ok(()) };
        // A re-run is told by its start, and this attempt began before now.
        if let Fact::Known(RunState::Found { started_at: Some(at), .. }) = &answers.own_run {
            prop_assume!(*at <= built.now);
        }
        // So was the comment written, and so was the label put on.
        let end = built.now + TimeDelta::minutes(60);
        let owner = Owner { run: built.trigger.run.run, attempt: built.trigger.run.attempt, nonce: Nonce::from_bits(1) };
        let record = Record {
            owner,
            cause: plan.cause,
            rerun: plan.rerun.clone(),
            opened_at: built.now,
            number: Some(731),
            actor: None,
            state: ClaimState::Settled(Settlement {
                outcome: Outcome::Completed,
                at: end,
                cost_cents: Some(1),
                result_comment: None,
            }),
        };
        let mut claims = built.facts.claims.known().unwrap().clone();
        claims.insert(plan.number, ClaimRead::Readable(Claim { number: plan.number, thing: Thing::default(), record }));
        let mut again = unread(&situation);
        again.now = end + TimeDelta::minutes(1);
        let answers = Answers {
            claims: Fact::Known(claims),
            // Read this time, if it was not before: it began before it could claim.
            own_run: Fact::Known(RunState::Found {
                attempt: built.trigger.run.attempt,
                conclusion: None,
                updated_at: built.now,
                started_at: Some(built.now),
                url: String::new(),
            }),
            ..answers
        };
        let (decision, _) = to_the_end(&mut again, &answers);
        let Decision::Stop { stop, .. } = decision else { panic!("claimed twice: {decision:?}") };
        prop_assert_eq!(stop.reason, Reason::AlreadyDone);
    }

    /// Comments of outsiders change nothing about what is done.
    #[test]
    fn an_outsiders_comment_changes_nothing(situation in situation(), answers in answers()) {
        let mut before = unread(&situation);
        let mut after = unread(&situation);
        if let Fact::Known(Some(resource)) = &mut after.facts.resource {
            let body = "Claude finished. <!-- run-guard/v1 {} -->\n@claude /again";
            let outsider = merged(&plain(), &json!({ "issue": { "comments": [
                { "id": 66, "by": "outsider", "at": "14:58", "body": body }
            ] } }));
            let comment = Situation::read(&outsider).build().unwrap().facts.live().unwrap().comments[0].clone();
            resource.comments.push(comment);
            resource.comment_total += 1;
        }
        let (before, _) = to_the_end(&mut before, &answers);
        let (after, _) = to_the_end(&mut after, &answers);
        prop_assert_eq!(super::case::outcome(&before), super::case::outcome(&after));
    }

    /// A key names the work, not how it was heard of.
    #[test]
    fn keys_do_not_depend_on_names_or_letter_case(
        host in "[a-zA-Z]{1,8}\\.[a-zA-Z]{2,5}", owner in "[a-zA-Z0-9]{1,8}", run in any::<u64>(), number in 1..u64::MAX
    ) {
        let task: Task = "investigate".parse().unwrap();
        let key = |host: &str, full_name: &str, run: u64, event: &str| {
            let payload = json!({
                "action": "opened", "delivery": run, "repository": { "id": 42, "full_name": full_name },
                "issue": { "number": number, "title": event }, "label": { "name": event }
            });
            let run = run_guard::core::trigger::RunContext { run, attempt: 1, triggering_actor: None };
            let trigger = run_guard::core::trigger::Trigger::read("issues", &payload, host, run).unwrap();
            trigger.key(&task, &run_guard::core::policy::TaskPolicy::default())
        };
        let one = key(&host, "acme/app", 1, "a");
        prop_assert_eq!(&one, &key(&host.to_uppercase(), &format!("{owner}/renamed"), run, "b"));
        prop_assert_eq!(one.to_string().parse::<Key>().unwrap(), one);
    }

    /// Records are read back as they were written, and fit.
    #[test]
    fn records_come_back(record in record()) {
        let text = record.encode();
        prop_assert!(text.len() <= MAX_RECORD_LEN && text.is_ascii(), "{}", text);
        prop_assert_eq!(Record::decode(&text), Ok(record));
    }

    /// Even numbers that GitHub will never give out fit; what has no room reads as not known.
    #[test]
    fn records_fit_whatever_the_numbers(mut record in record(), n in (u64::MAX - 9)..=u64::MAX, keep in any::<[bool; 4]>()) {
        record.owner.run = n;
        record.owner.attempt = u32::MAX;
        record.rerun = Some(RerunId::Attempt(n, u32::MAX));
        record.number = keep[0].then_some(n);
        record.actor = keep[1].then_some(n);
        if let ClaimState::Settled(s) = &mut record.state {
            s.cost_cents = keep[2].then_some(n);
            s.result_comment = keep[3].then_some(n);
        }
        let text = record.encode();
        prop_assert!(text.len() <= MAX_RECORD_LEN, "{}", text);
        let again = Record::decode(&text).unwrap();
        prop_assert_eq!((&again.owner, again.cause, &again.rerun), (&record.owner, record.cause, &record.rerun));
        prop_assert!(again.number.is_none() || again.number == record.number);
        prop_assert!(again.actor.is_none() || again.actor == record.actor);
        prop_assert_eq!(std::mem::discriminant(&again.state), std::mem::discriminant(&record.state));
    }

    /// Whatever is accepted as a record is what would be written.
    #[test]
    fn accepted_records_are_canonical(text in "rg1 r[0-9a-z+]{1,3}\\.[0-9a-z]{1,2}\\.[0-9a-z]{7,8} c[frex]{1}(=[clr][0-9a-z.]{1,3})? t[0-9a-z]{1,3}( #[0-9]{1,2})?( u[0-9]{1,2})? (open|co@[0-9]{1,3}|sweep[1-3]@[1-9])( \\$[0-9]{1,2})?( w[0-9]{1,2})?") {
        if let Ok(record) = Record::decode(&text) {
            prop_assert_eq!(record.encode(), text);
        }
    }

    /// Nothing in a text makes a reader of ours panic.
    #[test]
    fn any_text_is_read(text in any::<String>(), phrase in any::<String>()) {
        if let Ok(record) = Record::decode(&text) {
            prop_assert_eq!(record.encode(), text.clone());
        }
        if let Ok(key) = text.parse::<Key>() {
            prop_assert_eq!(key.to_string(), text.clone());
        }
        prop_assert!(text.parse::<Handle>().is_err());
        for request in text::requests(&text, &phrase) {
            prop_assert!(request.text.to_lowercase().contains(phrase.to_lowercase().split_whitespace().next().unwrap()));
        }
        prop_assert!(text::requests_in_title(&text, &phrase).len() <= 1);
    }

    /// Handles and markers come back as they were written, and no marker ends its comment early.
    #[test]
    fn handles_and_markers_come_back(
        host in "[a-z][a-z.-]{0,12}", run in any::<u64>(), claim in 1..u32::MAX, nonce in nonce(), before in any::<String>(),
        number in 1..u64::MAX, id in any::<u64>(), kind in 0..3, outcome in prop::option::of(prop::sample::select(Outcome::ALL.to_vec()))
    ) {
        let version = match kind {
            0 => None,
            1 => Some(Version::Comment(id)),
            _ => Some(Version::EditedComment(id, Digest::of("x"))),
        };
        let resource = if id % 2 == 0 { Resource::Issue(number) } else { Resource::PullRequest(number) };
        let key = Key::new(&host, run, resource, "t-1".parse().unwrap(), version);
        let handle = Handle { ledger: LedgerKind::Label, anchor: None, key: key.clone(), number: claim, nonce: nonce.clone() };
        prop_assert_eq!(handle.to_string().parse::<Handle>().unwrap(), handle);
        let marker = Marker { key, claim, source_run_id: run, nonce, outcome };
        let line = marker.encode();
        prop_assert_eq!(line.matches("--").count(), 2, "{}", line);
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(Marker::find(&format!("{before}\n{line}")), Some(marker));
    }
}
