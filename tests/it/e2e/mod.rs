//! The composite actions and example workflows, under a real runner and piece by piece.

mod act;
pub(crate) mod command_files;
pub(crate) mod hostile;
#[cfg(unix)]
mod install;
mod manifests;
mod workflows;

use std::path::{Path, PathBuf};

/// The root of the crate.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the crate.
fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Copies a folder.
fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Copies what the composite actions consist of, without sources and build folder: a runner copies the whole folder.
fn stage_actions(to: &Path) -> PathBuf {
    std::fs::create_dir_all(to).unwrap();
    std::fs::copy(root().join("action.yml"), to.join("action.yml")).unwrap();
    for folder in ["action", "finish"] {
        copy_folder(&root().join(folder), &to.join(folder));
    }
    to.to_owned()
}
