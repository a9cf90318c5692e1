//! The map of the crate as a test: what each part may use, and what stands in one place only.

mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use scan::{Source, scan};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    parts: BTreeMap<String, Part>,
    banned: Vec<Ban>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    uses: BTreeSet<String>,
    crates: BTreeSet<String>,
}

/// Paths that stand only in some places, or anywhere but in some.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ban {
    paths: Vec<String>,
    only: Option<Vec<String>>,
    outside: Option<Vec<String>>,
    why: String,
}

impl Ban {
    fn forbids(&self, file: &str) -> bool {
        let within = |places: &Vec<String>| {
            places
                .iter()
                .any(|place| file.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
        };
        match (&self.only, &self.outside) {
            (Some(only), None) => !within(only),
            (None, Some(outside)) => within(outside),
            _ => panic!("a ban says either `only` or `outside`: {:?}", self.paths),
        }
    }
}

fn rules() -> Rules {
    serde_yaml::from_str(include_str!("architecture/rules.yml")).unwrap()
}

/// The crates that the package depends on, as the source names them.
fn dependencies() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let section = text.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let names = section.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once(" = "));
    names.map(|(name, _)| name.replace('-', "_")).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<(String, String)> {
    fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    walk(&root().join("src"), &mut files);
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/"), text)
        })
        .collect()
}

/// What one file does against the rules.
fn violations(rules: &Rules, dependencies: &BTreeSet<String>, file: &str, text: &str) -> Vec<String> {
    let source = scan(file, text);
    let part = source.module.first().cloned().unwrap_or_default();
    let Some(allowed) = rules.parts.get(&part) else {
        return vec![format!("{file}: the part `{part}` is not in the table")];
    };
    let mut found = BTreeSet::new();
    for path in &source.paths {
        if let Some(other) = source.part_of(path, &rules.parts.keys().cloned().collect())
            && other != part
            && !allowed.uses.contains(&other)
        {
            found.insert(format!("{file}: {part} does not use {other}"));
        }
        if let Some(first) = path.first()
            && (dependencies.contains(first) || first == "run_guard")
            && !allowed.crates.contains(first)
        {
            found.insert(format!("{file}: {part} does not use the crate {first}"));
        }
    }
    for ban in rules.banned.iter().filter(|ban| ban.forbids(file)) {
        for path in &ban.paths {
            if source.holds(path) {
                found.insert(format!("{file}: no `{path}` here: {}", ban.why));
            }
        }
    }
    found.into_iter().collect()
}

#[test]
fn every_part_uses_only_what_the_table_lets_it() {
    let (rules, dependencies, sources) = (rules(), dependencies(), sources());
    assert!(sources.len() > 30, "{}", sources.len());
    let found: Vec<String> =
        sources.iter().flat_map(|(file, text)| violations(&rules, &dependencies, file, text)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A rule that names nothing that exists protects nothing.
#[test]
fn the_table_names_what_exists() {
    let (rules, dependencies, sources) = (rules(), dependencies(), sources());
    let parts: BTreeSet<String> =
        sources.iter().filter_map(|(file, text)| scan(file, text).module.first().cloned()).collect();
    assert_eq!(parts, rules.parts.keys().cloned().collect());
    for (name, part) in &rules.parts {
        for other in &part.uses {
            assert!(parts.contains(other), "{name} uses {other}, which is no part");
        }
        for krate in &part.crates {
            assert!(
                krate == "run_guard" || dependencies.contains(krate),
                "{name} uses {krate}, which is no dependency"
            );
        }
    }
    for place in rules.banned.iter().flat_map(|b| b.only.iter().chain(&b.outside).flatten()) {
        assert!(root().join(place).exists(), "{place}");
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    name: String,
    file: String,
    text: String,
    /// The ends of the sentences that it must give.
    found: Vec<String>,
}

/// The test fails on what it is there to find, however it is written.
#[test]
fn the_scanner_finds_bad_samples_and_leaves_good_ones() {
    let samples: Vec<Sample> = serde_yaml::from_str(include_str!("architecture/samples.yml")).unwrap();
    let (rules, dependencies) = (rules(), dependencies());
    for sample in samples {
        let found = violations(&rules, &dependencies, &sample.file, &sample.text);
        assert_eq!(found.len(), sample.found.len(), "{}: {found:#?}", sample.name);
        for (found, expected) in found.iter().zip(&sample.found) {
            assert!(found.contains(expected), "{}: {found} for {expected}", sample.name);
        }
    }
}

/// Comments speak of the program, not of how it came about or where it was written.
#[test]
fn no_source_speaks_of_its_making() {
    let words = ["../shared", "DESIGN.md", "FACTS.md", "STYLE.md", "/tmp/", "/work/", "the design document"];
    for (file, text) in sources() {
        let lower = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in words {
            assert!(!lower.contains(word), "{file} speaks of {word}");
        }
    }
}

#[test]
fn a_source_knows_its_own_module() {
    for (file, module) in [
        ("src/core/gates/loop.rs", vec!["core", "gates", "loop"]),
        ("src/core/gates/mod.rs", vec!["core", "gates"]),
        ("src/core/mod.rs", vec!["core"]),
        ("src/config.rs", vec!["config"]),
    ] {
        let Source { module: found, .. } = scan(file, "");
        assert_eq!(found, module, "{file}");
    }
}
