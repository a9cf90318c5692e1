//! run-guard makes an AI agent on GitHub Actions start once per piece of work.
//!
//! The library is the whole product; the binary `run-guard` builds the world and runs one command. See
//! `ARCHITECTURE.md` for the map.

pub mod app;
pub mod cli;
pub mod config;
pub mod core;
pub mod github;
pub mod ledger;
pub mod output;
pub mod ports;
pub mod sim;
