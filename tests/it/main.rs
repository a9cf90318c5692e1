//! The one integration binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads the environment that ./scripts/test sets"
)]

mod architecture;
mod attack;
mod client;
mod config;
mod contract;
mod core;
mod e2e;
mod finish;
mod ledger;
mod model;
mod output;
mod race;
mod requests;
mod resume;
mod seeds;
mod sim;
mod simulate;
mod support;
mod tools;
