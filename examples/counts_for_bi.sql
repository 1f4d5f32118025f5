-- How a BI tool counts what a masked view shows only as ranges: with kanon.overlap for numbers, and kanon.covers for
-- categories. Both are plain SQL, and any DuckDB client can run them. Run this after examples/patients.sql and
-- examples/clinic.sql, in the same database.

-- How many patients are 30 to 39? A class [28, 35] counts with the part of it that lies in this range.
SELECT round(sum(weight * kanon.overlap(age_min, age_max, 30, 40))) AS estimated,
       (SELECT count(*) FROM patients WHERE age BETWEEN 30 AND 39) AS counted
FROM patients_masked;

-- How many live in the postcode area 4130? At least those whose label says so; at most also those whose label may stand
-- for a postcode of the area.
SELECT sum(weight) FILTER (zip LIKE '4130%') AS at_least,
       sum(weight) FILTER (zip LIKE '4130%' OR kanon.covers('zip', zip, '41300')) AS at_most,
       (SELECT count(*) FROM patients WHERE zip LIKE '4130%') AS counted
FROM patients_masked;

-- Which diagnoses do people of 60 and more have, in per cent of all of that age?
SELECT diagnosis, round(100 * sum(share) / sum(sum(share)) OVER (), 1) AS per_cent
FROM (SELECT diagnosis, weight * kanon.overlap(age_min, age_max, 60, 120) AS share FROM patients_masked)
GROUP BY diagnosis
HAVING sum(share) > 0
ORDER BY per_cent DESC;
