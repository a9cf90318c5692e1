//! A workflow run under `act`, a runner for one machine, without containers.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use super::{copy_folder, read, root, stage_actions};

/// Kills what hangs. A net, not an expectation: a run takes a second or two.
pub(super) const NET: Duration = Duration::from_secs(120);

/// A workflow file, made fit for the runner and nothing else.
pub(super) struct Workflow {
    text: String,
}

impl Workflow {
    /// An example, with the path of the built binary as a further input of each run-guard step, which has no release to fetch yet.
    pub(super) fn example(name: &str) -> Self {
        let text = read(format!("examples/workflows/{name}.yml"));
        let given = format!("        with:\n          binary-path: {}\n", env!("CARGO_BIN_EXE_run-guard"));
        let mut steps = 0;
        let mut out = String::new();
        let mut after_guard = false;
        for line in text.lines() {
            if line.trim_start().trim_start_matches("- ").starts_with("uses: ") {
                after_guard = line.contains("uses: run-guard/run-guard");
            }
            if after_guard && line == "        with:" {
                out.push_str(&given);
                after_guard = false;
                steps += 1;
            } else {
                out.push_str(line);
                out.push('\n');
            }
        }
        assert_eq!(steps, 2, "{name}: a guard step and a finish step");
        Self { text: out }
    }

    /// The same with one text for another.
    pub(super) fn with(mut self, old: &str, new: &str) -> Self {
        assert_eq!(self.text.matches(old).count(), 1, "{old:?} in\n{}", self.text);
        self.text = self.text.replace(old, new);
        self
    }

    /// What stands after the `@` of the first `uses:` of an action.
    fn reference_of(&self, action: &str) -> Option<String> {
        let start = self.text.find(&format!("uses: {action}"))?;
        let line = self.text[start..].lines().next()?;
        Some(line.split_once('@')?.1.split_whitespace().next()?.to_owned())
    }
}

/// One run to be.
pub(super) struct Run<'a> {
    pub(super) workflow: &'a Workflow,
    pub(super) event: &'a str,
    pub(super) payload: &'a Value,
    pub(super) id: u64,
    /// Where the loopback GitHub listens, such as `http://127.0.0.1:4711`.
    pub(super) github: &'a str,
    pub(super) token: &'a str,
    /// Further variables.
    pub(super) env: &'a [(&'a str, &'a str)],
}

/// A run that has started.
pub(super) struct Running {
    child: Child,
    stdout: tokio::task::JoinHandle<String>,
    stderr: tokio::task::JoinHandle<String>,
    folder: tempfile::TempDir,
}

/// A run that is over.
pub(super) struct Finished {
    /// Whether every job that ran is green.
    pub(super) green: bool,
    /// What the runner wrote, one JSON object a line.
    pub(super) events: Vec<Value>,
    /// Everything that it printed.
    pub(super) log: String,
    folder: tempfile::TempDir,
}

/// Starts a run; `None` where the runner is not installed.
pub(super) fn start(run: &Run<'_>) -> Option<Running> {
    let act = crate::tools::tool("bin/act")?;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["home", "cache", "work", "temp"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    std::fs::write(at("event.json"), run.payload.to_string()).unwrap();
    std::fs::write(at("workflow.yml"), &run.workflow.text).unwrap();
    let guard = stage_actions(&at("run-guard"));
    let agent = at("agent");
    copy_folder(&root().join("tests/it/e2e/stand-ins/claude-code-action"), &agent);
    repository(&at("work"), run.payload);

    let mut command = Command::new(act);
    command
        .arg(run.event)
        .arg("--workflows")
        .arg(at("workflow.yml"))
        .args(["--json", "--no-cache-server", "--action-offline-mode", "-P", "ubuntu-latest=-self-hosted"])
        .arg("--action-cache-path")
        .arg(at("cache"))
        .arg("--eventpath")
        .arg(at("event.json"));
    for (action, folder) in [("run-guard/run-guard", &guard), ("anthropics/claude-code-action", &agent)] {
        if let Some(reference) = run.workflow.reference_of(action) {
            command.arg("--local-repository").arg(format!("{action}@{reference}={}", folder.display()));
        }
    }
    command.args(["-s", &format!("GITHUB_TOKEN={}", run.token), "-s", "ANTHROPIC_API_KEY=sk-not-a-key"]);
    let id = run.id.to_string();
    let graphql = format!("{}/graphql", run.github);
    let repository_id = run.payload["repository"]["id"].to_string();
    let fixed = [
        ("GITHUB_API_URL", run.github),
        ("GITHUB_GRAPHQL_URL", &graphql),
        ("GITHUB_SERVER_URL", run.github),
        ("GITHUB_RUN_ID", &id),
        ("GITHUB_RUN_ATTEMPT", "1"),
        ("GITHUB_REPOSITORY", run.payload["repository"]["full_name"].as_str().unwrap()),
        ("GITHUB_REPOSITORY_ID", &repository_id),
        ("GITHUB_TRIGGERING_ACTOR", run.payload["sender"]["login"].as_str().unwrap()),
    ];
    for (name, value) in fixed.iter().chain(run.env) {
        command.arg("--env").arg(format!("{name}={value}"));
    }
    command
        .current_dir(at("work"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", at("home"))
        .env("TMPDIR", at("temp"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let stdout = collect(child.stdout.take().unwrap());
    let stderr = collect(child.stderr.take().unwrap());
    Some(Running { child, stdout, stderr, folder })
}

/// A repository of one empty commit, from which the runner takes the commit and the remote.
fn repository(folder: &Path, payload: &Value) {
    let remote = format!("https://github.com/{}.git", payload["repository"]["full_name"].as_str().unwrap());
    let calls: [&[&str]; 3] = [
        &["init", "--quiet", "--initial-branch", "main"],
        &["commit", "--quiet", "--allow-empty", "--message", "Start"],
        &["remote", "add", "origin", &remote],
    ];
    for arguments in calls {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git runs");
        assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

fn collect(mut pipe: impl AsyncRead + Unpin + Send + 'static) -> tokio::task::JoinHandle<String> {
    tokio::spawn(async move {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).await.unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Running {
    /// Waits for the end. To be cancelled safely: nothing is lost if the wait is given up and begun again.
    pub(super) async fn ended(&mut self) {
        tokio::time::timeout(NET, self.child.wait()).await.expect("the runner hangs").unwrap();
    }

    /// What came out.
    pub(super) async fn finish(mut self) -> Finished {
        let status = tokio::time::timeout(NET, self.child.wait()).await.expect("the runner hangs").unwrap();
        let stdout = self.stdout.await.unwrap();
        let stderr = self.stderr.await.unwrap();
        let events = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Finished { green: status.success(), events, log: format!("{stdout}\n{stderr}"), folder: self.folder }
    }
}

impl Finished {
    /// The result of each job that ran: none if every one was left out by its `if:`.
    pub(super) fn jobs(&self) -> Vec<&str> {
        self.events.iter().filter_map(|e| e["jobResult"].as_str()).collect()
    }

    /// The result of a step of the workflow; `None` if it did not run.
    pub(super) fn step(&self, id: &str) -> Option<&str> {
        let of_step = |e: &&Value| e["stage"] == "Main" && e["stepID"] == serde_json::json!([id]);
        self.events.iter().filter(of_step).find_map(|e| e["stepResult"].as_str()).filter(|r| *r != "skipped")
    }

    /// An output of a step, as the workflow sees it.
    pub(super) fn output(&self, step: &str, name: &str) -> Option<&str> {
        let wanted =
            |e: &&Value| e["command"] == "set-output" && e["name"] == name && e["stepID"] == serde_json::json!([step]);
        self.events.iter().rev().find(wanted).and_then(|e| e["arg"].as_str())
    }

    /// The names of the outputs that a step inside a composite action wrote.
    pub(super) fn inner_outputs(&self, step: &str, inner: &str) -> std::collections::BTreeSet<&str> {
        let id = serde_json::json!([step, inner]);
        let written = |e: &&Value| e["command"] == "set-output" && e["stepID"] == id;
        self.events.iter().filter(written).filter_map(|e| e["name"].as_str()).collect()
    }

    /// Everything that was written to the job summary.
    pub(super) fn summary(&self) -> String {
        let mut texts: Vec<&str> =
            self.events.iter().filter(|e| e["command"] == "summary").filter_map(|e| e["content"].as_str()).collect();
        texts.dedup();
        texts.join("\n")
    }

    /// Level, title and text of every annotation.
    pub(super) fn annotations(&self) -> Vec<(&str, &str, &str)> {
        let annotation = |e: &&Value| matches!(e["command"].as_str(), Some("notice" | "warning" | "error"));
        self.events
            .iter()
            .filter(annotation)
            .map(|e| {
                (
                    e["command"].as_str().unwrap_or_default(),
                    e["kvPairs"]["title"].as_str().unwrap_or_default(),
                    e["arg"].as_str().unwrap_or_default(),
                )
            })
            .collect()
    }

    /// Other commands that the runner took from files or from the log: none is ever wanted.
    pub(super) fn other_commands(&self) -> Vec<&str> {
        let known = ["set-output", "summary", "notice", "warning", "error"];
        self.events.iter().filter_map(|e| e["command"].as_str()).filter(|c| !known.contains(c)).collect()
    }

    /// Where the run took place: files that hostile text made would be here.
    pub(super) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }
}
