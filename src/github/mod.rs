//! The client of the real GitHub, and the only user of octocrab.
