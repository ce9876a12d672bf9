//! How work is run: so far as processes of this machine.
//!
//! Owns: one folder per lease and the processes in it. Does not own: what should run.
//!
//! | file | says | written by |
//! |---|---|---|
//! | `work.json` | what to run, for which lease and generation | the agent, before anything is started |
//! | `held` | locked as long as the keeper lives; the kernel lets go of it | – |
//! | `started.json` | it runs since then, in this boot of the machine | the keeper |
//! | `alive` | how long it has run, every few seconds, in place | the keeper |
//! | `stop.json` | it should end, with this grace | the agent, before it signals the keeper |
//! | `exit.json` | it has ended, none of its processes is left | the keeper; the agent, where the keeper died |
//! | `*.json.spare` | the room of `stop.json` and `exit.json`, so that a full disk keeps back neither | the agent |
//! | `output` | what the job wrote on both its outputs | the job |
//! | `keeper.log` | what went wrong in the keeper | the keeper |
//! | `work/`, `tmp/`, `results/` | the job's own | the job |
//!
//! Beside the leases, `checkpoints/JOB/` is the job's own for as long as it is not over: a job that is started again
//! under another lease finds there what it left.
//!
//! The agent starts a keeper (`shim`) in a session of its own, and the keeper starts the job in a process group of its
//! own, so neither a terminal nor the agent's end reaches the job. The keeper's standard input is the open, locked file
//! `held`: whether it lives is known without process ids, which are given again, and from the first instant on.
//!
//! On failure: an agent that starts again reads the folders. A keeper that was killed leaves a job without a keeper:
//! the agent kills what carries the lease's mark (`KASHI_LEASE`), waits until it is gone and says `vanished`: at this
//! instant where it killed something of this boot, else at the keeper's last mark, so that no time is billed in which the
//! machine was off. An end that cannot be written is tried again, by the keeper and by the agent, with the time at which
//! it was first seen. How long a job ran is counted by a clock that nobody sets and that stands still while the machine
//! is suspended; only its start is of the node's clock.

mod clock;
mod folder;
mod group;
mod launch;
mod process;
pub mod shim;

pub use clock::Moment;
pub use folder::{Ended, Folder, Started, Stop};
pub use group::{Process, end_all, of_lease};
pub use process::Runner;
