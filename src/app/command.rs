//! From the command line to a command and back: flags and environment become inputs, reports become what is printed and
//! the exit code.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;

use chrono::TimeDelta;
use serde_json::Value;

use super::check::{CheckInput, ConfigText, check};
use super::dry_run::{self, Target};
use super::finish::{FinishInput, finish};
use super::report::{CheckReport, FinishReport, VerifyReport};
use super::verify::{VerifyInput, verify};
use super::world::{self, Env, SystemClock};
use super::{World, payload, try_payload};
use crate::cli::{CheckArgs, FinishArgs, Format, TokenArgs, VerifyArgs};
use crate::config::values::duration;
use crate::core::claim::{Handle, LedgerChoice, Outcome};
use crate::core::decision::{OnError, Reason, Stop, Verdict};
use crate::core::ended::StepOutcome;
use crate::core::execution::{self, Execution};
use crate::core::key::Task;
use crate::core::policy::Effect;
use crate::core::sweep::OLDEST_READ;
use crate::core::trigger::RunContext;
use crate::github::Client;
use crate::output::escape::{at_most, command_data, log_line, visible};
use crate::output::{actions, json, terminal};
use crate::ports::RepoName;

/// How long a command may take where nothing else is said.
const DEADLINE: TimeDelta = TimeDelta::seconds(120);

/// The largest execution file that is read, in bytes. A long session's is some megabytes.
const MAX_EXECUTION: u64 = 64 * 1024 * 1024;

/// What a command prints, and how the process ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// For standard output.
    pub out: String,
    /// For standard error.
    pub err: String,
    /// The exit code.
    pub code: u8,
}

/// A call that cannot be carried out: a flag that is missing or wrong. It ends with 2, as any usage error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    sentence: String,
    hint: String,
}

impl Usage {
    fn new(sentence: impl AsRef<str>, hint: impl Into<String>) -> Self {
        Self { sentence: visible(sentence.as_ref()), hint: hint.into() }
    }

    /// In the shape of every error; in a workflow step with an annotation, so that the place is found.
    pub fn printed(&self, in_actions: bool) -> Printed {
        let annotation = format!("::error title=run-guard usage::{}\n", command_data(&self.sentence));
        let out = if in_actions { annotation } else { String::new() };
        let err = format!("{}\n\nhint: {}\n", log_line(&format!("error: {}", self.sentence)), self.hint);
        Printed { out, err, code: 2 }
    }
}

/// A flag, else the action's input of the same name. Empty is unset, as an input that is not given is.
fn value<'a>(flag: Option<&'a str>, env: &'a Env, name: &str) -> Option<&'a str> {
    flag.or_else(|| env.input(name)).map(str::trim).filter(|v| !v.is_empty())
}

fn switch(flag: Option<&str>, env: &Env, name: &str) -> Result<bool, Usage> {
    match value(flag, env, name) {
        None | Some("false" | "0") => Ok(false),
        Some("true" | "1") => Ok(true),
        Some(other) => Err(Usage::new(format!("`--{name}` is `{}`", short(other)), "write `true` or `false`")),
    }
}

/// A value from the command line, short enough for a message.
fn short(text: &str) -> String {
    at_most(text, 80)
}

/// Runs `check`.
///
/// # Errors
///
/// [`Usage`] for a flag that is missing or wrong; everything else is a verdict.
pub async fn run_check(args: &CheckArgs, env: &Env, color: bool) -> Result<Printed, Usage> {
    let plan = CheckPlan::read(args, env)?;
    let mut files = StepFiles::open(env)?;
    let report = match plan.report(args, env).await {
        Ok(report) => report,
        Err(SetUp::Usage(usage)) => return Err(usage),
        Err(SetUp::Stop(stop, hint)) => {
            // What is wrong with the step itself is no outage, and nothing was read that could let anybody in.
            let verdict = match plan.on_error.verdict(stop.reason, stop.verdict) {
                Verdict::Proceed => stop.verdict,
                verdict => verdict,
            };
            let stop = Stop { verdict, ..*stop };
            let mut report = CheckReport::stopped(plan.task.clone(), stop);
            report.hint = hint;
            report.dry_run = plan.dry_run;
            report
        }
    };
    let mut printed = Printed::default();
    // Spans are told by the clock that the times are of: this machine's may be off.
    let at = report.decided_at.unwrap_or_else(world::now);
    files.write_check(&report, at).map_err(|e| Usage::new(e, "check that the runner's files can be written"))?;
    match args.format {
        Format::Text => printed.out = terminal::check(&report, terminal::Style { color, now: at }),
        Format::Json => printed.out = json::text(&json::check(&report, at)),
    }
    if env.in_actions {
        let _ = writeln!(printed.out, "{}", actions::annotation(&report));
    }
    let code = report.verdict.exit_code();
    printed.code = if args.exit_code || code == 1 { code } else { 0 };
    Ok(printed)
}

/// Why no report came about in the ordinary way.
enum SetUp {
    Usage(Usage),
    Stop(Box<Stop>, Option<String>),
}

impl From<Usage> for SetUp {
    fn from(usage: Usage) -> Self {
        Self::Usage(usage)
    }
}

impl SetUp {
    fn world(error: &world::WorldError) -> Self {
        Self::Stop(Box::new(Stop::new(Reason::PolicyUnreadable, error.to_string())), error.hint())
    }
}

/// What the flags and the environment ask of `check`.
struct CheckPlan {
    task: Task,
    ledger: Option<LedgerChoice>,
    config: Option<ConfigText>,
    on_error: OnError,
    anyone: bool,
    paused: bool,
    dry_run: bool,
    target: Option<Target>,
    deadline: TimeDelta,
    wait: TimeDelta,
    resume: Option<Handle>,
}

impl CheckPlan {
    fn read(args: &CheckArgs, env: &Env) -> Result<Self, Usage> {
        let resume = match value(args.resume.as_deref(), env, "resume") {
            None => None,
            Some(text) => Some(text.parse::<Handle>().map_err(|bad: crate::core::claim::BadHandle| {
                Usage::new(bad.to_string(), "pass the guard job's output: `resume: ${{ needs.guard.outputs.claim }}`")
            })?),
        };
        let of_claim = resume.as_ref().map(|handle| handle.key.task().as_str());
        let task = value(args.task.as_deref(), env, "task").or(of_claim).ok_or_else(|| {
            Usage::new("no task is given", "say what the agent would do: `--task investigate`, or the input `task`")
        })?;
        let task: Task = task.parse().map_err(|bad: crate::core::key::BadTask| {
            Usage::new(
                format!("`{}` is not a task name", short(&bad.0)),
                "use 1 to 30 lower-case letters, digits and single dashes, starting with a letter",
            )
        })?;
        let ledger = match value(args.ledger.as_deref(), env, "ledger") {
            None => None,
            Some(word) => Some(LedgerChoice::parse(word).ok_or_else(|| {
                Usage::new(format!("`{}` is no ledger", short(word)), "use `label`, `check-run`, `ref` or `auto`")
            })?),
        };
        if let Some(of_claim) = of_claim.filter(|of_claim| *of_claim != task.as_str()) {
            let sentence = format!("the claim to resume is of the task `{of_claim}`, not `{task}`");
            return Err(Usage::new(sentence, "leave `--task` away, or pass the claim of this task"));
        }
        let wait = match value(args.wait.as_deref(), env, "wait") {
            None => TimeDelta::zero(),
            Some(text) => duration(text).map_err(|why| {
                Usage::new(format!("`--wait` is `{}`: {why}", short(text)), "write one such as `60s`")
            })?,
        };
        let on_error = match value(args.on_error.as_deref(), env, "on-error") {
            None => OnError::Default,
            Some(word) => OnError::parse(word).ok_or_else(|| {
                Usage::new(format!("`--on-error` is `{}`", short(word)), "write `stop`, `proceed` or `skip`")
            })?,
        };
        let deadline = deadline(args.deadline.as_deref(), env)?;
        let dry_run = value(args.dry_run.as_deref(), env, "dry-run");
        let target = match dry_run {
            None | Some("true" | "false") => None,
            Some(address) => Some(Target::parse(address).map_err(|bad| {
                Usage::new(bad.to_string(), "give one such as https://github.com/OWNER/REPO/issues/731")
            })?),
        };
        let config = match value(args.config.as_deref(), env, "config") {
            None => None,
            Some(path) => Some(ConfigText { origin: path.to_owned(), text: config_file(path)? }),
        };
        Ok(Self {
            task,
            ledger,
            config,
            on_error,
            anyone: switch(args.anyone.as_deref(), env, "anyone")?,
            paused: switch(args.paused.as_deref(), env, "paused")?,
            dry_run: !matches!(dry_run, None | Some("false")),
            target,
            deadline,
            wait,
            resume,
        })
    }

    fn input(&self, event_name: String, payload: Value, host: String, run: RunContext) -> CheckInput {
        CheckInput {
            event_name,
            payload,
            host,
            run,
            task: self.task.clone(),
            ledger: self.ledger,
            config: self.config.clone(),
            anyone: self.anyone,
            paused: self.paused,
            dry_run: self.dry_run,
            on_error: self.on_error,
            deadline: self.deadline,
            wait: self.wait,
            resume: self.resume.clone(),
        }
    }

    async fn report(&self, args: &CheckArgs, env: &Env) -> Result<CheckReport, SetUp> {
        if let Some(target) = &self.target {
            if args.sim {
                return Err(Usage::new(
                    "`--sim` judges a payload and asks no GitHub, so it cannot look an address up",
                    "give `--event FILE --event-name NAME`, or leave out `--sim`",
                )
                .into());
            }
            return self.of_address(target, args, env).await;
        }
        let name = args.event_name.as_deref().or(env.event_name.as_deref());
        let path = args.event.as_deref().or(env.event_path.as_deref());
        let (Some(name), Some(path)) = (name, path) else {
            return Err(Usage::new(
                "there is no event to judge: GITHUB_EVENT_PATH and GITHUB_EVENT_NAME are unset",
                "run this in a workflow step, or give `--event FILE --event-name NAME`, or `--dry-run URL`",
            )
            .into());
        };
        let payload = payload::read(path).map_err(|stop| SetUp::Stop(Box::new(stop), None))?;
        let run = env.run_context().map_err(|e| SetUp::world(&e))?;
        if args.sim {
            let run = run.unwrap_or(RunContext { run: 1, attempt: 1, triggering_actor: None });
            let input = self.input(name.to_owned(), payload, "github.com".to_owned(), run);
            return Ok(try_payload::check_against_payload(&input, world::now()).await);
        }
        // Outside of a run there is no owner that could be asked whether it is still going, so nothing is claimed.
        let run = match run {
            Some(run) => run,
            None if self.dry_run => RunContext { run: 0, attempt: 1, triggering_actor: None },
            None => {
                return Err(Usage::new(
                    "GITHUB_RUN_ID is unset, so there is no workflow run that could hold a claim",
                    "run this in a workflow step, or add `--dry-run` or `--sim`",
                )
                .into());
            }
        };
        let hosts = env.hosts().map_err(|e| SetUp::world(&e))?;
        let input = self.input(name.to_owned(), payload, hosts.name(), run);
        let github = client(&args.token, env)?;
        let nonce = world::nonce().map_err(|e| SetUp::world(&e))?;
        Ok(check(&World { github: &github, clock: &SystemClock, nonce }, &input).await)
    }

    async fn of_address(&self, target: &Target, args: &CheckArgs, env: &Env) -> Result<CheckReport, SetUp> {
        let hosts = env.hosts().map_err(|e| SetUp::world(&e))?;
        if target.host != hosts.name() {
            return Err(Usage::new(
                format!("the address is on {}, but this is set up for {}", target.host, hosts.name()),
                "set GITHUB_SERVER_URL and GITHUB_API_URL to the host of the address",
            )
            .into());
        }
        let github = client(&args.token, env)?;
        let read = dry_run::payload(&github, target).await;
        let (name, payload) = read.map_err(|stop| SetUp::Stop(Box::new(stop), None))?;
        let run = RunContext { run: 0, attempt: 1, triggering_actor: None };
        let input = self.input(name.to_owned(), payload, hosts.name(), run);
        let nonce = world::nonce().map_err(|e| SetUp::world(&e))?;
        Ok(check(&World { github: &github, clock: &SystemClock, nonce }, &input).await)
    }
}

fn deadline(flag: Option<&str>, env: &Env) -> Result<TimeDelta, Usage> {
    match value(flag, env, "deadline") {
        None => Ok(DEADLINE),
        Some(text) => duration(text)
            .and_then(|span| match span {
                _ if span >= OLDEST_READ => {
                    Err("it must be shorter than 9 min, the age up to which a read counts".to_owned())
                }
                span => Ok(span),
            })
            .map_err(|why| Usage::new(format!("`--deadline` is `{}`: {why}", short(text)), "write one such as `120s`")),
    }
}

fn client(args: &TokenArgs, env: &Env) -> Result<Client, SetUp> {
    let hosts = env.hosts().map_err(|e| SetUp::world(&e))?;
    let token = env.token(args.token.as_deref(), &hosts.name(), world::ask_gh).map_err(|e| SetUp::world(&e))?;
    let client = Client::new(hosts, token, Client::TIMEOUT, world::now);
    let trace: Option<fn(&str)> = if args.verbose { Some(world::tell) } else { None };
    client.map(|client| client.with_trace(trace)).map_err(|error| {
        let stop = Stop::new(Reason::PolicyUnreadable, error.to_string());
        SetUp::Stop(Box::new(stop), Some("Check the proxy and certificate settings of this machine.".to_owned()))
    })
}

fn config_file(path: &str) -> Result<String, Usage> {
    let max = u64::try_from(crate::config::located::MAX_BYTES).unwrap_or(u64::MAX);
    read_text(Path::new(path), max)
        .map_err(|why| Usage::new(format!("the policy file {} cannot be read: {why}", short(path)), "check `--config`"))
}

/// A text file of at most so many bytes.
fn read_text(path: &Path, max: u64) -> Result<String, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len > max) {
        return Err(format!("it is larger than {} KiB", max / 1024));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// The runner's files that a step writes to, opened before anything is decided: a verdict that could not be handed on
/// must not leave a claim behind.
#[derive(Default)]
struct StepFiles {
    output: Option<File>,
    summary: Option<File>,
}

impl StepFiles {
    fn open(env: &Env) -> Result<Self, Usage> {
        let open = |path: Option<&Path>, variable: &str| match path {
            None => Ok(None),
            Some(path) => OpenOptions::new().append(true).create(true).open(path).map(Some).map_err(|e| {
                Usage::new(
                    format!("the file that {variable} names cannot be written: {e}"),
                    "check that the runner's files can be written",
                )
            }),
        };
        Ok(Self {
            output: open(env.output.as_deref(), "GITHUB_OUTPUT")?,
            summary: open(env.step_summary.as_deref(), "GITHUB_STEP_SUMMARY")?,
        })
    }

    fn write(&mut self, outputs: &[(&'static str, String)], summary: &str) -> Result<(), String> {
        if let Some(file) = &mut self.output {
            actions::append_outputs(file, outputs, || world::nonce().map(|n| n.to_string()).unwrap_or_default())
                .map_err(|e| format!("GITHUB_OUTPUT cannot be written: {e}"))?;
        }
        if let Some(file) = &mut self.summary {
            file.write_all(summary.as_bytes()).map_err(|e| format!("GITHUB_STEP_SUMMARY cannot be written: {e}"))?;
        }
        Ok(())
    }

    fn write_check(&mut self, report: &CheckReport, now: chrono::DateTime<chrono::Utc>) -> Result<(), String> {
        self.write(&actions::outputs(report, now), &actions::summary(report, now))
    }

    fn write_finish(&mut self, report: &FinishReport) -> Result<(), String> {
        self.write(&actions::finish_outputs(report), &actions::finish_summary(report))
    }
}

/// Runs `finish`.
///
/// # Errors
///
/// [`Usage`] for a flag that is missing or wrong. What goes wrong on the way is a warning: the agent has ended, and its
/// job does not fail for what can be settled later.
pub async fn run_finish(args: &FinishArgs, env: &Env, color: bool) -> Result<Printed, Usage> {
    let Some(claim) = value(args.claim.as_deref(), env, "claim") else {
        let out = "nothing to finish: no claim was given, so the guard started nothing\n".to_owned();
        return Ok(Printed { out, ..Printed::default() });
    };
    let claim: Handle = claim.parse().map_err(|bad: crate::core::claim::BadHandle| {
        Usage::new(bad.to_string(), "pass the guard step's output: `claim: ${{ steps.guard.outputs.claim }}`")
    })?;
    let words = value(args.step_outcome.as_deref(), env, "step-outcome").unwrap_or_default();
    // A step that was never reached has no outcome.
    let words = words.split([',', '\n']).map(str::trim).filter(|word| !word.is_empty());
    let steps = words.map(|word| {
        StepOutcome::parse(word).ok_or_else(|| {
            Usage::new(
                format!("`--step-outcome` is `{}`", short(word)),
                "pass `${{ steps.ID.outcome }}`: success, failure, cancelled or skipped",
            )
        })
    });
    let steps = steps.collect::<Result<Vec<_>, _>>()?;
    let outcome = match value(args.outcome.as_deref(), env, "outcome") {
        None => None,
        Some(word) => Some(Outcome::parse(word).ok_or_else(|| {
            let words: Vec<_> = Outcome::ALL.iter().map(|o| o.as_str()).collect();
            Usage::new(format!("`--outcome` is `{}`", short(word)), format!("write one of {}", words.join(", ")))
        })?),
    };
    let paths = value(args.execution_file.as_deref(), env, "execution-file").unwrap_or_default();
    let mut paths: Vec<&str> = paths.lines().map(str::trim).filter(|path| !path.is_empty()).collect();
    // Each step of claude-code-action writes the same file.
    paths.dedup();
    let executions = paths.into_iter().map(|path| match read_text(Path::new(path), MAX_EXECUTION) {
        Ok(text) => execution::read(&text),
        Err(why) => Execution::Unreadable(why),
    });
    let executions = executions.collect();
    let mut files = StepFiles::open(env)?;
    let report = match finish_report(args, env, claim.clone(), steps, outcome, executions).await {
        Ok(report) => report,
        Err(SetUp::Usage(usage)) => return Err(usage),
        Err(SetUp::Stop(refusal, hint)) => FinishReport {
            claim: Some(claim),
            outcome: None,
            message: "the claim was not settled".to_owned(),
            cost_cents: None,
            turns: None,
            warnings: std::iter::once(refusal.message).chain(hint).collect(),
        },
    };
    files.write_finish(&report).map_err(|e| Usage::new(e, "check that the runner's files can be written"))?;
    let style = terminal::Style { color, now: world::now() };
    let mut printed = Printed::default();
    match args.format {
        Format::Text => printed.out = terminal::finish(&report, style),
        Format::Json => printed.out = json::text(&json::finish(&report)),
    }
    if env.in_actions {
        let _ = writeln!(printed.out, "{}", actions::finish_annotation(&report));
    }
    Ok(printed)
}

async fn finish_report(
    args: &FinishArgs,
    env: &Env,
    claim: Handle,
    steps: Vec<StepOutcome>,
    outcome: Option<Outcome>,
    executions: Vec<Execution>,
) -> Result<FinishReport, SetUp> {
    let (repo, run) = own_run(env)?;
    let github = client(&args.token, env)?;
    let nonce = claim.nonce.clone();
    let deadline = deadline(args.deadline.as_deref(), env)?;
    let input = FinishInput { claim, repo, run, steps, executions, outcome, deadline };
    Ok(finish(&World { github: &github, clock: &SystemClock, nonce }, &input).await)
}

/// Runs `verify`.
///
/// # Errors
///
/// [`Usage`] for a flag that is missing or wrong. What cannot be read is a no.
pub async fn run_verify(args: &VerifyArgs, env: &Env, color: bool) -> Result<Printed, Usage> {
    let claim = value(args.claim.as_deref(), env, "claim").unwrap_or_default();
    let claim: Handle = claim.parse().map_err(|bad: crate::core::claim::BadHandle| {
        Usage::new(bad.to_string(), "pass the guard step's output: `claim: ${{ steps.guard.outputs.claim }}`")
    })?;
    let effect = match value(args.effect.as_deref(), env, "for") {
        None => None,
        Some(word) => Some(Effect::ALL.into_iter().find(|effect| effect.as_str() == word).ok_or_else(|| {
            let words: Vec<_> = Effect::ALL.iter().map(|effect| effect.as_str()).collect();
            Usage::new(format!("`--for` is `{}`", short(word)), format!("write one of {}", words.join(", ")))
        })?),
    };
    let mut files = StepFiles::open(env)?;
    let report = match verify_report(args, env, claim.clone(), effect).await {
        Ok(report) => report,
        Err(SetUp::Usage(usage)) => return Err(usage),
        Err(SetUp::Stop(refusal, _)) => {
            VerifyReport { claim: Some(claim), holds: false, message: refusal.message, head_sha: None }
        }
    };
    let written = files.write(&actions::verify_outputs(&report), "");
    written.map_err(|e| Usage::new(e, "check that the runner's files can be written"))?;
    let mut printed = Printed { code: if report.holds { 0 } else { 10 }, ..Printed::default() };
    match args.format {
        Format::Text => printed.out = terminal::verify(&report, terminal::Style { color, now: world::now() }),
        Format::Json => printed.out = json::text(&json::verify(&report)),
    }
    if env.in_actions {
        let _ = writeln!(printed.out, "{}", actions::verify_annotation(&report));
    }
    Ok(printed)
}

async fn verify_report(
    args: &VerifyArgs,
    env: &Env,
    claim: Handle,
    effect: Option<Effect>,
) -> Result<VerifyReport, SetUp> {
    let (repo, run) = own_run(env)?;
    let github = client(&args.token, env)?;
    let nonce = claim.nonce.clone();
    let deadline = deadline(args.deadline.as_deref(), env)?;
    let input = VerifyInput { claim, repo, run, effect, deadline };
    Ok(verify(&World { github: &github, clock: &SystemClock, nonce }, &input).await)
}

/// The repository and the run that this is a step of.
fn own_run(env: &Env) -> Result<(RepoName, RunContext), SetUp> {
    let repo = env.repository().map_err(|e| SetUp::world(&e))?;
    let repo = repo.ok_or_else(|| Usage::new("GITHUB_REPOSITORY is unset", "run this in a workflow step"))?;
    let run = env.run_context().map_err(|e| SetUp::world(&e))?;
    let run =
        run.ok_or_else(|| Usage::new("GITHUB_RUN_ID is unset", "run this in the workflow run that made the claim"))?;
    Ok((repo, run))
}

/// `simulate`.
///
/// # Errors
///
/// The address to serve on is none of this machine alone, or there is more than one scenario to serve.
#[cfg_attr(not(feature = "serve"), expect(clippy::unused_async, reason = "only the server waits for something"))]
pub async fn run_simulate(args: &crate::cli::SimulateArgs, color: bool) -> Result<Printed, Usage> {
    #[cfg(feature = "serve")]
    if let Some(address) = args.serve {
        return serve(address, &args.files).await;
    }
    Ok(match (args.seeds, args.seed) {
        (None, None) => super::simulate::command(&args.files, args.format, color),
        (None, Some(seed)) => super::simulate::one_seed(&args.files, seed, args.format, color),
        (Some(seeds), first) => super::simulate::seeds(&args.files, first.unwrap_or(0), seeds, color),
    })
}

#[cfg(feature = "serve")]
async fn serve(address: std::net::SocketAddr, files: &[std::path::PathBuf]) -> Result<Printed, Usage> {
    if !address.ip().is_loopback() {
        let sentence = format!("`--serve {address}` would show the embedded GitHub to others");
        return Err(Usage::new(sentence, "serve on 127.0.0.1, such as `--serve 127.0.0.1:4010`"));
    }
    if files.len() > 1 {
        return Err(Usage::new("`--serve` serves one scenario", "name one file, or none for the one that is built in"));
    }
    let scenario = super::simulate::scenarios(files).pop().unwrap_or_else(|| Err(String::new()));
    let err = match scenario {
        Err(error) => error,
        Ok(scenario) => {
            match super::simulate::serve::until_interrupted(&scenario, address, &mut std::io::stdout()).await {
                Ok(()) => String::new(),
                Err(error) => format!("error: {address} cannot be served: {error}\n"),
            }
        }
    };
    Ok(Printed { out: String::new(), err, code: 1 })
}
