//! The fingerprint of facts and of decisions, so that an auditor can replay a plan and compare.
//!
//! Owns: SHA-256 over the JSON of a value, in lower-case hex. Invariant: the shapes that are digested hold no maps and
//! are sorted before, so equal values have equal bytes. Renaming or moving one of their fields changes every digest.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// 64 hex digits. Serialising plain structs to memory does not fail; if it ever did, the text says so and equals no
/// digest, so that a comparison fails instead of passing by chance.
pub(crate) fn digest(value: &impl Serialize) -> String {
    match serde_json::to_vec(value) {
        Ok(bytes) => Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
        Err(error) => format!("no digest: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_sha_256_of_the_json() {
        // As `printf '"abc"' | sha256sum` prints it.
        assert_eq!(digest(&"abc"), "6cc43f858fbb763301637b5af970e2a46b46f461f27e5a0f41e009c59b827b25");
    }
}
