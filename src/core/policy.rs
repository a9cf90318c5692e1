//! What the repository's owner wants: validated, with every default filled in.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use super::claim::{LedgerChoice, LedgerKind};
use super::key::{CommitId, Key, Task};

/// The path of the policy file, read from the default branch.
pub const POLICY_PATH: &str = ".github/run-guard.yml";

/// When a trigger must hold the phrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhraseRule {
    /// Comments must; the other events need none.
    Comments,
    /// Every event with a text must.
    Always,
    /// No event must.
    Never,
}

/// Which edits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edits {
    /// An edit that adds a request where there was none.
    Added,
    /// Also one that changes the text of the request.
    Changed,
    /// None.
    Ignored,
}

/// What to do about a claim whose owner is over without an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnAbandoned {
    /// Take it over where the evidence shows no write since it began.
    Retry,
    /// A person decides.
    Review,
}

/// Where it is remembered that a versionless resource is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The shared label `run-guard:TASK:done` on the item.
    Label,
    /// Only in the claims.
    None,
}

/// Per what a burst is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstPer {
    /// The issue or pull request.
    Resource,
    /// The account that triggered it.
    Actor,
}

/// At most so many runs within so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// How many runs may start.
    pub runs: u32,
    /// Counted per what.
    pub per: BurstPer,
    /// Within how long.
    pub within: TimeDelta,
}

/// What a task's agent may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Write comments.
    Comment,
    /// Set and take off labels.
    Label,
    /// Submit reviews.
    Review,
    /// Push branches.
    Branch,
    /// Open pull requests.
    PullRequest,
    /// Start workflows.
    Dispatch,
    /// Merge.
    Merge,
    /// Deploy.
    Deploy,
}

impl Effect {
    /// Every effect.
    pub const ALL: [Self; 8] = [
        Self::Comment,
        Self::Label,
        Self::Review,
        Self::Branch,
        Self::PullRequest,
        Self::Dispatch,
        Self::Merge,
        Self::Deploy,
    ];

    /// The word used in the policy.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Comment => "comment",
            Self::Label => "label",
            Self::Review => "review",
            Self::Branch => "branch",
            Self::PullRequest => "pull-request",
            Self::Dispatch => "dispatch",
            Self::Merge => "merge",
            Self::Deploy => "deploy",
        }
    }

    /// Whether it leaves traces that can be read back afterwards.
    pub const fn can_be_read_back(self) -> bool {
        !matches!(self, Self::Dispatch | Self::Merge | Self::Deploy)
    }
}

/// The caps on runs and money, over rolling windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// Runs that may start within one hour.
    pub max_runs_per_hour: Option<u32>,
    /// Runs that may start within 24 hours.
    pub max_runs_per_day: Option<u32>,
    /// US dollars that may be spent within 24 hours, in cents.
    pub max_cost_per_day_cents: Option<u64>,
    /// What one run is taken to cost, in cents, until it says.
    pub estimate_cents: Option<u64>,
    /// At most so many runs of one resource or actor within a time.
    pub burst: Option<Burst>,
    /// How long a resource rests after a run was started on it.
    pub cool_down: Option<TimeDelta>,
}

impl Budget {
    /// How far back the claims must be known to judge.
    pub fn window(&self) -> Option<TimeDelta> {
        let day = self.max_runs_per_day.is_some() || self.max_cost_per_day_cents.is_some();
        [
            day.then(|| TimeDelta::hours(24)),
            self.max_runs_per_hour.map(|_| TimeDelta::hours(1)),
            self.burst.map(|b| b.within),
            self.cool_down,
        ]
        .into_iter()
        .flatten()
        .max()
    }
}

/// The policy of one task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskPolicy {
    /// Events and the actions of each that may start it; `None`: whatever the workflow lets through.
    pub on: Option<BTreeMap<String, BTreeSet<String>>>,
    /// The labels whose adding may start it; empty: any.
    pub trigger_labels: Vec<String>,
    /// Labels that must be on the item.
    pub required_labels: Vec<String>,
    /// Labels that keep the agent off.
    pub blocking_labels: Vec<String>,
    /// The words by which people call the agent.
    pub phrase: String,
    /// When a trigger must hold the phrase.
    pub phrase_rule: PhraseRule,
    /// The words by which people ask for a rerun of a done piece of work.
    pub rerun_phrase: Option<String>,
    /// Which edits count.
    pub edits: Edits,
    /// Whether people without write permission may start it.
    pub anyone: bool,
    /// Whether it may start on a closed resource.
    pub closed: bool,
    /// Whether it may start on a draft.
    pub drafts: bool,
    /// What the agent may do.
    pub may: BTreeSet<Effect>,
    /// How often a failed piece of work is tried since the last rerun.
    pub max_attempts: u32,
    /// What to do about abandoned claims.
    pub on_abandoned: OnAbandoned,
    /// How long an owner must be over before its claim is taken.
    pub settle_grace: TimeDelta,
    /// How long a run without activity counts as live.
    pub max_lifetime: TimeDelta,
    /// Where it is remembered that the work is done.
    pub memory: Memory,
    /// How many comments bots may write with no person in between.
    pub max_bot_rounds: u32,
    /// Caps.
    pub budget: Budget,
}

impl TaskPolicy {
    /// Whether adding this label is a wish of its own, ignoring case.
    pub fn is_trigger_label(&self, label: &str) -> bool {
        self.trigger_labels.iter().any(|trigger| trigger.eq_ignore_ascii_case(label))
    }
}

impl Default for TaskPolicy {
    fn default() -> Self {
        use Effect::{Branch, Comment, Label, PullRequest, Review};
        Self {
            on: None,
            trigger_labels: Vec::new(),
            required_labels: Vec::new(),
            blocking_labels: Vec::new(),
            phrase: "@claude".to_owned(),
            phrase_rule: PhraseRule::Comments,
            rerun_phrase: None,
            edits: Edits::Added,
            anyone: false,
            closed: false,
            drafts: false,
            may: BTreeSet::from([Comment, Label, Review, Branch, PullRequest]),
            max_attempts: 3,
            on_abandoned: OnAbandoned::Retry,
            settle_grace: TimeDelta::seconds(60),
            max_lifetime: TimeDelta::hours(6),
            memory: Memory::Label,
            max_bot_rounds: 3,
            budget: Budget {
                max_runs_per_hour: None,
                max_runs_per_day: None,
                max_cost_per_day_cents: None,
                estimate_cents: None,
                burst: None,
                cool_down: None,
            },
        }
    }
}

/// The policy of a repository.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Accounts that are agents.
    pub agents: Vec<String>,
    /// Other bots that may start agents.
    pub automation_allow: Vec<String>,
    /// Whether everything is paused.
    pub paused: bool,
    /// Where claims are kept.
    pub ledger: LedgerChoice,
    /// The commit on which a check-run ledger keeps the claims of keys that name no commit.
    pub ledger_anchor: Option<CommitId>,
    /// Whether refused people get a reply.
    pub reply: bool,
    /// The tasks that the file names.
    pub tasks: BTreeMap<Task, TaskPolicy>,
    /// What holds for a task that the file does not name.
    pub defaults: TaskPolicy,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            agents: vec!["claude[bot]".to_owned()],
            automation_allow: Vec::new(),
            paused: false,
            ledger: LedgerChoice::Kind(LedgerKind::Label),
            ledger_anchor: None,
            reply: false,
            tasks: BTreeMap::new(),
            defaults: TaskPolicy::default(),
        }
    }
}

impl Policy {
    /// What holds for a task.
    pub fn task(&self, task: &Task) -> &TaskPolicy {
        self.tasks.get(task).unwrap_or(&self.defaults)
    }

    /// The longest time for which a claim of any task counts for a budget.
    pub fn longest_window(&self) -> Option<TimeDelta> {
        self.tasks.values().chain([&self.defaults]).filter_map(|rules| rules.budget.window()).max()
    }

    /// Where the key's claims are kept: what the input `asked` for, else what the policy says. It follows from these and
    /// the key alone, since two ledgers for one key are two agents. In words, why that ledger cannot keep them.
    pub fn ledger_of(&self, key: &Key, asked: Option<LedgerChoice>) -> Result<LedgerKind, String> {
        let capped = self.task(key.task()).budget.window().is_some();
        let kind = match asked.unwrap_or(self.ledger) {
            LedgerChoice::Auto if key.head_sha().is_some() && !capped => LedgerKind::CheckRun,
            LedgerChoice::Auto => LedgerKind::Label,
            LedgerChoice::Kind(kind) => kind,
        };
        if kind == LedgerKind::CheckRun && capped {
            return Err(format!(
                "the ledger `check-run` cannot count the runs of `{}` over a time, since its claims lie on many commits; \
                 use `label`, `ref` or `auto`, or set no cap",
                key.task()
            ));
        }
        if kind == LedgerKind::CheckRun && key.head_sha().is_none() && self.ledger_anchor.is_none() {
            return Err(format!(
                "the ledger `check-run` needs a commit, and the key `{key}` names none; set `ledger-anchor` to a commit \
                 of the repository, or use another ledger"
            ));
        }
        Ok(kind)
    }
}
