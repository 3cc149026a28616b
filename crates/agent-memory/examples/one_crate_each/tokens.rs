//! `token-estimate`: estimates the cost of a request, and whether the request fits into a model's window.

use token_estimate::{
    MessageParts, PartView, Role, TokenEstimator as _, TokenEstimatorExt as _, ToolView, estimator,
    models,
};

pub(crate) fn run() -> crate::Result<String> {
    let model = models::get("claude-sonnet-4-5")?;
    let estimator = estimator::for_model("claude-sonnet-4-5")?;
    let text = [PartView::Text("Where does the log go?")];
    let messages = estimator.messages([MessageParts::new(Role::User, &text)]);
    let tools = estimator.tools([ToolView::new(
        "ls",
        "Lists a folder.",
        r#"{"type":"object"}"#,
    )]);
    let request = messages + tools + estimator.request_overhead();
    let budget = model.largest_input(8_000);
    assert!(estimator.safety_factor().multiply(request) < budget);
    Ok(format!("{request} tokens of {budget}"))
}
