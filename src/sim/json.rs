//! The bodies of the REST API, in the form of GitHub's API description.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::checks::CheckRow;
use super::error::ApiError;
use super::git::CommitRow;
use super::state::Rate;
use super::world::{CommentRow, Item, REACTIONS, Reaction, RepoLabel, Repository, Run, User, World, node_id};
use crate::core::facts::Permission;
use crate::core::identity::ActorKind;

/// What addresses in bodies start with.
pub(super) struct Addresses<'a> {
    /// The API, without a slash at the end.
    pub(super) api: &'a str,
    /// The web pages, without a slash at the end.
    pub(super) web: &'a str,
}

/// A time as the API writes it.
pub(super) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The word of `type` and of `__typename`.
pub(super) const fn kind(kind: ActorKind) -> &'static str {
    match kind {
        ActorKind::Bot => "Bot",
        ActorKind::Organization => "Organization",
        ActorKind::User | ActorKind::Other => "User",
    }
}

/// The refusal of a request.
pub(super) fn error(error: &ApiError) -> Value {
    let mut body = Map::new();
    body.insert("message".to_owned(), error.message().into());
    let fields: Vec<Value> = error
        .fields()
        .iter()
        .map(|f| {
            let mut entry = json!({ "resource": f.resource, "code": f.code.as_str(), "field": f.field });
            if let (Some(message), Some(entry)) = (&f.message, entry.as_object_mut()) {
                entry.insert("message".to_owned(), message.clone().into());
            }
            entry
        })
        .collect();
    if !fields.is_empty() {
        body.insert("errors".to_owned(), fields.into());
    }
    body.insert("documentation_url".to_owned(), "https://docs.github.com/rest".into());
    body.insert("status".to_owned(), error.status().to_string().into());
    body.into()
}

/// A person's permission in the words of the endpoint.
const fn word(permission: Permission) -> &'static str {
    match permission {
        Permission::None => "none",
        Permission::Read => "read",
        Permission::Write => "write",
        Permission::Admin => "admin",
    }
}

/// Puts `more` into an object.
fn with(mut object: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// The addresses below a repository's own that GitHub gives with it.
const REPOSITORY_PARTS: [(&str, &str); 36] = [
    ("archive_url", "/{archive_format}{/ref}"),
    ("assignees_url", "/assignees{/user}"),
    ("blobs_url", "/git/blobs{/sha}"),
    ("branches_url", "/branches{/branch}"),
    ("collaborators_url", "/collaborators{/collaborator}"),
    ("comments_url", "/comments{/number}"),
    ("commits_url", "/commits{/sha}"),
    ("compare_url", "/compare/{base}...{head}"),
    ("contents_url", "/contents/{+path}"),
    ("contributors_url", "/contributors"),
    ("deployments_url", "/deployments"),
    ("downloads_url", "/downloads"),
    ("events_url", "/events"),
    ("forks_url", "/forks"),
    ("git_commits_url", "/git/commits{/sha}"),
    ("git_refs_url", "/git/refs{/sha}"),
    ("git_tags_url", "/git/tags{/sha}"),
    ("hooks_url", "/hooks"),
    ("issue_comment_url", "/issues/comments{/number}"),
    ("issue_events_url", "/issues/events{/number}"),
    ("issues_url", "/issues{/number}"),
    ("keys_url", "/keys{/key_id}"),
    ("labels_url", "/labels{/name}"),
    ("languages_url", "/languages"),
    ("merges_url", "/merges"),
    ("milestones_url", "/milestones{/number}"),
    ("notifications_url", "/notifications{?since,all,participating}"),
    ("pulls_url", "/pulls{/number}"),
    ("releases_url", "/releases{/id}"),
    ("stargazers_url", "/stargazers"),
    ("statuses_url", "/statuses/{sha}"),
    ("subscribers_url", "/subscribers"),
    ("subscription_url", "/subscription"),
    ("tags_url", "/tags"),
    ("teams_url", "/teams"),
    ("trees_url", "/git/trees{/sha}"),
];

impl Addresses<'_> {
    fn repo_url(&self, repo: &Repository) -> String {
        format!("{}/repos/{}", self.api, repo.full_name())
    }

    pub(super) fn user(&self, user: &User) -> Value {
        let User { login, id, .. } = user;
        let url = format!("{}/users/{}", self.api, login.replace('[', "%5B").replace(']', "%5D"));
        let page = login.strip_suffix("[bot]").map_or_else(|| login.clone(), |app| format!("apps/{app}"));
        json!({
            "login": login,
            "id": id,
            "node_id": node_id("U", *id),
            "avatar_url": format!("https://avatars.githubusercontent.com/u/{id}?v=4"),
            "gravatar_id": "",
            "url": url,
            "html_url": format!("{}/{page}", self.web),
            "followers_url": format!("{url}/followers"),
            "following_url": format!("{url}/following{{/other_user}}"),
            "gists_url": format!("{url}/gists{{/gist_id}}"),
            "starred_url": format!("{url}/starred{{/owner}}{{/repo}}"),
            "subscriptions_url": format!("{url}/subscriptions"),
            "organizations_url": format!("{url}/orgs"),
            "repos_url": format!("{url}/repos"),
            "events_url": format!("{url}/events{{/privacy}}"),
            "received_events_url": format!("{url}/received_events"),
            "type": kind(user.kind),
            "user_view_type": "public",
            "site_admin": false,
        })
    }

    /// A user; GitHub shows a deleted account as the user `ghost` where it never shows nobody.
    fn user_or_ghost(&self, world: &World, login: Option<&String>) -> Value {
        let ghost = User { login: "ghost".to_owned(), id: 10137, kind: ActorKind::User };
        self.user(login.and_then(|login| world.user(login)).unwrap_or(&ghost))
    }

    fn user_or_null(&self, world: &World, login: Option<&String>) -> Value {
        login.and_then(|login| world.user(login)).map_or(Value::Null, |user| self.user(user))
    }

    pub(super) fn own_user(&self, user: &User, since: DateTime<Utc>) -> Value {
        let since = time(since);
        let more = json!({
            "name": null, "company": null, "blog": "", "location": null, "email": null, "hireable": null, "bio": null,
            "twitter_username": null, "public_repos": 0, "public_gists": 0, "followers": 0, "following": 0,
            "created_at": since, "updated_at": since,
        });
        with(self.user(user), more)
    }

    pub(super) fn label(&self, repo: &Repository, label: &RepoLabel) -> Value {
        let name = percent_encoding::utf8_percent_encode(&label.name, percent_encoding::NON_ALPHANUMERIC);
        json!({
            "id": label.id,
            "node_id": node_id("LA", label.id),
            "url": format!("{}/labels/{name}", self.repo_url(repo)),
            "name": label.name,
            "color": label.color,
            "default": false,
            "description": label.description,
        })
    }

    pub(super) fn item(&self, world: &World, repo: &Repository, item: &Item) -> Value {
        let repo_url = self.repo_url(repo);
        let url = format!("{repo_url}/issues/{}", item.number);
        let page = repo.item_url(self.web, item);
        let labels: Vec<_> = repo.labels_of(item).map(|label| self.label(repo, label)).collect();
        let state_reason = if item.open || item.is_pull_request { None } else { Some("completed") };
        let body = json!({
            "url": url,
            "repository_url": repo_url,
            "labels_url": format!("{url}/labels{{/name}}"),
            "comments_url": format!("{url}/comments"),
            "events_url": format!("{url}/events"),
            "timeline_url": format!("{url}/timeline"),
            "html_url": page,
            "id": item.id,
            "node_id": node_id(if item.is_pull_request { "PR" } else { "I" }, item.id),
            "number": item.number,
            "title": item.title,
            "user": self.user_or_null(world, item.author.as_ref()),
            "labels": labels,
            "state": if item.open { "open" } else { "closed" },
            "state_reason": state_reason,
            "locked": item.locked,
            "active_lock_reason": null,
            "assignee": null,
            "assignees": [],
            "milestone": null,
            "comments": count(item.comments.len()),
            "created_at": time(item.created_at),
            "updated_at": time(item.updated_at),
            "closed_at": item.closed_at.map(time),
            "closed_by": null,
            "author_association": association(world, repo, item.author.as_deref()),
            "body": item.body,
            "reactions": rollup(&url, &item.reactions),
            "performed_via_github_app": null,
        });
        if !item.is_pull_request {
            return body;
        }
        let more = json!({
            "draft": item.draft,
            "pull_request": {
                "url": format!("{repo_url}/pulls/{}", item.number),
                "html_url": page,
                "diff_url": format!("{page}.diff"),
                "patch_url": format!("{page}.patch"),
                "merged_at": item.closed_at.filter(|_| item.merged).map(time),
            },
        });
        with(body, more)
    }

    pub(super) fn comment(&self, world: &World, repo: &Repository, comment: &CommentRow) -> Value {
        let url = format!("{}/issues/comments/{}", self.repo_url(repo), comment.id);
        json!({
            "url": url,
            "html_url": repo.comment_url(self.web, comment),
            "issue_url": format!("{}/issues/{}", self.repo_url(repo), comment.number),
            "id": comment.id,
            "node_id": node_id("IC", comment.id),
            "user": self.user_or_null(world, comment.author.as_ref()),
            "created_at": time(comment.created_at),
            "updated_at": time(comment.updated_at),
            "body": comment.body,
            "author_association": association(world, repo, comment.author.as_deref()),
            "reactions": rollup(&url, &comment.reactions),
            "performed_via_github_app": null,
        })
    }

    pub(super) fn reaction(&self, world: &World, reaction: &Reaction) -> Value {
        json!({
            "id": reaction.id,
            "node_id": node_id("REA", reaction.id),
            "user": self.user_or_null(world, Some(&reaction.login)),
            "content": reaction.content,
            "created_at": time(reaction.created_at),
        })
    }

    pub(super) fn permission(&self, user: &User, permission: Permission) -> Value {
        let may = |least: Permission| permission >= least;
        let more = json!({
            "role_name": word(permission),
            "permissions": {
                "pull": may(Permission::Read),
                "triage": may(Permission::Write),
                "push": may(Permission::Write),
                "maintain": may(Permission::Admin),
                "admin": may(Permission::Admin),
            },
        });
        json!({
            "permission": word(permission),
            "role_name": word(permission),
            "user": with(self.user(user), more),
        })
    }

    pub(super) fn run(&self, world: &World, repo: &Repository, run: &Run) -> Value {
        let url = format!("{}/actions/runs/{}", self.repo_url(repo), run.id);
        let workflow = repo.id;
        let suite = run.id;
        let repository = self.repository(world, repo);
        json!({
            "id": run.id,
            "name": run.name,
            "node_id": node_id("WFR", run.id),
            "check_suite_id": suite,
            "check_suite_node_id": node_id("CS", suite),
            "head_branch": repo.default_branch,
            "head_sha": run.head_sha,
            "path": run.path,
            "display_title": run.name,
            "run_number": 1,
            "run_attempt": run.attempt,
            "event": run.event,
            "status": run.status,
            "conclusion": run.conclusion,
            "workflow_id": workflow,
            "url": url,
            "html_url": repo.run_url(self.web, run),
            "pull_requests": [],
            "created_at": time(run.created_at),
            "updated_at": time(run.updated_at),
            "actor": self.user_or_ghost(world, run.actor.as_ref()),
            "triggering_actor": self.user_or_ghost(world, run.triggering_actor.as_ref()),
            "run_started_at": time(run.run_started_at),
            "referenced_workflows": [],
            "jobs_url": format!("{url}/jobs"),
            "logs_url": format!("{url}/logs"),
            "check_suite_url": format!("{}/check-suites/{suite}", self.repo_url(repo)),
            "artifacts_url": format!("{url}/artifacts"),
            "cancel_url": format!("{url}/cancel"),
            "rerun_url": format!("{url}/rerun"),
            "previous_attempt_url": (run.attempt > 1).then(|| format!("{url}/attempts/{}", run.attempt - 1)),
            "workflow_url": format!("{}/actions/workflows/{workflow}", self.repo_url(repo)),
            "head_commit": {
                "id": run.head_sha,
                "tree_id": run.head_sha,
                "message": "",
                "timestamp": time(repo.created_at),
                "author": null,
                "committer": null,
            },
            "repository": repository,
            "head_repository": repository,
        })
    }

    /// A check run.
    pub(super) fn check(&self, world: &World, repo: &Repository, row: &CheckRow) -> Value {
        let url = format!("{}/check-runs/{}", self.repo_url(repo), row.id);
        let said = &row.said;
        json!({
            "id": row.id,
            "node_id": node_id("CR", row.id),
            "head_sha": row.head_sha,
            "external_id": said.external_id.clone().unwrap_or_default(),
            "url": url,
            "html_url": row.page(self.web, repo),
            "details_url": said.details_url.clone().unwrap_or_else(|| row.page(self.web, repo)),
            "status": said.status,
            "conclusion": said.conclusion,
            "started_at": said.started_at.map(time),
            "completed_at": said.completed_at.map(time),
            "output": {
                "title": said.title, "summary": said.summary, "text": said.text,
                "annotations_count": 0, "annotations_url": format!("{url}/annotations"),
            },
            "name": row.name,
            "check_suite": { "id": row.suite },
            "app": self.app(world, row),
            "pull_requests": [],
        })
    }

    /// The App that made a check run.
    fn app(&self, world: &World, row: &CheckRow) -> Value {
        let Some(user) = world.user(&row.app) else { return Value::Null };
        let since = time(DateTime::UNIX_EPOCH);
        json!({
            "id": user.id,
            "slug": row.slug(),
            "node_id": node_id("A", user.id),
            "owner": self.user(user),
            "name": row.slug(),
            "description": "",
            "external_url": self.web,
            "html_url": format!("{}/apps/{}", self.web, row.slug()),
            "created_at": since,
            "updated_at": since,
            "permissions": { "checks": "write", "metadata": "read" },
            "events": [],
        })
    }

    /// A ref.
    pub(super) fn git_ref(&self, repo: &Repository, name: &str, oid: &str) -> Value {
        let url = format!("{}/git", self.repo_url(repo));
        json!({
            "ref": name,
            "node_id": node_id(&format!("REF_{name}"), repo.id),
            "url": format!("{url}/{name}"),
            "object": { "sha": oid, "type": "commit", "url": format!("{url}/commits/{oid}") },
        })
    }

    /// A commit of the git database.
    pub(super) fn commit(&self, repo: &Repository, row: &CommitRow) -> Value {
        let url = format!("{}/git", self.repo_url(repo));
        let page = |oid: &str| format!("{}/{}/commit/{oid}", self.web, repo.full_name());
        let person = json!({ "name": "run-guard", "email": "noreply@run-guard.invalid", "date": time(row.at) });
        let parents = row.parents.iter();
        json!({
            "sha": row.oid,
            "node_id": node_id(&format!("C_{}", row.oid), repo.id),
            "url": format!("{url}/commits/{}", row.oid),
            "html_url": page(&row.oid),
            "author": person,
            "committer": person,
            "message": row.message,
            "tree": { "sha": row.tree, "url": format!("{url}/trees/{}", row.tree) },
            "parents": parents
                .map(|oid| json!({ "sha": oid, "url": format!("{url}/commits/{oid}"), "html_url": page(oid) }))
                .collect::<Vec<_>>(),
            "verification": {
                "verified": false, "reason": "unsigned", "signature": null, "payload": null, "verified_at": null,
            },
        })
    }

    /// A repository as it stands inside other things.
    fn repository(&self, world: &World, repo: &Repository) -> Value {
        let url = self.repo_url(repo);
        let mut body = json!({
            "id": repo.id,
            "node_id": node_id("R", repo.id),
            "name": repo.name,
            "full_name": repo.full_name(),
            "private": repo.private,
            "owner": self.user_or_null(world, Some(&repo.owner)),
            "html_url": format!("{}/{}", self.web, repo.full_name()),
            "description": null,
            "fork": false,
            "url": url,
        });
        if let Some(body) = body.as_object_mut() {
            body.extend(
                REPOSITORY_PARTS.iter().map(|(name, part)| ((*name).to_owned(), format!("{url}{part}").into())),
            );
        }
        body
    }

    pub(super) fn full_repository(&self, world: &World, repo: &Repository) -> Value {
        let page = format!("{}/{}", self.web, repo.full_name());
        let host = self.web.split("://").nth(1).unwrap_or("github.com");
        let open = count(repo.items.values().filter(|item| item.open).count());
        let created = time(repo.created_at);
        let more = json!({
            "git_url": format!("git://{host}/{}.git", repo.full_name()),
            "ssh_url": format!("git@{host}:{}.git", repo.full_name()),
            "clone_url": format!("{page}.git"),
            "svn_url": page,
            "mirror_url": null, "homepage": null, "language": null, "license": null,
            "forks_count": 0, "forks": 0, "stargazers_count": 0, "watchers_count": 0, "watchers": 0, "size": 0,
            "open_issues_count": open, "open_issues": open, "subscribers_count": 0, "network_count": 0,
            "default_branch": repo.default_branch,
            "has_issues": true, "has_projects": true, "has_wiki": true, "has_pages": false, "has_downloads": true,
            "has_discussions": false, "archived": false, "disabled": false, "is_template": false,
            "visibility": if repo.private { "private" } else { "public" },
            "topics": [],
            "pushed_at": created, "created_at": created, "updated_at": created,
        });
        with(self.repository(world, repo), more)
    }
}

/// What the author is to the repository.
pub(super) fn association(world: &World, repo: &Repository, login: Option<&str>) -> &'static str {
    match login {
        Some(login) if repo.owner.eq_ignore_ascii_case(login) => "OWNER",
        Some(login) if world.permission_of(repo, login) >= Permission::Write => "COLLABORATOR",
        _ => "NONE",
    }
}

fn rollup(url: &str, reactions: &[Reaction]) -> Value {
    let mut body = Map::new();
    body.insert("url".to_owned(), format!("{url}/reactions").into());
    body.insert("total_count".to_owned(), count(reactions.len()).into());
    for word in REACTIONS {
        let n = reactions.iter().filter(|r| r.content == word).count();
        body.insert(word.to_owned(), count(n).into());
    }
    body.into()
}

/// The use of the limits.
pub(super) fn rates(core: Rate, graphql: Rate) -> Value {
    let view = |rate: Rate| {
        json!({
            "limit": rate.limit, "used": rate.used, "remaining": rate.remaining(), "reset": rate.reset.timestamp(),
        })
    };
    let search = Rate { limit: 30, used: 0, ..core };
    json!({
        "resources": { "core": view(core), "graphql": view(graphql), "search": view(search) },
        "rate": view(core),
    })
}
