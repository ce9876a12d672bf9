-- Runtime state: losing it costs convenience, never truth. Time in microseconds since 1970.
create table checkpoints (projection text primary key, checkpoint bigint not null);

-- Why each waiting job waits, as the last plan saw it (JSON).
create table waits (job text primary key, why text not null, since bigint not null);

-- When each node was last heard of.
create table nodes_seen (node text primary key, at bigint not null);
