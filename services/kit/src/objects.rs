//! The output of jobs: segments in a folder, with byte offsets, readable while they grow.
//!
//! Owns: where a lease's output is kept and how much of it there is. Does not own: who may read it.
//! Invariants: bytes are kept as they came, whatever they are; a byte has one offset for ever; what comes twice is kept
//! once; nothing is kept behind a gap.

use domain::kernel::LeaseId;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::fs;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::sync::{Mutex, watch};

/// A segment is closed once it has this many bytes.
const SEGMENT_BYTES: u64 = 1024 * 1024;
/// The file, beside the segments, with the size that all of it will have.
const TOTAL: &str = "total";
/// The most bytes that one read gives.
pub const READ_BYTES_MAX: usize = 256 * 1024;

/// The kept output of every lease. Clones share it, and so may several processes: how much there is, is looked up.
#[derive(Debug, Clone)]
pub struct Outputs {
    folder: Arc<PathBuf>,
    writing: Arc<Mutex<()>>,
    grown: Arc<watch::Sender<()>>,
}

impl Outputs {
    /// Keeps output below this folder.
    pub fn open(folder: &Path) -> Self {
        Self { folder: Arc::new(folder.to_owned()), writing: Arc::default(), grown: Arc::new(watch::Sender::new(())) }
    }

    /// Wakes whenever some output grows in this process.
    pub fn grown(&self) -> watch::Receiver<()> {
        self.grown.subscribe()
    }

    /// Keeps bytes from an offset on, and says where the next ones start: what was known already is passed over, and
    /// what would leave a gap is not kept.
    pub async fn append(&self, lease: LeaseId, offset: u64, bytes: &[u8]) -> io::Result<u64> {
        let turn = self.writing.lock().await;
        let size = self.size(lease).await?;
        let known = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let fresh = bytes.get(known..).unwrap_or_default();
        if offset > size || fresh.is_empty() {
            return Ok(size);
        }
        self.write(lease, size, fresh).await?;
        let size = size + fresh.len() as u64;
        drop(turn);
        self.grown.send_replace(());
        Ok(size)
    }

    /// The bytes from an offset on, at most `READ_BYTES_MAX`; none at the end.
    pub async fn read(&self, lease: LeaseId, offset: u64) -> io::Result<Vec<u8>> {
        let segments = self.segments(lease).await?;
        let mut bytes = vec![];
        for (start, size) in segments {
            let wanted = offset + bytes.len() as u64;
            if wanted < start || wanted >= start + size || bytes.len() >= READ_BYTES_MAX {
                continue;
            }
            let mut file = fs::File::open(self.segment(lease, start)).await?;
            file.seek(io::SeekFrom::Start(wanted - start)).await?;
            let room = (READ_BYTES_MAX - bytes.len()) as u64;
            file.take(room.min(start + size - wanted)).read_to_end(&mut bytes).await?;
        }
        Ok(bytes)
    }

    /// How many bytes there are.
    pub async fn size(&self, lease: LeaseId) -> io::Result<u64> {
        Ok(self.segments(lease).await?.last().map_or(0, |(start, size)| start + size))
    }

    /// Keeps how many bytes there will be in all, once the work has ended and its node has said so.
    pub async fn will_be(&self, lease: LeaseId, total: u64) -> io::Result<()> {
        let folder = self.of(lease);
        fs::create_dir_all(&folder).await?;
        // Another process may say the same at the same time.
        let new = folder.join(format!("{TOTAL}.{}", uuid::Uuid::new_v4()));
        fs::write(&new, total.to_string()).await?;
        fs::rename(&new, folder.join(TOTAL)).await?;
        self.grown.send_replace(());
        Ok(())
    }

    /// How many bytes there will be in all, where a node has said so.
    pub async fn total(&self, lease: LeaseId) -> io::Result<Option<u64>> {
        match fs::read_to_string(self.of(lease).join(TOTAL)).await {
            Ok(text) => Ok(text.parse().ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn write(&self, lease: LeaseId, size: u64, bytes: &[u8]) -> io::Result<()> {
        let last = self.segments(lease).await?.pop();
        let start = match last {
            Some((start, length)) if length < SEGMENT_BYTES => start,
            Some(_) | None => size,
        };
        fs::create_dir_all(self.of(lease)).await?;
        let mut options = fs::OpenOptions::new();
        // Put where it belongs and not behind the end, where another process may have put the same just now.
        let mut file = options.create(true).truncate(false).write(true).open(self.segment(lease, start)).await?;
        file.seek(io::SeekFrom::Start(size - start)).await?;
        file.write_all(bytes).await?;
        file.sync_data().await?;
        if size == start {
            // A new file is there after a power cut only if the folders that name it are.
            for folder in [self.of(lease), self.folder.join("output")] {
                fs::File::open(folder).await?.sync_all().await?;
            }
        }
        Ok(())
    }

    /// Start and size of each segment, in order.
    async fn segments(&self, lease: LeaseId) -> io::Result<Vec<(u64, u64)>> {
        let mut entries = match fs::read_dir(self.of(lease)).await {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            Err(error) => return Err(error),
        };
        let mut segments = vec![];
        while let Some(entry) = entries.next_entry().await? {
            if let Some(start) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
                segments.push((start, entry.metadata().await?.len()));
            }
        }
        segments.sort_unstable();
        Ok(segments)
    }

    fn of(&self, lease: LeaseId) -> PathBuf {
        self.folder.join("output").join(lease.to_string())
    }

    fn segment(&self, lease: LeaseId, start: u64) -> PathBuf {
        self.of(lease).join(format!("{start:020}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::kernel::{Id, TenantId};

    fn lease() -> LeaseId {
        LeaseId::derived(TenantId::PLATFORM, "a")
    }

    #[tokio::test]
    async fn a_byte_is_kept_once_and_never_behind_a_gap() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = Outputs::open(folder.path());
        assert_eq!(outputs.append(lease(), 0, b"abc").await.unwrap(), 3);
        assert_eq!(outputs.append(lease(), 0, b"abc").await.unwrap(), 3);
        assert_eq!(outputs.append(lease(), 5, b"xyz").await.unwrap(), 3);
        assert_eq!(outputs.append(lease(), 1, b"bcd\xff").await.unwrap(), 5);
        assert_eq!(outputs.read(lease(), 0).await.unwrap(), b"abcd\xff");
        assert_eq!(outputs.read(lease(), 4).await.unwrap(), b"\xff");
        assert!(outputs.read(lease(), 5).await.unwrap().is_empty());
        let again = Outputs::open(folder.path());
        assert_eq!(again.size(lease()).await.unwrap(), 5);
        assert_eq!(again.append(lease(), 5, b"!").await.unwrap(), 6);
    }

    #[tokio::test]
    async fn how_much_there_will_be_is_kept_beside_the_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = Outputs::open(folder.path());
        assert_eq!(outputs.total(lease()).await.unwrap(), None);
        let mut grown = outputs.grown();
        outputs.will_be(lease(), 5).await.unwrap();
        assert!(grown.has_changed().unwrap());
        grown.borrow_and_update();
        outputs.append(lease(), 0, b"abc").await.unwrap();
        let again = Outputs::open(folder.path());
        assert_eq!((again.total(lease()).await.unwrap(), again.size(lease()).await.unwrap()), (Some(5), 3));
        assert_eq!(again.read(lease(), 0).await.unwrap(), b"abc");
    }

    #[tokio::test]
    async fn two_processes_keep_one_output() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (Outputs::open(folder.path()), Outputs::open(folder.path()));
        assert_eq!(one.append(lease(), 0, b"ab").await.unwrap(), 2);
        assert_eq!(two.append(lease(), 0, b"abc").await.unwrap(), 3);
        assert_eq!(one.append(lease(), 2, b"cd").await.unwrap(), 4);
        assert_eq!(two.read(lease(), 0).await.unwrap(), b"abcd");
    }

    #[tokio::test]
    async fn reading_crosses_segments() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = Outputs::open(folder.path());
        let chunk = vec![7_u8; 700 * 1024];
        for place in 0..3 {
            outputs.append(lease(), place * chunk.len() as u64, &chunk).await.unwrap();
        }
        let whole = 3 * chunk.len();
        let mut seen = 0;
        while seen < whole {
            let bytes = outputs.read(lease(), seen as u64).await.unwrap();
            assert!(!bytes.is_empty() && bytes.len() <= READ_BYTES_MAX && bytes.iter().all(|byte| *byte == 7));
            seen += bytes.len();
        }
        assert_eq!(seen, whole);
    }
}
