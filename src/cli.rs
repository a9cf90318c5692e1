//! The command line: definitions only. Each input of the action is a flag of the same name; a flag that is not given
//! is taken from the variable `RUN_GUARD_NAME`, which is how the action hands its inputs over.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Starts an AI agent on GitHub Actions once per piece of work.
#[derive(Debug, Parser)]
#[command(name = "run-guard", version, about, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The step before the agent: decide whether it may start, and claim the work
    Check(Box<CheckArgs>),
    /// The step after the agent: write how it ended into the claim
    Finish(FinishArgs),
    /// Before an effect: does this run still hold its claim? Ends with 0 for yes, 10 for no
    Verify(VerifyArgs),
    /// Run a scenario file against the embedded GitHub
    Simulate(SimulateArgs),
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// How GitHub is reached.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// The token; else `GITHUB_TOKEN`, `GH_TOKEN` or what `gh auth token` prints
    #[arg(long, value_name = "TOKEN", hide_default_value = true)]
    pub token: Option<String>,
    /// Tell each request to GitHub and how it was answered, on standard error
    #[arg(long, short)]
    pub verbose: bool,
}

/// Flags of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// What the agent would do: a slug such as `investigate`
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,
    /// Where claims are kept, if not where the policy says: `label`, `check-run`, `ref` or `auto`
    #[arg(long, value_name = "label|check-run|ref|auto")]
    pub ledger: Option<String>,
    /// A policy file to use instead of the repository's
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    /// When no decision can be made: `stop` fails the step, `proceed` starts the agent without a claim if GitHub could
    /// not be read or written, `skip` ends green without the agent
    #[arg(long, value_name = "stop|proceed|skip")]
    pub on_error: Option<String>,
    /// Let people without write permission start it; for agents that only comment and label
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub anyone: Option<String>,
    /// Start nothing; feed it from a repository variable
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub paused: Option<String>,
    /// How long the command may take, such as `120s`; less than 9 minutes
    #[arg(long, value_name = "DURATION")]
    pub deadline: Option<String>,
    /// If another run holds the work, look again for so long whether it has ended, such as `60s`; inside the deadline
    #[arg(long, value_name = "DURATION")]
    pub wait: Option<String>,
    /// Go on with the claim that an earlier job of this run made: its output `claim`. For an agent job of its own,
    /// since re-running failed jobs does not run the guard again
    #[arg(long, value_name = "CLAIM")]
    pub resume: Option<String>,
    /// Decide and write nothing; with the address of an issue, pull request or comment: decide for that, as it is now
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "true")]
    pub dry_run: Option<String>,
    /// The event's payload, if not `GITHUB_EVENT_PATH`
    #[arg(long, value_name = "FILE", requires = "event_name")]
    pub event: Option<PathBuf>,
    /// The event's name, such as `issues`
    #[arg(long, value_name = "NAME")]
    pub event_name: Option<String>,
    /// Decide against an embedded GitHub that holds what the payload says; needs no token
    #[arg(long)]
    pub sim: bool,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
    /// End with 0 for proceed, 10 skip, 11 defer, 12 review, 1 error
    #[arg(long)]
    pub exit_code: bool,
    /// How GitHub is reached
    #[command(flatten)]
    pub token: TokenArgs,
}

/// Flags of `finish`.
#[derive(Debug, Args)]
pub struct FinishArgs {
    /// The guard step's output `claim`; empty: the guard started nothing, and there is nothing to finish
    #[arg(long, value_name = "CLAIM")]
    pub claim: Option<String>,
    /// The agent's execution file; of several agent steps, one a line
    #[arg(long, value_name = "FILE")]
    pub execution_file: Option<String>,
    /// How the agent's step ended, `steps.ID.outcome`: success, failure, cancelled or skipped; of several agent steps,
    /// with commas between them
    #[arg(long, value_name = "OUTCOME")]
    pub step_outcome: Option<String>,
    /// The outcome to write, if it is known better than by reading: completed, no-change, failed-before-write,
    /// failed-after-write, needs-review, superseded or withdrawn
    #[arg(long, value_name = "OUTCOME")]
    pub outcome: Option<String>,
    /// How long the command may take, such as `120s`; less than 9 minutes
    #[arg(long, value_name = "DURATION")]
    pub deadline: Option<String>,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
    /// How GitHub is reached
    #[command(flatten)]
    pub token: TokenArgs,
}

/// Flags of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The guard step's output `claim`
    #[arg(long, value_name = "CLAIM")]
    pub claim: Option<String>,
    /// What is about to be done, which the task's `may` must allow: comment, label, review, branch, pull-request,
    /// dispatch, merge or deploy
    #[arg(long = "for", value_name = "ACTION")]
    pub effect: Option<String>,
    /// How long the command may take, such as `120s`; less than 9 minutes
    #[arg(long, value_name = "DURATION")]
    pub deadline: Option<String>,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
    /// How GitHub is reached
    #[command(flatten)]
    pub token: TokenArgs,
}

/// Flags of `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Scenario files; none: the story of issue 731, which is built in
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Serve the scenario's GitHub over loopback HTTP instead of running it
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub serve: Option<std::net::SocketAddr>,
    /// Run it under so many seeds, each of which interleaves the runs in another way and lets faults strike; tells the
    /// first under which a promise does not hold
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,
    /// The first seed; without `--seeds`, tells the story of this one
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
}
