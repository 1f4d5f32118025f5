-- What the owner looks at, where no work is needed.
CREATE OR REPLACE VIEW kanon.releases AS
SELECT view.name AS view_name, release.* EXCLUDE (view_number)
FROM kanon_private.releases AS release
JOIN kanon_private.masked_views AS view USING (view_number)
WHERE view.dropped_at IS NULL
ORDER BY view.name, release.release;

CREATE OR REPLACE VIEW kanon.masked_views AS
SELECT view.name, settings.* EXCLUDE (view_number, settings_version, arguments, caller_schema, column_types, domains),
       view.settings_version,
       latest.release, latest.released_at, latest.rows,
       view.waiting, view.status, view.reason, view.checked_at, view.refresh_recommended
FROM kanon_private.masked_views AS view
JOIN kanon_private.settings AS settings USING (view_number, settings_version)
JOIN (FROM kanon_private.releases SELECT view_number, system.main.max(release) AS release,
             system.main.max_by(released_at, release) AS released_at, system.main.max_by(rows, release) AS rows
      GROUP BY view_number) AS latest USING (view_number)
WHERE view.dropped_at IS NULL
ORDER BY view.name;

-- A release as it was, row for row: kanon.as_of('patients_masked', 3). The name is that of kanon.masked_views.
CREATE OR REPLACE MACRO kanon.as_of(view_name, release_number) AS TABLE
SELECT * EXCLUDE (kanon_class, kanon_from_release, kanon_to_release) FROM query(
    'FROM (SELECT *, 9223372036854775807 AS kanon_to_release FROM kanon_released."' || replace(view_name, '"', '""')
    || '" UNION ALL FROM kanon_history."' || replace(view_name, '"', '""') || '") WHERE CASE WHEN EXISTS ('
    || 'SELECT 1 FROM kanon_private.masked_views AS view JOIN kanon_private.releases AS release USING (view_number) '
    || 'WHERE lower(view.name) = lower(''' || replace(view_name, '''', '''''') || ''') AND view.dropped_at IS NULL '
    || 'AND release.release >= view.first_release AND release.release = ' || CAST(release_number AS BIGINT)
    || ') THEN kanon_from_release <= ' || CAST(release_number AS BIGINT)
    || ' AND kanon_to_release > ' || CAST(release_number AS BIGINT)
    || ' ELSE error(''masked view ' || replace(view_name, '''', '''''') || ' has no release ' || CAST(release_number AS BIGINT)
    || ' to read: FROM kanon.releases lists them'') END');
