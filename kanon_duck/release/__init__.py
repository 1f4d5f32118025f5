"""From classes to what readers see: the private tables of people and classes, released rows and earlier releases."""
