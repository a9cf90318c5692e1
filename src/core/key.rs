//! Business keys: the canonical name of one piece of work, and its digest.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// The longest task slug: with the digest and a number it must fit a label name of 50 characters.
pub const MAX_TASK_LEN: usize = 30;

/// What the agent would do: a slug of lower-case letters, digits and single dashes, at most 30 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Task(String);

/// Why a task name is not a slug.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a task name: use 1 to {MAX_TASK_LEN} lower-case letters, digits and dashes, starting with a letter"
)]
pub struct BadTask(pub String);

impl Task {
    /// The slug.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Task {
    type Err = BadTask;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let ok = !s.is_empty()
            && s.len() <= MAX_TASK_LEN
            && s.starts_with(|c: char| c.is_ascii_lowercase())
            && !s.ends_with('-')
            && !s.contains("--")
            && s.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if ok { Ok(Self(s.to_owned())) } else { Err(BadTask(s.chars().take(60).collect())) }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The thing that a task is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// An issue, by number.
    Issue(u64),
    /// A pull request, by number.
    PullRequest(u64),
}

impl Resource {
    /// The number of the issue or pull request.
    pub const fn number(&self) -> Option<u64> {
        match self {
            Self::Issue(n) | Self::PullRequest(n) => Some(*n),
        }
    }

    /// The resource in plain words, such as `issue 731`.
    pub fn in_words(&self) -> String {
        match self {
            Self::Issue(n) => format!("issue {n}"),
            Self::PullRequest(n) => format!("pull request {n}"),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Issue(n) => write!(f, "issue/{n}"),
            Self::PullRequest(n) => write!(f, "pr/{n}"),
        }
    }
}

/// Which state of the resource a piece of work is about, where that is part of its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// A comment, by id.
    Comment(u64),
    /// A comment whose edit added a first request: its id, and the first 12 hex digits of the request's SHA-256.
    EditedComment(u64, Digest),
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comment(id) => write!(f, "comment-{id}"),
            Self::EditedComment(id, digest) => write!(f, "comment-{id}.{digest}"),
        }
    }
}

/// The canonical name of one piece of work: `host/repository-id/resource/task[/version]`.
///
/// The same work has the same key whatever event, delivery, letter case or repository name it came by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    host: String,
    repository: u64,
    resource: Resource,
    task: Task,
    version: Option<Version>,
}

/// Why a text is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a business key: expected HOST/REPOSITORY-ID/issue/N/TASK, or pr/N, with an optional version")]
pub struct BadKey(pub String);

impl Key {
    /// The key of a task on a resource. The host is lower-cased.
    pub fn new(host: &str, repository: u64, resource: Resource, task: Task, version: Option<Version>) -> Self {
        Self { host: host.to_ascii_lowercase(), repository, resource, task, version }
    }

    /// The GitHub host, lower case.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The repository's numeric id, which survives rename and transfer.
    pub const fn repository(&self) -> u64 {
        self.repository
    }

    /// What the work is about.
    pub const fn resource(&self) -> &Resource {
        &self.resource
    }

    /// What the agent would do.
    pub const fn task(&self) -> &Task {
        &self.task
    }

    /// The version, where the key has one.
    pub const fn version(&self) -> Option<&Version> {
        self.version.as_ref()
    }

    /// The commit that the version names, if it is one: the only commit that the work is about.
    pub fn head_sha(&self) -> Option<CommitId> {
        self.version.as_ref()?.to_string().parse().ok()
    }

    /// The key's digest.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.to_string())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.host, self.repository, self.resource, self.task)?;
        match &self.version {
            Some(version) => write!(f, "/{version}"),
            None => Ok(()),
        }
    }
}

/// A decimal number in canonical form: digits only, no sign, no padding.
fn canonical_number(s: &str) -> Option<u64> {
    let n: u64 = s.parse().ok()?;
    (n.to_string() == s).then_some(n)
}

impl FromStr for Key {
    type Err = BadKey;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let bad = || BadKey(s.chars().take(120).collect());
        let mut parts = s.split('/');
        let mut next = || parts.next().filter(|p| !p.is_empty()).ok_or_else(bad);
        let host = next()?;
        // Lower-case names, addresses and ports.
        let of_host =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | ':' | '[' | ']');
        if !host.chars().all(of_host) {
            return Err(bad());
        }
        let repository = canonical_number(next()?).ok_or_else(bad)?;
        let kind = next()?;
        let number = canonical_number(next()?).filter(|n| *n > 0).ok_or_else(bad)?;
        let resource = match kind {
            "issue" => Resource::Issue(number),
            "pr" => Resource::PullRequest(number),
            _ => return Err(bad()),
        };
        let task: Task = next()?.parse().map_err(|_| bad())?;
        let version = match parts.next() {
            None => None,
            Some(v) => {
                let rest = v.strip_prefix("comment-").ok_or_else(bad)?;
                Some(match rest.split_once('.') {
                    None => Version::Comment(canonical_number(rest).ok_or_else(bad)?),
                    Some((id, digest)) => {
                        let digest: Digest = digest.parse().map_err(|()| bad())?;
                        Version::EditedComment(canonical_number(id).ok_or_else(bad)?, digest)
                    }
                })
            }
        };
        if parts.next().is_some() {
            return Err(bad());
        }
        Ok(Self::new(host, repository, resource, task, version))
    }
}

/// The first 12 hex digits of a SHA-256: names a key where length is limited.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

impl Digest {
    /// The digest of a text.
    pub fn of(text: &str) -> Self {
        let hash = Sha256::digest(text.as_bytes());
        let half_bytes = hash.iter().take(6).flat_map(|byte| [byte >> 4, byte & 0xf]);
        Self(half_bytes.filter_map(|half| char::from_digit(u32::from(half), 16)).collect())
    }

    /// The 12 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Digest {
    type Err = ();

    fn from_str(s: &str) -> Result<Self, ()> {
        let hex = s.len() == 12 && s.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
        if hex { Ok(Self(s.to_owned())) } else { Err(()) }
    }
}

/// The full id of a commit: 40 hex digits in lower case, or 64.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(String);

impl CommitId {
    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for CommitId {
    type Err = ();

    fn from_str(s: &str) -> Result<Self, ()> {
        let hex = s.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
        if hex && matches!(s.len(), 40 | 64) { Ok(Self(s.to_owned())) } else { Err(()) }
    }
}
