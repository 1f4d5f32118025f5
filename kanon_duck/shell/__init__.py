"""The command kanon-duck: the interactive shell, scripts, the demo, and how results look."""
