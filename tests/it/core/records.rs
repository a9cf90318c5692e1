//! What is written on GitHub and read back: records, names, keys, handles, markers, and who is who.

use run_guard::core::claim::{
    Handle, MAX_CLAIM_NUMBER, MAX_RECORD_LEN, Nonce, Record, done_label, label_name, parse_label_name, review_label,
};
use run_guard::core::identity::{Actor, ActorKind, Who, who};
use run_guard::core::key::{Digest, Key, MAX_TASK_LEN, Task};
use run_guard::core::marker::Marker;
use run_guard::core::policy::Policy;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Forms {
    records: Form,
    keys: Form,
    handles: Form,
    claim_labels: Form,
    tasks: Form,
    markers: Form,
}

/// Texts of one form: those that are read and written back the same, and those that are refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    good: Vec<String>,
    bad: Vec<String>,
}

impl Form {
    /// `again` reads a text and writes what it read.
    fn check(&self, name: &str, again: impl Fn(&str) -> Option<String>) {
        assert!(!self.good.is_empty() && !self.bad.is_empty(), "{name}");
        for text in &self.good {
            assert_eq!(again(text).as_deref(), Some(text.as_str()), "{name}: {text:?}");
        }
        for text in &self.bad {
            assert_eq!(again(text), None, "{name}: {text:?}");
        }
    }
}

#[test]
fn each_form_is_read_strictly_and_written_back_the_same() {
    let forms: Forms = serde_yaml::from_str(include_str!("cases/forms.yml")).unwrap();
    forms.records.check("records", |s| Record::decode(s).ok().map(|r| r.encode()));
    forms.keys.check("keys", |s| s.parse::<Key>().ok().map(|k| k.to_string()));
    forms.handles.check("handles", |s| s.parse::<Handle>().ok().map(|h| h.to_string()));
    forms.claim_labels.check("claim labels", |s| parse_label_name(s).map(|(task, of, n)| label_name(&task, &of, n)));
    forms.tasks.check("tasks", |s| s.parse::<Task>().ok().map(|t| t.to_string()));
    forms.markers.check("markers", |s| Marker::find(s).map(|m| m.encode()));
}

#[test]
fn names_fit_githubs_limit_of_fifty() {
    let task: Task = "t".repeat(MAX_TASK_LEN).parse().unwrap();
    for name in [label_name(&task, &Digest::of("x"), MAX_CLAIM_NUMBER), done_label(&task), review_label(&task)] {
        assert!(name.len() <= 50 && name == name.to_lowercase(), "{name}");
    }
    assert_eq!(MAX_RECORD_LEN, 100);
}

#[test]
fn a_digest_is_the_start_of_the_sha_256() {
    // The first vector of FIPS 180-2: SHA-256 of "abc".
    assert_eq!(Digest::of("abc").as_str(), "ba7816bf8f01");
}

#[test]
fn a_marker_is_the_last_line_or_it_is_text() {
    let forms: Forms = serde_yaml::from_str(include_str!("cases/forms.yml")).unwrap();
    let marker = &forms.markers.good[0];
    for (text, found) in [
        (format!("Done.\n\n{marker}"), true),
        (format!("Done.\r\n{marker}\r\n \n"), true),
        (format!("{marker}\nand more"), false),
        (format!("> {marker}"), false),
        (format!("Done. {marker}"), false),
        (format!("`{marker}`"), false),
        (format!("{} {marker}", "x".repeat(5000)), false),
    ] {
        assert_eq!(Marker::find(&text).is_some(), found, "{text}");
    }
}

#[test]
fn accounts_are_told_by_type_and_name() {
    use ActorKind::{Bot, Organization, Other, User};
    let policy = Policy { agents: vec!["claude[bot]".into(), "acme-robot".into()], ..Policy::default() };
    for (login, kind, viewer, expected) in [
        ("claude[bot]", Bot, None, Who::Agent),
        ("Claude", Bot, None, Who::Agent),
        ("claude", User, None, Who::Person),
        ("claude[bot]", User, None, Who::Person),
        ("ACME-robot", User, None, Who::Agent),
        ("acme-robot[bot]", Bot, None, Who::Agent),
        ("github-actions[bot]", Bot, Some("github-actions[bot]"), Who::SelfBot),
        ("github-actions", Bot, Some("GitHub-Actions[bot]"), Who::SelfBot),
        ("github-actions", Bot, None, Who::OtherBot),
        ("alice[bot]", Bot, Some("alice"), Who::OtherBot),
        ("alice", User, Some("alice"), Who::Person),
        ("github-actions", User, Some("github-actions[bot]"), Who::Person),
        ("acme", Organization, None, Who::Unknown),
        ("ghost", Other, None, Who::Unknown),
    ] {
        assert_eq!(who(Some(&Actor::new(login, kind)), viewer, &policy), expected, "{login} {kind:?} {viewer:?}");
    }
    assert_eq!(who(None, Some("alice"), &policy), Who::Unknown);
}

#[test]
fn nonces_differ_where_the_random_bits_do() {
    assert_eq!(Nonce::from_bits(0).as_str(), "00000000");
    assert_ne!(Nonce::from_bits(1), Nonce::from_bits(2));
    assert_eq!(Nonce::from_bits(u64::MAX).as_str().len(), 8);
}
