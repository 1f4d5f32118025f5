"""Vectors of ``LANES`` numbers in registers, for loops that LLVM does not vectorise by itself.

A vector lives inside a kernel only: ``load`` makes one from an array, ``store`` writes one back, and in
between every operation works lane by lane. Integer vectors are unsigned.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from kanon_duck.encoding import LANES


class Vector(types.Type):
    """Numba's type of ``LANES`` numbers of one dtype."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, vector):
        super().__init__(manager, vector, ir.VectorType(manager.lookup(vector.dtype).get_value_type(), LANES))


def _vector_type(context, dtype):
    return ir.VectorType(context.get_value_type(dtype), LANES)


def _address(context, builder, array_type, array, start):
    data = cgutils.create_struct_proxy(array_type)(context, builder, array).data
    vector = _vector_type(context, array_type.dtype)
    return builder.bitcast(builder.gep(data, [start], inbounds=True), vector.as_pointer())


def _repeat(builder, number):
    vector = ir.VectorType(number.type, LANES)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    lane_zero = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, first, lane_zero)


def _call(builder, name, *vectors):
    """Call LLVM's intrinsic ``name`` on vectors of one type."""
    vector = vectors[0].type
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(vector, [vector] * len(vectors)),
        f"llvm.{name}.v{LANES}{vector.element.intrinsic_name}",
    )
    return builder.call(function, vectors)


@intrinsic
def load(_typing, array, start):
    """``LANES`` numbers of a C-contiguous array from flat position ``start`` on; bounds are not checked."""

    def build(context, builder, _signature, arguments):
        vector = builder.load(_address(context, builder, array, *arguments))
        vector.align = context.get_abi_sizeof(context.get_value_type(array.dtype))
        return vector

    return Vector(array.dtype)(array, types.intp), build


@intrinsic
def store(_typing, array, start, vector):
    """Write a vector to a C-contiguous array at flat position ``start``; bounds are not checked."""

    def build(context, builder, _signature, arguments):
        written = builder.store(arguments[2], _address(context, builder, array, *arguments[:2]))
        written.align = context.get_abi_sizeof(context.get_value_type(array.dtype))
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), build


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
        every_bit = ir.Constant(_vector_type(context, bits), [1 << lane for lane in range(LANES)])
        found = builder.and_(_repeat(builder, arguments[0]), every_bit)
        none = ir.Constant(every_bit.type, [0] * LANES)
        return builder.zext(builder.icmp_unsigned("==", found, none), _vector_type(context, vector.dtype))

    return vector(bits, vector), build


@intrinsic
def floats(_typing, vector):
    """An integer vector as float64."""

    def build(context, builder, _signature, arguments):
        numbers, target = arguments[0], _vector_type(context, types.float64)
        if vector.dtype.bitwidth < 32:  # signed numbers convert faster
            return builder.sitofp(builder.zext(numbers, ir.VectorType(ir.IntType(32), LANES)), target)
        return builder.uitofp(numbers, target)

    return Vector(types.float64)(vector), build


@intrinsic
def excess(_typing, first, second):
    """``first - second`` where that is positive, else 0; integers."""

    def build(_context, builder, _signature, arguments):
        return _call(builder, "usub.sat", *arguments)

    return first(first, second), build


@intrinsic
def lesser(_typing, first, second):
    """The smaller of two integers."""

    def build(_context, builder, _signature, arguments):
        return _call(builder, "umin", *arguments)

    return first(first, second), build


@intrinsic
def greater(_typing, first, second):
    """The larger of two numbers."""

    def build(_context, builder, _signature, arguments):
        if isinstance(first.dtype, types.Float):
            return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)
        return _call(builder, "umax", *arguments)

    return first(first, second), build


@intrinsic
def plus(_typing, first, second):
    """``first + second``, float64."""

    def build(_context, builder, _signature, arguments):
        return builder.fadd(*arguments)

    return first(first, second), build


@intrinsic
def fused(_typing, first, second, third):
    """``first * second + third``, float64, rounded once."""

    def build(_context, builder, _signature, arguments):
        return _call(builder, "fma", *arguments)

    return third(first, second, third), build
