//! Bodies of requests to `serve`.

use outside_checks::fuzz::Target;
use serde_json::Value;

use crate::serve::Server;
use crate::support::Home;

/// Any request gets an answer, or a refusal that blames the request. The first line of an input is the route.
pub(super) fn requests_of_clients() {
    let home = Home::new();
    let server = Server::of_all(&home, &[]);
    Target::new("requests-of-clients", env!("CARGO_MANIFEST_DIR"), 120).run(|input| {
        let end = input
            .iter()
            .position(|&byte| byte == b'\n')
            .unwrap_or(input.len());
        let (route, body) = input.split_at(end);
        let body = body.get(1..).unwrap_or_default();
        // Other characters are no request of HTTP.
        let is_of_path = |byte: &u8| byte.is_ascii_alphanumeric() || b"/_-%.?=&#".contains(byte);
        let route: Vec<u8> = route.iter().copied().filter(is_of_path).collect();
        let route = String::from_utf8_lossy(&route);
        let (status, answer) = server.raw(&server.head("POST", &format!("/{route}")), body);
        assert!(
            (200..300).contains(&status) || (400..500).contains(&status),
            "{status}: {answer}"
        );
        let value: Option<Value> = serde_json::from_str(&answer).ok();
        let is_stream = answer.starts_with("event: ");
        // The HTTP library refuses a route of more than 64 kB, without a text.
        let is_long = [414, 431].contains(&status) && answer.is_empty();
        assert!(
            value.is_some() || is_stream || is_long,
            "{status}: {answer}"
        );
        let error = value.unwrap_or_default()["error"].clone();
        let text = error["message"].as_str().unwrap_or_default().to_owned();
        assert!(error.is_null() || !text.is_empty(), "{answer}");
        (
            status,
            is_stream,
            text.split('`')
                .next()
                .map(|text| text.chars().take(24).collect::<String>()),
        )
    });
    drop(server);
    home.ok(&["verify"]);
}
