//! The known differences from what GitHub publishes, each with its reason, as data: `exceptions.yml` beside this file.
//! An entry that nothing needs fails the tests, so that the list cannot outlive its reasons.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde::Deserialize;

/// The file's content.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exceptions {
    /// Differences from the descriptions that GitHub's own servers have too.
    pub(crate) beyond_descriptions: List,
    /// Fields of GitHub's recorded answers that the embedded GitHub does not serve.
    pub(crate) unserved: List,
}

/// A list of exceptions that remembers which were needed.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct List {
    entries: Vec<Entry>,
    #[serde(skip)]
    used: RefCell<BTreeSet<usize>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The endpoint, as `GET /repos/{owner}/{repo}/labels`, or `*` for every one.
    endpoint: String,
    /// The field, as the deviation names it; `*` stands for one step of a path.
    field: String,
    /// Why the difference is right.
    reason: String,
}

impl Exceptions {
    /// Reads the file.
    pub(crate) fn read() -> Self {
        serde_yaml::from_str(include_str!("exceptions.yml")).expect("exceptions.yml is a list of exceptions")
    }
}

impl List {
    /// Whether a difference is a known one.
    pub(crate) fn allows(&self, endpoint: &str, field: &str) -> bool {
        let mut allowed = false;
        for (index, entry) in self.entries.iter().enumerate() {
            if (entry.endpoint == "*" || entry.endpoint == endpoint) && fits(&entry.field, field) {
                self.used.borrow_mut().insert(index);
                allowed = true;
            }
        }
        allowed
    }

    /// The entries that nothing needed, and those without a reason.
    pub(crate) fn faults(&self) -> Vec<String> {
        let used = self.used.borrow();
        let unused = self.entries.iter().enumerate().filter(|(index, _)| !used.contains(index));
        let unused =
            unused.map(|(_, entry)| format!("{} {}: no test needs this exception", entry.endpoint, entry.field));
        let bare = self.entries.iter().filter(|entry| entry.reason.trim().is_empty());
        unused.chain(bare.map(|entry| format!("{} {}: has no reason", entry.endpoint, entry.field))).collect()
    }
}

fn fits(pattern: &str, field: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let field: Vec<&str> = field.split('/').collect();
    pattern.len() == field.len() && pattern.iter().zip(&field).all(|(known, step)| *known == "*" || known == step)
}

#[test]
fn an_exception_covers_its_field_alone_and_must_be_needed() {
    let list: List = serde_yaml::from_str(
        "- { endpoint: GET /a, field: response body /*/id, reason: one }\n\
         - { endpoint: '*', field: response body /x, reason: '' }\n",
    )
    .unwrap();
    assert!(!list.allows("GET /a", "response body /id"));
    assert!(!list.allows("GET /b", "response body /0/id"));
    assert_eq!(
        list.faults(),
        [
            "GET /a response body /*/id: no test needs this exception",
            "* response body /x: no test needs this exception",
            "* response body /x: has no reason",
        ]
    );
    assert!(list.allows("GET /a", "response body /0/id"));
    assert!(list.allows("GET /b", "response body /x"));
    assert_eq!(list.faults(), ["* response body /x: has no reason"]);
}
