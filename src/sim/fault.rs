//! Calls, and what can go wrong with one.

use std::fmt;

/// What a request asks of GitHub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Any GraphQL query.
    Graphql,
    /// Any GraphQL mutation.
    Mutation,
    /// Create a repository label.
    CreateLabel,
    /// Read a repository label.
    GetLabel,
    /// List a repository's labels.
    ListLabels,
    /// Change a repository label.
    UpdateLabel,
    /// Delete a repository label.
    DeleteLabel,
    /// Put labels on an item.
    AddLabels,
    /// Take a label off an item.
    RemoveLabel,
    /// List the labels of an item.
    ListItemLabels,
    /// Read an issue or pull request.
    GetIssue,
    /// Open an issue.
    CreateIssue,
    /// List issues and pull requests.
    ListIssues,
    /// List an item's comments.
    ListComments,
    /// Read a comment.
    GetComment,
    /// Write a comment.
    CreateComment,
    /// Change a comment.
    UpdateComment,
    /// React to an item.
    ReactIssue,
    /// React to a comment.
    ReactComment,
    /// List the reactions to an item.
    ListIssueReactions,
    /// List the reactions to a comment.
    ListCommentReactions,
    /// Create a commit.
    CreateCommit,
    /// Create a ref.
    CreateRef,
    /// Move a ref.
    UpdateRef,
    /// Create a check run.
    CreateCheckRun,
    /// Change a check run.
    UpdateCheckRun,
    /// List the check runs of a commit.
    ListCheckRuns,
    /// Ask for a person's permission.
    Permission,
    /// Read a workflow run.
    GetRun,
    /// List workflow runs.
    ListRuns,
    /// Read a repository.
    GetRepository,
    /// Ask for the rate limits. Costs nothing.
    RateLimit,
    /// Ask who one is.
    GetUser,
    /// Anything that the embedded GitHub does not have.
    Unknown,
}

impl Op {
    /// Whether it changes something.
    pub const fn is_write(self) -> bool {
        matches!(
            self,
            Self::Mutation
                | Self::CreateLabel
                | Self::UpdateLabel
                | Self::DeleteLabel
                | Self::AddLabels
                | Self::RemoveLabel
                | Self::CreateIssue
                | Self::CreateComment
                | Self::UpdateComment
                | Self::ReactIssue
                | Self::ReactComment
                | Self::CreateCommit
                | Self::CreateRef
                | Self::UpdateRef
                | Self::CreateCheckRun
                | Self::UpdateCheckRun
        )
    }

    /// Whether it is GraphQL, which has limits of its own.
    pub const fn is_graphql(self) -> bool {
        matches!(self, Self::Graphql | Self::Mutation)
    }

    /// Whether GitHub counts it as creating content, for its secondary limit.
    pub const fn creates_content(self) -> bool {
        matches!(
            self,
            Self::CreateLabel
                | Self::AddLabels
                | Self::CreateIssue
                | Self::CreateComment
                | Self::ReactIssue
                | Self::ReactComment
        )
    }

    /// The name of the operation, as variants are named but in kebab case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Graphql => "graphql",
            Self::Mutation => "mutation",
            Self::CreateLabel => "create-label",
            Self::GetLabel => "get-label",
            Self::ListLabels => "list-labels",
            Self::UpdateLabel => "update-label",
            Self::DeleteLabel => "delete-label",
            Self::AddLabels => "add-labels",
            Self::RemoveLabel => "remove-label",
            Self::ListItemLabels => "list-item-labels",
            Self::GetIssue => "get-issue",
            Self::CreateIssue => "create-issue",
            Self::ListIssues => "list-issues",
            Self::ListComments => "list-comments",
            Self::GetComment => "get-comment",
            Self::CreateComment => "create-comment",
            Self::UpdateComment => "update-comment",
            Self::ReactIssue => "react-issue",
            Self::ReactComment => "react-comment",
            Self::ListIssueReactions => "list-issue-reactions",
            Self::ListCommentReactions => "list-comment-reactions",
            Self::CreateCommit => "create-commit",
            Self::CreateRef => "create-ref",
            Self::UpdateRef => "update-ref",
            Self::CreateCheckRun => "create-check-run",
            Self::UpdateCheckRun => "update-check-run",
            Self::ListCheckRuns => "list-check-runs",
            Self::Permission => "permission",
            Self::GetRun => "get-run",
            Self::ListRuns => "list-runs",
            Self::GetRepository => "get-repository",
            Self::RateLimit => "rate-limit",
            Self::GetUser => "get-user",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One request, before it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallInfo {
    /// What it asks.
    pub op: Op,
    /// The HTTP method that it has or, in process, would have.
    pub method: &'static str,
    /// The path that it has or would have, without any prefix of the server.
    pub path: String,
}

impl fmt::Display for CallInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// What goes wrong with one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The answer is lost: the connection ends.
    Lost {
        /// Whether the request has taken effect.
        effect: bool,
    },
    /// The server answers 5xx.
    Server {
        /// The status.
        status: u16,
        /// Whether the request has taken effect nevertheless.
        effect: bool,
    },
    /// 403, as for a token without the permission.
    Denied,
    /// A rate limit. With neither header it is a secondary limit that does not say for how long.
    RateLimited {
        /// 403 or 429.
        status: u16,
        /// The header `retry-after`, in seconds.
        retry_after: Option<u64>,
        /// The primary limit is used up until so many seconds from now (`x-ratelimit-reset`).
        reset_in: Option<u64>,
    },
    /// A read is answered from the state of so many API writes ago, or from the oldest that is kept. On a write it
    /// does nothing.
    Stale(usize),
    /// The caller dies here: in process, the call never returns.
    Crash {
        /// Whether the request has taken effect.
        effect: bool,
    },
}

impl Fault {
    /// Whether the request reaches the state.
    pub const fn has_effect(&self) -> bool {
        match self {
            Self::Lost { effect } | Self::Server { effect, .. } | Self::Crash { effect } => *effect,
            Self::Stale(_) => true,
            Self::Denied | Self::RateLimited { .. } => false,
        }
    }
}

/// A fault that waits for its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// For which calls; `None` for any.
    pub op: Option<Op>,
    /// How many calls of that kind go well before.
    pub skip: usize,
    /// How many calls then fail.
    pub times: usize,
    /// How.
    pub fault: Fault,
}

impl Planned {
    /// The next call of this kind fails.
    pub const fn next(op: Op, fault: Fault) -> Self {
        Self { op: Some(op), skip: 0, times: 1, fault }
    }

    /// Every call of this kind fails.
    pub const fn always(op: Op, fault: Fault) -> Self {
        Self { op: Some(op), skip: 0, times: usize::MAX, fault }
    }

    /// So many calls of this kind go well before the fault.
    #[must_use]
    pub const fn after(mut self, skip: usize) -> Self {
        self.skip = skip;
        self
    }

    /// Whether this call is hit; counts it.
    pub(super) fn hits(&mut self, op: Op) -> bool {
        if self.op.is_some_and(|o| o != op) || self.times == 0 {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        if self.times != usize::MAX {
            self.times -= 1;
        }
        true
    }
}
