//! Claims on GitHub primitives. A ledger carries out what the core decided; it decides nothing.

pub mod label;
