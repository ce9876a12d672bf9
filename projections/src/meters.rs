//! Meters, for those who cut them at a month's end. Table `meters`.

use domain::Event;
use domain::kernel::Recorded;
use domain::metering::meter;
use store::{CustomerId, Db, Id, JobId, LeaseId, Resource, Result, TenantId, Time, Tx, Zone};

/// A meter.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Meter {
    /// The lease that it measures.
    pub lease: LeaseId,
    /// The job under it.
    pub job: JobId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Who pays.
    pub customer: CustomerId,
    /// Whose months the statements follow.
    pub zone: Zone,
    /// What is measured.
    pub resource: Resource,
    /// How many thousandths of it are held.
    pub milli: i64,
    /// Since when.
    pub from_at: Time,
    /// Until when it was read.
    pub until_at: Time,
    /// Whether it was read for the last time.
    pub closed: bool,
}

/// Folds one event into the table.
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    let Event::Meter(event) = event else { return Ok(()) };
    let change = match event {
        meter::Event::Opened { subject, from } => tx
            .sql(
                "insert into meters (lease, job, tenant, customer, zone, resource, milli, from_at, until_at, closed)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            )
            .bind(Id(subject.lease))
            .bind(Id(subject.job))
            .bind(Id(subject.tenant))
            .bind(Id(subject.bill_to.customer))
            .bind(Zone(subject.bill_to.zone))
            .bind(Resource(subject.resource.clone()))
            .bind(subject.milli)
            .bind(Time::from(*from))
            .bind(Time::from(*from))
            .bind(false),
        meter::Event::Measured { to, .. } => read(tx, stored, *to, false),
        meter::Event::Closed { to, .. } => read(tx, stored, *to, true),
    };
    change.run().await?;
    Ok(())
}

fn read<'t>(tx: &'t mut Tx, stored: &Recorded, until: impl Into<Time>, closed: bool) -> store::Query<'t> {
    tx.sql("update meters set until_at = $2, closed = $3 where lease = $1")
        .bind(stored.stream.key().to_owned())
        .bind(until.into())
        .bind(closed)
}

/// Every open meter.
pub async fn open(db: &Db) -> Result<Vec<Meter>> {
    db.sql("select * from meters where closed = $1 order by lease").bind(false).all().await
}

/// The open meters of a tenant.
pub async fn open_of(db: &Db, tenant: TenantId) -> Result<Vec<Meter>> {
    db.sql("select * from meters where tenant = $1 and closed = $2 order by lease").bind(tenant).bind(false).all().await
}
