use memory_model::SummaryId;
use memory_store::Origin;
use retrieval_tools::ErrorKind;

use crate::world::{range, tree};

#[tokio::test]
async fn lineage_has_its_right_direction() {
    let (world, [a, b, top]) = tree().await;
    world.check().await;
    let tools = world.tools();
    let leaf = tools.describe(&a.id).await.unwrap();
    assert_eq!(leaf.parents, std::slice::from_ref(&top.id));
    assert!(leaf.children.is_empty());
    insta::assert_snapshot!("describe_leaf", leaf.to_text());
    let whole = tools.describe(&top.id).await.unwrap();
    assert_eq!(whole.children, [a.id, b.id]);
    assert!(whole.parents.is_empty());
    insta::assert_snapshot!("describe_condensed", whole.to_text());
    insta::assert_json_snapshot!("describe_json", whole);
}

#[tokio::test]
async fn missing_objects_are_named() {
    let (world, [a, ..]) = tree().await;
    let tools = world.tools();
    for (id, kind, word) in [
        ("", ErrorKind::Invalid, "summary_id is required"),
        ("sum_0123456789abcdef", ErrorKind::NotFound, "sum_0123"),
        ("message:3", ErrorKind::Invalid, "memory_expand"),
    ] {
        let error = tools.describe(&SummaryId::new(id)).await.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(word), "{error}");
    }
    // A summary of another conversation is not found, even in the same store.
    let other = world.open("other", Origin::Root).await;
    other.chatter(1, 10).await;
    other.leaf(range(1, 5), "the other's summary").await;
    let tools = other.tools();
    let (described, expanded) = (
        tools.describe(&a.id).await,
        tools.expand(a.id.as_str()).await,
    );
    for error in [described.unwrap_err(), expanded.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains(a.id.as_str()));
    }
}
