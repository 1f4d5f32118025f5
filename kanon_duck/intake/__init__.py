"""From the source to codes: the snapshot of its rows, their hashes and their encoding."""
