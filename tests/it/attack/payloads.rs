//! Payloads of which a part is gone or is something else.

use super::*;

/// The payloads that start an agent, by event.
fn good() -> Vec<(&'static str, Value)> {
    let mut labeled = opened();
    labeled["action"] = json!("labeled");
    labeled["label"] = json!({"name": "security"});
    let mut edited = opened();
    edited["action"] = json!("edited");
    edited["issue"]["title"] = json!("@claude look into tokens in the log");
    edited["changes"] = json!({"title": {"from": "Tokens in the log"}, "body": {"from": null}});
    let comment = commented(9001, &person("alice"), &person("alice"), "@claude please look");
    let mut comment_edited = comment.clone();
    comment_edited["action"] = json!("edited");
    comment_edited["changes"] = json!({"body": {"from": "please look"}});
    vec![
        ("issues", opened()),
        ("issues", labeled),
        ("issues", edited),
        ("issue_comment", comment),
        ("issue_comment", comment_edited),
    ]
}

/// The pointer of every node below the top.
pub(super) fn pointers(value: &Value, at: &str, into: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (name, value) in below {
        let here = format!("{at}/{name}");
        pointers(value, &here, into);
        into.push(here);
    }
}

/// What a node becomes; `None`: it is left out.
fn mutations() -> Vec<Option<Value>> {
    let huge: Value = serde_json::from_str("1e300").unwrap();
    let long = "@claude \u{202e}\n::set-output name=proceed::true\n".repeat(20_000);
    let values = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(732),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1.5),
        huge,
        json!(""),
        json!("731"),
        json!("../../../x"),
        json!("edited"),
        json!("Bot"),
        json!(long),
        json!([]),
        json!({}),
        json!([{}]),
    ];
    [None].into_iter().chain(values.into_iter().map(Some)).collect()
}

fn mutated(payload: &Value, pointer: &str, to: Option<&Value>) -> Value {
    let mut payload = payload.clone();
    if let Some(value) = to {
        *payload.pointer_mut(pointer).unwrap() = value.clone();
        return payload;
    }
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match payload.pointer_mut(parent).unwrap() {
        Value::Object(fields) => drop(fields.remove(name)),
        Value::Array(items) => drop(items.remove(name.parse().unwrap())),
        other => panic!("{other} holds nothing"),
    }
    payload
}

fn bench() -> Bench {
    let mut state = github();
    state.open_issue(REPO, ItemSpec::new("alice", "A pull request").number(800).pull_request(&"a".repeat(40)));
    Bench::new(state)
}

#[test]
fn a_payload_of_which_a_part_is_something_else_never_starts_other_work() {
    for (event, payload) in good() {
        let key = {
            let report = bench().check_of(&input(event, payload.clone(), 500));
            assert!(report.proceeds(), "{payload}: {report:?}");
            report.key.unwrap()
        };
        let mut nodes = Vec::new();
        pointers(&payload, "", &mut nodes);
        let mut refused = 0;
        for pointer in &nodes {
            for to in mutations() {
                let bench = bench();
                let changed = mutated(&payload, pointer, to.as_ref());
                let report = bench.check_of(&input(event, changed, 500));
                let shown = to.as_ref().map(|value| value.to_string().chars().take(60).collect::<String>());
                let context = || format!("{event} {pointer} became {shown:?}: {report:?}");
                if !report.proceeds() {
                    refused += 1;
                    assert!(bench.claims().is_empty(), "{}", context());
                    continue;
                }
                // The id is all that a comment is known by, and the digest of its request tells edits apart.
                let of_comment = ["/comment/id", "/comment/body", "/comment", "/action", "/issue/title"];
                let same_work = report.key.as_ref().unwrap().resource() == key.resource();
                assert!(
                    report.key.as_ref() == Some(&key) || same_work && of_comment.contains(&pointer.as_str()),
                    "{}",
                    context()
                );
            }
        }
        assert!(refused > nodes.len(), "{event}: only {refused} were refused");
    }
}

/// An issue can be made into a pull request; the two have keys of their own, and only what it is now counts.
#[test]
fn an_issue_that_is_a_pull_request_now_or_the_other_way_round_is_not_started() {
    let comment = commented(9001, &person("alice"), &person("alice"), "@claude please look");
    let as_pull = |value: Value| {
        let mut payload = comment.clone();
        payload["issue"]["pull_request"] = value;
        payload
    };
    let forms = [json!({"url": "https://api.github.com/repos/acme/app/pulls/731"}), json!({}), json!(true), json!([])];
    for form in forms {
        let report = bench().check_of(&input("issue_comment", as_pull(form), 500));
        assert_eq!(words(&report), ("error", "resource-moved"), "{report:?}");
    }
    for (event, mut payload) in good() {
        payload["issue"]["number"] = json!(800);
        let report = bench().check_of(&input(event, payload, 500));
        assert_eq!(words(&report), ("error", "resource-moved"), "{event}: {report:?}");
    }
}

#[test]
fn what_is_no_payload_at_all_is_said_to_be_none() {
    for value in [json!(null), json!([]), json!("x"), json!(1), json!({}), json!({"action": "opened"})] {
        for event in ["issues", "issue_comment", "", "push\n::error::x", "\u{202e}"] {
            let report = bench().check_of(&input(event, value.clone(), 500));
            assert_eq!(report.verdict, Verdict::Error, "{event} {value}: {report:?}");
        }
    }
}
