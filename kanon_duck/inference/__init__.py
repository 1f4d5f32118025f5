"""What releases tell together: sets of people that can be told apart, values still possible, intruders.

Everything here works on arrays that say who was in which class when; nothing reads a table.
"""
