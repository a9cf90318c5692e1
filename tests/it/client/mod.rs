//! The client of the real GitHub, against a loopback server: what it sends, and what it makes of answers and of their absence.

mod facts;
mod failures;
mod requests;
mod server;

use chrono::{DateTime, Utc};
use run_guard::ports::{FactsQuery, Label, Listing, Probe, RepoName};

fn repo() -> RepoName {
    RepoName::parse("acme/app").unwrap()
}

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn label(name: &str, description: &str) -> Label {
    Label { name: name.to_owned(), description: description.to_owned(), node_id: None, created_at: None }
}

/// A query for everything.
fn whole_query() -> FactsQuery {
    FactsQuery {
        repo: repo(),
        number: Some(731),
        claims: Probe::Labels(vec![
            "rg:investigate:0123456789ab:1".to_owned(),
            "run-guard:investigate:done".to_owned(),
        ]),
        window: Some(Listing::Labels),
        written: None,
    }
}
