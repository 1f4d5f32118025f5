-- where masked views were published is remembered

CREATE TABLE kanon_private.publications (
    target          VARCHAR NOT NULL,
    kind            VARCHAR NOT NULL,
    place           INTEGER NOT NULL,
    view_number     BIGINT NOT NULL,
    release         BIGINT NOT NULL,
    published_at    TIMESTAMP NOT NULL,
    releases        VARCHAR NOT NULL,
    storage_version VARCHAR
);
