"""Lets dbt call the procedures of kanon_duck: it installs them on the connection that dbt-duckdb opens."""

from dbt.adapters.duckdb.plugins import BasePlugin

import kanon_duck


class Plugin(BasePlugin):
    """What dbt-duckdb loads because profiles.yml names this module."""

    def configure_connection(self, conn):
        """Install kanon_duck on a connection."""
        kanon_duck.install(conn)
