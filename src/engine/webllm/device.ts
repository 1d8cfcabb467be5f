/**
 * Watches the GPUDevice that WebLLM requests for itself. When the device is lost, the package only
 * logs it and drops its model. When a buffer allocation fails, it destroys the device. Pending and
 * later calls learn of neither.
 */
import type { InoriginError } from '../../error.ts'
import { deviceLost, gpuFailure, outOfMemory } from '../failure.ts'

interface DeviceWatch {
  /** Resolves with the result of the work; rejects if the device has failed or fails meanwhile. */
  guard<T>(work: () => Promise<T>): Promise<T>
  /** Destroys the devices and stops watching; failures that follow are ignored. */
  release(): void
}

/** Watches every device that this thread requests from now on, until `release`. */
export function watchDevice(): DeviceWatch {
  const devices: GPUDevice[] = []
  let failure: InoriginError | null = null
  let fail: (reason: InoriginError) => void = () => undefined
  const failed = new Promise<never>((_, reject) => (fail = reject))
  // Without a handler, a failure that no `guard` waits for would be an unhandled rejection.
  failed.catch(() => undefined)
  let released = false

  const note = (reason: InoriginError): void => {
    if (released) return
    failure ??= reason
    fail(failure)
  }
  const watch = (device: GPUDevice): void => {
    devices.push(device)
    void device.lost.then(({ reason, message }) =>
      // Only the package destroys the device, and only when it runs out of memory.
      note(reason === 'destroyed' ? outOfMemory(message) : deviceLost(message)),
    )
    device.addEventListener('uncapturederror', (event) =>
      note(gpuFailure((event as GPUUncapturedErrorEvent).error)),
    )
  }
  const stop = onRequest(watch)

  return {
    async guard(work) {
      if (failure) throw failure
      try {
        const done = await Promise.race([work(), failed])
        if (failure) throw failure
        return done
      } catch (thrown) {
        // The package's own error may only be a consequence of the device failure.
        await settled()
        throw failure ?? thrown
      }
    },
    release() {
      released = true
      stop()
      for (const device of devices) device.destroy()
    },
  }
}

/** Resolves after a task, because device events are queued behind the tasks that settle calls. */
const settled = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve))

/**
 * Calls `onDevice` with each device that adapters of this thread create. The thread belongs to one
 * model. Returns a function that restores `requestDevice`.
 */
function onRequest(onDevice: (device: GPUDevice) => void): () => void {
  if (typeof GPUAdapter === 'undefined') return () => undefined
  const { requestDevice } = GPUAdapter.prototype
  const watchedRequest = async function (
    this: GPUAdapter,
    descriptor?: GPUDeviceDescriptor,
  ): Promise<GPUDevice> {
    const device = await requestDevice.call(this, descriptor)
    onDevice(device)
    return device
  }
  GPUAdapter.prototype.requestDevice = watchedRequest
  return () => {
    if (GPUAdapter.prototype.requestDevice === watchedRequest)
      GPUAdapter.prototype.requestDevice = requestDevice
  }
}
