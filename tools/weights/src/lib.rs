//! Reads matrices that are quantized in blocks, and writes their values in other forms. `src/engine/onnx/matrices.ts`
//! says what the forms are, and lays out the memory: the functions allocate nothing, and trust all addresses.
#![no_std]
use core::arch::wasm32::*;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unreachable()
}

/// Number of columns that are converted together, one in each lane of a vector.
const LANES: usize = 4;

/// Greatest magnitude of the new integers. The value -128 is not used.
const MAX_INT8: f32 = 127.0;

/// A matrix as `MatMulNBits` stores it, column by column.
#[repr(C)]
pub struct Matrix {
    values: *const u8,
    scales: *const f32,
    /// Null means half the range of the integers.
    zero_points: *const u8,
    bits: usize,
    block_size: usize,
    rows: usize,
    columns: usize,
}

/// Rows that are written, with those of the matrices beside it.
#[repr(C)]
pub struct Target {
    /// First element of the matrix in the first row, and number of elements from a row to the next.
    elements: *mut u8,
    stride: usize,
    /// First scale, with the same stride from a group to the next. Floats have none.
    scales: *mut f32,
    from: usize,
    to: usize,
    /// Number of values along a column that are converted together.
    group_size: usize,
    /// Space for a group of `LANES` columns.
    group: *mut v128,
}

/// Writes rows of the matrix as rotated integers with a scale for each group of each column.
#[no_mangle]
pub unsafe extern "C" fn to_int8_groups(matrix: &Matrix, target: &Target, rotation_size: usize) {
    let factor = 1.0 / sqrt(rotation_size as f32);
    for_each_group(matrix, target, |group, row, column, count| {
        rotate(group, rotation_size);
        let mut greatest = f32x4_splat(0.0);
        for values in group.iter() {
            greatest = f32x4_max(greatest, f32x4_abs(*values));
        }
        let scales = f32x4_mul(greatest, f32x4_splat(factor / MAX_INT8));
        let place = target.scales.add((row - target.from) / target.group_size * target.stride + column);
        for (lane, scale) in lanes(scales).iter().enumerate().take(count) {
            *place.add(lane) = *scale;
        }
        // A column of zeros stays one.
        let is_zero = f32x4_eq(greatest, f32x4_splat(0.0));
        let factors = v128_andnot(f32x4_div(f32x4_splat(MAX_INT8), greatest), is_zero);
        for (index, values) in group.iter().enumerate() {
            let rounded = i32x4_trunc_sat_f32x4(f32x4_nearest(f32x4_mul(*values, factors)));
            let words = i16x8_narrow_i32x4(rounded, rounded);
            let bytes = i32x4_extract_lane::<0>(i8x16_narrow_i16x8(words, words));
            let place = target.elements.add((row - target.from + index) * target.stride + column);
            if count == LANES {
                place.cast::<i32>().write_unaligned(bytes);
            } else {
                core::ptr::copy_nonoverlapping(bytes.to_le_bytes().as_ptr(), place, count);
            }
        }
    });
}

/// Writes rows of the matrix as floats.
#[no_mangle]
pub unsafe extern "C" fn to_float_rows(matrix: &Matrix, target: &Target) {
    let elements = target.elements.cast::<f32>();
    for_each_group(matrix, target, |group, row, column, count| {
        for (index, values) in group.iter().enumerate() {
            let place = elements.add((row - target.from + index) * target.stride + column);
            if count == LANES {
                v128_store(place.cast(), *values);
            } else {
                core::ptr::copy_nonoverlapping(lanes(*values).as_ptr(), place, count);
            }
        }
    });
}

/// Calls back with the values of each group, its first row and column, and its number of columns.
#[inline(always)]
unsafe fn for_each_group(matrix: &Matrix, target: &Target, mut call: impl FnMut(&mut [v128], usize, usize, usize)) {
    let group = core::slice::from_raw_parts_mut(target.group, target.group_size);
    for tile in (0..matrix.columns).step_by(TILE_COLUMNS) {
        let end = matrix.columns.min(tile + TILE_COLUMNS);
        for row in (target.from..target.to).step_by(target.group_size) {
            for column in (tile..end).step_by(LANES) {
                read_group(matrix, row, column, group);
                call(group, row, column, LANES.min(end - column));
            }
        }
    }
}

/// Number of columns that are converted before the next rows: neighbors in a row share a line of CPU cache.
const TILE_COLUMNS: usize = 64;

/// Reads the values of `LANES` columns from that row on. Behind the last column, it reads that one again.
#[inline(always)]
unsafe fn read_group(matrix: &Matrix, from: usize, column: usize, group: &mut [v128]) {
    let &Matrix { values, scales, zero_points, bits, block_size, rows, columns } = matrix;
    let blocks = rows.div_ceil(block_size);
    let zero_bytes = if bits == 8 { blocks } else { blocks.div_ceil(2) };
    let column_of = |lane: usize| (column + lane).min(columns - 1);
    let mut at = 0;
    while at < group.len() {
        let block = (from + at) / block_size;
        let inside = (from + at) % block_size;
        let count = (block_size - inside).min(group.len() - at);
        let scale = floats(|lane| *scales.add(column_of(lane) * blocks + block));
        let zero = floats(|lane| {
            if zero_points.is_null() {
                return (1 << (bits - 1)) as f32;
            }
            let zeros = zero_points.add(column_of(lane) * zero_bytes);
            if bits == 8 {
                *zeros.add(block) as f32
            } else {
                (*zeros.add(block / 2) >> (block % 2 * 4) & 15) as f32
            }
        });
        let starts: [*const u8; LANES] =
            core::array::from_fn(|lane| values.add((column_of(lane) * blocks + block) * block_size * bits / 8));
        let value = |integers: v128| f32x4_mul(f32x4_sub(f32x4_convert_u32x4(integers), zero), scale);
        let mask = u32x4_splat((1 << bits) - 1);
        let part = &mut group[at..at + count];
        let per_word = 32 / bits;
        if inside % per_word == 0 && count % per_word == 0 && block_size % per_word == 0 {
            for (index, places) in part.chunks_exact_mut(per_word).enumerate() {
                let offset = (inside * bits / 32 + index) * 4;
                let [first, second, third, fourth] = starts.map(|start| start.add(offset).cast::<u32>().read_unaligned());
                let mut words = u32x4(first, second, third, fourth);
                for place in places {
                    *place = value(v128_and(words, mask));
                    words = u32x4_shr(words, bits as u32);
                }
            }
        } else {
            for (index, place) in part.iter_mut().enumerate() {
                let bit = (inside + index) * bits;
                let [first, second, third, fourth] = starts.map(|start| *start.add(bit / 8) as u32);
                let words = u32x4_shr(u32x4(first, second, third, fourth), bit as u32 % 8);
                *place = value(v128_and(words, mask));
            }
        }
        at += count;
    }
}

/// Rotates each block of that many values, a power of two, in place, and makes them `sqrt(size)` times as large.
#[inline(always)]
unsafe fn rotate(group: &mut [v128], size: usize) {
    let sum_and_difference = |one: v128, other: v128| (f32x4_add(one, other), f32x4_sub(one, other));
    for block in group.chunks_exact_mut(size) {
        let mut width = 1;
        // A step of four values needs half the memory accesses of two steps of two.
        while width * 4 <= size {
            for part in block.chunks_exact_mut(4 * width) {
                for at in 0..width {
                    let place = |index: usize| at + index * width;
                    let (first, second) = sum_and_difference(part[place(0)], part[place(1)]);
                    let (third, fourth) = sum_and_difference(part[place(2)], part[place(3)]);
                    (part[place(0)], part[place(2)]) = sum_and_difference(first, third);
                    (part[place(1)], part[place(3)]) = sum_and_difference(second, fourth);
                }
            }
            width *= 4;
        }
        if width < size {
            let (left, right) = block.split_at_mut(width);
            for (first, second) in left.iter_mut().zip(right) {
                (*first, *second) = sum_and_difference(*first, *second);
            }
        }
    }
}

#[inline(always)]
fn floats(of: impl Fn(usize) -> f32) -> v128 {
    f32x4(of(0), of(1), of(2), of(3))
}

#[inline(always)]
fn lanes(values: v128) -> [f32; LANES] {
    [
        f32x4_extract_lane::<0>(values),
        f32x4_extract_lane::<1>(values),
        f32x4_extract_lane::<2>(values),
        f32x4_extract_lane::<3>(values),
    ]
}

fn sqrt(value: f32) -> f32 {
    f32x4_extract_lane::<0>(f32x4_sqrt(f32x4_splat(value)))
}
