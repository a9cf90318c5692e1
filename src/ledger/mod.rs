//! Claims on GitHub primitives.
