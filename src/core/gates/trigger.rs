//! Does the policy want this event, action and sender? Is there a request in the text?

use super::{Context, Judgement};
use crate::core::decision::{Reason, Stop};
use crate::core::facts::{Fact, Permission, Question};
use crate::core::identity::{Actor, Who};
use crate::core::policy::Policy;
use crate::core::trigger::{Asks, Trigger};

/// What the payload alone decides, whatever the policy says.
pub fn from_payload_alone(trigger: &Trigger) -> Option<Stop> {
    (trigger.action == "deleted").then(|| Stop::new(Reason::NoRequest, "the comment or issue was deleted"))
}

/// The gate.
pub fn judge(cx: &Context<'_>) -> Judgement {
    if let Some(stop) = wanted(cx) {
        return stop.into();
    }
    let saw = match cx.trigger.asks(cx.rules) {
        Asks::Nothing => {
            return Judgement::stop(
                Reason::NoRequest,
                format!("`{}` does not stand in the text as a request", cx.rules.phrase),
            );
        }
        Asks::NothingNew => {
            return Judgement::stop(Reason::UnchangedEdit, "the edit adds no request that the text did not have");
        }
        Asks::Work(_) => format!("{} {}", cx.trigger.event.as_str(), cx.trigger.action),
        Asks::Rerun(_) => format!("{} {}, asks for a rerun", cx.trigger.event.as_str(), cx.trigger.action),
    };
    authority(cx, &saw)
}

/// Whether the policy wants the event, action and label.
fn wanted(cx: &Context<'_>) -> Option<Stop> {
    let trigger = cx.trigger;
    let (event, action) = (trigger.event.as_str(), trigger.action.as_str());
    // The rerun phrase is a way in of its own: a task that starts on issues need not list comments for it.
    if matches!(trigger.asks(cx.rules), Asks::Rerun(_)) {
        return None;
    }
    let listed = match &cx.rules.on {
        None => trigger.event.default_actions().contains(&action),
        Some(on) => on.get(event).is_some_and(|actions| {
            if actions.is_empty() {
                trigger.event.default_actions().contains(&action)
            } else {
                actions.contains(action)
            }
        }),
    };
    if !listed {
        let message = if trigger.action == "deleted" {
            return Some(Stop::new(Reason::NoRequest, "the comment or issue was deleted"));
        } else if cx.rules.on.is_some() {
            format!("the policy of {} does not list {event} {}", cx.task, clean(action))
        } else {
            format!("{event} {} asks nothing of an agent", clean(action))
        };
        return Some(Stop::new(Reason::NotConfigured, message));
    }
    if action == "labeled" && !cx.rules.trigger_labels.is_empty() {
        let label = trigger.label.as_deref().unwrap_or_default();
        if !cx.rules.trigger_labels.iter().any(|l| l.eq_ignore_ascii_case(label)) {
            return Some(Stop::new(
                Reason::NotConfigured,
                format!("the label that was added is not one of {}", cx.rules.trigger_labels.join(", ")),
            ));
        }
    }
    None
}

/// A word from a payload, fit for a message.
fn clean(word: &str) -> String {
    word.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(40).collect()
}

/// The account whose permission must be asked for, so that it can be asked at the same time as the facts; `None`
/// where no permission matters. Judged by the policy that is known at the time.
pub fn whose_permission(trigger: &Trigger, who: Who, rules_anyone: bool, policy: &Policy) -> Option<Actor> {
    match who {
        Who::Person if !rules_anyone => trigger.asker(),
        Who::OtherBot if is_allowed(trigger, policy) => {
            trigger.author.clone().filter(|a| a.kind == crate::core::identity::ActorKind::User)
        }
        _ => None,
    }
}

/// Whether the sender is a bot that `automation.allow` lets in.
pub fn is_allowed(trigger: &Trigger, policy: &Policy) -> bool {
    trigger.sender.as_ref().is_some_and(|s| policy.automation_allow.iter().any(|entry| s.is_bot_named(entry)))
}

/// Whether whoever asks may.
fn authority(cx: &Context<'_>, saw: &str) -> Judgement {
    let who = cx.asker();
    match who {
        Who::Unknown => {
            return Judgement::stop(Reason::NotAuthorized, "the payload names nobody as the sender");
        }
        Who::SelfBot | Who::Agent => return Judgement::pass(saw),
        Who::Person if cx.rules.anyone => return Judgement::pass(format!("{saw}, anyone may")),
        Who::Person | Who::OtherBot => {}
    }
    let Some(person) = whose_permission(cx.trigger, who, cx.rules.anyone, cx.policy) else {
        return Judgement::pass(saw);
    };
    let login = &person.login;
    match &cx.facts.permission {
        Fact::Unasked => Judgement::Ask(Question::Permission),
        Fact::Unknown(why) => {
            Judgement::stop(Reason::PermissionUnknown, format!("GitHub did not say what permission {login} has: {why}"))
        }
        Fact::Known(Permission::Write | Permission::Admin) if who == Who::OtherBot => {
            Judgement::pass(format!("{saw} by an allowed bot on what {login} wrote"))
        }
        Fact::Known(Permission::Write | Permission::Admin) => {
            Judgement::pass(format!("{saw} by {login}, who may write"))
        }
        Fact::Known(Permission::None | Permission::Read) if who == Who::OtherBot => {
            Judgement::stop(Reason::UntrustedAuthor, format!("{login}, who wrote it, has no write permission"))
        }
        Fact::Known(Permission::None | Permission::Read) => {
            Judgement::stop(Reason::NotAuthorized, format!("{login} has no write permission in this repository"))
        }
    }
}
