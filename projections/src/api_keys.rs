//! API keys, without their secrets. Table `api_keys`.

use domain::Event;
use domain::identity::api_key;
use domain::kernel::Recorded;
use store::{Db, Id, KeyId, Keyset, MemberId, Page, Result, Slice, TenantId, Time, Tx};

/// An API key.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct ApiKey {
    /// Its id, which is also the public part of the key.
    pub id: KeyId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Who acts with it.
    pub member: MemberId,
    /// What it is for.
    pub name: String,
    /// When it ends.
    pub expires_at: Option<Time>,
    /// Whether it was revoked.
    pub revoked: bool,
}

impl Keyset for ApiKey {
    fn cursor(&self) -> String {
        self.id.0.to_string()
    }
}

/// Folds one event into the table.
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    let Event::ApiKey(event) = event else { return Ok(()) };
    let id = stored.stream.key().to_owned();
    let change = match event {
        api_key::Event::Issued { tenant, member, name, expires_at, .. } => tx
            .sql(
                "insert into api_keys (id, tenant, member, name, expires_at, revoked)
                 values ($1, $2, $3, $4, $5, $6)",
            )
            .bind(id)
            .bind(Id(*tenant))
            .bind(Id(*member))
            .bind(name.clone())
            .bind(expires_at.map(Time::from))
            .bind(false),
        api_key::Event::Revoked { .. } => tx.sql("update api_keys set revoked = $2 where id = $1").bind(id).bind(true),
    };
    change.run().await?;
    Ok(())
}

/// The keys of a member.
pub async fn of_member(db: &Db, member: MemberId, page: &Page) -> Result<Slice<ApiKey>> {
    let rows = db
        .sql("select * from api_keys where member = $1 and id > $2 order by id limit $3")
        .bind(member)
        .bind(page.after_or(String::new())?)
        .bind(page.limit())
        .all()
        .await?;
    Ok(page.slice(rows))
}
