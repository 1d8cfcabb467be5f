/** Capabilities of this device, limited to those with which its GPU computes correct numbers. */
import { getBrowserName } from '../../device/browser-name.ts'
import type { Capabilities } from '../../device/capabilities.ts'
import {
  isGpuVerdict,
  withoutUntrusted,
  toVerdictKey,
  type GpuVerdict,
} from '../../device/gpu-verdict.ts'
import { getDeviceFact, putDeviceFact } from '../../store/device-facts.ts'
import type { Database } from '../../store/database.ts'

export interface GpuVerdicts {
  capabilities(): Promise<Capabilities>
  /** Resolves with the verdict on the GPU; `undefined` before the first self-test. */
  verdict(): Promise<GpuVerdict | undefined>
  /** Applies the verdict of a load and stores it. A verdict by timeout is not stored. */
  record(verdict: GpuVerdict): void
}

export function createGpuVerdicts(
  database: Database,
  probe: () => Promise<Capabilities>,
): GpuVerdicts {
  let recorded: GpuVerdict | undefined
  /** Stored verdict. It is read once: every prediction needs it, and only this host writes it. */
  let storedVerdict: Promise<GpuVerdict | undefined> | undefined

  async function verdict(): Promise<GpuVerdict | undefined> {
    const { webgpu } = await probe()
    if (recorded || !webgpu) return recorded
    const subject = toVerdictKey(webgpu, await getBrowserName())
    storedVerdict ??= getDeviceFact(database, subject, isGpuVerdict).catch((error: unknown) => {
      storedVerdict = undefined
      throw error
    })
    const stored = await storedVerdict
    return recorded ?? stored
  }

  async function store(newVerdict: GpuVerdict): Promise<void> {
    const { webgpu } = await probe()
    if (!webgpu) return
    await putDeviceFact(database, toVerdictKey(webgpu, await getBrowserName()), newVerdict)
  }

  return {
    verdict,
    async capabilities() {
      return withoutUntrusted(await probe(), await verdict())
    },
    record(newVerdict) {
      recorded = newVerdict
      if (newVerdict.late) return
      // If the verdict cannot be stored, the next host tests the GPU again.
      store(newVerdict).catch(() => undefined)
    },
  }
}
