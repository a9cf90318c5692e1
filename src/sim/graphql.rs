//! GraphQL over the [`State`]: any query over the types that are here, with aliases, variables, fragments and directives.
//!
//! Which types have which fields, and which of them can be null, is GitHub's public schema. What it does not have here
//! is answered as GitHub answers what it does not have at all.

use std::collections::HashMap;

use async_graphql_parser::types::{
    DocumentOperations, ExecutableDocument, Field, FragmentDefinition, OperationDefinition, OperationType, Selection,
    SelectionSet,
};
use async_graphql_parser::{Pos, Positioned, parse_query};
use async_graphql_value::{ConstValue, Name, Value as Argument};
use serde_json::{Map, Value, json};

use super::checks::CheckRow;
use super::error::ApiError;
use super::fault::Op;
use super::git::{CommitRow, RefUpdate};
use super::json::{association, kind, time};
use super::state::{DEFAULT_COLOR, Session, State};
use super::world::{
    Access, CommentRow, FileContent, Item, LabelEventRow, RepoLabel, Repository, ReviewRow, Scope, TreeEntry, User,
    World, node_id,
};
use crate::core::facts::Permission;
use crate::core::identity::ActorKind;
use crate::ports::RepoName;

/// The deepest nesting of brackets that is read. GitHub's own limit is lower.
const MAX_DEPTH: usize = 60;
/// The most fields that one answer holds.
const MAX_FIELDS: usize = 200_000;

/// Whether the body of a request asks for a change.
pub(super) fn op(body: &Value) -> Op {
    let text = body.get("query").and_then(Value::as_str).unwrap_or_default();
    if text.trim_start().starts_with("mutation") { Op::Mutation } else { Op::Graphql }
}

/// The body of the answer to the body of a request.
pub(super) fn answer(state: &mut State, session: &Session, token: &str, body: &Value) -> Value {
    let Some(text) = body.get("query").and_then(Value::as_str) else {
        return failure("A query attribute must be specified and must be a string.");
    };
    if depth(text) > MAX_DEPTH {
        return failure("Query is nested too deeply");
    }
    let document = match parse_query(text) {
        Ok(document) => document,
        Err(error) => {
            let at: Vec<_> = error.positions().map(position).collect();
            return json!({ "errors": [{ "message": format!("Parse error: {error}"), "locations": at }] });
        }
    };
    let ExecutableDocument { operations, fragments } = &document;
    let wanted = body.get("operationName").and_then(Value::as_str);
    let operation = match (operations, wanted) {
        (DocumentOperations::Single(operation), _) => Some(operation),
        (DocumentOperations::Multiple(all), Some(name)) => all.get(name),
        (DocumentOperations::Multiple(all), None) => all.values().next().filter(|_| all.len() == 1),
    };
    let Some(operation) = operation else { return failure("An operation name is required") };
    let variables = match variables(&operation.node, body.get("variables")) {
        Ok(variables) => variables,
        Err(error) => return json!({ "errors": [error] }),
    };
    match operation.node.ty {
        // What a request does is told before it is read, and the two must agree.
        OperationType::Mutation if session.op == Op::Mutation => {
            return mutate(state, session, &operation.node, &variables);
        }
        OperationType::Query if session.op == Op::Graphql => {}
        _ => return failure("Only queries and mutations are answered here"),
    }
    let world = state.view(session);
    let mut run =
        Run { state, session, token, world, fragments, variables, errors: Vec::new(), invalid: false, fields: 0 };
    let data = run.selection(&Node::Query, &operation.node.selection_set, &mut vec![]);
    if run.fields > MAX_FIELDS {
        return failure("Something went wrong while executing your query: it asks for too much");
    }
    if run.invalid {
        return json!({ "errors": run.errors });
    }
    let mut answer = Map::new();
    answer.insert("data".to_owned(), data.map_or(Value::Null, Value::Object));
    if !run.errors.is_empty() {
        answer.insert("errors".to_owned(), run.errors.into());
    }
    answer.into()
}

fn failure(message: &str) -> Value {
    json!({ "errors": [{ "message": message }] })
}

/// The deepest nesting of brackets in a text, so that no parser is led into endless recursion.
fn depth(text: &str) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for c in text.chars() {
        match c {
            '{' | '[' | '(' => now += 1,
            '}' | ']' | ')' => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

fn position(pos: Pos) -> Value {
    json!({ "line": pos.line, "column": pos.column })
}

fn variables(operation: &OperationDefinition, given: Option<&Value>) -> Result<HashMap<String, ConstValue>, Value> {
    let mut variables = HashMap::new();
    for definition in &operation.variable_definitions {
        let definition = &definition.node;
        let name = definition.name.node.as_str();
        let kind = &definition.var_type.node;
        let value = match given.and_then(|given| given.get(name)) {
            Some(value) => ConstValue::from_json(value.clone()).unwrap_or_default(),
            None => definition.default_value.as_ref().map(|value| value.node.clone()).unwrap_or_default(),
        };
        let fits = match (&value, kind.to_string().trim_end_matches('!')) {
            (ConstValue::Null, _) => kind.nullable,
            (value, "String" | "ID" | "GitObjectID" | "GitRefname") => matches!(value, ConstValue::String(_)),
            (value, "Int") => {
                matches!(value, ConstValue::Number(n) if n.as_i64().is_some_and(|n| i32::try_from(n).is_ok()))
            }
            (value, "Boolean") => matches!(value, ConstValue::Boolean(_)),
            _ => true,
        };
        if !fits {
            let value = value.into_json().unwrap_or_default();
            return Err(json!({
                "message": format!("Variable ${name} of type {kind} was provided invalid value"),
                "locations": [position(definition.name.pos)],
                "extensions": { "value": value, "problems": [{ "path": [], "explanation": "Invalid value" }] },
            }));
        }
        variables.insert(name.to_owned(), value);
    }
    Ok(variables)
}

/// Carries out the mutations that are here, one after the other, each on its own.
fn mutate(
    state: &mut State,
    session: &Session,
    operation: &OperationDefinition,
    variables: &HashMap<String, ConstValue>,
) -> Value {
    let (mut data, mut errors) = (Map::new(), Vec::new());
    for item in &operation.selection_set.node.items {
        let Selection::Field(field) = &item.node else { return failure("Fragments of mutations are not read here") };
        let (pos, field) = (field.pos, &field.node);
        let input = field.get_argument("input").map(|input| constant(variables, input.node.clone()));
        let input = input.and_then(|input| input.into_json().ok()).unwrap_or_default();
        let name = field.name.node.as_str();
        let done = match name {
            "deleteLabel" => {
                let id = input.get("id").and_then(Value::as_str).unwrap_or_default();
                state.delete_label_by_id(session, id).map_err(|error| (error, id.to_owned()))
            }
            "updateRefs" => {
                let id = input.get("repositoryId").and_then(Value::as_str).unwrap_or_default();
                let updates = input.get("refUpdates").and_then(Value::as_array);
                let updates: Vec<_> = updates.into_iter().flatten().map(ref_update).collect();
                state.update_refs(session, id, &updates).map_err(|error| (error, id.to_owned()))
            }
            _ => {
                return json!({ "errors": [{
                    "path": ["mutation", name],
                    "extensions": { "code": "undefinedField", "typeName": "Mutation", "fieldName": name },
                    "locations": [position(pos)],
                    "message": format!("Field '{name}' doesn't exist on type 'Mutation'"),
                }] });
            }
        };
        let key = field.response_key().node.to_string();
        let value = match done {
            Ok(()) => json!({ "clientMutationId": input.get("clientMutationId") }),
            Err((error, id)) => {
                let (kind, message) = match &error {
                    ApiError::NotFound => {
                        ("NOT_FOUND", format!("Could not resolve to a node with the global id of '{id}'"))
                    }
                    error if error.is_forbidden() => ("FORBIDDEN", error.message()),
                    error => ("UNPROCESSABLE", error.message()),
                };
                errors.push(json!({ "type": kind, "path": [key], "locations": [position(pos)], "message": message }));
                Value::Null
            }
        };
        data.insert(key, value);
    }
    let mut answer = Map::new();
    answer.insert("data".to_owned(), data.into());
    if !errors.is_empty() {
        answer.insert("errors".to_owned(), errors.into());
    }
    answer.into()
}

fn ref_update(update: &Value) -> RefUpdate {
    let text = |name: &str| update.get(name).and_then(Value::as_str).map(str::to_owned);
    RefUpdate {
        name: text("name").unwrap_or_default(),
        before: text("beforeOid"),
        after: text("afterOid").unwrap_or_default(),
        force: update.get("force").and_then(Value::as_bool).unwrap_or_default(),
    }
}

/// A value with its variables put in.
fn constant(variables: &HashMap<String, ConstValue>, value: Argument) -> ConstValue {
    let variable = |name: Name| Ok::<_, ()>(variables.get(name.as_str()).cloned().unwrap_or_default());
    value.into_const_with(variable).unwrap_or_default()
}

/// Something with fields.
enum Node<'a> {
    Query,
    Account(&'a User, bool),
    Repository(&'a Repository),
    Item(&'a Repository, &'a Item),
    Comment(&'a Repository, &'a CommentRow),
    Label(&'a Repository, &'a RepoLabel),
    Review(&'a Repository, &'a Item, &'a ReviewRow),
    LabelEvent(&'a Repository, &'a LabelEventRow),
    GoneLabel(&'a Repository, &'a LabelEventRow),
    Blob(&'a Repository, &'a FileContent),
    Tree(&'a Repository, String),
    Commit(&'a Repository, CommitRow),
    Suite(&'a Repository, &'a CheckRow),
    Check(&'a Repository, &'a CheckRow),
    App(&'a CheckRow),
    Ref(&'a Repository, String),
    RateLimit,
    Connection(&'static str, Page<'a>),
    PageInfo(Page<'a>),
}

/// A part of a list.
#[derive(Clone, Default)]
struct Page<'a> {
    nodes: Vec<Listed<'a>>,
    total: usize,
    filtered: usize,
    before: bool,
    after: bool,
}

/// What lists hold, with its place in them.
#[derive(Clone)]
struct Listed<'a> {
    cursor: String,
    entry: Entry<'a>,
}

#[derive(Clone)]
enum Entry<'a> {
    Comment(&'a Repository, &'a CommentRow),
    Label(&'a Repository, &'a RepoLabel),
    LabelEvent(&'a Repository, &'a LabelEventRow),
    Ref(&'a Repository, String),
    Suite(&'a Repository, &'a CheckRow),
    Check(&'a Repository, &'a CheckRow),
    Review(&'a Repository, &'a Item, &'a ReviewRow),
    Item(&'a Repository, &'a Item),
}

impl<'a> From<Entry<'a>> for Node<'a> {
    fn from(entry: Entry<'a>) -> Self {
        match entry {
            Entry::Comment(repo, row) => Self::Comment(repo, row),
            Entry::Label(repo, row) => Self::Label(repo, row),
            Entry::LabelEvent(repo, row) => Self::LabelEvent(repo, row),
            Entry::Ref(repo, name) => Self::Ref(repo, name),
            Entry::Suite(repo, row) => Self::Suite(repo, row),
            Entry::Check(repo, row) => Self::Check(repo, row),
            Entry::Review(repo, item, row) => Self::Review(repo, item, row),
            Entry::Item(repo, item) => Self::Item(repo, item),
        }
    }
}

/// The value of a field, before its own selection is applied.
enum Out<'a> {
    Value(Value),
    Node(Node<'a>),
    List(Vec<Node<'a>>),
}

/// Why a field has no value.
enum Problem {
    /// The type has no such field. The whole query is invalid.
    Undefined,
    /// The whole query is invalid.
    Invalid(String),
    /// `NOT_FOUND`.
    NotFound(String),
    /// `FORBIDDEN`.
    Forbidden(String),
    /// Another type of error.
    Other(&'static str, String),
}

type Args = Map<String, Value>;

struct Run<'a> {
    state: &'a State,
    session: &'a Session,
    token: &'a str,
    world: &'a World,
    fragments: &'a HashMap<Name, Positioned<FragmentDefinition>>,
    variables: HashMap<String, ConstValue>,
    errors: Vec<Value>,
    /// Whether the query as a whole is refused.
    invalid: bool,
    fields: usize,
}

impl<'a> Run<'a> {
    /// The fields of a node; `None` if one that cannot be null has no value.
    fn selection(
        &mut self,
        node: &Node<'a>,
        set: &Positioned<SelectionSet>,
        path: &mut Vec<Value>,
    ) -> Option<Map<String, Value>> {
        let mut out = Map::new();
        self.select(node, set, path, &mut out, 0).then_some(out)
    }

    /// Adds the fields of a selection; `false` if the node is null for want of one.
    fn select(
        &mut self,
        node: &Node<'a>,
        set: &Positioned<SelectionSet>,
        path: &mut Vec<Value>,
        out: &mut Map<String, Value>,
        nested: usize,
    ) -> bool {
        let mut whole = true;
        for item in &set.node.items {
            if self.fields > MAX_FIELDS || nested > MAX_DEPTH {
                self.fields = MAX_FIELDS + 1;
                return false;
            }
            if !self.included(&item.node) {
                continue;
            }
            match &item.node {
                Selection::Field(field) => whole &= self.field(node, field, path, out),
                Selection::InlineFragment(fragment) => {
                    let on = fragment.node.type_condition.as_ref().map(|on| on.node.on.node.as_str());
                    if on.is_none_or(|on| node.is(on)) {
                        whole &= self.select(node, &fragment.node.selection_set, path, out, nested + 1);
                    }
                }
                Selection::FragmentSpread(spread) => {
                    let name = &spread.node.fragment_name.node;
                    let Some(fragment) = self.fragments.get(name) else {
                        self.refuse(item.pos, path, &format!("Fragment {name} was used, but not defined"), None);
                        continue;
                    };
                    if node.is(fragment.node.type_condition.node.on.node.as_str()) {
                        whole &= self.select(node, &fragment.node.selection_set, path, out, nested + 1);
                    }
                }
            }
        }
        whole
    }

    fn included(&self, selection: &Selection) -> bool {
        selection.directives().iter().all(|directive| {
            let condition = directive.node.get_argument("if").map(|value| self.constant(value.node.clone()));
            match (directive.node.name.node.as_str(), condition) {
                ("include", Some(ConstValue::Boolean(yes))) => yes,
                ("skip", Some(ConstValue::Boolean(yes))) => !yes,
                _ => true,
            }
        })
    }

    fn constant(&self, value: Argument) -> ConstValue {
        constant(&self.variables, value)
    }

    /// Adds one field; `false` if it has no value and cannot be null.
    fn field(
        &mut self,
        node: &Node<'a>,
        field: &Positioned<Field>,
        path: &mut Vec<Value>,
        out: &mut Map<String, Value>,
    ) -> bool {
        self.fields += 1;
        let (pos, field) = (field.pos, &field.node);
        let name = field.name.node.as_str();
        let key = field.response_key().node.to_string();
        path.push(key.clone().into());
        let args: Args = field
            .arguments
            .iter()
            .map(|(name, value)| {
                let value = self.constant(value.node.clone());
                (name.node.to_string(), value.into_json().unwrap_or_default())
            })
            .collect();
        let denied = self.state.denied_fields.contains(&format!("{}.{name}", node.type_name()));
        let value = if denied { Err(self.forbidden()) } else { self.value(node, name, &args) };
        let value = match value {
            Ok(Out::Value(value)) => Some(value),
            Ok(Out::Node(inner)) => self.selection(&inner, &field.selection_set, path).map(Value::Object),
            Ok(Out::List(list)) => {
                let mut values = Vec::new();
                for (index, inner) in list.iter().enumerate() {
                    path.push(index.into());
                    let value = self.selection(inner, &field.selection_set, path);
                    values.push(value.map_or(Value::Null, Value::Object));
                    path.pop();
                }
                Some(values.into())
            }
            Err(problem) => {
                self.report(node, name, problem, pos, path);
                None
            }
        };
        path.pop();
        let whole = value.is_some() || can_be_null(node.type_name(), name);
        merge(out, key, value.unwrap_or_default());
        whole
    }

    fn report(&mut self, node: &Node<'a>, field: &str, problem: Problem, pos: Pos, path: &[Value]) {
        let (kind, message) = match problem {
            Problem::Undefined => {
                let kind = node.type_name();
                let message = format!("Field '{field}' doesn't exist on type '{kind}'");
                let extensions = json!({ "code": "undefinedField", "typeName": kind, "fieldName": field });
                return self.refuse(pos, path, &message, Some(extensions));
            }
            Problem::Invalid(message) => return self.refuse(pos, path, &message, None),
            Problem::NotFound(message) => ("NOT_FOUND", message),
            Problem::Forbidden(message) => ("FORBIDDEN", message),
            Problem::Other(kind, message) => (kind, message),
        };
        let mut error = json!({ "type": kind, "path": path, "locations": [position(pos)], "message": message });
        if let (true, Some(error)) = (kind == "FORBIDDEN", error.as_object_mut()) {
            error.insert("extensions".to_owned(), json!({ "saml_failure": false }));
        }
        self.errors.push(error);
    }

    /// The query as a whole is invalid.
    fn refuse(&mut self, pos: Pos, path: &[Value], message: &str, extensions: Option<Value>) {
        if !self.invalid {
            self.errors.clear();
            self.invalid = true;
        }
        let mut full = vec![json!("query")];
        full.extend_from_slice(path);
        self.errors.push(json!({
            "path": full,
            "extensions": extensions.unwrap_or_else(|| json!({})),
            "locations": [position(pos)],
            "message": message,
        }));
    }

    fn forbidden(&self) -> Problem {
        Problem::Forbidden(self.session.caller.refused().message())
    }

    fn may_read(&self, repo: &Repository, scope: Scope) -> Result<(), Problem> {
        let caller = &self.session.caller;
        if self.world.may(caller, repo, scope, Access::Read, Permission::Read) { Ok(()) } else { Err(self.forbidden()) }
    }

    fn account(&self, login: Option<&String>) -> Out<'a> {
        let user = login.and_then(|login| self.world.user(login));
        user.map_or(Out::Value(Value::Null), |user| Out::Node(Node::Account(user, false)))
    }

    fn value(&self, node: &Node<'a>, name: &str, args: &Args) -> Result<Out<'a>, Problem> {
        if name == "__typename" {
            return Ok(Out::Value(node.type_name().into()));
        }
        let value = |value: Value| Ok(Out::Value(value));
        let web = &self.state.web;
        match node {
            Node::Query => self.query(name, args),
            Node::Repository(repo) => self.repository(repo, name, args),
            Node::Item(repo, item) => self.item(repo, item, name, args),
            Node::Account(user, viewer) => match name {
                "login" if *viewer => value(json!(user.login)),
                "login" => value(json!(World::graphql_login(user))),
                "databaseId" => value(json!(user.id)),
                "id" => value(json!(node_id("U", user.id))),
                "name" if user.kind == ActorKind::User => value(Value::Null),
                "url" => value(json!(format!("{web}/{}", World::graphql_login(user)))),
                "resourcePath" => value(json!(format!("/{}", World::graphql_login(user)))),
                "avatarUrl" => value(json!(format!("https://avatars.githubusercontent.com/u/{}?v=4", user.id))),
                _ => Err(Problem::Undefined),
            },
            Node::Comment(repo, row) => match name {
                "id" => value(json!(node_id("IC", row.id))),
                "databaseId" => value(i32::try_from(row.id).map_or(Value::Null, Value::from)),
                "fullDatabaseId" => value(json!(row.id.to_string())),
                "author" => Ok(self.account(row.author.as_ref())),
                "editor" => Ok(self.account(row.editor.as_ref())),
                "authorAssociation" => value(json!(association(self.world, repo, row.author.as_deref()))),
                "body" => value(json!(row.body)),
                "createdAt" => value(json!(time(row.created_at))),
                "updatedAt" => value(json!(time(row.updated_at))),
                "lastEditedAt" => value(json!(row.editor.as_ref().map(|_| time(row.updated_at)))),
                "url" => value(json!(repo.comment_url(web, row))),
                "viewerDidAuthor" => value(json!(row.author.as_ref() == Some(&self.session.caller.login))),
                _ => Err(Problem::Undefined),
            },
            Node::Label(repo, label) => match name {
                "id" => value(json!(node_id("LA", label.id))),
                "name" => value(json!(label.name)),
                "color" => value(json!(label.color)),
                "description" => value(json!(label.description)),
                "isDefault" => value(json!(false)),
                "createdAt" => value(json!(time(label.created_at))),
                "updatedAt" => value(json!(time(label.updated_at))),
                "repository" => Ok(Out::Node(Node::Repository(repo))),
                _ => Err(Problem::Undefined),
            },
            Node::GoneLabel(repo, row) => match name {
                "id" => value(json!(node_id("LA", row.id))),
                "name" => value(json!(row.label)),
                "color" => value(json!(DEFAULT_COLOR)),
                "isDefault" => value(json!(false)),
                "createdAt" | "description" | "updatedAt" => value(Value::Null),
                "repository" => Ok(Out::Node(Node::Repository(repo))),
                _ => Err(Problem::Undefined),
            },
            Node::Review(repo, item, row) => match name {
                "id" => value(json!(node_id("PRR", row.id))),
                "fullDatabaseId" => value(json!(row.id.to_string())),
                "author" => Ok(self.account(row.author.as_ref())),
                "body" => value(json!(row.body)),
                "state" => value(json!("COMMENTED")),
                "createdAt" | "updatedAt" | "submittedAt" | "publishedAt" => value(json!(time(row.submitted_at))),
                "url" => value(json!(repo.review_url(web, item, row))),
                "repository" => Ok(Out::Node(Node::Repository(repo))),
                _ => Err(Problem::Undefined),
            },
            Node::LabelEvent(repo, row) => match name {
                "id" => value(json!(row.node_id())),
                "createdAt" => value(json!(time(row.at))),
                "actor" => Ok(self.account(row.actor.as_ref())),
                // An event keeps the name of a label that is gone since.
                "label" => {
                    let label = repo.label_exactly(&row.label);
                    Ok(Out::Node(label.map_or(Node::GoneLabel(repo, row), |label| Node::Label(repo, label))))
                }
                _ => Err(Problem::Undefined),
            },
            Node::Blob(repo, content) => {
                let (text, size) = match content {
                    FileContent::Text(text) => (Some(text), text.len()),
                    FileContent::Binary(size) => (None, *size),
                };
                match name {
                    "text" => value(json!(text)),
                    "byteSize" => value(json!(size)),
                    "isBinary" => value(json!(text.is_none())),
                    "isTruncated" => value(json!(false)),
                    _ => git_object(repo, "B", &repo.head_sha.clone().unwrap_or_default(), name),
                }
            }
            Node::Tree(repo, oid) => git_object(repo, "T", oid, name),
            Node::Commit(repo, row) => match name {
                "message" => value(json!(row.message)),
                "committedDate" | "authoredDate" => value(json!(time(row.at))),
                "tree" => Ok(Out::Node(Node::Tree(repo, row.tree.clone()))),
                "checkSuites" => {
                    self.may_read(repo, Scope::Checks)?;
                    let mut suites: Vec<&CheckRow> = Vec::new();
                    for row in self.checks(repo, &row.oid, args) {
                        if suites.iter().all(|known| known.suite != row.suite) {
                            suites.push(row);
                        }
                    }
                    let rows = suites
                        .into_iter()
                        .map(|row| Listed { cursor: cursor(row.suite), entry: Entry::Suite(repo, row) });
                    page("checkSuites", rows.collect(), args, false)
                        .map(|page| connection("CheckSuiteConnection", page))
                }
                _ => git_object(repo, "C", &row.oid, name),
            },
            Node::Suite(repo, of) => match name {
                "id" => value(json!(node_id("CS", of.suite))),
                "app" => Ok(Out::Node(Node::App(of))),
                "checkRuns" => {
                    let mut rows = self.checks(repo, &of.head_sha, args);
                    rows.retain(|row| row.suite == of.suite);
                    let rows =
                        rows.into_iter().map(|row| Listed { cursor: cursor(row.id), entry: Entry::Check(repo, row) });
                    page("checkRuns", rows.collect(), args, false).map(|page| connection("CheckRunConnection", page))
                }
                "repository" => Ok(Out::Node(Node::Repository(repo))),
                _ => Err(Problem::Undefined),
            },
            Node::App(row) => match name {
                "slug" | "name" => value(json!(row.slug())),
                _ => Err(Problem::Undefined),
            },
            Node::Check(repo, row) => {
                let said = &row.said;
                match name {
                    "id" => value(json!(node_id("CR", row.id))),
                    "databaseId" => value(i32::try_from(row.id).map_or(Value::Null, Value::from)),
                    "name" => value(json!(row.name)),
                    "permalink" | "url" => value(json!(row.page(web, repo))),
                    "externalId" => value(json!(said.external_id)),
                    "detailsUrl" => value(json!(said.details_url)),
                    "status" => value(json!(said.status.as_deref().unwrap_or("queued").to_uppercase())),
                    "conclusion" => value(json!(said.conclusion.as_deref().map(str::to_uppercase))),
                    "startedAt" => value(json!(said.started_at.map(time))),
                    "completedAt" => value(json!(said.completed_at.map(time))),
                    "title" => value(json!(said.title)),
                    "summary" => value(json!(said.summary)),
                    "text" => value(json!(said.text)),
                    "checkSuite" => Ok(Out::Node(Node::Suite(repo, row))),
                    "repository" => Ok(Out::Node(Node::Repository(repo))),
                    _ => Err(Problem::Undefined),
                }
            }
            Node::Ref(repo, full) => {
                let (prefix, short) = ref_parts(full);
                match name {
                    "id" => value(json!(node_id(&format!("REF_{full}"), repo.id))),
                    "name" => value(json!(short)),
                    "prefix" => value(json!(prefix)),
                    "target" => {
                        let commit = repo.target(full).and_then(|oid| repo.commit(oid));
                        Ok(commit.map_or(Out::Value(Value::Null), |row| Out::Node(Node::Commit(repo, row))))
                    }
                    "repository" => Ok(Out::Node(Node::Repository(repo))),
                    "associatedPullRequests" => {
                        self.may_read(repo, Scope::PullRequests)?;
                        let branch = full.strip_prefix("refs/heads/");
                        let of_branch = |item: &&Item| branch.is_some() && item.head_ref.as_deref() == branch;
                        let items = repo.items.values().filter(of_branch);
                        let rows = items.map(|item| Listed { cursor: cursor(item.id), entry: Entry::Item(repo, item) });
                        page(name, rows.collect(), args, false).map(|page| connection("PullRequestConnection", page))
                    }
                    _ => Err(Problem::Undefined),
                }
            }
            Node::RateLimit => {
                let rate = self.state.rate(self.token, Op::Graphql).ok_or_else(|| self.forbidden())?;
                match name {
                    "cost" | "nodeCount" => value(json!(1)),
                    "limit" => value(json!(rate.limit)),
                    "used" => value(json!(rate.used)),
                    "remaining" => value(json!(rate.remaining())),
                    "resetAt" => value(json!(time(rate.reset))),
                    _ => Err(Problem::Undefined),
                }
            }
            Node::Connection(kind, page) => match name {
                "nodes" => Ok(Out::List(page.nodes.iter().map(|listed| listed.entry.clone().into()).collect())),
                "totalCount" => value(json!(page.total)),
                "filteredCount" if kind.ends_with("TimelineItemsConnection") => value(json!(page.filtered)),
                "pageInfo" => Ok(Out::Node(Node::PageInfo(page.clone()))),
                _ => Err(Problem::Undefined),
            },
            Node::PageInfo(page) => match name {
                "hasNextPage" => value(json!(page.after)),
                "hasPreviousPage" => value(json!(page.before)),
                "startCursor" => value(json!(page.nodes.first().map(|listed| &listed.cursor))),
                "endCursor" => value(json!(page.nodes.last().map(|listed| &listed.cursor))),
                _ => Err(Problem::Undefined),
            },
        }
    }

    fn query(&self, name: &str, args: &Args) -> Result<Out<'a>, Problem> {
        match name {
            "viewer" => match self.world.user(&self.session.caller.login) {
                Some(user) => Ok(Out::Node(Node::Account(user, true))),
                None => Err(self.forbidden()),
            },
            "rateLimit" => Ok(Out::Node(Node::RateLimit)),
            "repository" => {
                let repo = RepoName { owner: text(args, "owner")?.to_owned(), name: text(args, "name")?.to_owned() };
                let missing =
                    || Problem::NotFound(format!("Could not resolve to a Repository with the name '{repo}'."));
                let found = self.world.visible(&self.session.caller, &repo).map_err(|_| missing())?;
                Ok(Out::Node(Node::Repository(found)))
            }
            _ => Err(Problem::Undefined),
        }
    }

    fn repository(&self, repo: &'a Repository, name: &str, args: &Args) -> Result<Out<'a>, Problem> {
        let value = |value: Value| Ok(Out::Value(value));
        let node = |node: Option<Node<'a>>| Ok(node.map_or(Out::Value(Value::Null), Out::Node));
        match name {
            "id" => value(json!(node_id("R", repo.id))),
            "databaseId" => value(json!(repo.id)),
            "name" => value(json!(repo.name)),
            "nameWithOwner" => value(json!(repo.full_name())),
            "isPrivate" => value(json!(repo.private)),
            "isArchived" => value(json!(false)),
            "isEmpty" => value(json!(repo.head_sha.is_none())),
            "url" => value(json!(format!("{}/{}", self.state.web, repo.full_name()))),
            "createdAt" => value(json!(time(repo.created_at))),
            "owner" => match self.account(Some(&repo.owner)) {
                Out::Value(_) => Err(self.forbidden()),
                found => Ok(found),
            },
            "defaultBranchRef" => {
                self.may_read(repo, Scope::Contents)?;
                let branch = || Node::Ref(repo, format!("refs/heads/{}", repo.default_branch));
                node(repo.head_sha.is_some().then(branch))
            }
            "ref" => {
                self.may_read(repo, Scope::Contents)?;
                let full = text(args, "qualifiedName")?;
                node(repo.target(full).is_some().then(|| Node::Ref(repo, full.to_owned())))
            }
            "refs" => {
                self.may_read(repo, Scope::Contents)?;
                let prefix = text(args, "refPrefix")?;
                if !prefix.starts_with("refs/") || !prefix.ends_with('/') {
                    return Err(Problem::Invalid("refPrefix must start with refs/ and end with a slash".to_owned()));
                }
                let rows = repo.refs_below(prefix).into_iter();
                let rows = rows.map(|(name, _)| Listed { cursor: name.clone(), entry: Entry::Ref(repo, name) });
                page("refs", rows.collect(), args, false).map(|page| connection("RefConnection", page))
            }
            "object" => {
                self.may_read(repo, Scope::Contents)?;
                if let Some(oid) = args.get("oid").and_then(Value::as_str) {
                    return node(known_commit(repo, oid).map(|row| Node::Commit(repo, row)));
                }
                node(object(repo, text(args, "expression")?))
            }
            "issueOrPullRequest" | "issue" | "pullRequest" => {
                let number = args.get("number").and_then(Value::as_u64);
                let number = number.ok_or_else(|| Problem::Invalid("Argument 'number' is required".to_owned()))?;
                let what = match name {
                    "issue" => "an Issue",
                    "pullRequest" => "a PullRequest",
                    _ => "an issue or pull request",
                };
                let missing = || Problem::NotFound(format!("Could not resolve to {what} with the number of {number}."));
                let repo_name = RepoName { owner: repo.owner.clone(), name: repo.name.clone() };
                let (repo, item) = self.world.item(&self.session.caller, &repo_name, number).map_err(|e| match e {
                    ApiError::NotFound | ApiError::Deleted => missing(),
                    other => Problem::Forbidden(other.message()),
                })?;
                if name == "issue" && item.is_pull_request || name == "pullRequest" && !item.is_pull_request {
                    return Err(missing());
                }
                node(Some(Node::Item(repo, item)))
            }
            "label" => {
                self.labels_readable(repo)?;
                node(repo.label_exactly(text(args, "name")?).map(|label| Node::Label(repo, label)))
            }
            "labels" => {
                self.labels_readable(repo)?;
                if args.get("query").is_some_and(|query| !query.is_null()) {
                    return Err(Problem::Invalid("Argument 'query' is not answered here".to_owned()));
                }
                labels(repo, repo.labels_by_age(), args)
            }
            _ => Err(Problem::Undefined),
        }
    }

    /// The check runs of a commit that `filterBy` lets through, oldest first.
    fn checks(&self, repo: &'a Repository, commit: &str, args: &Args) -> Vec<&'a CheckRow> {
        let filter = |name: &str| args.get("filterBy").and_then(|filter| filter.get(name));
        let mut rows = self.state.listed_checks(repo, commit);
        rows.retain(|row| filter("checkName").and_then(Value::as_str).is_none_or(|name| row.name == name));
        if filter("checkType").and_then(Value::as_str) == Some("LATEST") {
            let all = rows.clone();
            rows.retain(|row| !all.iter().any(|other| other.id > row.id && other.name == row.name));
        }
        rows
    }

    fn labels_readable(&self, repo: &Repository) -> Result<(), Problem> {
        if self.world.may_read_labels(&self.session.caller, repo) { Ok(()) } else { Err(self.forbidden()) }
    }

    fn item(&self, repo: &'a Repository, item: &'a Item, name: &str, args: &Args) -> Result<Out<'a>, Problem> {
        let value = |value: Value| Ok(Out::Value(value));
        let pull = item.is_pull_request;
        match name {
            "id" => value(json!(node_id(if pull { "PR" } else { "I" }, item.id))),
            "databaseId" => value(i32::try_from(item.id).map_or(Value::Null, Value::from)),
            "fullDatabaseId" => value(json!(item.id.to_string())),
            "number" => value(json!(item.number)),
            "title" => value(json!(item.title)),
            "body" => value(json!(item.body.as_deref().unwrap_or_default())),
            "closed" => value(json!(!item.open)),
            "closedAt" => value(json!(item.closed_at.map(time))),
            "createdAt" => value(json!(time(item.created_at))),
            "updatedAt" => value(json!(time(item.updated_at))),
            "locked" => value(json!(item.locked)),
            "url" => value(json!(repo.item_url(&self.state.web, item))),
            "state" => value(json!(match (item.open, item.merged) {
                (true, _) => "OPEN",
                (false, true) => "MERGED",
                (false, false) => "CLOSED",
            })),
            "stateReason" if !pull => value(if item.open { Value::Null } else { json!("COMPLETED") }),
            "isDraft" if pull => value(json!(item.draft)),
            "merged" if pull => value(json!(item.merged)),
            "headRefOid" if pull => value(json!(item.head_sha)),
            "headRefName" if pull => value(json!(item.head_ref)),
            "baseRefName" if pull => value(json!(repo.default_branch)),
            "author" => Ok(self.account(item.author.as_ref())),
            "authorAssociation" => value(json!(association(self.world, repo, item.author.as_deref()))),
            "repository" => Ok(Out::Node(Node::Repository(repo))),
            "labels" => {
                let mut rows: Vec<_> = repo.labels_of(item).collect();
                rows.sort_by_key(|label| label.cursor());
                labels(repo, rows, args)
            }
            "reviews" if pull => {
                let rows = item.reviews.iter();
                let rows = rows.map(|row| Listed { cursor: cursor(row.id), entry: Entry::Review(repo, item, row) });
                page("reviews", rows.collect(), args, false).map(|p| connection("PullRequestReviewConnection", p))
            }
            "comments" => {
                let rows = repo.comments_of(item);
                let rows = rows.map(|row| Listed { cursor: cursor(row.id), entry: Entry::Comment(repo, row) });
                page("comments", rows.collect(), args, false).map(|p| connection("IssueCommentConnection", p))
            }
            "timelineItems" => {
                let types = args.get("itemTypes").and_then(Value::as_array);
                let wanted = |kind: &str| types.is_none_or(|types| types.iter().any(|t| t.as_str() == Some(kind)));
                let events = item.label_events.iter();
                let mut rows: Vec<_> = events
                    .filter(|row| wanted(if row.added { "LABELED_EVENT" } else { "UNLABELED_EVENT" }))
                    .map(|row| Listed { cursor: cursor(row.id), entry: Entry::LabelEvent(repo, row) })
                    .collect();
                if wanted("ISSUE_COMMENT") {
                    let comments = repo.comments_of(item);
                    rows.extend(
                        comments.map(|row| Listed { cursor: cursor(row.id), entry: Entry::Comment(repo, row) }),
                    );
                }
                rows.sort_by(|a, b| a.cursor.cmp(&b.cursor));
                let kind = if pull { "PullRequestTimelineItemsConnection" } else { "IssueTimelineItemsConnection" };
                let mut page = page("timelineItems", rows, args, false)?;
                page.total = item.label_events.len() + item.comments.len();
                Ok(connection(kind, page))
            }
            _ => Err(Problem::Undefined),
        }
    }
}

impl Node<'_> {
    const fn type_name(&self) -> &'static str {
        match self {
            Self::Query => "Query",
            Self::Account(_, true) => "User",
            Self::Account(user, false) => kind(user.kind),
            Self::Repository(_) => "Repository",
            Self::Item(_, item) => {
                if item.is_pull_request {
                    "PullRequest"
                } else {
                    "Issue"
                }
            }
            Self::Comment(..) => "IssueComment",
            Self::Review(..) => "PullRequestReview",
            Self::Label(..) | Self::GoneLabel(..) => "Label",
            Self::LabelEvent(_, row) => {
                if row.added {
                    "LabeledEvent"
                } else {
                    "UnlabeledEvent"
                }
            }
            Self::Blob(..) => "Blob",
            Self::Tree(..) => "Tree",
            Self::Commit(..) => "Commit",
            Self::Suite(..) => "CheckSuite",
            Self::Check(..) => "CheckRun",
            Self::App(_) => "App",
            Self::Ref(..) => "Ref",
            Self::RateLimit => "RateLimit",
            Self::Connection(kind, _) => kind,
            Self::PageInfo(_) => "PageInfo",
        }
    }

    /// Whether a fragment on this type is about the node.
    fn is(&self, on: &str) -> bool {
        on == self.type_name()
            || match on {
                "Actor" => matches!(self, Self::Account(..)),
                "RepositoryOwner" => matches!(self, Self::Account(user, _) if user.kind != ActorKind::Bot),
                "GitObject" => matches!(self, Self::Blob(..) | Self::Tree(..) | Self::Commit(..)),
                "Closable" | "Lockable" | "Labelable" | "IssueOrPullRequest" => matches!(self, Self::Item(..)),
                "Comment" => matches!(self, Self::Item(..) | Self::Comment(..) | Self::Review(..)),
                "IssueTimelineItems" | "PullRequestTimelineItems" => {
                    matches!(self, Self::Comment(..) | Self::LabelEvent(..))
                }
                "Node" => !matches!(self, Self::Query | Self::RateLimit | Self::Connection(..) | Self::PageInfo(_)),
                _ => false,
            }
    }
}

/// Whether GitHub's schema lets the field be null. Of the fields that are here, all others have a `!`.
fn can_be_null(on: &str, field: &str) -> bool {
    match on {
        "Query" => matches!(field, "repository" | "rateLimit"),
        "Repository" => matches!(
            field,
            "databaseId"
                | "defaultBranchRef"
                | "issue"
                | "issueOrPullRequest"
                | "pullRequest"
                | "label"
                | "labels"
                | "object"
                | "ref"
                | "refs"
        ),
        "Issue" | "PullRequest" => {
            matches!(
                field,
                "author" | "closedAt" | "databaseId" | "fullDatabaseId" | "labels" | "reviews" | "stateReason"
            )
        }
        "IssueComment" => matches!(field, "author" | "editor" | "databaseId" | "fullDatabaseId" | "lastEditedAt"),
        "PullRequestReview" => matches!(field, "author" | "fullDatabaseId" | "submittedAt" | "publishedAt"),
        "Label" => matches!(field, "createdAt" | "description" | "updatedAt"),
        "LabeledEvent" | "UnlabeledEvent" => field == "actor",
        "Blob" => matches!(field, "isBinary" | "text"),
        "Ref" => field == "target",
        "Commit" => field == "checkSuites",
        "CheckSuite" => matches!(field, "app" | "checkRuns"),
        "CheckRun" => !matches!(field, "id" | "name" | "permalink" | "url" | "status" | "checkSuite" | "repository"),
        "PageInfo" => matches!(field, "startCursor" | "endCursor"),
        "User" | "Bot" | "Organization" => matches!(field, "databaseId" | "name"),
        _ => on.ends_with("Connection") && field == "nodes",
    }
}

/// Two selections of one field are one.
fn merge(out: &mut Map<String, Value>, key: String, value: Value) {
    match (out.get_mut(&key), value) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            for (key, value) in new {
                merge(old, key, value);
            }
        }
        (Some(Value::Array(old)), Value::Array(new)) if old.len() == new.len() => {
            for (old, new) in old.iter_mut().zip(new) {
                if let (Value::Object(old), Value::Object(new)) = (old, new) {
                    for (key, value) in new {
                        merge(old, key, value);
                    }
                }
            }
        }
        (_, value) => {
            out.insert(key, value);
        }
    }
}

fn text<'b>(args: &'b Args, name: &str) -> Result<&'b str, Problem> {
    let missing = || Problem::Invalid(format!("Argument '{name}' is required and is a String"));
    args.get(name).and_then(Value::as_str).ok_or_else(missing)
}

fn cursor(id: u64) -> String {
    format!("{id:020}")
}

/// What `REVISION:PATH` names on the default branch; a revision alone is its commit.
fn object<'a>(repo: &'a Repository, expression: &str) -> Option<Node<'a>> {
    let head = repo.head_sha.as_deref()?;
    let (revision, path) = expression.split_once(':').map_or((expression, None), |(r, p)| (r, Some(p)));
    let known = [
        "HEAD".to_owned(),
        repo.default_branch.clone(),
        format!("refs/heads/{}", repo.default_branch),
        head.to_owned(),
    ];
    if !known.iter().any(|k| k == revision) {
        return None;
    }
    let Some(path) = path else { return repo.commit(head).map(|row| Node::Commit(repo, row)) };
    Some(match repo.entry(path)? {
        TreeEntry::File(content) => Node::Blob(repo, content),
        TreeEntry::Folder => Node::Tree(repo, repo.default_tree()?),
    })
}

/// A commit by its id, also one of which nothing but the id is known.
fn known_commit(repo: &Repository, oid: &str) -> Option<CommitRow> {
    let bare = || CommitRow {
        oid: oid.to_owned(),
        message: String::new(),
        tree: repo.default_tree().unwrap_or_default(),
        parents: Vec::new(),
        at: repo.created_at,
    };
    repo.commit(oid).or_else(|| repo.knows_commit(oid).then(bare))
}

/// A ref's full name as GitHub's two fields have it.
fn ref_parts(full: &str) -> (&str, &str) {
    let slash = full.match_indices('/').nth(1).map_or(full.len(), |(at, _)| at + 1);
    full.split_at_checked(slash).unwrap_or((full, ""))
}

fn git_object<'a>(repo: &'a Repository, kind: &str, oid: &str, name: &str) -> Result<Out<'a>, Problem> {
    match name {
        "id" => Ok(Out::Value(json!(node_id(&format!("{kind}_{oid}"), repo.id)))),
        "oid" => Ok(Out::Value(json!(oid))),
        "abbreviatedOid" => Ok(Out::Value(json!(oid.get(..7)))),
        "repository" => Ok(Out::Node(Node::Repository(repo))),
        _ => Err(Problem::Undefined),
    }
}

const fn connection<'a>(kind: &'static str, page: Page<'a>) -> Out<'a> {
    Out::Node(Node::Connection(kind, page))
}

fn labels<'a>(repo: &'a Repository, mut rows: Vec<&'a RepoLabel>, args: &Args) -> Result<Out<'a>, Problem> {
    let order = |part: &str| args.get("orderBy").and_then(|order| order.get(part)).and_then(Value::as_str);
    let by_name = order("field") == Some("NAME");
    let descending = order("direction") == Some("DESC");
    let key = |label: &RepoLabel| if by_name { label.name.clone() } else { label.cursor() };
    rows.sort_by_key(|label| key(label));
    if descending {
        rows.reverse();
    }
    let rows = rows.into_iter().map(|label| Listed { cursor: key(label), entry: Entry::Label(repo, label) });
    page("labels", rows.collect(), args, descending).map(|page| connection("LabelConnection", page))
}

/// The part of a list that `first`, `last`, `after` and `before` ask for. Cursors rise along the list, or fall.
fn page<'a>(name: &str, mut rows: Vec<Listed<'a>>, args: &Args, falling: bool) -> Result<Page<'a>, Problem> {
    let bound = |which: &str| match args.get(which) {
        None | Some(Value::Null) => Ok(None),
        Some(n) => match n.as_i64() {
            Some(n @ 0..=100) => Ok(usize::try_from(n).ok()),
            Some(n) if n > 100 => Err(Problem::Other(
                "EXCESSIVE_PAGINATION",
                format!(
                    "Requesting {n} records on the `{name}` connection exceeds the `{which}` limit of 100 records."
                ),
            )),
            _ => Err(Problem::Invalid(format!("`{which}` on the `{name}` connection cannot be less than zero."))),
        },
    };
    let (first, last) = (bound("first")?, bound("last")?);
    if first.is_none() && last.is_none() {
        return Err(Problem::Other(
            "MISSING_PAGINATION_BOUNDARIES",
            format!("You must provide a `first` or `last` value to properly paginate the `{name}` connection."),
        ));
    }
    let total = rows.len();
    let mut page = Page { total, filtered: total, ..Page::default() };
    let cursor = |which: &str| args.get(which).and_then(Value::as_str);
    if let Some(after) = cursor("after") {
        rows.retain(|row| if falling { row.cursor.as_str() < after } else { row.cursor.as_str() > after });
        page.before = rows.len() < total;
    }
    if let Some(before) = cursor("before") {
        let kept = rows.len();
        rows.retain(|row| if falling { row.cursor.as_str() > before } else { row.cursor.as_str() < before });
        page.after = rows.len() < kept;
    }
    if let Some(first) = first {
        page.after |= rows.len() > first;
        rows.truncate(first);
    }
    if let Some(last) = last {
        page.before |= rows.len() > last;
        rows.drain(..rows.len().saturating_sub(last));
    }
    page.nodes = rows;
    Ok(page)
}
