-- What kanon_duck remembers. `kanon` is the interface, `kanon_released` holds what readers see, `kanon_history` and
-- `kanon_history_classes` what they saw in earlier releases, `kanon_private` everything else. All scripts of this folder
-- can be run again at any time.
CREATE SCHEMA IF NOT EXISTS kanon;
CREATE SCHEMA IF NOT EXISTS kanon_private;
CREATE SCHEMA IF NOT EXISTS kanon_released;
CREATE SCHEMA IF NOT EXISTS kanon_history;
CREATE SCHEMA IF NOT EXISTS kanon_history_classes;

-- The version of these tables, and a digest of the scripts that were run; one row.
CREATE TABLE IF NOT EXISTS kanon_private.catalog (version INTEGER NOT NULL, scripts VARCHAR NOT NULL);

-- A random number of this database, from which the numbers of people in its private history follow; one row.
CREATE TABLE IF NOT EXISTS kanon_private.salt (salt UUID NOT NULL);
INSERT INTO kanon_private.salt SELECT system.main.uuid() WHERE NOT EXISTS (FROM kanon_private.salt);

-- One row per masked view. `view_number` names its private tables: members_7, classes_7, diversity_7, values_7, with
-- a key stays_7, versions_7 and vulnerable_7, with triggers changes_7, and where it is secure slots_7, cohorts_7, people_7,
-- tuples_7, former_7 and series_7. One that is derived from another has slots_7, tuples_7, former_7 and cohorts_7, and
-- unions_7 for what becomes of the other's slots in it. A dropped view leaves its row, its settings, its history and these
-- tables, and in retired_7 the rows it has released, for later checks of views over the same source.
CREATE TABLE IF NOT EXISTS kanon_private.masked_views (
    view_number         BIGINT NOT NULL,
    name                VARCHAR NOT NULL,
    schema_name         VARCHAR NOT NULL,
    view_name           VARCHAR NOT NULL,
    settings_version    INTEGER NOT NULL,
    status              VARCHAR NOT NULL,      -- current, stale, held, broken; as of checked_at
    reason              VARCHAR,
    checked_at          TIMESTAMP NOT NULL,
    waiting             BIGINT NOT NULL,
    refresh_recommended VARCHAR,
    dropped_at          TIMESTAMP,
    members_version     VARCHAR NOT NULL,      -- changes whenever the members do
    first_release       BIGINT NOT NULL        -- the oldest that is still readable
);

-- What the owner asked for, one row per version; a change is a new version, never silent.
-- Options that are lists of names are lists; the others that have a structure are JSON text.
CREATE TABLE IF NOT EXISTS kanon_private.settings (
    view_number         BIGINT NOT NULL,
    settings_version    INTEGER NOT NULL,
    source              VARCHAR NOT NULL,
    key                 VARCHAR[] NOT NULL,
    quasi_identifiers   VARCHAR NOT NULL,      -- JSON: type or hierarchy, step and domain of each, as in force
    sensitive           VARCHAR NOT NULL,      -- JSON: column and hierarchy, or null
    keep                VARCHAR[] NOT NULL,
    k                   BIGINT NOT NULL,
    l                   BIGINT,
    entropy_l           DOUBLE,
    recursive_cl        VARCHAR,
    p                   BIGINT,
    alpha               DOUBLE,
    t                   DOUBLE,
    protected           VARCHAR,
    method              VARCHAR NOT NULL,
    effort              VARCHAR NOT NULL,
    method_options      VARCHAR,
    maintenance         VARCHAR NOT NULL,
    secure              BOOLEAN NOT NULL,
    on_delete           VARCHAR NOT NULL,
    reserve             DOUBLE NOT NULL,       -- share of new cohorts with one counterfeit
    patience            BIGINT NOT NULL,
    capture             VARCHAR NOT NULL,
    max_suppression     DOUBLE NOT NULL,
    weights             VARCHAR,
    unit                VARCHAR,
    seed                BIGINT NOT NULL,
    allow_unsafe_keep   VARCHAR[] NOT NULL,
    independent         BOOLEAN NOT NULL,
    derive_from         VARCHAR,
    arguments           VARCHAR NOT NULL,      -- JSON: the options as typed, for the next time they are read
    caller_schema       VARCHAR NOT NULL,      -- where unqualified names of the source live
    column_types        VARCHAR NOT NULL,      -- JSON: types of the source's columns in use, in its order
    domains             VARCHAR NOT NULL       -- JSON: ends of the numeric domains, in steps
);

-- The history: one row per release, never changed afterwards.
CREATE TABLE IF NOT EXISTS kanon_private.releases (
    view_number              BIGINT NOT NULL,
    release                  BIGINT NOT NULL,
    released_at              TIMESTAMP NOT NULL,
    cause                    VARCHAR NOT NULL,
    rows                     BIGINT NOT NULL,
    classes                  BIGINT NOT NULL,
    waiting                  BIGINT NOT NULL,
    suppressed               BIGINT NOT NULL,
    inserted                 BIGINT NOT NULL,
    updated                  BIGINT NOT NULL,
    deleted                  BIGINT NOT NULL,
    moved                    BIGINT NOT NULL,
    counterfeits             BIGINT NOT NULL,
    k_achieved               BIGINT NOT NULL,
    l_achieved               BIGINT,
    max_frequency            DOUBLE,
    information_loss         DOUBLE NOT NULL,
    information_loss_per_row DOUBLE NOT NULL,
    discernibility           HUGEINT NOT NULL,
    average_class_size       DOUBLE NOT NULL,
    vulnerable_rows          BIGINT,           -- NULL: not checked
    method                   VARCHAR NOT NULL,
    settings_version         INTEGER NOT NULL,
    not_released             VARCHAR[] NOT NULL,
    warnings                 VARCHAR[] NOT NULL,
    seconds                  DOUBLE NOT NULL
);

-- Information loss of each quasi-identifier in each release, for kanon.quality.
CREATE TABLE IF NOT EXISTS kanon_private.attribute_losses (
    view_number      BIGINT NOT NULL,
    release          BIGINT NOT NULL,
    attribute        VARCHAR NOT NULL,
    information_loss DOUBLE NOT NULL
);

-- What was published where: one row per target and view, in the order in which the views were named.
CREATE TABLE IF NOT EXISTS kanon_private.publications (
    target          VARCHAR NOT NULL,    -- a file or folder by its full path; never with a password
    kind            VARCHAR NOT NULL,    -- duckdb, parquet, csv, postgresql, attached
    place           INTEGER NOT NULL,
    view_number     BIGINT NOT NULL,
    release         BIGINT NOT NULL,
    published_at    TIMESTAMP NOT NULL,
    releases        VARCHAR NOT NULL,    -- current or all
    storage_version VARCHAR              -- of a DuckDB file; NULL: the default
);
