"""IL_Optimization: dissolves classes all of whose rows other classes cover, if that lowers the loss.

Idea: a row is covered by another class if joining that would not change the class's generalization. A
class is broken by sending every row to the covering class of the least loss per row. Breaks only take
classes away, so what is not covered now never will be, and one pass over the classes is enough. Cost:
one search in the class index per class, and one per further row of classes that are covered so far.
Source: Section 4 and Figure 3 of Truta & Campan 2007; a class that has taken in rows of another is
looked at with these, and never covers itself.
"""

from __future__ import annotations

import numpy as np

from kanon_duck.kernels.cover import break_classes
from kanon_duck.maintenance.partition import Partition
from kanon_duck.runtime.parallel import Checkpoint


def optimize(partition: Partition, checkpoint: Checkpoint) -> None:
    """Lower the loss of a partition by breaking classes, the one of the highest total loss first.

    Guarantee: no class loses a row unless it is broken, so no class becomes too small; total loss never
    rises. Classes may reach 2k rows; see `split_large`.

    Parameters
    ----------
    partition : Partition
        Changed in place.
    checkpoint : function
        Told the share of the work that is done; what it raises stops the work.
    """
    index = partition.class_index
    classes = np.flatnonzero(index.sizes)
    losses = index.sizes[classes] * index.costs.ravel()[index.entries[classes]]
    classes = classes[np.argsort(-losses, kind="stable")]
    position = 0
    while position < len(classes):
        position = break_classes(*partition, classes, position)
        checkpoint(position / len(classes))
