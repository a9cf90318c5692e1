//! Payloads that try to break out: nothing in them may become a workflow command, an output, a variable, a path or a program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::command_files::{commands, entries};
use super::manifests::declared_outputs;

/// Stands in every hostile text, so that it is seen where it comes out.
pub(super) const CANARY: &str = "HoStIlE";

/// The texts.
pub(crate) fn texts() -> Vec<(&'static str, String)> {
    let texts = [
        ("a newline and a command", "\n::error::HoStIlE\n::set-output name=proceed::true\n"),
        ("a command at the start", "::error title=HoStIlE::injected"),
        ("the old form of a command", "x ##[error]HoStIlE"),
        ("escapes", "HoStIlE%0A::warning::a%0D%250A::warning::b"),
        ("carriage returns", "HoStIlE\r::error::a\r\n::error::b"),
        ("line separators", "HoStIlE\u{2028}::error::a\u{2029}::error::b\u{85}::error::c\u{b}::error::d"),
        ("an output", "HoStIlE\nproceed=true\nevil=1\n"),
        ("delimiters", "HoStIlE\nEOF\nevil=1\nghadelimiter_00000000-0000-0000-0000-000000000000\nevil=2\n"),
        ("a delimiter of its own", "HoStIlE\nevil<<EOF\n1\nEOF\n"),
        ("programs", "HoStIlE $(touch pwned) `touch pwned` \"; touch pwned; ' ; touch pwned #"),
        ("an expression", "HoStIlE ${{ github.token }} ${{ secrets.GITHUB_TOKEN }}"),
        ("markup", "HoStIlE</details><script>alert(1)</script><img src=x onerror=y>[a](javascript:b) | c | `d` \n# e"),
        ("emoji and text that runs the other way", "HoStIlE 🤖👩‍👩‍👧‍👦 \u{202e}drawkcab\u{202c} \u{200b}"),
        ("terminal sequences", "HoStIlE \u{1b}[31mred\u{1b}]0;title\u{7} \u{0}"),
        ("a number of its own", "HoStIlE #1 @admin https://evil.example/"),
    ];
    let mut texts: Vec<_> = texts.into_iter().map(|(name, text)| (name, text.to_owned())).collect();
    texts.push(("60,000 characters", format!("{CANARY}\n{}", "::error::long\n".repeat(60_000 / 14))));
    texts.push(("60,000 emoji", CANARY.to_owned() + &"🤖".repeat(60_000)));
    for (name, text) in &texts {
        assert!(text.contains(CANARY), "{name}");
    }
    texts
}

/// An issue that a maintainer opened.
pub(super) fn issue_opened() -> Value {
    json!({
        "action": "opened",
        "issue": {
            "number": 731,
            "title": "Crash on start",
            "body": "It crashes.",
            "state": "open",
            "html_url": "https://github.com/acme/app/issues/731",
            "user": { "login": "alice", "id": 1, "type": "User" },
            "labels": [{ "name": "needs-triage" }],
        },
        "repository": { "id": 42, "name": "app", "full_name": "acme/app", "owner": { "login": "acme" } },
        "sender": { "login": "alice", "id": 1, "type": "User" },
    })
}

fn with(mut payload: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        payload[name] = value.clone();
    }
    payload
}

/// The kinds of payload: the event and a payload that passes or fails at different gates.
fn payloads() -> Vec<(&'static str, Value)> {
    let comment = json!({
        "id": 9001,
        "body": "@claude please look",
        "html_url": "https://github.com/acme/app/issues/731#issuecomment-9001",
        "created_at": "2026-11-30T12:00:00Z",
        "user": { "login": "alice", "id": 1, "type": "User" },
    });
    vec![
        ("issues", issue_opened()),
        ("issues", with(issue_opened(), &json!({ "action": "labeled", "label": { "name": "needs-triage" } }))),
        (
            "issues",
            with(
                issue_opened(),
                &json!({ "action": "edited", "changes": { "title": { "from": "a" }, "body": { "from": "b" } } }),
            ),
        ),
        ("issue_comment", with(issue_opened(), &json!({ "action": "created", "comment": comment }))),
        (
            "issue_comment",
            with(
                issue_opened(),
                &json!({ "action": "edited", "comment": comment, "changes": { "body": { "from": "no request" } } }),
            ),
        ),
    ]
}

/// Where free text stands in a payload.
const PLACES: &[&str] = &[
    "/action",
    "/issue/title",
    "/issue/body",
    "/issue/html_url",
    "/issue/user/login",
    "/issue/user/type",
    "/issue/labels/0/name",
    "/issue/state",
    "/label/name",
    "/comment/body",
    "/comment/html_url",
    "/comment/created_at",
    "/comment/user/login",
    "/changes/title/from",
    "/changes/body/from",
    "/sender/login",
    "/sender/type",
    "/repository/full_name",
    "/repository/name",
];

/// A step to be: the binary with the files that a runner gives it.
pub(super) struct Step {
    folder: tempfile::TempDir,
    command: Command,
    name: &'static str,
}

/// What the step left.
pub(super) struct Left {
    pub(super) exit: i32,
    pub(super) outputs: BTreeMap<String, String>,
    pub(super) summary: String,
    pub(super) log: String,
}

impl Step {
    /// `check` of an event, against a GitHub that holds what the payload says.
    pub(super) fn check(event: &str, payload: &Value) -> Self {
        let mut step = Self::new("check");
        std::fs::write(step.file("event.json"), payload.to_string()).unwrap();
        step.command
            .args(["check", "--sim"])
            .env("GITHUB_EVENT_NAME", event)
            .env("GITHUB_EVENT_PATH", step.folder.path().join("event.json"))
            .env("RUN_GUARD_TASK", "triage");
        step
    }

    /// `finish` of a claim, with an API's address that is refused: nothing is sent anywhere.
    pub(super) fn finish(claim: &str) -> Self {
        let mut step = Self::new("finish");
        step.command.arg("finish").env("RUN_GUARD_CLAIM", claim).env("GITHUB_API_URL", "http://ghe.example/api/v3");
        step
    }

    /// `verify` of a claim, in the same way.
    pub(super) fn verify(claim: &str) -> Self {
        let mut step = Self::new("verify");
        step.command.arg("verify").env("RUN_GUARD_CLAIM", claim).env("GITHUB_API_URL", "http://ghe.example/api/v3");
        step
    }

    fn new(name: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_run-guard"));
        command
            .current_dir(folder.path())
            .env_clear()
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_REPOSITORY", "acme/app")
            .env("GITHUB_RUN_ID", "8812345")
            .env("GITHUB_RUN_ATTEMPT", "1")
            .env("GITHUB_SERVER_URL", "https://github.com")
            .env("GITHUB_API_URL", "http://127.0.0.1:1")
            .env("GITHUB_GRAPHQL_URL", "http://127.0.0.1:1/graphql")
            .env("RUN_GUARD_TOKEN", "ghs_CanaryTokenThatIsNeverPrinted");
        for (variable, file) in [
            ("GITHUB_OUTPUT", "output"),
            ("GITHUB_ENV", "env"),
            ("GITHUB_PATH", "path"),
            ("GITHUB_STATE", "state"),
            ("GITHUB_STEP_SUMMARY", "summary"),
        ] {
            let path = folder.path().join(file);
            std::fs::write(&path, "").unwrap();
            command.env(variable, path);
        }
        Self { folder, command, name }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it and checks what holds for every step, whatever it was given.
    pub(super) fn run(mut self) -> Left {
        let output = self.command.output().unwrap();
        let text = |name: &str| std::fs::read_to_string(self.file(name)).unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let log = format!("{stdout}{}", String::from_utf8(output.stderr).unwrap());
        let outputs = entries(&text("output")).unwrap_or_else(|why| panic!("outputs: {why}\n{log}"));

        for file in ["env", "path", "state"] {
            assert_eq!(text(file), "", "{file}\n{log}");
        }
        let declared = declared_outputs(self.name);
        let undeclared: BTreeSet<_> = outputs.keys().filter(|name| !declared.contains(*name)).collect();
        assert!(undeclared.is_empty(), "{undeclared:?}\n{log}");
        for command in commands(&log) {
            let level = ["::notice", "::warning", "::error"].iter().find(|level| command.starts_with(**level));
            let ours = level.is_some_and(|level| command[level.len()..].starts_with(" title=run-guard "));
            assert!(ours, "{command:?} in\n{log}");
        }
        for (what, text) in [("log", &log), ("summary", &text("summary"))] {
            assert!(!text.contains("ghs_Canary"), "the token is in the {what}");
            let control = text.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(control, None, "a control character is in the {what}: {text:?}");
        }
        assert!(!self.file("pwned").exists());
        Left { exit: output.status.code().unwrap(), outputs, summary: text("summary"), log }
    }
}

/// Where text stands that is never repeated: only logins, labels and numbers are.
const NEVER_REPEATED: &[&str] = &[
    "/issue/title",
    "/issue/body",
    "/issue/html_url",
    "/issue/state",
    "/comment/body",
    "/comment/html_url",
    "/comment/created_at",
    "/changes/title/from",
    "/changes/body/from",
];

/// What a step leaves that was given a payload.
fn check(event: &str, payload: &Value, what: &str) -> Left {
    let left = Step::check(event, payload).run();
    assert!(left.exit == 0 || left.exit == 1, "{what}: {}", left.log);
    assert_eq!(left.exit == 1, left.outputs["verdict"] == "error", "{what}: {}", left.log);
    assert_eq!(left.outputs.keys().cloned().collect::<BTreeSet<_>>(), declared_outputs("check"), "{what}");
    assert_eq!(commands(&left.log).len(), 1, "{what}: one annotation\n{}", left.log);
    let verdict = &left.outputs["verdict"];
    assert_eq!(left.outputs["proceed"], (verdict == "proceed").to_string(), "{what}");
    for (name, value) in &left.outputs {
        assert!(!value.contains('\n'), "{what}: {name} is one line: {value:?}");
    }
    left
}

#[test]
fn hostile_text_in_any_one_place_of_a_payload_stays_text() {
    let payloads = payloads();
    let tried: usize = std::thread::scope(|scope| {
        let kinds: Vec<_> =
            payloads.iter().map(|(event, payload)| scope.spawn(|| in_any_one_place(event, payload))).collect();
        kinds.into_iter().map(|kind| kind.join().unwrap()).sum()
    });
    assert!(tried > 1000, "{tried}");
}

/// Tries every text in every place of a payload, and says how many that were.
fn in_any_one_place(event: &str, payload: &Value) -> usize {
    let texts = texts();
    let places = PLACES.iter().filter(|place| payload.pointer(place).is_some());
    let mut tried = 0;
    for place in places {
        for (name, text) in &texts {
            let mut hostile = payload.clone();
            *hostile.pointer_mut(place).unwrap() = json!(text);
            let what = format!("{event} {}, {name} in {place}", payload["action"]);
            let left = check(event, &hostile, &what);
            if NEVER_REPEATED.contains(place) {
                let everything = format!("{}{}{:?}", left.log, left.summary, left.outputs);
                assert!(!everything.contains(CANARY), "{what}: {everything}");
            }
            tried += 1;
        }
    }
    tried
}

#[test]
fn hostile_text_everywhere_at_once_stays_text() {
    for (event, payload) in payloads() {
        for (name, text) in texts() {
            let mut hostile = payload.clone();
            // Where these do not fit, the payload is refused before the rest of it is looked at.
            for place in PLACES.iter().filter(|p| !matches!(**p, "/action" | "/repository/full_name" | "/sender/type"))
            {
                if let Some(value) = hostile.pointer_mut(place) {
                    *value = json!(text);
                }
            }
            let what = format!("{event} {}, {name} everywhere", payload["action"]);
            let left = check(event, &hostile, &what);
            assert_ne!(left.outputs["reason"], "bad-payload", "{what}");
        }
    }
}

#[test]
fn a_hostile_text_does_not_change_the_verdict() {
    for place in ["/issue/title", "/issue/body", "/issue/labels/0/name"] {
        for (name, text) in texts() {
            let mut payload = issue_opened();
            *payload.pointer_mut(place).unwrap() = json!(text);
            let left = check("issues", &payload, name);
            assert_eq!(left.outputs["verdict"], "proceed", "{name} in {place}: {}", left.log);
        }
    }
}

#[test]
fn a_hostile_input_stays_text() {
    for (name, text) in texts() {
        // The kernel takes no longer variable, and none with a NUL.
        if text.len() > 100_000 || text.contains('\0') {
            continue;
        }
        for input in ["TASK", "LEDGER", "CONFIG", "ON_ERROR", "ANYONE", "PAUSED", "DEADLINE", "DRY_RUN"] {
            let left = Step::check("issues", &issue_opened()).env(&format!("RUN_GUARD_{input}"), &text).run();
            assert_ne!(left.exit, 0, "{name} as {input}: {}", left.log);
            assert_ne!(left.outputs.get("proceed").map(String::as_str), Some("true"), "{name} as {input}");
        }
        let left = Step::finish(&text).run();
        assert_eq!(left.outputs.get("outcome").map_or("", String::as_str), "", "{name} as CLAIM: {}", left.log);
        let claim = "label:github.com/42/issue/731/triage#1.00000000";
        for input in ["EXECUTION_FILE", "STEP_OUTCOME"] {
            let left = Step::finish(claim).env(&format!("RUN_GUARD_{input}"), &text).run();
            assert_eq!(left.outputs.get("outcome").map_or("", String::as_str), "", "{name} as {input}: {}", left.log);
        }
    }
}
