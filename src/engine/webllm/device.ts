/**
 * What becomes of the device that WebLLM asks for itself. The package logs that it was lost and forgets
 * its model, destroys it when a buffer finds no room, and tells neither who is waiting nor who comes.
 */
import type { InoriginError } from '../../error.ts'
import { deviceLost, gpuFailure, outOfMemory } from '../failure.ts'

export interface DeviceWatch {
  /** What the work gives, unless the device fails before that, or has failed already. */
  guard<T>(work: () => Promise<T>): Promise<T>
  /** Gives the device back, whatever the package has done with it; what comes of that is nobody's. */
  release(): void
}

/** Watches the devices that this thread is given from here on, until `release`. */
export function watchDevice(): DeviceWatch {
  const devices: GPUDevice[] = []
  let failure: InoriginError | null = null
  let fail: (reason: InoriginError) => void = () => undefined
  const failed = new Promise<never>((_, reject) => (fail = reject))
  // Nobody may be waiting when it happens.
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
      // Nobody but the package destroys it, and only for this.
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
        // Whatever the package comes upon then is only what follows from it.
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

/** Events of a device are tasks of their own, behind those that resolve what waits for it. */
const settled = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve))

/** Tells of each device that the adapters of this thread, which is the model's own, give. */
function onRequest(tell: (device: GPUDevice) => void): () => void {
  if (typeof GPUAdapter === 'undefined') return () => undefined
  const { requestDevice } = GPUAdapter.prototype
  const told = async function (
    this: GPUAdapter,
    descriptor?: GPUDeviceDescriptor,
  ): Promise<GPUDevice> {
    const device = await requestDevice.call(this, descriptor)
    tell(device)
    return device
  }
  GPUAdapter.prototype.requestDevice = told
  return () => {
    if (GPUAdapter.prototype.requestDevice === told)
      GPUAdapter.prototype.requestDevice = requestDevice
  }
}
