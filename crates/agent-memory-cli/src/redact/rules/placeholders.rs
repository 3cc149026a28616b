//! Texts that are no secrets: placeholders, references, and words that many systems have.

use crate::redact::found::Found;

/// Returns whether a text is a placeholder of a secret, as in an example.
pub(super) fn is_placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let words = [
        "example",
        "placeholder",
        "changeme",
        "change-me",
        "change_me",
        "redacted",
        "dummy",
        "sample",
        "your_",
        "your-",
        "xxxx",
        "****",
        "....",
        "...",
        "…",
        "${",
        "$(",
        "{{",
        "<",
        "process.env",
        "://",
    ];
    words.iter().any(|word| lower.contains(word))
}

/// Returns whether a text is a path, or a variable of a shell or a template.
pub(super) fn is_reference(text: &str) -> bool {
    let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let folder = text
        .strip_prefix('/')
        .and_then(|path| path.split('/').next());
    folder.is_some_and(|name| name.chars().all(|c| c.is_ascii_lowercase()))
        || text.strip_prefix('$').is_some_and(is_word)
        || text.starts_with(['{', '~', '.'])
        || text.starts_with("%(")
        || text.ends_with('%')
}

/// Returns whether a text is a name or password that many examples and images of systems have.
pub(super) fn is_common_word(text: &str) -> bool {
    let words = [
        "admin",
        "agent",
        "app",
        "builder",
        "coder",
        "codespace",
        "default",
        "demo",
        "dev",
        "developer",
        "docker",
        "foo",
        "foobar",
        "www",
        "ec2-user",
        "guest",
        "jenkins",
        "linuxbrew",
        "me",
        "name",
        "node",
        "pass",
        "passwd",
        "password",
        "postgres",
        "project",
        "projects",
        "public",
        "pwd",
        "root",
        "runner",
        "sandbox",
        "secret",
        "service",
        "shared",
        "test",
        "token",
        "ubuntu",
        "user",
        "username",
        "vagrant",
        "vscode",
        "work",
        "workspace",
        "you",
        "yourname",
    ];
    words.contains(&text.to_ascii_lowercase().as_str())
}

/// Returns whether a name or password is neither a placeholder nor a common one.
pub(super) fn is_own(found: &Found<'_>) -> bool {
    !is_placeholder(found.value) && !is_reference(found.value) && !is_common_word(found.value)
}
