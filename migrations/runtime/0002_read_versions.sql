-- The versions of the read models: the one that is served, the one that is being made, those that wait to be dropped.
create table read_versions (
    version bigint primary key,
    -- The read model that is made anew; null for all of them.
    model text,
    status text not null,
    -- What asked for it.
    command text unique,
    -- The process that makes it, and how often it has said how far it is.
    builder text,
    beat bigint not null,
    -- The position of the log up to which it is made, and the last position when that was written.
    position bigint not null,
    target bigint not null,
    asked_at bigint not null,
    ended_at bigint,
    -- Whether its tables may still be there.
    kept boolean not null,
    fault text
);
