{# Makes the masked view in the first run. Later runs find it, and the refresh after this hook brings it up to date. #}
{% macro mask_patients() %}
    {% set source = ref("patients") %}
    {% if execute %}
        {% if run_query("SELECT name FROM kanon.masked_views WHERE name = 'patients_masked'").rows | length == 0 %}
            CALL kanon.create_masked_view('patients_masked',
                source => '{{ source }}',
                key => 'patient_id',
                quasi_identifiers => {'age': 'numeric', 'zip': 'flat'},
                sensitive => ['diagnosis'],
                k => 5,
                l => 2,
                on_delete => 'counterfeit')
        {% endif %}
    {% endif %}
{% endmacro %}
