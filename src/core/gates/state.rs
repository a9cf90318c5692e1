//! Is the resource, read again now, still worth it?

use super::{Context, Judgement};
use crate::core::decision::{Reason, Stop, Verdict};
use crate::core::facts::{Fact, Question};
use crate::core::key::Resource;

/// What inputs alone decide.
pub fn paused_by_input(paused: bool) -> Option<Stop> {
    paused.then(|| Stop::new(Reason::Paused, "the input `paused` is set"))
}

/// The gate.
pub fn judge(cx: &Context<'_>) -> Judgement {
    if cx.policy.paused {
        return Judgement::stop(Reason::Paused, "the policy says `paused: true`");
    }
    match &cx.facts.repository {
        Fact::Unasked => return Judgement::Ask(Question::Facts),
        Fact::Unknown(why) => {
            return Judgement::stop(Reason::ResourceMissing, format!("the repository could not be read: {why}"));
        }
        Fact::Known(repository) if repository.id != cx.trigger.repository_id => {
            return Judgement::stop(
                Reason::ResourceMoved,
                format!(
                    "{} is now another repository (id {}) than the payload's (id {})",
                    cx.trigger.repository, repository.id, cx.trigger.repository_id
                ),
            );
        }
        Fact::Known(_) => {}
    }
    let what = cx.trigger.resource.in_words();
    let resource = match &cx.facts.resource {
        Fact::Unasked => return Judgement::Ask(Question::Facts),
        Fact::Unknown(why) => {
            return Judgement::stop(Reason::ResourceMissing, format!("{what} could not be read: {why}"));
        }
        Fact::Known(None) => return Judgement::stop(Reason::ResourceMissing, format!("GitHub knows no {what}")),
        Fact::Known(Some(resource)) => resource,
    };
    // An issue can be made into a pull request, which is another piece of work.
    let is_other = matches!(
        (&cx.trigger.resource, resource.is_pull_request),
        (Resource::Issue(_), true) | (Resource::PullRequest(_), false)
    );
    if is_other {
        let now = if resource.is_pull_request { "a pull request" } else { "an issue" };
        return Judgement::stop(Reason::ResourceMoved, format!("{what} is {now} now"));
    }
    if resource.merged && !cx.rules.closed {
        return Judgement::stop(Reason::ResourceClosed, format!("{what} is merged"));
    }
    if !resource.open && !cx.rules.closed {
        return Judgement::stop(Reason::ResourceClosed, format!("{what} is closed"));
    }
    if resource.draft && !cx.rules.drafts {
        return Judgement::stop(Reason::Draft, format!("{what} is a draft"));
    }
    if let Some(label) = cx.trigger.label.as_deref().filter(|_| cx.trigger.action == "labeled")
        && !resource.has_label(label)
    {
        return Judgement::stop(Reason::LabelRemoved, format!("the label that was added is not on {what} any more"));
    }
    if let Some(label) = cx.rules.required_labels.iter().find(|l| !resource.has_label(l)) {
        return Judgement::stop(Reason::LabelRemoved, format!("the required label {label} is not on {what}"));
    }
    if let Some(label) = cx.rules.blocking_labels.iter().find(|l| resource.has_label(l)) {
        let stop = Stop::new(Reason::BlockingLabel, format!("{what} carries the blocking label {label}"));
        return match cx.rerun_by_person() {
            Some(person) => {
                let message = format!("{} re-ran this, but {}", person.login, stop.message);
                Stop { message, ..stop }.with_verdict(Verdict::Review).into()
            }
            None => stop.into(),
        };
    }
    Judgement::pass(format!("{what} is open"))
}
