//! `simulate --serve`: a scenario's GitHub behind loopback HTTP, for whoever wants to try run-guard against it by hand.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::act::act;
use super::{AGENT, FIRST_RUN};
use crate::app::world;
use crate::core::key::Task;
use crate::output::escape::visible;
use crate::sim::http::{Options, bind, serve};
use crate::sim::scenario::{Act, GUARD_TOKEN, Scenario};
use crate::sim::webhook::Event;
use crate::sim::{Access, Grants, Scope, State, TokenSpec};

/// How often the embedded GitHub's clock is set.
const TICK: Duration = Duration::from_millis(100);

/// A token that can only read.
const READER_TOKEN: &str = "reader";

/// The token of the agent's own App.
const AGENT_TOKEN: &str = "agent";

/// A run that can be tried: its id, the event that starts it and the task of the workflow.
struct Trial {
    run: u64,
    event: Event,
    task: Task,
}

/// Serves a scenario's GitHub as it is after the first instant of the timeline, and says how to use it. It ends only
/// with an error.
///
/// # Errors
///
/// The address cannot be bound, or the payloads cannot be written.
pub async fn until_interrupted(scenario: &Scenario, address: SocketAddr, out: &mut impl io::Write) -> io::Result<()> {
    let listener = bind(address).await?;
    let base = format!("http://{}", listener.local_addr()?);
    let (state, trials) = stage(scenario, &base);
    let start = state.now;
    let server = serve(state, listener, Options::default())?;
    let folder = folder()?;
    out.write_all(directions(scenario, &base, &folder, &trials)?.as_bytes())?;
    out.flush()?;
    let began = world::now();
    let mut tick = tokio::time::interval(TICK);
    loop {
        tick.tick().await;
        server.state().now = start + (world::now() - began);
    }
}

/// The GitHub after the steps of the first instant, with a token of each kind, and the runs that those steps start.
fn stage(scenario: &Scenario, base: &str) -> (State, Vec<Trial>) {
    let (mut state, mut comments) = scenario.github();
    let repo = &scenario.repository;
    base.clone_into(&mut state.web);
    let read = Grants::of(&Scope::ALL.map(|scope| (scope, Access::Read)));
    state.add_token(READER_TOKEN, TokenSpec::built_in(repo, read));
    state.add_token(AGENT_TOKEN, TokenSpec::app(AGENT, Grants::all()));
    for (login, _) in &scenario.people {
        state.add_token(login, TokenSpec::personal(login, Grants::all()));
    }
    let first = scenario.timeline.first().map_or(scenario.start, |step| step.at);
    state.now = first;
    let mut trials = Vec::new();
    for step in scenario.timeline.iter().take_while(|step| step.at == first) {
        if matches!(step.act, Act::Rerun(_) | Act::Cancel(_) | Act::Again(_)) {
            continue;
        }
        let known = |name: &str| comments.get(name).copied().unwrap_or_default();
        let (_, mut events) = act(&mut state, repo, &step.by, &step.act, step.event.as_deref(), known);
        for event in &mut events {
            event.change(step.event.as_deref(), step.payload.as_ref());
        }
        if let (Some(name), Some(id)) = (&step.id, events.first().and_then(Event::comment_id)) {
            comments.insert(name.clone(), id);
        }
        for event in events {
            for workflow in scenario.workflows.iter().filter(|w| w.wants(&event.name, &event.action)) {
                let run = FIRST_RUN + u64::try_from(trials.len()).unwrap_or_default();
                state.add_run(repo, run, &event.name, &step.by);
                trials.push(Trial { run, event: event.clone(), task: workflow.task.clone() });
            }
        }
    }
    (state, trials)
}

/// A new folder for the payloads.
fn folder() -> io::Result<PathBuf> {
    let nonce = world::nonce().map_err(io::Error::other)?;
    let folder = std::env::temp_dir().join(format!("run-guard-{nonce}"));
    std::fs::create_dir(&folder)?;
    Ok(folder)
}

/// Writes the payloads, and says how to ask this GitHub.
fn directions(scenario: &Scenario, base: &str, folder: &Path, trials: &[Trial]) -> io::Result<String> {
    let repo = &scenario.repository;
    let mut text = format!(
        "{}\n{repo} is served on {base} until Ctrl-C, as it is after the first step\n\n  \
         export GITHUB_API_URL={base}\n  export GITHUB_TOKEN={GUARD_TOKEN}\n  export GITHUB_REPOSITORY={repo}\n",
        visible(&scenario.about)
    );
    if !trials.is_empty() {
        text.push_str("\nThe runs that the first step starts, to be tried in any order or at once:\n\n");
    }
    for trial in trials {
        let file = folder.join(format!("{}-{}-{}.json", trial.run, trial.event.name, trial.event.action));
        std::fs::write(&file, format!("{:#}\n", trial.event.payload))?;
        let _ = writeln!(
            text,
            "  GITHUB_RUN_ID={} run-guard check --task {} \\\n    --event-name {} --event {}",
            trial.run,
            trial.task,
            trial.event.name,
            file.display()
        );
    }
    if let Some(trial) = trials.first() {
        let _ = writeln!(
            text,
            "\nA run that proceeds ends with the claim that `--format json` shows:\n\n  \
             GITHUB_RUN_ID={} run-guard finish --step-outcome success --claim 'CLAIM'",
            trial.run
        );
    }
    let granted: Vec<String> = scenario
        .permissions
        .iter()
        .map(|(scope, access)| {
            format!("{}: {}", scope.as_str(), if *access == Access::Write { "write" } else { "read" })
        })
        .collect();
    let people: Vec<String> = scenario.people.iter().map(|(login, _)| visible(login)).collect();
    let _ = writeln!(
        text,
        "\nTokens:\n  {GUARD_TOKEN:<8}  a workflow job's, with {}\n  {READER_TOKEN:<8}  a workflow job's that may only \
         read\n  {AGENT_TOKEN:<8}  that of {AGENT}",
        granted.join(", ")
    );
    for login in people {
        let _ = writeln!(text, "  {login:<8}  a personal token");
    }
    Ok(text)
}
