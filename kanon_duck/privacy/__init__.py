"""Privacy models: what is declared, what a search needs of it, and how a release is measured against it."""
