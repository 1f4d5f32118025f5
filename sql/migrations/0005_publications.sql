-- where masked views were published is remembered, and slots that parted from their witness keep it

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

-- What parted from a cohort had its witness with the new cohort.
-- for each: SELECT substr(table_name, 9) :: BIGINT AS view_number FROM duckdb_columns() WHERE schema_name = 'kanon_private' AND column_name = 'origin' AND table_name LIKE 'cohorts\_%' ESCAPE '\'
UPDATE kanon_private.slots_{view_number} AS slots SET witness = cohorts.origin
FROM kanon_private.cohorts_{view_number} AS cohorts
WHERE cohorts.cohort = slots.cohort AND cohorts.origin <> -1 AND slots.witness = -1;
ALTER TABLE kanon_private.cohorts_{view_number} DROP COLUMN origin;
-- end
