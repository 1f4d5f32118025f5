"""Privacy models: how they are declared, what a search needs to know, and how a release is measured."""
