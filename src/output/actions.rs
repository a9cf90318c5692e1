//! Results for GitHub Actions: step outputs, the job summary and the annotation.

use std::fmt::Write as _;
use std::io;

use chrono::{DateTime, Utc};

use super::escape::{
    at_most, command_data, command_property, is_plain_url, markdown, markdown_block, markdown_link, visible,
    visible_lines,
};
use super::json::seconds_until;
use super::terminal::{MAX_WARNINGS, NextStep, dollars, gates, message_and_next_step, spent, time};
use crate::app::report::{CheckReport, FinishReport, VerifyReport};
use crate::core::decision::{Gate, Verdict};

/// How long one output may be, in characters. GitHub allows a job 1 MB of outputs.
const MAX_OUTPUT: usize = 20_000;

/// How long a piece of text in the summary may be, in characters. GitHub allows a step 1 MiB of summary.
const MAX_TEXT: usize = 1000;

/// How many lines of a message the summary has.
const MAX_LINES: usize = 20;

/// How long the message of an annotation may be, in characters. GitHub cuts longer ones.
const MAX_ANNOTATION: usize = 3000;

/// The outputs of `check`: all of them, whatever the verdict; empty where there is nothing to say.
pub fn outputs(report: &CheckReport, now: DateTime<Utc>) -> Vec<(&'static str, String)> {
    fn text(value: Option<impl ToString>) -> String {
        value.map(|v| v.to_string()).unwrap_or_default()
    }
    let outputs = vec![
        ("verdict", report.verdict.to_string()),
        ("proceed", (report.proceeds() && !report.dry_run).to_string()),
        ("reason", text(report.reason)),
        ("message", report.message.clone()),
        ("key", text(report.key.as_ref())),
        ("digest", text(report.key.as_ref().map(crate::core::key::Key::digest))),
        ("claim", text(report.claim.as_ref())),
        ("fence", text(report.fence)),
        ("marker", text(report.marker.as_ref().map(crate::core::marker::Marker::encode))),
        ("source-run-url", text(report.source_run_url.as_ref())),
        ("retry-after", text(report.retry_at.map(|at| seconds_until(at, now)))),
        ("budget-remaining-runs-hour", text(report.budget.runs_hour)),
        ("budget-remaining-runs-day", text(report.budget.runs_day)),
        ("budget-remaining-usd-day", text(report.budget.cost_day_cents.map(dollars))),
        ("head-sha", text(report.head_sha.as_ref())),
        ("attached", String::new()),
        ("result-url", text(report.result_url.as_ref())),
        ("partition", text(report.partition())),
    ];
    bounded(outputs)
}

/// The outputs of `finish`: all of them; empty where there is nothing to say.
pub fn finish_outputs(report: &FinishReport) -> Vec<(&'static str, String)> {
    bounded(vec![
        ("outcome", report.outcome.map(|o| o.to_string()).unwrap_or_default()),
        ("message", report.message.clone()),
        ("cost-usd", report.cost_cents.map(dollars).unwrap_or_default()),
        ("turns", report.turns.map(|n| n.to_string()).unwrap_or_default()),
    ])
}

/// The outputs of `verify`: all of them; empty where there is nothing to say.
pub fn verify_outputs(report: &VerifyReport) -> Vec<(&'static str, String)> {
    bounded(vec![
        ("holds", report.holds.to_string()),
        ("message", report.message.clone()),
        ("head-sha", report.head_sha.clone().unwrap_or_default()),
    ])
}

/// No value is longer than it may be or holds a NUL, which no environment variable can hold.
fn bounded(mut outputs: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    for (_, value) in &mut outputs {
        *value = at_most(value, MAX_OUTPUT).replace('\0', "\u{fffd}");
    }
    outputs
}

/// Appends outputs to the runner's file, each between delimiters that do not occur in it. `delimiter` gives a new
/// random word each time it is called.
///
/// # Errors
///
/// The file cannot be written, or no delimiter is found that the value does not hold, which a random source rules out.
pub fn append_outputs(
    file: &mut impl io::Write,
    outputs: &[(&'static str, String)],
    mut delimiter: impl FnMut() -> String,
) -> io::Result<()> {
    let mut text = String::new();
    for (name, value) in outputs {
        let fits = |word: &String| {
            !word.is_empty()
                && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !value.contains(word.as_str())
        };
        let word = std::iter::repeat_with(|| format!("run_guard_{}", delimiter()))
            .take(100)
            .find(fits)
            .ok_or_else(|| io::Error::other(format!("no delimiter fits the output {name}")))?;
        let _ = write!(text, "{name}<<{word}\n{value}\n{word}\n");
    }
    file.write_all(text.as_bytes())
}

/// The annotation of `check`, one line: the record of what was decided and why, from which `run-guard VERDICT REASON
/// DIGEST` can be read back; a dash stands for what there is not. Errors are red; whatever waits for a person is a warning.
pub fn annotation(report: &CheckReport) -> String {
    let level = match report.verdict {
        Verdict::Error => "error",
        // An outsider who asks must not be able to raise warnings.
        Verdict::Review if report.reason.is_none_or(|r| r.gate() != Gate::Trigger) => "warning",
        // A pause or a newer commit is looked after by whoever made it.
        Verdict::Defer if report.reason.is_none_or(|r| r.gate() != Gate::State) => "warning",
        Verdict::Proceed | Verdict::Skip | Verdict::Defer | Verdict::Review => "notice",
    };
    let reason = report.reason.map_or("-", |r| r.code());
    let digest = report.key.as_ref().map_or_else(|| "-".to_owned(), |key| key.digest().to_string());
    command(level, &format!("run-guard {} {reason} {digest}", report.verdict), &report.message)
}

/// The annotation of `finish`, one line.
pub fn finish_annotation(report: &FinishReport) -> String {
    let level = if report.outcome.is_none() || !report.warnings.is_empty() { "warning" } else { "notice" };
    let digest = report.claim.as_ref().map_or_else(|| "-".to_owned(), |claim| claim.key.digest().to_string());
    let outcome = report.outcome.map_or("-", |o| o.as_str());
    let message: Vec<&str> = std::iter::once(&report.message).chain(&report.warnings).map(String::as_str).collect();
    command(level, &format!("run-guard finish {outcome} {digest}"), &message.join("\n"))
}

/// The annotation of `verify`, one line.
pub fn verify_annotation(report: &VerifyReport) -> String {
    let (level, word) = if report.holds { ("notice", "held") } else { ("error", "not-held") };
    let digest = report.claim.as_ref().map_or_else(|| "-".to_owned(), |claim| claim.key.digest().to_string());
    command(level, &format!("run-guard verify {word} {digest}"), &report.message)
}

fn command(level: &str, title: &str, message: &str) -> String {
    let message = at_most(&visible_lines(message).join("\n"), MAX_ANNOTATION);
    format!("::{level} title={}::{}", command_property(&visible(title)), command_data(&message))
}

/// The job summary of `check`, in Markdown.
pub fn summary(report: &CheckReport, now: DateTime<Utc>) -> String {
    let mut out = String::new();
    let sign = match report.verdict {
        Verdict::Proceed => "✅",
        Verdict::Skip => "⏭️",
        Verdict::Defer => "⏳",
        Verdict::Review => "👀",
        Verdict::Error => "❌",
    };
    let _ = write!(out, "### {sign} run-guard: {}", report.verdict);
    match (report.reason, report.fence) {
        (Some(reason), _) => {
            let _ = writeln!(out, " · `{reason}`\n\n{}", reason.meaning());
        }
        (None, Some(fence)) if report.dry_run => {
            let _ = writeln!(out, " · claim {fence}\n\nThe agent would have started.");
        }
        (None, Some(fence)) => {
            let _ = writeln!(out, " · claim {fence}\n\nThe agent may start: this run holds the lease.");
        }
        (None, None) => out.push_str("\n\nThe agent may start, without a claim.\n"),
    }
    let resource = report.key.as_ref().map(|key| {
        let words = key.resource().in_words();
        report.resource_url.as_deref().map_or_else(|| markdown(&words), |url| markdown_link(&words, url))
    });
    let repository = report.repository.as_deref().map(|r| markdown(&at_most(r, MAX_TEXT)));
    let place: Vec<String> = repository.into_iter().chain(resource).collect();
    let task = report.task.as_str();
    if place.is_empty() {
        let _ = writeln!(out, "\ntask `{task}`");
    } else {
        let _ = writeln!(out, "\n**{}** · task `{task}`", place.join(" "));
    }
    let (said, step) = message_and_next_step(report);
    message(&mut out, said);
    let links: Vec<String> = report
        .evidence
        .iter()
        .filter(|l| is_plain_url(&l.url))
        .take(MAX_LINES)
        .map(|l| format!("- {}\n", markdown_link(&at_most(&l.what, MAX_TEXT), &l.url)))
        .collect();
    if !links.is_empty() {
        let _ = write!(out, "\n{}", links.concat());
    }
    if report.dry_run {
        out.push_str("\nThis was a dry run: nothing was written, and `proceed` is not `true`.\n");
    }
    if let Some(at) = report.retry_at {
        let _ = writeln!(out, "\nAnother answer is possible at {}.", markdown(&time(at, now)));
    }
    if let Some(step) = step {
        let words = match &step {
            NextStep::Ours(words) => (*words).to_owned(),
            NextStep::Foreign(_) => markdown(&step.words()),
        };
        let _ = writeln!(out, "\n**Next:** {words}");
    }
    if let Some(rows) = gates(report) {
        out.push_str("\n| gate | | saw |\n|---|---|---|\n");
        for (gate, passed, saw) in rows {
            let _ =
                writeln!(out, "| {gate} | {} | {} |", if passed { "passed" } else { "**objects**" }, markdown(&saw));
        }
    }
    warnings(&mut out, &report.warnings);
    out
}

/// The job summary of `finish`, in Markdown.
pub fn finish_summary(report: &FinishReport) -> String {
    let mut out = String::from("### run-guard: ");
    match report.outcome {
        Some(outcome) => {
            let _ = write!(out, "the agent ended `{outcome}`");
        }
        None => out.push_str("nothing was settled"),
    }
    out.push('\n');
    if let Some(claim) = &report.claim {
        let (resource, task) = (claim.key.resource().in_words(), claim.key.task());
        let _ = writeln!(out, "\n**{resource}** · task `{task}` · claim {}", claim.number);
    }
    message(&mut out, &report.message);
    if let Some(spent) = spent(report) {
        let _ = writeln!(out, "\nThe agent took {}.", markdown(&spent));
    }
    warnings(&mut out, &report.warnings);
    out
}

/// A message: a sentence as text, and what has more lines, such as a mistake with the line that holds it, as a block.
fn message(out: &mut String, message: &str) {
    let lines: Vec<String> =
        visible_lines(message).iter().take(MAX_LINES).map(|line| at_most(line, MAX_TEXT)).collect();
    match lines.as_slice() {
        [line] => {
            let _ = writeln!(out, "\n{}", markdown(line));
        }
        lines => {
            let _ = write!(out, "\n{}", markdown_block(lines));
        }
    }
}

fn warnings(out: &mut String, warnings: &[String]) {
    for warning in warnings.iter().take(MAX_WARNINGS) {
        out.push_str("\n**Warning:**\n");
        message(out, warning);
    }
}
