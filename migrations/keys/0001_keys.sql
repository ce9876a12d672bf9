-- The key store: what opens personal data. Backed up apart from the log, or an erasure is undone by a restore. Times are
-- microseconds since 1970, UTC. No key is here in clear: each is sealed under the master key, which is a file.

-- One key per person and generation. A destroyed one keeps its row, without material, so that it is never made again.
create table subject_keys (
    subject text not null,
    generation bigint not null,
    material text,
    created_at bigint not null,
    destroyed_at bigint,
    primary key (subject, generation)
);

-- The keys of blind indexes; they are of nobody and stay.
create table index_keys (purpose text primary key, material text not null, created_at bigint not null);
