"""What all procedures build on: calls and transactions, the database, arguments, names and threads."""
