//! What happened in a scenario: a timeline that a person can follow, or a form for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chrono::{DateTime, SecondsFormat, Timelike as _, Utc};
use serde_json::{Value, json};

use super::escape::{at_most, is_plain_url, visible, visible_lines};
use super::terminal::{Paint, Style, dollars, paint_of};
use crate::app::simulate::{Entry, RunStory, Story, What};
use crate::core::claim::{Cause, Outcome};
use crate::core::decision::{Reason, Verdict};
use crate::core::gates::in_words;

/// The name of the form for programs.
pub const SCHEMA: &str = "run-guard/simulate/v1";

/// How long a line is, in characters, where the text can be broken.
const WIDTH: usize = 100;

/// The whole story.
pub fn story(story: &Story, style: Style) -> String {
    let mut page = Page { out: String::new(), story, style, seconds: has_seconds(story) };
    page.head();
    let mut before = None;
    for entry in &story.entries {
        page.entry(entry, before);
        before = Some(entry.at);
    }
    page.summary();
    page.verdict();
    page.out
}

/// The story in one line, for when there are several, with its failures in full.
pub fn line(story: &Story, style: Style) -> String {
    let mut page = Page { out: String::new(), story, style, seconds: false };
    let name = visible(&story.scenario.origin);
    if story.holds() {
        let word = style.paint(Paint::Green, "holds");
        let _ = writeln!(page.out, "{word}  {name}  ({})", page.counted());
    } else {
        page.verdict();
    }
    page.out
}

/// Whether any time of the story is not a full minute.
fn has_seconds(story: &Story) -> bool {
    let decided = story.runs.iter().filter_map(|run| run.decided);
    story.entries.iter().map(|entry| entry.at).chain(decided).any(|at| at.second() != 0)
}

struct Page<'s> {
    out: String,
    story: &'s Story,
    style: Style,
    seconds: bool,
}

impl Page<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}", text.trim_end());
    }

    fn clock(&self, at: DateTime<Utc>) -> String {
        at.format(if self.seconds { "%H:%M:%S" } else { "%H:%M" }).to_string()
    }

    /// The column of the times, filled with spaces.
    fn margin(&self) -> String {
        " ".repeat(if self.seconds { 10 } else { 7 })
    }

    fn head(&mut self) {
        let scenario = &self.story.scenario;
        let about = self.style.paint(Paint::Bold, &visible(&scenario.about));
        let day = scenario.start.format("%-d %B %Y, times in UTC").to_string();
        let below = self.style.paint(Paint::Dim, &format!("{} · {day}", visible(&scenario.repository)));
        self.line(&about);
        self.line(&below);
    }

    fn entry(&mut self, entry: &Entry, before: Option<DateTime<Utc>>) {
        self.out.push('\n');
        let day_before = before.unwrap_or(self.story.scenario.start).date_naive();
        if entry.at.date_naive() != day_before {
            let day = self.style.paint(Paint::Dim, &entry.at.format("%-d %B %Y").to_string());
            self.line(&day);
            self.out.push('\n');
        }
        let margin = self.margin();
        let time = if before == Some(entry.at) { margin.clone() } else { format!("{}  ", self.clock(entry.at)) };
        match &entry.what {
            What::Act { by, words, note } => {
                let by = visible(by);
                self.broken(&time, &margin, Some((Paint::Bold, &by)), &format!("{by} {}", visible(words)));
                if let Some(note) = note {
                    let note = self.style.paint(Paint::Dim, &format!("({note})"));
                    self.line(&format!("{margin}{note}"));
                }
            }
            What::Agent { run, words } => self.agent(&time, &margin, *run, words),
        }
        for (place, run) in entry.runs.iter().enumerate() {
            let last = place + 1 == entry.runs.len();
            if let Some(run) = self.story.runs.get(*run) {
                self.run(&margin, run, last);
            }
        }
    }

    /// A text that is broken between words so that no line is too long, with `first` before its first line and
    /// `margin` before the others, which are as wide. `lead` is painted where the text starts with it.
    fn broken(&mut self, first: &str, margin: &str, lead: Option<(Paint, &str)>, text: &str) {
        let room = WIDTH.saturating_sub(width(margin)).max(40);
        let mut start = first;
        for line in visible_lines(text).iter().flat_map(|line| wrapped(line, room)) {
            let painted = lead.filter(|_| start == first).and_then(|(paint, lead)| {
                Some(format!("{}{}", self.style.paint(paint, lead), line.strip_prefix(lead)?))
            });
            self.line(&format!("{start}{}", painted.unwrap_or(line)));
            start = margin;
        }
    }

    fn warnings(&mut self, margin: &str, warnings: &[String]) {
        for warning in warnings.iter().take(super::terminal::MAX_WARNINGS) {
            let lead = Some((Paint::Yellow, "warning:"));
            self.broken(margin, margin, lead, &format!("warning: {}", at_most(warning, 300)));
        }
    }

    fn run(&mut self, margin: &str, run: &RunStory, last: bool) {
        let (turn, bar) = if last { ("└", " ") } else { ("├", "│") };
        let (turn, bar) = (self.style.paint(Paint::Dim, turn), self.style.paint(Paint::Dim, bar));
        let attempt = if run.attempt > 1 { format!(", attempt {}", run.attempt) } else { String::new() };
        let task = if self.story.scenario.workflows.len() > 1 { format!(" · {}", run.task) } else { String::new() };
        self.line(&format!("{margin}{turn} {} · run {}{attempt}{task}", visible(&run.event.in_words()), run.id));
        let inner = format!("{margin}{bar}   ");
        let Some(report) = &run.report else {
            let what = self.style.paint(Paint::Yellow, "the run ends before its guard step has a verdict");
            self.line(&format!("{inner}{what}"));
            return;
        };
        let word = self.style.paint(paint_of(report.verdict), report.verdict.as_str());
        let why = match (report.reason, report.fence) {
            (Some(reason), _) => self.style.paint(Paint::Bold, reason.code()),
            (None, Some(fence)) => {
                let cause = run.cause.map(|cause| format!(", {}", cause.as_str())).unwrap_or_default();
                self.style.paint(Paint::Bold, &format!("claim {fence}{cause}"))
            }
            (None, None) => "without a claim".to_owned(),
        };
        let late = match run.decided {
            Some(at) if at > run.began => format!("  at {}, after {}", self.clock(at), in_words(at - run.began)),
            _ => String::new(),
        };
        self.line(&format!("{inner}{word}  {why}{late}"));
        if report.proceeds() {
            if report.reason.is_some() {
                self.broken(&inner, &inner, None, &report.message);
            }
            let sign = self.style.paint(Paint::Green, "▶");
            let about = report.key.as_ref().map(|key| format!(" · {}", key.resource().in_words())).unwrap_or_default();
            self.line(&format!("{inner}{sign} the agent starts{about} · {}", run.task));
        } else {
            let (message, _) = super::terminal::message_and_next_step(report);
            self.broken(&inner, &inner, None, message);
            for link in report.evidence.iter().filter(|link| is_plain_url(&link.url)) {
                let url = self.style.paint(Paint::Dim, &link.url);
                self.line(&format!("{inner}{url}"));
            }
        }
        self.warnings(&inner, &report.warnings);
    }

    fn agent(&mut self, time: &str, margin: &str, run: usize, words: &str) {
        let Some(run) = self.story.runs.get(run) else { return };
        let outcome = run.finish.as_ref().and_then(|f| f.outcome);
        let sign = self.style.paint(outcome.map_or(Paint::Yellow, outcome_paint), "■");
        let cost = run.finish.as_ref().and_then(|f| f.cost_cents).map(|c| format!(", for ${}", dollars(c)));
        let cost = cost.unwrap_or_default();
        self.line(&format!("{time}{sign} the agent of run {} {words}{cost}", run.id));
        let Some(finish) = &run.finish else {
            let held = run.report.as_ref().and_then(|r| r.fence).map(|n| format!("claim {n} stays open"));
            self.line(&format!("{margin}  {}", held.unwrap_or_else(|| "it had no claim".to_owned())));
            return;
        };
        let claim = finish.claim.as_ref().map(|claim| format!("claim {} ", claim.number)).unwrap_or_default();
        let text = match finish.outcome {
            Some(outcome) => format!("{claim}ends {outcome}: {}", finish.message),
            None => format!("{claim}is not settled: {}", finish.message),
        };
        let inner = format!("{margin}  ");
        self.broken(&inner, &inner, None, &text);
        self.warnings(&inner, &finish.warnings);
    }

    /// Verdicts with their number, each with its reasons.
    fn summary(&mut self) {
        let runs = &self.story.runs;
        let started = runs.iter().filter(|run| run.started()).count();
        let rule = self.style.paint(Paint::Dim, &"─".repeat(WIDTH.min(60)));
        self.out.push('\n');
        self.line(&rule);
        let cents: u64 = runs.iter().filter_map(|run| run.finish.as_ref()?.cost_cents).sum();
        let spent = if cents > 0 { format!(", for ${}", dollars(cents)) } else { String::new() };
        let starts = format!("{}{spent}", many(started, "agent start"));
        let starts = self.style.paint(Paint::Bold, &starts);
        self.line(&format!("{} → {starts}", many(runs.len(), "trigger")));
        let mut counted: BTreeMap<(Verdict, Option<&str>), usize> = BTreeMap::new();
        for run in runs {
            let Some(report) = &run.report else { continue };
            *counted.entry((report.verdict, report.reason.map(Reason::code))).or_default() += 1;
        }
        for ((verdict, reason), count) in counted {
            let word = self.style.paint(paint_of(verdict), &format!("{:<7}", verdict.as_str()));
            self.line(&format!("  {count:>3}  {word}  {}", reason.unwrap_or_default()));
        }
        let silent = runs.iter().filter(|run| run.report.is_none()).count();
        if silent > 0 {
            self.line(&format!("  {silent:>3}  ended before a verdict"));
        }
    }

    fn counted(&self) -> String {
        let started = self.story.runs.iter().filter(|run| run.started()).count();
        let starts = many(started, "agent start");
        format!("{}, {starts}, {}", many(self.story.runs.len(), "trigger"), many(self.story.held, "expectation"))
    }

    /// Whether the expectations hold, and those that do not in full.
    fn verdict(&mut self) {
        let (held, failures) = (self.story.held, &self.story.failures);
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        if failures.is_empty() {
            let text = match held {
                0 => "Nothing was expected.".to_owned(),
                1 => "The one expectation holds.".to_owned(),
                n => format!("All {n} expectations hold."),
            };
            let text = self.style.paint(Paint::Green, &text);
            self.line(&text);
            return;
        }
        let word = self.style.paint(Paint::Red, "error:");
        let all = held + failures.len();
        self.line(&format!(
            "{word} {} of {} not come as expected",
            failures.len(),
            match all {
                1 => "1 expectation has".to_owned(),
                n => format!("{n} expectations have"),
            }
        ));
        for failure in failures {
            let origin = visible(&self.story.scenario.origin);
            let place = if failure.line == 0 { origin } else { format!("{origin}:{}", failure.line) };
            self.out.push('\n');
            self.line(&format!("  {place}"));
            self.broken("    expected  ", "              ", None, &failure.expected);
            self.broken("    came      ", "              ", None, &failure.came);
        }
    }
}

const fn outcome_paint(outcome: Outcome) -> Paint {
    match outcome {
        Outcome::Completed | Outcome::NoChange => Paint::Green,
        Outcome::FailedBeforeWrite | Outcome::FailedAfterWrite | Outcome::NeedsReview => Paint::Yellow,
        Outcome::Superseded | Outcome::Withdrawn => Paint::Bold,
    }
}

fn many(count: usize, word: &str) -> String {
    if count == 1 { format!("{count} {word}") } else { format!("{count} {word}s") }
}

/// How many columns a text takes, colours aside.
fn width(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().map_or(0, |part| part.chars().count());
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.chars().count())).sum::<usize>()
}

/// A line broken between words into lines of at most `room` characters; a word that is longer stands alone.
fn wrapped(line: &str, room: usize) -> Vec<String> {
    let rest = line.trim_start_matches(' ');
    let (indent, _) = line.split_at(line.len() - rest.len());
    let mut words = rest.split(' ');
    let mut now = format!("{indent}{}", words.next().unwrap_or_default());
    let mut lines = Vec::new();
    for word in words {
        if now.chars().count() + 1 + word.chars().count() > room {
            lines.push(std::mem::replace(&mut now, format!("{indent}{word}")));
        } else {
            now.push(' ');
            now.push_str(word);
        }
    }
    lines.push(now);
    lines
}

/// The story for programs.
pub fn json(story: &Story) -> Value {
    let run = |place: &usize| story.runs.get(*place).map(run_json);
    let entry = |entry: &Entry| {
        let mut value = match &entry.what {
            What::Act { by, words, note } => json!({"by": by, "what": words, "note": note}),
            What::Agent { run, words } => {
                let run = story.runs.get(*run);
                let finish = run.and_then(|run| run.finish.as_ref());
                json!({
                    "by": "agent",
                    "what": words,
                    "run": run.map(|run| run.id),
                    "outcome": finish.and_then(|f| f.outcome).map(Outcome::as_str),
                    "cost_usd": finish.and_then(|f| f.cost_cents).map(dollars),
                })
            }
        };
        if let Some(fields) = value.as_object_mut() {
            fields.insert("at".into(), time(entry.at).into());
            fields.insert("runs".into(), entry.runs.iter().filter_map(run).collect());
        }
        value
    };
    let failure = |f: &crate::app::simulate::Failure| json!({"line": f.line, "expected": f.expected, "came": f.came});
    json!({
        "schema": SCHEMA,
        "scenario": story.scenario.origin,
        "about": story.scenario.about,
        "repository": story.scenario.repository,
        "holds": story.holds(),
        "expectations_held": story.held,
        "failures": story.failures.iter().map(failure).collect::<Vec<_>>(),
        "triggers": story.runs.len(),
        "agent_starts": story.runs.iter().filter(|run| run.started()).count(),
        "requests": story.requests,
        "timeline": story.entries.iter().map(entry).collect::<Vec<_>>(),
    })
}

fn run_json(run: &RunStory) -> Value {
    json!({
        "run": run.id,
        "attempt": run.attempt,
        "event": run.event.name,
        "action": run.event.action,
        "began_at": time(run.began),
        "decided_at": run.decided.map(time),
        "cause": run.cause.map(Cause::as_str),
        "outcome": run.finish.as_ref().and_then(|f| f.outcome).map(Outcome::as_str),
        "check": run.report.as_ref().map(|report| super::json::check(report, run.decided.unwrap_or(run.began))),
    })
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_are_broken_between_words_and_keep_their_indentation() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("  one two", 5), ["  one", "  two"]);
        assert_eq!(wrapped("incomprehensible", 5), ["incomprehensible"]);
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("a  b", 10), ["a  b"]);
    }
}
