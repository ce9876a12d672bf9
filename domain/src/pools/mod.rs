//! Pools: the hardware as facts.
//!
//! Owns: groups of nodes (`Pool`) and how a machine joins one, machines (`Node`), what they have (`Inventory`).
//! Does not own: which work runs where (`scheduler-core`), the right to cards (`allocation`), how an agent speaks
//! (`node-agent/protocol`).
//!
//! Words: a *pool* is a group of nodes that are ordered and scheduled together; a *node* is a machine, or a cluster
//! behind one agent; a *join token* is a secret with which one agent joins once; a *credential* is the agent's own
//! secret, of which only the hash is known.
//! Invariants: a node is of one pool; a token is used by one credential; a draining node gets no new lease.
//! On failure: an agent that lost the answer to its join sends the same again and gets the same node.

pub mod inventory;
pub mod node;
pub mod pool;

pub use inventory::{BadInventory, Card, Inventory, SIMULATED_PREFIX};
pub use node::Node;
pub use pool::Pool;
