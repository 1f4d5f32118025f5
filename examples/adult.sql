-- Census data that anybody can fetch: adult.data of the UCI repository (Becker & Kohavi, 1996, CC BY 4.0), 32,561 people.
--   curl -O https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data
--   kanon-duck sql adult.duckdb -f examples/adult.sql

-- Complete rows only. Each gets a number, because a masked view knows people by a key.
CREATE TABLE adult AS
SELECT row_number() OVER () AS id, *
FROM read_csv('adult.data', header = false, auto_detect = false, delim = ', ', columns = {
    'age': 'INTEGER', 'workclass': 'VARCHAR', 'fnlwgt': 'INTEGER', 'education': 'VARCHAR', 'education_num': 'INTEGER',
    'marital_status': 'VARCHAR', 'occupation': 'VARCHAR', 'relationship': 'VARCHAR', 'race': 'VARCHAR',
    'sex': 'VARCHAR', 'capital_gain': 'INTEGER', 'capital_loss': 'INTEGER', 'hours_per_week': 'INTEGER',
    'native_country': 'VARCHAR', 'income': 'VARCHAR'})
WHERE '?' NOT IN (workclass, occupation, native_country);

-- Two categories get trees of their own: (child, parent). The others are flat: a value, or nothing.
CREATE TABLE workclass_tree AS FROM (VALUES
    ('Private', '*'), ('Self-employed', '*'), ('Government', '*'), ('Without pay', '*'),
    ('Self-emp-inc', 'Self-employed'), ('Self-emp-not-inc', 'Self-employed'),
    ('Federal-gov', 'Government'), ('Local-gov', 'Government'), ('State-gov', 'Government'),
    ('Without-pay', 'Without pay'), ('Never-worked', 'Without pay')) AS t(child, parent);
CREATE TABLE marital_tree AS FROM (VALUES
    ('Single', '*'), ('Married', '*'), ('Formerly married', '*'), ('Never-married', 'Single'),
    ('Married-AF-spouse', 'Married'), ('Married-civ-spouse', 'Married'), ('Married-spouse-absent', 'Married'),
    ('Divorced', 'Formerly married'), ('Separated', 'Formerly married'), ('Widowed', 'Formerly married'))
    AS t(child, parent);
CALL kanon.create_hierarchy('workclass', edges => 'FROM workclass_tree');
CALL kanon.create_hierarchy('marital_status', edges => 'FROM marital_tree');

-- Everybody hides with at least 4 others who agree in all of these, and has one of at least 2 occupations.
CALL kanon.create_masked_view('adult_masked',
    source => 'adult',
    key => 'id',
    quasi_identifiers => {'age': 'numeric', 'workclass': 'workclass', 'education_num': 'numeric',
                          'marital_status': 'marital_status', 'race': 'flat', 'sex': 'flat', 'native_country': 'flat'},
    sensitive => ['occupation'],
    k => 5,
    l => 2);
FROM adult_masked LIMIT 5;
FROM kanon.check('adult_masked');
SELECT attribute, kind, round(information_loss_per_row, 3) AS loss_per_row FROM kanon.quality('adult_masked');

-- Is what people ask still answered? Managers by age and sex, estimated from the masked view and counted in the table.
WITH estimate AS (
    SELECT sex, decade, round(sum(kanon.overlap(age_min, age_max, decade, decade + 10)))::INTEGER AS estimated
    FROM adult_masked, range(20, 60, 10) AS decades(decade)
    WHERE occupation = 'Exec-managerial' AND sex <> '*'
    GROUP BY ALL
), truth AS (
    SELECT sex, age // 10 * 10 AS decade, count(*) AS counted
    FROM adult
    WHERE occupation = 'Exec-managerial'
    GROUP BY ALL
)
FROM estimate JOIN truth USING (sex, decade) ORDER BY sex, decade;

-- A year passes: everybody is older, some leave, and some come.
UPDATE adult SET age = age + 1 WHERE id % 20 = 0;
DELETE FROM adult WHERE id % 100 = 1;
CALL kanon.refresh('adult_masked');
FROM kanon.check('adult_masked');
