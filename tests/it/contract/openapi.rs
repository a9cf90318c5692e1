//! REST exchanges against GitHub's API description (OpenAPI 3.0).
//!
//! The description's schemas are turned into JSON Schema: `nullable` becomes a `null` type, and an object that lists its properties and
//! says nothing of others allows no others, so that a field that GitHub does not describe is found too.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::rc::Rc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::exchange::Exchange;
use super::{Deviation, Finding};

/// GitHub's description, with a validator for every schema that was needed so far.
pub(crate) struct Description {
    document: Value,
    routes: Vec<Route>,
    validators: RefCell<HashMap<String, Rc<Validator>>>,
}

struct Route {
    template: String,
    segments: Vec<Segment>,
}

enum Segment {
    Literal(String),
    /// A parameter: one segment of the path, or several (`{ref}`, `{path}`).
    Parameter {
        name: String,
        many: bool,
    },
}

/// Parameters whose value may hold slashes.
const MANY_SEGMENTS: [&str; 2] = ["ref", "path"];

/// Keywords whose meaning is the same in both languages.
const SAME_KEYWORDS: [&str; 11] = [
    "required",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "uniqueItems",
    "minimum",
    "maximum",
    "pattern",
];

impl Description {
    /// Reads the description from `@octokit/openapi`'s file.
    pub(crate) fn read(file: &Path) -> Self {
        let bytes = std::fs::read(file).expect("the API description can be read");
        Self::new(serde_json::from_slice(&bytes).expect("the API description is JSON"))
    }

    fn new(document: Value) -> Self {
        let routes = object(&document["paths"]).map(|(template, _)| Route::new(template)).collect();
        Self { document, routes, validators: RefCell::default() }
    }

    /// The endpoint of a request as GitHub names it: method and path template.
    pub(crate) fn endpoint(&self, method: &str, path: &str) -> Option<String> {
        let method = method.to_ascii_uppercase();
        self.route(&method, path).map(|(template, _)| format!("{method} {template}"))
    }

    /// What is wrong with an exchange.
    pub(crate) fn judge(&self, exchange: &Exchange) -> Finding {
        let method = exchange.method.to_ascii_uppercase();
        let Some((template, parameters)) = self.route(&method, &exchange.path) else {
            return Finding {
                endpoint: format!("{method} {}", exchange.path),
                deviations: vec![Deviation::new("request path", "GitHub describes no such endpoint")],
                warnings: Vec::new(),
            };
        };
        let mut finding = Finding { endpoint: format!("{method} {template}"), ..Finding::default() };
        let operation = &self.document["paths"][&template][method.to_ascii_lowercase()];
        self.judge_parameters(operation, &template, &parameters, exchange, &mut finding);
        self.judge_request_body(operation, exchange, &mut finding);
        self.judge_answer(operation, exchange, &mut finding);
        finding
    }

    /// The path template of a request and the values of its parameters, the template with the most literal segments first.
    fn route(&self, method: &str, path: &str) -> Option<(String, Vec<(String, String)>)> {
        // Enterprise hosts serve the same API below a prefix, and GitHub's own page links name a repository by its id.
        let path = path.strip_prefix("/api/v3").unwrap_or(path);
        let by_id = path.strip_prefix("/repositories/").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
        let path = match by_id {
            Some((id, rest)) => format!("/repos/by-id/{id}/{rest}"),
            None => path.to_owned(),
        };
        let segments: Vec<String> = path.trim_matches('/').split('/').map(percent_decoded).collect();
        self.routes
            .iter()
            .filter(|route| self.document["paths"][&route.template].get(method.to_ascii_lowercase()).is_some())
            .filter_map(|route| Some((route, route.parameters(&segments)?)))
            .max_by_key(|(route, _)| route.literals())
            .map(|(route, parameters)| (route.template.clone(), parameters))
    }

    fn judge_parameters(
        &self,
        operation: &Value,
        template: &str,
        path_parameters: &[(String, String)],
        exchange: &Exchange,
        finding: &mut Finding,
    ) {
        let query: Vec<(String, String)> = query_pairs(exchange.query.as_deref().unwrap_or_default());
        let mut known = BTreeSet::new();
        let shared = self.document["paths"][template]["parameters"].as_array();
        for described in shared.into_iter().flatten().chain(operation["parameters"].as_array().into_iter().flatten()) {
            let described = self.resolved(described);
            let name = text(&described["name"]);
            let place = text(&described["in"]);
            let sent: Vec<&str> = match place {
                "path" => values(path_parameters, name),
                "query" => values(&query, name),
                "header" => {
                    exchange.request_headers.get(&name.to_ascii_lowercase()).map(String::as_str).into_iter().collect()
                }
                _ => continue,
            };
            known.insert((place, name));
            let field = format!("request {place} {name}");
            if sent.is_empty() && described["required"] == json!(true) {
                finding.deviations.push(Deviation::new(&field, "is required and missing"));
            }
            for value in sent {
                self.judge_value(
                    &described["schema"],
                    &typed(self.resolved(&described["schema"]), value),
                    &field,
                    finding,
                );
            }
        }
        for (name, _) in &query {
            if !known.contains(&("query", name.as_str())) {
                finding.deviations.push(Deviation::new(format!("request query {name}"), "is not described"));
            }
        }
        // GitHub refuses every request without one.
        if exchange.request_headers.get("user-agent").is_none_or(String::is_empty) {
            finding.deviations.push(Deviation::new("request header user-agent", "is required and missing"));
        }
    }

    fn judge_request_body(&self, operation: &Value, exchange: &Exchange, finding: &mut Finding) {
        let described = self.resolved(&operation["requestBody"]);
        let schema = &described["content"]["application/json"]["schema"];
        match (&exchange.request_body, schema) {
            (Value::Null, _) if described["required"] == json!(true) => {
                finding.deviations.push(Deviation::new("request body", "is required and missing"));
            }
            (Value::Null, _) => {}
            (_, Value::Null) => {
                finding.deviations.push(Deviation::new("request body", "is sent, and the description has none"));
            }
            (body, schema) => self.judge_value(schema, body, "request body", finding),
        }
    }

    fn judge_answer(&self, operation: &Value, exchange: &Exchange, finding: &mut Finding) {
        let status = exchange.status;
        let described = operation["responses"].get(status.to_string()).map(|found| self.resolved(found));
        let Some(described) = described else {
            finding.warnings.push(format!("the description lists no status {status}"));
            // Every error of GitHub's has the form of its plainest one, or of the one with fields.
            if status >= 400 {
                let form = if status == 422 { "validation-error" } else { "basic-error" };
                let form = json!({ "$ref": format!("#/components/schemas/{form}") });
                self.judge_value(&form, &exchange.response_body, "response body", finding);
            }
            return;
        };
        for (name, header) in object(&described["headers"]) {
            let schema = &self.resolved(header)["schema"];
            if let Some(value) = exchange.response_headers.get(&name.to_ascii_lowercase()) {
                let value = typed(self.resolved(schema), value);
                self.judge_value(schema, &value, &format!("response header {name}"), finding);
            }
        }
        let content = described["content"].as_object();
        let Some(schema) = content.and_then(|content| content.get("application/json")).map(|json| &json["schema"])
        else {
            if content.is_none() && !exchange.response_body.is_null() {
                finding.deviations.push(Deviation::new("response body", format!("is sent, and a {status} has none")));
            }
            return;
        };
        let kind = exchange.response_headers.get("content-type").map_or("", String::as_str);
        if !kind.starts_with("application/json") {
            let what = format!("is {kind:?}, and a {status} is application/json");
            finding.deviations.push(Deviation::new("response header content-type", what));
        }
        self.judge_value(schema, &exchange.response_body, "response body", finding);
    }

    fn judge_value(&self, schema: &Value, value: &Value, field: &str, finding: &mut Finding) {
        if schema.is_null() {
            return;
        }
        for error in self.validator(schema).iter_errors(value) {
            describe(&error, field, &mut finding.deviations);
        }
    }

    fn validator(&self, schema: &Value) -> Rc<Validator> {
        let name = schema.to_string();
        if let Some(known) = self.validators.borrow().get(&name) {
            return Rc::clone(known);
        }
        let mut wanted = BTreeSet::new();
        let mut root = translated(schema, Closed::Yes, &mut wanted);
        let mut closed = Map::new();
        let mut open = Map::new();
        while let Some((component, kind)) = wanted.pop_first() {
            let target = if kind == Closed::Yes { &mut closed } else { &mut open };
            if target.contains_key(&component) {
                continue;
            }
            let mut more = BTreeSet::new();
            let made = translated(&self.document["components"]["schemas"][&component], kind, &mut more);
            target.insert(component, made);
            wanted.extend(more);
        }
        root["$defs"] = json!({ "closed": closed, "open": open });
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(true)
            .build(&root)
            .unwrap_or_else(|error| panic!("the description's schema {name} is no JSON Schema: {error}"));
        let validator = Rc::new(validator);
        self.validators.borrow_mut().insert(name, Rc::clone(&validator));
        validator
    }

    /// Follows a `$ref` into the components.
    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => {
                let pointer = reference.trim_start_matches('#');
                self.resolved(self.document.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere")))
            }
            None => value,
        }
    }
}

impl Route {
    fn new(template: &str) -> Self {
        let segments = template
            .trim_start_matches('/')
            .split('/')
            .map(|segment| match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                Some(name) => Segment::Parameter { name: name.to_owned(), many: MANY_SEGMENTS.contains(&name) },
                None => Segment::Literal(segment.to_owned()),
            })
            .collect();
        Self { template: template.to_owned(), segments }
    }

    fn literals(&self) -> usize {
        self.segments.iter().filter(|segment| matches!(segment, Segment::Literal(_))).count()
    }

    /// The parameters' values if a path fits.
    fn parameters(&self, path: &[String]) -> Option<Vec<(String, String)>> {
        let spare = path.len().checked_sub(self.segments.len())?;
        let many = self.segments.iter().any(|segment| matches!(segment, Segment::Parameter { many: true, .. }));
        if spare > 0 && !many {
            return None;
        }
        let mut rest = path;
        let mut found = Vec::new();
        for segment in &self.segments {
            let length = if matches!(segment, Segment::Parameter { many: true, .. }) { 1 + spare } else { 1 };
            let (taken, left) = rest.split_at_checked(length)?;
            rest = left;
            let taken = taken.join("/");
            match segment {
                Segment::Literal(literal) if *literal == taken => {}
                Segment::Literal(_) => return None,
                Segment::Parameter { name, .. } => found.push((name.clone(), taken)),
            }
        }
        rest.is_empty().then_some(found)
    }
}

/// Whether an object may have fields that are not listed. Inside `allOf` and `anyOf` it may, since each part lists only its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Closed {
    Yes,
    No,
}

/// An OpenAPI 3.0 schema as JSON Schema. Components that it refers to are added to `wanted`.
fn translated(schema: &Value, closed: Closed, wanted: &mut BTreeSet<(String, Closed)>) -> Value {
    let Some(source) = schema.as_object() else { return json!(true) };
    if let Some(reference) = source.get("$ref").map(text) {
        let name =
            reference.strip_prefix("#/components/schemas/").unwrap_or_else(|| panic!("{reference} is no schema"));
        wanted.insert((name.to_owned(), closed));
        let folder = if closed == Closed::Yes { "closed" } else { "open" };
        return json!({ "$ref": format!("#/$defs/{folder}/{name}") });
    }
    let nullable = source.get("nullable") == Some(&json!(true));
    let mut made = Map::new();
    for keyword in SAME_KEYWORDS {
        if let Some(value) = source.get(keyword) {
            made.insert(keyword.to_owned(), value.clone());
        }
    }
    if let Some(kind) = source.get("type") {
        made.insert("type".to_owned(), if nullable { json!([kind, "null"]) } else { kind.clone() });
    }
    if let Some(Value::Array(values)) = source.get("enum") {
        let mut values = values.clone();
        if nullable && !values.contains(&Value::Null) {
            values.push(Value::Null);
        }
        made.insert("enum".to_owned(), Value::Array(values));
    }
    if let Some(format) = source.get("format").and_then(Value::as_str) {
        made.insert("format".to_owned(), json!(format));
    }
    if let Some(items) = source.get("items") {
        made.insert("items".to_owned(), translated(items, Closed::Yes, wanted));
    }
    if let Some(Value::Object(properties)) = source.get("properties") {
        let properties: Map<String, Value> =
            properties.iter().map(|(name, value)| (name.clone(), translated(value, Closed::Yes, wanted))).collect();
        if closed == Closed::Yes && !properties.is_empty() && !source.contains_key("additionalProperties") {
            let joined = ["allOf", "anyOf", "oneOf"].iter().any(|keyword| source.contains_key(*keyword));
            if !joined {
                made.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        made.insert("properties".to_owned(), Value::Object(properties));
    }
    if let Some(additional) = source.get("additionalProperties") {
        let additional =
            if additional.is_boolean() { additional.clone() } else { translated(additional, Closed::Yes, wanted) };
        made.insert("additionalProperties".to_owned(), additional);
    }
    for (keyword, parts_closed) in [("oneOf", closed), ("anyOf", Closed::No), ("allOf", Closed::No)] {
        if let Some(Value::Array(parts)) = source.get(keyword) {
            let parts: Vec<Value> = parts.iter().map(|part| translated(part, parts_closed, wanted)).collect();
            // GitHub's alternatives overlap (two kinds of user), so "exactly one" would refuse its own answers.
            let keyword = if keyword == "oneOf" { "anyOf" } else { keyword };
            let together = made.entry("allOf".to_owned()).or_insert_with(|| json!([]));
            let together = together.as_array_mut().expect("made as a list just above");
            if keyword == "allOf" { together.extend(parts) } else { together.push(json!({ keyword: parts })) }
        }
    }
    // A null type beside alternatives is an alternative of its own.
    if nullable && made.contains_key("allOf") {
        return json!({ "anyOf": [{ "type": "null" }, Value::Object(made)] });
    }
    Value::Object(made)
}

/// Says a validator's error in terms of the field. Of alternatives, the one that fits best is said.
fn describe(error: &ValidationError<'_>, field: &str, deviations: &mut Vec<Deviation>) {
    let at = format!("{field} {}", error.instance_path().as_str());
    let at = at.trim_end();
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let own = error.instance_path().as_str();
            let misfit = |found: &&Vec<ValidationError<'_>>| {
                let other_kind = found.iter().any(|error| {
                    matches!(error.kind(), ValidationErrorKind::Type { .. }) && error.instance_path().as_str() == own
                });
                (other_kind, found.len())
            };
            match context.iter().min_by_key(misfit) {
                Some(best) if !misfit(&best).0 => best.iter().for_each(|error| describe(error, field, deviations)),
                _ => deviations
                    .push(Deviation::new(at, format!("{} is none of the described kinds", brief(error.instance())))),
            }
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            for name in unexpected {
                deviations.push(Deviation::new(child(field, error, name), "is not described"));
            }
        }
        ValidationErrorKind::Required { property } => {
            deviations.push(Deviation::new(child(field, error, text(property)), "is required and missing"));
        }
        _ => deviations.push(Deviation::new(at, brief_text(&error.to_string()))),
    }
}

fn child(field: &str, error: &ValidationError<'_>, name: &str) -> String {
    format!("{field} {}/{name}", error.instance_path().as_str())
}

fn brief(value: &Value) -> String {
    brief_text(&value.to_string())
}

fn brief_text(text: &str) -> String {
    const MOST: usize = 300;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let start: String = text.chars().take(MOST).collect();
    format!("{start}…")
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn values<'a>(pairs: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    pairs.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
}

/// A parameter's text as the kind of value that its schema names.
fn typed(schema: &Value, value: &str) -> Value {
    let parsed = match text(&schema["type"]) {
        "integer" | "number" | "boolean" => serde_json::from_str(value).ok(),
        _ => None,
    };
    parsed.unwrap_or_else(|| json!(value))
}

fn query_pairs(query: &str) -> Vec<(String, String)> {
    let address = reqwest::Url::parse(&format!("http://host/?{query}")).expect("any query makes an address");
    address.query_pairs().into_owned().collect()
}

fn percent_decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}
