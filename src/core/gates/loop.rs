//! Did automation cause this?

use super::trigger::is_allowed;
use super::{Context, Judgement};
use crate::core::claim::ClaimRead;
use crate::core::decision::{Reason, Stop, Verdict};
use crate::core::facts::{Fact, Question, ResourceState};
use crate::core::identity::{Who, is_written_as_bot, same_login};
use crate::core::marker::Marker;
use crate::core::text;

/// The gate.
pub fn judge(cx: &Context<'_>) -> Judgement {
    if let Some(person) = cx.rerun_by_person() {
        return Judgement::pass(format!("re-run by {}", person.login));
    }
    if cx.facts.viewer == Fact::Unasked {
        return Judgement::Ask(Question::Facts);
    }
    let login = cx.trigger.sender.as_ref().map_or("nobody", |s| s.login.as_str());
    match cx.sender() {
        Who::SelfBot => Judgement::stop(Reason::LoopSelf, format!("{login} is the account of run-guard's own token")),
        Who::Agent => Judgement::stop(Reason::LoopSelf, format!("{login} is an agent")),
        Who::OtherBot if !is_allowed(cx.trigger, cx.policy) => {
            Judgement::stop(Reason::AutomationActor, format!("{login} is a bot that `automation.allow` does not list"))
        }
        Who::OtherBot => match &cx.facts.viewer {
            Fact::Unknown(why) => unknown_self(&format!("{login} is run-guard's own account"), why),
            Fact::Unasked | Fact::Known(_) => rounds(cx, login),
        },
        Who::Person | Who::Unknown => own_words(cx),
    }
}

/// It cannot be told whether the token's own account caused this.
fn unknown_self(whether: &str, why: &str) -> Judgement {
    Judgement::stop(Reason::PermissionUnknown, format!("it cannot be told whether {whether}: {why}"))
}

/// How many comments bots wrote since a person last did something.
fn rounds(cx: &Context<'_>, login: &str) -> Judgement {
    let limit = cx.rules.max_bot_rounds;
    let resource = match &cx.facts.resource {
        Fact::Unasked => return Judgement::Ask(Question::Facts),
        Fact::Unknown(why) => {
            return Judgement::stop(
                Reason::LoopRounds,
                format!("the comments could not be read, so it is not known how long only bots have spoken: {why}"),
            );
        }
        // That the resource is gone is for the state gate to say.
        Fact::Known(None) => return Judgement::pass(format!("{login} is allowed")),
        Fact::Known(Some(resource)) => resource,
    };
    let (bots, whole) = bots_in_a_row(cx, resource);
    let least = if whole { "" } else { "at least " };
    if !whole || bots > usize::try_from(limit).unwrap_or(usize::MAX) {
        return Judgement::stop(
            Reason::LoopRounds,
            format!("{least}{bots} comments by bots came since a person did something, and {limit} are allowed"),
        );
    }
    Judgement::pass(format!("{login} is allowed; {bots} comments by bots since a person did something"))
}

/// The number of comments by bots after the last thing that a person did, and whether that is all of them: older
/// comments than those that were read can go on in the same way.
fn bots_in_a_row(cx: &Context<'_>, resource: &ResourceState) -> (usize, bool) {
    let is_person = |actor| cx.who(actor) == Who::Person;
    let comments = resource.comments.iter().filter(|c| is_person(c.author.as_ref())).map(|c| c.created_at);
    let labels = resource.label_events.iter().filter(|e| is_person(e.actor.as_ref())).map(|e| e.at);
    let last = comments.chain(labels).max();
    let by_bots = resource
        .comments
        .iter()
        .filter(|c| cx.who(c.author.as_ref()).is_automation() && last.is_none_or(|last| c.created_at > last))
        .count();
    let seen = u64::try_from(resource.comments.len()).unwrap_or(u64::MAX);
    (by_bots, last.is_some() || resource.comment_total <= seen)
}

/// A person's account can write for a machine (a personal token in a workflow): then only the text tells. It is the
/// machine's if author and last editor are the token's own account and it is an agent's report by its form, or ends in
/// a marker whose key is about this resource and whose run and nonce a claim confirms.
fn own_words(cx: &Context<'_>) -> Judgement {
    let none = || Judgement::pass("a person's own words");
    let Some(comment) = &cx.trigger.comment else { return none() };
    let marker = Marker::find(&cx.trigger.text)
        .filter(|m| m.key.host() == cx.trigger.host && m.key.repository() == cx.trigger.repository_id)
        .filter(|m| *m.key.resource() == cx.trigger.resource);
    let is_report = text::is_agents_report(&cx.trigger.text, &cx.trigger.repository);
    if marker.is_none() && !is_report {
        return none();
    }
    let viewer = match &cx.facts.viewer {
        Fact::Unasked => return Judgement::Ask(Question::Facts),
        Fact::Unknown(why) => return unknown_self("run-guard's own account wrote this", why),
        Fact::Known(viewer) => viewer,
    };
    // The token is a bot's, and a person is no bot, whatever the login.
    if is_written_as_bot(viewer) {
        return none();
    }
    let live = cx.facts.live().and_then(|r| r.comments.iter().find(|c| c.id == comment.id));
    let is_self = |login: &str| same_login(login, viewer);
    let by_self = comment.author.as_ref().is_some_and(|author| is_self(&author.login))
        && cx.trigger.sender.as_ref().is_some_and(|sender| is_self(&sender.login))
        && live.and_then(|c| c.editor.as_deref()).is_none_or(is_self);
    if !by_self {
        return none();
    }
    if is_report {
        return Judgement::stop(Reason::LoopMarker, "the comment is an agent's report on a run of this repository");
    }
    marker.map_or_else(none, |marker| confirmed(cx, &marker))
}

/// Whether a claim confirms a marker that the token's own account wrote.
fn confirmed(cx: &Context<'_>, marker: &Marker) -> Judgement {
    let run = marker.source_run_id;
    let stop = |message| Stop::new(Reason::LoopMarker, message).with_link(format!("run {run}"), cx.run_url(run));
    match &cx.facts.marker_claim {
        Fact::Unasked => Judgement::Ask(Question::MarkerClaim {
            task: marker.key.task().to_string(),
            digest: marker.key.digest().to_string(),
            number: marker.claim,
        }),
        Fact::Known(Some(ClaimRead::Readable(claim)))
            if claim.record.owner.run == run && claim.record.owner.nonce == marker.nonce =>
        {
            stop(format!("the comment carries the marker of run {run}, which claim {} confirms", claim.number)).into()
        }
        Fact::Known(Some(ClaimRead::Unreadable { number, why, .. })) => {
            stop(format!("the comment carries the marker of run {run}, but its claim {number} cannot be read: {why}"))
                .with_verdict(Verdict::Review)
                .into()
        }
        Fact::Known(_) => Judgement::pass("a person's own words: no claim confirms the marker"),
        Fact::Unknown(why) => unknown_self(&format!("run {run} wrote this, as its marker says"), why),
    }
}
