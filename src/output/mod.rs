//! What people and machines see of a result.

pub mod actions;
pub mod escape;
pub mod json;
pub mod terminal;
pub mod timeline;
