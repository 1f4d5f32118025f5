"""The command kanon-duck: an interactive prompt, scripts, and how results look."""
