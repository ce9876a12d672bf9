//! Members by handle. No secret and no personal datum is kept here. Table `members`.

use crate::Whose;
use domain::Event;
use domain::identity::{Role, member};
use domain::kernel::Recorded;
use std::collections::BTreeSet;
use store::{Db, Id, Keyset, MemberId, Page, Result, Slice, TenantId, Tx};

/// A member.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Member {
    /// Its id.
    pub id: MemberId,
    /// Where it belongs.
    pub tenant: TenantId,
    /// The name it signs in with.
    pub handle: String,
    /// Its roles, separated by commas.
    pub roles: String,
    /// Whether it is locked.
    pub locked: bool,
}

impl Keyset for Member {
    fn cursor(&self) -> String {
        self.id.0.to_string()
    }
}

/// Folds one event into the table.
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    let Event::Member(event) = event else { return Ok(()) };
    let id = stored.stream.key().to_owned();
    let lock = |locked| ("update members set locked = $2 where id = $1", locked);
    let (text, locked) = match event {
        member::Event::Added { tenant, handle, roles, .. } => {
            tx.sql("insert into members (id, tenant, handle, roles, locked) values ($1, $2, $3, $4, $5)")
                .bind(id)
                .bind(Id(*tenant))
                .bind(handle.clone())
                .bind(listed(roles))
                .bind(false)
                .run()
                .await?;
            return Ok(());
        }
        member::Event::RolesSet { roles, .. } => {
            tx.sql("update members set roles = $2 where id = $1").bind(id).bind(listed(roles)).run().await?;
            return Ok(());
        }
        member::Event::Locked { .. } => lock(true),
        member::Event::Unlocked { .. } => lock(false),
        member::Event::PasswordSet { .. }
        | member::Event::ProfileSet { .. }
        | member::Event::PersonalDataErased { .. } => return Ok(()),
    };
    tx.sql(text).bind(id).bind(locked).run().await?;
    Ok(())
}

fn listed(roles: &BTreeSet<Role>) -> String {
    roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The members of these tenants.
pub async fn of(db: &Db, whose: Whose, page: &Page) -> Result<Slice<Member>> {
    let rows = db
        .sql(
            "select * from members
             where (tenant = $1 or $1 is null or tenant in (select below from tenant_tree where node = $2)) and id > $3
             order by id limit $4",
        )
        .bind(whose.one())
        .bind(whose.top())
        .bind(page.after_or(String::new())?)
        .bind(page.limit())
        .all()
        .await?;
    Ok(page.slice(rows))
}

/// The members of these tenants whose e-mail address has this blind index.
pub async fn with_email(db: &Db, whose: Whose, index: &str, page: &Page) -> Result<Slice<Member>> {
    let rows = db
        .sql(
            "select members.* from members join member_profiles on member_profiles.id = members.id
             where (members.tenant = $1 or $1 is null
                    or members.tenant in (select below from tenant_tree where node = $2))
               and member_profiles.email_index = $3 and members.id > $4
             order by members.id limit $5",
        )
        .bind(whose.one())
        .bind(whose.top())
        .bind(index.to_owned())
        .bind(page.after_or(String::new())?)
        .bind(page.limit())
        .all()
        .await?;
    Ok(page.slice(rows))
}

/// The handle of a member.
pub async fn handle(db: &Db, member: MemberId) -> Result<Option<String>> {
    let row: Option<(String,)> = db.sql("select handle from members where id = $1").bind(member).optional().await?;
    Ok(row.map(|(handle,)| handle))
}
