//! What came against what was expected.

use std::collections::BTreeMap;

use super::{Failure, Group, RunStory};
use crate::core::claim::{Cause, ClaimState, Record, label_name};
use crate::core::decision::Reason;
use crate::sim::State;
use crate::sim::scenario::{ClaimEnd, Expect, Expected, ItemEnd, PointsTo, Reference, Scenario, claim_key};

/// Holds what came against what is expected.
pub(super) struct Judge<'a> {
    runs: &'a [RunStory],
    held: usize,
    failures: Vec<Failure>,
}

impl<'a> Judge<'a> {
    /// A judge of these runs, who knows of some failures already.
    pub(super) fn new(runs: &'a [RunStory], failures: Vec<Failure>) -> Self {
        Self { runs, held: 0, failures }
    }

    /// How many expectations hold, and those that do not, in the order of the file.
    pub(super) fn verdict(mut self) -> (usize, Vec<Failure>) {
        self.failures.sort_by_key(|failure| failure.line);
        (self.held, self.failures)
    }

    /// One expectation.
    pub(super) fn that(&mut self, holds: bool, line: usize, otherwise: impl FnOnce() -> (String, String)) {
        if holds {
            self.held += 1;
        } else {
            let (expected, came) = otherwise();
            self.failures.push(Failure { line, expected, came });
        }
    }

    /// What is expected of the runs of a step or of an agent's comment. `groups` are those of the steps, by place.
    pub(super) fn group(&mut self, group: &Group, groups: &[Group]) {
        let all = self.runs;
        let runs: Vec<&RunStory> = group.runs.iter().filter_map(|place| all.get(*place)).collect();
        let differs = |expect: &Expect, run: &RunStory| differs(expect, run, group, groups, all);
        match &group.expected {
            Expected::Anything => {}
            Expected::NoRun(line) => self.that(runs.is_empty(), *line, || ("no run".to_owned(), in_a_row(&runs))),
            Expected::Each(expect) => {
                if runs.is_empty() {
                    self.that(false, expect.line, || (wanted(expect), format!("{} started no run", group.what)));
                }
                for run in runs {
                    let difference = differs(expect, run);
                    self.that(difference.is_none(), expect.line, || (wanted(expect), came(run, difference)));
                }
            }
            Expected::All(line, expects) => {
                let fits = |expect: &Expect| runs.iter().map(|run| differs(expect, run).is_none()).collect();
                let pairs = match_up(&expects.iter().map(fits).collect::<Vec<_>>(), runs.len());
                let left: Vec<&RunStory> = runs
                    .iter()
                    .enumerate()
                    .filter(|(place, _)| !pairs.contains(&Some(*place)))
                    .map(|(_, r)| *r)
                    .collect();
                for (expect, pair) in expects.iter().zip(&pairs) {
                    self.that(pair.is_some(), expect.line, || {
                        let nearest = left.first().map(|run| came(run, differs(expect, run)));
                        (wanted(expect), nearest.unwrap_or_else(|| format!("{} started no such run", group.what)))
                    });
                }
                if runs.len() > expects.len() {
                    let counted =
                        if expects.len() == 1 { "1 run".to_owned() } else { format!("{} runs", expects.len()) };
                    self.that(false, *line, || (counted, format!("{}: {}", runs.len(), in_a_row(&runs))));
                }
            }
        }
    }

    /// What must hold of an issue or pull request.
    pub(super) fn item(&mut self, repo: &str, state: &State, end: &ItemEnd) {
        let number = end.number;
        let Some(item) = state.item(repo, number) else {
            self.that(false, end.line, || (format!("#{number} at the end"), "it is gone".to_owned()));
            return;
        };
        if let Some(open) = end.open {
            let word = |open| if open { "open" } else { "closed" };
            self.that(item.open == open, end.line, || {
                (format!("#{number} is {}", word(open)), format!("it is {}", word(item.open)))
            });
        }
        if let Some(labels) = &end.labels {
            let sorted = |labels: &[String]| {
                let mut labels = labels.to_vec();
                labels.sort();
                labels
            };
            let there = sorted(&state.item_labels(repo, number));
            let wanted = sorted(labels);
            let list = |labels: &[String]| format!("labels: [{}]", labels.join(", "));
            self.that(there == wanted, end.line, || (format!("#{number} has {}", list(&wanted)), list(&there)));
        }
        if let Some(comments) = end.comments {
            let there = item.comments.len();
            self.that(there == comments, end.line, || {
                (format!("#{number} has comments: {comments}"), there.to_string())
            });
        }
    }

    /// What must hold of a claim.
    pub(super) fn claim(
        &mut self,
        scenario: &Scenario,
        state: &State,
        comments: &BTreeMap<String, u64>,
        end: &ClaimEnd,
    ) {
        let name = &end.name;
        let what = format!("claim {} of {} on #{}", name.number, name.task, name.item);
        let label = claim_key(scenario, state, comments, name)
            .and_then(|key| state.label(&scenario.repository, &label_name(key.task(), &key.digest(), name.number)));
        let Some(label) = label else {
            self.that(end.absent, end.line, || (what, "there is no such claim".to_owned()));
            return;
        };
        if end.absent {
            self.that(false, end.line, || (format!("no {what}"), "it is there".to_owned()));
            return;
        }
        let record = match Record::decode(label.description.as_deref().unwrap_or_default()) {
            Ok(record) => record,
            Err(bad) => {
                self.that(false, end.line, || (what, bad.to_string()));
                return;
            }
        };
        let (outcome, costs) = match &record.state {
            ClaimState::Settled(settlement) => (Some(settlement.outcome), settlement.cost_cents),
            ClaimState::Open | ClaimState::Sweep { .. } => (None, None),
        };
        let word = |outcome: Option<crate::core::claim::Outcome>| outcome.map_or("open", |o| o.as_str());
        if let Some(wanted) = end.outcome {
            self.that(outcome == wanted, end.line, || {
                (format!("{what} is {}", word(wanted)), word(outcome).to_owned())
            });
        }
        if let Some(cause) = end.cause {
            self.that(record.cause == cause, end.line, || {
                (format!("{what} has cause {}", cause.as_str()), record.cause.as_str().to_owned())
            });
        }
        if let Some(wanted) = end.costs {
            self.that(costs == Some(wanted), end.line, || {
                let dollars = crate::core::gates::budget::dollars;
                (format!("{what} cost {}", dollars(wanted)), costs.map_or("unknown".to_owned(), dollars))
            });
        }
        if end.outcome.is_none() && end.cause.is_none() && end.costs.is_none() {
            self.that(true, end.line, || (what, String::new()));
        }
    }
}

/// In what a run differs from what is expected; `None`: in nothing.
fn differs(expect: &Expect, run: &RunStory, group: &Group, groups: &[Group], all: &[RunStory]) -> Option<String> {
    let Some(report) = &run.report else { return Some("the run never came to a verdict".to_owned()) };
    let says = |differs: bool, what: String| differs.then_some(what);
    let event = &run.event;
    let is_other_event = |wanted: &String| *wanted != event.action && *wanted != event.in_words();
    let link = |wanted: &String| report.evidence.iter().all(|link| !link.url.contains(wanted.as_str()));
    [
        says(expect.event.as_ref().is_some_and(is_other_event), format!("the event is {}", event.in_words())),
        says(expect.verdict.is_some_and(|v| v != report.verdict), format!("the verdict is {}", report.verdict)),
        says(
            expect.reason.is_some_and(|r| Some(r) != report.reason),
            report.reason.map_or("there is no reason".to_owned(), |r| format!("the reason is {r}")),
        ),
        says(
            expect.cause.is_some_and(|c| Some(c) != run.cause),
            run.cause.map_or("there is no claim".to_owned(), |c| format!("the cause is {}", c.as_str())),
        ),
        says(
            expect.claim.is_some_and(|c| Some(c) != report.fence),
            report.fence.map_or("there is no claim".to_owned(), |n| format!("it is claim {n}")),
        ),
        says(
            expect.message.as_ref().is_some_and(|m| !report.message.contains(m.as_str())),
            "the sentence says otherwise".to_owned(),
        ),
        says(expect.link.as_ref().is_some_and(link), format!("the links are {}", links(run))),
        says(
            expect.points_to.as_ref().is_some_and(|to| !points_to(to, run, group, groups, all)),
            format!("the links are {}", links(run)),
        ),
        says(
            expect.outcome.is_some_and(|o| run.finish.as_ref().and_then(|f| f.outcome) != Some(o)),
            run.finish
                .as_ref()
                .and_then(|f| f.outcome)
                .map_or("there is no outcome".to_owned(), |o| format!("the outcome is {o}")),
        ),
    ]
    .into_iter()
    .flatten()
    .next()
}

fn links(run: &RunStory) -> String {
    let urls: Vec<&str> = run.report.iter().flat_map(|r| &r.evidence).map(|link| link.url.as_str()).collect();
    if urls.is_empty() { "none".to_owned() } else { urls.join(", ") }
}

/// Whether one of the run's links is the page of a run that is meant.
fn points_to(to: &PointsTo, run: &RunStory, group: &Group, groups: &[Group], all: &[RunStory]) -> bool {
    let (places, action): (&[usize], Option<&String>) = match to {
        PointsTo::Other => (&group.runs, None),
        PointsTo::Step(Reference { step, action }) => {
            (groups.get(*step).map(|g| g.runs.as_slice()).unwrap_or_default(), action.as_ref())
        }
    };
    let meant = places.iter().filter_map(|place| all.get(*place)).filter(|r| r.id != run.id);
    let mut pages = meant
        .filter(|r| action.is_none_or(|action| *action == r.event.action))
        .map(|r| format!("/actions/runs/{}", r.id));
    let evidence = run.report.iter().flat_map(|r| &r.evidence).map(|link| &link.url).collect::<Vec<_>>();
    pages.any(|page| evidence.iter().any(|url| url.ends_with(&page)))
}

/// Pairs expectations with runs so that as many as possible have one. `fits[e][r]`: run `r` is as expectation `e` says.
fn match_up(fits: &[Vec<bool>], runs: usize) -> Vec<Option<usize>> {
    fn place(fits: &[Vec<bool>], expect: usize, tried: &mut [bool], taken: &mut [Option<usize>]) -> bool {
        let Some(row) = fits.get(expect) else { return false };
        for (run, _) in row.iter().enumerate().filter(|(_, fits)| **fits) {
            match tried.get_mut(run) {
                Some(tried) if !*tried => *tried = true,
                _ => continue,
            }
            let before = taken.get(run).copied().flatten();
            if before.is_none_or(|other| place(fits, other, tried, taken)) {
                if let Some(slot) = taken.get_mut(run) {
                    *slot = Some(expect);
                }
                return true;
            }
        }
        false
    }
    let mut taken = vec![None; runs];
    for expect in 0..fits.len() {
        place(fits, expect, &mut vec![false; runs], &mut taken);
    }
    (0..fits.len()).map(|expect| taken.iter().position(|t| *t == Some(expect))).collect()
}

/// An expectation in one line.
fn wanted(expect: &Expect) -> String {
    let mut words = expect.verdict.map_or_else(|| "a run".to_owned(), |v| v.to_string());
    if let Some(word) = expect.reason.map(Reason::code).or_else(|| expect.cause.map(Cause::as_str)) {
        words = format!("{words} {word}");
    }
    let points = expect.points_to.as_ref().map(|to| match to {
        PointsTo::Other => "a link to the other run".to_owned(),
        PointsTo::Step(_) => "a link to a run of that step".to_owned(),
    });
    let more = [
        expect.event.as_ref().map(|e| format!("for {e}")),
        expect.claim.map(|n| format!("claim {n}")),
        expect.message.as_ref().map(|m| format!("a sentence with “{m}”")),
        expect.link.as_ref().map(|l| format!("a link with {l}")),
        points,
        expect.outcome.map(|o| format!("outcome {o}")),
    ];
    std::iter::once(words).chain(more.into_iter().flatten()).collect::<Vec<_>>().join(", ")
}

/// What came instead, and in what it differs.
fn came(run: &RunStory, difference: Option<String>) -> String {
    let message = run.report.as_ref().map_or("", |r| r.message.as_str());
    let first = message.lines().next().unwrap_or_default();
    let why = difference.map(|d| format!(" ({d})")).unwrap_or_default();
    format!("{} from run {}, {}: {first}{why}", run.in_words(), run.id, run.event.in_words())
}

fn in_a_row(runs: &[&RunStory]) -> String {
    let each = |run: &&RunStory| format!("{} for {}", run.in_words(), run.event.in_words());
    if runs.is_empty() { "none".to_owned() } else { runs.iter().map(each).collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::match_up;

    #[test]
    fn expectations_are_paired_so_that_as_many_as_possible_hold() {
        let one_way = vec![vec![true, true], vec![true, false]];
        assert_eq!(match_up(&one_way, 2), [Some(1), Some(0)]);
        let too_few = vec![vec![true], vec![true]];
        assert_eq!(match_up(&too_few, 1), [Some(0), None]);
        assert_eq!(match_up(&[vec![false, false]], 2), [None]);
        assert_eq!(match_up(&[], 3), []);
    }
}
