//! The commands: one file each. They gather facts through the ports, let the core decide, and act.

pub mod report;
