/** Measures how fast the GPU reads weights, which bounds a decode step there. */

/** `GPUBufferUsage.STORAGE`, which the types of TypeScript lack. */
const STORAGE = 0x80

const MAX_BYTES = 2 ** 27
const WORKGROUPS = 1_024
/** Runs of one measurement, so that the time of a submission counts little. */
const RUNS = 8

const SHADER = /* wgsl */ `
@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
  var sum = vec4<u32>();
  for (var at = id.x; at < arrayLength(&weights); at += count.x * 256u) {
    sum += weights[at];
  }
  sums[id.x] = sum.x + sum.y + sum.z + sum.w;
}`

/** Resolves with bytes per second; with `undefined` if there is no GPU, or if it is lost meanwhile. */
export async function measureGpu(
  milliseconds: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: 'high-performance' })
  const size = Math.min(MAX_BYTES, adapter?.limits.maxStorageBufferBindingSize ?? 0)
  const device = await adapter?.requestDevice({
    requiredLimits: { maxStorageBufferBindingSize: size },
  })
  if (!device) return undefined
  try {
    const run = createRun(device, size)
    const rates: number[] = []
    const start = performance.now()
    for (let now = start; now - start < milliseconds;) {
      signal.throwIfAborted()
      run()
      await device.queue.onSubmittedWorkDone()
      const end = performance.now()
      rates.push((RUNS * size) / (end - now))
      now = end
    }
    const sorted = rates.toSorted((one, other) => one - other)
    return 1_000 * (sorted[Math.floor(sorted.length / 2)] ?? 0) || undefined
  } finally {
    device.destroy()
  }
}

/** Returns the function that reads all weights `RUNS` times. */
function createRun(device: GPUDevice, size: number): () => void {
  const weights = device.createBuffer({ size, usage: STORAGE })
  const sums = device.createBuffer({ size: 4 * 256 * WORKGROUPS, usage: STORAGE })
  const pipeline = device.createComputePipeline({
    layout: 'auto',
    compute: { module: device.createShaderModule({ code: SHADER }) },
  })
  const group = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [weights, sums].map((buffer, binding) => ({ binding, resource: { buffer } })),
  })
  return () => {
    const encoder = device.createCommandEncoder()
    const pass = encoder.beginComputePass()
    pass.setPipeline(pipeline)
    pass.setBindGroup(0, group)
    for (let count = 0; count < RUNS; count += 1) pass.dispatchWorkgroups(WORKGROUPS)
    pass.end()
    device.queue.submit([encoder.finish()])
  }
}
