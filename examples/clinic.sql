-- A clinic's table of 10,000 made-up patients (examples/patients.sql). It stays with its owner.
FROM patients ORDER BY patient_id LIMIT 5;

-- Postcodes are generalized by cutting digits from the right: 41076, 4107*, 410**, ...
CALL kanon.create_hierarchy('zip', prefix => 5);

-- Make the masked view: among those who agree in age, zip and gender, everybody hides with at least 4 others, and has
-- one of at least 2 diagnoses. Both hold also for whoever compares releases. When somebody leaves, a made-up row may keep
-- the place; the column weight tells what share of a class's rows are people.
CALL kanon.create_masked_view('patients_masked',
    source => 'patients',
    key => 'patient_id',
    quasi_identifiers => {'age': 'numeric', 'zip': 'zip', 'gender': 'flat'},
    sensitive => ['diagnosis'],
    k => 5,
    l => 2,
    on_delete => 'counterfeit');

-- What readers see: an ordinary view, without keys and names.
FROM patients_masked ORDER BY age_min, age_max, zip LIMIT 10;

-- Is it k-anonymous? This is counted again from what readers see.
FROM kanon.check('patients_masked');

-- What the masking cost: a loss of 0 keeps an attribute as it was, 1 hides it.
SELECT attribute, kind, round(information_loss_per_row, 3) AS loss_per_row, distinct_values,
       round(root_share, 3) AS root_share
FROM kanon.quality('patients_masked');

-- What do patients aged 30 to 59 have? A reader estimates it, the owner can count it.
WITH estimate AS (
    SELECT diagnosis, round(sum(weight * kanon.overlap(age_min, age_max, 30, 60)))::INTEGER AS estimated
    FROM patients_masked
    GROUP BY diagnosis
), truth AS (
    SELECT diagnosis, count(*) AS counted
    FROM patients
    WHERE age BETWEEN 30 AND 59
    GROUP BY diagnosis
)
FROM estimate JOIN truth USING (diagnosis) ORDER BY counted DESC, diagnosis;

-- The table changes. The view does not, until it is refreshed.
DELETE FROM patients WHERE patient_id % 100 = 0;
UPDATE patients SET age = age + 1 WHERE patient_id % 100 = 1;
INSERT INTO patients
SELECT patient_id + 10_000, name, age, zip, gender, diagnosis, admitted + 365 FROM patients WHERE patient_id % 100 = 2;
FROM kanon.pending('patients_masked');
CALL kanon.refresh('patients_masked');
FROM kanon.check('patients_masked');

-- Do the two releases together tell more than each alone? No row means no. What proves it is listed for everybody.
FROM kanon.inference_channels('patients_masked');
FROM kanon.certificates('patients_masked') LIMIT 3;
SELECT sum(weight) AS people, count(*) AS rows FROM patients_masked;

-- Earlier releases stay readable.
SELECT (SELECT count(*) FROM kanon.as_of('patients_masked', 1)) AS release_1,
       (SELECT count(*) FROM kanon.as_of('patients_masked', 2)) AS release_2;
