//! The world as this process finds it: the one place that reads the environment, the clock and the randomness.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::core::claim::Nonce;
use crate::core::trigger::RunContext;
use crate::github::{BadToken, HostError, Hosts, Token};
use crate::output::escape::{log_line, visible};
use crate::ports::{Clock, RepoName};

/// What could not be taken from the environment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// A variable must hold a number.
    #[error("{variable} is no whole number from 1: `{value}`")]
    NotANumber {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// A variable must hold `owner/name`.
    #[error("{variable} is no repository of the form owner/name: `{value}`")]
    NotARepository {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// An address that cannot be used.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A token that cannot be one.
    #[error("{origin}: {why}")]
    BadToken {
        /// Where it came from.
        origin: &'static str,
        /// What is wrong with it.
        why: BadToken,
    },
    /// There is no token.
    #[error("there is no token for {host}: {gh}")]
    NoToken {
        /// The host.
        host: String,
        /// What the GitHub CLI said.
        gh: String,
        /// Whether this is a workflow run, which changes what can be done about it.
        in_actions: bool,
    },
    /// The system gives no randomness.
    #[error("the system gives no random numbers: {0}")]
    NoRandomness(String),
}

impl WorldError {
    /// What can be done about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotANumber { variable, .. } | Self::NotARepository { variable, .. } => {
                format!("run it in a workflow step, where the runner sets {variable}, or unset {variable}")
            }
            Self::Host(_) => "give an https:// address; http:// is for loopback hosts alone".to_owned(),
            Self::BadToken { .. } => "copy the token again, whole and on one line".to_owned(),
            Self::NoToken { in_actions: true, .. } => {
                "give the step `GITHUB_TOKEN: ${{ github.token }}` under `env:`".to_owned()
            }
            Self::NoToken { host, .. } => {
                format!("set GITHUB_TOKEN, or log in with `gh auth login --hostname {host}`")
            }
            Self::NoRandomness(_) => return None,
        })
    }
}

/// Everything of the environment that run-guard reads itself. An empty variable counts as unset. What the HTTP client
/// reads on its own is not here: proxies (`HTTPS_PROXY`, `NO_PROXY`, …) and certificates (`SSL_CERT_FILE`, `SSL_CERT_DIR`).
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// `GITHUB_EVENT_PATH`: the file with the event's payload.
    pub event_path: Option<PathBuf>,
    /// `GITHUB_EVENT_NAME`.
    pub event_name: Option<String>,
    /// `GITHUB_OUTPUT`: the file that takes the step's outputs.
    pub output: Option<PathBuf>,
    /// `GITHUB_STEP_SUMMARY`: the file that takes the step's summary.
    pub step_summary: Option<PathBuf>,
    /// `GITHUB_ACTOR`: who caused the run's first attempt.
    pub actor: Option<String>,
    /// Whether `GITHUB_ACTIONS` says that this is a workflow step.
    pub in_actions: bool,
    /// Whether `NO_COLOR` is set. <https://no-color.org>
    pub no_color: bool,
    /// `TERM`, of which `dumb` takes no colour.
    pub term: Option<String>,
    inputs: BTreeMap<String, String>,
    repository: Option<String>,
    run_id: Option<String>,
    run_attempt: Option<String>,
    triggering_actor: Option<String>,
    api_url: Option<String>,
    graphql_url: Option<String>,
    server_url: Option<String>,
    input_token: Option<Result<Token, BadToken>>,
    github_token: Option<Result<Token, BadToken>>,
    gh_token: Option<Result<Token, BadToken>>,
}

impl Env {
    /// This process's environment.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn of_process() -> Self {
        Self::from_pairs(std::env::vars_os())
    }

    /// The same from any list of variables.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut env = Self::default();
        for (name, value) in pairs {
            if value.is_empty() {
                continue;
            }
            // Only paths may be other than Unicode; elsewhere a replacement character makes a value that is refused.
            let text = || Some(value.to_string_lossy().into_owned());
            let token = || Some(Token::new(&value.to_string_lossy()));
            let path = || Some(PathBuf::from(&value));
            match name.to_str() {
                Some("GITHUB_EVENT_PATH") => env.event_path = path(),
                Some("GITHUB_EVENT_NAME") => env.event_name = text(),
                Some("GITHUB_OUTPUT") => env.output = path(),
                Some("GITHUB_STEP_SUMMARY") => env.step_summary = path(),
                Some("GITHUB_ACTOR") => env.actor = text(),
                Some("GITHUB_ACTIONS") => env.in_actions = value == OsStr::new("true"),
                Some("NO_COLOR") => env.no_color = true,
                Some("TERM") => env.term = text(),
                Some("GITHUB_REPOSITORY") => env.repository = text(),
                Some("GITHUB_RUN_ID") => env.run_id = text(),
                Some("GITHUB_RUN_ATTEMPT") => env.run_attempt = text(),
                Some("GITHUB_TRIGGERING_ACTOR") => env.triggering_actor = text(),
                Some("GITHUB_API_URL") => env.api_url = text(),
                Some("GITHUB_GRAPHQL_URL") => env.graphql_url = text(),
                Some("GITHUB_SERVER_URL") => env.server_url = text(),
                Some("GITHUB_TOKEN") => env.github_token = token(),
                Some("GH_TOKEN") => env.gh_token = token(),
                Some("RUN_GUARD_TOKEN") => env.input_token = token(),
                Some(name) => {
                    if let (Some(input), Some(value)) = (name.strip_prefix("RUN_GUARD_"), text()) {
                        env.inputs.insert(input.to_owned(), value);
                    }
                }
                None => {}
            }
        }
        env
    }

    /// An input of the action: the variable `RUN_GUARD_NAME` for the flag `--name`, which is how the action hands its
    /// inputs over.
    pub fn input(&self, flag: &str) -> Option<&str> {
        self.inputs.get(&flag.to_ascii_uppercase().replace('-', "_")).map(String::as_str)
    }

    /// `GITHUB_REPOSITORY`: the repository that the workflow runs in.
    pub fn repository(&self) -> Result<Option<RepoName>, WorldError> {
        let Some(value) = &self.repository else { return Ok(None) };
        match RepoName::parse(value) {
            Some(name) => Ok(Some(name)),
            None => Err(WorldError::NotARepository { variable: "GITHUB_REPOSITORY", value: shown(value) }),
        }
    }

    /// The workflow run that this is a step of, from `GITHUB_RUN_ID`, `GITHUB_RUN_ATTEMPT` and
    /// `GITHUB_TRIGGERING_ACTOR`; `None` outside of one. A missing attempt is the first.
    pub fn run_context(&self) -> Result<Option<RunContext>, WorldError> {
        let attempt = number("GITHUB_RUN_ATTEMPT", self.run_attempt.as_deref())?;
        let Some(run) = number("GITHUB_RUN_ID", self.run_id.as_deref())? else { return Ok(None) };
        Ok(Some(RunContext { run, attempt: attempt.unwrap_or(1), triggering_actor: self.triggering_actor.clone() }))
    }

    /// Which GitHub to ask, from `GITHUB_API_URL`, `GITHUB_GRAPHQL_URL` and `GITHUB_SERVER_URL`.
    pub fn hosts(&self) -> Result<Hosts, WorldError> {
        Ok(Hosts::new(self.api_url.as_deref(), self.graphql_url.as_deref(), self.server_url.as_deref())?)
    }

    /// The token: `given` on the command line, else the action's input, else `GITHUB_TOKEN`, else `GH_TOKEN`, else,
    /// outside of workflows, what `gh` answers, which is [`ask_gh`] but for tests.
    pub fn token(
        &self,
        given: Option<&str>,
        host: &str,
        gh: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Token, WorldError> {
        let bad = |origin| move |why| WorldError::BadToken { origin, why };
        if let Some(given) = given.filter(|text| !text.is_empty()) {
            return Token::new(given).map_err(bad("--token"));
        }
        if let Some(token) = &self.input_token {
            return token.clone().map_err(bad("RUN_GUARD_TOKEN"));
        }
        if let Some(token) = &self.github_token {
            return token.clone().map_err(bad("GITHUB_TOKEN"));
        }
        if let Some(token) = &self.gh_token {
            return token.clone().map_err(bad("GH_TOKEN"));
        }
        let none = |gh: String| WorldError::NoToken { host: host.to_owned(), gh, in_actions: self.in_actions };
        if self.in_actions {
            return Err(none("GITHUB_TOKEN and GH_TOKEN are unset".to_owned()));
        }
        let answer = gh(host).map_err(none)?;
        Token::new(&answer).map_err(bad("gh auth token"))
    }
}

/// Writes a line to standard error at once, so that a person who waits sees what is waited for.
pub fn tell(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{}", log_line(&visible(line)));
}

/// Asks the GitHub CLI for the token that it keeps for a host. The error is one sentence.
pub fn ask_gh(host: &str) -> Result<String, String> {
    let asked = Command::new("gh").args(["auth", "token", "--hostname", host]).stdin(Stdio::null()).output();
    let answer = asked.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            "GITHUB_TOKEN and GH_TOKEN are unset and the GitHub CLI (gh) is not installed".to_owned()
        }
        _ => format!("GITHUB_TOKEN and GH_TOKEN are unset and the GitHub CLI (gh) cannot be started ({e})"),
    })?;
    if !answer.status.success() {
        return Err("GITHUB_TOKEN and GH_TOKEN are unset and the GitHub CLI (gh) has none".to_owned());
    }
    String::from_utf8(answer.stdout).map_err(|_| "the GitHub CLI (gh) gave no text".to_owned())
}

/// A whole number from 1, digits alone.
fn number<T: std::str::FromStr + PartialOrd + From<u8>>(
    variable: &'static str,
    value: Option<&str>,
) -> Result<Option<T>, WorldError> {
    let Some(value) = value else { return Ok(None) };
    let digits = value.chars().all(|c| c.is_ascii_digit());
    match value.parse::<T>() {
        Ok(number) if digits && number >= T::from(1) => Ok(Some(number)),
        _ => Err(WorldError::NotANumber { variable, value: shown(value) }),
    }
}

/// A value as an error shows it: bounded and on one line.
fn shown(value: &str) -> String {
    value.chars().map(|c| if c.is_control() { ' ' } else { c }).take(100).collect()
}

/// A nonce from the system's randomness.
pub fn nonce() -> Result<Nonce, WorldError> {
    getrandom::u64().map(Nonce::from_bits).map_err(|e| WorldError::NoRandomness(e.to_string()))
}

/// The time by this machine's clock.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
pub fn now() -> DateTime<Utc> {
    Utc::now()
}

/// The machine's clock. Waits need a tokio runtime with time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        now()
    }

    async fn sleep_until(&self, at: DateTime<Utc>) {
        // A time that is past is no wait.
        let wait = (at - now()).to_std().unwrap_or(Duration::ZERO);
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        Env::from_pairs(pairs.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))))
    }

    /// For tests in which `gh` must not be asked.
    fn no_gh(host: &str) -> Result<String, String> {
        panic!("gh was asked for {host}")
    }

    #[test]
    fn empty_counts_as_unset() {
        let env = env(&[
            ("GITHUB_EVENT_PATH", ""),
            ("GITHUB_RUN_ID", ""),
            ("GITHUB_RUN_ATTEMPT", ""),
            ("GITHUB_REPOSITORY", ""),
            ("GITHUB_API_URL", ""),
            ("NO_COLOR", ""),
            ("GITHUB_TOKEN", ""),
            ("GITHUB_ACTIONS", ""),
        ]);
        assert_eq!(env.event_path, None);
        assert_eq!(env.run_context(), Ok(None));
        assert_eq!(env.repository(), Ok(None));
        assert_eq!(env.hosts().unwrap().name(), "github.com");
        assert!(!env.no_color && !env.in_actions);
        assert_eq!(env.token(Some(""), "github.com", |_| Ok("gho_x\n".to_owned())).unwrap().expose(), "gho_x");
    }

    #[test]
    fn the_run_is_read() {
        let env = env(&[
            ("GITHUB_RUN_ID", "8812345678"),
            ("GITHUB_RUN_ATTEMPT", "2"),
            ("GITHUB_TRIGGERING_ACTOR", "mona"),
            ("GITHUB_REPOSITORY", "acme/app"),
        ]);
        let want = RunContext { run: 8_812_345_678, attempt: 2, triggering_actor: Some("mona".to_owned()) };
        assert_eq!(env.run_context(), Ok(Some(want)));
        assert_eq!(env.repository().unwrap().unwrap().to_string(), "acme/app");
    }

    #[test]
    fn a_first_attempt_needs_no_number_and_no_actor() {
        let want = RunContext { run: 1, attempt: 1, triggering_actor: None };
        assert_eq!(env(&[("GITHUB_RUN_ID", "1")]).run_context(), Ok(Some(want)));
        assert_eq!(env(&[("GITHUB_RUN_ATTEMPT", "1")]).run_context(), Ok(None));
    }

    #[test]
    fn malformed_values_name_the_variable() {
        for value in ["0", "-1", "+1", "1.5", "one", " 1", "99999999999999999999999"] {
            let error = env(&[("GITHUB_RUN_ID", value)]).run_context().unwrap_err();
            assert_eq!(error.to_string(), format!("GITHUB_RUN_ID is no whole number from 1: `{value}`"));
            assert!(error.hint().unwrap().contains("GITHUB_RUN_ID"));
        }
        let error = env(&[("GITHUB_RUN_ID", "1"), ("GITHUB_RUN_ATTEMPT", "4294967296")]).run_context().unwrap_err();
        assert_eq!(error.to_string(), "GITHUB_RUN_ATTEMPT is no whole number from 1: `4294967296`");
        let error = env(&[("GITHUB_REPOSITORY", "acme/app/../x\n")]).repository().unwrap_err();
        assert_eq!(error.to_string(), "GITHUB_REPOSITORY is no repository of the form owner/name: `acme/app/../x `");
        let error = env(&[("GITHUB_API_URL", "http://ghe.corp/api/v3")]).hosts().unwrap_err();
        assert_eq!(
            error.to_string(),
            "GITHUB_API_URL must start with https://, since the token would travel in clear: `http://ghe.corp/api/v3`"
        );
    }

    #[test]
    fn tokens_are_asked_for_in_order() {
        let both = env(&[("GH_TOKEN", "second"), ("GITHUB_TOKEN", "first")]);
        assert_eq!(both.token(Some("given"), "github.com", no_gh).unwrap().expose(), "given");
        assert_eq!(both.token(None, "github.com", no_gh).unwrap().expose(), "first");
        assert_eq!(env(&[("GH_TOKEN", "second")]).token(None, "github.com", no_gh).unwrap().expose(), "second");
        let host = env(&[]).token(None, "ghe.corp", |host| Ok(host.to_owned())).unwrap();
        assert_eq!(host.expose(), "ghe.corp");
    }

    #[test]
    fn no_token_is_one_clear_error() {
        let error = env(&[]).token(None, "github.com", |_| Err("nothing there".to_owned())).unwrap_err();
        assert_eq!(error.to_string(), "there is no token for github.com: nothing there");
        assert_eq!(error.hint().unwrap(), "set GITHUB_TOKEN, or log in with `gh auth login --hostname github.com`");
        let error = env(&[("GITHUB_ACTIONS", "true")]).token(None, "github.com", no_gh).unwrap_err();
        assert_eq!(error.hint().unwrap(), "give the step `GITHUB_TOKEN: ${{ github.token }}` under `env:`");
    }

    #[test]
    fn no_error_and_no_debug_shows_a_token() {
        let env = env(&[("GITHUB_TOKEN", "ghp_secret"), ("GH_TOKEN", "ghp_\nsecret")]);
        assert!(!format!("{env:?}").contains("secret"));
        let broken = Env { github_token: None, ..env };
        let error = broken.token(None, "github.com", no_gh).unwrap_err();
        assert_eq!(
            error.to_string(),
            "GH_TOKEN: the token holds characters that no token has, such as a line break inside"
        );
        assert!(!format!("{error:?}").contains("secret"));
    }

    #[test]
    fn nonces_differ() {
        let nonces: std::collections::BTreeSet<String> = (0..100).map(|_| nonce().unwrap().to_string()).collect();
        assert_eq!(nonces.len(), 100);
    }
}
