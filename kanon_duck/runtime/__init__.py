"""What every procedure stands on: the call and its transaction, the database, arguments, names and threads."""
