//! `action/install.sh`: which binary it takes, when it builds, and what it says when it cannot.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::command_files::commands;
use super::{copy_folder, root, stage_actions};

/// A checkout of the action, a workspace and a tool cache, all under a path with a space.
struct Runner {
    folder: tempfile::TempDir,
}

impl Runner {
    fn new() -> Self {
        let runner = Self { folder: tempfile::Builder::new().prefix("run guard ").tempdir().unwrap() };
        stage_actions(&runner.path("action"));
        for name in ["work space", "tools", "temp", "bin"] {
            std::fs::create_dir(runner.path(name)).unwrap();
        }
        for program in [
            "bash", "cat", "cksum", "cp", "dirname", "env", "find", "head", "mkdir", "mv", "sed", "sort", "tr", "xargs",
        ] {
            symlink(on_path(program), runner.path("bin").join(program)).unwrap();
        }
        runner
    }

    /// With the sources beside the script.
    fn with_sources(self) -> Self {
        for file in ["Cargo.toml", "Cargo.lock"] {
            std::fs::copy(root().join(file), self.path("action").join(file)).unwrap();
        }
        copy_folder(&root().join("src"), &self.path("action/src"));
        self
    }

    /// With a `cargo` that writes down how it was called and puts a file where a build would.
    fn with_cargo(self, exit: i32) -> Self {
        let log = self.path("cargo.log");
        let script = format!(
            "#!{bash}\nprintf '%s\\n' \"$PWD\" \"$@\" >>'{log}'\nprintf 'noise on standard output\\n'\n\
             while [ \"$1\" != --target-dir ]; do shift; done\n\
             mkdir -p \"$2/release\" && printf '#!/bin/sh\\n' >\"$2/release/run-guard\"\nchmod=$({chmod} +x \"$2/release/run-guard\")\nexit {exit}\n",
            bash = on_path("bash").display(),
            chmod = on_path("chmod").display(),
            log = log.display(),
        );
        write_program(&self.path("bin/cargo"), &script);
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn install(&self, binary_path: Option<&Path>) -> Output {
        let mut command = Command::new(on_path("bash"));
        command
            .arg(self.path("action/action/install.sh"))
            .current_dir(self.path("work space"))
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("GITHUB_WORKSPACE", self.path("work space"))
            .env("RUNNER_TOOL_CACHE", self.path("tools"))
            .env("RUNNER_TEMP", self.path("temp"))
            .env("RUN_GUARD_BINARY_PATH", binary_path.unwrap_or(Path::new("")));
        command.output().unwrap()
    }

    /// The calls of cargo, each as its folder and arguments.
    fn cargo_calls(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.path("cargo.log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

fn on_path(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").expect("PATH is set");
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("{program} is not on PATH"))
}

fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// The path that was printed, where all went well.
fn printed(output: &Output) -> &Path {
    assert!(output.status.success(), "{}", stderr(output));
    Path::new(stdout(output).strip_suffix('\n').unwrap())
}

/// The one error annotation, where it did not.
fn error(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(output), "");
    let [command] = commands(stderr(output))[..] else { panic!("not one command: {}", stderr(output)) };
    command.strip_prefix("::error title=run-guard is not installed::").unwrap()
}

#[test]
fn a_given_binary_is_taken_as_it_is() {
    let runner = Runner::new();
    write_program(&runner.path("work space/my guard"), "#!/bin/sh\n");

    let absolute = runner.path("work space/my guard");
    assert_eq!(printed(&runner.install(Some(&absolute))), absolute);
    assert_eq!(printed(&runner.install(Some(Path::new("my guard")))), absolute, "relative to the workspace");
}

#[test]
fn a_given_binary_that_cannot_be_run_is_an_error_and_not_a_reason_to_build() {
    let runner = Runner::new().with_sources().with_cargo(0);
    std::fs::write(runner.path("work space/plain"), "").unwrap();

    let said = runner.install(Some(Path::new("plain")));
    assert!(error(&said).contains("hint: artifacts lose their mode"), "{}", error(&said));

    let said = runner.install(Some(Path::new("/no\n::warning::such 100%\r")));
    assert_eq!(
        error(&said),
        "the input binary-path names no file: /no%0A::warning::such 100%25%0D%0A%0A\
         hint: give the path of a run-guard binary, or leave the input out to have it built"
    );
    assert_eq!(runner.cargo_calls(), Vec::<String>::new());
}

#[test]
fn the_binary_is_built_once_per_version_and_sources() {
    let runner = Runner::new().with_sources().with_cargo(0);
    // The workspace is what a pull request brought: no build may be steered from there.
    std::fs::create_dir(runner.path("work space/.cargo")).unwrap();
    std::fs::write(runner.path("work space/.cargo/config.toml"), "[build]\nrustc-wrapper = \"evil\"\n").unwrap();

    let first = runner.install(None);
    let kept = printed(&first).to_owned();
    assert!(kept.starts_with(runner.path("tools/run-guard")), "{}", kept.display());
    let version = kept.parent().unwrap().file_name().unwrap().to_str().unwrap();
    assert!(version.starts_with(concat!(env!("CARGO_PKG_VERSION"), "-")), "{version}");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "#!/bin/sh\n");

    let calls = runner.cargo_calls();
    let home = std::fs::canonicalize(runner.path("action")).unwrap();
    assert_eq!(Path::new(&calls[0]), home, "cargo runs in the action's own checkout");
    assert_eq!(
        calls[1..],
        [
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--no-default-features",
            "--bin",
            "run-guard",
            "--target-dir",
            runner.path("temp/run-guard-build").to_str().unwrap()
        ]
    );

    assert_eq!(printed(&runner.install(None)), kept);
    assert_eq!(runner.cargo_calls(), calls, "the second step finds it");

    std::fs::write(runner.path("action/src/main.rs"), "fn main() { todo!() }\n").unwrap();
    let other = runner.install(None);
    assert_ne!(printed(&other), kept, "other sources of the same version are another binary");
    assert_eq!(runner.cargo_calls().len(), calls.len() * 2);
}

#[test]
fn without_cargo_the_way_out_is_named() {
    let runner = Runner::new().with_sources();
    assert_eq!(
        error(&runner.install(None)),
        "there is no cargo on this runner to build run-guard with%0A%0A\
         hint: install Rust in a step before this one, or give the input binary-path"
    );
}

#[test]
fn a_failed_build_leaves_nothing_behind() {
    let runner = Runner::new().with_sources().with_cargo(101);
    let said = runner.install(None);
    assert!(error(&said).starts_with("cargo could not build run-guard "), "{}", error(&said));
    assert!(!runner.path("tools/run-guard").exists());
}

#[test]
fn a_checkout_without_sources_is_said_to_be_one() {
    let runner = Runner::new().with_cargo(0);
    assert!(error(&runner.install(None)).contains("Cargo.toml"));
}
