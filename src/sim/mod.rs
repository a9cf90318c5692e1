//! The embedded GitHub.
