/**
 * Copies unaligned byte ranges between GPU buffers. WebGPU's copy commands need multiples of 4
 * bytes, and a token's entry in a KV tensor may have another size.
 */

/** Byte ranges at regular distances. */
export interface Ranges {
  /** Number of ranges. */
  count: number
  /** Size of each range. */
  length: number
  source: { start: number; stride: number }
  target: { start: number; stride: number }
}

interface ByteCopies {
  /** Encodes a copy. The buffers must differ, and their sizes must be multiples of 4 bytes. */
  add(encoder: GPUCommandEncoder, source: GPUBuffer, target: GPUBuffer, ranges: Ranges): void
  /** Frees temporary buffers; call it after the commands were submitted. */
  submitted(): void
}

const WORKGROUP_SIZE = 64
/** Largest number of workgroups in the first dimension of a dispatch. */
const MAX_WORKGROUPS_X = 32_768

/** Shader in which each invocation writes one word of the target, so that no two conflict. */
const SHADER = /* wgsl */ `
struct Ranges {
  count: u32, length: u32,
  sourceStart: u32, sourceStride: u32,
  targetStart: u32, targetStride: u32,
}
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@group(0) @binding(2) var<uniform> ranges: Ranges;

@compute @workgroup_size(${WORKGROUP_SIZE})
fn main(@builtin(global_invocation_id) id: vec3u) {
  let word = ranges.targetStart / 4u + id.y * ${WORKGROUP_SIZE * MAX_WORKGROUPS_X}u + id.x;
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

/** Creates a copier for buffers of the device; it compiles its shader at first use. */
export function createByteCopies(gpu: GPUDevice): ByteCopies {
  let pipeline: GPUComputePipeline | null = null
  let uniforms: GPUBuffer[] = []

  const add: ByteCopies['add'] = (encoder, source, target, { count, length, ...ends }) => {
    pipeline ??= gpu.createComputePipeline({
      layout: 'auto',
      compute: { module: gpu.createShaderModule({ code: SHADER }) },
    })
    const { start, stride } = ends.target
    const values = [count, length, ends.source.start, ends.source.stride, start, stride]
    const ranges = gpu.createBuffer({
      size: 4 * values.length,
      usage: UNIFORM_USAGE,
      mappedAtCreation: true,
    })
    new Uint32Array(ranges.getMappedRange()).set(values)
    ranges.unmap()
    uniforms.push(ranges)
    const entries = [source, target, ranges].map((buffer, binding) => ({
      binding,
      resource: { buffer },
    }))
    const groups = Math.ceil((count * stride + 4) / 4 / WORKGROUP_SIZE)
    const pass = encoder.beginComputePass()
    pass.setPipeline(pipeline)
    pass.setBindGroup(0, gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }))
    pass.dispatchWorkgroups(
      Math.min(groups, MAX_WORKGROUPS_X),
      Math.ceil(groups / MAX_WORKGROUPS_X),
    )
    pass.end()
  }

  return {
    add,
    submitted() {
      for (const buffer of uniforms) buffer.destroy()
      uniforms = []
    },
  }
}

/** Usage flag `UNIFORM`, as a number because `GPUBufferUsage` does not exist without WebGPU. */
const UNIFORM_USAGE = 0x40
