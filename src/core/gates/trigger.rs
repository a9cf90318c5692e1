//! Does the policy want this event, action and sender? Is there a request in the text?

use super::{Context, Judgement};
use crate::core::decision::{Reason, Stop};
use crate::core::facts::{Fact, Permission, Question};
use crate::core::identity::{Actor, ActorKind, Who};
use crate::core::policy::Policy;
use crate::core::trigger::{Asks, Trigger};

/// What the payload alone decides, whatever the policy says.
pub fn from_payload_alone(trigger: &Trigger) -> Option<Stop> {
    (trigger.action == "deleted").then(|| Stop::new(Reason::NoRequest, "the comment or issue was deleted"))
}

/// The gate.
pub fn judge(cx: &Context<'_>) -> Judgement {
    let asks = cx.trigger.asks(cx.rules);
    if let Some(stop) = from_payload_alone(cx.trigger).or_else(|| unwanted(cx, &asks)) {
        return stop.into();
    }
    let what = format!("{} {}", cx.trigger.event.as_str(), clean(&cx.trigger.action));
    match asks {
        Asks::Nothing => {
            Judgement::stop(Reason::NoRequest, format!("`{}` does not stand in the text as a request", cx.rules.phrase))
        }
        Asks::NothingNew => {
            Judgement::stop(Reason::UnchangedEdit, "the edit adds no request that the text did not have")
        }
        Asks::Work(_) => authority(cx, &what, cx.rules.anyone),
        // Whoever asks for done work once more needs the permission, even where anyone may ask first.
        Asks::Rerun(_) => authority(cx, &format!("{what}, asks for a rerun"), false),
    }
}

/// Whether the policy does not want the event, action or label.
fn unwanted(cx: &Context<'_>, asks: &Asks) -> Option<Stop> {
    // The rerun phrase is a way in of its own: a task that starts on issues need not list comments for it.
    if matches!(asks, Asks::Rerun(_)) {
        return None;
    }
    let (event, action) = (cx.trigger.event.as_str(), cx.trigger.action.as_str());
    let by_default = cx.trigger.event.default_actions().contains(&action);
    let listed = match &cx.rules.on {
        None => by_default,
        Some(on) => on.get(event).is_some_and(|listed| listed.contains(action) || listed.is_empty() && by_default),
    };
    if !listed {
        let message = if cx.rules.on.is_some() {
            format!("the policy of {} does not list {event} {}", cx.task, clean(action))
        } else {
            format!("{event} {} asks nothing of an agent", clean(action))
        };
        return Some(Stop::new(Reason::NotConfigured, message));
    }
    if action != "labeled" || cx.rules.trigger_labels.is_empty() {
        return None;
    }
    match &cx.trigger.label {
        None => Some(Stop::new(Reason::BadPayload, "the payload names no label, so nothing says which one was added")),
        Some(label) if cx.rules.is_trigger_label(label) => None,
        Some(_) => Some(Stop::new(
            Reason::NotConfigured,
            format!("the label that was added is not one of {}", cx.rules.trigger_labels.join(", ")),
        )),
    }
}

/// A word from a payload, fit for a message.
fn clean(word: &str) -> String {
    word.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(40).collect()
}

/// Whether the sender is a bot that `automation.allow` lets in.
pub fn is_allowed(trigger: &Trigger, policy: &Policy) -> bool {
    trigger.sender.as_ref().is_some_and(|s| policy.automation_allow.iter().any(|entry| s.is_bot_named(entry)))
}

/// Whether whoever asks may.
fn authority(cx: &Context<'_>, what: &str, anyone: bool) -> Judgement {
    let asker = cx.asker();
    match (cx.who(asker.as_ref()), asker) {
        (Who::OtherBot, _) if is_allowed(cx.trigger, cx.policy) => author(cx, what),
        // Whether automation may at all is for the loop gate to say.
        (Who::SelfBot | Who::Agent | Who::OtherBot, _) => Judgement::pass(what),
        (Who::Person, Some(_)) if anyone => Judgement::pass(format!("{what}, anyone may")),
        (Who::Person, Some(person)) => permission(cx, &person, |may, login| {
            if may {
                Judgement::pass(format!("{what} by {login}, who may write"))
            } else {
                Judgement::stop(Reason::NotAuthorized, format!("{login} has no write permission in this repository"))
            }
        }),
        (_, None) => Judgement::stop(Reason::NotAuthorized, "the payload names nobody as the sender"),
        (_, Some(account)) => Judgement::stop(
            Reason::NotAuthorized,
            format!("{} is neither a person's account nor a bot's", account.login),
        ),
    }
}

/// Whether an allowed bot may act on what it acts on: it lends nobody its permission.
fn author(cx: &Context<'_>, what: &str) -> Judgement {
    let Some(author) = &cx.trigger.author else {
        return Judgement::stop(Reason::UntrustedAuthor, "the account that wrote it is gone");
    };
    match author.kind {
        ActorKind::Bot => Judgement::pass(format!("{what} by an allowed bot on what a bot wrote")),
        ActorKind::User => permission(cx, author, |may, login| {
            if may {
                Judgement::pass(format!("{what} by an allowed bot on what {login} wrote"))
            } else {
                Judgement::stop(Reason::UntrustedAuthor, format!("{login}, who wrote it, has no write permission"))
            }
        }),
        ActorKind::Organization | ActorKind::Other => Judgement::stop(
            Reason::UntrustedAuthor,
            format!("{}, who wrote it, is neither a person's account nor a bot's", author.login),
        ),
    }
}

/// Judges by whether a person may write, once that is known.
fn permission(cx: &Context<'_>, person: &Actor, then: impl FnOnce(bool, &str) -> Judgement) -> Judgement {
    let login = &person.login;
    match cx.facts.permission(login) {
        Fact::Unasked => Judgement::Ask(Question::Permission(login.clone())),
        Fact::Unknown(why) => {
            Judgement::stop(Reason::PermissionUnknown, format!("GitHub did not say what permission {login} has: {why}"))
        }
        Fact::Known(permission) => then(*permission >= Permission::Write, login),
    }
}
