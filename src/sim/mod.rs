//! The embedded GitHub: a GitHub in memory, for `simulate`, for models and for tests.
//!
//! [`World`] is what GitHub stores, as plain data, with every read and the one rule of who may do what. [`State`] is
//! the GitHub around it: its clock, tokens, rate limits, faults, and every write. [`port::InProcess`] is a
//! thin face of it, which checks no permission and no limit of its own.

mod error;
mod fault;
pub mod port;
pub mod scenario;
pub mod schedule;
mod state;
pub mod webhook;
mod world;

pub use error::{ApiError, Code, FieldError};
pub use fault::{CallInfo, Fault, Op, Planned};
pub use state::{Answer, Caller, Grants, Rate, Session, State, Token, TokenKind, TokenSpec, Write};
pub use world::{
    Access, CommentRow, FileContent, Item, ItemSpec, LabelEventRow, Reaction, RepoLabel, Repository, Run, Scope, User,
    World, node_id,
};
