//! `export`: a log as lines.

use crate::app::App;
use crate::args::Export;

pub(crate) async fn run(app: &mut App, args: &Export) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let session = app.session(&memory, &args.session).await?;
    let mut rest = session.info().await?.conversation.range();
    while let Some(range) = rest {
        let page = session.log(range).await?;
        for entry in &page.items {
            app.out.json_line(&entry.to_export())?;
        }
        rest = page.next;
    }
    Ok(())
}
