"""What the search weighs against the loss: all in loss of one row."""

WAITING_PRICE, RISING = 1.5, 1.15
"""What it costs that one waits, and what that is multiplied with for each release waited."""

FORCED_PRICE = 50.0
"""What it costs that one waits whose patience is at its end."""

PLACED_PRICE = 10.0
"""What it costs in the first release to leave somebody out who had a class."""

COUNTERFEIT_PRICE, HIDDEN_PRICE = 1.0, 3.0
"""What a counterfeit costs, and a person of a class that is not shown."""

CROWDING_PRICE = 0.1
"""What each person of a new group costs for each of them, where one who leaves hides the others."""

DOOR_PRICE = 0.5
"""What it costs to fill the last empty slot beside which company can come."""

MOVE_RISE = 3.0
"""Rise of a class's loss from which on somebody whose quasi-identifiers changed leaves it for another."""

LEAST_GAIN = 0.1
"""What a split must lower the loss by."""
