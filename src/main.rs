//! The binary: builds the world, runs one command, and maps its end to an exit code.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use run_guard::app::command::{self, Printed};
use run_guard::app::world::Env;
use run_guard::cli::{Cli, Command};

fn main() -> ExitCode {
    // The default hook prints what a panic was given, which could be anything; the place is what a report needs.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "error: run-guard has a bug at {place}\n\nhint: please report it");
    }));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let env = Env::of_process();
    let color = std::io::stdout().is_terminal() && !env.no_color && env.term.as_deref() != Some("dumb");
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let err = format!("error: the runtime cannot be started: {error}\n");
            return end(&Printed { out: String::new(), err, code: 1 });
        }
    };
    let printed = runtime.block_on(async {
        match &cli.command {
            Command::Check(args) => command::run_check(args, &env, color).await,
            Command::Finish(args) => command::run_finish(args, &env, color).await,
            Command::Verify(args) => command::run_verify(args, &env, color).await,
            Command::Simulate(args) => command::run_simulate(args, color).await,
        }
    });
    end(&printed.unwrap_or_else(|usage| usage.printed(env.in_actions)))
}

/// A reader that has gone away is no error of ours.
fn end(printed: &Printed) -> ExitCode {
    let _ = std::io::stdout().write_all(printed.out.as_bytes());
    let _ = std::io::stderr().write_all(printed.err.as_bytes());
    ExitCode::from(printed.code)
}
