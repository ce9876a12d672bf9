-- The log: append-only. One text for SQLite and PostgreSQL; times are microseconds since 1970, UTC.

-- One row. Whoever updates it is the one who appends until the transaction ends, so that positions are gapless and in
-- commit order with any number of writer processes.
create table log_head (id bigint primary key check (id = 1), position bigint not null);
insert into log_head (id, position) values (1, 0);

create table events (
    position bigint primary key,
    -- Derived from tenant, command and index in the command, which come once.
    event_id text not null,
    stream text not null,
    category text not null,
    revision bigint not null,
    kind text not null,
    schema_version bigint not null,
    tenant text not null,
    actor text not null,
    command text not null,
    -- Of the first event of a command: where its last one is. Of the others 0.
    last_position bigint not null,
    digest text not null,
    correlation text not null,
    causation text,
    trace text,
    occurred_at bigint not null,
    recorded_at bigint not null,
    payload text not null,
    unique (stream, revision)
);
create index events_of_category on events (category, position);
create index events_of_correlation on events (correlation, position);
-- A command is done once, for good.
create unique index commands on events (command, tenant) where last_position > 0;
