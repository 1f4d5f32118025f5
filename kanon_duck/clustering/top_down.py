"""Top Down: local recoding from the root."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.divisive import cut_from_root
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.kernels.top_down import specialize_classes
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.privacy.requirement import demand, least_size
from kanon_duck.runtime.parallel import Checkpoint


def top_down(
    microdata: Microdata, model: PrivacyModel, generator: np.random.Generator, checkpoint: Checkpoint
) -> NDArray[np.int64]:
    """Specialize the class of all rows, its parts, and so on; push back what would not satisfy the model.

    A class is specialized in one attribute: a category into one part for each child of the lowest common ancestor,
    a number into what is at most the lower median and what is above it. Parts that do not satisfy the model are
    pushed back: they stay together as they are. If they do not satisfy it together either, the largest other part
    gives up some rows to them, as few as they are short of, or twice as many, and so on; if it cannot, it is pushed
    back as a whole, and the next largest is asked. Of all attributes the one is taken that leaves the least loss.
    What was pushed back may be specialized in another attribute.

    Cost: O(q**2 n log n) for q attributes, and what the model takes to be asked of as many rows. Nothing is random.
    Guarantee: every class satisfies the model, if all rows together do.

    Parameters
    ----------
    microdata : Microdata
        The n rows.
    model : PrivacyModel
        Any; that of the paper is k and alpha.
    generator : numpy.random.Generator
        Not used.
    checkpoint : function
        Called between slices of the work with the share done.

    Returns
    -------
    int64, shape (n,)
        Class of each row, 0 to m - 1.

    Raises
    ------
    KanonError
        On fewer than k rows.

    References
    ----------
    Wong, Li, Fu and Wang, "(alpha, k)-anonymity: an enhanced k-anonymity model for privacy preserving data
    publishing", KDD 2006. Reconstructed from its idea: which rows a part gives up, the choice of the attribute, and
    the cut of numbers (the paper has hierarchies over these too) are ours.
    """
    demanded = demand(model, microdata.sensitive)
    model.refuse_too_few(microdata.encoding.rows)
    least = least_size(demanded)
    return cut_from_root(microdata.encoding, least, checkpoint, partial(specialize_classes, least, demanded))
