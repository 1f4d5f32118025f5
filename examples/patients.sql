-- A clinic's table of 10,000 made-up patients, the same on every machine: illness goes with age, age with place.

-- A number in [0, 1) that depends on the patient and on what is drawn.
CREATE TEMP MACRO draw(patient, what) AS md5_number_lower(concat(what, patient)) / 18446744073709551616.0;

CREATE TEMP MACRO choose(choices, share) AS choices[1 + floor(share * len(choices))::INTEGER];

CREATE TABLE patients AS
WITH people AS (
    SELECT patient::INTEGER AS patient_id,
           choose(['female', 'male'], draw(patient, 'gender')) AS gender,
           floor(900 * draw(patient, 'zip') * draw(patient, 'town'))::INTEGER AS place,
           floor((60 + place / 24) * draw(patient, 'age'))::INTEGER AS age
    FROM range(1, 10001) AS numbers(patient)
)
SELECT patient_id,
       choose(CASE gender WHEN 'female' THEN ['Ada', 'Edith', 'Grace', 'Ida', 'Mary', 'Rosa']
                          ELSE ['Alan', 'Carl', 'Emil', 'Hugo', 'John', 'Otto'] END,
              draw(patient_id, 'name')) AS name,
       age,
       (41001 + place)::VARCHAR AS zip,
       gender,
       choose(CASE WHEN age < 18 THEN ['Asthma', 'Fracture', 'Influenza', 'Influenza', 'Otitis', 'Otitis']
                   WHEN age < 50 THEN ['Asthma', 'Depression', 'Diabetes', 'Fracture', 'Migraine']
                   ELSE ['Arthrosis', 'Cancer', 'Depression', 'Diabetes', 'Hypertension', 'Stroke'] END,
              draw(patient_id, 'diagnosis')) AS diagnosis,
       DATE '2025-01-01' + floor(365 * draw(patient_id, 'day'))::INTEGER AS admitted
FROM people
ORDER BY patient_id;
