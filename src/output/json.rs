//! Results for programs: a frozen form with a version, apart from the types that the code works with.
//!
//! What is here stays: within `v1`, fields are added and never renamed, removed or given another meaning. Each output
//! of the action is a field of the same name, with `_` for `-`.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::Value;

use super::terminal::{dollars, gates, message_and_next_step};
use crate::app::report::{CheckReport, FinishReport, VerifyReport};
use crate::core::decision::Reason;

/// The name of the form of `check`'s result.
pub const CHECK_SCHEMA: &str = "run-guard/check/v1";

/// The name of the form of `finish`'s result.
pub const FINISH_SCHEMA: &str = "run-guard/finish/v1";

/// The name of the form of `verify`'s result.
pub const VERIFY_SCHEMA: &str = "run-guard/verify/v1";

#[derive(Serialize)]
struct CheckV1<'r> {
    schema: &'static str,
    verdict: &'static str,
    /// Whether the agent may start: never in a dry run.
    proceed: bool,
    reason: Option<&'static str>,
    /// What the reason means, in general.
    meaning: Option<&'static str>,
    message: &'r str,
    hint: Option<String>,
    dry_run: bool,
    repository: Option<&'r str>,
    resource: Option<ResourceV1<'r>>,
    task: &'r str,
    key: Option<String>,
    digest: Option<String>,
    claim: Option<String>,
    fence: Option<u32>,
    marker: Option<String>,
    source_run_url: Option<&'r str>,
    result_url: Option<&'r str>,
    head_sha: Option<&'r str>,
    partition: Option<String>,
    /// Seconds from now.
    retry_after: Option<i64>,
    /// RFC 3339.
    retry_at: Option<String>,
    budget_remaining_runs_hour: Option<u32>,
    budget_remaining_runs_day: Option<u32>,
    /// A decimal number as text, so that no reader rounds it.
    budget_remaining_usd_day: Option<String>,
    attached: [&'static str; 0],
    gates: Vec<GateV1>,
    evidence: Vec<LinkV1<'r>>,
    warnings: &'r [String],
}

#[derive(Serialize)]
struct ResourceV1<'r> {
    /// As in keys: `issue/731` or `pr/12`.
    name: String,
    number: Option<u64>,
    url: Option<&'r str>,
}

#[derive(Serialize)]
struct GateV1 {
    gate: &'static str,
    passed: bool,
    saw: String,
}

#[derive(Serialize)]
struct LinkV1<'r> {
    what: &'r str,
    url: &'r str,
}

#[derive(Serialize)]
struct FinishV1<'r> {
    schema: &'static str,
    claim: Option<String>,
    outcome: Option<&'static str>,
    message: &'r str,
    /// A decimal number as text, so that no reader rounds it.
    cost_usd: Option<String>,
    turns: Option<u64>,
    warnings: &'r [String],
}

#[derive(Serialize)]
struct VerifyV1<'r> {
    schema: &'static str,
    claim: Option<String>,
    holds: bool,
    message: &'r str,
    head_sha: Option<&'r str>,
}

/// Seconds until a time, none of them negative.
pub(super) fn seconds_until(at: DateTime<Utc>, now: DateTime<Utc>) -> i64 {
    let span = at - now;
    let part = i64::from(span.subsec_nanos() > 0);
    span.num_seconds().saturating_add(part).max(0)
}

/// The result of `check`.
pub fn check(report: &CheckReport, now: DateTime<Utc>) -> Value {
    let form = CheckV1 {
        schema: CHECK_SCHEMA,
        verdict: report.verdict.as_str(),
        proceed: report.proceeds() && !report.dry_run,
        reason: report.reason.map(Reason::code),
        meaning: report.reason.map(Reason::meaning),
        message: &report.message,
        hint: message_and_next_step(report).1.map(|step| step.words()),
        dry_run: report.dry_run,
        repository: report.repository.as_deref(),
        resource: report.key.as_ref().map(|key| ResourceV1 {
            name: key.resource().to_string(),
            number: key.resource().number(),
            url: report.resource_url.as_deref(),
        }),
        task: report.task.as_str(),
        key: report.key.as_ref().map(ToString::to_string),
        digest: report.key.as_ref().map(|key| key.digest().to_string()),
        claim: report.claim.as_ref().map(ToString::to_string),
        fence: report.fence,
        marker: report.marker.as_ref().map(crate::core::marker::Marker::encode),
        source_run_url: report.source_run_url.as_deref(),
        result_url: report.result_url.as_deref(),
        head_sha: report.head_sha.as_deref(),
        partition: report.partition(),
        retry_after: report.retry_at.map(|at| seconds_until(at, now)),
        retry_at: report.retry_at.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true)),
        budget_remaining_runs_hour: report.budget.runs_hour,
        budget_remaining_runs_day: report.budget.runs_day,
        budget_remaining_usd_day: report.budget.cost_day_cents.map(dollars),
        attached: [],
        gates: gates(report)
            .unwrap_or_default()
            .into_iter()
            .map(|(gate, passed, saw)| GateV1 { gate: gate.as_str(), passed, saw })
            .collect(),
        evidence: report.evidence.iter().map(|l| LinkV1 { what: &l.what, url: &l.url }).collect(),
        warnings: &report.warnings,
    };
    to_value(form)
}

/// The result of `finish`.
pub fn finish(report: &FinishReport) -> Value {
    to_value(FinishV1 {
        schema: FINISH_SCHEMA,
        claim: report.claim.as_ref().map(ToString::to_string),
        outcome: report.outcome.map(crate::core::claim::Outcome::as_str),
        message: &report.message,
        cost_usd: report.cost_cents.map(dollars),
        turns: report.turns,
        warnings: &report.warnings,
    })
}

/// The result of `verify`.
pub fn verify(report: &VerifyReport) -> Value {
    to_value(VerifyV1 {
        schema: VERIFY_SCHEMA,
        claim: report.claim.as_ref().map(ToString::to_string),
        holds: report.holds,
        message: &report.message,
        head_sha: report.head_sha.as_deref(),
    })
}

#[expect(clippy::expect_used, reason = "structs of texts, numbers and lists always have a JSON form")]
fn to_value(form: impl Serialize) -> Value {
    serde_json::to_value(form).expect("a form of plain fields")
}

/// The text of a value, indented. No line of it is a command to the Actions runner, and every character that cannot
/// be seen is escaped, so that it may go to a log.
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    for c in format!("{value:#}").replace("##[", "##\\u005b").chars() {
        if c != '\n' && super::escape::is_hidden(c) {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out.push('\n');
    out
}
