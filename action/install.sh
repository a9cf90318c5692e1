#!/usr/bin/env bash
# Finds or builds the run-guard binary and prints its path, the only thing on standard output.
#
# RUN_GUARD_BINARY_PATH names one that is there already. Without it the binary is built from the sources beside this script
# and kept in the runner's tool cache, under its version and a checksum of those sources.
set -euo pipefail

# Workflow commands on standard error work as well, and standard output is taken.
fail() {
  local text=$1 hint=$2
  text="${text//'%'/%25}"
  text="${text//$'\r'/%0D}"
  text="${text//$'\n'/%0A}"
  printf '::error title=run-guard is not installed::%s%%0A%%0Ahint: %s\n' "$text" "$hint" >&2
  exit 1
}

# Git's bash on Windows takes both kinds of slash, but `cd` there is happier with one.
root=$(cd "$(dirname "${BASH_SOURCE[0]//\\//}")/.." && pwd)

suffix=
if [ "${RUNNER_OS:-}" = Windows ] || [ "${OS:-}" = Windows_NT ]; then
  suffix=.exe
fi

if [ -n "${RUN_GUARD_BINARY_PATH:-}" ]; then
  binary=$RUN_GUARD_BINARY_PATH
  case "$binary" in
    /* | [A-Za-z]:[\\/]*) ;;
    *) binary="${GITHUB_WORKSPACE:-$PWD}/$binary" ;;
  esac
  [ -f "$binary" ] ||
    fail "the input binary-path names no file: $binary" 'give the path of a run-guard binary, or leave the input out to have it built'
  [ -x "$binary" ] ||
    fail "the input binary-path names a file that cannot be run: $binary" 'artifacts lose their mode; run chmod +x on it first'
  printf '%s\n' "$binary"
  exit 0
fi

# Out of the workspace: a `.cargo/config.toml` or `rust-toolchain.toml` that a pull request brought must not steer this build.
cd "$root"

version=$(sed -n 's/^version = "\([0-9A-Za-z.+-]*\)"$/\1/p' Cargo.toml 2>/dev/null | head -n 1 || true)
[ -n "$version" ] || fail 'the action has no Cargo.toml with a version beside it' 'use the action from a full checkout of its repository'
sources=$(find src Cargo.toml Cargo.lock -type f -print0 | LC_ALL=C sort -z | xargs -0 cat | cksum | tr -d ' ')

cache=${RUNNER_TOOL_CACHE:-${RUNNER_TEMP:-}}
[ -n "$cache" ] || fail 'neither RUNNER_TOOL_CACHE nor RUNNER_TEMP is set' 'run this in a workflow step, or set RUNNER_TEMP to a folder'
kept="${cache//\\//}/run-guard/$version-$sources"
binary="$kept/run-guard$suffix"
if [ -x "$binary" ]; then
  printf '%s\n' "$binary"
  exit 0
fi

command -v cargo >/dev/null 2>&1 ||
  fail 'there is no cargo on this runner to build run-guard with' 'install Rust in a step before this one, or give the input binary-path'

target="${RUNNER_TEMP:-$cache}"
target="${target//\\//}/run-guard-build"
printf 'building run-guard %s\n' "$version" >&2
cargo build --quiet --release --locked --no-default-features --bin run-guard --target-dir "$target" >&2 ||
  fail "cargo could not build run-guard $version" 'its words are above; or give the input binary-path'

# Two jobs of one machine may get here together: each moves a whole file into place.
mkdir -p "$kept"
cp "$target/release/run-guard$suffix" "$binary.$$"
mv -f "$binary.$$" "$binary"
printf '%s\n' "$binary"
