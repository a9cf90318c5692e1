//! What run-guard says: verdicts, reason codes and the words that go with them.

use std::fmt;

use chrono::{DateTime, Utc};

use super::claim::ClaimPlan;
use super::facts::Question;

/// The answer to *may this run start the agent?*
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Start the agent: the lease is held.
    Proceed,
    /// Never for this trigger.
    Skip,
    /// Not now: a later trigger or `reconcile` picks it up.
    Defer,
    /// A person must decide.
    Review,
    /// No decision could be made.
    Error,
}

impl Verdict {
    /// The word used in outputs and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proceed => "proceed",
            Self::Skip => "skip",
            Self::Defer => "defer",
            Self::Review => "review",
            Self::Error => "error",
        }
    }

    /// The process exit code that `--exit-code` asks for.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Proceed => 0,
            Self::Skip => 10,
            Self::Defer => 11,
            Self::Review => 12,
            Self::Error => 1,
        }
    }

    /// The verdict that a word names, if any.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Proceed, Self::Skip, Self::Defer, Self::Review, Self::Error].into_iter().find(|v| v.as_str() == word)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The gates, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gate {
    /// Does the policy want this event, action and sender, and is there a request in the text?
    Trigger,
    /// Did automation cause this?
    Loop,
    /// Is the resource, read again now, still worth it?
    State,
    /// Has this key been worked on, or is it being worked on?
    Duplicate,
    /// Is there budget left for one more run?
    Budget,
    /// Was the claim won?
    Claim,
}

impl Gate {
    /// All gates in order.
    pub const ALL: [Self; 6] = [Self::Trigger, Self::Loop, Self::State, Self::Duplicate, Self::Budget, Self::Claim];

    /// The word used in outputs and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trigger => "trigger",
            Self::Loop => "loop",
            Self::State => "state",
            Self::Duplicate => "duplicate",
            Self::Budget => "budget",
            Self::Claim => "claim",
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

macro_rules! reasons {
    ($($variant:ident $code:literal $gate:ident $verdict:ident $meaning:literal $mend:literal;)*) => {
        /// Why a verdict is what it is. One entry a reason code; everything that lists reasons is made from here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $(#[doc = $meaning] $variant,)*
        }

        impl Reason {
            /// Every reason, in the order of the gates.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The kebab-case reason code.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The gate that gives this reason.
            pub const fn gate(self) -> Gate {
                match self { $(Self::$variant => Gate::$gate,)* }
            }

            /// The verdict that this reason carries.
            pub const fn verdict(self) -> Verdict {
                match self { $(Self::$variant => Verdict::$verdict,)* }
            }

            /// What the reason means, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// What a person can do about it, in one sentence.
            pub const fn next_step(self) -> &'static str {
                match self { $(Self::$variant => $mend,)* }
            }
        }
    };
}

reasons! {
    NotConfigured "not-configured" Trigger Skip
        "The policy does not want this event, action, label or sender for this task."
        "Add the event to the task's `on:` in the policy if the agent should start for it.";
    NoRequest "no-request" Trigger Skip
        "The text asks nothing of the agent: the phrase is missing, or stands only in a quote, code or an HTML comment."
        "Write a new comment with the phrase in plain text.";
    UnchangedEdit "unchanged-edit" Trigger Skip
        "The edit adds no request that the text did not have before."
        "Write a new comment if you want something new.";
    NotAuthorized "not-authorized" Trigger Review
        "The person who asked has no write permission in this repository."
        "Someone with write permission can ask in a comment, or set the trigger label.";
    UntrustedAuthor "untrusted-author" Trigger Review
        "An allowed bot acted on something that an outsider wrote."
        "Someone with write permission can ask in a comment.";
    ReadOnlyToken "read-only-token" Trigger Review
        "The run has a read-only token, so nothing can be claimed."
        "Someone with write permission can start it from an event of this repository.";
    BadPayload "bad-payload" Trigger Error
        "The event payload could not be read."
        "Run run-guard in a workflow step, or give `--event FILE --event-name NAME`.";
    MissingNumber "missing-number" Trigger Error
        "The payload names no issue or pull request number."
        "Give the number as an input, or start from an event that carries one.";
    AmbiguousResource "ambiguous-resource" Trigger Error
        "More than one open pull request fits the trigger."
        "Start it from an event of the one pull request that is meant.";
    PermissionUnknown "permission-unknown" Trigger Error
        "GitHub did not tell who asked, or what permission they have."
        "Re-run the job; if it happens again, check that the token may read collaborators.";
    PolicyInvalid "policy-invalid" Trigger Error
        "The policy file has a mistake."
        "Correct the policy file on the default branch.";
    PolicyUnreadable "policy-unreadable" Trigger Error
        "The policy file could not be read, so it is not known what it allows."
        "Give the job `contents: read`, then re-run it.";
    LoopSelf "loop-self" Loop Skip
        "The agent itself, or the token that run-guard uses, caused this trigger."
        "Nothing to do: an agent does not answer itself.";
    LoopMarker "loop-marker" Loop Skip
        "The text is the agent's own: it carries a marker or run link that was confirmed."
        "Nothing to do: an agent does not answer itself.";
    LoopChain "loop-chain" Loop Skip
        "The chain of automated runs behind this trigger already holds this task, or is too long."
        "A person can ask in a comment.";
    AutomationActor "automation-actor" Loop Skip
        "Another bot caused this trigger and the policy does not allow it."
        "List the bot under `automation.allow` in the policy if it may start the agent.";
    LoopRounds "loop-rounds" Loop Review
        "Only bots have spoken for too many rounds."
        "A person can answer in a comment; that starts the count again.";
    ResourceClosed "resource-closed" State Skip
        "The issue or pull request is closed."
        "Reopen it, then ask again.";
    Draft "draft" State Skip
        "The pull request is a draft."
        "Mark it ready for review.";
    LabelRemoved "label-removed" State Skip
        "The label that started this run, or one that the task requires, is not on the item now."
        "Add the label again.";
    BlockingLabel "blocking-label" State Skip
        "A label on the item tells the agent to keep off."
        "Take the blocking label off, then ask again.";
    StaleHead "stale-head" State Defer
        "The pull request has moved on to another commit."
        "The run for the newest commit does the work.";
    Debounced "debounced" State Defer
        "A newer trigger for the same piece of work is waiting."
        "The newest trigger does the work.";
    Paused "paused" State Defer
        "The agent is paused in this repository."
        "Lift the pause (`paused` in the policy or the `paused` input), then re-run the job.";
    ResourceMissing "resource-missing" State Error
        "GitHub knows no such issue or pull request, or it could not be read."
        "Check the number, give the job `issues: read` and `pull-requests: read`, then re-run it.";
    ResourceMoved "resource-moved" State Error
        "The repository or issue that answered is not the one in the payload."
        "Start it again from the place where it is now.";
    AlreadyDone "already-done" Duplicate Skip
        "This piece of work is done."
        "To have it done again, re-run the job, write the rerun phrase, or add the trigger label again.";
    InProgress "in-progress" Duplicate Skip
        "Another run is working on this now."
        "Wait for that run to end.";
    Superseded "superseded" Duplicate Skip
        "A newer trigger has replaced this one."
        "Nothing to do: the newer trigger does the work.";
    Settling "settling" Duplicate Defer
        "Old claims of this key are being swept just now."
        "Ask again in half an hour.";
    RivalWork "rival-work" Duplicate Review
        "Somebody else has already opened work that covers this."
        "Look at it and decide; re-run the job to start the agent all the same.";
    PreviousFailed "previous-failed" Duplicate Review
        "An earlier run ended in a way that cannot be repeated blindly."
        "Look at what it left, then re-run the job or write the rerun phrase.";
    AttemptsExhausted "attempts-exhausted" Duplicate Review
        "The agent has failed as often as the policy allows."
        "Mend the cause, then re-run the job or write the rerun phrase.";
    BudgetHour "budget-hour" Budget Defer
        "The runs of this hour are used up."
        "It can start when the oldest run leaves the window; re-run the job then.";
    BudgetDay "budget-day" Budget Defer
        "The runs of this day are used up."
        "It can start when the oldest run leaves the window; re-run the job then.";
    BudgetCost "budget-cost" Budget Defer
        "The money of this day is spent."
        "It can start when the oldest run leaves the window; re-run the job then.";
    Burst "burst" Budget Defer
        "Too many runs in a short time for this resource or actor."
        "It can start when the burst window has passed.";
    CoolDown "cool-down" Budget Defer
        "The last run on this resource was too short a time ago."
        "It can start when the cool-down has passed.";
    UnknownUsage "unknown-usage" Budget Review
        "It could not be read how much of the budget is used, so nothing is started on a guess."
        "Look at the claims named in the message, then re-run the job.";
    LostRace "lost-race" Claim Skip
        "Another run took the claim first."
        "Nothing to do: the other run has it.";
    LedgerUnreachable "ledger-unreachable" Claim Defer
        "The ledger did not answer in time."
        "Re-run the job.";
    LedgerFull "ledger-full" Claim Error
        "The key has more claims than run-guard will count."
        "Look at the key's claims, remove the settled ones, and ask again.";
    LedgerDenied "ledger-denied" Claim Error
        "GitHub refused to write the claim."
        "Give the job the ledger's permission, or choose another ledger.";
}

impl Reason {
    /// The reason with this code, if there is one.
    pub fn parse(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|r| r.code() == code)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

/// A page on GitHub that shows something, and what it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What is found there, such as `run 8812345`.
    pub what: String,
    /// The address.
    pub url: String,
}

/// A gate's *no*: why, in words that a person can act on, and where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The reason code.
    pub reason: Reason,
    /// The verdict: the reason's own, but for the few places where the same reason weighs differently.
    pub verdict: Verdict,
    /// One sentence with the particulars. Holds no text from payloads beyond logins, labels and numbers.
    pub message: String,
    /// What shows it.
    pub evidence: Vec<Link>,
    /// When asking again may have another answer.
    pub retry_at: Option<DateTime<Utc>>,
}

impl Stop {
    /// A stop with the reason's own verdict.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, verdict: reason.verdict(), message: message.into(), evidence: Vec::new(), retry_at: None }
    }

    /// The same with a link.
    #[must_use]
    pub fn with_link(mut self, what: impl Into<String>, url: impl Into<String>) -> Self {
        self.evidence.push(Link { what: what.into(), url: url.into() });
        self
    }

    /// The same with the time from which asking again makes sense.
    #[must_use]
    pub fn with_retry_at(mut self, at: DateTime<Utc>) -> Self {
        self.retry_at = Some(at);
        self
    }

    /// The same with another verdict than the reason's own.
    #[must_use]
    pub fn with_verdict(mut self, verdict: Verdict) -> Self {
        self.verdict = verdict;
        self
    }
}

/// What one gate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// No objection; the sentence says what was seen.
    Pass(String),
    /// An objection, which decides.
    Stop(Box<Stop>),
    /// The gate cannot say before this is read.
    Ask(Question),
}

impl Judgement {
    /// A pass with what was seen.
    pub fn pass(saw: impl Into<String>) -> Self {
        Self::Pass(saw.into())
    }

    /// A stop with the reason's own verdict and no link.
    pub fn stop(reason: Reason, message: impl Into<String>) -> Self {
        Self::Stop(Box::new(Stop::new(reason, message)))
    }
}

impl From<Stop> for Judgement {
    fn from(stop: Stop) -> Self {
        Self::Stop(Box::new(stop))
    }
}

/// One line of the way to a decision: a gate and what it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The gate.
    pub gate: Gate,
    /// What it saw.
    pub saw: String,
}

/// What to do next, from the facts known so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Read this, then decide again.
    Ask(Question),
    /// Every gate passed: create this claim. Only its creation makes the verdict `proceed`.
    Claim {
        /// What each gate saw.
        path: Vec<Seen>,
        /// The claim to create.
        plan: ClaimPlan,
    },
    /// A gate objected.
    Stop {
        /// What the gates before it saw.
        path: Vec<Seen>,
        /// The objection.
        stop: Box<Stop>,
    },
}

/// What becomes of a verdict that says that no decision could be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// `error` fails the step; a ledger that does not answer is `defer`.
    #[default]
    Default,
    /// `error` fails the step, and so does a ledger that does not answer.
    Stop,
    /// The agent starts without a claim where GitHub could not be read or written; other errors fail the step.
    Proceed,
    /// The step is green and the agent does not start.
    Skip,
}

impl OnError {
    /// The choice that a word names, if any.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "stop" => Some(Self::Stop),
            "proceed" => Some(Self::Proceed),
            "skip" => Some(Self::Skip),
            _ => None,
        }
    }

    /// The verdict that a stop ends with. Starting all the same is for outages and missing permissions of the ledger;
    /// it never lets in somebody whose permission is unknown, nor a trigger that cannot be read.
    pub const fn verdict(self, reason: Reason, verdict: Verdict) -> Verdict {
        let outage = matches!(
            reason,
            Reason::LedgerUnreachable | Reason::LedgerDenied | Reason::LedgerFull | Reason::PolicyUnreadable
        );
        match self {
            Self::Stop if outage => Verdict::Error,
            Self::Proceed if outage => Verdict::Proceed,
            Self::Skip if outage || matches!(verdict, Verdict::Error) => Verdict::Skip,
            Self::Default | Self::Stop | Self::Proceed | Self::Skip => verdict,
        }
    }
}
