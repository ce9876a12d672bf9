//! Delivers what a job writes while it writes it.
//!
//! Owns: reading the file and the offset. Does not own: the file. Invariants: bytes are passed as they are; the server
//! says where to go on, so a restart of either side repeats nothing and leaves nothing out; delivery is over only when
//! the lease has ended and the server has every byte, or does not want them.

use crate::{
    link::{Link, LinkError},
    patience::Patience,
    run::Folder,
};
use agent_protocol::OUTPUT_CHUNK_BYTES_MAX;
use domain::kernel::LeaseId;
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    time::Duration,
};

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What the server answers for a lease that is not this node's, or not any more.
const NOT_OURS: [u16; 4] = [403, 404, 409, 410];

/// Delivers the output of one lease until there is nothing more to come. An error is one of the disk.
pub async fn deliver(link: &Link, lease: LeaseId, folder: &Folder) -> io::Result<()> {
    let mut patience = Patience::new("output");
    let mut offset = 0;
    loop {
        // Asked before the bytes are read: what an ended job wrote is all there.
        let ended = folder.ended()?.is_some();
        let bytes = chunk(folder, offset)?;
        if bytes.is_empty() {
            if ended {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
            continue;
        }
        match link.output(lease, offset, bytes).await {
            Ok(kept) => {
                patience.rewarded();
                let next = u64::try_from(kept.next_offset).unwrap_or(0);
                if next <= offset {
                    tracing::warn!(lease.id = %lease, offset, next, "the server goes back in the output of a lease");
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                offset = next;
            }
            Err(LinkError::Refused { status, code, .. }) if NOT_OURS.contains(&status) => {
                tracing::warn!(lease.id = %lease, status, code, "the server does not want the output of a lease");
                return Ok(());
            }
            Err(error) => tokio::time::sleep(patience.after(&error)).await,
        }
    }
}

fn chunk(folder: &Folder, offset: u64) -> io::Result<Vec<u8>> {
    let mut file = match File::open(folder.output()) {
        Ok(file) => file,
        // A job that was never started has none.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(OUTPUT_CHUNK_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
