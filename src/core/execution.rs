//! What an agent's execution file says. It is written by the agent, so it is a statement, not a fact.

use serde_json::Value;

/// The figures of an agent's run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentResult {
    /// Whether the agent says that it did what it was asked.
    pub success: bool,
    /// The `subtype` of the result, such as `success` or `error_max_turns`.
    pub subtype: Option<String>,
    /// What it cost by its own estimate, in cents, rounded up.
    pub cost_cents: Option<u64>,
    /// How many turns it took.
    pub turns: Option<u64>,
}

/// What there is to read of an agent's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Execution {
    /// No file was named.
    NotGiven,
    /// The file that was named could not be read; why.
    Unreadable(String),
    /// The file holds no result: the agent was stopped before it could write one.
    NoResult,
    /// The file holds a result.
    Result(AgentResult),
}

/// Reads an execution file: a JSON array of messages, or one message a line. The last one of `type: result` counts.
/// Field names as claude-code-action writes them: `subtype`, `is_error`, `num_turns`, `total_cost_usd` (older:
/// `cost_usd`), each of which can be missing.
pub fn read(text: &str) -> Execution {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Execution::NoResult;
    }
    let messages: Vec<Value> = match serde_json::from_str(text) {
        Ok(Value::Array(messages)) => messages,
        Ok(message @ Value::Object(_)) => vec![message],
        Ok(_) => return Execution::Unreadable("it is JSON, but neither a list nor an object".to_owned()),
        Err(whole) => match text.lines().filter(|l| !l.trim().is_empty()).map(serde_json::from_str).collect() {
            Ok(messages) => messages,
            Err(_) => return Execution::Unreadable(format!("it is not JSON: {whole}")),
        },
    };
    let result = messages.iter().rev().find(|m| m.get("type").and_then(Value::as_str) == Some("result"));
    let Some(result) = result else { return Execution::NoResult };
    let subtype = result.get("subtype").and_then(Value::as_str).map(|s| s.chars().take(60).collect::<String>());
    let is_error = result.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    let cost = result.get("total_cost_usd").or_else(|| result.get("cost_usd")).and_then(Value::as_f64);
    Execution::Result(AgentResult {
        success: subtype.as_deref() == Some("success") && !is_error,
        subtype,
        cost_cents: cost.and_then(cents),
        turns: result.get("num_turns").and_then(Value::as_u64),
    })
}

/// Dollars to cents, rounded up, so that a run is never taken to be cheaper than it says. Nothing sensible gives `None`.
fn cents(dollars: f64) -> Option<u64> {
    // Above this a figure is no price of one run, and the conversion below would not be exact.
    const MOST: f64 = 1_000_000.0;
    if !dollars.is_finite() || !(0.0..=MOST).contains(&dollars) {
        return None;
    }
    // The string has a fixed form, so that no float is cast. Nine digits are more than a price has, and few enough
    // that what a float cannot hold exactly does not show.
    let fixed = format!("{dollars:.9}");
    let (whole, fraction) = fixed.split_once('.')?;
    let billionths = whole.parse::<u64>().ok()? * 1_000_000_000 + fraction.parse::<u64>().ok()?;
    Some(billionths.div_ceil(10_000_000))
}
