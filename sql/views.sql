-- What the owner looks at, where no work is needed.
CREATE OR REPLACE VIEW kanon.releases AS
SELECT view.name AS view_name, release.* EXCLUDE (view_number)
FROM kanon_private.releases AS release
JOIN kanon_private.masked_views AS view USING (view_number)
WHERE view.dropped_at IS NULL
ORDER BY view.name, release.release;

CREATE OR REPLACE VIEW kanon.masked_views AS
SELECT view.name, settings.* EXCLUDE (view_number, settings_version), view.settings_version,
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
SELECT * FROM query(
    'SELECT * FROM kanon_released."' || replace(view_name, '"', '""') || '" WHERE CASE WHEN EXISTS ('
    || 'SELECT 1 FROM kanon.releases WHERE lower(view_name) = lower(''' || replace(view_name, '''', '''''')
    || ''') AND release = ' || CAST(release_number AS BIGINT)
    || ') THEN true ELSE error(''masked view ' || replace(view_name, '''', '''''') || ' has no release ' || CAST(release_number AS BIGINT)
    || ': FROM kanon.releases lists them'') END');
