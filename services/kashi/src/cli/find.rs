//! Names that people use instead of ids.
//!
//! Invariants: an id is taken as it is; a name stands for one thing or the command is refused; nothing is found that who
//! asks could not list.

use crate::cli::api::Api;
use crate::cli::fault::{FORBIDDEN, Fault};
use domain::kernel::{Id, MemberId, NodeId, PoolId, PriceBookId, TenantId};
use serde_json::Value;

const TENANT: &str = "tenant";

/// A tenant by its id or name. Who may not list tenants still knows the own one.
pub(crate) async fn tenant(api: &Api, text: &str) -> Result<TenantId, Fault> {
    if let Some(id) = id(text)? {
        return Ok(id);
    }
    match api.list("/tenants", &[], usize::MAX).await {
        Ok((items, _)) => called(TENANT, &items, "name", text),
        Err(refused) if refused.exit() == FORBIDDEN => {
            let own = api.get("/whoami", &[]).await?;
            let own = (own["tenant_name"] == text).then(|| own["tenant"].as_str()?.parse().ok()).flatten();
            own.ok_or_else(|| Fault::Unknown { what: TENANT, name: text.to_owned() })
        }
        Err(fault) => Err(fault),
    }
}

/// The tenant that is named, or one's own.
pub(crate) async fn tenant_or_own(api: &Api, text: Option<&str>) -> Result<TenantId, Fault> {
    match text {
        Some(text) => tenant(api, text).await,
        None => {
            let own = api.get("/whoami", &[]).await?;
            let own = own["tenant"].as_str().unwrap_or_default();
            own.parse().map_err(|_| Fault::Unknown { what: TENANT, name: own.to_owned() })
        }
    }
}

/// A price book by its id or name.
pub(crate) async fn book(api: &Api, text: &str) -> Result<PriceBookId, Fault> {
    match id(text)? {
        Some(id) => Ok(id),
        None => called("price book", &api.whole("/price-books", &[]).await?, "name", text),
    }
}

/// A pool by its id or name.
pub(crate) async fn pool(api: &Api, text: &str) -> Result<PoolId, Fault> {
    match id(text)? {
        Some(id) => Ok(id),
        None => called("pool", &api.whole("/pools", &[]).await?, "name", text),
    }
}

/// A node by its id or name.
pub(crate) async fn node(api: &Api, text: &str) -> Result<NodeId, Fault> {
    match id(text)? {
        Some(id) => Ok(id),
        None => called("node", &api.list("/nodes", &[], usize::MAX).await?.0, "name", text),
    }
}

/// A member by its id or handle.
pub(crate) async fn member(api: &Api, text: &str) -> Result<MemberId, Fault> {
    match id(text)? {
        Some(id) => Ok(id),
        None => called("member", &api.list("/members", &[], usize::MAX).await?.0, "handle", text),
    }
}

/// The id, if the text is meant to be one.
fn id<T: Id>(text: &str) -> Result<Option<T>, Fault> {
    let is_meant = text.strip_prefix(T::PREFIX).is_some_and(|rest| rest.starts_with('_'));
    if !is_meant {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|bad: domain::kernel::BadId| Fault::Usage(bad.to_string()))
}

fn called<T: Id>(what: &'static str, items: &[Value], field: &str, name: &str) -> Result<T, Fault> {
    let found: Vec<T> =
        items.iter().filter(|item| item[field] == name).filter_map(|item| item["id"].as_str()?.parse().ok()).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(Fault::Unknown { what, name: name.to_owned() }),
        several => {
            let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(Fault::Usage(format!("several are called `{name}`; give the id instead: {}", ids.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const A: &str = "ten_01J00000000000000000000000";
    const B: &str = "ten_01J00000000000000000000001";

    #[test]
    fn an_id_is_taken_as_it_is() {
        assert_eq!(id::<TenantId>(A).unwrap().unwrap().to_string(), A);
        assert_eq!(id::<TenantId>("demo").unwrap(), None);
        assert_eq!(id::<TenantId>("tenth").unwrap(), None);
        assert_eq!(id::<TenantId>("ten_x").unwrap_err().exit(), 2);
    }

    #[test]
    fn a_name_stands_for_one_thing() {
        let items = [json!({ "id": A, "name": "a" }), json!({ "id": B, "name": "b" }), json!({ "id": A, "name": "b" })];
        let found = |name| called::<TenantId>(TENANT, &items, "name", name);
        assert_eq!(found("a").unwrap().to_string(), A);
        assert_eq!(found("c").unwrap_err().exit(), 5);
        let several = found("b").unwrap_err();
        assert!(several.exit() == 2 && several.to_string().contains(B), "{several}");
    }
}
