-- Hierarchies: trees, stored as one row per leaf, and rules, stored as what they are.

CREATE TABLE IF NOT EXISTS kanon_private.hierarchies (
    hierarchy VARCHAR NOT NULL,         -- as its creator spelled it; compared without regard to case
    kind      VARCHAR NOT NULL,         -- prefix, levels, edges, intervals, dates
    root      VARCHAR NOT NULL,
    height    INTEGER NOT NULL,         -- of a prefix hierarchy also the length of its values
    leaves    BIGINT,                   -- NULL for rules
    nodes     BIGINT,
    widths    BIGINT[],                 -- intervals: the width at level 1, 2, ..., in units of the last decimal
    decimals  INTEGER,                  -- intervals: how many decimals that is
    periods   VARCHAR[]                 -- dates: the period at level 1, 2, ...
);

CREATE TABLE IF NOT EXISTS kanon_private.hierarchy_leaves (
    hierarchy VARCHAR NOT NULL,
    position  BIGINT NOT NULL,          -- in depth-first order, siblings by label
    leaf      VARCHAR NOT NULL,
    path      VARCHAR[] NOT NULL,       -- from the leaf itself to the root
    heights   INTEGER[] NOT NULL        -- of the subtree below each node of the path; strictly rising
);

CREATE TABLE IF NOT EXISTS kanon_private.hierarchy_uses (
    view_name VARCHAR NOT NULL,
    hierarchy VARCHAR NOT NULL
);

CREATE OR REPLACE VIEW kanon.hierarchies AS
SELECT stored.hierarchy, stored.kind, stored.leaves, stored.nodes, stored.height
FROM kanon_private.hierarchies AS stored;

CREATE OR REPLACE VIEW kanon.hierarchy_nodes AS
SELECT
    leaves.hierarchy,
    leaves.leaf,
    unnest(system.main.range(system.main.len(leaves.path)))::INTEGER AS level,
    unnest(leaves.path) AS ancestor
FROM kanon_private.hierarchy_leaves AS leaves;
