//! The parts that `scripts/tools` installs, for the tests that need one.

use std::io::Write as _;
use std::path::PathBuf;

/// Where a tool is, by its path inside the tools folder.
///
/// `./scripts/test` sets `RUN_GUARD_TOOLS`; a tool that is then missing fails the test. A plain `cargo test` has no tools folder: the
/// answer is `None`, and the test's output says what was left out.
pub(crate) fn tool(path: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("RUN_GUARD_TOOLS") else {
        left_out(path);
        return None;
    };
    let found = PathBuf::from(folder).join(path);
    assert!(found.exists(), "{} is missing: run ./scripts/tools", found.display());
    Some(found)
}

/// Says that the running test leaves something out. Written past the test harness, which shows no output of a test that passes.
pub(crate) fn left_out(what: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "left out: {test} needs {what} (run ./scripts/test)");
}
