"""From classes to what readers see: private tables of people and classes, released rows, earlier releases."""
