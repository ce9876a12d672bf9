create table checkpoints (projection text primary key, checkpoint bigint not null);
create table owners (id text primary key);
create table things (
    id text primary key,
    owner text not null references owners (id),
    price bigint not null,
    currency text not null,
    month text not null,
    resource text not null,
    zone text not null,
    made_at bigint not null,
    parent text
);
