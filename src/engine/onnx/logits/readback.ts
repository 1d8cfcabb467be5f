/** Reads results of the GPU back into CPU memory, through reused buffers. */
import { deviceFailure, deviceLost, gpuFailure } from '../../failure.ts'
import { openScopes } from '../scopes.ts'

/**
 * Function that resolves with the bytes that `encode`, called synchronously, copies to the start of
 * `target`. Rejects with `unavailable` if the device is lost or reports an error.
 */
type Readback = (
  bytes: number,
  encode: (encoder: GPUCommandEncoder, target: GPUBuffer) => void,
) => Promise<ArrayBuffer>

/** Usage flags `MAP_READ | COPY_DST` of `GPUBufferUsage`. */
const USAGE = 0x01 | 0x08
/** `GPUMapMode.READ`. */
const READ = 0x01

/** Creates a readback with its own buffers, which live as long as the device. */
export function createReadback(gpu: GPUDevice): Readback {
  const free: GPUBuffer[] = []

  const take = (bytes: number): GPUBuffer => {
    const index = free.findIndex(({ size }) => size >= bytes && size <= 4 * Math.max(bytes, 1024))
    const found = index === -1 ? undefined : free.splice(index, 1)[0]
    return found ?? gpu.createBuffer({ label: 'readback', size: powerOfTwo(bytes), usage: USAGE })
  }

  const giveBack = (buffer: GPUBuffer): void => {
    if (free.length >= 4) buffer.destroy()
    else free.push(buffer)
  }

  return async (bytes, encode) => {
    // WebGPU silently drops invalid commands, and the buffer would then hold older data.
    const close = openScopes(gpu)
    const target = take(bytes)
    const encoder = gpu.createCommandEncoder({ label: 'scores' })
    encode(encoder, target)
    gpu.queue.submit([encoder.finish()])
    const unmapped = target.mapAsync(READ, 0, bytes).then(
      () => null,
      (thrown: unknown) => deviceFailure(thrown) ?? deviceLost(thrown),
    )
    const refused = await close()
    const failure = refused ? gpuFailure(refused) : await unmapped
    if (failure) {
      target.destroy()
      throw failure
    }
    const copy = target.getMappedRange(0, bytes).slice(0)
    target.unmap()
    giveBack(target)
    return copy
  }
}

/** Returns the next power of two, at least 1 KiB. */
export function powerOfTwo(bytes: number): number {
  return 2 ** Math.max(10, Math.ceil(Math.log2(bytes)))
}
