//! The example workflows under a real runner, against the loopback GitHub.
