"""What releases reveal together: sets of people who can be told apart, and values that stay possible.

`own_history` and `audited` read tables and build a series of releases from them, and `views` chooses which. All other
modules work on the arrays of a series, which say who was in which class when.
"""
