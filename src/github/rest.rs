//! The requests: [`GitHub`] over HTTP.

use chrono::{DateTime, SecondsFormat, Utc};
use http::Method;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::client::{Ask, Client};
use super::errors::Effect;
use super::query;
use crate::core::facts::{Permission, RunState};
use crate::ports::{
    CheckFace, CheckPage, CheckRun, Deletion, FactsQuery, FactsReply, GitHub, Label, Listing, NewCheckRun, NewCommit,
    PortError, Probe, Probed, ReactTo, RepoName, RestRead, WindowPage,
};

/// A repository label, as REST gives it: without its time of creation.
#[derive(Deserialize)]
struct LabelAnswer {
    node_id: Option<String>,
    name: String,
    description: Option<String>,
}

impl From<LabelAnswer> for Label {
    fn from(label: LabelAnswer) -> Self {
        Self {
            name: label.name,
            description: label.description.unwrap_or_default(),
            node_id: label.node_id,
            created_at: None,
        }
    }
}

/// Who makes the commits of claims.
const AUTHOR: &str = "run-guard";
/// An address that is nobody's.
const EMAIL: &str = "noreply@run-guard.invalid";
/// GitHub's words when a ref of the name exists.
const REF_EXISTS: &str = "Reference already exists";

/// Anything with a commit id.
#[derive(Deserialize)]
struct ShaAnswer {
    sha: String,
}

/// The answer of the permission endpoint.
#[derive(Deserialize)]
struct PermissionAnswer {
    permission: String,
    role_name: Option<String>,
}

/// A workflow run.
#[derive(Deserialize)]
struct RunAnswer {
    run_attempt: Option<u32>,
    status: Option<String>,
    conclusion: Option<String>,
    updated_at: DateTime<Utc>,
    run_started_at: Option<DateTime<Utc>>,
    html_url: String,
}

/// Anything with an id.
#[derive(Deserialize)]
struct IdAnswer {
    id: u64,
}

/// How many check runs a page holds.
const CHECK_PAGE: usize = 100;

/// A check run.
#[derive(Deserialize)]
struct CheckAnswer {
    id: u64,
    external_id: Option<String>,
    app: Option<AppAnswer>,
    output: Option<OutputAnswer>,
}

#[derive(Deserialize)]
struct AppAnswer {
    slug: Option<String>,
}

#[derive(Deserialize)]
struct OutputAnswer {
    text: Option<String>,
}

#[derive(Deserialize)]
struct ChecksAnswer {
    check_runs: Vec<CheckAnswer>,
}

impl From<CheckAnswer> for CheckRun {
    fn from(check: CheckAnswer) -> Self {
        Self {
            id: check.id,
            app: check.app.and_then(|app| app.slug),
            external_id: check.external_id.unwrap_or_default(),
            text: check.output.and_then(|output| output.text).unwrap_or_default(),
        }
    }
}

/// What a check run shows, as a body.
fn check_face(face: &CheckFace) -> Map<String, Value> {
    let time = |at: DateTime<Utc>| json!(at.to_rfc3339_opts(SecondsFormat::Secs, true));
    let status = if face.conclusion.is_some() { "completed" } else { "in_progress" };
    let output = json!({ "title": face.title, "summary": face.summary, "text": face.text });
    let always = [
        ("status", json!(status)),
        ("started_at", time(face.started_at)),
        ("details_url", json!(face.details_url)),
        ("output", output),
    ];
    let ended =
        [("conclusion", face.conclusion.map(|word| json!(word))), ("completed_at", face.completed_at.map(time))];
    let ended = ended.into_iter().filter_map(|(name, value)| Some((name, value?)));
    always.into_iter().chain(ended).map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Client {
    /// A REST request on a repository. The parts of the path are encoded one by one, so that no name leaves its place.
    fn rest(
        &self,
        method: Method,
        repo: &RepoName,
        path: &[&str],
        body: Option<Value>,
        effect: Effect,
    ) -> Result<Ask, PortError> {
        let mut url = self.hosts().api().clone();
        let base = url.path().trim_end_matches('/').len();
        let parts = ["repos", &repo.owner, &repo.name].into_iter().chain(path.iter().copied());
        let name = |url: &Url| format!("{method} {}", url.path().get(base..).unwrap_or(url.path()));
        // An empty part would vanish from the path, and a part of dots would climb it.
        if let Some(part) = parts.clone().find(|part| matches!(*part, "" | "." | "..")) {
            return Err(PortError::Malformed {
                request: format!("{method} /{}", parts.collect::<Vec<_>>().join("/")),
                why: format!("the name `{part}` cannot stand in an address"),
            });
        }
        match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().extend(parts);
            }
            Err(()) => {
                return Err(PortError::Malformed {
                    request: method.to_string(),
                    why: "the address of the API cannot have a path".to_owned(),
                });
            }
        }
        let name = name(&url);
        Ok(Ask { method, url, body, effect, name })
    }

    async fn read(&self, repo: &RepoName, path: &[&str]) -> Result<super::client::Answer<'_>, PortError> {
        self.send(self.rest(Method::GET, repo, path, None, Effect::Read)?).await
    }

    async fn write(
        &self,
        method: Method,
        repo: &RepoName,
        path: &[&str],
        body: Option<Value>,
    ) -> Result<super::client::Answer<'_>, PortError> {
        self.send(self.rest(method, repo, path, body, Effect::Write)?).await
    }

    async fn graphql(&self, query: query::Document) -> Result<query::Reply<'_>, PortError> {
        self.graphql_as(query, Effect::Read).await
    }

    async fn graphql_as(&self, query: query::Document, effect: Effect) -> Result<query::Reply<'_>, PortError> {
        let ask = Ask {
            method: Method::POST,
            url: self.hosts().graphql().clone(),
            body: Some(json!({ "query": query.text, "variables": query.variables })),
            effect,
            name: "POST /graphql".to_owned(),
        };
        query::Reply::read(self.send(ask).await?)
    }
}

impl RestRead for Client {
    async fn get_json(&self, repo: &RepoName, below: &[&str]) -> Result<Value, PortError> {
        self.read(repo, below).await?.json()
    }
}

impl GitHub for Client {
    fn server_time(&self) -> Option<DateTime<Utc>> {
        self.newest_date()
    }

    async fn facts(&self, query: &FactsQuery) -> Result<FactsReply, PortError> {
        self.graphql(query::facts(query)).await?.facts(query)
    }

    async fn window_page(
        &self,
        repo: &RepoName,
        listing: Listing,
        after: Option<&str>,
    ) -> Result<WindowPage, PortError> {
        self.graphql(query::window_page(repo, listing, after)).await?.window_page(listing)
    }

    async fn probe(&self, repo: &RepoName, probe: &Probe) -> Result<Probed, PortError> {
        self.graphql(query::probe(repo, probe)).await?.probe(probe)
    }

    async fn permission(&self, repo: &RepoName, login: &str) -> Result<Permission, PortError> {
        let answer = match self.read(repo, &["collaborators", login, "permission"]).await {
            Err(PortError::Missing { status: 404, .. }) => return Ok(Permission::None),
            other => other?,
        };
        let said: PermissionAnswer = answer.json()?;
        // A custom role has a name of its own; `permission` then holds what it amounts to.
        Permission::parse(&said.permission)
            .or_else(|| Permission::parse(said.role_name.as_deref()?))
            .ok_or_else(|| answer.sent.malformed(&format!("the permission `{}` is not known", said.permission)))
    }

    async fn run(&self, repo: &RepoName, id: u64) -> Result<RunState, PortError> {
        let answer = match self.read(repo, &["actions", "runs", &id.to_string()]).await {
            Err(PortError::Missing { .. }) => return Ok(RunState::Missing),
            other => other?,
        };
        let run: RunAnswer = answer.json()?;
        let concluded = run.status.as_deref() == Some("completed");
        Ok(RunState::Found {
            attempt: run.run_attempt.unwrap_or(1),
            conclusion: concluded.then(|| run.conclusion.unwrap_or_else(|| "unknown".to_owned())),
            updated_at: run.updated_at,
            started_at: run.run_started_at,
            url: run.html_url,
        })
    }

    async fn create_label(&self, repo: &RepoName, label: &Label, color: &str) -> Result<Label, PortError> {
        let body = json!({ "name": label.name, "color": color, "description": label.description });
        let answer = self.write(Method::POST, repo, &["labels"], Some(body)).await?;
        // The status says that it is made; what else the answer tells is no more than a help.
        Ok(answer.json::<LabelAnswer>().map_or_else(|_| label.clone(), Label::from))
    }

    async fn label(&self, repo: &RepoName, name: &str) -> Result<Option<Label>, PortError> {
        let answer = match self.read(repo, &["labels", name]).await {
            Err(PortError::Missing { status: 404, .. }) => return Ok(None),
            other => other?,
        };
        Ok(Some(answer.json::<LabelAnswer>()?.into()))
    }

    async fn describe_label(&self, repo: &RepoName, name: &str, description: &str) -> Result<(), PortError> {
        let body = json!({ "description": description });
        self.write(Method::PATCH, repo, &["labels", name], Some(body)).await.map(drop)
    }

    async fn create_commit(&self, repo: &RepoName, commit: &NewCommit) -> Result<String, PortError> {
        let person =
            json!({ "name": AUTHOR, "email": EMAIL, "date": commit.at.to_rfc3339_opts(SecondsFormat::Secs, true) });
        let parents: Vec<&String> = commit.parent.iter().collect();
        let body = json!({
            "message": commit.message, "tree": commit.tree, "parents": parents, "author": person, "committer": person,
        });
        let answer = self.write(Method::POST, repo, &["git", "commits"], Some(body)).await?;
        Ok(answer.json::<ShaAnswer>()?.sha)
    }

    async fn create_ref(&self, repo: &RepoName, name: &str, oid: &str) -> Result<(), PortError> {
        let body = json!({ "ref": name, "sha": oid });
        match self.write(Method::POST, repo, &["git", "refs"], Some(body)).await {
            Ok(_) => Ok(()),
            // GitHub gives this refusal no code, unlike that of a label.
            Err(PortError::Denied { status: 422, message, request }) if message.starts_with(REF_EXISTS) => {
                Err(PortError::Exists { request })
            }
            Err(error) => Err(error),
        }
    }

    async fn forward_ref(&self, repo: &RepoName, name: &str, oid: &str) -> Result<(), PortError> {
        let below: Vec<&str> = ["git"].into_iter().chain(name.split('/')).collect();
        let body = json!({ "sha": oid, "force": false });
        self.write(Method::PATCH, repo, &below, Some(body)).await.map(drop)
    }

    async fn delete(&self, deletion: &Deletion) -> Result<(), PortError> {
        match query::delete(deletion) {
            Some(mutation) => self.graphql_as(mutation, Effect::Write).await?.deleted(),
            None => Ok(()),
        }
    }

    async fn create_check_run(&self, repo: &RepoName, check: &NewCheckRun) -> Result<CheckRun, PortError> {
        let mut body = check_face(&check.face);
        let more = [("name", &check.name), ("head_sha", &check.commit), ("external_id", &check.external_id)];
        body.extend(more.map(|(name, value)| (name.to_owned(), json!(value))));
        let answer = self.write(Method::POST, repo, &["check-runs"], Some(body.into())).await?;
        Ok(answer.json::<CheckAnswer>()?.into())
    }

    async fn check_runs(&self, repo: &RepoName, commit: &str, name: &str, page: u32) -> Result<CheckPage, PortError> {
        let mut ask = self.rest(Method::GET, repo, &["commits", commit, "check-runs"], None, Effect::Read)?;
        // The default filter shows the newest of each suite alone.
        ask.url
            .query_pairs_mut()
            .append_pair("check_name", name)
            .append_pair("filter", "all")
            .append_pair("per_page", &CHECK_PAGE.to_string())
            .append_pair("page", &page.to_string());
        let ChecksAnswer { check_runs } = self.send(ask).await?.json()?;
        let more = check_runs.len() >= CHECK_PAGE;
        Ok(CheckPage { runs: check_runs.into_iter().map(CheckRun::from).collect(), more })
    }

    async fn update_check_run(&self, repo: &RepoName, id: u64, face: &CheckFace) -> Result<(), PortError> {
        self.write(Method::PATCH, repo, &["check-runs", &id.to_string()], Some(check_face(face).into())).await.map(drop)
    }

    async fn add_labels(&self, repo: &RepoName, number: u64, names: &[String]) -> Result<(), PortError> {
        let body = json!({ "labels": names });
        self.write(Method::POST, repo, &["issues", &number.to_string(), "labels"], Some(body)).await.map(drop)
    }

    async fn remove_label(&self, repo: &RepoName, number: u64, name: &str) -> Result<(), PortError> {
        match self.write(Method::DELETE, repo, &["issues", &number.to_string(), "labels", name], None).await {
            Ok(_) | Err(PortError::Missing { status: 404, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn update_comment(&self, repo: &RepoName, id: u64, body: &str) -> Result<(), PortError> {
        let path = ["issues", "comments", &id.to_string()];
        self.write(Method::PATCH, repo, &path, Some(json!({ "body": body }))).await.map(drop)
    }

    async fn create_comment(&self, repo: &RepoName, number: u64, body: &str) -> Result<u64, PortError> {
        let body = json!({ "body": body });
        let answer = self.write(Method::POST, repo, &["issues", &number.to_string(), "comments"], Some(body)).await?;
        Ok(answer.json::<IdAnswer>()?.id)
    }

    async fn react(&self, repo: &RepoName, to: ReactTo, content: &str) -> Result<(), PortError> {
        let id;
        let path: &[&str] = match to {
            ReactTo::Issue(number) => {
                id = number.to_string();
                &["issues", &id, "reactions"]
            }
            ReactTo::Comment(comment) => {
                id = comment.to_string();
                &["issues", "comments", &id, "reactions"]
            }
        };
        self.write(Method::POST, repo, path, Some(json!({ "content": content }))).await.map(drop)
    }
}
