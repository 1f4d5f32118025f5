"""Boxes in vector registers: the arithmetic of the kernels that look at boxes most often.

Numba does not turn a loop over sixteen lanes into vector instructions by itself. This file gives it a
value type of sixteen unsigned integers with four operations: ``load``, ``minimum``, ``maximum`` and
``weigh``. Rows wider than sixteen lanes are worked through one block of lanes after the other.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from kanon_duck.encoding import LANES


class Lanes(types.Type):
    """Numba's type of ``LANES`` unsigned integers held in vector registers."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        super().__init__(manager, lanes, ir.VectorType(ir.IntType(lanes.dtype.bitwidth), LANES))


def _load(context, builder, array_type, array, offset):
    """Emit the load of ``LANES`` neighbouring elements of a contiguous array from ``offset`` on."""
    data = context.make_array(array_type)(context, builder, array).data
    element = context.get_data_type(array_type.dtype)
    pointer = builder.bitcast(builder.gep(data, [offset]), ir.VectorType(element, LANES).as_pointer())
    return builder.load(pointer, align=array_type.dtype.bitwidth // 8)


@intrinsic
def load(typing_context, codes, row, lane):
    """Lanes ``lane`` to ``lane + LANES - 1`` of a row of ``codes``, a C-contiguous matrix."""

    def generate(context, builder, signature, arguments):
        array, row, lane = arguments
        shape = context.make_array(signature.args[0])(context, builder, array).shape
        width = cgutils.unpack_tuple(builder, shape, 2)[1]
        offset = builder.add(builder.mul(row, width), lane)
        return _load(context, builder, signature.args[0], array, offset)

    return Lanes(codes.dtype)(codes, types.intp, types.intp), generate


def _select(comparison):
    """Emit: the first of two values where the unsigned comparison holds, else the second."""

    def generate(context, builder, signature, arguments):
        return builder.select(builder.icmp_unsigned(comparison, *arguments), *arguments)

    return generate


@intrinsic
def minimum(typing_context, first, second):
    """The smaller of two values, lane by lane."""
    return first(first, second), _select("<")


@intrinsic
def maximum(typing_context, first, second):
    """The larger of two values, lane by lane."""
    return first(first, second), _select(">")


@intrinsic
def weigh(typing_context, low, high, caps, weights, lane):
    """The sum of ``weights * min(high - low, caps)`` over one block of lanes, as float32.

    Halves are added pairwise in a fixed pattern: every processor arrives at the same sum.
    """

    def generate(context, builder, signature, arguments):
        low, high, caps, weights, lane = arguments
        cap = _load(context, builder, signature.args[2], caps, lane)
        weight = _load(context, builder, signature.args[3], weights, lane)
        extent = builder.sub(high, low)
        extent = builder.select(builder.icmp_unsigned("<", extent, cap), extent, cap)
        if extent.type.element.width < 32:
            extent = builder.zext(extent, ir.VectorType(ir.IntType(32), LANES))
        # a cap is at most half of the dtype's range, so the cheaper signed conversion is right
        total = builder.fmul(builder.sitofp(extent, weight.type), weight)
        lanes = LANES
        while lanes > 1:
            lanes //= 2
            mask = ir.VectorType(ir.IntType(32), lanes)
            halves = [
                builder.shuffle_vector(total, total, ir.Constant(mask, list(range(first, first + lanes))))
                for first in (0, lanes)
            ]
            total = builder.fadd(*halves)
        return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

    return types.float32(low, high, caps, weights, types.intp), generate
