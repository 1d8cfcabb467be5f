/**
 * Copies of bytes between buffers of a GPU wherever they begin and end: its own commands copy whole
 * words, and what a cache has of a token may be half of one.
 */

/** Ranges that follow each other at even distances; all in bytes. */
export interface Ranges {
  count: number
  /** Of each range. */
  length: number
  source: { start: number; stride: number }
  target: { start: number; stride: number }
}

export interface ByteCopies {
  /** Adds a copy to the commands; the buffers are two, whose sizes are whole words. */
  add(encoder: GPUCommandEncoder, source: GPUBuffer, target: GPUBuffer, ranges: Ranges): void
  /** Frees what the copies needed, once their commands are submitted. */
  submitted(): void
}

const LANES = 64
/** Workgroups in a row of the dispatch. */
const ROW = 32_768

/** Each invocation writes one word of the target, so that none writes into another's. */
const SHADER = /* wgsl */ `
struct Ranges {
  count: u32, length: u32,
  sourceStart: u32, sourceStride: u32,
  targetStart: u32, targetStride: u32,
}
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@group(0) @binding(2) var<uniform> ranges: Ranges;

@compute @workgroup_size(${LANES})
fn main(@builtin(global_invocation_id) id: vec3u) {
  let word = ranges.targetStart / 4u + id.y * ${LANES * ROW}u + id.x;
  if (word >= arrayLength(&result)) { return; }
  var bits = result[word];
  for (var byte = 0u; byte < 4u; byte++) {
    let at = word * 4u + byte;
    if (at < ranges.targetStart) { continue; }
    let range = (at - ranges.targetStart) / ranges.targetStride;
    let offset = (at - ranges.targetStart) % ranges.targetStride;
    if (range >= ranges.count || offset >= ranges.length) { continue; }
    let origin = ranges.sourceStart + range * ranges.sourceStride + offset;
    bits = insertBits(bits, source[origin / 4u] >> (8u * (origin % 4u)), 8u * byte, 8u);
  }
  result[word] = bits;
}
`

export function createByteCopies(gpu: GPUDevice): ByteCopies {
  let pipeline: GPUComputePipeline | null = null
  let used: GPUBuffer[] = []

  const add: ByteCopies['add'] = (encoder, source, target, { count, length, ...ends }) => {
    pipeline ??= gpu.createComputePipeline({
      layout: 'auto',
      compute: { module: gpu.createShaderModule({ code: SHADER }) },
    })
    const { start, stride } = ends.target
    const values = [count, length, ends.source.start, ends.source.stride, start, stride]
    const ranges = gpu.createBuffer({
      size: 4 * values.length,
      usage: UNIFORM,
      mappedAtCreation: true,
    })
    new Uint32Array(ranges.getMappedRange()).set(values)
    ranges.unmap()
    used.push(ranges)
    const entries = [source, target, ranges].map((buffer, binding) => ({
      binding,
      resource: { buffer },
    }))
    const groups = Math.ceil((count * stride + 4) / 4 / LANES)
    const pass = encoder.beginComputePass()
    pass.setPipeline(pipeline)
    pass.setBindGroup(0, gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }))
    pass.dispatchWorkgroups(Math.min(groups, ROW), Math.ceil(groups / ROW))
    pass.end()
  }

  return {
    add,
    submitted() {
      for (const buffer of used) buffer.destroy()
      used = []
    },
  }
}

/** Number of GPUBufferUsage, which is not there where WebGPU is not. */
const UNIFORM = 0x40
