"""What the database stores about masked views: their options, settings, releases, tables and columns."""
