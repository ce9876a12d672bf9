//! Carries out erasures: what the log says is erased has no key any more, and is taken out of the files.
//!
//! Owns: destroying the key after the event, and scrubbing the table that showed the data. Does not own: the decision
//! (`domain::identity`), blanking the table (`projections`).
//! Invariants: an erasure that is in the log is carried out in the end, also where the server was killed in between; at
//! each start all of them are carried out again, so that a key store from a backup opens nothing that was erased since.

use crate::ControlError;
use crate::projector::{decode, patiently};
use domain::Event;
use domain::identity::{Member, member};
use domain::kernel::{Aggregate, Recorded, SubjectKey};
use eventlog::{LogError, Subscription};
use kit::Kit;
use kit::keys::KeysError;
use std::time::Duration;
use tokio::time::sleep;

/// The table of the read models that shows personal data.
const SHOWN: &str = "member_profiles";
const PAGE: usize = 500;
/// How long to wait before something is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// Carries out those there were, and those that come.
pub async fn run(kit: &Kit) -> Result<(), ControlError> {
    let from = *kit.executor.log().head().borrow();
    before(kit).await?;
    let mut log = Subscription::after(kit.executor.log().clone(), from);
    let mut unscrubbed = None;
    loop {
        let page = tokio::select! {
            page = patiently(&mut log) => page?,
            () = blanked(kit, unscrubbed), if unscrubbed.is_some() => {
                unscrubbed = None;
                scrub(kit).await;
                continue;
            }
        };
        unscrubbed = carry_out(kit, &page).await?.or(unscrubbed);
    }
}

/// Those that the log holds already.
async fn before(kit: &Kit) -> Result<(), ControlError> {
    let mut at = 0;
    loop {
        match kit.executor.log().read_category(Member::STREAM, at, PAGE).await {
            Err(LogError::Unreachable(cause)) => {
                tracing::warn!(cause, "the log is out of reach; trying again");
                sleep(RETRY).await;
            }
            page => {
                let page = page?;
                let Some(last) = page.last() else { return Ok(()) };
                at = last.position;
                carry_out(kit, &page).await?;
            }
        }
    }
}

/// Destroys the keys of those in a page. Gives the position of the last one, if any.
async fn carry_out(kit: &Kit, page: &[Recorded]) -> Result<Option<i64>, ControlError> {
    let mut last = None;
    for (stored, event) in page.iter().zip(decode(page)?) {
        let Some(Event::Member(member::Event::PersonalDataErased { subject, .. })) = event else { continue };
        destroy(kit, subject).await?;
        last = Some(stored.position);
    }
    Ok(last)
}

/// Destroys a key, however long the key store is away.
async fn destroy(kit: &Kit, subject: SubjectKey) -> Result<(), ControlError> {
    loop {
        match kit.keys.destroy(subject, kit.clock.now()).await {
            Ok(true) => tracing::info!(key = %subject, "a key of personal data was destroyed"),
            Err(KeysError::Store(cause)) if cause.may_pass() => {
                tracing::warn!(%cause, "the key store is out of reach; trying again");
                sleep(RETRY).await;
                continue;
            }
            done => drop(done?),
        }
        return Ok(());
    }
}

/// Waits until the read models no longer show what was erased at a position.
async fn blanked(kit: &Kit, position: Option<i64>) {
    let mut moved = kit.progress.moved();
    while position.is_some_and(|position| kit.progress.read_models() < position) {
        if moved.changed().await.is_err() {
            return;
        }
    }
}

/// Takes what was erased out of the files of the read models.
async fn scrub(kit: &Kit) {
    if let Err(error) = kit.read.scrub(SHOWN).await {
        tracing::warn!(cause = %error, "the files of the read models may hold what was erased until they are made anew");
    }
}
