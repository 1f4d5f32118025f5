-- A clinic in one file: it makes a table, a masked view and a file for readers, and then a night passes.
--   kanon-duck sql clinic.duckdb -f examples/clinic_at_night.sql
-- Afterwards readers open masked.duckdb with any DuckDB client, and anybody can verify it:
--   duckdb -readonly masked.duckdb < masked.duckdb.verify.sql

CREATE TABLE patients AS
SELECT patient AS patient_id,
       (20 + patient * 7919 % 61)::INTEGER AS age,
       (41000 + patient * 31 % 90)::VARCHAR AS zip,
       ['Asthma', 'Diabetes', 'Fracture', 'Migraine'][1 + patient * 7 % 4] AS diagnosis
FROM range(1, 1001) AS numbers(patient);

-- Once: how postcodes are generalized, what readers may see, and where they find it.
CALL kanon.create_hierarchy('zip', prefix => 5);
CALL kanon.create_masked_view('patients_masked',
    source => 'patients',
    key => 'patient_id',
    quasi_identifiers => {'age': 'numeric', 'zip': 'zip'},
    sensitive => ['diagnosis'],
    k => 5,
    l => 2,
    on_delete => 'counterfeit');
CALL kanon.publish('patients_masked', 'masked.duckdb');

-- During the day, the table changes.
DELETE FROM patients WHERE patient_id % 50 = 0;
INSERT INTO patients
SELECT patient_id + 1000, age, zip, diagnosis FROM patients WHERE patient_id % 20 = 1;

-- Every night: bring in the changes, give them to readers, and look whether all is well.
CALL kanon.refresh_all();
CALL kanon.publish_all();
FROM kanon.check('patients_masked');
SELECT name, status, reason, release, waiting FROM kanon.masked_views;
SELECT view_name, kind, release, stale FROM kanon.publications;
