-- Read models: disposable, made again by replaying the log. Time in microseconds since 1970, money at scale 8,
-- quantities in thousandths of a unit or in milli-unit milliseconds.
create table checkpoints (projection text primary key, checkpoint bigint not null);

create table tenants (
    id text primary key,
    name text not null,
    kind text not null,
    parent text,
    suspended text,
    contract text,
    customer text,
    book text,
    zone text,
    currency text
);

-- Each node with each node above it and with itself.
create table tenant_tree (
    node text not null,
    below text not null,
    distance bigint not null,
    primary key (node, below)
);
create index tenant_tree_upwards on tenant_tree (below, distance);

create table members (
    id text primary key,
    tenant text not null,
    handle text not null,
    roles text not null,
    locked boolean not null
);

-- The only table with personal data in clear; blank where it was erased. The index is a keyed digest.
create table member_profiles (
    id text primary key,
    tenant text not null,
    name text,
    email text,
    phone text,
    email_index text,
    erased_at bigint
);
create index member_profiles_by_email on member_profiles (email_index);

create table api_keys (
    id text primary key,
    tenant text not null,
    member text not null,
    name text not null,
    expires_at bigint,
    revoked boolean not null
);

create table products (
    sku text primary key,
    id text not null,
    resource text not null,
    name_zh text not null,
    name_en text not null
);

create table prices (
    book text not null,
    version bigint not null,
    sku text not null,
    price bigint not null,
    currency text not null,
    effective_at bigint not null,
    primary key (book, version, sku)
);
create table price_books (id text primary key, name text not null, currency text not null);

create table orders (
    id text primary key,
    position bigint not null,
    tenant text not null,
    requested_by text not null,
    decided_by text,
    sku text not null,
    resource text not null,
    quantity bigint not null,
    price bigint not null,
    currency text not null,
    status text not null,
    reason text,
    requested_at bigint not null,
    changed_at bigint not null
);
create index orders_of_tenant on orders (tenant, position);
create index orders_in_order on orders (position);

create table quotas (
    tenant text not null,
    resource text not null,
    ceiling_milli bigint,
    primary key (tenant, resource)
);
create table quota_holds (
    holder text primary key,
    tenant text not null,
    resource text not null,
    kind text not null,
    milli bigint not null
);
create index quota_holds_of_tenant on quota_holds (tenant, resource);

create table jobs (
    id text primary key,
    position bigint not null,
    tenant text not null,
    submitted_by text not null,
    name text not null,
    command text not null,
    resource text not null,
    milli bigint not null,
    status text not null,
    detail text,
    exit_code bigint,
    lease text,
    node text,
    cards text,
    cancel_requested boolean not null,
    restarts bigint not null default 0,
    submitted_at bigint not null,
    started_at bigint,
    ended_at bigint
);
create index jobs_of_tenant on jobs (tenant, position);
create index jobs_in_order on jobs (position);
create index jobs_of_lease on jobs (lease);

create table nodes (
    id text primary key,
    pool text not null,
    name text not null,
    milli_cores bigint not null,
    memory_mib bigint not null,
    cards bigint not null,
    card_models text not null,
    simulated boolean not null,
    draining boolean not null,
    drain_reason text,
    lost_reason text,
    alive_until bigint,
    platform text not null,
    agent text not null
);
create table pools (id text primary key, name text not null);

create table leases (
    id text primary key,
    job text not null,
    tenant text not null,
    node text not null,
    cards bigint not null,
    milli_cores bigint not null,
    memory_mib bigint not null,
    status text not null,
    granted_at bigint not null,
    started_at bigint,
    ended_at bigint
);
create index leases_of_node on leases (node, status);

create table meters (
    lease text primary key,
    job text not null,
    tenant text not null,
    customer text not null,
    zone text not null,
    resource text not null,
    milli bigint not null,
    from_at bigint not null,
    until_at bigint not null,
    closed boolean not null
);
create index meters_open on meters (closed, until_at);

create table charges (
    event text primary key,
    position bigint not null,
    tenant text not null,
    statement text not null,
    sku text not null,
    book text not null,
    price_version bigint not null,
    lease text not null,
    job text not null,
    from_at bigint not null,
    to_at bigint not null,
    quantity bigint not null,
    price bigint not null,
    amount bigint not null,
    reading text not null
);
create index charges_of_line on charges (statement, sku, price_version, position);
create index charges_of_job on charges (job);

create table statements (
    id text primary key,
    tenant text not null,
    customer text not null,
    month text not null,
    zone text not null,
    currency text not null,
    status text not null,
    number text,
    closed boolean not null,
    unrated bigint not null
);
create index statements_of_tenant on statements (tenant, month);
create table statement_lines (
    statement text not null,
    tenant text not null,
    sku text not null,
    book text not null,
    price_version bigint not null,
    unit text not null,
    price bigint not null,
    quantity bigint not null,
    hours bigint not null,
    amount bigint not null,
    shown bigint not null,
    primary key (statement, sku, book, price_version)
);

create table wallets (
    customer text primary key,
    tenant text not null,
    currency text not null,
    granted bigint not null,
    credit bigint not null,
    consumed bigint not null
);
create table wallet_holds (customer text not null, job text not null, amount bigint not null, primary key (customer, job));
