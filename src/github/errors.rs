//! What went wrong, in the words of the port: the one place where statuses, bodies and broken connections become a
//! [`PortError`].

use std::error::Error as StdError;

use chrono::{DateTime, TimeDelta, Utc};
use http::{HeaderMap, StatusCode};
use octocrab::GitHubError;
use serde_json::Value;

use super::token::Token;
use crate::ports::PortError;

/// The longest text of GitHub's that an error carries, in characters.
const MAX_WORDS: usize = 300;
/// How long to wait after a secondary rate limit that names no time, as GitHub's documentation asks, in seconds.
const UNSAID_WAIT: i64 = 60;
/// The longest wait that an answer is believed to ask for, in seconds. Primary limits are reset every hour.
const MAX_WAIT: i64 = 24 * 60 * 60;

/// Whether a request could change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It only reads, a GraphQL query included.
    Read,
    /// It may have taken effect even if no answer came.
    Write,
}

/// A request that was sent, for those who must say what became of it.
#[derive(Debug)]
pub(super) struct Sent<'a> {
    /// Method and path.
    pub(super) request: String,
    /// Whether it could change anything.
    pub(super) effect: Effect,
    /// The token, so that no error repeats it.
    pub(super) token: &'a Token,
    /// The time, by GitHub's clock where it said one.
    pub(super) now: DateTime<Utc>,
}

impl Sent<'_> {
    /// GitHub's words made fit for an error: one line, bounded, without the token.
    pub(super) fn clean(&self, words: &str) -> String {
        let words = self.token.hide_in(words);
        let words: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let words = words.trim();
        match words.char_indices().nth(MAX_WORDS) {
            Some((end, _)) => format!("{}…", words.get(..end).unwrap_or(words)),
            None => words.to_owned(),
        }
    }

    /// No answer came, or one that leaves open what happened.
    pub(super) fn lost(&self, why: &str) -> PortError {
        let (request, why) = (self.request.clone(), self.clean(why));
        match self.effect {
            Effect::Read => PortError::Unreachable { request, why },
            Effect::Write => PortError::Ambiguous { request, why },
        }
    }

    /// The answer is not of the promised form.
    pub(super) fn malformed(&self, why: &str) -> PortError {
        PortError::Malformed { request: self.request.clone(), why: self.clean(why) }
    }

    /// The server refused.
    pub(super) fn denied(&self, status: StatusCode, words: &str) -> PortError {
        PortError::Denied { status: status.as_u16(), message: self.clean(words), request: self.request.clone() }
    }

    /// A rate limit.
    pub(super) fn rate_limited(&self, headers: &HeaderMap) -> PortError {
        PortError::RateLimited { retry_at: retry_at(headers, self.now), request: self.request.clone() }
    }

    /// An answer with a status that is no success.
    pub(super) fn answered(&self, error: &GitHubError) -> PortError {
        let status = error.status_code;
        let words = in_words(error);
        let none = HeaderMap::new();
        let headers = error.headers.as_ref().unwrap_or(&none);
        if is_rate_limit(status, headers, &error.message) {
            return self.rate_limited(headers);
        }
        if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT {
            return self.lost(&format!("status {} \"{words}\"", status.as_u16()));
        }
        match status {
            StatusCode::UNPROCESSABLE_ENTITY if says_already_exists(error) => {
                PortError::Exists { request: self.request.clone() }
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => PortError::Missing {
                status: status.as_u16(),
                message: self.clean(&words),
                request: self.request.clone(),
            },
            _ => self.denied(status, &words),
        }
    }

    /// A request that octocrab gave up: an answer that is no success, or none at all.
    pub(super) fn failed(&self, error: &octocrab::Error) -> PortError {
        if let octocrab::Error::GitHub { source, .. } = error {
            return self.answered(source);
        }
        let chain = chain_of(error);
        let root = root_of(error);
        if chain.iter().any(|e| e.is::<http_body_util::LengthLimitError>()) {
            let why = "the answer is too large";
            return if self.effect == Effect::Read { self.malformed(why) } else { self.lost(why) };
        }
        match chain.iter().find_map(|e| e.downcast_ref::<reqwest::Error>()) {
            Some(e) if e.is_timeout() => self.lost("the time for it ran out"),
            // Without a connection nothing was sent, so not even a write can have taken effect.
            Some(e) if e.is_connect() => PortError::Unreachable {
                request: self.request.clone(),
                why: self.clean(&format!("no connection: {root}")),
            },
            _ => self.lost(&format!("the connection broke: {root}")),
        }
    }
}

/// An error and what caused it, the cause last.
fn chain_of<'a>(error: &'a (dyn StdError + 'static)) -> Vec<&'a (dyn StdError + 'static)> {
    let mut chain = vec![error];
    let mut cause = error.source();
    while let Some(e) = cause {
        chain.push(e);
        cause = e.source();
    }
    chain
}

/// The words of the innermost cause, which say more than those around it.
pub(super) fn root_of(error: &(dyn StdError + 'static)) -> String {
    chain_of(error).last().map(ToString::to_string).unwrap_or_default()
}

/// GitHub's `message`, with the particulars of its `errors`.
fn in_words(error: &GitHubError) -> String {
    let particulars: Vec<String> = error.errors.iter().flatten().filter_map(particular).collect();
    if particulars.is_empty() {
        error.message.clone()
    } else {
        format!("{}: {}", error.message, particulars.join(", "))
    }
}

/// One entry of `errors`: a sentence, or resource, field and code.
fn particular(entry: &Value) -> Option<String> {
    if let Some(text) = entry.as_str() {
        return Some(text.to_owned());
    }
    let field = |name: &str| entry.get(name).and_then(Value::as_str).filter(|v| !v.is_empty());
    if let Some(message) = field("message") {
        return Some(message.to_owned());
    }
    let parts: Vec<&str> = ["resource", "field", "code"].into_iter().filter_map(field).collect();
    if parts.is_empty() { None } else { Some(parts.join(" ")) }
}

/// Whether a 422 says that the thing to be created is there already. No other code means that.
fn says_already_exists(error: &GitHubError) -> bool {
    error.errors.iter().flatten().any(|e| e.get("code").and_then(Value::as_str) == Some("already_exists"))
}

/// Whether an answer is a rate limit: a 429, or a 403 that says so by header or in words.
/// <https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api>
fn is_rate_limit(status: StatusCode, headers: &HeaderMap, message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::FORBIDDEN
            && (headers.contains_key(http::header::RETRY_AFTER)
                || is_used_up(headers)
                || ["rate limit exceeded", "secondary rate limit", "abuse detection"]
                    .iter()
                    .any(|words| message.contains(words)))
}

fn is_used_up(headers: &HeaderMap) -> bool {
    text(headers, "x-ratelimit-remaining") == Some("0")
}

/// When to ask again: what `retry-after` says, else the reset of a limit that is used up, else in a minute.
fn retry_at(headers: &HeaderMap, now: DateTime<Utc>) -> DateTime<Utc> {
    let after = text(headers, "retry-after").and_then(|value| match value.parse::<i64>() {
        Ok(seconds) => now.checked_add_signed(TimeDelta::try_seconds(seconds)?),
        Err(_) => http_date(value),
    });
    let reset = || {
        let seconds = text(headers, "x-ratelimit-reset").filter(|_| is_used_up(headers))?.parse().ok()?;
        DateTime::from_timestamp(seconds, 0)
    };
    let at = after.or_else(reset).unwrap_or(now + TimeDelta::seconds(UNSAID_WAIT));
    at.clamp(now, now + TimeDelta::seconds(MAX_WAIT))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// A time as HTTP headers write it.
pub(super) fn http_date(value: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc2822(value).ok().map(|at| at.with_timezone(&Utc))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    /// Runs an answer through the same path as the client's.
    fn answer(effect: Effect, status: u16, headers: &[(&str, &str)], body: &str) -> PortError {
        let token = Token::new("ghp_canary").unwrap();
        let sent = Sent { request: "POST /x".to_owned(), effect, token: &token, now: now() };
        let mut response = http::Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let body = http_body_util::BodyExt::map_err(body.to_owned(), |never| match never {});
        let response = response.body(http_body_util::BodyExt::boxed(body)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = runtime.block_on(octocrab::map_github_error(response)).unwrap_err();
        sent.failed(&error)
    }

    #[test]
    fn each_refusal_has_its_kind() {
        use Effect::{Read, Write};
        let exists =
            r#"{"message":"Validation Failed","errors":[{"resource":"Label","code":"already_exists","field":"name"}]}"#;
        let too_long = r#"{"message":"Validation Failed","errors":[{"resource":"Label","code":"custom","field":"description","message":"description is too long (maximum is 100 characters)"}]}"#;
        let invalid = r#"{"message":"Validation Failed","errors":[{"resource":"Label","code":"invalid","field":"name"},"and more"]}"#;
        let integration =
            r#"{"message":"Resource not accessible by integration","documentation_url":"https://docs.github.com"}"#;
        let spam = r#"{"message":"Validation Failed","errors":"Reference already exists"}"#;
        let cases: &[(Effect, u16, &str, &str)] = &[
            (Write, 422, exists, "it exists already (POST /x)"),
            (
                Write,
                422,
                too_long,
                r#"GitHub answered 422 "Validation Failed: description is too long (maximum is 100 characters)" to POST /x"#,
            ),
            (
                Write,
                422,
                invalid,
                r#"GitHub answered 422 "Validation Failed: Label name invalid, and more" to POST /x"#,
            ),
            (
                Write,
                422,
                r#"{"message":"Reference already exists"}"#,
                r#"GitHub answered 422 "Reference already exists" to POST /x"#,
            ),
            (Write, 409, exists, r#"GitHub answered 409 "Validation Failed: Label name already_exists" to POST /x"#),
            (Write, 403, integration, r#"GitHub answered 403 "Resource not accessible by integration" to POST /x"#),
            (Read, 401, r#"{"message":"Bad credentials"}"#, r#"GitHub answered 401 "Bad credentials" to POST /x"#),
            (Read, 404, r#"{"message":"Not Found"}"#, r#"GitHub answered 404 "Not Found" to POST /x"#),
            (
                Write,
                410,
                r#"{"message":"Issues are disabled for this repo"}"#,
                r#"GitHub answered 410 "Issues are disabled for this repo" to POST /x"#,
            ),
            (
                Write,
                307,
                r#"{"message":"Temporary Redirect"}"#,
                r#"GitHub answered 307 "Temporary Redirect" to POST /x"#,
            ),
            (
                Write,
                502,
                "<html>bad\ngateway</html>",
                r#"the answer to POST /x was lost, so it may or may not have taken effect: status 502 "<html>bad gateway</html>""#,
            ),
            (
                Write,
                408,
                "",
                r#"the answer to POST /x was lost, so it may or may not have taken effect: status 408 "Request Timeout""#,
            ),
            (Read, 500, "", r#"POST /x got no answer: status 500 "Internal Server Error""#),
            (Read, 418, "tell ghp_canary", r#"GitHub answered 418 "tell ***" to POST /x"#),
            (Read, 403, "", r#"GitHub answered 403 "Forbidden" to POST /x"#),
        ];
        for (effect, status, body, want) in cases {
            assert_eq!(answer(*effect, *status, &[], body).to_string(), *want);
        }
        // `errors` of another form than promised is GitHub's text, not a reason to lose the status.
        let error = answer(Write, 422, &[], spam);
        assert!(matches!(error, PortError::Denied { status: 422, .. }), "{error}");
        for status in [404, 410] {
            assert!(matches!(answer(Write, status, &[], ""), PortError::Missing { .. }));
        }
        let long = answer(Read, 403, &[], &"é".repeat(100_000));
        assert!(long.to_string().chars().count() < MAX_WORDS + 100);
    }

    /// Status, headers, body; the time to ask again.
    type Limit<'a> = (u16, &'a [(&'a str, &'a str)], &'a str, &'a str);

    #[test]
    fn rate_limits_say_when_to_ask_again() {
        let secondary = r#"{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}"#;
        let primary = r#"{"message":"API rate limit exceeded for installation ID 1."}"#;
        let plain = r#"{"message":"Resource not accessible by integration"}"#;
        let cases: &[Limit<'_>] = &[
            (403, &[("retry-after", "30")], plain, "12:00:30"),
            (429, &[("retry-after", "Mon, 30 Nov 2026 12:05:00 GMT")], plain, "12:05:00"),
            (403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1796041800")], primary, "12:30:00"),
            (
                403,
                &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1796041800"), ("retry-after", "5")],
                primary,
                "12:00:05",
            ),
            // The primary limit is not used up here, so its reset says nothing about the secondary one.
            (403, &[("x-ratelimit-remaining", "4000"), ("x-ratelimit-reset", "1796041800")], secondary, "12:01:00"),
            (403, &[], secondary, "12:01:00"),
            (403, &[], primary, "12:01:00"),
            (429, &[], "", "12:01:00"),
            (429, &[("retry-after", "soon")], "", "12:01:00"),
            (429, &[("retry-after", "-5")], "", "12:00:00"),
            (429, &[("retry-after", "9223372036854775807")], "", "12:01:00"),
        ];
        for (status, headers, body, want) in cases {
            for effect in [Effect::Read, Effect::Write] {
                let error = answer(effect, *status, headers, body);
                let PortError::RateLimited { retry_at, .. } = &error else { panic!("{status} {headers:?}: {error}") };
                assert_eq!(retry_at.format("%H:%M:%S").to_string(), *want, "{status} {headers:?}");
            }
        }
        let PortError::RateLimited { retry_at, .. } = answer(Effect::Read, 429, &[("retry-after", "99999999")], "")
        else {
            panic!("no rate limit")
        };
        assert_eq!(retry_at, now() + TimeDelta::days(1));
        assert!(matches!(answer(Effect::Read, 403, &[], plain), PortError::Denied { .. }));
        assert!(matches!(answer(Effect::Read, 503, &[("retry-after", "5")], ""), PortError::Unreachable { .. }));
    }
}
