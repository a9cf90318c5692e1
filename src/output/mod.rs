//! What people and machines see of a result.

pub mod escape;
