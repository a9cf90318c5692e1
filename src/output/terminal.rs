//! Results for people at a terminal, and for the log of a workflow step.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};

use super::escape::{at_most, is_plain_url, log_line, visible, visible_lines};
use crate::app::report::{CheckReport, FinishReport, VerifyReport};
use crate::core::decision::{Gate, Seen, Verdict};
use crate::core::gates::in_words;

/// How to write.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether colours may be used. Nothing is said by colour alone.
    pub color: bool,
    /// The time from which spans are told.
    pub now: DateTime<Utc>,
}

/// How long a line of text may be, in characters.
const MAX_LINE: usize = 1000;

#[derive(Clone, Copy)]
pub(super) enum Paint {
    Green,
    Yellow,
    Red,
    Bold,
    Dim,
}

impl Style {
    pub(super) fn paint(self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Green => "32",
            Paint::Yellow => "33",
            Paint::Red => "31",
            Paint::Bold => "1",
            Paint::Dim => "2",
        };
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

pub(super) const fn paint_of(verdict: Verdict) -> Paint {
    match verdict {
        Verdict::Proceed => Paint::Green,
        Verdict::Skip => Paint::Bold,
        Verdict::Defer | Verdict::Review => Paint::Yellow,
        Verdict::Error => Paint::Red,
    }
}

/// A point in time: the time of day, with the date where that is not today, and how far it is.
pub(super) fn time(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let format = if at.date_naive() == now.date_naive() { "%H:%M UTC" } else { "%Y-%m-%d %H:%M UTC" };
    let at_words = at.format(format);
    if at > now { format!("{at_words}, in {}", in_words(at - now)) } else { format!("{at_words}, which is now") }
}

/// An amount of money in US dollars.
pub(super) fn dollars(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// `owner/name issue 731 · task`, as far as it is known.
pub(super) fn subject(report: &CheckReport) -> String {
    let resource = report.key.as_ref().map(|key| key.resource().in_words());
    let what: Vec<String> = report.repository.iter().map(|r| visible(r)).chain(resource).collect();
    if what.is_empty() { report.task.to_string() } else { format!("{} · {}", what.join(" "), report.task) }
}

/// What can be done, and whose words that is.
pub(super) enum NextStep {
    /// This program's own words, in which backticks mark code.
    Ours(&'static str),
    /// Words that may repeat what stands in a file or an answer.
    Foreign(String),
}

impl NextStep {
    /// The words in one line.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Ours(words) => (*words).to_owned(),
            Self::Foreign(words) => visible(&at_most(words, MAX_LINE)),
        }
    }
}

/// The message without the hint that a mistake in a file brings along, and what can be done.
pub(super) fn message_and_next_step(report: &CheckReport) -> (&str, Option<NextStep>) {
    let (message, brought) = match report.message.rsplit_once("\n\nhint: ") {
        Some((message, hint)) => (message, Some(hint)),
        None => (report.message.as_str(), None),
    };
    let step = match report.hint.as_deref().or(brought) {
        Some(hint) => Some(NextStep::Foreign(hint.to_owned())),
        None if report.proceeds() && report.marker.is_some() && !report.dry_run => Some(NextStep::Ours(
            "End what the agent writes with the output `marker`, so that it is known as the agent's.",
        )),
        None => report.reason.map(|reason| NextStep::Ours(reason.next_step())),
    };
    (message, step)
}

/// The result of `check`.
pub fn check(report: &CheckReport, style: Style) -> String {
    let mut out = String::new();
    let indent = if report.verdict == Verdict::Error {
        error_head(&mut out, report, style);
        "  "
    } else {
        let pad = report.verdict.as_str().len().saturating_add(2);
        head(&mut out, report, style);
        SPACES.get(..pad).unwrap_or(SPACES)
    };
    let (message, step) = message_and_next_step(report);
    for line in visible_lines(message) {
        line_of(&mut out, indent, &line);
    }
    for link in &report.evidence {
        if is_plain_url(&link.url) && !report.message.contains(&link.url) {
            line_of(&mut out, indent, &link.url);
        }
    }
    if let Some(at) = report.retry_at {
        line_of(&mut out, indent, &format!("another answer is possible at {}", time(at, style.now)));
    }
    if report.dry_run {
        line_of(&mut out, indent, "dry run: nothing was written");
    }
    tree(&mut out, report, style, indent);
    if let Some(step) = step.map(|step| step.words()) {
        let word = style.paint(Paint::Bold, "hint:");
        let _ = write!(out, "\n{}{word} {step}\n", if report.verdict == Verdict::Error { "" } else { indent });
    }
    warnings(&mut out, &report.warnings, style, indent);
    finished(&out)
}

const SPACES: &str = "          ";

fn line_of(out: &mut String, indent: &str, line: &str) {
    let _ = writeln!(out, "{}", format!("{indent}{}", at_most(line, MAX_LINE)).trim_end());
}

fn head(out: &mut String, report: &CheckReport, style: Style) {
    let verdict = style.paint(paint_of(report.verdict), report.verdict.as_str());
    let why = match (report.reason, report.fence) {
        (Some(reason), _) => reason.code().to_owned(),
        (None, Some(fence)) => format!("claim {fence}"),
        (None, None) => "without a claim".to_owned(),
    };
    let _ = writeln!(out, "{verdict}  {}   {}", style.paint(Paint::Bold, &why), subject(report));
}

fn error_head(out: &mut String, report: &CheckReport, style: Style) {
    let word = style.paint(Paint::Red, "error:");
    let (meaning, code) = match report.reason {
        Some(reason) => (reason.meaning().trim_end_matches('.'), format!(" ({reason})")),
        None => ("it is not known why", String::new()),
    };
    let mut letters = meaning.chars();
    let first = letters.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    let meaning =
        if meaning.starts_with("GitHub") { meaning.to_owned() } else { format!("{first}{}", letters.as_str()) };
    let _ = writeln!(out, "{word} no decision was made: {meaning}{code}");
    let _ = writeln!(out, "  {}", subject(report));
}

/// The gates in their order: what those that passed saw, the one that objected, and those that were not asked.
fn tree(out: &mut String, report: &CheckReport, style: Style, indent: &str) {
    let Some(rows) = gates(report) else { return };
    out.push('\n');
    for (gate, passed, saw) in rows {
        let sign = if passed { style.paint(Paint::Green, "✓") } else { style.paint(paint_of(report.verdict), "✗") };
        let name = style.paint(Paint::Dim, &format!("{gate:<9}"));
        line_of(out, indent, &format!("{sign} {name}  {saw}"));
    }
}

/// Each gate that was asked, whether it passed, and what it saw; the reason code for the one that objected. `None` where
/// no gate was asked.
pub(super) fn gates(report: &CheckReport) -> Option<Vec<(Gate, bool, String)>> {
    let seen = report.path.iter().take(Gate::ALL.len());
    let mut rows: Vec<_> = seen.map(|s| (s.gate, true, visible(&at_most(&s.saw, MAX_LINE)))).collect();
    if let Some(reason) = report.reason.filter(|_| !report.proceeds()) {
        // Whoever loses a race is told `in-progress` by the claim gate: it is the place, not the reason, that tells.
        let after = |last: &Seen| Gate::ALL.into_iter().find(|gate| *gate > last.gate).unwrap_or(Gate::Claim);
        rows.push((report.path.last().map_or(reason.gate(), after), false, reason.code().to_owned()));
    }
    (!rows.is_empty()).then_some(rows)
}

fn warnings(out: &mut String, warnings: &[String], style: Style, indent: &str) {
    for warning in warnings.iter().take(MAX_WARNINGS) {
        let word = style.paint(Paint::Yellow, "warning:");
        let mut lines = visible_lines(warning).into_iter();
        let _ = writeln!(out, "\n{word} {}", at_most(&lines.next().unwrap_or_default(), MAX_LINE));
        for line in lines {
            line_of(out, indent, &line);
        }
    }
}

/// How many warnings are shown.
pub(super) const MAX_WARNINGS: usize = 20;

/// The result of `finish`.
pub fn finish(report: &FinishReport, style: Style) -> String {
    let mut out = String::new();
    let word = report.outcome.map_or("not settled", crate::core::claim::Outcome::as_str);
    let paint = if report.outcome.is_some() { Paint::Bold } else { Paint::Yellow };
    let claim = report.claim.as_ref().map_or_else(String::new, |claim| {
        format!("  claim {}   {} · {}", claim.number, claim.key.resource().in_words(), claim.key.task())
    });
    let _ = writeln!(out, "{}{claim}", style.paint(paint, word));
    let indent = " ".repeat(word.len().saturating_add(2));
    for line in visible_lines(&report.message) {
        line_of(&mut out, &indent, &line);
    }
    if let Some(spent) = spent(report) {
        line_of(&mut out, &indent, &spent);
    }
    warnings(&mut out, &report.warnings, style, "  ");
    finished(&out)
}

/// The result of `verify`.
pub fn verify(report: &VerifyReport, style: Style) -> String {
    let mut out = String::new();
    let (word, paint) = if report.holds { ("held", Paint::Bold) } else { ("not held", Paint::Yellow) };
    let claim = report.claim.as_ref().map_or_else(String::new, |claim| {
        format!("  claim {}   {} · {}", claim.number, claim.key.resource().in_words(), claim.key.task())
    });
    let _ = writeln!(out, "{}{claim}", style.paint(paint, word));
    let indent = " ".repeat(word.len().saturating_add(2));
    for line in visible_lines(&report.message) {
        line_of(&mut out, &indent, &line);
    }
    finished(&out)
}

/// What the agent took, as far as it is known.
pub(super) fn spent(report: &FinishReport) -> Option<String> {
    let cost = report.cost_cents.map(|cents| format!("{} USD", dollars(cents)));
    let turns = report.turns.map(|n| if n == 1 { "1 turn".to_owned() } else { format!("{n} turns") });
    let both: Vec<String> = cost.into_iter().chain(turns).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

/// The one way out: no line of it is a command to the runner.
fn finished(out: &str) -> String {
    out.lines().map(|line| log_line(line) + "\n").collect()
}
