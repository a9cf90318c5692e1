//! What people and bots do on GitHub, and the events that GitHub makes of it.

use serde_json::json;

use crate::core::key::Resource;
use crate::core::policy::POLICY_PATH;
use crate::sim::scenario::{Act, IssueAct};
use crate::sim::webhook::{Event, Webhook, overlay};
use crate::sim::{ItemSpec, State};

/// Does an act on GitHub; gives it in words that follow the name of whoever does it, and its events. `comment` knows
/// comments by name.
pub(super) fn act(
    state: &mut State,
    repo: &str,
    by: &str,
    act: &Act,
    event: Option<&str>,
    comment: impl Fn(&str) -> u64,
) -> (String, Vec<Event>) {
    let hook = |state: &State, make: &dyn Fn(&Webhook<'_>) -> Option<Event>| -> Vec<Event> {
        Webhook::new(state, repo, by).and_then(|hook| make(&hook)).into_iter().collect()
    };
    match act {
        Act::Open { number, title, body, labels } => {
            let names: Vec<&str> = labels.iter().map(String::as_str).collect();
            state.open_issue(repo, ItemSpec::new(by, title).number(*number).body(body).labels(&names));
            let mut events = hook(state, &|hook| hook.issues("opened", *number, json!({})));
            for label in labels {
                events.extend(hook(state, &|hook| hook.issues_label("labeled", *number, label)));
            }
            (format!("opens issue {number} “{}”{}", first_line(title), with_labels(labels)), events)
        }
        Act::Comment { item, text } => {
            let id = state.comment(repo, *item, by, text).unwrap_or_default();
            let words = format!("comments on {}: “{}”", in_words(state, repo, *item), first_line(text));
            (words, hook(state, &|hook| hook.comment("created", id, json!({}))))
        }
        Act::EditIssue { number, title, body } => {
            let before = state.item(repo, *number).map(|item| (item.title.clone(), item.body.clone()));
            let (old_title, old_body) = before.unwrap_or_default();
            state.edit_item(repo, *number, |item| {
                if let Some(title) = title {
                    item.title.clone_from(title);
                }
                if let Some(body) = body {
                    item.body = Some(body.clone());
                }
            });
            let mut changes = json!({});
            if title.is_some() {
                overlay(&mut changes, &json!({"title": {"from": old_title}}));
            }
            if body.is_some() {
                overlay(&mut changes, &json!({"body": {"from": old_body.unwrap_or_default()}}));
            }
            let more = json!({"changes": changes});
            (format!("edits issue {number}"), hook(state, &|hook| hook.issues("edited", *number, more.clone())))
        }
        Act::EditComment { comment: name, text } => {
            let id = comment(name);
            let row = state.repo(repo).and_then(|r| r.comments.get(&id));
            let (number, old) = row.map(|row| (row.number, row.body.clone())).unwrap_or_default();
            state.edit_comment(repo, id, by, text);
            let more = json!({"changes": {"body": {"from": old}}});
            let words = format!("edits a comment on {}: “{}”", in_words(state, repo, number), first_line(text));
            (words, hook(state, &|hook| hook.comment("edited", id, more.clone())))
        }
        Act::DeleteComment { comment: name } => {
            let id = comment(name);
            // The payload shows the comment as it was.
            let events = hook(state, &|hook| hook.comment("deleted", id, json!({})));
            let number = state.edit_repo(repo, |r| r.comments.remove(&id).map(|row| row.number)).unwrap_or_default();
            state.edit_item(repo, number, |item| item.comments.retain(|c| *c != id));
            (format!("deletes a comment on {}", in_words(state, repo, number)), events)
        }
        Act::AddLabels { number, labels } => {
            let mut events = Vec::new();
            for label in labels {
                state.label_item(repo, *number, &[label.as_str()], by);
                events.extend(hook(state, &|hook| hook.issues_label("labeled", *number, label)));
            }
            (format!("puts {} on issue {number}", the_labels(labels)), events)
        }
        Act::RemoveLabels { number, labels } => {
            let mut events = Vec::new();
            for label in labels {
                state.unlabel_item(repo, *number, label, by);
                events.extend(hook(state, &|hook| hook.issues_label("unlabeled", *number, label)));
            }
            (format!("takes {} off issue {number}", the_labels(labels)), events)
        }
        Act::DeleteLabels { labels } => {
            for label in labels {
                state.remove_label(repo, label);
            }
            (format!("deletes {} in the repository", the_labels(labels)), Vec::new())
        }
        Act::Issue { number, what } => {
            let (action, words) = match what {
                IssueAct::Close => ("closed", "closes"),
                IssueAct::Reopen => ("reopened", "reopens"),
                IssueAct::Lock => ("locked", "locks"),
                IssueAct::Unlock => ("unlocked", "unlocks"),
                IssueAct::Delete => ("deleted", "deletes"),
            };
            match what {
                IssueAct::Close => _ = state.close(repo, *number),
                IssueAct::Reopen => _ = state.reopen(repo, *number),
                IssueAct::Lock | IssueAct::Unlock => {
                    state.edit_item(repo, *number, |item| item.locked = *what == IssueAct::Lock);
                }
                IssueAct::Delete => {}
            }
            let events = hook(state, &|hook| hook.issues(action, *number, json!({})));
            if *what == IssueAct::Delete {
                state.delete_issue(repo, *number);
            }
            (format!("{words} issue {number}"), events)
        }
        Act::Assign { number, to, away } => {
            let (action, words) = if *away {
                ("unassigned", format!("takes issue {number} from {to}"))
            } else {
                ("assigned", format!("assigns issue {number} to {to}"))
            };
            (words, hook(state, &|hook| hook.issues_assignee(action, *number, to)))
        }
        Act::Policy { text } => {
            match text {
                Some(text) => state.set_file(repo, POLICY_PATH, text),
                None => drop(state.edit_repo(repo, |r| r.files.remove(POLICY_PATH))),
            }
            (format!("commits another {POLICY_PATH}"), Vec::new())
        }
        Act::Raw => {
            let name = event.unwrap_or("issues");
            (format!("makes GitHub send an event `{name}`"), hook(state, &|hook| Some(hook.bare(name))))
        }
        Act::Rerun(_) | Act::Cancel(_) | Act::Again(_) => (String::new(), Vec::new()),
    }
}

/// An item in plain words.
fn in_words(state: &State, repo: &str, number: u64) -> String {
    let is_pull_request = state.item(repo, number).is_some_and(|item| item.is_pull_request);
    let resource = if is_pull_request { Resource::PullRequest(number) } else { Resource::Issue(number) };
    resource.in_words()
}

fn with_labels(labels: &[String]) -> String {
    if labels.is_empty() { String::new() } else { format!(" with {}", the_labels(labels)) }
}

fn the_labels(labels: &[String]) -> String {
    let word = if labels.len() == 1 { "the label" } else { "the labels" };
    format!("{word} {}", crate::config::located::listed(labels))
}

/// The start of a text, in one line.
pub(super) fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    crate::output::escape::visible(&crate::output::escape::at_most(line.trim(), 60))
}
