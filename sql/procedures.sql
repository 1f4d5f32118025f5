-- The procedures: one macro per verb. Each passes its options by name to the Python side and declares the
-- columns it returns. CALL kanon.verb(...) for what changes something, FROM kanon.verb(...) for what reads.

-- Macros are read where they are called: functions are named with DuckDB's own schema, so that no macro of the
-- caller's takes their place.

-- Whoever imports an exported database makes these macros where there is no Python function. DuckDB binds a macro when
-- it is made, but no further than to an argument that stands bare in a list of VALUES. So every verb hands over one of
-- its arguments as it is, and that is read before the function is named.

-- Starts the work, asks until it is done (so that an interrupt of the statement reaches it), ends it.
-- The text of a query() is put together once, when the statement is planned: a call has one token, also where it
-- stands beside a table whose rows are its arguments. By that the Python side knows such a call, and refuses it.
CREATE OR REPLACE MACRO kanon_private.run(verb, arguments, bare) AS TABLE
WITH RECURSIVE issued AS (
    SELECT issue.token, CAST(system.main.json_object('verb', called.verb, 'catalog', system.main.current_database(),
               'schema', system.main.current_schema(), 'connection', system.main.current_connection_id(),
               'arguments', called.arguments) AS VARCHAR) AS request
    FROM (VALUES (verb, arguments, bare)) AS called(verb, arguments, bare),
         system.main.query('SELECT ''' || CAST(system.main.uuid() AS VARCHAR) || ''' AS token') AS issue
), work(token, state) AS (
    SELECT kanon_duck_is_not_installed_on_this_connection('start', token, request), CAST(NULL AS VARCHAR)
    FROM issued
    UNION ALL
    SELECT token, kanon_duck_is_not_installed_on_this_connection('advance', token, NULL) FROM work WHERE state IS NULL
), ending AS MATERIALIZED (
    SELECT kanon_duck_is_not_installed_on_this_connection('finish', token, NULL) AS outcome FROM work WHERE state IS NOT NULL
)
SELECT CASE WHEN system.main.json_extract_string(outcome, 'error') IS NULL THEN system.main.json_extract(outcome, 'rows')
            ELSE system.main.error(system.main.json_extract_string(outcome, 'error')) END AS result
FROM ending;

-- What every procedure returns that makes a release: a row of kanon.releases.
CREATE OR REPLACE MACRO kanon_private.release_row() AS
    '[{"view_name": "VARCHAR", "release": "BIGINT", "released_at": "TIMESTAMP", "cause": "VARCHAR", "rows":
     "BIGINT", "classes": "BIGINT", "waiting": "BIGINT", "suppressed": "BIGINT", "inserted": "BIGINT",
     "updated": "BIGINT", "deleted": "BIGINT", "moved": "BIGINT", "counterfeits": "BIGINT", "k_achieved":
     "BIGINT", "l_achieved": "BIGINT", "max_frequency": "DOUBLE", "information_loss": "DOUBLE",
     "information_loss_per_row": "DOUBLE", "discernibility": "HUGEINT", "average_class_size": "DOUBLE",
     "vulnerable_rows": "BIGINT", "method": "VARCHAR", "settings_version": "INTEGER", "not_released":
     "VARCHAR[]", "warnings": "VARCHAR[]", "seconds": "DOUBLE"}]';

CREATE OR REPLACE MACRO kanon.create_hierarchy(hierarchy, prefix := NULL, levels := NULL, edges := NULL, intervals
    := NULL, dates := NULL) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"hierarchy": "VARCHAR", "kind": "VARCHAR", "leaves": "BIGINT", "nodes": "BIGINT", "height": "BIGINT"}]'), recursive := true)
FROM kanon_private.run('create_hierarchy',
    system.main.json_object('hierarchy', hierarchy, 'prefix', prefix, 'levels', levels, 'edges', edges, 'intervals',
     intervals, 'dates', dates), hierarchy);

CREATE OR REPLACE MACRO kanon.extend_hierarchy(hierarchy, levels := NULL, edges := NULL) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"hierarchy": "VARCHAR", "kind": "VARCHAR", "leaves": "BIGINT", "nodes": "BIGINT", "height": "BIGINT"}]'), recursive := true)
FROM kanon_private.run('extend_hierarchy',
    system.main.json_object('hierarchy', hierarchy, 'levels', levels, 'edges', edges), hierarchy);

CREATE OR REPLACE MACRO kanon.drop_hierarchy(hierarchy) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"hierarchy": "VARCHAR", "kind": "VARCHAR", "leaves": "BIGINT", "nodes": "BIGINT", "height": "BIGINT"}]'), recursive := true)
FROM kanon_private.run('drop_hierarchy',
    system.main.json_object('hierarchy', hierarchy), hierarchy);

CREATE OR REPLACE MACRO kanon.create_masked_view(view_name, source := NULL, key := NULL, quasi_identifiers := NULL,
    sensitive := NULL, keep := NULL, k := NULL, l := NULL, entropy_l := NULL, recursive_cl := NULL, p := NULL, alpha
    := NULL, t := NULL, protected := NULL, method := NULL, effort := NULL, method_options := NULL, maintenance :=
    NULL, secure := NULL, on_delete := NULL, reserve := NULL, patience := NULL, capture := NULL, max_suppression := NULL, weights :=
    NULL, unit := NULL, seed := NULL, allow_unsafe_keep := NULL, independent := NULL, derive_from := NULL, new_series := NULL) AS TABLE
SELECT unnest(system.main.from_json(result, kanon_private.release_row()), recursive := true)
FROM kanon_private.run('create_masked_view',
    system.main.json_object('view_name', view_name, 'source', source, 'key', key, 'quasi_identifiers', quasi_identifiers,
     'sensitive', sensitive, 'keep', keep, 'k', k, 'l', l, 'entropy_l', entropy_l, 'recursive_cl',
     recursive_cl, 'p', p, 'alpha', alpha, 't', t, 'protected', protected, 'method', method, 'effort', effort,
     'method_options', method_options, 'maintenance', maintenance, 'secure', secure, 'on_delete', on_delete,
     'reserve', reserve, 'patience', patience, 'capture', capture, 'max_suppression', max_suppression, 'weights', weights, 'unit',
     unit, 'seed', seed, 'allow_unsafe_keep', allow_unsafe_keep, 'independent', independent, 'derive_from',
     derive_from, 'new_series', new_series), view_name);

CREATE OR REPLACE MACRO kanon.rebuild(view_name, source := NULL, key := NULL, quasi_identifiers := NULL,
    sensitive := NULL, keep := NULL, k := NULL, l := NULL, entropy_l := NULL, recursive_cl := NULL, p := NULL, alpha
    := NULL, t := NULL, protected := NULL, method := NULL, effort := NULL, method_options := NULL, maintenance :=
    NULL, secure := NULL, on_delete := NULL, reserve := NULL, patience := NULL, capture := NULL, max_suppression := NULL, weights :=
    NULL, unit := NULL, seed := NULL, allow_unsafe_keep := NULL, independent := NULL, derive_from := NULL, new_series := NULL, dry_run := NULL) AS TABLE
SELECT unnest(system.main.from_json(result, kanon_private.release_row()), recursive := true)
FROM kanon_private.run('rebuild',
    system.main.json_object('view_name', view_name, 'source', source, 'key', key, 'quasi_identifiers', quasi_identifiers,
     'sensitive', sensitive, 'keep', keep, 'k', k, 'l', l, 'entropy_l', entropy_l, 'recursive_cl',
     recursive_cl, 'p', p, 'alpha', alpha, 't', t, 'protected', protected, 'method', method, 'effort', effort,
     'method_options', method_options, 'maintenance', maintenance, 'secure', secure, 'on_delete', on_delete,
     'reserve', reserve, 'patience', patience, 'capture', capture, 'max_suppression', max_suppression, 'weights', weights, 'unit',
     unit, 'seed', seed, 'allow_unsafe_keep', allow_unsafe_keep, 'independent', independent, 'derive_from',
     derive_from, 'new_series', new_series, 'dry_run', dry_run), view_name);

CREATE OR REPLACE MACRO kanon.refresh(view_name, dry_run := NULL, publish := NULL) AS TABLE
SELECT unnest(system.main.from_json(result, kanon_private.release_row()), recursive := true)
FROM kanon_private.run('refresh',
    system.main.json_object('view_name', view_name, 'dry_run', dry_run, 'publish', publish), view_name);

-- It has no argument that could keep it from being bound where it is made: so the planner is asked for the function.
CREATE OR REPLACE MACRO kanon.refresh_all() AS TABLE
SELECT unnest(system.main.from_json(result, kanon_private.release_row()), recursive := true)
FROM system.main.query(CASE
    WHEN system.main.json_extract_string(system.main.json_serialize_plan(
        'SELECT kanon_duck_is_not_installed_on_this_connection(NULL, NULL, NULL)'), 'error_type') = 'catalog'
    THEN 'SELECT CAST(system.main.error(''kanon_duck is not installed on this connection'') AS JSON) AS result'
    ELSE 'FROM kanon_private.run(''refresh_all'', system.main.json_object(), NULL)'
END);

-- What every procedure returns that publishes: rows of kanon.publications, and more.
CREATE OR REPLACE MACRO kanon_private.publication_row() AS
    '[{"view_name": "VARCHAR", "target": "VARCHAR", "kind": "VARCHAR", "release": "BIGINT", "published_at": "TIMESTAMP",
     "stale": "BOOLEAN", "rows": "BIGINT", "warnings": "VARCHAR[]", "seconds": "DOUBLE"}]';

CREATE OR REPLACE MACRO kanon.publish(view_name, target, releases := NULL, storage_version := NULL) AS TABLE
SELECT unnest(system.main.from_json(result, kanon_private.publication_row()), recursive := true)
FROM kanon_private.run('publish',
    system.main.json_object('view_name', view_name, 'target', target, 'releases', releases, 'storage_version',
     storage_version), view_name);

CREATE OR REPLACE MACRO kanon.publish_all() AS TABLE
SELECT unnest(system.main.from_json(result, kanon_private.publication_row()), recursive := true)
FROM system.main.query(CASE
    WHEN system.main.json_extract_string(system.main.json_serialize_plan(
        'SELECT kanon_duck_is_not_installed_on_this_connection(NULL, NULL, NULL)'), 'error_type') = 'catalog'
    THEN 'SELECT CAST(system.main.error(''kanon_duck is not installed on this connection'') AS JSON) AS result'
    ELSE 'FROM kanon_private.run(''publish_all'', system.main.json_object(), NULL)'
END);

CREATE OR REPLACE MACRO kanon.optimize(view_name) AS TABLE
SELECT unnest(system.main.from_json(result, kanon_private.release_row()), recursive := true)
FROM kanon_private.run('optimize',
    system.main.json_object('view_name', view_name), view_name);

CREATE OR REPLACE MACRO kanon.pending(view_name) AS TABLE
SELECT unnest(system.main.from_json(result, '[{"change": "VARCHAR", "rows": "BIGINT"}]'), recursive := true)
FROM kanon_private.run('pending',
    system.main.json_object('view_name', view_name), view_name);

CREATE OR REPLACE MACRO kanon.waiting(view_name) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"key": "VARCHAR", "since_release": "BIGINT", "reason": "VARCHAR"}]'), recursive := true)
FROM kanon_private.run('waiting',
    system.main.json_object('view_name', view_name), view_name);

CREATE OR REPLACE MACRO kanon.forget(view_name, before_release := NULL, key := NULL) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"view_name": "VARCHAR", "first_release": "BIGINT", "forgotten_releases": "BIGINT", "forgotten_rows":
     "BIGINT", "file": "VARCHAR", "note": "VARCHAR"}]'), recursive := true)
FROM kanon_private.run('forget',
    system.main.json_object('view_name', view_name, 'before_release', before_release, 'key', key), view_name);

CREATE OR REPLACE MACRO kanon.drop_masked_view(view_name) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"view_name": "VARCHAR", "releases": "BIGINT"}]'), recursive := true)
FROM kanon_private.run('drop_masked_view',
    system.main.json_object('view_name', view_name), view_name);

CREATE OR REPLACE MACRO kanon.check(view_name, release := NULL, quasi_identifiers := NULL) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"release": "BIGINT", "requirement": "VARCHAR", "attribute": "VARCHAR", "required": "DOUBLE",
     "achieved": "DOUBLE", "violating_rows": "BIGINT", "passed": "BOOLEAN"}]'), recursive := true)
FROM kanon_private.run('check',
    system.main.json_object('view_name', view_name, 'release', release, 'quasi_identifiers', quasi_identifiers), view_name);

CREATE OR REPLACE MACRO kanon.quality(view_name) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"attribute": "VARCHAR", "kind": "VARCHAR", "information_loss": "DOUBLE", "information_loss_per_row":
     "DOUBLE", "distinct_values": "BIGINT", "root_share": "DOUBLE"}]'), recursive := true)
FROM kanon_private.run('quality',
    system.main.json_object('view_name', view_name), view_name);

CREATE OR REPLACE MACRO kanon.explain(view_name, key := NULL) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"key": "VARCHAR", "status": "VARCHAR", "class": "BIGINT", "class_rows": "BIGINT", "generalization":
     "VARCHAR", "reason": "VARCHAR"}]'), recursive := true)
FROM kanon_private.run('explain',
    system.main.json_object('view_name', view_name, 'key', key), view_name);

CREATE OR REPLACE MACRO kanon.certificates(view_name) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"release": "BIGINT", "key": "VARCHAR", "attribute": "VARCHAR", "values": "VARCHAR[]", "candidates": "BIGINT",
     "rule": "VARCHAR"}]'), recursive := true)
FROM kanon_private.run('certificates',
    system.main.json_object('view_name', view_name), view_name);

-- What is told of an inference channel.
CREATE OR REPLACE MACRO kanon_private.channel_row() AS
    '[{"kind": "VARCHAR", "from_release": "BIGINT", "to_release": "BIGINT", "attribute": "VARCHAR", "class":
     "VARCHAR", "victims": "BIGINT", "candidates": "BIGINT", "required": "BIGINT", "evidence": "VARCHAR", "compatibility":
     "VARCHAR[]", "keys": "VARCHAR[]"}]';

CREATE OR REPLACE MACRO kanon.audit(releases := NULL, population := NULL, key := NULL, quasi_identifiers := NULL,
    sensitive := NULL, keep := NULL, k := NULL, l := NULL) AS TABLE
SELECT unnest(system.main.from_json(result, kanon_private.channel_row()), recursive := true)
FROM kanon_private.run('audit',
    system.main.json_object('releases', releases, 'population', population, 'key', key, 'quasi_identifiers',
     quasi_identifiers, 'sensitive', sensitive, 'keep', keep, 'k', k, 'l', l), releases);

CREATE OR REPLACE MACRO kanon.inference_channels(view_name) AS TABLE
SELECT unnest(system.main.from_json(result, kanon_private.channel_row()), recursive := true)
FROM kanon_private.run('inference_channels',
    system.main.json_object('view_name', view_name), view_name);

CREATE OR REPLACE MACRO kanon.attack(view_name, victim := NULL, exact := NULL) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"release": "BIGINT", "class_rows": "BIGINT", "attribute": "VARCHAR", "possible_values": "VARCHAR[]",
     "probabilities": "DOUBLE[]", "narrowed_by": "VARCHAR"}]'), recursive := true)
FROM kanon_private.run('attack',
    system.main.json_object('view_name', view_name, 'victim', victim, 'exact', exact), view_name);

CREATE OR REPLACE MACRO kanon.compare(source, key := NULL, quasi_identifiers := NULL, sensitive := NULL, methods :=
    NULL, k := NULL, l := NULL, entropy_l := NULL, recursive_cl := NULL, p := NULL, alpha := NULL, t := NULL,
    protected := NULL, effort := NULL, method_options := NULL, max_suppression := NULL, weights := NULL, unit :=
    NULL, seed := NULL) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"method": "VARCHAR", "k": "BIGINT", "l": "BIGINT", "p": "BIGINT", "alpha": "DOUBLE", "t": "DOUBLE",
     "rows": "BIGINT", "classes": "BIGINT", "suppressed": "BIGINT", "information_loss": "DOUBLE",
     "information_loss_per_row": "DOUBLE", "discernibility": "HUGEINT", "average_class_size": "DOUBLE",
     "query_error": "DOUBLE", "seconds": "DOUBLE", "peak_memory_bytes": "BIGINT", "error": "VARCHAR",
     "entropy_l": "DOUBLE", "recursive_cl": "DOUBLE[]"}]'), recursive := true)
FROM kanon_private.run('compare',
    system.main.json_object('source', source, 'key', key, 'quasi_identifiers', quasi_identifiers, 'sensitive',
     sensitive, 'methods', methods, 'k', k, 'l', l, 'entropy_l', entropy_l, 'recursive_cl', recursive_cl, 'p', p,
     'alpha', alpha, 't', t, 'protected', protected, 'effort', effort, 'method_options', method_options,
     'max_suppression', max_suppression, 'weights', weights, 'unit', unit, 'seed', seed), source);

CREATE OR REPLACE MACRO kanon.risk(view_name, population := NULL) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"measure": "VARCHAR", "value": "DOUBLE", "rows": "BIGINT"}]'), recursive := true)
FROM kanon_private.run('risk',
    system.main.json_object('view_name', view_name, 'population', population), view_name);

CREATE OR REPLACE MACRO kanon.import_database(folder) AS TABLE
SELECT unnest(system.main.from_json(result,
    '[{"folder": "VARCHAR", "masked_views": "BIGINT", "hierarchies": "BIGINT"}]'), recursive := true)
FROM kanon_private.run('import_database',
    system.main.json_object('folder', folder), folder);
