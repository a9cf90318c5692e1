//! Claims: numbered, write-once records "run R may work on key K", and the layout of their record.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};

use super::key::{CommitId, Digest, Key, Task};

/// The highest claim number that run-guard makes; past it the ledger is full for the key.
///
/// All of them are looked up at once, so that the highest claim is seen also where every lower one has been swept.
pub const MAX_CLAIM_NUMBER: u32 = 32;

/// The longest record: GitHub's limit of a label's description, in characters.
pub const MAX_RECORD_LEN: usize = 100;

/// A random word that tells two guard steps of one attempt apart: 8 characters of `0-9a-z`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(String);

impl Nonce {
    /// A nonce from 64 random bits.
    pub fn from_bits(mut bits: u64) -> Self {
        let mut word = String::with_capacity(8);
        for _ in 0..8 {
            word.push(base36_digit(bits % 36));
            bits /= 36;
        }
        Self(word)
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Nonce {
    type Err = ();

    fn from_str(s: &str) -> Result<Self, ()> {
        let ok = s.len() == 8 && s.chars().all(|c| c.is_ascii_digit() || c.is_ascii_lowercase());
        if ok { Ok(Self(s.to_owned())) } else { Err(()) }
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Who holds a claim: a guard step of an attempt of a workflow run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The workflow run's id.
    pub run: u64,
    /// The run's attempt, from 1.
    pub attempt: u32,
    /// The guard step's random word.
    pub nonce: Nonce,
}

/// Why a claim was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The first of its key.
    First,
    /// Another try after a failure that left nothing behind, or after a claim that never ran.
    Retry,
    /// A person asked for it again.
    Rerun,
    /// The owner before was over without an outcome.
    Takeover,
    /// The scheduled sweep.
    Reconcile,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 5] = [Self::First, Self::Retry, Self::Rerun, Self::Takeover, Self::Reconcile];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Retry => "retry",
            Self::Rerun => "rerun",
            Self::Takeover => "takeover",
            Self::Reconcile => "reconcile",
        }
    }

    const fn letter(self) -> &'static str {
        match self {
            Self::First => "f",
            Self::Retry => "r",
            Self::Rerun => "e",
            Self::Takeover => "t",
            Self::Reconcile => "c",
        }
    }
}

/// What a person's wish to have the work done again is known by, so that it counts once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RerunId {
    /// A comment with the rerun phrase, by id.
    Comment(u64),
    /// A re-run of a workflow run: run and attempt.
    Attempt(u64, u32),
    /// A label that a person added again: when, in seconds since 1970.
    Label(u64),
}

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The agent did what was asked.
    Completed,
    /// The agent ran and found nothing to do.
    NoChange,
    /// The agent failed and had written nothing.
    FailedBeforeWrite,
    /// The agent failed after it had written something.
    FailedAfterWrite,
    /// It is not known how it ended; a person must look.
    NeedsReview,
    /// The head that it was about has moved.
    Superseded,
    /// It never ran.
    Withdrawn,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 7] = [
        Self::Completed,
        Self::NoChange,
        Self::FailedBeforeWrite,
        Self::FailedAfterWrite,
        Self::NeedsReview,
        Self::Superseded,
        Self::Withdrawn,
    ];

    /// The word used in outputs and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::NoChange => "no-change",
            Self::FailedBeforeWrite => "failed-before-write",
            Self::FailedAfterWrite => "failed-after-write",
            Self::NeedsReview => "needs-review",
            Self::Superseded => "superseded",
            Self::Withdrawn => "withdrawn",
        }
    }

    const fn code(self) -> &'static str {
        match self {
            Self::Completed => "co",
            Self::NoChange => "nc",
            Self::FailedBeforeWrite => "fb",
            Self::FailedAfterWrite => "fa",
            Self::NeedsReview => "nr",
            Self::Superseded => "su",
            Self::Withdrawn => "wd",
        }
    }

    /// The outcome that a word names, if any.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|o| o.as_str() == word)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Whether a claim is open or how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClaimState {
    /// Its owner has not written an outcome.
    Open,
    /// Its owner wrote an outcome.
    Settled(Settlement),
    /// It holds the key while lower claims are swept.
    Sweep {
        /// How far the sweep is.
        phase: SweepPhase,
        /// When the phase was reached, to the second.
        at: DateTime<Utc>,
    },
}

impl ClaimState {
    /// When it was settled or a sweep reached its phase; `None` while it is open.
    pub const fn changed_at(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Open => None,
            Self::Settled(settlement) => Some(settlement.at),
            Self::Sweep { at, .. } => Some(*at),
        }
    }
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SweepPhase {
    /// The sweep holds the key.
    Holding,
    /// The lower claims are deleted.
    Cleared,
}

impl SweepPhase {
    /// Every phase, in order.
    pub const ALL: [Self; 2] = [Self::Holding, Self::Cleared];

    const fn word(self) -> &'static str {
        match self {
            Self::Holding => "sweep1",
            Self::Cleared => "sweep2",
        }
    }
}

/// An outcome and what goes with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settlement {
    /// How it ended.
    pub outcome: Outcome,
    /// When, to the second.
    pub at: DateTime<Utc>,
    /// What the agent cost, in hundredths of a US dollar, where it is known.
    pub cost_cents: Option<u64>,
    /// The comment that holds the result, by id.
    pub result_comment: Option<u64>,
}

/// What a claim says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Who holds it.
    pub owner: Owner,
    /// Why it was opened.
    pub cause: Cause,
    /// Which wish for a rerun it answers.
    pub rerun: Option<RerunId>,
    /// When it was opened, to the second, by the opener's clock.
    pub opened_at: DateTime<Utc>,
    /// The number of the issue or pull request that it is about.
    pub number: Option<u64>,
    /// The account id of who triggered it.
    pub actor: Option<u64>,
    /// Whether it is open.
    pub state: ClaimState,
}

/// Why a text is no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a claim record: {0}")]
pub struct BadRecord(pub &'static str);

fn base36_digit(n: u64) -> char {
    u32::try_from(n).ok().and_then(|n| char::from_digit(n, 36)).unwrap_or('0')
}

fn base36(mut n: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(base36_digit(n % 36));
        n /= 36;
        if n == 0 {
            break;
        }
    }
    digits.iter().rev().collect()
}

/// A number in base 36 in its one canonical form: lower case, no padding.
fn parse36(s: &str) -> Option<u64> {
    let n = u64::from_str_radix(s, 36).ok()?;
    (base36(n) == s).then_some(n)
}

fn seconds(at: DateTime<Utc>) -> u64 {
    u64::try_from(at.timestamp()).unwrap_or(0)
}

/// The last second whose year has four digits. A later one is no time that GitHub or a runner tells, and every span
/// that a policy may name can be added to one up to here.
const MAX_SECONDS: u64 = 253_402_300_799;

fn from_seconds(n: u64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(i64::try_from(n).ok().filter(|_| n <= MAX_SECONDS)?, 0)
}

impl Record {
    /// The record as at most 100 characters of ASCII: `rg1` and then tagged fields in a fixed order, numbers in
    /// base 36, times in seconds since 1970.
    ///
    /// `r`RUN.ATTEMPT.NONCE `c`CAUSE\[=RERUN\] `t`OPENED \[`#`NUMBER\] \[`u`ACTOR\] STATE, where STATE is `open`, or
    /// OUTCOME@SETTLED \[`$`CENTS\] \[`w`COMMENT\], or `sweep`PHASE@TIME.
    ///
    /// With numbers of the size that GitHub gives out today a full record takes about 80 characters, and the fields
    /// that must be there take at most 90 whatever their numbers. Should the optional ones not fit any more, those
    /// that matter least are left out, the comment first; what is left out reads as not known.
    ///
    /// A layout with more fields is another version (`rg2`): this one refuses it, and a claim that cannot be read is
    /// never taken for free.
    pub fn encode(&self) -> String {
        let rerun = match &self.rerun {
            None => String::new(),
            Some(RerunId::Comment(id)) => format!("=c{}", base36(*id)),
            Some(RerunId::Attempt(run, attempt)) => format!("=r{}.{}", base36(*run), base36(u64::from(*attempt))),
            Some(RerunId::Label(at)) => format!("=l{}", base36(*at)),
        };
        let head = format!(
            "rg1 r{}.{}.{} c{}{rerun} t{}",
            base36(self.owner.run),
            base36(u64::from(self.owner.attempt)),
            self.owner.nonce,
            self.cause.letter(),
            base36(seconds(self.opened_at))
        );
        let (state, cents, comment) = match &self.state {
            ClaimState::Open => (" open".to_owned(), None, None),
            ClaimState::Settled(s) => {
                (format!(" {}@{}", s.outcome.code(), base36(seconds(s.at))), s.cost_cents, s.result_comment)
            }
            ClaimState::Sweep { phase, at } => (format!(" {}@{}", phase.word(), base36(seconds(*at))), None, None),
        };
        let mut room = MAX_RECORD_LEN.saturating_sub(head.len() + state.len());
        let mut fit = |tag: char, value: Option<u64>| {
            let field = value.map(|n| format!(" {tag}{}", base36(n))).filter(|field| field.len() <= room);
            room -= field.as_ref().map_or(0, String::len);
            field.unwrap_or_default()
        };
        let number = fit('#', self.number);
        let cost = fit('$', cents);
        let actor = fit('u', self.actor);
        let result = fit('w', comment);
        [head, number, actor, state, cost, result].concat()
    }

    /// Reads a record, strictly: whatever [`Record::encode`] would not write is refused.
    pub fn decode(text: &str) -> Result<Self, BadRecord> {
        if text.len() > MAX_RECORD_LEN {
            return Err(BadRecord("it is longer than 100 characters"));
        }
        let mut fields = text.split(' ').peekable();
        if fields.next() != Some("rg1") {
            return Err(BadRecord("it does not start with rg1"));
        }
        let owner = fields.next().and_then(|f| f.strip_prefix('r')).and_then(parse_owner);
        let owner = owner.ok_or(BadRecord("the owner is not RUN.ATTEMPT.NONCE"))?;
        let cause = fields.next().and_then(|f| f.strip_prefix('c')).and_then(parse_cause);
        let (cause, rerun) = cause.ok_or(BadRecord("the cause is unknown"))?;
        let opened = fields.next().and_then(|f| f.strip_prefix('t')).and_then(parse36).and_then(from_seconds);
        let opened_at = opened.ok_or(BadRecord("the time of opening is no number"))?;
        let number = tagged(&mut fields, '#')?;
        let actor = tagged(&mut fields, 'u')?;
        let word = fields.next().ok_or(BadRecord("it says neither open nor an outcome"))?;
        let state = if word == "open" {
            ClaimState::Open
        } else {
            let (word, at) = word.split_once('@').ok_or(BadRecord("it says neither open nor an outcome"))?;
            let at = parse36(at).and_then(from_seconds).ok_or(BadRecord("the time of the outcome is no number"))?;
            if let Some(phase) = SweepPhase::ALL.into_iter().find(|p| p.word() == word) {
                ClaimState::Sweep { phase, at }
            } else {
                let outcome = Outcome::ALL.into_iter().find(|o| o.code() == word);
                let outcome = outcome.ok_or(BadRecord("the outcome is unknown"))?;
                let cost_cents = tagged(&mut fields, '$')?;
                let result_comment = tagged(&mut fields, 'w')?;
                ClaimState::Settled(Settlement { outcome, at, cost_cents, result_comment })
            }
        };
        if fields.next().is_some() {
            return Err(BadRecord("there is more after its end"));
        }
        Ok(Self { owner, cause, rerun, opened_at, number, actor, state })
    }
}

/// The number behind `tag`, if the next field has that tag.
fn tagged<'a>(
    fields: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
    tag: char,
) -> Result<Option<u64>, BadRecord> {
    match fields.peek().and_then(|f| f.strip_prefix(tag)) {
        Some(rest) => {
            let n = parse36(rest).ok_or(BadRecord("a field is no number"))?;
            fields.next();
            Ok(Some(n))
        }
        None => Ok(None),
    }
}

fn parse_owner(s: &str) -> Option<Owner> {
    let mut parts = s.split('.');
    let run = parse36(parts.next()?)?;
    let attempt = u32::try_from(parse36(parts.next()?)?).ok()?;
    let nonce = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some(Owner { run, attempt, nonce })
}

fn parse_cause(s: &str) -> Option<(Cause, Option<RerunId>)> {
    let (letter, rerun) = match s.split_once('=') {
        None => (s, None),
        Some((letter, id)) => (letter, Some(parse_rerun(id)?)),
    };
    let cause = Cause::ALL.into_iter().find(|c| c.letter() == letter)?;
    Some((cause, rerun))
}

fn parse_rerun(s: &str) -> Option<RerunId> {
    if let Some(id) = s.strip_prefix('c') {
        return Some(RerunId::Comment(parse36(id)?));
    }
    if let Some(at) = s.strip_prefix('l') {
        return Some(RerunId::Label(parse36(at)?));
    }
    let (run, attempt) = s.strip_prefix('r')?.split_once('.')?;
    Some(RerunId::Attempt(parse36(run)?, u32::try_from(parse36(attempt)?).ok()?))
}

/// The very thing on GitHub that is a claim, by an identity that is not given out again: the node id of a label, the
/// commit that a ref points to, the id of a check run. Empty where it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thing(pub String);

/// A claim that could be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Its number: the fence.
    pub number: u32,
    /// What holds it.
    pub thing: Thing,
    /// What it says.
    pub record: Record,
}

/// A claim that is there, readable or not. One that cannot be read is never "free".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimRead {
    /// It could be read.
    Readable(Claim),
    /// It exists, but its record is not one.
    Unreadable {
        /// Its number.
        number: u32,
        /// What holds it.
        thing: Thing,
        /// What is wrong with it.
        why: String,
    },
}

impl ClaimRead {
    /// The claim's number.
    pub const fn number(&self) -> u32 {
        match self {
            Self::Readable(claim) => claim.number,
            Self::Unreadable { number, .. } => *number,
        }
    }

    /// What holds it.
    pub const fn thing(&self) -> &Thing {
        match self {
            Self::Readable(claim) => &claim.thing,
            Self::Unreadable { thing, .. } => thing,
        }
    }
}

/// The claim that the gates allow: what is to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimPlan {
    /// Its number, one above the highest there is.
    pub number: u32,
    /// Why.
    pub cause: Cause,
    /// Which wish for a rerun it answers.
    pub rerun: Option<RerunId>,
    /// Which claim it takes over from, if any.
    pub takes_over: Option<Box<Claim>>,
    /// Whether a limit is so near that the claim must be ranked among the window's after it was made.
    pub rank_after: bool,
}

/// The name by which a claim is handed from step to step: `LEDGER[@ANCHOR]:KEY#NUMBER.NONCE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The ledger that keeps it.
    pub ledger: LedgerKind,
    /// The commit that it is kept on, where that is the policy's and not the key's own.
    pub anchor: Option<CommitId>,
    /// The key.
    pub key: Key,
    /// The claim's number.
    pub number: u32,
    /// The owner's nonce.
    pub nonce: Nonce,
}

/// Where claims are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LedgerKind {
    /// Repository labels.
    Label,
    /// Check runs on a commit.
    CheckRun,
    /// Git refs outside of branches and tags.
    Ref,
}

impl LedgerKind {
    /// Every ledger.
    pub const ALL: [Self; 3] = [Self::Label, Self::CheckRun, Self::Ref];

    /// The word used in policy, inputs and handles.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::CheckRun => "check-run",
            Self::Ref => "ref",
        }
    }

    /// The ledger that a word names, if any.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Which ledger is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerChoice {
    /// The one that suits the key.
    Auto,
    /// This one.
    Kind(LedgerKind),
}

impl LedgerChoice {
    /// Every choice with its word in policy and inputs.
    pub const ALL: [(&'static str, Self); 4] = [
        (LedgerKind::Label.as_str(), Self::Kind(LedgerKind::Label)),
        (LedgerKind::CheckRun.as_str(), Self::Kind(LedgerKind::CheckRun)),
        (LedgerKind::Ref.as_str(), Self::Kind(LedgerKind::Ref)),
        ("auto", Self::Auto),
    ];

    /// The choice that a word names, if any.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == word).map(|(_, choice)| choice)
    }
}

impl From<LedgerKind> for LedgerChoice {
    fn from(kind: LedgerKind) -> Self {
        Self::Kind(kind)
    }
}

impl fmt::Display for LedgerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.ledger.as_str())?;
        if let Some(anchor) = &self.anchor {
            write!(f, "@{anchor}")?;
        }
        write!(f, ":{}#{}.{}", self.key, self.number, self.nonce)
    }
}

/// Why a text is no handle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a claim: expected the guard step's output `claim`, LEDGER:KEY#NUMBER.NONCE")]
pub struct BadHandle(pub String);

impl FromStr for Handle {
    type Err = BadHandle;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (ledger, rest) = s.split_once(':')?;
            let (ledger, anchor) = match ledger.split_once('@') {
                Some((ledger, anchor)) => (ledger, Some(anchor.parse().ok()?)),
                None => (ledger, None),
            };
            let (key, claim) = rest.rsplit_once('#')?;
            let (number, nonce) = claim.split_once('.')?;
            let n: u32 = number.parse().ok().filter(|n: &u32| *n > 0 && n.to_string() == number)?;
            Some(Self {
                ledger: LedgerKind::parse(ledger)?,
                anchor,
                key: key.parse().ok()?,
                number: n,
                nonce: nonce.parse().ok()?,
            })
        };
        parse().ok_or_else(|| BadHandle(s.chars().take(120).collect()))
    }
}

/// The prefix of every claim's label name.
pub const LABEL_PREFIX: &str = "rg:";

/// The name of the repository label that is claim `number` of a key: `rg:TASK:DIGEST:NUMBER`, lower case, at most 50
/// characters.
pub fn label_name(task: &Task, digest: &Digest, number: u32) -> String {
    format!("{LABEL_PREFIX}{task}:{digest}:{number}")
}

/// Takes a claim's label name apart into task, digest and number. Anything that [`label_name`] would not write is no
/// claim.
pub fn parse_label_name(name: &str) -> Option<(Task, Digest, u32)> {
    let mut parts = name.strip_prefix(LABEL_PREFIX)?.split(':');
    let task: Task = parts.next()?.parse().ok()?;
    let digest: Digest = parts.next()?.parse().ok()?;
    let number = parts.next()?;
    let n: u32 = number.parse().ok().filter(|n: &u32| *n > 0 && n.to_string() == number)?;
    parts.next().is_none().then_some((task, digest, n))
}

/// The name of the check runs that are a key's claims. On the commit that the key itself names it says the task, so that
/// people see one check a task; on an anchor, where the claims of all keys stand, it says the key's digest too, so that
/// a key's claims are found among those of others.
pub fn check_name(key: &Key) -> String {
    match key.head_sha() {
        Some(_) => format!("run-guard {}", key.task()),
        None => format!("run-guard {} {}", key.task(), key.digest()),
    }
}

/// What comes before the number in the text of a claim's check run.
const CLAIM_LINE: &str = "claim ";

/// The text of a claim's check run: its number and its record, each on a line of its own.
pub fn check_text(number: u32, record: &Record) -> String {
    format!("{CLAIM_LINE}{number}\n`{}`", record.encode())
}

/// Reads the text of a claim's check run: the number, and the record where it is one.
pub fn parse_check_text(text: &str) -> Result<(u32, Result<Record, BadRecord>), BadRecord> {
    let (number, record) = text.split_once('\n').unwrap_or((text, ""));
    let number = number.trim_end_matches('\r').strip_prefix(CLAIM_LINE);
    let number = number.and_then(|n| n.parse().ok().filter(|parsed: &u32| *parsed > 0 && parsed.to_string() == n));
    let number = number.ok_or(BadRecord("the check run's text does not name the claim's number"))?;
    let record = record.strip_prefix('`').and_then(|record| record.strip_suffix('`'));
    Ok((number, record.ok_or(BadRecord("the check run's text holds no record")).and_then(Record::decode)))
}

/// What every claim's ref starts with.
pub const REF_PREFIX: &str = "refs/run-guard/";

/// What the refs of a key's claims start with.
pub fn ref_prefix(digest: &Digest) -> String {
    format!("{REF_PREFIX}{digest}/")
}

/// The name of the ref that is claim `number` of a key: `refs/run-guard/DIGEST/NUMBER`.
pub fn ref_name(digest: &Digest, number: u32) -> String {
    format!("{}{number}", ref_prefix(digest))
}

/// Takes a claim's ref apart into digest and number. Anything that [`ref_name`] would not write is no claim.
pub fn parse_ref_name(name: &str) -> Option<(Digest, u32)> {
    let (digest, number) = name.strip_prefix(REF_PREFIX)?.split_once('/')?;
    let n: u32 = number.parse().ok().filter(|n: &u32| *n > 0 && n.to_string() == number)?;
    Some((digest.parse().ok()?, n))
}

/// The message of a claim's commit: a line for people, the record, and the task, which a ref's name does not hold.
pub fn commit_message(key: &Key, number: u32, record: &Record) -> String {
    let what = match &record.state {
        ClaimState::Open => "opened".to_owned(),
        ClaimState::Settled(settlement) => settlement.outcome.to_string(),
        ClaimState::Sweep { .. } => "sweeps".to_owned(),
    };
    format!("run-guard: {key} claim {number} {what}\n\n{}\n{TASK_LINE}{}\n", record.encode(), key.task())
}

/// What comes before the task in a claim's commit message.
const TASK_LINE: &str = "task: ";

/// Reads a claim's commit message: the task and the record. The lines are looked for by their form, and must be there
/// once.
pub fn parse_commit_message(message: &str) -> Result<(Task, Record), BadRecord> {
    let only = |mut found: Vec<&str>, what| match (found.pop(), found.is_empty()) {
        (Some(line), true) => Ok(line.to_owned()),
        _ => Err(BadRecord(what)),
    };
    let starting = |prefix: &str| message.lines().filter(|line| line.starts_with(prefix)).collect::<Vec<_>>();
    let task = only(starting(TASK_LINE), "the commit message does not name one task")?;
    let record = only(starting("rg"), "the commit message does not hold one record")?;
    let task = task.strip_prefix(TASK_LINE).and_then(|task| task.parse().ok());
    Ok((task.ok_or(BadRecord("the commit message names no task"))?, Record::decode(&record)?))
}

/// The shared label that says that a task is done on an item: `run-guard:TASK:done`.
pub fn done_label(task: &Task) -> String {
    format!("run-guard:{task}:done")
}

/// The shared label that says that a person must look at what a task left on an item: `run-guard:TASK:review`.
pub fn review_label(task: &Task) -> String {
    format!("run-guard:{task}:review")
}
