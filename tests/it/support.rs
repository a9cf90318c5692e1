//! What tests share: the loopback GitHub, and the binary with a clean environment.

use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use run_guard::sim::State;
use run_guard::sim::http::{Options, Server, serve};
use tokio::net::TcpListener;
use tokio::process::Command;

/// Serves a state on a free loopback port. With `RUN_GUARD_RECORD` every exchange is kept for the contract pass.
pub(crate) async fn start_server(state: State) -> Server {
    static SERVERS: AtomicU32 = AtomicU32::new(0);
    let number = SERVERS.fetch_add(1, Ordering::Relaxed);
    let record = std::env::var_os("RUN_GUARD_RECORD")
        .map(|folder| std::path::Path::new(&folder).join(format!("{}-{number}.jsonl", std::process::id())));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    serve(state, listener, Options { record }).unwrap()
}

/// The binary, with nothing of this machine's GitHub in its environment.
pub(crate) fn run_guard() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_run-guard"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let foreign = ["GITHUB_", "RUNNER_", "ACTIONS_", "GH_", "RUN_GUARD_"].iter().any(|p| text.starts_with(p));
        if foreign || text.to_ascii_lowercase().ends_with("_proxy") {
            command.env_remove(&name);
        }
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// What a run of the binary left.
pub(crate) struct Ended {
    /// The exit code.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl Ended {
    /// Runs it to its end.
    pub(crate) async fn of(mut command: Command) -> Self {
        let output = command.output().await.unwrap();
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
