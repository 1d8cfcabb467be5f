import { expect, test } from 'vitest'
import { findGpuShortage, findInputMismatch } from '../../../src/predictor/run-graph.ts'

const failed = (code: number, message: string) =>
  `failed to call OrtRun(). ERROR_CODE: ${code}, ERROR_MESSAGE: ${message}`

const DIMENSIONS =
  'Got invalid dimensions for input: x for the following indices\n index: 0 Got: 3 Expected: 2'
const BOUNDS =
  'indices element out of data bounds, idx=99 must be within the inclusive range [-3,2]'
const BROADCAST = 'Attempting to broadcast an axis by a dimension other than 1. 2 by 3'
const RESHAPE =
  'The input tensor cannot be reshaped to the requested shape. Input shape:{4}, requested shape:{3,-1}'
const BUFFERS = 'Too many storage buffers in shader. Current: 11, Max is 10'

/** Messages as the runtime writes them, with the part that is about the inputs or about the GPU. */
test.each([
  [failed(2, `${DIMENSIONS}\n`), DIMENSIONS, null],
  [
    failed(
      2,
      `Non-zero status code returned while running Gather node. Name:'' Status Message: ${BOUNDS}`,
    ),
    BOUNDS,
    null,
  ],
  [
    failed(
      1,
      `/build/core/providers/cpu/math/element_wise_ops.h:563 void onnxruntime::BroadcastIterator::Init(ptrdiff_t, ptrdiff_t) axis == 1 || axis == largest was false. ${BROADCAST}\n`,
    ),
    BROADCAST,
    null,
  ],
  [
    failed(
      1,
      `/build/core/providers/cpu/tensor/reshape_helper.h:86 onnxruntime::ReshapeHelper::ReshapeHelper(const TensorShape &, TensorShapeVector &, bool) size != 0 && (input_shape_size % size) == 0 was false. ${RESHAPE}\n`,
    ),
    RESHAPE,
    null,
  ],
  [failed(6, 'std::bad_alloc'), null, null],
  [failed(1, 'Failed to allocate memory for requested buffer of size 4294967296'), null, null],
  ['memory access out of bounds', null, null],
  [
    failed(
      1,
      `Non-zero status code returned while running Split node. Status Message: /build/core/providers/webgpu/shader_helper.cc:308 ShaderVariableHelper &onnxruntime::webgpu::ShaderHelper::AddVariableImpl(bool, const TensorShape &) numbers_storage_buffers_ <= limits_.max was false. ${BUFFERS}\n`,
    ),
    null,
    BUFFERS,
  ],
  [
    failed(1, `/build/core/providers/webgpu/math/binary.cc:1 was false. ${BROADCAST}`),
    BROADCAST,
    null,
  ],
])('%s', (message, mismatch, shortage) => {
  expect([findInputMismatch(message), findGpuShortage(message)]).toEqual([mismatch, shortage])
})
