-- Reader functions: plain SQL over the tables of hierarchies.sql, for any DuckDB client, without Python.
--
-- An argument of a macro is an expression of the caller's and may name any column. Inside a subquery it
-- therefore stands only in a VALUES list that comes first in FROM, where no column of ours can be meant.

CREATE OR REPLACE MACRO kanon_private.shortest_number(number) AS CASE
    WHEN number IN ('-0', '-0.0') THEN '0'
    WHEN contains(number, '.') AND NOT contains(number, 'e') THEN rtrim(rtrim(number, '0'), '.')
    ELSE number
END;

-- Text with an offset, as a TIMESTAMP in UTC; a plain cast to TIMESTAMP would drop the offset.
CREATE OR REPLACE MACRO kanon_private.moment_in_utc(moment) AS
    make_timestamp(epoch_us(TRY_CAST(moment AS TIMESTAMP WITH TIME ZONE)));

-- The text by which data and leaves are matched: 34, 34.0 and '34' are all '34'; zoned times are in UTC.
CREATE OR REPLACE MACRO kanon_private.canonical_text(value) AS CASE
    WHEN typeof(value) IN ('FLOAT', 'DOUBLE') OR starts_with(typeof(value), 'DECIMAL')
        THEN kanon_private.shortest_number(CAST(value AS VARCHAR))
    WHEN typeof(value) = 'TIMESTAMP WITH TIME ZONE'
        THEN kanon_private.moment_in_utc(CAST(value AS VARCHAR))::VARCHAR || '+00'
    ELSE CAST(value AS VARCHAR)
END;

-- Labels of rule hierarchies. NULL means: the rule cannot take this text. Beyond the root stands the root.

CREATE OR REPLACE MACRO kanon_private.prefix_label(leaf, size, level) AS CASE
    WHEN length(rtrim(leaf, ' ')) > size THEN NULL
    WHEN leaf = '*' OR (ends_with(leaf, '*') AND length(leaf) = size) THEN NULL     -- an inner label
    WHEN level <= 0 THEN rtrim(leaf, ' ')
    WHEN level >= size THEN '*'
    ELSE left(rpad(leaf, size, ' '), size - level) || repeat('*', level)
END;

-- `list_transform([x], lambda name: ...)[1]` gives a value a name, where a macro uses it more than once.

-- Intervals are counted in whole units of the last decimal of the widths, so that they are exact. Numbers
-- of more than 18 digits (15 with decimals) are not taken.
CREATE OR REPLACE MACRO kanon_private.units_below(leaf, decimals) AS list_transform(
    [CASE
        WHEN regexp_full_match(leaf, '-?[0-9]+([.][0-9]*)?') THEN leaf
        ELSE CAST(TRY_CAST(leaf AS DECIMAL(38, 18)) AS VARCHAR)
    END],
    lambda number: CASE
        WHEN length(ltrim(split_part(number, '.', 1), '-')) + decimals <= CASE decimals WHEN 0 THEN 18 ELSE 15 END
            THEN CAST(split_part(number, '.', 1) || rpad(split_part(number, '.', 2), decimals, '0') AS BIGINT)
                - CASE
                    WHEN starts_with(number, '-') AND ltrim(substr(split_part(number, '.', 2), decimals + 1), '0') <> ''
                        THEN 1
                    ELSE 0
                END
    END)[1];

CREATE OR REPLACE MACRO kanon_private.units_as_number(units, decimals) AS CASE
    WHEN decimals = 0 THEN CAST(units AS VARCHAR)
    ELSE kanon_private.shortest_number(CAST(units / pow(10, decimals) AS VARCHAR))
END;

CREATE OR REPLACE MACRO kanon_private.interval_label(leaf, widths, decimals, level) AS list_transform(
    [kanon_private.units_below(leaf, decimals)],
    lambda units: CASE
        WHEN units IS NULL THEN NULL
        WHEN level <= 0 THEN leaf
        WHEN level > len(widths) THEN '*'
        ELSE list_transform(
            [units - (units % widths[level] + widths[level]) % widths[level]],
            lambda low: '[' || kanon_private.units_as_number(low, decimals) || ', '
                || kanon_private.units_as_number(low + widths[level], decimals) || ')')[1]
    END)[1];

CREATE OR REPLACE MACRO kanon_private.date_moment(leaf) AS CASE
    WHEN regexp_matches(leaf, ':.*[+-]') THEN kanon_private.moment_in_utc(leaf)
    ELSE TRY_CAST(leaf AS TIMESTAMP)
END;

CREATE OR REPLACE MACRO kanon_private.date_label(leaf, periods, level) AS list_transform(
    [kanon_private.date_moment(leaf)],
    lambda moment: CASE
        WHEN coalesce(year(moment) NOT BETWEEN 1 AND 9999, true) THEN NULL
        WHEN level > len(periods) THEN '*'
        WHEN level <= 0 THEN left(CAST(moment AS VARCHAR), 10)
        WHEN periods[level] = 'month' THEN left(CAST(moment AS VARCHAR), 7)
        WHEN periods[level] = 'quarter' THEN left(CAST(moment AS VARCHAR), 4) || '-Q' || quarter(moment)
        WHEN periods[level] = 'year' THEN left(CAST(moment AS VARCHAR), 4)
        WHEN periods[level] = 'decade' THEN left(CAST(moment AS VARCHAR), 3) || '0s'
    END)[1];

CREATE OR REPLACE MACRO kanon_private.rule_label(kind, height, widths, decimals, periods, leaf, level) AS CASE kind
    WHEN 'prefix' THEN kanon_private.prefix_label(leaf, height, level)
    WHEN 'intervals' THEN  kanon_private.interval_label(leaf, widths, decimals, level)
    WHEN 'dates' THEN kanon_private.date_label(leaf, periods, level)
END;

-- What is left of a value when blanks and Unicode form are set aside.
CREATE OR REPLACE MACRO kanon_private.bare_text(leaf) AS
    trim(regexp_replace(nfc_normalize(leaf), '[\s\p{Z}]+', ' ', 'g'));

-- Is the hierarchy there?
CREATE OR REPLACE MACRO kanon_private.hierarchy_exists(hierarchy) AS (
    SELECT count(stored.hierarchy) > 0
    FROM (VALUES (lower(hierarchy))) AS asked(hierarchy)
    JOIN kanon_private.hierarchies AS stored ON lower(stored.hierarchy) = asked.hierarchy
);

CREATE OR REPLACE MACRO kanon_private.no_leaf(reader, hierarchy, leaf) AS error(CASE
    WHEN lower(hierarchy) = 'flat' OR kanon_private.hierarchy_exists(hierarchy)
        THEN reader || ': hierarchy ''' || hierarchy || ''' has no leaf ''' || leaf || ''''
    ELSE reader || ': there is no hierarchy ''' || hierarchy || '''; FROM kanon.hierarchies lists them'
END);

-- The label of a value at a level of a hierarchy: level 0 is the value, beyond the root stands the root.
CREATE OR REPLACE MACRO kanon.generalize(hierarchy, value, level) AS CASE
    WHEN hierarchy IS NULL OR value IS NULL OR level IS NULL THEN NULL
    WHEN level < 0 THEN error('kanon.generalize: level ' || level || ' is negative; level 0 is the value itself')
    ELSE coalesce(
        CASE WHEN lower(hierarchy) = 'flat' AND kanon_private.canonical_text(value) <> '*'
            THEN CASE WHEN level = 0 THEN kanon_private.canonical_text(value) ELSE '*' END
        END,
        (
            SELECT CASE
                WHEN stored.kind IN ('levels', 'edges') THEN leaves.path[least(asked.level + 1, len(leaves.path))]
                ELSE kanon_private.rule_label(
                    stored.kind, stored.height, stored.widths, stored.decimals, stored.periods, asked.leaf, asked.level)
            END
            FROM (VALUES (lower(hierarchy), kanon_private.canonical_text(value), CAST(level AS INTEGER)))
                AS asked(hierarchy, leaf, level)
            JOIN kanon_private.hierarchies AS stored ON lower(stored.hierarchy) = asked.hierarchy
            LEFT JOIN kanon_private.hierarchy_leaves AS leaves
                ON leaves.hierarchy = stored.hierarchy AND leaves.leaf = asked.leaf
        ),
        kanon_private.no_leaf('kanon.generalize', hierarchy, kanon_private.canonical_text(value))
    )
END;

-- The leaf with the smallest and the one with the largest position span all the others, so where their
-- paths first meet is the lowest common ancestor of all. NULL when a leaf is missing, or for a rule.
CREATE OR REPLACE MACRO kanon_private.tree_ancestor(hierarchy, leaves) AS (
    SELECT list_filter(span.first_path, lambda label: list_contains(span.last_path, label))[1]
    FROM (
        SELECT
            arg_min(stored.path, stored.position) AS first_path,
            arg_max(stored.path, stored.position) AS last_path,
            count(*) = any_value(len(asked.leaves)) AS complete
        FROM (VALUES (lower(hierarchy), leaves)) AS asked(hierarchy, leaves), unnest(asked.leaves) AS listed(leaf)
        JOIN kanon_private.hierarchy_leaves AS stored ON stored.leaf = listed.leaf
        WHERE lower(stored.hierarchy) = asked.hierarchy
    ) AS span
    WHERE span.complete
);

-- The label at the lowest level where all values have the same one. NULL when the rule cannot take a value.
CREATE OR REPLACE MACRO kanon_private.rule_ancestor(hierarchy, leaves) AS (
    SELECT list_filter(
        list_transform(range(stored.height + 1), lambda level: list_transform(asked.leaves, lambda leaf:
            kanon_private.rule_label(
                stored.kind, stored.height, stored.widths, stored.decimals, stored.periods, leaf, CAST(level AS INTEGER)))),
        lambda labels: list_count(labels) = len(labels) AND list_unique(labels) = 1
    )[1][1]
    FROM (VALUES (lower(hierarchy), leaves)) AS asked(hierarchy, leaves)
    JOIN kanon_private.hierarchies AS stored ON lower(stored.hierarchy) = asked.hierarchy
    WHERE stored.kind NOT IN ('levels', 'edges')
);

CREATE OR REPLACE MACRO kanon_private.ancestor_of_leaves(hierarchy, leaves) AS CASE
    WHEN list_count(leaves) = 0 THEN NULL
    WHEN list_count(leaves) < len(leaves) THEN '*'
    ELSE coalesce(
        CASE WHEN lower(hierarchy) = 'flat' AND NOT list_contains(leaves, '*')
            THEN CASE WHEN list_unique(leaves) = 1 THEN leaves[1] ELSE '*' END
        END,
        kanon_private.tree_ancestor(hierarchy, leaves),
        kanon_private.rule_ancestor(hierarchy, leaves),
        kanon_private.no_leaf('kanon.common_ancestor', hierarchy, array_to_string(leaves, ''' or '''))
    )
END;

-- The label of the lowest common ancestor of a list of values. NULL is a value of its own: a list of
-- NULLs (or an empty one) gives NULL, NULL among values gives '*'.
CREATE OR REPLACE MACRO kanon.common_ancestor(hierarchy, list) AS
    kanon_private.ancestor_of_leaves(
        hierarchy, CAST(list_transform(list, lambda value: kanon_private.canonical_text(value)) AS VARCHAR[]));

-- May a released label stand for this value? '*' and the root stand for all, NULL for NULL alone, any
-- other label for itself and for what lies below it.
CREATE OR REPLACE MACRO kanon.covers(hierarchy, label, value) AS CASE
    WHEN hierarchy IS NULL THEN NULL
    WHEN lower(hierarchy) <> 'flat' AND NOT kanon_private.hierarchy_exists(hierarchy)
        THEN error('kanon.covers: there is no hierarchy ''' || hierarchy || '''; FROM kanon.hierarchies lists them')
    WHEN label IS NULL THEN value IS NULL
    WHEN CAST(label AS VARCHAR) IN ('*', kanon_private.canonical_text(value)) THEN true
    ELSE coalesce(
        (
            SELECT asked.label = stored.root OR CASE
                WHEN stored.kind IN ('levels', 'edges') THEN list_contains(leaves.path, asked.label)
                ELSE list_contains(
                    list_transform(range(stored.height), lambda level: kanon_private.rule_label(
                        stored.kind, stored.height, stored.widths, stored.decimals, stored.periods, asked.leaf,
                        CAST(level AS INTEGER))),
                    asked.label)
            END
            FROM (VALUES (lower(hierarchy), CAST(label AS VARCHAR), kanon_private.canonical_text(value)))
                AS asked(hierarchy, label, leaf)
            JOIN kanon_private.hierarchies AS stored ON lower(stored.hierarchy) = asked.hierarchy
            LEFT JOIN kanon_private.hierarchy_leaves AS leaves
                ON leaves.hierarchy = stored.hierarchy AND leaves.leaf = asked.leaf
        ),
        false)
END;

CREATE OR REPLACE MACRO kanon_private.half_difference(low, high) AS CASE
    WHEN (low < 0) = (high < 0) THEN CAST(high - low AS DOUBLE) / 2
    ELSE CAST(high AS DOUBLE) / 2 - CAST(low AS DOUBLE) / 2
END;

CREATE OR REPLACE MACRO kanon_private.fraction(number) AS
    CAST((CASE WHEN starts_with(number, '-') THEN '-0.' ELSE '0.' END) || split_part(number, '.', 2) || '0' AS DOUBLE);

-- Half the distance from low to high, as DOUBLE: half, so that no distance between doubles overflows.
-- Subtraction in the type's own arithmetic loses nothing where the two are close; with opposite signs it
-- could overflow, but then doubles lose nothing either.
CREATE OR REPLACE MACRO kanon_private.half_distance(low, high) AS CASE
    WHEN typeof(low) = 'BOOLEAN' THEN (CAST(CAST(high AS VARCHAR) AS BOOLEAN)::INTEGER
                                       - CAST(CAST(low AS VARCHAR) AS BOOLEAN)::INTEGER) / 2
    WHEN typeof(low) = 'TIMESTAMP WITH TIME ZONE' THEN kanon_private.half_difference(
        epoch_us(kanon_private.moment_in_utc(CAST(low AS VARCHAR))),
        epoch_us(kanon_private.moment_in_utc(CAST(high AS VARCHAR))))
    WHEN typeof(low) = 'DATE' OR starts_with(typeof(low), 'TIMESTAMP') THEN kanon_private.half_difference(
        epoch_us(TRY_CAST(CAST(low AS VARCHAR) AS TIMESTAMP)),
        epoch_us(TRY_CAST(CAST(high AS VARCHAR) AS TIMESTAMP)))
    WHEN starts_with(typeof(low), 'DECIMAL') THEN
        kanon_private.half_difference(
            CAST(split_part(CAST(low AS VARCHAR), '.', 1) AS HUGEINT),
            CAST(split_part(CAST(high AS VARCHAR), '.', 1) AS HUGEINT))
        + (kanon_private.fraction(CAST(high AS VARCHAR)) - kanon_private.fraction(CAST(low AS VARCHAR))) / 2
    WHEN typeof(low) IN ('FLOAT', 'DOUBLE', 'UHUGEINT')
        THEN TRY_CAST(high AS DOUBLE) / 2 - TRY_CAST(low AS DOUBLE) / 2
    ELSE kanon_private.half_difference(TRY_CAST(low AS HUGEINT), TRY_CAST(high AS HUGEINT))
END;

-- The share of the interval [low, high] that lies inside [first, last]; a single point is inside or not.
CREATE OR REPLACE MACRO kanon.overlap(low, high, first, last) AS CASE
    WHEN low IS NULL OR high IS NULL OR first IS NULL OR last IS NULL THEN NULL
    WHEN greatest(low, first) > least(high, last) THEN 0.0::DOUBLE
    WHEN low = high THEN 1.0::DOUBLE
    ELSE least(1.0::DOUBLE,
        kanon_private.half_distance(greatest(low, first), least(high, last))
        / kanon_private.half_distance(low, high))
END;
