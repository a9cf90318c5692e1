//! Did automation cause this?

use super::trigger::is_allowed;
use super::{Context, Judgement};
use crate::core::claim::ClaimRead;
use crate::core::decision::Reason;
use crate::core::facts::{Comment, Fact, Question};
use crate::core::identity::{Actor, ActorKind, Who, same_login, who};
use crate::core::marker::Marker;

/// The gate.
pub fn judge(cx: &Context<'_>) -> Judgement {
    if let Some(login) = cx.trigger.rerun_by_person() {
        return Judgement::pass(format!("re-run by {login}"));
    }
    let login = cx.trigger.sender.as_ref().map_or("nobody", |s| s.login.as_str());
    match cx.sender() {
        Who::SelfBot => Judgement::stop(Reason::LoopSelf, format!("{login} is the account of run-guard's own token")),
        Who::Agent => Judgement::stop(Reason::LoopSelf, format!("{login} is an agent")),
        Who::OtherBot if !is_allowed(cx.trigger, cx.policy) => {
            Judgement::stop(Reason::AutomationActor, format!("{login} is a bot that `automation.allow` does not list"))
        }
        Who::OtherBot => rounds(cx, login),
        Who::Person | Who::Unknown => marker(cx),
    }
}

/// How many comments bots wrote since a person did.
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
        Fact::Known(None) => return Judgement::pass(format!("{login} is allowed")),
        Fact::Known(Some(resource)) => resource,
    };
    let viewer = cx.facts.viewer.known().map(String::as_str);
    let by_bot = |c: &&Comment| who(c.author.as_ref(), viewer, cx.policy).is_automation();
    let in_a_row = resource.comments.iter().rev().take_while(by_bot).count();
    if u32::try_from(in_a_row).unwrap_or(u32::MAX) > limit {
        return Judgement::stop(
            Reason::LoopRounds,
            format!("the last {in_a_row} comments are all by bots, and {limit} in a row are allowed"),
        );
    }
    Judgement::pass(format!("{login} is allowed, {in_a_row} bot comments in a row"))
}

/// A person's account can write for a machine (a personal token in a workflow): then only the marker tells. It counts
/// if author and last editor are the token's own account, its key is about this resource, and the claim that it names
/// has its run and nonce.
fn marker(cx: &Context<'_>) -> Judgement {
    let none = || Judgement::pass("a person's own words");
    let (Some(comment), Some(marker)) = (&cx.trigger.comment, Marker::find(&cx.trigger.text)) else {
        return none();
    };
    let Fact::Known(viewer) = &cx.facts.viewer else {
        return match cx.facts.viewer {
            Fact::Unasked => Judgement::Ask(Question::Facts),
            _ => none(),
        };
    };
    let is_self = |a: &Actor| a.kind != ActorKind::Bot && a.login.eq_ignore_ascii_case(viewer);
    let live =
        cx.facts.resource.known().and_then(Option::as_ref).and_then(|r| r.comments.iter().find(|c| c.id == comment.id));
    let edited_by_other = live.and_then(|c| c.editor.as_deref()).is_some_and(|e| !same_login(e, viewer));
    if !comment.author.as_ref().is_some_and(is_self)
        || edited_by_other
        || marker.key.repository() != cx.trigger.repository_id
        || *marker.key.resource() != cx.trigger.resource
    {
        return none();
    }
    match &cx.facts.marker_claim {
        Fact::Unasked => Judgement::Ask(Question::MarkerClaim {
            task: marker.key.task().to_string(),
            digest: marker.key.digest().to_string(),
            number: marker.claim,
        }),
        Fact::Known(Some(ClaimRead::Readable(claim)))
            if claim.record.owner.run == marker.source_run_id && claim.record.owner.nonce == marker.nonce =>
        {
            let run = marker.source_run_id;
            crate::core::decision::Stop::new(
                Reason::LoopMarker,
                format!("the comment carries the marker of run {run}, which claim {} confirms", claim.number),
            )
            .with_link(format!("run {run}"), cx.run_url(run))
            .into()
        }
        Fact::Known(_) | Fact::Unknown(_) => none(),
    }
}
