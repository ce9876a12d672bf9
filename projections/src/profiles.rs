//! Profiles (个人资料) of members, opened: the one table that holds personal data in clear. Table `member_profiles`.
//!
//! Invariants: what cannot be opened, because its key was destroyed, is blank, so that a rebuild after an erasure shows
//! what the live table shows; an erased row keeps nothing but that it was erased, and its index is gone too.

use domain::Event;
use domain::identity::{Profile as Opened, member};
use domain::kernel::{Recorded, Sealed};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use store::{Db, MemberId, Result, TenantId, Time, Tx};

/// Opens a sealed profile; `None` where its key is gone.
pub type Opener = Arc<dyn Fn(Sealed<Opened>) -> Opening + Send + Sync>;
/// A profile being opened.
pub type Opening = Pin<Box<dyn Future<Output = Result<Option<Opened>>> + Send>>;

/// What is known of a member as a person.
#[derive(Clone, PartialEq, sqlx::FromRow, serde::Serialize, utoipa::ToSchema)]
#[schema(as = MemberProfile)]
pub struct Profile {
    /// The member.
    pub id: MemberId,
    /// Where the member belongs.
    pub tenant: TenantId,
    /// The name that the person goes by.
    pub name: Option<String>,
    /// The e-mail address.
    pub email: Option<String>,
    /// The phone number, with `+` and the country in front.
    pub phone: Option<String>,
    /// When the personal data was erased; null where it was not, or where there is some again.
    pub erased_at: Option<Time>,
}

impl std::fmt::Debug for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Profile").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Folds one event into the table.
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event, open: &Opener) -> Result<()> {
    let Event::Member(event) = event else { return Ok(()) };
    let (known, erased_at, index) = match event {
        member::Event::ProfileSet { profile } => {
            let known = open(profile.clone()).await?;
            let index = profile.index(Opened::EMAIL).filter(|_| known.is_some()).map(str::to_owned);
            (known.unwrap_or_default(), None, index)
        }
        member::Event::PersonalDataErased { .. } => {
            (Opened::default(), Some(Time::from(stored.meta.occurred_at)), None)
        }
        member::Event::Added { .. }
        | member::Event::PasswordSet { .. }
        | member::Event::RolesSet { .. }
        | member::Event::Locked { .. }
        | member::Event::Unlocked { .. } => return Ok(()),
    };
    tx.sql(
        "insert into member_profiles (id, tenant, name, email, phone, email_index, erased_at)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (id) do update set name = excluded.name, email = excluded.email, phone = excluded.phone,
             email_index = excluded.email_index, erased_at = excluded.erased_at",
    )
    .bind(stored.stream.key().to_owned())
    .bind(TenantId::from(stored.meta.tenant))
    .bind(known.name)
    .bind(known.email)
    .bind(known.phone)
    .bind(index)
    .bind(erased_at)
    .run()
    .await?;
    Ok(())
}

/// What is known of a member, if anything ever was.
pub async fn find(db: &Db, member: MemberId) -> Result<Option<Profile>> {
    db.sql("select id, tenant, name, email, phone, erased_at from member_profiles where id = $1")
        .bind(member)
        .optional()
        .await
}
