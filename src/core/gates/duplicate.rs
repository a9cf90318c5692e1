//! Has this key been worked on, or is it being worked on?
//!
//! The table of what may follow the highest claim of a key is here and nowhere else. Whether an open claim's owner
//! still works is looked up in [`crate::core::holder`], what a person wishes again in [`crate::core::rerun`].

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use super::{Context, clock, in_words};
use crate::core::claim::{
    Cause, Claim, ClaimPlan, ClaimRead, ClaimState, Outcome, RerunId, Settlement, done_label, review_label,
};
use crate::core::decision::{Reason, Stop};
use crate::core::facts::{Claims, Comment, Fact, LabelEvent, Question, ResourceState};
use crate::core::holder::{Standing, standing};
use crate::core::identity::{Actor, Who};
use crate::core::policy::{Memory, OnAbandoned};
use crate::core::rerun::{Wish, own_attempt, records, wish};
use crate::core::text::is_working_notice;

/// What the gate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The gate cannot say before this is read.
    Ask(Question),
    /// An objection, which decides.
    Stop(Box<Stop>),
    /// The claim that may be made, and what was seen.
    Yes(Box<ClaimPlan>, String),
}

impl Next {
    fn stop(reason: Reason, message: impl Into<String>) -> Self {
        Stop::new(reason, message).into()
    }

    fn yes(number: u32, cause: Cause, rerun: Option<RerunId>, saw: impl Into<String>) -> Self {
        let plan = ClaimPlan { number, cause, rerun, takes_over: None, rank_after: false };
        Self::Yes(Box::new(plan), saw.into())
    }

    /// The same as a take-over from a claim whose owner is over.
    fn taking_over(self, claim: &Claim) -> Self {
        match self {
            Self::Yes(mut plan, saw) => {
                plan.takes_over = Some(Box::new(claim.clone()));
                Self::Yes(plan, saw)
            }
            Self::Ask(_) | Self::Stop(_) => self,
        }
    }
}

impl From<Stop> for Next {
    fn from(stop: Stop) -> Self {
        Self::Stop(Box::new(stop))
    }
}

/// The gate.
pub fn judge(cx: &Context<'_>) -> Next {
    let claims = match &cx.facts.claims {
        Fact::Unasked => return Next::Ask(Question::Facts),
        Fact::Unknown(why) => {
            return Next::stop(Reason::LedgerUnreachable, format!("the key's claims could not be read: {why}"));
        }
        Fact::Known(claims) => claims,
    };
    let claims = match as_read_last(cx, claims) {
        Ok(claims) => claims,
        Err(stop) => return stop.into(),
    };
    match claims.last_key_value() {
        None => without_claims(cx),
        Some((_, ClaimRead::Unreadable { number, why, .. })) => Next::stop(
            Reason::PreviousFailed,
            format!("claim {number} of this key is there but cannot be read ({why}), so it is not free"),
        ),
        Some((_, ClaimRead::Readable(claim))) => match &claim.record.state {
            ClaimState::Sweep { .. } => Next::stop(
                Reason::Settling,
                format!("claim {} holds the key while older claims are swept", claim.number),
            ),
            ClaimState::Settled(settlement) => settled(cx, &claims, claim, settlement),
            ClaimState::Open => open(cx, &claims, claim),
        },
    }
}

/// The claims, with the second read of the highest in its place: it is the newer one, so a claim that was settled
/// meanwhile is judged as settled.
fn as_read_last<'a>(cx: &Context<'_>, claims: &'a Claims) -> Result<Cow<'a, Claims>, Stop> {
    let (Fact::Known(Some(again)), Some((number, first))) = (&cx.facts.second_read, claims.last_key_value()) else {
        return Ok(Cow::Borrowed(claims));
    };
    if again.number() != *number || again == first {
        return Ok(Cow::Borrowed(claims));
    }
    if let (ClaimRead::Readable(first), ClaimRead::Readable(again)) = (first, again)
        && first.record.owner != again.record.owner
    {
        let run = again.record.owner.run;
        return Err(Stop::new(Reason::InProgress, format!("claim {number} went to run {run} while it was looked at"))
            .with_link(format!("run {run}"), cx.run_url(run)));
    }
    let mut claims = claims.clone();
    claims.insert(*number, again.clone());
    Ok(Cow::Owned(claims))
}

/// No claim of the key is left: the item's own labels remember.
fn without_claims(cx: &Context<'_>) -> Next {
    let Some((message, reason, since)) = remembered(cx) else {
        return Next::yes(1, Cause::First, None, "no run has claimed this yet");
    };
    let saw = format!("{message}, and a rerun was asked for since");
    rerun(cx, &Claims::new(), since, 1, saw).unwrap_or_else(|| Next::stop(reason, message))
}

/// What the shared labels of the item remember of its work, and since when at the latest.
fn remembered(cx: &Context<'_>) -> Option<(String, Reason, Option<DateTime<Utc>>)> {
    if cx.key.version().is_some() || cx.rules.memory == Memory::None {
        return None;
    }
    let resource = cx.facts.live()?;
    // Label events older than those that were read are older than each of them.
    let oldest = resource.label_events.first().map(|e| e.at);
    let done = done_label(cx.task);
    let last = last_event(resource, &done);
    if resource.has_label(&done) {
        let since = last.map(|e| e.at).or(oldest);
        return Some((format!("the label {done} says that it is done"), Reason::AlreadyDone, since));
    }
    // Only a person who takes the label off lets the work be done again. One that is merely gone was pruned.
    if let Some(event) = last.filter(|e| e.added || cx.who(e.actor.as_ref()) != Who::Person) {
        let message = format!("the label {done} was on it, and no person took it off");
        return Some((message, Reason::AlreadyDone, Some(event.at)));
    }
    let review = review_label(cx.task);
    resource.has_label(&review).then(|| {
        let since = last_event(resource, &review).map(|e| e.at).or(oldest);
        (format!("the label {review} says that a person must look first"), Reason::PreviousFailed, since)
    })
}

fn last_event<'a>(resource: &'a ResourceState, label: &str) -> Option<&'a LabelEvent> {
    resource.label_events.iter().rev().find(|e| e.label.eq_ignore_ascii_case(label))
}

/// What an explicit rerun leads to, if the trigger is one.
fn rerun(cx: &Context<'_>, claims: &Claims, since: Option<DateTime<Utc>>, next: u32, saw: String) -> Option<Next> {
    match wish(cx, claims, since) {
        Wish::None => None,
        Wish::Ask(question) => Some(Next::Ask(question)),
        Wish::Unknown(why) => Some(Next::stop(
            Reason::LedgerUnreachable,
            format!("it cannot be told whether the rerun was asked for before the last run ended: {why}"),
        )),
        Wish::Is(id) => Some(Next::yes(next, Cause::Rerun, Some(id), saw)),
    }
}

/// A person re-ran the very run that owns the claim.
fn rerun_of_owner(cx: &Context<'_>, claims: &Claims, claim: &Claim, left: &str) -> Option<Next> {
    let (own, owner) = (&cx.trigger.run, &claim.record.owner);
    let person = cx.rerun_by_person().filter(|_| owner.run == own.run && owner.attempt < own.attempt)?;
    let id = own_attempt(cx);
    if records(claims, &id) {
        return None;
    }
    let saw = format!("{} re-ran this run, whose attempt {} {left}", person.login, owner.attempt);
    Some(Next::yes(claim.number.saturating_add(1), Cause::Rerun, Some(id), saw))
}

/// What may follow a claim whose owner wrote an outcome.
fn settled(cx: &Context<'_>, claims: &Claims, claim: &Claim, settlement: &Settlement) -> Next {
    let (n, next) = (claim.number, claim.number.saturating_add(1));
    let outcome = settlement.outcome;
    if let Some(next) = rerun_of_owner(cx, claims, claim, &format!("ended {outcome}")) {
        return next;
    }
    let ago = in_words(cx.now - settlement.at);
    let ended = format!("run {} ended {outcome} under claim {n}, {ago} ago", claim.record.owner.run);
    if matches!(outcome, Outcome::Withdrawn | Outcome::Superseded) {
        return Next::yes(next, Cause::Retry, None, ended);
    }
    let saw = format!("{ended}, and a rerun was asked for since");
    if let Some(next) = rerun(cx, claims, Some(settlement.at), next, saw) {
        return next;
    }
    let reason = match outcome {
        Outcome::Completed | Outcome::NoChange => Reason::AlreadyDone,
        Outcome::FailedBeforeWrite => return failed_before_write(cx, claims, claim, settlement, &ended),
        Outcome::FailedAfterWrite | Outcome::NeedsReview | Outcome::Withdrawn | Outcome::Superseded => {
            Reason::PreviousFailed
        }
    };
    cx.with_claim_links(Stop::new(reason, ended), claim).into()
}

/// A claim whose owner saw nothing that its agent had written. It may have looked too early: what an agent writes last
/// can show a while later. So it is looked for once more, some time after the end.
fn failed_before_write(cx: &Context<'_>, claims: &Claims, claim: &Claim, settled: &Settlement, ended: &str) -> Next {
    let next = retry(cx, claims, claim, Cause::Retry, ended);
    if !matches!(next, Next::Yes(..)) {
        return next;
    }
    if let Err(next) = looked_again(cx, claim.number, settled.at, ended) {
        return *next;
    }
    match writes_between(cx, claim.record.opened_at, settled.at + cx.rules.settle_grace) {
        Some((because, link)) => objection(cx, claim, format!("{ended}, but {because}"), link),
        None => next,
    }
}

/// One more try after a claim that left nothing behind.
fn retry(cx: &Context<'_>, claims: &Claims, claim: &Claim, cause: Cause, ended: &str) -> Next {
    let (used, most) = (attempts(claims), cx.rules.max_attempts);
    if used >= most {
        let stop = Stop::new(Reason::AttemptsExhausted, format!("{ended}; that was attempt {used} of {most}"));
        return cx.with_claim_links(stop, claim).into();
    }
    Next::yes(claim.number.saturating_add(1), cause, None, format!("{ended}; this is attempt {} of {most}", used + 1))
}

/// How many claims since the last rerun, that one included, ran or may have run.
fn attempts(claims: &Claims) -> u32 {
    let mut used = 0_u32;
    for read in claims.values().rev() {
        let ClaimRead::Readable(claim) = read else {
            used += 1;
            continue;
        };
        let counts = match &claim.record.state {
            ClaimState::Sweep { .. } => false,
            ClaimState::Settled(s) => !matches!(s.outcome, Outcome::Withdrawn | Outcome::Superseded),
            ClaimState::Open => true,
        };
        used += u32::from(counts);
        if claim.record.cause == Cause::Rerun {
            break;
        }
    }
    used
}

/// What may follow a claim without an outcome.
fn open(cx: &Context<'_>, claims: &Claims, claim: &Claim) -> Next {
    if let Some(next) = rerun_of_owner(cx, claims, claim, "left its claim open") {
        return next.taking_over(claim);
    }
    let (owner, record) = (&claim.record.owner, &claim.record);
    match standing(cx, claim) {
        Standing::Ask(question) => Next::Ask(question),
        Standing::Live(status) => {
            let message = format!(
                "run {} (attempt {}) has held claim {} since {}, {} ago, and {status}",
                owner.run,
                owner.attempt,
                claim.number,
                clock(record.opened_at),
                in_words(cx.now - record.opened_at)
            );
            cx.with_claim_links(Stop::new(Reason::InProgress, message), claim).into()
        }
        Standing::Over { since, why } => over(cx, claims, claim, since, &why),
    }
}

/// The owner is over. Before the claim counts as abandoned it is read once more, by name, some time after its owner's
/// end: an old read of a claim that was settled meanwhile must not start completed work again.
fn over(cx: &Context<'_>, claims: &Claims, claim: &Claim, since: DateTime<Utc>, why: &str) -> Next {
    match looked_again(cx, claim.number, since, why) {
        Ok(()) => abandoned(cx, claims, claim, since, why).taking_over(claim),
        Err(next) => *next,
    }
}

/// Whether claim `n` and the resource were read once more, some time after `since`; else what comes first.
fn looked_again(cx: &Context<'_>, n: u32, since: DateTime<Utc>, why: &str) -> Result<(), Box<Next>> {
    let settled_by = since + cx.rules.settle_grace;
    // A time that is yet to come says nothing, and to wait for it would be to lose the work.
    if since <= cx.now && cx.now < settled_by {
        return Err(Box::new(Next::Ask(Question::WaitUntil(settled_by))));
    }
    Err(Box::new(match &cx.facts.second_read {
        Fact::Known(Some(again)) if again.number() == n => return Ok(()),
        Fact::Unasked | Fact::Known(Some(_)) => Next::Ask(Question::SecondRead(n)),
        Fact::Unknown(error) => Next::stop(
            Reason::LedgerUnreachable,
            format!("claim {n} could not be read again before another takes its place: {error}"),
        ),
        Fact::Known(None) => Next::stop(
            Reason::PreviousFailed,
            format!("{why} and claim {n} has vanished while it was read; a vanished claim is never made again"),
        ),
    }))
}

/// The work must not simply be tried again.
fn objection(cx: &Context<'_>, claim: &Claim, message: String, link: Option<String>) -> Next {
    let stop = cx.with_claim_links(Stop::new(Reason::PreviousFailed, message), claim);
    match link {
        Some(url) => stop.with_link("what it wrote", url).into(),
        None => stop.into(),
    }
}

/// The highest claim's owner is over and left no outcome.
fn abandoned(cx: &Context<'_>, claims: &Claims, claim: &Claim, since: DateTime<Utc>, why: &str) -> Next {
    let (n, next) = (claim.number, claim.number.saturating_add(1));
    let saw = format!("{why} and left claim {n} open, and a rerun was asked for since");
    if let Some(next) = rerun(cx, claims, Some(since), next, saw) {
        return next;
    }
    match objection_to_retry(cx, claim) {
        Some((because, link)) => objection(cx, claim, format!("{why} and left claim {n} open; {because}"), link),
        None => {
            retry(cx, claims, claim, Cause::Takeover, &format!("{why} and left claim {n} open with nothing written"))
        }
    }
}

/// Why an abandoned claim's work must not simply be tried again, and the page that shows it.
fn objection_to_retry(cx: &Context<'_>, claim: &Claim) -> Option<(String, Option<String>)> {
    let plain = |because: String| Some((because, None));
    if cx.rules.on_abandoned == OnAbandoned::Review {
        return plain("the policy wants a person to look (`on-abandoned: review`)".to_owned());
    }
    if let Some(effect) = cx.rules.may.iter().find(|e| !e.can_be_read_back()) {
        return plain(format!("the task may {}, which cannot be read back", effect.as_str()));
    }
    // The process of a run that GitHub takes for over may have gone on, so nothing bounds when it wrote.
    writes_between(cx, claim.record.opened_at, DateTime::<Utc>::MAX_UTC)
}

/// What shows that an agent wrote something between two times, or why that cannot be said, and the page that shows it.
fn writes_between(cx: &Context<'_>, began: DateTime<Utc>, ended: DateTime<Utc>) -> Option<(String, Option<String>)> {
    let plain = |because: String| Some((because, None));
    let Some(resource) = cx.facts.live() else {
        return plain("what it wrote cannot be read".to_owned());
    };
    let by_agent = |actor: Option<&Actor>| matches!(cx.who(actor), Who::SelfBot | Who::Agent);
    let wrote = |c: &&Comment| {
        let meanwhile = c.updated_at >= began && c.created_at <= ended;
        by_agent(c.author.as_ref()) && meanwhile && !is_working_notice(&c.body)
    };
    if let Some(comment) = resource.comments.iter().find(wrote) {
        return Some(("it had written a comment".to_owned(), Some(comment.url.clone())));
    }
    if let Some(event) =
        resource.label_events.iter().find(|e| by_agent(e.actor.as_ref()) && (began..=ended).contains(&e.at))
    {
        let did = if event.added { "put on" } else { "taken off" };
        return plain(format!("it had {did} the label {}", event.label));
    }
    let seen = u64::try_from(resource.comments.len()).unwrap_or(u64::MAX);
    if resource.comment_total > seen && resource.comments.first().is_none_or(|first| first.created_at >= began) {
        return plain("so many comments came since that the first of them cannot be seen".to_owned());
    }
    // Without the login of run-guard's own account nobody can say which comments are not its own.
    if cx.facts.viewer().is_none() {
        return plain("it is not known which account its comments would be by".to_owned());
    }
    None
}
