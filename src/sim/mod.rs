//! The embedded GitHub.

pub mod schedule;
