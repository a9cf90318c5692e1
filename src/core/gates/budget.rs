//! Is there budget left for one more run?
//!
//! Counted from the claims in the ledger, so skips cost nothing and there is no counter that could drift.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Context, Judgement, clock, in_words};
use crate::core::claim::{Claim, ClaimState, Outcome};
use crate::core::decision::{Reason, Stop};
use crate::core::facts::{Fact, Question, Window, WindowClaim};
use crate::core::policy::{Budget, BurstPer};

/// How few free places make it worth to rank the claims once more after one's own was made.
const NEAR: usize = 10;

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
    if let Some(name) = window.unreadable.first() {
        return Judgement::stop(
            Reason::UnknownUsage,
            format!("{} claims in the budget window cannot be read, the first is {name}", window.unreadable.len()),
        );
    }
    match over(cx, budget, window) {
        Some(stop) => stop.into(),
        None => Judgement::pass(left(cx, budget, window)),
    }
}

/// Whether the claim that is about to be made must be ranked among the window's afterwards.
pub fn is_near(cx: &Context<'_>) -> bool {
    let budget = &cx.rules.budget;
    let Fact::Known(window) = &cx.facts.window else { return false };
    let near = |limit: Option<u32>, span| {
        limit.is_some_and(|limit| count(window, cx.now, span, |_| true).len() + NEAR >= size(limit))
    };
    near(budget.max_runs_per_hour, TimeDelta::hours(1))
        || near(budget.max_runs_per_day, TimeDelta::hours(24))
        || budget.max_cost_per_day_cents.is_some()
        || budget.burst.is_some()
        || budget.cool_down.is_some()
}

/// After the claim was made: the objection, if it is over a cap when all claims of the window are ranked by when they
/// were opened, those opened in the same second by name. `own` is one's own claim.
pub fn rank(cx: &Context<'_>, window: &Window, own: &WindowClaim) -> Option<Stop> {
    let place = |c: &WindowClaim| (c.claim.record.opened_at, c.task.clone(), c.digest.clone(), c.claim.number);
    let mine = place(own);
    let before = Window {
        claims: window.claims.iter().filter(|c| place(c) < mine).cloned().collect(),
        complete_since: window.complete_since,
        unreadable: Vec::new(),
    };
    over(cx, &cx.rules.budget, &before)
}

/// The first cap that one more run would break.
fn over(cx: &Context<'_>, budget: &Budget, window: &Window) -> Option<Stop> {
    let runs = [
        (budget.max_runs_per_hour, TimeDelta::hours(1), Reason::BudgetHour, "hour"),
        (budget.max_runs_per_day, TimeDelta::hours(24), Reason::BudgetDay, "day"),
    ];
    for (limit, span, reason, name) in runs {
        let Some(limit) = limit else { continue };
        let used = count(window, cx.now, span, |_| true);
        if used.len() >= size(limit) {
            let free = frees_at(&used, span, size(limit), cx.now);
            let message = format!(
                "{} of {limit} runs of the last {name} are used; the next place is free at {}",
                used.len(),
                clock(free)
            );
            return Some(Stop::new(reason, message).with_retry_at(free));
        }
    }
    if let Some(limit) = budget.max_cost_per_day_cents {
        let used = count(window, cx.now, TimeDelta::hours(24), |_| true);
        let estimate = estimate(budget, &used);
        let spent: u64 = used.iter().map(|c| cost(&c.claim, estimate)).sum();
        if spent.saturating_add(estimate) > limit || spent >= limit {
            let free = frees_at(&used, TimeDelta::hours(24), used.len(), cx.now);
            let message = format!(
                "{} of {} USD of the last day are spent or reserved, and one more run is taken to cost {}",
                dollars(spent),
                dollars(limit),
                dollars(estimate)
            );
            return Some(Stop::new(Reason::BudgetCost, message).with_retry_at(free));
        }
    }
    if let Some(burst) = budget.burst {
        let number = cx.trigger.resource.number();
        let actor = cx.trigger.asker().and_then(|a| a.id);
        let same = |c: &WindowClaim| match burst.per {
            BurstPer::Resource => c.claim.record.number == number,
            BurstPer::Actor => actor.is_some() && c.claim.record.actor == actor,
        };
        let used = count(window, cx.now, burst.within, same);
        if used.len() >= size(burst.runs) {
            let free = frees_at(&used, burst.within, size(burst.runs), cx.now);
            let per = match burst.per {
                BurstPer::Resource => cx.trigger.resource.in_words(),
                BurstPer::Actor => "this account".to_owned(),
            };
            let message = format!(
                "{per} has had {} runs within {}; {} are allowed",
                used.len(),
                in_words(burst.within),
                burst.runs
            );
            return Some(Stop::new(Reason::Burst, message).with_retry_at(free));
        }
    }
    if let Some(rest) = budget.cool_down {
        let number = cx.trigger.resource.number();
        let used = count(window, cx.now, rest, |c| c.claim.record.number == number && c.task == cx.task.as_str());
        if let Some(last) = used.iter().map(|c| c.claim.record.opened_at).max() {
            let free = last + rest;
            let message = format!(
                "{} was worked on {} ago and rests for {}, until {}",
                cx.trigger.resource.in_words(),
                in_words(cx.now - last),
                in_words(rest),
                clock(free)
            );
            return Some(Stop::new(Reason::CoolDown, message).with_retry_at(free));
        }
    }
    None
}

/// What is left, in words.
fn left(cx: &Context<'_>, budget: &Budget, window: &Window) -> String {
    let mut words = Vec::new();
    if let Some(limit) = budget.max_runs_per_hour {
        let used = count(window, cx.now, TimeDelta::hours(1), |_| true).len();
        words.push(format!("{used} of {limit} runs this hour"));
    }
    if let Some(limit) = budget.max_runs_per_day {
        let used = count(window, cx.now, TimeDelta::hours(24), |_| true).len();
        words.push(format!("{used} of {limit} runs this day"));
    }
    if let Some(limit) = budget.max_cost_per_day_cents {
        words.push(format!("{} of {} USD this day", dollars(spent_cents(cx, window)), dollars(limit)));
    }
    if words.is_empty() { "within the caps".to_owned() } else { words.join(", ") }
}

/// What the runs of the last day have cost or are taken to cost, in cents.
pub fn spent_cents(cx: &Context<'_>, window: &Window) -> u64 {
    let used = count(window, cx.now, TimeDelta::hours(24), |_| true);
    let estimate = estimate(&cx.rules.budget, &used);
    used.iter().map(|c| cost(&c.claim, estimate)).sum()
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

/// When so many of the oldest have left the window that fewer than `limit` are in it.
fn frees_at(used: &[&WindowClaim], span: TimeDelta, limit: usize, now: DateTime<Utc>) -> DateTime<Utc> {
    let mut opened: Vec<_> = used.iter().map(|c| c.claim.record.opened_at).collect();
    opened.sort_unstable();
    let leaving = opened.len().saturating_sub(limit.max(1));
    opened.get(leaving).map_or(now, |at| *at + span)
}

/// What one run is taken to cost: what the policy says, else the median of those that said, else nothing.
fn estimate(budget: &Budget, used: &[&WindowClaim]) -> u64 {
    if let Some(cents) = budget.estimate_cents {
        return cents;
    }
    let mut known: Vec<u64> = used
        .iter()
        .filter_map(|c| match &c.claim.record.state {
            ClaimState::Settled(s) => s.cost_cents,
            _ => None,
        })
        .collect();
    known.sort_unstable();
    known.get(known.len() / 2).copied().unwrap_or(0)
}

fn cost(claim: &Claim, estimate: u64) -> u64 {
    match &claim.record.state {
        ClaimState::Settled(s) => s.cost_cents.unwrap_or(estimate),
        _ => estimate,
    }
}

/// Cents as dollars.
pub fn dollars(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn size(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
