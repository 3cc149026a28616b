//! Budgets.

use context_assembler::{AssemblyInput, AssemblyPolicy, Budget, Preamble, assemble};
use proptest::prelude::*;
use token_estimate::{HeuristicEstimator, SafetyFactor, TokenEstimator as _};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_limit_is_within_the_budget_and_the_budget_that_is_needed_suffices(
        tokens in prop_oneof![0..100_000_u64, any::<u64>()],
        thousandths in 0..5_000_u32,
    ) {
        let factor = SafetyFactor::from_thousandths(thousandths);
        let budget = Budget::tokens(tokens).with_safety_factor(factor);
        prop_assert!(budget.limit() <= tokens);
        let needed = budget.tokens_needed_for(tokens);
        prop_assume!(needed < u64::MAX);
        let limit = |tokens| Budget::tokens(tokens).with_safety_factor(factor).limit();
        prop_assert!(limit(needed) >= tokens);
        prop_assert!(needed == 0 || limit(needed - 1) < tokens);
    }
}

#[test]
fn a_budget_survives_serde_whole() {
    for budget in [
        Budget::tokens(7),
        Budget::tokens(9).with_safety_factor(SafetyFactor::new(1.25)),
    ] {
        let json = serde_json::to_string(&budget).unwrap();
        let back: Budget = serde_json::from_str(&json).unwrap();
        assert_eq!((back, back.limit()), (budget, budget.limit()), "{json}");
    }
    serde_json::from_str::<Budget>(r#"{"tokens":7,"factor":1.25}"#).unwrap_err();
}

#[test]
fn the_form_of_a_policy_is_a_number_in_json() {
    for (policy, steps) in [
        (AssemblyPolicy::once(), 0),
        (AssemblyPolicy::default(), 4),
        (crate::laws::in_steps(u64::MAX), u64::MAX),
    ] {
        let json = serde_json::to_string(&policy).unwrap();
        let rest = r#""whole_tail":null,"acknowledge_summaries":false}"#;
        assert_eq!(json, format!(r#"{{"steps":{steps},{rest}"#));
        let back: AssemblyPolicy = serde_json::from_str(&json).unwrap();
        assert_eq!(back, policy);
    }
    let back: AssemblyPolicy = serde_json::from_str("{}").unwrap();
    assert_eq!(back, AssemblyPolicy::default());
    serde_json::from_str::<AssemblyPolicy>(r#"{"form":4}"#).unwrap_err();
}

#[test]
fn a_factor_that_is_set_stays() {
    let accounting = crate::script::accounting(HeuristicEstimator::Bytes4);
    let limit = |budget: Budget| {
        let (input, policy) = (AssemblyInput::default(), AssemblyPolicy::default());
        let context = assemble(&input, &Preamble::default(), budget, &policy, &accounting);
        context.unwrap().receipt.limit
    };
    let factor = HeuristicEstimator::Bytes4.safety_factor();
    let budget = Budget::tokens(1_000);
    assert_eq!(limit(budget), factor.divide(1_000));
    assert_eq!(
        limit(budget.with_safety_factor(SafetyFactor::new(1.25))),
        800
    );
    let least = budget.with_safety_factor(SafetyFactor::new(0.9));
    assert_eq!(least.safety_factor(), Some(SafetyFactor::ONE));
    assert_eq!(limit(least), 1_000);
}
