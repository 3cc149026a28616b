//! The commands of the program, each in a module.

mod audit;
mod backup;
mod compact;
pub(crate) mod context;
mod doctor;
mod dropped;
mod erase;
mod export;
mod fork;
pub(crate) mod import;
mod index;
mod install;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "postgres")]
mod migrate;
mod proof;
mod redo;
mod replay;
mod restore;
mod retrieval;
pub(crate) mod sessions;
mod set;
pub(crate) mod show;
mod stats;
mod tokens;
mod verify;
mod view;
mod work;

use clap::CommandFactory as _;

use crate::app::App;
use crate::args::{Cli, Command};

/// Runs a command.
pub(crate) async fn run(app: &mut App, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Compact(args) => compact::run(app, &args).await,
        Command::Replay(args) => replay::run(app, &args).await,
        Command::Audit(args) => audit::run(app, &args).await,
        Command::Import(args) => import::run(app, &args).await,
        Command::Hook(args) => crate::hook::run(app, &args).await,
        Command::Install(args) => install::run(app, &args),
        Command::Doctor => doctor::run(app).await,
        Command::Context(args) => context::run(app, &args).await,
        Command::Grep(args) => retrieval::grep(app, &args).await,
        Command::Recall(args) => retrieval::recall(app, &args).await,
        Command::Files(args) => retrieval::files(app, &args).await,
        Command::Describe(args) => retrieval::describe(app, &args).await,
        Command::Expand(args) => retrieval::expand(app, &args).await,
        Command::Erase(args) => erase::erase(app, &args).await,
        Command::Delete(args) => erase::delete(app, &args).await,
        Command::Fork(args) => fork::run(app, &args).await,
        Command::View(args) => view::run(app, &args).await,
        Command::Sessions(args) => sessions::run(app, &args).await,
        Command::Stats => stats::run(app).await,
        Command::Verify(args) => verify::run(app, &args).await,
        Command::Receipt(args) => proof::receipt(app, &args).await,
        Command::Certify(args) => proof::certify(app, &args).await,
        Command::Backup(args) => backup::run(app, &args).await,
        Command::Restore(args) => restore::run(app, &args).await,
        #[cfg(feature = "postgres")]
        Command::Migrate(args) => migrate::run(app, &args).await,
        Command::Index(args) => index::run(app, &args).await,
        Command::Redo(args) => redo::run(app, &args).await,
        Command::Set(args) => set::run(app, &args).await,
        Command::Export(args) => export::run(app, &args).await,
        Command::Tokens(args) => tokens::run(app, &args),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => mcp::run(app, &args).await,
        #[cfg(feature = "serve")]
        Command::Serve(args) => crate::serve::run(app, &args).await,
        Command::Work(args) => work::run(app, &args).await,
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "agent-memory", &mut script);
            Ok(app.out.raw(&script)?)
        }
    }
}
