//! Running the program with settings of its own.

use crate::server::Server;
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A person at a terminal, as far as that is a pipe.
pub(crate) struct Person {
    folder: tempfile::TempDir,
    host: String,
    token: Option<&'static str>,
}

/// What a run has written and ended with.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The JSON on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Person {
    /// Somebody with an API key in the environment.
    pub(crate) fn with_key(server: &Server) -> Self {
        Self { token: Some("kashi_key"), ..Self::new(&server.host) }
    }

    /// Somebody whom no server knows.
    pub(crate) fn new(host: &str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), host: host.to_owned(), token: None }
    }

    /// The folder of the settings.
    pub(crate) fn settings(&self) -> PathBuf {
        self.folder.path().join("kashi")
    }

    /// The program with these words, ready to be started.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kashi"));
        command.env_clear().env("KASHI_CONFIG_DIR", self.settings()).env("KASHI_HOST", &self.host).env("TZ", "UTC");
        command.envs(self.token.map(|token| ("KASHI_TOKEN", token))).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) async fn runs(&self, words: &[&str]) -> Ran {
        self.runs_with(words, &[], "").await
    }

    /// The same with variables and standard input.
    pub(crate) async fn runs_with(&self, words: &[&str], env: &[(&str, &str)], input: &str) -> Ran {
        let mut command = self.command(words);
        command.envs(env.iter().copied()).stdin(Stdio::piped());
        let input = input.to_owned();
        let run = move || {
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            child.wait_with_output().unwrap()
        };
        let output = tokio::task::spawn_blocking(run).await.unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
