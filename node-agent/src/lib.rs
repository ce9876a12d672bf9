//! The node agent: it runs on every machine, asks the control service what should run there, runs it and says what it
//! sees.
//!
//! Owns: one data folder, the processes of the leases in it, the link to one server. Does not own: any decision about
//! what runs where, and no price. Invariants: work never depends on the server or on this process: each job has a
//! keeper of its own (`run-job`), and everything that was seen is in files before it is said; a lease has ended only
//! when none of its processes is left.
//!
//! What it does not do yet: cores and memory of a job are given, not enforced, and jobs run as the agent's own user.
//!
//! The way of a lease: `link` brings what is desired → `state` takes it, unless it is older → `reconcile` compares it
//! with the folders → `run` starts and ends → `report` says what is seen, `output` delivers what the job wrote.

pub mod agent;
pub mod config;
pub mod durable;
pub mod identity;
pub mod link;
pub mod output;
pub mod patience;
pub mod probe;
pub mod reconcile;
mod report;
pub mod run;
pub mod state;
