"""Quantizes matrices to the types that the package `gguf` reads but does not write.

The roundings are simple, so the files are worse than those of llama.cpp. Their layout is the same.
"""

import numpy as np

# Values of the codes of IQ4_NL and IQ4_XS.
IQ4_VALUES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
BLOCK = 256


def halves(values):
    """Returns the bytes of 16-bit floats, and the values that these have."""
    rounded = values.astype(np.float16)
    return rounded.view(np.uint8).reshape(*values.shape[:-1], -1), rounded.astype(np.float32)


def divide(values, divisor):
    """Divides. Where the divisor is 0, the result is 0."""
    return np.divide(values, divisor, out=np.zeros(np.broadcast(values, divisor).shape, np.float32), where=divisor != 0)


def round_to(values, low, high):
    return np.clip(np.rint(values), low, high).astype(np.int32)


def with_offsets(blocks, parts, levels, steps):
    """Splits blocks into parts whose values are `scale * code - offset`, both with integer factors.

    Returns the codes, the factors of scales and offsets, and the bytes of their two common scales.
    """
    apart = blocks.reshape(len(blocks), parts, -1)
    offset = np.maximum(-apart.min(-1), 0)
    scale = (np.maximum(apart.max(-1), 0) + offset) / levels
    scale_bytes, common = halves(scale.max(-1, keepdims=True) / steps)
    offset_bytes, common_offset = halves(offset.max(-1, keepdims=True) / steps)
    scales = round_to(divide(scale, common), 0, steps)
    offsets = round_to(divide(offset, common_offset), 0, steps)
    moved = apart + (common_offset * offsets)[..., None]
    codes = round_to(divide(moved, (common * scales)[..., None]), 0, levels)
    return codes.reshape(len(blocks), -1), scales, offsets, [scale_bytes, offset_bytes]


def without_offsets(blocks, parts, half, steps):
    """Splits blocks into parts whose values are `scale * code`, with codes from `-half` to `half - 1`."""
    apart = blocks.reshape(len(blocks), parts, -1)
    at = np.abs(apart).argmax(-1)[..., None]
    # The value of the greatest magnitude becomes the lowest code.
    scale = np.take_along_axis(apart, at, -1)[..., 0] / -half
    scale_bytes, common = halves(np.abs(scale).max(-1, keepdims=True) / steps)
    scales = round_to(divide(scale, common), -steps, steps)
    codes = round_to(divide(apart, (common * scales)[..., None]), -half, half - 1)
    return codes.reshape(len(blocks), -1), scales, scale_bytes


def six_bits(scales, offsets):
    """Packs eight scales and eight offsets of 6 bits each into 12 bytes."""
    first = (scales[:, :4] & 63) | (scales[:, 4:] >> 4 << 6)
    second = (offsets[:, :4] & 63) | (offsets[:, 4:] >> 4 << 6)
    third = (scales[:, 4:] & 15) | ((offsets[:, 4:] & 15) << 4)
    return np.concatenate([first, second, third], -1)


def pack(codes, width, bits):
    """Packs runs of codes: a byte has the codes that are `width` places from each other."""
    per_byte = 8 // bits
    runs = codes.reshape(len(codes), -1, per_byte, width)
    shifts = (np.arange(per_byte) * bits).reshape(1, 1, -1, 1)
    return (runs << shifts).sum(2).reshape(len(codes), -1)


def join(*pieces):
    return np.concatenate([piece.astype(np.uint8) for piece in pieces], -1)


def q2_k(blocks):
    codes, scales, offsets, common = with_offsets(blocks, 16, 3, 15)
    return join(scales | (offsets << 4), pack(codes, 32, 2), *common)


def q3_k(blocks):
    codes, scales, common = without_offsets(blocks, 16, 4, 31)
    codes, scales = codes + 4, scales + 32
    third = ((codes >> 2).reshape(-1, 8, 32) << np.arange(8).reshape(1, 8, 1)).sum(1)
    low = (scales[:, :8] & 15) | ((scales[:, 8:] & 15) << 4)
    high = ((scales >> 4).reshape(-1, 4, 4) << (2 * np.arange(4)).reshape(1, 4, 1)).sum(1)
    return join(third, pack(codes & 3, 32, 2), low, high, common)


def q4_k(blocks):
    codes, scales, offsets, common = with_offsets(blocks, 8, 15, 63)
    return join(*common, six_bits(scales, offsets), pack(codes, 32, 4))


def q5_k(blocks):
    codes, scales, offsets, common = with_offsets(blocks, 8, 31, 63)
    fifth = ((codes >> 4).reshape(-1, 8, 32) << np.arange(8).reshape(1, 8, 1)).sum(1)
    return join(*common, six_bits(scales, offsets), fifth, pack(codes & 15, 32, 4))


def q6_k(blocks):
    codes, scales, common = without_offsets(blocks, 16, 32, 127)
    codes = codes + 32
    return join(pack(codes & 15, 64, 4), pack(codes >> 4, 32, 2), scales, common)


def nearest(ratios):
    """Returns the codes of the nearest values of IQ4."""
    middles = (IQ4_VALUES[1:] + IQ4_VALUES[:-1]) / 2
    return np.searchsorted(middles, ratios).astype(np.int32)


def iq4_nl(blocks):
    at = np.abs(blocks).argmax(-1)[..., None]
    scale_bytes, scale = halves(np.take_along_axis(blocks, at, -1) / IQ4_VALUES[0])
    return join(scale_bytes, pack(nearest(divide(blocks, scale)), 16, 4))


def iq4_xs(blocks):
    apart = blocks.reshape(len(blocks), 8, 32)
    at = np.abs(apart).argmax(-1)[..., None]
    scale = np.take_along_axis(apart, at, -1)[..., 0] / IQ4_VALUES[0]
    scale_bytes, common = halves(np.abs(scale).max(-1, keepdims=True) / 31)
    factors = round_to(divide(scale, common), -32, 31)
    codes = nearest(divide(apart, (common * factors)[..., None])).reshape(len(blocks), -1)
    factors = factors + 32
    high = ((factors >> 4) << (2 * np.arange(8))).sum(-1, keepdims=True)
    return join(scale_bytes, high & 255, high >> 8, pack(factors & 15, 1, 4), pack(codes, 16, 4))


# Functions by type, with the number of values of a block.
QUANTIZE = {
    "Q2_K": (q2_k, BLOCK),
    "Q3_K": (q3_k, BLOCK),
    "Q4_K": (q4_k, BLOCK),
    "Q5_K": (q5_k, BLOCK),
    "Q6_K": (q6_k, BLOCK),
    "IQ4_NL": (iq4_nl, 32),
    "IQ4_XS": (iq4_xs, BLOCK),
}


def quantize(matrix, name):
    """Returns the bytes of the rows of a matrix in a type of QUANTIZE."""
    function, size = QUANTIZE[name]
    return function(matrix.astype(np.float32).reshape(-1, size)).reshape(len(matrix), -1)
