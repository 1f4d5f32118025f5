"""Mondrian: multidimensional cuts at the median."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from kanon_duck.clustering.divisive import cut_from_root
from kanon_duck.encoding.microdata import Microdata
from kanon_duck.errors import KanonError
from kanon_duck.kernels.mondrian import cut_classes
from kanon_duck.privacy.models import PrivacyModel
from kanon_duck.privacy.requirement import demand, least_size
from kanon_duck.runtime.arguments import shown
from kanon_duck.runtime.parallel import Checkpoint


def mondrian(
    microdata: Microdata,
    model: PrivacyModel,
    generator: np.random.Generator,
    checkpoint: Checkpoint,
    *,
    relaxed: bool = False,
) -> NDArray[np.int64]:
    """Cut all rows in parts, the parts in parts, and so on, as long as every part satisfies the model.

    A class is cut along the attribute in which its box is widest, as a share of the domain or hierarchy and times the
    attribute's weight (of equal ones the first); where that is not allowed, along the next widest. A number is cut at
    the lower median, which goes below; if that is not allowed, it goes above. A category is cut into one part for
    each child of the lowest common ancestor. NULL is above all numbers and a child of every root.

    Relaxed, boxes may overlap: the rows at the median go to both parts, so that these are halves; and where not every
    child of the ancestor is a part that satisfies the model, the others make up one part together.

    Cost: O(q n log n) for q attributes, and what the model takes to be asked of as many rows. Nothing is random.
    Guarantee: every class satisfies the model, if all rows together do; and no cut of a class is left that is allowed.

    Parameters
    ----------
    microdata : Microdata
        The n rows.
    model : PrivacyModel
        Any.
    generator : numpy.random.Generator
        Not used.
    checkpoint : function
        Called between slices of the work with the share done.
    relaxed : bool
        Whether boxes of classes may overlap.

    Returns
    -------
    int64, shape (n,)
        Class of each row, 0 to m - 1.

    Raises
    ------
    KanonError
        On fewer than k rows, or a ``relaxed`` that is not a truth value.

    References
    ----------
    LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006.
    Byun, Sohn, Bertino and Li, "Secure anonymization for incremental datasets", SDM 2006, section 4.1: the same for
    l-diversity. Neither says how equal medians and categories are to be cut; what stands above is our choice.
    """
    if not isinstance(relaxed, bool):
        raise KanonError(f"method_options.relaxed is {shown(relaxed)}: it must be true or false")
    demanded = demand(model, microdata.sensitive)
    model.refuse_too_few(microdata.encoding.rows)
    least = least_size(demanded)
    return cut_from_root(microdata.encoding, least, checkpoint, partial(cut_classes, relaxed, least, demanded))
