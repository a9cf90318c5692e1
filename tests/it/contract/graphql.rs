//! GraphQL exchanges against GitHub's schema: the query, its variables, and the answer, walked along the query.

use std::path::Path;

use apollo_compiler::ast::{Type, Value as Literal};
use apollo_compiler::executable::{Field, Operation, Selection, SelectionSet};
use apollo_compiler::request::coerce_variable_values;
use apollo_compiler::response::JsonMap;
use apollo_compiler::schema::ExtendedType;
use apollo_compiler::validation::Valid;
use apollo_compiler::{ExecutableDocument, Schema};
use serde_json::{Map, Value, json};

use super::exchange::Exchange;
use super::{Deviation, Finding};

/// GitHub's GraphQL schema.
pub(crate) struct GitHubSchema(Valid<Schema>);

/// Rules of GitHub's that its schema does not state: a list is asked for with `first` or `last`, and with at most so many.
const MOST_OF_A_CONNECTION: i64 = 100;

impl GitHubSchema {
    /// Reads the schema from `@octokit/graphql-schema`'s file.
    pub(crate) fn read(file: &Path) -> Self {
        let source = std::fs::read_to_string(file).expect("the GraphQL schema can be read");
        Self::new(&source)
    }

    fn new(source: &str) -> Self {
        match Schema::parse_and_validate(source, "schema.graphql") {
            Ok(schema) => Self(schema),
            // GitHub's file defines two fields of one type twice; the parser keeps the first of each and the rest is sound.
            Err(found) => {
                let others: Vec<String> = found
                    .errors
                    .iter()
                    .map(|error| error.to_string())
                    .filter(|error| {
                        !(error.contains("duplicate definitions") && error.contains("`EnterpriseOwnerInfo`"))
                    })
                    .collect();
                assert!(others.is_empty(), "GitHub's schema has other faults than the known one: {others:?}");
                Self(Valid::assume_valid(found.partial))
            }
        }
    }

    /// What is wrong with an exchange.
    pub(crate) fn judge(&self, exchange: &Exchange) -> Finding {
        let mut finding = Finding { endpoint: "POST /graphql".to_owned(), ..Finding::default() };
        self.judge_into(exchange, &mut finding.deviations);
        finding
    }

    fn judge_into(&self, exchange: &Exchange, deviations: &mut Vec<Deviation>) {
        let request = &exchange.request_body;
        for name in request.as_object().into_iter().flat_map(Map::keys) {
            if !["query", "variables", "operationName"].contains(&name.as_str()) {
                deviations.push(Deviation::new(format!("request body /{name}"), "is no part of a GraphQL request"));
            }
        }
        let Some(query) = request["query"].as_str() else {
            deviations.push(Deviation::new("request body /query", "is no text"));
            return;
        };
        let document = match ExecutableDocument::parse_and_validate(&self.0, query, "query") {
            Ok(document) => document,
            Err(found) => {
                for error in found.errors.iter() {
                    let at = error.line_column_range().map_or(0, |range| range.start.line);
                    let field = format!("request body /query line {at}");
                    deviations.push(Deviation::new(field, error.error.to_string()));
                }
                return;
            }
        };
        let operation = match document.operations.get(request["operationName"].as_str()) {
            Ok(operation) => operation,
            Err(error) => {
                deviations.push(Deviation::new("request body /operationName", error.message().to_string()));
                return;
            }
        };
        let Some(variables) = self.variables(operation, &request["variables"], deviations) else { return };
        let walk = Walk { schema: &self.0, document: &document, variables: &variables };
        walk.bounds(&operation.selection_set, "request body /query", deviations);
        if exchange.status == 200 {
            walk.answer(operation, &exchange.response_body, deviations);
        } else {
            // An answer that is not GraphQL's: a refused token, a rate limit. It has GitHub's plain form.
            if !exchange.response_body["message"].is_string() {
                deviations.push(Deviation::new("response body /message", "is required and missing"));
            }
        }
    }

    fn variables(
        &self,
        operation: &Operation,
        sent: &Value,
        deviations: &mut Vec<Deviation>,
    ) -> Option<Map<String, Value>> {
        let sent = match sent {
            Value::Null => Map::new(),
            Value::Object(sent) => sent.clone(),
            _ => {
                deviations.push(Deviation::new("request body /variables", "is no object"));
                return None;
            }
        };
        for name in sent.keys() {
            if !operation.variables.iter().any(|variable| variable.name == name.as_str()) {
                deviations
                    .push(Deviation::new(format!("request body /variables/{name}"), "is not declared by the query"));
            }
        }
        let values: JsonMap = serde_json::from_value(json!(sent)).expect("JSON is JSON");
        match coerce_variable_values(&self.0, operation, &values) {
            Ok(values) => serde_json::to_value(values.into_inner()).ok().and_then(|values| match values {
                Value::Object(values) => Some(values),
                _ => None,
            }),
            Err(error) => {
                deviations.push(Deviation::new("request body /variables", error.message().to_string()));
                None
            }
        }
    }
}

/// A query that is valid, and the values of its variables.
struct Walk<'a> {
    schema: &'a Valid<Schema>,
    document: &'a Valid<ExecutableDocument>,
    variables: &'a Map<String, Value>,
}

impl<'a> Walk<'a> {
    /// GitHub refuses a connection whose items are asked for without a bound.
    fn bounds(&self, selections: &'a SelectionSet, at: &str, deviations: &mut Vec<Deviation>) {
        for field in selections.fields() {
            let at = format!("{at} {}", field.response_key());
            let items = field.selection_set.fields().any(|inner| inner.name == "nodes" || inner.name == "edges");
            if field.ty().inner_named_type().ends_with("Connection") && items {
                let bound = self.bound(field);
                if !bound.is_some_and(|bound| (1..=MOST_OF_A_CONNECTION).contains(&bound)) {
                    let what = format!("needs `first` or `last` from 1 to {MOST_OF_A_CONNECTION}, and has {bound:?}");
                    deviations.push(Deviation::new(&at, what));
                }
            }
            self.bounds(&field.selection_set, &at, deviations);
        }
        for selection in &selections.selections {
            match selection {
                Selection::Field(_) => {}
                Selection::InlineFragment(fragment) => self.bounds(&fragment.selection_set, at, deviations),
                Selection::FragmentSpread(spread) => {
                    if let Some(fragment) = spread.fragment_def(self.document) {
                        self.bounds(&fragment.selection_set, at, deviations);
                    }
                }
            }
        }
    }

    /// How many items of a connection are asked for.
    fn bound(&self, field: &Field) -> Option<i64> {
        ["first", "last"].iter().find_map(|name| match &**field.specified_argument_by_name(name)? {
            Literal::Variable(name) => self.variables.get(name.as_str())?.as_i64(),
            Literal::Int(number) => number.as_str().parse().ok(),
            _ => None,
        })
    }

    fn answer(&self, operation: &'a Operation, answer: &Value, deviations: &mut Vec<Deviation>) {
        let Some(parts) = answer.as_object() else {
            deviations.push(Deviation::new("response body", "is no object"));
            return;
        };
        for name in parts.keys() {
            if !["data", "errors", "extensions"].contains(&name.as_str()) {
                deviations.push(Deviation::new(format!("response body /{name}"), "is no part of a GraphQL answer"));
            }
        }
        let errors = parts.get("errors").map(|errors| judge_errors(errors, deviations)).unwrap_or_default();
        match parts.get("data") {
            Some(Value::Object(data)) => {
                let root = self.schema.types.get(operation.object_type());
                let root = root.map_or("Query", |root| root.name().as_str());
                self.object(root, &[&operation.selection_set], data, "response body /data", deviations);
            }
            Some(Value::Null) | None if errors > 0 => {}
            Some(Value::Null) | None => {
                deviations.push(Deviation::new("response body /data", "is missing, and there is no error"));
            }
            Some(_) => deviations.push(Deviation::new("response body /data", "is no object")),
        }
    }

    fn object(
        &self,
        concrete: &str,
        selections: &[&'a SelectionSet],
        value: &Map<String, Value>,
        at: &str,
        deviations: &mut Vec<Deviation>,
    ) {
        let mut fields: Vec<(&str, Vec<&'a Field>)> = Vec::new();
        for set in selections {
            self.collect(concrete, set, &mut fields);
        }
        for (key, asked) in &fields {
            let at = format!("{at}/{key}");
            let Some((first, answered)) = asked.first().zip(value.get(*key)) else {
                deviations.push(Deviation::new(at, "was asked for and is missing"));
                continue;
            };
            if first.name == "__typename" {
                if answered != concrete {
                    deviations.push(Deviation::new(at, format!("is {answered}, and the object is a {concrete}")));
                }
                continue;
            }
            let inner: Vec<&SelectionSet> = asked.iter().map(|field| &field.selection_set).collect();
            self.value(first.ty(), &inner, answered, &at, deviations);
            self.length(first, answered, &at, deviations);
        }
        for key in value.keys() {
            if !fields.iter().any(|(known, _)| known == key) {
                deviations.push(Deviation::new(format!("{at}/{key}"), format!("was not asked for of a {concrete}")));
            }
        }
    }

    /// The fields that are asked of an object of a type, fragments included, by their names in the answer.
    fn collect(&self, concrete: &str, set: &'a SelectionSet, fields: &mut Vec<(&'a str, Vec<&'a Field>)>) {
        for selection in &set.selections {
            if self.left_out(selection) {
                continue;
            }
            match selection {
                Selection::Field(field) => {
                    let key = field.response_key().as_str();
                    match fields.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, same)) => same.push(field),
                        None => fields.push((key, vec![field])),
                    }
                }
                Selection::InlineFragment(fragment) => {
                    if fragment.type_condition.as_ref().is_none_or(|condition| self.is_a(concrete, condition)) {
                        self.collect(concrete, &fragment.selection_set, fields);
                    }
                }
                Selection::FragmentSpread(spread) => {
                    if let Some(fragment) = spread.fragment_def(self.document)
                        && self.is_a(concrete, fragment.type_condition())
                    {
                        self.collect(concrete, &fragment.selection_set, fields);
                    }
                }
            }
        }
    }

    /// Whether `@skip` or `@include` takes a selection out.
    fn left_out(&self, selection: &Selection) -> bool {
        let holds = |name: &str| {
            let condition = selection.directives().get(name)?.specified_argument_by_name("if")?;
            match &**condition {
                Literal::Boolean(value) => Some(*value),
                Literal::Variable(name) => self.variables.get(name.as_str())?.as_bool(),
                _ => None,
            }
        };
        holds("skip") == Some(true) || holds("include") == Some(false)
    }

    fn is_a(&self, concrete: &str, condition: &str) -> bool {
        concrete == condition || self.schema.is_subtype(condition, concrete)
    }

    fn value(
        &self,
        ty: &Type,
        selections: &[&'a SelectionSet],
        value: &Value,
        at: &str,
        deviations: &mut Vec<Deviation>,
    ) {
        if value.is_null() {
            if ty.is_non_null() {
                deviations.push(Deviation::new(at, format!("is null, and the schema says {ty}")));
            }
            return;
        }
        match ty {
            Type::List(inner) | Type::NonNullList(inner) => match value.as_array() {
                Some(items) => {
                    for (index, item) in items.iter().enumerate() {
                        self.value(inner, selections, item, &format!("{at}/{index}"), deviations);
                    }
                }
                None => deviations.push(Deviation::new(at, format!("is {value}, and the schema says {ty}"))),
            },
            Type::Named(name) | Type::NonNullNamed(name) => self.named(name, selections, value, at, deviations),
        }
    }

    fn named(
        &self,
        name: &str,
        selections: &[&'a SelectionSet],
        value: &Value,
        at: &str,
        deviations: &mut Vec<Deviation>,
    ) {
        match self.schema.types.get(name) {
            Some(ExtendedType::Enum(known)) => {
                if !value.as_str().is_some_and(|value| known.values.contains_key(value)) {
                    deviations.push(Deviation::new(at, format!("{value} is no {name}")));
                }
            }
            Some(ExtendedType::Scalar(_)) => {
                if !is_scalar(name, value) {
                    deviations.push(Deviation::new(at, format!("{value} is no {name}")));
                }
            }
            Some(ExtendedType::Object(_)) => self.object_or_not(name, selections, value, at, deviations),
            Some(ExtendedType::Interface(_) | ExtendedType::Union(_)) => {
                self.one_of_the_types(name, selections, value, at, deviations);
            }
            Some(ExtendedType::InputObject(_)) | None => {
                deviations.push(Deviation::new(at, format!("the schema has no output type {name}")));
            }
        }
    }

    fn object_or_not(
        &self,
        name: &str,
        sets: &[&'a SelectionSet],
        value: &Value,
        at: &str,
        deviations: &mut Vec<Deviation>,
    ) {
        match value.as_object() {
            Some(value) => self.object(name, sets, value, at, deviations),
            None => deviations.push(Deviation::new(at, format!("is {value}, and the schema says {name}"))),
        }
    }

    /// An interface or union: the type that `__typename` names, else any that fits.
    fn one_of_the_types(
        &self,
        name: &str,
        sets: &[&'a SelectionSet],
        value: &Value,
        at: &str,
        deviations: &mut Vec<Deviation>,
    ) {
        let possible = || {
            let objects = self.schema.types.values().filter(|ty| matches!(ty, ExtendedType::Object(_)));
            objects.map(|ty| ty.name().as_str()).filter(|concrete| self.schema.is_subtype(name, concrete))
        };
        if let Some(claimed) = value.get("__typename").and_then(Value::as_str) {
            match possible().find(|concrete| *concrete == claimed) {
                Some(concrete) => self.object_or_not(concrete, sets, value, at, deviations),
                None => deviations.push(Deviation::new(format!("{at}/__typename"), format!("{claimed} is no {name}"))),
            }
            return;
        }
        let attempts = possible().map(|concrete| {
            let mut found = Vec::new();
            self.object_or_not(concrete, sets, value, at, &mut found);
            found
        });
        deviations.extend(attempts.min_by_key(Vec::len).unwrap_or_default());
    }

    /// A connection answers no more items than were asked for.
    fn length(&self, field: &Field, value: &Value, at: &str, deviations: &mut Vec<Deviation>) {
        let Some(bound) = self.bound(field).and_then(|bound| usize::try_from(bound).ok()) else { return };
        for items in ["nodes", "edges"] {
            let length = value[items].as_array().map_or(0, Vec::len);
            if length > bound {
                let what = format!("has {length} items, and {bound} were asked for");
                deviations.push(Deviation::new(format!("{at}/{items}"), what));
            }
        }
    }
}

/// The form of GitHub's `errors`; how many there are.
fn judge_errors(errors: &Value, deviations: &mut Vec<Deviation>) -> usize {
    let Some(errors) = errors.as_array().filter(|errors| !errors.is_empty()) else {
        deviations.push(Deviation::new("response body /errors", "is no list, or an empty one"));
        return 0;
    };
    for (index, error) in errors.iter().enumerate() {
        let at = format!("response body /errors/{index}");
        if !error["message"].is_string() {
            deviations.push(Deviation::new(format!("{at}/message"), "is no text"));
        }
        let path_parts = error["path"].as_array();
        if !path_parts.is_none_or(|path| path.iter().all(|part| part.is_string() || part.is_u64())) {
            deviations.push(Deviation::new(format!("{at}/path"), "holds something other than names and positions"));
        }
        for name in error.as_object().into_iter().flat_map(Map::keys) {
            // GitHub's schema says nothing of errors; a rate limit has a `code` beside its `type`.
            if !["message", "type", "code", "path", "locations", "extensions"].contains(&name.as_str()) {
                deviations.push(Deviation::new(format!("{at}/{name}"), "is no part of a GraphQL error of GitHub's"));
            }
        }
    }
    errors.len()
}

/// Whether a value is written as GitHub writes a scalar of that name.
fn is_scalar(name: &str, value: &Value) -> bool {
    let text = value.as_str();
    match name {
        "Int" => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        "Float" => value.is_number(),
        "Boolean" => value.is_boolean(),
        "DateTime" | "PreciseDateTime" | "GitTimestamp" => {
            text.is_some_and(|text| chrono::DateTime::parse_from_rfc3339(text).is_ok())
        }
        "Date" => text.is_some_and(|text| chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()),
        "URI" => text.is_some_and(|text| text.parse::<http::Uri>().is_ok_and(|uri| uri.path().starts_with('/'))),
        "GitObjectID" => text.is_some_and(|text| text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())),
        "BigInt" => text.is_some_and(|text| text.parse::<i128>().is_ok()),
        _ => text.is_some(),
    }
}
