-- the private history knows people by numbers that are others in each database; settings have a reserve

CREATE TABLE kanon_private.salt (salt UUID NOT NULL);
INSERT INTO kanon_private.salt SELECT system.main.uuid();

-- for each: SELECT view_number FROM kanon_private.settings WHERE settings_version = 1 AND len(key) > 0 AND unit IS NULL
CREATE OR REPLACE TABLE kanon_private.stays_{view_number} AS
SELECT * REPLACE (system.main.hash((SELECT salt FROM kanon_private.salt), person) AS person)
FROM kanon_private.stays_{view_number};
CREATE OR REPLACE TABLE kanon_private.vulnerable_{view_number} AS
SELECT * REPLACE (system.main.hash((SELECT salt FROM kanon_private.salt), person) AS person)
FROM kanon_private.vulnerable_{view_number};
-- end

CREATE TABLE kanon_private.new_settings (
    view_number         BIGINT NOT NULL,
    settings_version    INTEGER NOT NULL,
    source              VARCHAR NOT NULL,
    key                 VARCHAR[] NOT NULL,
    quasi_identifiers   VARCHAR NOT NULL,
    sensitive           VARCHAR NOT NULL,
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
    reserve             DOUBLE NOT NULL,
    patience            BIGINT NOT NULL,
    capture             VARCHAR NOT NULL,
    max_suppression     DOUBLE NOT NULL,
    weights             VARCHAR,
    unit                VARCHAR,
    seed                BIGINT NOT NULL,
    allow_unsafe_keep   VARCHAR[] NOT NULL,
    independent         BOOLEAN NOT NULL,
    derive_from         VARCHAR,
    arguments           VARCHAR NOT NULL,
    caller_schema       VARCHAR NOT NULL,
    column_types        VARCHAR NOT NULL,
    domains             VARCHAR NOT NULL
);
-- Views that are not secure have always removed deleted people, but their settings said 'retire'.
INSERT INTO kanon_private.new_settings
SELECT view_number, settings_version, source, key, quasi_identifiers, sensitive, keep, k, l, entropy_l, recursive_cl,
       p, alpha, t, protected, method, effort, method_options, maintenance, secure,
       CASE WHEN secure THEN on_delete ELSE 'remove' END, 0 AS reserve, patience, capture, max_suppression, weights, unit, seed, allow_unsafe_keep, independent, derive_from,
       arguments, caller_schema, column_types, domains
FROM kanon_private.settings;
DROP TABLE kanon_private.settings;
ALTER TABLE kanon_private.new_settings RENAME TO settings;
