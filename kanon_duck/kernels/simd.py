"""Vectors of ``LANES`` numbers in registers, for loops that LLVM does not vectorize by itself.

A vector lives inside a kernel only: ``load`` makes one from an array, ``store`` writes one back, and in
between every operation works lane by lane. Integers are unsigned. Arrays are C-contiguous, their rows are
those of the last axis, and bounds are not checked. Rows wider than ``LANES`` are worked through one block
of lanes after the other.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from kanon_duck.kernels import LANES


class Vector(types.Type):
    """Numba's type of ``LANES`` numbers of one dtype."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, vector):
        super().__init__(manager, vector, _vector_type(manager.lookup(vector.dtype).get_value_type()))


def _vector_type(element):
    return ir.VectorType(element, LANES)


def _address(context, builder, array_type, array, row, lane):
    array = context.make_array(array_type)(context, builder, array)
    width = cgutils.unpack_tuple(builder, array.shape, array_type.ndim)[-1]
    start = builder.gep(array.data, [builder.add(builder.mul(row, width), lane)])
    return builder.bitcast(start, _vector_type(context.get_data_type(array_type.dtype)).as_pointer())


def _load(context, builder, array_type, array, row, lane):
    address = _address(context, builder, array_type, array, row, lane)
    return builder.load(address, align=array_type.dtype.bitwidth // 8)


def _repeat(builder, number):
    vector = _vector_type(number.type)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    return builder.shuffle_vector(first, first, ir.Constant(_vector_type(ir.IntType(32)), [0] * LANES))


def _call(builder, name, *vectors):
    """Call LLVM's intrinsic ``name`` on vectors of one type."""
    vector = vectors[0].type
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(vector, [vector] * len(vectors)),
        f"llvm.{name}.v{LANES}{vector.element.intrinsic_name}",
    )
    return builder.call(function, vectors)


def _signed(builder, numbers):
    """Small integers as signed ones of at least 32 bits, which convert to floats faster."""
    if numbers.type.element.width < 32:
        return builder.zext(numbers, _vector_type(ir.IntType(32)))
    return numbers


def _fold(builder, vector, combine):
    """Combine the halves of a vector until one number is left: a fixed pattern, so every processor agrees."""
    lanes = LANES
    while lanes > 1:
        lanes //= 2
        mask = ir.VectorType(ir.IntType(32), lanes)
        halves = [
            builder.shuffle_vector(vector, vector, ir.Constant(mask, list(range(first, first + lanes))))
            for first in (0, lanes)
        ]
        vector = combine(*halves)
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


@intrinsic
def load(_typing, array, row, lane):
    """Elements ``lane`` to ``lane + LANES - 1`` of a row."""

    def build(context, builder, signature, arguments):
        return _load(context, builder, signature.args[0], *arguments)

    return Vector(array.dtype)(array, types.intp, types.intp), build


@intrinsic
def store(_typing, array, row, lane, vector):
    """Write a vector to elements ``lane`` to ``lane + LANES - 1`` of a row."""

    def build(context, builder, signature, arguments):
        *place, numbers = arguments
        address = _address(context, builder, signature.args[0], *place)
        builder.store(numbers, address, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, vector), build


@intrinsic
def spread(_typing, number):
    """The same number in every lane."""

    def build(_context, builder, _signature, arguments):
        return _repeat(builder, arguments[0])

    return Vector(number)(number), build


@intrinsic
def unset(_typing, bits, vector):
    """1 in lane i if bit i of ``bits``, a uint16, is not set, else 0; in the dtype of ``vector``."""

    def build(context, builder, _signature, arguments):
        every_bit = ir.Constant(_vector_type(context.get_value_type(bits)), [1 << lane for lane in range(LANES)])
        found = builder.and_(_repeat(builder, arguments[0]), every_bit)
        none = ir.Constant(every_bit.type, [0] * LANES)
        return builder.zext(
            builder.icmp_unsigned("==", found, none), _vector_type(context.get_value_type(vector.dtype))
        )

    return vector(bits, vector), build


@intrinsic
def filled(_typing, vector):
    """An int64 whose bit i is set if lane i does not hold 0; integers."""

    def build(_context, builder, _signature, arguments):
        none = ir.Constant(arguments[0].type, [0] * LANES)
        bits = builder.bitcast(builder.icmp_unsigned("!=", arguments[0], none), ir.IntType(LANES))
        return builder.zext(bits, ir.IntType(64))

    return types.int64(vector), build


@intrinsic
def with_bit(_typing, vector, bits, place):
    """A vector whose bit ``place`` is set in lane i if bit i of ``bits``, an int64, is set, else is not; integers."""

    def build(_context, builder, _signature, arguments):
        vector, bits, place = arguments
        lane = vector.type.element
        every_lane = ir.Constant(ir.VectorType(bits.type, LANES), list(range(LANES)))
        found = builder.trunc(builder.lshr(_repeat(builder, bits), every_lane), vector.type)
        one = ir.Constant(vector.type, [1] * LANES)
        shift = _repeat(builder, builder.trunc(place, lane))
        cleared = builder.and_(vector, builder.not_(builder.shl(one, shift)))
        return builder.or_(cleared, builder.shl(builder.and_(found, one), shift))

    return vector(vector, types.int64, types.int64), build


def _as_floats(kind):
    """Emit the conversion of an integer vector."""

    def build(context, builder, signature, arguments):
        target = _vector_type(context.get_value_type(kind))
        if signature.args[0].dtype.bitwidth < 32:
            return builder.sitofp(_signed(builder, arguments[0]), target)
        return builder.uitofp(arguments[0], target)

    return build


@intrinsic
def floats(_typing, vector):
    """An integer vector as float64."""
    return Vector(types.float64)(vector), _as_floats(types.float64)


@intrinsic
def singles(_typing, vector):
    """An integer vector as float32, rounded where it has more than 24 bits."""
    return Vector(types.float32)(vector), _as_floats(types.float32)


@intrinsic
def doubles(_typing, vector):
    """A float32 vector as float64."""

    def build(context, builder, _signature, arguments):
        return builder.fpext(arguments[0], _vector_type(context.get_value_type(types.float64)))

    return Vector(types.float64)(vector), build


def _compare(builder, comparison, dtype, first, second):
    """Compare two vectors of floats or of unsigned integers lane by lane."""
    compare = builder.fcmp_ordered if isinstance(dtype, types.Float) else builder.icmp_unsigned
    return compare(comparison, first, second)


def _select(comparison):
    """Emit: the first of two vectors in the lanes where the comparison holds, else the second."""

    def build(_context, builder, signature, arguments):
        return builder.select(_compare(builder, comparison, signature.args[0].dtype, *arguments), *arguments)

    return build


@intrinsic
def minimum(_typing, first, second):
    """The smaller of two numbers."""
    return first(first, second), _select("<")


@intrinsic
def maximum(_typing, first, second):
    """The larger of two numbers."""
    return first(first, second), _select(">")


@intrinsic
def excess(_typing, first, second):
    """``first - second`` where that is positive, else 0; integers."""

    def build(_context, builder, _signature, arguments):
        return _call(builder, "usub.sat", *arguments)

    return first(first, second), build


@intrinsic
def plus(_typing, first, second):
    """``first + second``, floats."""

    def build(_context, builder, _signature, arguments):
        return builder.fadd(*arguments)

    return first(first, second), build


@intrinsic
def minus(_typing, first, second):
    """``first - second``, floats."""

    def build(_context, builder, _signature, arguments):
        return builder.fsub(*arguments)

    return first(first, second), build


def _where(comparison):
    """Emit: the number of a third vector in the lanes where the comparison holds, else that of a fourth."""

    def build(_context, builder, signature, arguments):
        first, second, then, otherwise = arguments
        holds = _compare(builder, comparison, signature.args[0].dtype, first, second)
        return builder.select(holds, then, otherwise)

    return build


@intrinsic
def where_less(_typing, first, second, then, otherwise):
    """The number of ``then`` in the lanes where ``first < second``, else that of ``otherwise``."""
    return then(first, second, then, otherwise), _where("<")


@intrinsic
def where_equal(_typing, first, second, then, otherwise):
    """The number of ``then`` in the lanes where ``first == second``, else that of ``otherwise``."""
    return then(first, second, then, otherwise), _where("==")


@intrinsic
def fused(_typing, first, second, third):
    """``first * second + third``, floats, rounded once."""

    def build(_context, builder, _signature, arguments):
        return _call(builder, "fma", *arguments)

    return third(first, second, third), build


def _extreme(comparison):
    """Emit: the number of a vector for which the comparison with the others holds."""

    def build(_context, builder, signature, arguments):
        dtype = signature.return_type

        def combine(*halves):
            return builder.select(_compare(builder, comparison, dtype, *halves), *halves)

        return _fold(builder, arguments[0], combine)

    return build


@intrinsic
def least_number(_typing, vector):
    """The least number of a vector."""
    return vector.dtype(vector), _extreme("<")


@intrinsic
def greatest_number(_typing, vector):
    """The greatest number of a vector."""
    return vector.dtype(vector), _extreme(">")


@intrinsic
def first_lane(_typing, vector, number):
    """The first lane that holds a number, which one does."""

    def build(_context, builder, _signature, arguments):
        found = _compare(builder, "==", vector.dtype, arguments[0], _repeat(builder, arguments[1]))
        bits = builder.bitcast(found, ir.IntType(LANES))
        return builder.zext(builder.cttz(bits, ir.IntType(1)(1)), ir.IntType(64))

    return types.int64(vector, vector.dtype), build


@intrinsic
def weigh(_typing, low, high, caps, weights, lane):
    """The sum of ``weights * min(high - low, caps)`` over one block of lanes, in the dtype of the weights."""

    def build(context, builder, signature, arguments):
        low, high, caps, weights, lane = arguments
        first_row = ir.Constant(lane.type, 0)
        cap = _load(context, builder, signature.args[2], caps, first_row, lane)
        weight = _load(context, builder, signature.args[3], weights, first_row, lane)
        extent = builder.sub(high, low)
        extent = builder.select(builder.icmp_unsigned("<", extent, cap), extent, cap)
        # a cap is at most half of the dtype's range, so the sign bit is free
        total = builder.fmul(builder.sitofp(_signed(builder, extent), weight.type), weight)
        return _fold(builder, total, builder.fadd)

    return weights.dtype(low, high, caps, weights, types.intp), build
