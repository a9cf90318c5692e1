//! The GraphQL queries, the one for policy and facts above all, and what their answers mean.
//!
//! An answer can be partial: a field that is denied is null, and takes its parent with it where GraphQL promised a
//! value. `errors[].path` says what was denied, so each part of the facts is known or unknown on its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::client::Answer;
use crate::core::claim::REF_PREFIX;
use crate::core::facts::{
    Branch, Comment, Fact, LabelEvent, OpenedPull, RepositoryState, ResourceState, Review, Written,
};
use crate::core::identity::{Actor, ActorKind};
use crate::core::policy::POLICY_PATH;
use crate::ports::{
    CheckRun, Deletion, FactsQuery, FactsReply, FoundChecks, FoundRefs, GitRef, Label, LabelPage, Listing, PolicyRead,
    PortError, Probe, Probed, RefPage, RepoName, WindowPage,
};

/// What is read of a repository label.
const LABEL: &str = "id name description createdAt";
/// What is read of a ref. Name and prefix together are the full name.
const REF: &str = "prefix name target { oid ... on Commit { message committedDate } }";
/// What is read of a page of refs.
const REFS: &str =
    "nodes { prefix name target { oid ... on Commit { message committedDate } } } pageInfo { hasNextPage endCursor }";
/// The newest pull request of each branch of a page.
const PULLS: &str = "nodes { name associatedPullRequests(last: 1) { nodes { number url createdAt headRefName } } }";
/// The newest reviews.
const REVIEWS: &str = concat!(
    " reviews(last: 30) { nodes { author { __typename login ... on User { databaseId } ... on Bot { databaseId } } ",
    "submittedAt url } pageInfo { hasPreviousPage } }"
);
/// What claims as refs need beside them: the repository's node id, and the tree of the default branch.
const BASE: &str = "id base: defaultBranchRef { target { ... on Commit { tree { oid } } } }";
/// The object id that stands for no object: a ref that is moved to it is deleted.
const NO_OBJECT: &str = "0000000000000000000000000000000000000000";
/// GitHub's words where a request took too long or its own part failed; another try may have an answer.
const FAILED: &str = "Something went wrong";
/// What is read of a commit's check runs. The id is the one in the check run's address: `databaseId` is an `Int`, which the
/// ids of today have outgrown, and there is no `fullDatabaseId`.
const CHECKS: &str = "checkSuites(first: 20, filterBy: { checkName: $check }) { nodes { app { slug } \
    checkRuns(first: 100, filterBy: { checkName: $check, checkType: ALL }) \
    { nodes { permalink externalId text } pageInfo { hasNextPage endCursor } } } \
    pageInfo { hasNextPage endCursor } }";
/// Whose token it is.
const VIEWER: &str = "  viewer { login }\n";
/// What is read of an account.
const ACTOR: &str = "__typename login ... on User { databaseId } ... on Bot { databaseId }";

/// A query with its variables. No value ever stands in the text.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) text: String,
    pub(super) variables: Map<String, Value>,
}

/// A query about one repository, under construction.
struct Builder {
    parameters: String,
    fields: String,
    variables: Map<String, Value>,
}

impl Builder {
    fn new(repo: &RepoName) -> Self {
        let mut builder = Self { parameters: String::new(), fields: String::new(), variables: Map::new() };
        builder.variable("owner", "String!", json!(repo.owner));
        builder.variable("name", "String!", json!(repo.name));
        builder
    }

    fn variable(&mut self, name: &str, kind: &str, value: Value) {
        let comma = if self.parameters.is_empty() { "" } else { ", " };
        let _ = write!(self.parameters, "{comma}${name}: {kind}");
        self.variables.insert(name.to_owned(), value);
    }

    fn field(&mut self, field: &str) {
        let _ = writeln!(self.fields, "    {field}");
    }

    fn probe(&mut self, probe: &Probe) {
        match probe {
            Probe::Nothing => {}
            Probe::Labels(names) => {
                for (alias, name) in aliases(names) {
                    self.variable(&alias, "String!", json!(name));
                    self.field(&format!("{alias}: label(name: ${alias}) {{ {LABEL} }}"));
                }
            }
            Probe::Refs(prefix) => {
                self.variable("refs", "String!", json!(prefix));
                self.field(&format!("claims: refs(refPrefix: $refs, first: 100) {{ {REFS} }}"));
                self.field(BASE);
            }
            Probe::Ref(name) => {
                self.variable("ref", "String!", json!(name));
                self.field(&format!("claim: ref(qualifiedName: $ref) {{ {REF} }}"));
                self.field(BASE);
            }
            Probe::Checks { commit, name } => {
                self.variable("commit", "GitObjectID!", json!(commit));
                self.variable("check", "String!", json!(name));
                self.field(&format!("checks: object(oid: $commit) {{ ... on Commit {{ {CHECKS} }} }}"));
            }
        }
    }

    fn window(&mut self, listing: Listing, arguments: &str) {
        match listing {
            Listing::Labels => self.labels_page(arguments, "DESC"),
            Listing::OldestLabels => self.labels_page(arguments, "ASC"),
            Listing::Refs => {
                self.variable("allRefs", "String!", json!(REF_PREFIX));
                self.field(&format!("window: refs(refPrefix: $allRefs, first: 100{arguments}) {{ {REFS} }}"));
            }
        }
    }

    fn labels_page(&mut self, arguments: &str, direction: &str) {
        self.field(&format!(
            "window: labels(first: 100{arguments}, orderBy: {{ field: CREATED_AT, direction: {direction} }}) \
             {{ nodes {{ {LABEL} }} pageInfo {{ hasNextPage endCursor }} }}"
        ));
    }

    fn build(self, head: &str) -> Document {
        let text = format!(
            "query({}) {{\n{head}  repository(owner: $owner, name: $name) {{\n{}  }}\n}}\n",
            self.parameters, self.fields
        );
        Document { text, variables: self.variables }
    }
}

/// The alias of each label that is looked up.
fn aliases(names: &[String]) -> impl Iterator<Item = (String, &String)> {
    names.iter().enumerate().map(|(i, name)| (format!("c{}", i + 1), name))
}

/// The query for policy and facts.
///
/// `closed` stands for `state`, whose type differs between issues and pull requests; `fullDatabaseId` for `databaseId`,
/// which the ids of comments have outgrown; `isEmpty` tells a repository without a commit from one whose code the token
/// may not see.
pub(super) fn facts(query: &FactsQuery) -> Document {
    let mut builder = Builder::new(&query.repo);
    builder.variable("policy", "String!", json!(format!("HEAD:{POLICY_PATH}")));
    builder.field("databaseId nameWithOwner isEmpty defaultBranchRef { name }");
    builder.field("policy: object(expression: $policy) { __typename ... on Blob { text isBinary isTruncated } }");
    if let Some(number) = query.number {
        builder.variable("number", "Int!", json!(number));
        let common = format!(
            "number closed locked url author {{ {ACTOR} }} labels(first: 100) {{ nodes {{ name }} }} \
             comments(last: 50) {{ totalCount nodes {{ fullDatabaseId author {{ {ACTOR} }} editor {{ login }} body \
             createdAt updatedAt url }} }} \
             timelineItems(last: 30, itemTypes: [LABELED_EVENT, UNLABELED_EVENT]) {{ nodes {{ __typename \
             ... on LabeledEvent {{ id createdAt label {{ name }} actor {{ {ACTOR} }} }} \
             ... on UnlabeledEvent {{ id createdAt label {{ name }} actor {{ {ACTOR} }} }} }} }}"
        );
        builder.field(&format!(
            "issueOrPullRequest(number: $number) {{ __typename ... on Issue {{ {common} }} \
             ... on PullRequest {{ {common} isDraft merged headRefOid{} }} }}",
            if query.written.is_some() { REVIEWS } else { "" }
        ));
    }
    if let Some(below) = &query.written {
        builder.variable("branches", "String!", json!(below));
        builder.field(&format!("branches: refs(refPrefix: $branches, first: 100) {{ {REFS} }}"));
        // What may be denied must not take the branches with it, so that it stands apart.
        builder.field(&format!("pulls: refs(refPrefix: $branches, first: 100) {{ {PULLS} }}"));
    }
    builder.probe(&query.claims);
    if let Some(listing) = query.window {
        builder.window(listing, "");
    }
    builder.build(VIEWER)
}

/// One page of the budget window.
pub(super) fn window_page(repo: &RepoName, listing: Listing, after: Option<&str>) -> Document {
    let mut builder = Builder::new(repo);
    builder.variable("after", "String", json!(after));
    builder.window(listing, ", after: $after");
    builder.build("")
}

/// A key's claims alone.
pub(super) fn probe(repo: &RepoName, probe: &Probe) -> Document {
    let mut builder = Builder::new(repo);
    builder.field("databaseId");
    builder.probe(probe);
    builder.build(if matches!(probe, Probe::Checks { .. }) { VIEWER } else { "" })
}

/// Deletes things, each by a mutation of its own within one request, so that one that is gone does not keep the others.
/// `None` if there is nothing to delete.
pub(super) fn delete(deletion: &Deletion) -> Option<Document> {
    let mut parameters = Vec::new();
    let mut fields = String::new();
    let mut variables = Map::new();
    let mut variable = |name: String, kind: &str, value: &str| {
        parameters.push(format!("${name}: {kind}!"));
        variables.insert(name, json!(value));
    };
    match deletion {
        Deletion::Labels(ids) => {
            for (i, id) in ids.iter().enumerate() {
                variable(format!("i{i}"), "ID", id);
                let _ = writeln!(fields, "  d{i}: deleteLabel(input: {{ id: $i{i} }}) {{ clientMutationId }}");
            }
        }
        Deletion::Refs { repository, refs } => {
            if !refs.is_empty() {
                variable("repository".to_owned(), "ID", repository);
                variable("none".to_owned(), "GitObjectID", NO_OBJECT);
            }
            for (i, (name, oid)) in refs.iter().enumerate() {
                variable(format!("n{i}"), "GitRefname", name);
                variable(format!("o{i}"), "GitObjectID", oid);
                let _ = writeln!(
                    fields,
                    "  d{i}: updateRefs(input: {{ repositoryId: $repository, refUpdates: \
                     [{{ name: $n{i}, beforeOid: $o{i}, afterOid: $none }}] }}) {{ clientMutationId }}"
                );
            }
        }
    }
    let text = format!("mutation({}) {{\n{fields}}}\n", parameters.join(", "));
    (!fields.is_empty()).then_some(Document { text, variables })
}

/// An answer of GraphQL.
pub(super) struct Reply<'a> {
    answer: Answer<'a>,
    data: Value,
    errors: Vec<Problem>,
}

/// One entry of `errors`.
#[derive(Clone, Debug, Deserialize)]
struct Problem {
    #[serde(default)]
    message: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    path: Vec<Value>,
}

impl Problem {
    /// Whether it is about this part or something inside it.
    fn is_under(&self, path: &[&str]) -> bool {
        self.path.len() >= path.len() && self.path.iter().zip(path).all(|(a, b)| a.as_str() == Some(b))
    }

    /// Whether it is about something that holds this part: what nulled the parent.
    fn is_above(&self, path: &[&str]) -> bool {
        self.path.len() < path.len() && self.path.iter().zip(path).all(|(a, b)| a.as_str() == Some(b))
    }

    fn is(&self, kinds: &[&str]) -> bool {
        self.kind.as_deref().is_some_and(|kind| kinds.contains(&kind))
    }
}

/// The envelope of an answer.
#[derive(Deserialize)]
struct Envelope {
    data: Option<Value>,
    #[serde(default)]
    errors: Vec<Problem>,
}

impl<'a> Reply<'a> {
    /// Reads the envelope. An answer without any data is an error as a whole.
    pub(super) fn read(answer: Answer<'a>) -> Result<Self, PortError> {
        let Envelope { data, errors } = answer.json()?;
        // <https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api>
        if errors.iter().any(|e| e.is(&["RATE_LIMITED", "RATE_LIMIT"])) {
            return Err(answer.sent.rate_limited(&answer.headers));
        }
        let words = || errors.iter().map(|e| e.message.as_str()).collect::<Vec<_>>().join(", ");
        match data {
            Some(data @ Value::Object(_)) => Ok(Self { answer, data, errors }),
            Some(Value::Null) | None if errors.is_empty() => {
                Err(answer.sent.malformed("it holds neither data nor errors"))
            }
            Some(Value::Null) | None if errors.iter().any(|e| e.is(&["FORBIDDEN", "INSUFFICIENT_SCOPES"])) => {
                Err(answer.sent.denied(StatusCode::OK, &words()))
            }
            Some(Value::Null) | None if errors.iter().any(|e| e.message.starts_with(FAILED)) => {
                Err(answer.sent.lost(&words()))
            }
            Some(Value::Null) | None => Err(answer.sent.malformed(&words())),
            Some(_) => Err(answer.sent.malformed("its data is no object")),
        }
    }

    /// GitHub's words about a part: errors inside it, or above it.
    fn words_about(&self, path: &[&str]) -> Option<String> {
        let about = |e: &&Problem| e.is_under(path) || e.is_above(path);
        self.errors.iter().find(about).map(|e| self.answer.sent.clean(&e.message))
    }

    fn value(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(&self.data, |value, name| value.get(name))
    }

    /// A part as a fact: unknown if an error touches it, else what it holds, null included.
    fn part<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Fact<Option<T>>, PortError> {
        if let Some(words) = self.words_about(path) {
            return Ok(Fact::Unknown(words));
        }
        match self.value(path) {
            None => Ok(Fact::Unknown("GitHub did not say".to_owned())),
            Some(value) => Option::<T>::deserialize(value)
                .map(Fact::Known)
                .map_err(|e| self.answer.sent.malformed(&format!("{}: {e}", path.join(".")))),
        }
    }

    /// The same, where null says nothing.
    fn whole<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Fact<T>, PortError> {
        Ok(match self.part(path)? {
            Fact::Known(Some(value)) => Fact::Known(value),
            Fact::Known(None) => Fact::Unknown("GitHub did not say".to_owned()),
            Fact::Unknown(words) => Fact::Unknown(words),
            Fact::Unasked => Fact::Unasked,
        })
    }

    /// A fact of a query in which nothing else was asked, so that what is unknown is an error.
    fn required<T>(&self, fact: Fact<T>) -> Result<T, PortError> {
        match fact {
            Fact::Known(value) => Ok(value),
            Fact::Unknown(words) if self.errors.iter().any(|e| e.is(&["NOT_FOUND"])) => Err(PortError::Missing {
                status: StatusCode::OK.as_u16(),
                message: words,
                request: self.answer.sent.request.clone(),
            }),
            Fact::Unknown(words) if self.errors.is_empty() => Err(self.answer.sent.malformed(&words)),
            Fact::Unknown(words) => Err(self.answer.sent.denied(StatusCode::OK, &words)),
            Fact::Unasked => Err(self.answer.sent.malformed("nothing was asked")),
        }
    }

    /// The answer to [`facts`].
    pub(super) fn facts(&self, query: &FactsQuery) -> Result<FactsReply, PortError> {
        let viewer = map(self.whole::<Login>(&["viewer"])?, |viewer| viewer.login);
        Ok(FactsReply {
            viewer,
            policy: self.policy()?,
            repository: self.repository()?,
            resource: if query.number.is_some() { self.resource()? } else { Fact::Unasked },
            claims: self.probed(&query.claims)?,
            window: match query.window {
                Some(listing) => self.window(listing)?,
                None => Fact::Unasked,
            },
            written: match &query.written {
                Some(below) => Some(self.written(below, query.number)?),
                None => None,
            },
        })
    }

    fn written(&self, below: &str, number: Option<u64>) -> Result<Written, PortError> {
        let page = self.refs("branches")?;
        let many = page.known().is_some_and(|page| page.next.is_some());
        let too_many = format!("there are more than 100 branches below {below}");
        let branch = |found: GitRef| Branch { name: branch_name(&found.name), committed_at: found.committed_at };
        let branches = map(page, |page| page.refs.into_iter().map(branch).collect());
        let pulls = self.whole::<Nodes<BranchPulls>>(&["repository", "pulls"])?;
        let (reviews, more_reviews) = self.reviews(number)?;
        Ok(Written {
            branches: if many { Fact::Unknown(too_many.clone()) } else { branches },
            pulls: if many { Fact::Unknown(too_many) } else { map(pulls, |list| pulls_of(list.nodes)) },
            reviews,
            more_reviews,
        })
    }

    /// The newest submitted reviews, and whether there are older ones.
    fn reviews(&self, number: Option<u64>) -> Result<(Fact<Vec<Review>>, bool), PortError> {
        let none = (Fact::Known(Vec::new()), false);
        if number.is_none() {
            return Ok(none);
        }
        // An issue has no such field, and what is not there has no reviews.
        let path = ["repository", "issueOrPullRequest"];
        let item = match self.part::<Map<String, Value>>(&path)? {
            _ if self.resource()? == Fact::Known(None) => return Ok(none),
            Fact::Known(Some(item)) => item,
            Fact::Unknown(words) => return Ok((Fact::Unknown(words), false)),
            Fact::Known(None) | Fact::Unasked => return Ok((Fact::Unknown("GitHub did not say".to_owned()), false)),
        };
        if !item.contains_key("reviews") {
            return Ok(none);
        }
        let list = self.whole::<ReviewsNode>(&["repository", "issueOrPullRequest", "reviews"])?;
        let more = list.known().is_some_and(|list| list.page_info.has_previous_page);
        // A review without this time is not submitted, and nobody but its author sees it.
        let review = |node: ReviewNode| {
            Some(Review { author: node.author.map(Actor::from), submitted_at: node.submitted_at?, url: node.url })
        };
        Ok((map(list, |list| list.nodes.into_iter().filter_map(review).collect()), more))
    }

    /// The answer to [`window_page`].
    pub(super) fn window_page(&self, listing: Listing) -> Result<WindowPage, PortError> {
        self.required(self.window(listing)?)
    }

    fn window(&self, listing: Listing) -> Result<Fact<WindowPage>, PortError> {
        Ok(match listing {
            Listing::Labels | Listing::OldestLabels => map(self.page()?, WindowPage::Labels),
            Listing::Refs => map(self.refs("window")?, WindowPage::Refs),
        })
    }

    /// The answer to [`delete`]. What GitHub refuses for another reason than a missing permission was not there, or not
    /// as it was named.
    pub(super) fn deleted(&self) -> Result<(), PortError> {
        let forbidden = |e: &&Problem| e.is(&["FORBIDDEN", "INSUFFICIENT_SCOPES"]);
        if let Some(problem) = self.errors.iter().find(forbidden) {
            return Err(self.answer.sent.denied(StatusCode::OK, &problem.message));
        }
        match self.errors.iter().find(|e| e.message.starts_with(FAILED)) {
            Some(problem) => Err(self.answer.sent.lost(&problem.message)),
            None => Ok(()),
        }
    }

    /// A page of refs.
    fn refs(&self, alias: &str) -> Result<Fact<RefPage>, PortError> {
        let page = self.whole::<RefsNode>(&["repository", alias])?;
        if let Fact::Known(RefsNode { page_info: PageInfo { has_next_page: true, end_cursor: None }, .. }) = page {
            return Err(self.answer.sent.malformed("there is a next page of refs and no cursor for it"));
        }
        Ok(map(page, |page| RefPage {
            refs: page.nodes.into_iter().map(GitRef::from).collect(),
            next: page.page_info.end_cursor.filter(|_| page.page_info.has_next_page),
        }))
    }

    /// The id of the default branch's tree; unknown only if GitHub says that it may not be seen.
    fn tree(&self) -> Result<Fact<Option<String>>, PortError> {
        Ok(map(self.part::<Base>(&["repository", "base"])?, |base| Some(base?.target?.tree?.oid)))
    }

    /// Refs that were found with the tree that their commits need.
    fn found(&self, refs: Fact<Vec<GitRef>>, more: bool) -> Result<Fact<Probed>, PortError> {
        let repository = self.whole::<String>(&["repository", "id"])?.known().cloned();
        Ok(match (refs, self.tree()?) {
            (Fact::Known(refs), Fact::Known(tree)) => {
                Fact::Known(Probed::Refs(FoundRefs { refs, more, tree, repository }))
            }
            (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => Fact::Unknown(why),
            (Fact::Unasked, _) | (_, Fact::Unasked) => Fact::Unasked,
        })
    }

    /// The answer to [`probe`].
    pub(super) fn probe(&self, probe: &Probe) -> Result<Probed, PortError> {
        self.required(self.probed(probe)?)
    }

    fn probed(&self, probe: &Probe) -> Result<Fact<Probed>, PortError> {
        Ok(match probe {
            Probe::Nothing => Fact::Known(Probed::Nothing),
            Probe::Labels(names) => map(self.labels(names)?, Probed::Labels),
            Probe::Refs(_) => {
                let page = self.refs("claims")?;
                let more = page.known().is_some_and(|page| page.next.is_some());
                self.found(map(page, |page| page.refs), more)?
            }
            Probe::Checks { .. } => map(self.checks()?, Probed::Checks),
            Probe::Ref(name) => {
                let named = |node: RefNode| GitRef { name: name.clone(), ..node.into() };
                let one = self.part::<RefNode>(&["repository", "claim"])?;
                self.found(map(one, |one| one.map(named).into_iter().collect()), false)?
            }
        })
    }

    /// The check runs of a commit. No commit has none.
    fn checks(&self) -> Result<Fact<FoundChecks>, PortError> {
        let viewer = self.whole::<Login>(&["viewer"])?.known().map(|viewer| viewer.login.clone());
        let commit = match self.part::<CommitChecks>(&["repository", "checks"])? {
            Fact::Known(Some(commit)) => commit,
            Fact::Known(None) => return Ok(Fact::Known(FoundChecks { viewer, ..FoundChecks::default() })),
            Fact::Unknown(why) => return Ok(Fact::Unknown(why)),
            Fact::Unasked => return Ok(Fact::Unasked),
        };
        let unsaid = || self.answer.sent.malformed("a list of check runs is null");
        let suites = commit.check_suites.ok_or_else(unsaid)?;
        let mut found = FoundChecks { runs: Vec::new(), more: suites.page_info.has_next_page, viewer };
        for suite in suites.nodes {
            let app = suite.app.map(|app| app.slug);
            let runs = suite.check_runs.ok_or_else(unsaid)?;
            found.more |= runs.page_info.has_next_page;
            for run in runs.nodes {
                let unknown = || self.answer.sent.malformed("a check run has no id");
                found.runs.push(CheckRun {
                    id: run.id().ok_or_else(unknown)?,
                    app: app.clone(),
                    external_id: run.external_id.unwrap_or_default(),
                    text: run.text.unwrap_or_default(),
                });
            }
        }
        Ok(Fact::Known(found))
    }

    fn repository(&self) -> Result<Fact<RepositoryState>, PortError> {
        // Errors of its other parts are theirs; the repository itself is known as soon as it is there.
        let own = |e: &&Problem| match e.path.as_slice() {
            [first] => first.as_str() == Some("repository"),
            [first, second, ..] => {
                first.as_str() == Some("repository") && matches!(second.as_str(), Some("databaseId" | "nameWithOwner"))
            }
            [] => false,
        };
        if let Some(problem) = self.errors.iter().find(own) {
            return Ok(Fact::Unknown(self.answer.sent.clean(&problem.message)));
        }
        match self.value(&["repository"]) {
            None | Some(Value::Null) => {
                Ok(Fact::Unknown(self.words_about(&["repository"]).unwrap_or_else(|| "GitHub did not say".to_owned())))
            }
            Some(value) => Repository::deserialize(value)
                .map(|r| Fact::Known(RepositoryState { id: r.database_id, name_with_owner: r.name_with_owner }))
                .map_err(|e| self.answer.sent.malformed(&format!("repository: {e}"))),
        }
    }

    /// The policy file. Only an answer that proves the file's absence counts as absence.
    fn policy(&self) -> Result<PolicyRead, PortError> {
        let unreadable = |why: &str| Ok(PolicyRead::Unreadable(why.to_owned()));
        for path in [["repository", "policy"], ["repository", "defaultBranchRef"], ["repository", "isEmpty"]] {
            if let Some(words) = self.words_about(&path) {
                return Ok(PolicyRead::Unreadable(words));
            }
        }
        let Fact::Known(file) = self.part::<PolicyObject>(&["repository", "policy"])? else {
            return unreadable("GitHub did not say whether the file is there");
        };
        let Some(file) = file else {
            let branch = self.value(&["repository", "defaultBranchRef"]);
            let is_empty = self.value(&["repository", "isEmpty"]).and_then(Value::as_bool);
            return match (branch, is_empty) {
                (Some(Value::Object(_)), Some(false)) | (Some(Value::Null), Some(true)) => Ok(PolicyRead::Absent),
                _ => unreadable("GitHub did not show the default branch"),
            };
        };
        match file {
            PolicyObject { typename, .. } if typename != "Blob" => {
                unreadable(&format!("{POLICY_PATH} is no file on the default branch"))
            }
            PolicyObject { is_truncated: Some(true), .. } => unreadable("GitHub cut the file off: it is too large"),
            PolicyObject { is_binary: Some(true), .. } => unreadable("the file is not text"),
            PolicyObject { text: Some(text), is_truncated: Some(false), .. } => Ok(PolicyRead::Text(text)),
            PolicyObject { .. } => unreadable("GitHub did not show the file's text"),
        }
    }

    fn resource(&self) -> Result<Fact<Option<ResourceState>>, PortError> {
        let path = ["repository", "issueOrPullRequest"];
        let is_null = self.value(&path).is_some_and(Value::is_null);
        let mut about = self.errors.iter().filter(|e| e.is_under(&path) || e.is_above(&path)).peekable();
        if is_null && about.peek().is_some() && about.all(|e| e.path.len() == path.len() && e.is(&["NOT_FOUND"])) {
            return Ok(Fact::Known(None));
        }
        let state = |item: Item| item.state().map_err(|why| self.answer.sent.malformed(&why));
        Ok(match self.part::<Item>(&path)? {
            // Null without an error is no promise that there is nothing.
            Fact::Known(None) => Fact::Unknown("GitHub did not say".to_owned()),
            Fact::Known(Some(item)) => Fact::Known(Some(state(item)?)),
            Fact::Unknown(words) => Fact::Unknown(words),
            Fact::Unasked => Fact::Unasked,
        })
    }

    fn labels(&self, names: &[String]) -> Result<Fact<BTreeMap<String, Label>>, PortError> {
        let mut found = BTreeMap::new();
        for (alias, name) in aliases(names) {
            match self.part::<LabelNode>(&["repository", &alias])? {
                Fact::Known(Some(label)) => {
                    found.insert(name.clone(), label.into());
                }
                Fact::Known(None) | Fact::Unasked => {}
                Fact::Unknown(words) => return Ok(Fact::Unknown(words)),
            }
        }
        Ok(Fact::Known(found))
    }

    fn page(&self) -> Result<Fact<LabelPage>, PortError> {
        let page = self.whole::<Page>(&["repository", "window"])?;
        if let Fact::Known(Page { page_info: PageInfo { has_next_page: true, end_cursor: None }, .. }) = page {
            return Err(self.answer.sent.malformed("there is a next page of labels and no cursor for it"));
        }
        Ok(map(page, |page| LabelPage {
            labels: page.nodes.into_iter().map(Label::from).collect(),
            next: page.page_info.end_cursor.filter(|_| page.page_info.has_next_page),
        }))
    }
}

fn map<T, U>(fact: Fact<T>, f: impl FnOnce(T) -> U) -> Fact<U> {
    match fact {
        Fact::Known(value) => Fact::Known(f(value)),
        Fact::Unknown(words) => Fact::Unknown(words),
        Fact::Unasked => Fact::Unasked,
    }
}

#[derive(Deserialize)]
struct Login {
    login: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Repository {
    database_id: u64,
    name_with_owner: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PolicyObject {
    #[serde(rename = "__typename")]
    typename: String,
    text: Option<String>,
    is_binary: Option<bool>,
    is_truncated: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ActorNode {
    #[serde(rename = "__typename")]
    typename: String,
    login: String,
    database_id: Option<u64>,
}

impl From<ActorNode> for Actor {
    fn from(node: ActorNode) -> Self {
        Self { login: node.login, kind: ActorKind::parse(&node.typename), id: node.database_id }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LabelNode {
    id: Option<String>,
    name: String,
    description: Option<String>,
    created_at: Option<DateTime<Utc>>,
}

impl From<LabelNode> for Label {
    fn from(node: LabelNode) -> Self {
        Self {
            name: node.name,
            description: node.description.unwrap_or_default(),
            node_id: node.id,
            created_at: node.created_at,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    nodes: Vec<LabelNode>,
    page_info: PageInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageInfo {
    has_next_page: bool,
    end_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RefsNode {
    nodes: Vec<RefNode>,
    page_info: PageInfo,
}

#[derive(Deserialize)]
struct RefNode {
    prefix: String,
    name: String,
    target: Option<TargetNode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetNode {
    oid: String,
    message: Option<String>,
    committed_date: Option<DateTime<Utc>>,
}

impl From<RefNode> for GitRef {
    fn from(node: RefNode) -> Self {
        let target = node.target;
        Self {
            name: format!("{}{}", node.prefix, node.name),
            oid: target.as_ref().map(|t| t.oid.clone()).unwrap_or_default(),
            committed_at: target.as_ref().and_then(|t| t.committed_date),
            message: target.and_then(|t| t.message),
        }
    }
}

/// A branch's name without the folder of branches.
fn branch_name(full: &str) -> String {
    full.strip_prefix("refs/heads/").unwrap_or(full).to_owned()
}

fn pulls_of(nodes: Vec<BranchPulls>) -> Vec<OpenedPull> {
    let pulls = nodes.into_iter().flat_map(|node| node.associated_pull_requests.nodes);
    pulls
        .map(|pull| OpenedPull {
            branch: pull.head_ref_name,
            number: pull.number,
            created_at: pull.created_at,
            url: pull.url,
        })
        .collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BranchPulls {
    associated_pull_requests: Nodes<PullNode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PullNode {
    number: u64,
    url: String,
    created_at: DateTime<Utc>,
    head_ref_name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewsNode {
    nodes: Vec<ReviewNode>,
    page_info: PreviousPage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PreviousPage {
    has_previous_page: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewNode {
    author: Option<ActorNode>,
    submitted_at: Option<DateTime<Utc>>,
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommitChecks {
    check_suites: Option<Suites>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Suites {
    nodes: Vec<SuiteNode>,
    page_info: PageInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SuiteNode {
    app: Option<AppNode>,
    check_runs: Option<CheckRuns>,
}

#[derive(Deserialize)]
struct AppNode {
    slug: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CheckRuns {
    nodes: Vec<CheckNode>,
    page_info: PageInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CheckNode {
    permalink: String,
    external_id: Option<String>,
    text: Option<String>,
}

impl CheckNode {
    /// The id, which is the last part of its address.
    fn id(&self) -> Option<u64> {
        let path = self.permalink.split(['?', '#']).next()?;
        path.rsplit('/').next()?.parse().ok()
    }
}

#[derive(Deserialize)]
struct Base {
    target: Option<BaseTarget>,
}

#[derive(Deserialize)]
struct BaseTarget {
    tree: Option<Oid>,
}

#[derive(Deserialize)]
struct Oid {
    oid: String,
}

#[derive(Deserialize)]
struct Nodes<T> {
    nodes: Vec<T>,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Comments {
    total_count: u64,
    nodes: Vec<CommentNode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommentNode {
    full_database_id: BigInt,
    author: Option<ActorNode>,
    editor: Option<Login>,
    body: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    url: String,
}

/// GraphQL's `BigInt`, which GitHub writes as a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum BigInt {
    Number(u64),
    Text(String),
}

impl BigInt {
    fn value(&self) -> Option<u64> {
        match self {
            Self::Number(n) => Some(*n),
            Self::Text(text) => text.parse().ok(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventNode {
    #[serde(rename = "__typename")]
    typename: String,
    id: String,
    created_at: DateTime<Utc>,
    label: Name,
    actor: Option<ActorNode>,
}

/// An issue or pull request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    #[serde(rename = "__typename")]
    typename: String,
    number: u64,
    closed: bool,
    locked: bool,
    url: String,
    author: Option<ActorNode>,
    labels: Nodes<Name>,
    comments: Comments,
    timeline_items: Nodes<EventNode>,
    is_draft: Option<bool>,
    merged: Option<bool>,
    head_ref_oid: Option<String>,
}

impl Item {
    fn state(self) -> Result<ResourceState, String> {
        let is_pull_request = match self.typename.as_str() {
            "PullRequest" => true,
            "Issue" => false,
            other => return Err(format!("issueOrPullRequest is a `{other}`")),
        };
        if is_pull_request && (self.is_draft.is_none() || self.merged.is_none() || self.head_ref_oid.is_none()) {
            return Err("the pull request lacks isDraft, merged or headRefOid".to_owned());
        }
        let mut comments = Vec::with_capacity(self.comments.nodes.len());
        for node in self.comments.nodes {
            comments.push(Comment {
                id: node.full_database_id.value().ok_or("the id of a comment is no number")?,
                author: node.author.map(Actor::from),
                editor: node.editor.map(|e| e.login),
                body: node.body,
                created_at: node.created_at,
                updated_at: node.updated_at,
                url: node.url,
            });
        }
        comments.sort_by_key(|c| (c.created_at, c.id));
        let mut label_events = Vec::with_capacity(self.timeline_items.nodes.len());
        for node in self.timeline_items.nodes {
            let added = match node.typename.as_str() {
                "LabeledEvent" => true,
                "UnlabeledEvent" => false,
                other => return Err(format!("a label event is a `{other}`")),
            };
            label_events.push(LabelEvent {
                id: node.id,
                added,
                label: node.label.name,
                actor: node.actor.map(Actor::from),
                at: node.created_at,
            });
        }
        // Stable: events of one second keep GitHub's order.
        label_events.sort_by_key(|e| e.at);
        Ok(ResourceState {
            is_pull_request,
            number: self.number,
            open: !self.closed,
            merged: self.merged.unwrap_or_default(),
            draft: self.is_draft.unwrap_or_default(),
            locked: self.locked,
            author: self.author.map(Actor::from),
            labels: self.labels.nodes.into_iter().map(|n| n.name).collect(),
            label_events,
            comments,
            comment_total: self.comments.total_count,
            head_sha: self.head_ref_oid,
            url: self.url,
        })
    }
}
