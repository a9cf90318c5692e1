//! The pure core: what a trigger is, which piece of work it names, and whether an agent may start.
//!
//! This module does no IO, reads no clock, no environment and no randomness, and it cannot fail: what could not
//! be read from GitHub is an explicit [`facts::Fact::Unknown`], and each gate says what it makes of it. Times are
//! arguments.

pub mod claim;
pub mod decide;
pub mod decision;
pub mod ended;
pub mod execution;
pub mod facts;
pub mod gates;
pub mod held;
pub mod holder;
pub mod identity;
pub mod key;
pub mod lease;
pub mod marker;
pub mod policy;
pub mod rerun;
pub mod sweep;
pub mod text;
pub mod trigger;
