-- The patients of a day: every day some come and some leave. dbt builds the table anew in every run: it makes a table
-- beside the old one and swaps the names.
SELECT patient AS patient_id,
       (patient * 7919 % 61 + 20)::INTEGER AS age,
       (41000 + patient * 31 % 90)::VARCHAR AS zip,
       ['Asthma', 'Diabetes', 'Fracture', 'Migraine'][1 + patient * 7 % 4] AS diagnosis
FROM range(20 * {{ var('day', 1) }}, 1000 + 100 * {{ var('day', 1) }}) AS numbers(patient)
