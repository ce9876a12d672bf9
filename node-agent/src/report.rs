//! Says what is seen.
//!
//! Owns: when a report is made and which leases are in it. Does not own: what is seen (`run`), what an answer means for a
//! lease (`agent`). Invariants: a report has a bounded size, however many leases are here; the leases take turns, so each
//! is said again and again, also where a report with others of them is refused; what a report leaves out means nothing.

use crate::{agent::News, link::Link, patience::Patience, run::Runner, state::Local};
use agent_protocol::{Inventory, ObservedLease, REPORT_LEASES_MAX, Report};
use domain::kernel::LeaseId;
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::sync::{mpsc, watch};

/// The longest silence between two rounds of reports.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Says all that is seen in a round of reports, whenever it changes and at least every [`REPORT_EVERY`], for ever. What
/// was acted upon is the generation.
pub(crate) async fn report(
    link: Link,
    runner: Arc<Runner>,
    inventory: Inventory,
    mut acted: watch::Receiver<i64>,
    news: mpsc::Sender<News>,
) -> Infallible {
    let (mut patience, mut changed) = (Patience::new("report"), runner.changed());
    // How far this round has come, and whether any of it was heard.
    let (mut after, mut heard) = (None, false);
    loop {
        if after.is_none() {
            // What changes from here on is said in the next round.
            acted.mark_unchanged();
            changed.mark_unchanged();
        }
        let generation = *acted.borrow();
        match runner.observe() {
            Ok(local) => {
                let (page, next) = page(&local, after);
                after = next;
                match link.report(&seen(generation, &inventory, page)).await {
                    Ok(answer) => {
                        patience.rewarded();
                        heard = true;
                        let which = |local: &Local| (local.lease, local.generation);
                        let ended = page.iter().filter(|local| local.ended()).map(which).collect();
                        let all = page.iter().map(which).collect();
                        let _ = news.send(News::Reported { ended, all, answer }).await;
                    }
                    Err(error) => tokio::time::sleep(patience.after(&error)).await,
                }
            }
            Err(error) => {
                tracing::error!(%error, "the leases cannot be seen, so nothing is reported");
                (after, heard) = (None, true);
            }
        }
        // A round of which nothing was heard is begun anew at once.
        if after.is_none() && std::mem::take(&mut heard) {
            tokio::select! {
                _ = acted.changed() => {}
                _ = changed.changed() => {}
                () = tokio::time::sleep(REPORT_EVERY) => {}
            }
        }
    }
}

/// The leases that come after this one, as many as a report takes, and after which the next report goes on: `None` where
/// these are the last. The leases are in the order of their ids.
fn page(local: &[Local], after: Option<LeaseId>) -> (&[Local], Option<LeaseId>) {
    let rest = &local[local.partition_point(|local| after.is_some_and(|after| local.lease <= after))..];
    match rest.get(..REPORT_LEASES_MAX) {
        Some(page) if page.len() < rest.len() => (page, page.last().map(|local| local.lease)),
        Some(_) | None => (rest, None),
    }
}

fn seen(generation: i64, inventory: &Inventory, local: &[Local]) -> Report {
    let lease = |local: &Local| {
        let phase = local.phase.clone()?;
        Some(ObservedLease { lease: local.lease, generation: local.generation, phase })
    };
    Report { generation, inventory: inventory.clone(), leases: local.iter().filter_map(lease).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_protocol::Phase;
    use chrono::DateTime;
    use domain::kernel::{Id, JobId};
    use uuid::Uuid;

    fn local(count: usize) -> Vec<Local> {
        let one = |number: usize| Local {
            lease: LeaseId::from_uuid(Uuid::from_u128(number as u128)),
            job: JobId::from_uuid(Uuid::from_u128(0)),
            generation: 1,
            cards: vec![],
            phase: Some(Phase::Running { started_at: DateTime::UNIX_EPOCH }),
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn the_leases_take_turns_and_none_is_left_out() {
        for (count, sizes) in [
            (0, vec![0]),
            (1, vec![1]),
            (REPORT_LEASES_MAX, vec![REPORT_LEASES_MAX]),
            (REPORT_LEASES_MAX + 1, vec![REPORT_LEASES_MAX, 1]),
            (2 * REPORT_LEASES_MAX + 7, vec![REPORT_LEASES_MAX, REPORT_LEASES_MAX, 7]),
        ] {
            let all = local(count);
            let (mut said, mut pages, mut after) = (vec![], vec![], None);
            loop {
                let (page, next) = page(&all, after);
                pages.push(page.len());
                said.extend_from_slice(page);
                after = next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!((said, pages), (all, sizes));
        }
    }

    #[test]
    fn a_round_goes_on_where_leases_went_meanwhile() {
        let all = local(REPORT_LEASES_MAX + 9);
        let (_, after) = page(&all, None);
        let left: Vec<_> = all[REPORT_LEASES_MAX + 3..].to_vec();
        assert_eq!(page(&left, after), (&left[..], None));
        assert_eq!(page(&[], after), (&[][..], None));
    }
}
