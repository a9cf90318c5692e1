//! What the `action.yml` files declare, against what the binary takes and gives.

use std::collections::BTreeSet;
use std::process::Command;

use serde_yaml::Value;

use super::{hostile, read, root};

/// The action file of a command.
fn manifest(command: &str) -> Value {
    let path = if command == "check" { "action.yml".to_owned() } else { format!("{command}/action.yml") };
    serde_yaml::from_str(&read(path)).unwrap()
}

fn names(manifest: &Value, part: &str) -> BTreeSet<String> {
    manifest[part].as_mapping().unwrap().keys().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// The outputs that an action declares.
pub(super) fn declared_outputs(command: &str) -> BTreeSet<String> {
    names(&manifest(command), "outputs")
}

fn flags(command: &str) -> BTreeSet<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_run-guard")).args([command, "--help"]).env_clear().output().unwrap();
    assert!(help.status.success());
    let help = String::from_utf8(help.stdout).unwrap();
    let words = help.lines().filter_map(|line| line.trim_start().split_once("--")).filter(|(before, _)| {
        // The flag itself comes first in its line, at most behind its short form.
        before.is_empty() || before.ends_with(", ")
    });
    words
        .map(|(_, rest)| rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap().to_owned())
        .collect()
}

#[test]
fn every_input_is_a_flag_of_the_same_name() {
    for command in ["check", "finish", "verify"] {
        let flags = flags(command);
        assert!(flags.contains("token"), "{command} --help: {flags:?}");
        let mut inputs = names(&manifest(command), "inputs");
        // Says where the binary is, so the binary itself has no use for it.
        assert!(inputs.remove("binary-path"));
        let unknown: Vec<_> = inputs.difference(&flags).collect();
        assert!(unknown.is_empty(), "{command} has no flags {unknown:?}");
    }
}

#[test]
fn every_input_reaches_the_binary_under_the_variable_that_its_flag_reads() {
    for command in ["check", "finish", "verify"] {
        let manifest = manifest(command);
        let steps = manifest["runs"]["steps"].as_sequence().unwrap();
        let step = steps.iter().find(|step| step["id"] == command).unwrap();
        let handed: BTreeSet<(String, String)> = step["env"]
            .as_mapping()
            .unwrap()
            .iter()
            .map(|(name, value)| (name.as_str().unwrap().to_owned(), value.as_str().unwrap().to_owned()))
            .collect();
        let expected = names(&manifest, "inputs")
            .into_iter()
            .map(|input| {
                let variable = format!("RUN_GUARD_{}", input.to_uppercase().replace('-', "_"));
                (variable, format!("${{{{ inputs.{input} }}}}"))
            })
            .collect();
        assert_eq!(handed, expected, "{command}");
    }
}

#[test]
fn every_output_is_mapped_from_the_step_that_runs_the_binary() {
    for command in ["check", "finish", "verify"] {
        for (name, output) in manifest(command)["outputs"].as_mapping().unwrap() {
            let name = name.as_str().unwrap();
            assert_eq!(
                output["value"].as_str().unwrap(),
                format!("${{{{ steps.{command}.outputs.{name} }}}}"),
                "{command}: {name}"
            );
        }
    }
}

#[test]
fn the_binary_writes_exactly_the_declared_outputs() {
    let step = hostile::Step::check("issues", &hostile::issue_opened()).run();
    assert_eq!(step.outputs["proceed"], "true", "{}", step.log);
    assert_eq!(step.outputs.into_keys().collect::<BTreeSet<_>>(), declared_outputs("check"));
    let step = hostile::Step::finish("label:github.com/42/issue/731/triage#1.00000000").run();
    assert_eq!(step.exit, 0, "a claim that cannot be settled does not fail the job: {}", step.log);
    assert_eq!(step.outputs.into_keys().collect::<BTreeSet<_>>(), declared_outputs("finish"));
    let step = hostile::Step::verify("label:github.com/42/issue/731/triage#1.00000000").run();
    assert_eq!((step.exit, step.outputs["holds"].as_str()), (10, "false"), "what cannot be read is a no: {}", step.log);
    assert_eq!(step.outputs.into_keys().collect::<BTreeSet<_>>(), declared_outputs("verify"));
}

/// Every action file and workflow of the project.
fn all_yaml() -> Vec<(String, Value)> {
    let mut paths = vec!["action.yml".to_owned(), "finish/action.yml".to_owned(), "verify/action.yml".to_owned()];
    for folder in [".github/workflows", "examples/workflows"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            paths.push(format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap()));
        }
    }
    paths.into_iter().map(|path| (path.clone(), serde_yaml::from_str(&read(path)).unwrap())).collect()
}

/// The steps of an action or workflow.
fn steps(yaml: &Value) -> Vec<&Value> {
    match yaml.get("jobs") {
        Some(jobs) => {
            jobs.as_mapping().unwrap().values().flat_map(|job| job["steps"].as_sequence().unwrap().iter()).collect()
        }
        None => yaml["runs"]["steps"].as_sequence().unwrap().iter().collect(),
    }
}

#[test]
fn no_expression_stands_in_a_script() {
    let mut scripts = 0;
    for (path, yaml) in all_yaml() {
        for script in steps(&yaml).into_iter().filter_map(|step| step["run"].as_str()) {
            assert!(!script.contains("${{"), "{path}: {script}");
            scripts += 1;
        }
    }
    assert!(scripts >= 4, "{scripts} scripts were read");
}

#[test]
fn every_workflow_pins_what_it_uses_and_grants_nothing_by_default() {
    let mut workflows = 0;
    for (path, yaml) in all_yaml() {
        for uses in steps(&yaml).into_iter().filter_map(|step| step["uses"].as_str()) {
            let reference = uses.split_once('@').map(|(_, reference)| reference).unwrap_or_default();
            let pinned = reference.len() == 40 && reference.chars().all(|c| c.is_ascii_hexdigit());
            assert!(pinned || uses.starts_with("./"), "{path}: {uses}");
        }
        if let Some(jobs) = yaml.get("jobs") {
            workflows += 1;
            assert_eq!(yaml["permissions"], Value::Mapping(serde_yaml::Mapping::new()), "{path}");
            for (job, content) in jobs.as_mapping().unwrap() {
                assert!(content["permissions"].is_mapping(), "{path}: {job:?} says what it needs");
                assert!(content["timeout-minutes"].is_u64(), "{path}: {job:?} has an end");
            }
        }
    }
    assert!(workflows >= 3, "{workflows} workflows were read");
}

#[test]
fn every_example_guards_its_agent_and_always_finishes() {
    for name in ["issue-triage", "mention"] {
        let yaml: Value = serde_yaml::from_str(&read(format!("examples/workflows/{name}.yml"))).unwrap();
        // A group is taken before the job's `if:`: with it an event that starts nothing could stop the agent.
        assert!(yaml.get("concurrency").is_none(), "{name}");
        for job in yaml["jobs"].as_mapping().unwrap().values() {
            assert!(job.get("concurrency").is_none(), "{name}");
            assert!(job["if"].is_string(), "{name}: what the payload decides starts no runner");
        }
        let steps = steps(&yaml);
        let [guard, .., finish] = steps[..] else { panic!("{name}") };
        assert!(guard["uses"].as_str().unwrap().starts_with("run-guard/run-guard@"), "{name}");
        assert!(finish["uses"].as_str().unwrap().starts_with("run-guard/run-guard/finish@"), "{name}");
        assert_eq!(finish["if"], "always()", "{name}");
        assert_eq!(finish["with"]["claim"], "${{ steps.guard.outputs.claim }}", "{name}");
        for step in &steps[1..steps.len() - 1] {
            assert_eq!(step["if"], "steps.guard.outputs.proceed == 'true'", "{name}");
        }
    }
}
