//! The one binary.

mod first_start;
mod local_agent;
mod serve;

#[derive(clap::Parser)]
enum Cli {
    Up(serve::UpArgs),
    Server(serve::ServerArgs),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match <Cli as clap::Parser>::parse() {
        Cli::Up(args) => serve::up(args).await,
        Cli::Server(args) => serve::server(args).await,
    }
}
