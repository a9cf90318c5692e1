//! The commands: one file each. They gather facts through the ports, let the core decide, and act.

pub mod check;
pub mod command;
pub mod dry_run;
pub mod finish;
pub mod gather;
pub mod patient;
pub mod payload;
pub mod report;
pub mod simulate;
pub mod sweep;
pub mod try_payload;
pub mod verify;
pub mod world;

use crate::core::claim::Nonce;

/// The world that a command works in.
#[derive(Debug)]
pub struct World<'a, G, C> {
    /// GitHub, real or embedded.
    pub github: &'a G,
    /// Time.
    pub clock: &'a C,
    /// The random word of this step.
    pub nonce: Nonce,
}
