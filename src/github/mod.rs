//! The client of the real GitHub, and the only user of octocrab.
//!
//! What is absent: retries, pagination and redirects of writes. One method of [`Client`] is one request, so whoever
//! calls knows what was sent and how often.

mod client;
mod errors;
mod hosts;
mod query;
mod rest;
mod token;

pub use client::{Client, ClientError};
pub use hosts::{HostError, Hosts};
pub use token::{BadToken, Token};
