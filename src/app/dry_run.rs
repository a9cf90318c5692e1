//! `check --dry-run URL`: the trigger that an issue, pull request or comment would give if it were made now, built
//! from live state.

use serde_json::{Value, json};

use crate::core::decision::{Reason, Stop};
use crate::ports::{PortError, RepoName, RestRead};

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The host, lower case.
    pub host: String,
    /// The repository.
    pub repo: RepoName,
    /// The issue or pull request.
    pub number: u64,
    /// The comment, if the address names one.
    pub comment: Option<u64>,
}

/// Why an address names nothing that can be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the address of an issue, pull request or comment")]
pub struct BadAddress(String);

impl Target {
    /// Takes an address apart: `https://HOST/OWNER/NAME/issues/N`, or `/pull/N`, with `#issuecomment-ID`.
    pub fn parse(address: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(address.chars().filter(|c| !c.is_control()).take(200).collect());
        let rest = address.trim();
        let rest = rest.strip_prefix("https://").or_else(|| rest.strip_prefix("http://")).ok_or_else(bad)?;
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
        let mut parts = rest.trim_end_matches('/').split('/');
        let mut next = || parts.next().ok_or_else(bad);
        let host = next()?.to_ascii_lowercase();
        let repo = RepoName::parse(&format!("{}/{}", next()?, next()?)).ok_or_else(bad)?;
        if host.is_empty() || !matches!(next()?, "issues" | "pull") {
            return Err(bad());
        }
        let number = next()?.parse().ok().filter(|n| *n > 0).ok_or_else(bad)?;
        let comment = match fragment.strip_prefix("issuecomment-") {
            Some(id) => Some(id.parse().map_err(|_| bad())?),
            None => None,
        };
        Ok(Self { host, repo, number, comment })
    }
}

/// The event's name and payload: what GitHub would have sent for the newest thing that the address names.
///
/// # Errors
///
/// `resource-missing` if GitHub knows no such thing, `bad-payload` if it could not be read.
pub async fn payload(rest: &impl RestRead, target: &Target) -> Result<(&'static str, Value), Stop> {
    let Target { repo, number, .. } = target;
    let repository = read(rest, repo, &[]).await?;
    let issue = read(rest, repo, &["issues", &number.to_string()]).await?;
    let Some(id) = target.comment else {
        let sender = issue.get("user").cloned().unwrap_or_default();
        return Ok(("issues", json!({"action": "opened", "issue": issue, "repository": repository, "sender": sender})));
    };
    let comment = read(rest, repo, &["issues", "comments", &id.to_string()]).await?;
    let sender = comment.get("user").cloned().unwrap_or_default();
    Ok((
        "issue_comment",
        json!({"action": "created", "issue": issue, "comment": comment, "repository": repository, "sender": sender}),
    ))
}

async fn read(rest: &impl RestRead, repo: &RepoName, below: &[&str]) -> Result<Value, Stop> {
    rest.get_json(repo, below).await.map_err(|error| match error {
        PortError::Missing { .. } => Stop::new(Reason::ResourceMissing, error.to_string()),
        _ => Stop::new(Reason::BadPayload, format!("what the address names could not be read: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn an_address_names_an_issue_or_a_comment() {
        let cases = [
            ("https://github.com/acme/app/issues/731", Some(("github.com", "acme/app", 731, None))),
            ("https://github.com/acme/app/pull/12#issuecomment-55", Some(("github.com", "acme/app", 12, Some(55)))),
            ("https://GHE.example/acme/app/issues/7?x=1#issuecomment-9", Some(("ghe.example", "acme/app", 7, Some(9)))),
            ("https://github.com/acme/app/issues/731/", Some(("github.com", "acme/app", 731, None))),
            ("https://github.com/acme/app/issues/0", None),
            ("https://github.com/acme/app/issues/x", None),
            ("https://github.com/acme/app", None),
            ("https://github.com/acme/../issues/7", None),
            ("acme/app#731", None),
            ("", None),
        ];
        for (address, expected) in cases {
            let got = Target::parse(address).ok();
            let got = got.as_ref().map(|t| (t.host.as_str(), t.repo.to_string(), t.number, t.comment));
            let expected = expected.map(|(h, r, n, c)| (h, r.to_owned(), n, c));
            assert_eq!(got, expected, "{address}");
        }
    }
}
