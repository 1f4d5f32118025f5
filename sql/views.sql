-- What the owner looks at, where no work is needed.
CREATE OR REPLACE VIEW kanon.releases AS
SELECT view.name AS view_name, release.* EXCLUDE (view_number)
FROM kanon_private.releases AS release
JOIN kanon_private.masked_views AS view USING (view_number)
WHERE view.dropped_at IS NULL
ORDER BY view.name, release.release;

-- A masked view that readers do not see, because somebody has dropped, renamed or replaced it, is broken. That is looked
-- up when somebody asks; of a database that is attached, and not the current one, nothing is said.
-- No view of ours reads another: EXPORT DATABASE writes views in the order of their names, so IMPORT would fail.
CREATE OR REPLACE VIEW kanon.masked_views AS
SELECT view.name, settings.* EXCLUDE (view_number, settings_version, arguments, caller_schema, column_types, domains),
       view.settings_version,
       latest.release, latest.released_at, latest.rows,
       view.waiting, CASE WHEN unseen.reason IS NULL THEN view.status ELSE 'broken' END AS status,
       CASE WHEN unseen.reason IS NULL THEN view.reason ELSE system.main.concat_ws('; ', unseen.reason, view.reason) END AS reason,
       view.checked_at, view.refresh_recommended
FROM kanon_private.masked_views AS view
JOIN kanon_private.settings AS settings USING (view_number, settings_version)
JOIN (FROM kanon_private.releases SELECT view_number, system.main.max(release) AS release,
             system.main.max_by(released_at, release) AS released_at, system.main.max_by(rows, release) AS rows
      GROUP BY view_number) AS latest USING (view_number)
LEFT JOIN (
    SELECT view_number, 'the view was dropped, renamed or replaced by somebody: kanon.refresh puts it back where its name is free' AS reason
    FROM kanon_private.masked_views AS masked
    WHERE EXISTS (
        FROM system.main.duckdb_schemas()
        WHERE database_name = system.main.current_database() AND schema_name = 'kanon_released'
    ) AND NOT EXISTS (
        FROM system.main.duckdb_views() AS shown
        WHERE database_name = system.main.current_database()
            AND system.main.lower(shown.schema_name) = system.main.lower(masked.schema_name)
            AND system.main.lower(shown.view_name) = system.main.lower(masked.view_name)
            AND system.main.contains(sql, 'kanon_released')
    )
) AS unseen ON unseen.view_number = view.view_number
WHERE view.dropped_at IS NULL
ORDER BY view.name;

-- Where masked views were published. What is stale lacks a release that the view has.
CREATE OR REPLACE VIEW kanon.publications AS
SELECT view.name AS view_name, published.target, published.kind, published.release, published.published_at,
       published.release < latest.release AS stale
FROM kanon_private.publications AS published
JOIN kanon_private.masked_views AS view USING (view_number)
JOIN (
    FROM kanon_private.releases SELECT view_number, system.main.max(release) AS release GROUP BY view_number
) AS latest USING (view_number)
WHERE view.dropped_at IS NULL
ORDER BY published.target, published.place;

-- A text between quotes of one kind; such a quote inside is doubled.
CREATE OR REPLACE MACRO kanon_private.quoted(text, mark) AS mark || replace(text, mark, mark || mark) || mark;

-- Releases that can still be read.
CREATE OR REPLACE VIEW kanon_private.readable_releases AS
SELECT view.name AS view_name, release.release
FROM kanon_private.masked_views AS view
JOIN kanon_private.releases AS release USING (view_number)
WHERE view.dropped_at IS NULL AND release.release >= view.first_release;

-- A release as it was, row for row: kanon.as_of('patients_masked', 3). The name is that of kanon.masked_views. The rows are
-- sorted by what they show: as they are stored, rows that later releases no longer have stand last.
-- The text for query() is put together before any table is read. Whether there is a table of that name is known
-- by then only to the planner, which json_serialize_plan asks.
CREATE OR REPLACE MACRO kanon.as_of(view_name, release_number) AS TABLE
SELECT * FROM query(CASE
    WHEN json_extract_string(json_serialize_plan('FROM kanon_released.' || kanon_private.quoted(view_name, '"')), 'error_type') = 'catalog'
    THEN 'SELECT NULL WHERE CAST(error('
        || kanon_private.quoted('there is no masked view ' || view_name || ': FROM kanon.masked_views lists them', '''')
        || ') AS BOOLEAN)'
    ELSE 'SELECT * EXCLUDE (kanon_class, kanon_from_release, kanon_to_release) FROM ('
        || 'SELECT *, NULL AS kanon_to_release FROM kanon_released.' || kanon_private.quoted(view_name, '"')
        || ' UNION ALL BY NAME FROM kanon_history.' || kanon_private.quoted(view_name, '"')
        || ' JOIN kanon_history_classes.' || kanon_private.quoted(view_name, '"') || ' USING (kanon_class, kanon_from_release)) WHERE CASE WHEN EXISTS ('
        || 'FROM kanon_private.readable_releases WHERE lower(view_name) = lower(' || kanon_private.quoted(view_name, '''')
        || ') AND release = ' || CAST(release_number AS BIGINT)
        || ') THEN kanon_from_release <= ' || CAST(release_number AS BIGINT)
        || ' AND coalesce(kanon_to_release > ' || CAST(release_number AS BIGINT) || ', true) ELSE error('
        || kanon_private.quoted('masked view ' || view_name || ' has no release ' || CAST(release_number AS BIGINT)
                                || ' to read: there are releases ', '''')
        || ' || (FROM kanon_private.readable_releases SELECT concat(min(release), '' to '', max(release)) '
        || 'WHERE lower(view_name) = lower(' || kanon_private.quoted(view_name, '''') || '))) END ORDER BY ALL'
END);
