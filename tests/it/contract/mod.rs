//! Holds every HTTP exchange of the test suite against what GitHub publishes: its API description (REST), its schema (GraphQL)
//! and its recorded answers. The embedded GitHub and the client that talks to it are both judged, by neither's word.

mod exceptions;
mod exchange;
mod fixtures;
mod graphql;
mod openapi;
mod recorded;

use std::fmt;

/// One place where an exchange is not what GitHub describes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deviation {
    /// The part of the exchange and the path in it: `response body /labels/0/color`, `request query per_page`.
    pub(crate) field: String,
    /// What is wrong with it.
    pub(crate) what: String,
}

impl Deviation {
    pub(crate) fn new(field: impl Into<String>, what: impl Into<String>) -> Self {
        Self { field: field.into(), what: what.into() }
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.what)
    }
}

/// What was found about one exchange.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    /// The endpoint as GitHub names it: method and path template, or `POST /graphql`.
    pub(crate) endpoint: String,
    /// What fails the test run.
    pub(crate) deviations: Vec<Deviation>,
    /// What is said once and fails nothing, such as a status that the description does not list.
    pub(crate) warnings: Vec<String>,
}
