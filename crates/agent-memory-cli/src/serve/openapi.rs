//! The OpenAPI document, made from the table of routes, the types and the schemas of the tools.

use agent_memory::Retrieval;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::server::Route;

/// Returns the document.
pub(super) fn document(routes: &[Route]) -> Value {
    let settings = SchemaSettings::draft2020_12();
    let settings =
        settings.with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for route in routes {
        let request = match (route.request, route.tool) {
            (Some(schema), _) => Some(schema(&mut schemas).to_value()),
            (None, Some(name)) => Retrieval::tools()
                .iter()
                .find(|tool| tool.name == name)
                .map(|tool| tool.schema()),
            (None, None) => None,
        };
        let response = route.response.map(|schema| schema(&mut schemas).to_value());
        let method = match route.is_post {
            true => "post",
            false => "get",
        };
        paths.insert(
            route.path.to_owned(),
            json!({method: operation(route, request, response)}),
        );
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "agent-memory", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn operation(route: &Route, request: Option<Value>, response: Option<Value>) -> Value {
    let mut parameters = Vec::new();
    if route.path.contains("{key}") {
        parameters.push(json!({
            "name": "key", "in": "path", "required": true, "schema": {"type": "string"},
            "description": "Key of the session, percent-encoded.",
        }));
    }
    if route.path.ends_with("/context") {
        parameters.push(json!({
            "name": "budget", "in": "query", "schema": {"type": "integer", "minimum": 1},
            "description": "Budget of the context, in tokens.",
        }));
    }
    let content = |schema: Value| json!({"application/json": {"schema": schema}});
    let response = response.unwrap_or_else(|| json!({}));
    let mut operation = json!({
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            "200": {"description": "The answer.", "content": content(response)},
            "default": {"description": "An error with kind and message.", "content": content(error())},
        },
    });
    if let Some(request) = request {
        operation["requestBody"] = json!({"required": true, "content": content(request)});
    }
    operation
}

fn error() -> Value {
    let text = json!({"type": "string"});
    let fields = json!({"kind": text, "message": text, "hint": {"type": ["string", "null"]}});
    let error = json!({"type": "object", "properties": fields, "required": ["kind", "message"]});
    json!({"type": "object", "properties": {"error": error}, "required": ["error"]})
}
