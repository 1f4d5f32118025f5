-- the private history knows people by numbers that are others in each database

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
