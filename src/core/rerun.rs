//! Explicit reruns: a person's wish to have a piece of work done again.
//!
//! A wish counts once. It has an id, which the claim that it opens records, and it must be newer than what it wants
//! done again.

use chrono::{DateTime, Utc};

use super::claim::{ClaimRead, RerunId};
use super::facts::{Claims, Fact, Question, RunState};
use super::gates::Context;
use super::identity::Who;
use super::trigger::Asks;

/// What a trigger says of a rerun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// It carries no wish, or one that was granted already or is older than what it is about.
    None,
    /// It cannot be said before this is read.
    Ask(Question),
    /// It carries one, but GitHub does not say whether it is new.
    Unknown(String),
    /// It carries one that counts.
    Is(RerunId),
}

/// The wish of this trigger, if it is newer than `since` (`None`: than anything) and none of the claims records it.
pub fn wish(cx: &Context<'_>, claims: &Claims, since: Option<DateTime<Utc>>) -> Wish {
    let (id, at) = if cx.rerun_by_person().is_some() {
        (own_attempt(cx), own_start(cx))
    } else if let Asks::Rerun(id) = cx.trigger.asks(cx.rules) {
        if cx.sender() != Who::Person {
            return Wish::None;
        }
        (id, comment_time(cx))
    } else if let Some(at) = trigger_label_added(cx) {
        (RerunId::Label(u64::try_from(at.timestamp()).unwrap_or(0)), When::At(at))
    } else {
        return Wish::None;
    };
    if records(claims, &id) {
        return Wish::None;
    }
    match (since, at) {
        (None, _) => Wish::Is(id),
        (Some(since), When::At(at)) => {
            if at > since {
                Wish::Is(id)
            } else {
                Wish::None
            }
        }
        (Some(_), When::Ask(question)) => Wish::Ask(question),
        (Some(_), When::Unknown(why)) => Wish::Unknown(why),
    }
}

/// The id of the wish that a person's re-run of this workflow run is.
pub fn own_attempt(cx: &Context<'_>) -> RerunId {
    RerunId::Attempt(cx.trigger.run.run, cx.trigger.run.attempt)
}

/// Whether a claim of the key records this wish already.
pub fn records(claims: &Claims, id: &RerunId) -> bool {
    claims.values().any(|c| matches!(c, ClaimRead::Readable(c) if c.record.rerun.as_ref() == Some(id)))
}

/// When a wish was made.
enum When {
    At(DateTime<Utc>),
    Ask(Question),
    Unknown(String),
}

/// When the attempt that asks was started.
fn own_start(cx: &Context<'_>) -> When {
    let own = &cx.trigger.run;
    match &cx.facts.own_run {
        Fact::Unasked => When::Ask(Question::HolderRun(own.run)),
        Fact::Known(RunState::Found { attempt, started_at: Some(at), .. }) if *attempt == own.attempt => When::At(*at),
        Fact::Unknown(why) => When::Unknown(format!("run {} could not be read: {why}", own.run)),
        Fact::Known(_) => {
            When::Unknown(format!("GitHub does not say when attempt {} of run {} began", own.attempt, own.run))
        }
    }
}

/// When the rerun phrase was written: an edit brings it later than the comment.
fn comment_time(cx: &Context<'_>) -> When {
    let comment = cx.trigger.comment.as_ref();
    let at = match cx.trigger.action.as_str() {
        "edited" => comment.and_then(|c| c.updated_at),
        _ => comment.and_then(|c| c.created_at),
    };
    at.map_or_else(|| When::Unknown("the payload does not say when the comment was written".to_owned()), When::At)
}

/// When a person last added the trigger label that this trigger is about. Only the labels that the policy names are
/// wishes: anybody's other label says nothing of an agent.
fn trigger_label_added(cx: &Context<'_>) -> Option<DateTime<Utc>> {
    let label = cx.trigger.label.as_deref().filter(|label| cx.rules.is_trigger_label(label))?;
    if cx.trigger.action != "labeled" || cx.sender() != Who::Person {
        return None;
    }
    let events = &cx.facts.live()?.label_events;
    let newest = events.iter().rev().find(|e| e.added && e.label.eq_ignore_ascii_case(label))?;
    (cx.who(newest.actor.as_ref()) == Who::Person).then_some(newest.at)
}
