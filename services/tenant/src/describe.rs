//! What the OpenAPI document says of every operation, from the one place where its permission is named.
//!
//! Owns: the document's head, the parameters, headers and problems that all operations share. Does not own: the
//! permission itself, which is in the handler's signature; a test asks each route and compares.
//! Invariants: an operation is described by `needs`, `any_member` or `anyone`, and by nothing else.

use kit::permission::Permit;
use kit::{Kit, Problem};
use std::collections::HashMap;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Components, ComponentsBuilder, ContentBuilder, Header, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required,
};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::UtoipaMethodRouter;

/// Where an operation says who may call it.
const PERMISSION: &str = "x-permission";
const BEARER: &str = "bearer";
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
const MIN_POSITION: &str = "Kashi-Min-Position";
const POSITION: &str = "Kashi-Position";
const CORRELATION: &str = "Kashi-Correlation";
const WAIT: &str = "wait";
const SETTLED: &str = "Kashi-Settled";

type Routes = UtoipaMethodRouter<Kit>;

/// Routes whose handlers take `Can<P>`.
pub(crate) fn needs<P: Permit>(routes: Routes) -> Routes {
    described(routes, P::PERMISSION.as_str(), true)
}

/// Routes whose handlers take an `Actor`.
pub(crate) fn any_member(routes: Routes) -> Routes {
    described(routes, "any member", true)
}

/// Routes for who is not signed in.
pub(crate) fn anyone(routes: Routes) -> Routes {
    described(routes, "anyone", false)
}

/// The document before any route.
pub(crate) fn document() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Kashi API")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Order compute, run jobs, read what they cost, and run the platform."))
        .license(Some(utoipa::openapi::LicenseBuilder::new().name("Apache-2.0").build()))
        .build();
    OpenApiBuilder::new().info(info).components(Some(components())).build()
}

fn components() -> Components {
    let mut schemas = vec![(Problem::name().into_owned(), Problem::schema())];
    Problem::schemas(&mut schemas);
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("The token of a session (`POST /login`), or an API key (`kashi_…`)."))
        .build();
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    let problem = ResponseBuilder::new()
        .description("Why the request had no effect (RFC 9457). `code` is stable.")
        .content(kit::PROBLEM_CONTENT_TYPE, content)
        .build();
    let key = "What the asker calls this request, 1 to 128 visible ASCII characters: the same request under the same key \
               has one effect, however often it is sent.";
    let least =
        "`Kashi-Position` of a write: the answer shows it. After 2 seconds it is refused with 503 `read.behind`.";
    let position = "The position of the write in the log: send it as `Kashi-Min-Position` to read what was written.";
    let wait = "`settled`: answer once all that follows from the write was done and reads show it, or after 2 seconds; the \
                header `Kashi-Wait: settled` says the same.";
    let settled = "Where `wait=settled` was sent: `true`, or `false` where what follows takes longer.";
    ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .security_scheme(BEARER, SecurityScheme::Http(bearer))
        .response("Problem", problem)
        .parameter(IDEMPOTENCY_KEY, header(IDEMPOTENCY_KEY, Type::String, key))
        .parameter(MIN_POSITION, header(MIN_POSITION, Type::Integer, least))
        .parameter(WAIT, parameter(WAIT, ParameterIn::Query, Type::String, wait))
        .header(SETTLED, answered(Type::String, settled))
        .header(POSITION, answered(Type::Integer, position))
        .header(CORRELATION, answered(Type::String, "What all events that follow from the write share."))
        .build()
}

fn header(name: &str, of: Type, description: &str) -> Parameter {
    parameter(name, ParameterIn::Header, of, description)
}

fn parameter(name: &str, place: ParameterIn, of: Type, description: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(ObjectBuilder::new().schema_type(SchemaType::new(of))))
        .build()
}

fn answered(of: Type, description: &str) -> Header {
    let schema = ObjectBuilder::new().schema_type(SchemaType::new(of));
    HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
}

fn described((schemas, mut paths, router): Routes, permission: &str, signed_in: bool) -> Routes {
    for (path, item) in &mut paths.paths {
        let tag = path.split('/').nth(1).unwrap_or_default().to_owned();
        let finds = path.contains('{');
        for (operation, writes) in operations(item) {
            operation.tags = Some(vec![tag.clone()]);
            operation.extensions = Some(Extensions::from_iter(HashMap::from([(PERMISSION, permission)])));
            operation.security = Some(if signed_in { vec![SecurityRequirement::new(BEARER, [""; 0])] } else { vec![] });
            share(operation, writes, signed_in);
            let refused = [
                (true, "400"),
                (signed_in, "401"),
                (signed_in, "403"),
                (finds, "404"),
                (writes, "409"),
                (writes, "422"),
                (true, "default"),
            ];
            for (_, status) in refused.into_iter().filter(|(may, _)| *may) {
                let problem = RefOr::Ref(Ref::from_response_name("Problem"));
                operation.responses.responses.entry(status.into()).or_insert(problem);
            }
        }
    }
    (schemas, paths, router)
}

/// Adds the headers that every write, or every read, takes and answers with.
fn share(operation: &mut Operation, writes: bool, signed_in: bool) {
    if !signed_in {
        return;
    }
    let names = if writes { [IDEMPOTENCY_KEY, WAIT].as_slice() } else { &[MIN_POSITION] };
    let taken = names.iter().map(|name| RefOr::Ref(Ref::new(format!("#/components/parameters/{name}"))));
    operation.parameters.get_or_insert_default().extend(taken);
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if writes && status.starts_with('2') {
            for name in [POSITION, CORRELATION, SETTLED] {
                let header = RefOr::Ref(Ref::new(format!("#/components/headers/{name}")));
                response.headers.insert(name.into(), header);
            }
        }
    }
}

/// The operations of a path, and whether each writes.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (&mut Operation, bool)> {
    let PathItem { get, put, post, delete, .. } = item;
    [(get, false), (put, true), (post, true), (delete, true)]
        .into_iter()
        .filter_map(|(operation, writes)| Some((operation.as_mut()?, writes)))
}
