//! The embedded GitHub: a GitHub in memory, for `simulate`, for models and for tests.
//!
//! [`World`] is what GitHub stores, as plain data, with every read and the one rule of who may do what. [`State`] is
//! the GitHub around it: its clock, tokens, rate limits, faults, and every write. [`port::InProcess`] and,
//! behind loopback HTTP, `http` are two thin faces of it: neither checks a permission or a limit of its own.

mod checks;
mod claims;
mod error;
mod fault;
mod git;
#[cfg(feature = "serve")]
mod graphql;
#[cfg(feature = "serve")]
pub mod http;
#[cfg(feature = "serve")]
mod json;
pub mod port;
#[cfg(feature = "serve")]
mod record;
pub mod scenario;
pub mod schedule;
mod state;
pub mod webhook;
mod world;

pub use checks::{CheckLists, CheckRow, CheckWords};
pub use error::{ApiError, Code, FieldError};
pub use fault::{CallInfo, Fault, Op, Planned};
pub use git::{CommitRow, RefUpdate};
pub use state::{Answer, Caller, Grants, Rate, Session, State, Token, TokenKind, TokenSpec, Write};
pub use world::{
    Access, CommentRow, FileContent, Item, ItemSpec, LabelEventRow, Reaction, RepoLabel, Repository, ReviewRow, Run,
    Scope, User, World, node_id,
};
