//! Where the built programs are: beside the test that runs, built by the same cargo where they are missing or old.
//!
//! Owns: building and finding them. Does not own: starting them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Set where both were built just now, as `make` does.
const BUILT: &str = "KASHI_PROGRAMS_BUILT";

/// The programs.
#[derive(Debug)]
pub struct Programs {
    pub kashi: PathBuf,
    pub agent: PathBuf,
}

/// Builds both once for each process, which takes a moment where `make build` has done so already.
pub fn programs() -> &'static Programs {
    static PROGRAMS: OnceLock<Programs> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        // `<target>/<profile>/deps/<test>`, or `<target>/<profile>/<program>`.
        let built = test.ancestors().skip(1).find(|folder| !folder.ends_with("deps")).unwrap();
        if std::env::var_os(BUILT).is_none() {
            build(built);
        }
        Programs { kashi: built.join("kashi"), agent: built.join("kashi-agent") }
    })
}

fn build(into: &Path) {
    let profile = match into.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--locked", "--offline", "-p", "kashi", "-p", "kashi-agent", "--profile", profile]);
    command.arg("--target-dir").arg(into.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
    let done = command.output().unwrap();
    assert!(done.status.success(), "the programs cannot be built: {}", String::from_utf8_lossy(&done.stderr));
}
