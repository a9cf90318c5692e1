//! Is there budget left for one more run?
//!
//! Counted from the claims in the ledger, so skips cost nothing and there is no counter that could drift.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Context, Judgement, clock, in_words};
use crate::core::claim::{Claim, ClaimState, Outcome};
use crate::core::decision::{Reason, Stop};
use crate::core::facts::{Fact, Question, Window, WindowClaim};
use crate::core::policy::{Budget, Burst, BurstPer};

/// How few free places make it worth to rank the claims once more after one's own was made.
const NEAR: usize = 10;

const HOUR: TimeDelta = TimeDelta::hours(1);
const DAY: TimeDelta = TimeDelta::hours(24);

/// The gate.
pub fn judge(cx: &Context<'_>) -> Judgement {
    let budget = &cx.rules.budget;
    let Some(span) = budget.window() else { return Judgement::pass("no cap is set") };
    let window = match &cx.facts.window {
        Fact::Unasked => return Judgement::Ask(Question::Facts),
        Fact::Unknown(why) => {
            return Judgement::stop(Reason::UnknownUsage, format!("the claims could not be listed: {why}"));
        }
        Fact::Known(window) => window,
    };
    if window.complete_since.is_some_and(|since| since > cx.now - span) {
        return Judgement::Ask(Question::MoreWindow);
    }
    if let Some(stop) = unreadable(window) {
        return stop.into();
    }
    match over(cx, budget, window) {
        Some(stop) => stop.into(),
        None => Judgement::pass(left(cx, budget, window)),
    }
}

fn unreadable(window: &Window) -> Option<Stop> {
    let name = window.unreadable.first()?;
    let many = window.unreadable.len();
    Some(Stop::new(
        Reason::UnknownUsage,
        format!("{many} claims in the budget window cannot be read, the first is {name}"),
    ))
}

/// Whether the claim that is about to be made must be ranked among the window's afterwards.
pub fn is_near(cx: &Context<'_>) -> bool {
    let budget = &cx.rules.budget;
    let Fact::Known(window) = &cx.facts.window else { return false };
    let near = |limit: Option<u32>, span| {
        limit.is_some_and(|limit| count(window, cx.now, span, |_| true).len() + NEAR >= size(limit))
    };
    near(budget.max_runs_per_hour, HOUR)
        || near(budget.max_runs_per_day, DAY)
        || budget.max_cost_per_day_cents.is_some()
        || budget.burst.is_some()
        || budget.cool_down.is_some()
}

/// After the claim was made: the objection, if it is over a cap when all claims of the window are ranked by when they
/// were opened, those opened in the same second by name. `own` is one's own claim, whether or not the window shows it.
pub fn rank(cx: &Context<'_>, window: &Window, own: &WindowClaim) -> Option<Stop> {
    let place = |c: &WindowClaim| (c.claim.record.opened_at, c.task.clone(), c.digest.clone(), c.claim.number);
    let mine = place(own);
    let before = Window {
        claims: window.claims.iter().filter(|c| place(c) < mine).cloned().collect(),
        complete_since: window.complete_since,
        unreadable: Vec::new(),
    };
    unreadable(window).or_else(|| over(cx, &cx.rules.budget, &before))
}

/// The first cap that one more run would break.
fn over(cx: &Context<'_>, budget: &Budget, window: &Window) -> Option<Stop> {
    runs(cx, window, budget.max_runs_per_hour, HOUR, Reason::BudgetHour, "hour")
        .or_else(|| runs(cx, window, budget.max_runs_per_day, DAY, Reason::BudgetDay, "day"))
        .or_else(|| money(cx, window, budget))
        .or_else(|| burst(cx, window, budget.burst?))
        .or_else(|| cool_down(cx, window, budget.cool_down?))
}

fn runs(
    cx: &Context<'_>,
    window: &Window,
    limit: Option<u32>,
    span: TimeDelta,
    reason: Reason,
    name: &str,
) -> Option<Stop> {
    let limit = limit?;
    let used = count(window, cx.now, span, |_| true);
    if used.len() < size(limit) {
        return None;
    }
    let stop = Stop::new(reason, format!("{} of {limit} runs of the last {name} are used", used.len()));
    Some(free_at(stop, frees_at(&used, span, size(limit))))
}

fn money(cx: &Context<'_>, window: &Window, budget: &Budget) -> Option<Stop> {
    let limit = budget.max_cost_per_day_cents?;
    let used = count(window, cx.now, DAY, |_| true);
    let Some(estimate) = estimate(budget, &used) else {
        let message = "no run of the last day says what it cost, and the policy has no `estimate-usd`";
        return Some(Stop::new(Reason::UnknownUsage, message));
    };
    if fits(spent(&used, estimate), estimate, limit) {
        return None;
    }
    // The oldest leave first; the place is free when what is left leaves room for one more.
    let mut left = used.clone();
    left.sort_unstable_by_key(|c| c.claim.record.opened_at);
    let leaving = (1..=left.len())
        .find(|n| left.get(*n..).is_some_and(|rest| fits(spent(rest, estimate), estimate, limit)))
        .and_then(|n| left.get(n - 1));
    let stop = Stop::new(
        Reason::BudgetCost,
        format!(
            "{} of {} USD of the last day are spent or reserved, and one more run is taken to cost {}",
            dollars(spent(&used, estimate)),
            dollars(limit),
            dollars(estimate)
        ),
    );
    Some(free_at(stop, leaving.map(|c| c.claim.record.opened_at + DAY)))
}

/// Whether one more run fits under what may be spent. A cap that is reached leaves room for nothing, not even for a
/// run of which nobody knows what it costs.
fn fits(spent: u64, estimate: u64, limit: u64) -> bool {
    spent < limit && spent.saturating_add(estimate) <= limit
}

fn burst(cx: &Context<'_>, window: &Window, burst: Burst) -> Option<Stop> {
    let (number, actor) = (cx.trigger.resource.number(), cx.trigger.actor_id());
    let same = |c: &WindowClaim| match burst.per {
        BurstPer::Resource => number.is_some() && c.claim.record.number == number,
        BurstPer::Actor => actor.is_some() && c.claim.record.actor == actor,
    };
    let used = count(window, cx.now, burst.within, same);
    if used.len() < size(burst.runs) {
        return None;
    }
    let per = match burst.per {
        BurstPer::Resource => cx.trigger.resource.in_words(),
        BurstPer::Actor => cx.trigger.sender.as_ref().map_or("nobody", |s| s.login.as_str()).to_owned(),
    };
    let message = format!("{per} has had {} of {} runs within {}", used.len(), burst.runs, in_words(burst.within));
    Some(free_at(Stop::new(Reason::Burst, message), frees_at(&used, burst.within, size(burst.runs))))
}

fn cool_down(cx: &Context<'_>, window: &Window, rest: TimeDelta) -> Option<Stop> {
    let number = cx.trigger.resource.number();
    let same = |c: &WindowClaim| number.is_some() && c.claim.record.number == number && c.task == cx.task.as_str();
    let used = count(window, cx.now, rest, same);
    let last = used.iter().map(|c| c.claim.record.opened_at).max()?;
    let message = format!(
        "{} was worked on {} ago and rests for {}",
        cx.trigger.resource.in_words(),
        in_words(cx.now - last),
        in_words(rest)
    );
    Some(free_at(Stop::new(Reason::CoolDown, message), Some(last + rest)))
}

/// Says when there is a free place; `None`: never under this policy.
fn free_at(stop: Stop, at: Option<DateTime<Utc>>) -> Stop {
    let Some(at) = at else {
        return Stop { message: format!("{}; the policy leaves room for none", stop.message), ..stop };
    };
    Stop { message: format!("{}; there is room again at {}", stop.message, clock(at)), ..stop }.with_retry_at(at)
}

/// What is left, in words.
fn left(cx: &Context<'_>, budget: &Budget, window: &Window) -> String {
    let mut words = Vec::new();
    if let Some(limit) = budget.max_runs_per_hour {
        let used = count(window, cx.now, HOUR, |_| true).len();
        words.push(format!("{used} of {limit} runs this hour"));
    }
    if let Some(limit) = budget.max_runs_per_day {
        let used = count(window, cx.now, DAY, |_| true).len();
        words.push(format!("{used} of {limit} runs this day"));
    }
    if let Some(limit) = budget.max_cost_per_day_cents {
        words.push(format!("{} of {} USD this day", dollars(spent_cents(cx, window)), dollars(limit)));
    }
    if words.is_empty() { "within the caps".to_owned() } else { words.join(", ") }
}

/// What the runs of the last day have cost or are taken to cost, in cents.
pub fn spent_cents(cx: &Context<'_>, window: &Window) -> u64 {
    let used = count(window, cx.now, DAY, |_| true);
    spent(&used, estimate(&cx.rules.budget, &used).unwrap_or(0))
}

/// How many runs were started within a span up to now.
pub fn runs_within(window: &Window, now: DateTime<Utc>, span: TimeDelta) -> usize {
    count(window, now, span, |_| true).len()
}

/// The claims that count against a cap: opened within the span, and not one that never ran.
fn count(
    window: &Window,
    now: DateTime<Utc>,
    span: TimeDelta,
    also: impl Fn(&WindowClaim) -> bool,
) -> Vec<&WindowClaim> {
    let counts = |c: &&WindowClaim| match &c.claim.record.state {
        ClaimState::Sweep { .. } => false,
        ClaimState::Settled(s) => s.outcome != Outcome::Withdrawn,
        ClaimState::Open => true,
    };
    window.claims.iter().filter(|c| c.claim.record.opened_at > now - span).filter(counts).filter(|c| also(c)).collect()
}

/// When so many of the oldest have left the window that fewer than `limit` are in it; `None` if that never is.
fn frees_at(used: &[&WindowClaim], span: TimeDelta, limit: usize) -> Option<DateTime<Utc>> {
    if limit == 0 {
        return None;
    }
    let mut opened: Vec<_> = used.iter().map(|c| c.claim.record.opened_at).collect();
    opened.sort_unstable();
    opened.get(opened.len().checked_sub(limit)?).map(|at| *at + span)
}

/// What one run is taken to cost: what the policy says, else the median of those that said, else nothing as long as
/// none has ended. `None`: runs have ended, and none says.
fn estimate(budget: &Budget, used: &[&WindowClaim]) -> Option<u64> {
    if budget.estimate_cents.is_some() {
        return budget.estimate_cents;
    }
    let ended = used.iter().filter_map(|c| match &c.claim.record.state {
        ClaimState::Settled(s) => Some(s.cost_cents),
        ClaimState::Open | ClaimState::Sweep { .. } => None,
    });
    let ended: Vec<Option<u64>> = ended.collect();
    let mut known: Vec<u64> = ended.iter().copied().flatten().collect();
    known.sort_unstable();
    match known.get(known.len() / 2) {
        Some(median) => Some(*median),
        None if ended.is_empty() => Some(0),
        None => None,
    }
}

/// What these runs have cost or are taken to cost.
fn spent(used: &[&WindowClaim], estimate: u64) -> u64 {
    let cost = |claim: &Claim| match &claim.record.state {
        ClaimState::Settled(s) => s.cost_cents.unwrap_or(estimate),
        _ => estimate,
    };
    used.iter().fold(0, |sum: u64, c| sum.saturating_add(cost(&c.claim)))
}

/// Cents as dollars.
pub fn dollars(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn size(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
