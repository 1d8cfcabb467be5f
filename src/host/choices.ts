/** Chooses the implementation of a tag for this device, by its capabilities and measured speeds. */
import {
  chooseImplementation,
  findImplementation,
  listComparable,
  type ImplementationChoice,
  type Preference,
} from '../catalog/choose-implementation.ts'
import type { Entry, Implementation } from '../catalog/schema.ts'
import { toDeviceId, type Capabilities } from '../device/capabilities.ts'
import type { DeviceSummary, Explanation } from '../types/index.ts'
import { eligible, race, type RaceOptions } from './race.ts'
import { createSpeeds } from './speeds.ts'

export interface Choices {
  /**
   * Resolves with the choice by current knowledge. Rejects with `unavailable` if no implementation
   * can run. `device` names the device for stored measurements. Default: derived from the hardware.
   */
  pick(entry: Entry, device?: string): Promise<ImplementationChoice>
  /**
   * Measures the implementations that have no measurement, once for each implementation and device.
   * Concurrent callers share one comparison. Never rejects. A measurement takes some seconds.
   */
  compare(entry: Entry, device?: string): Promise<void>
  /** Resolves with the reasons for the result of `pick`. Waits for a comparison in progress. */
  explain(entry: Entry): Promise<Explanation>
}

export interface ChoicesOptions extends RaceOptions {
  device: () => Promise<Capabilities>
  preference: Preference
}

export function createChoices(options: ChoicesOptions): Choices {
  const { database, models, device, preference } = options
  const speeds = createSpeeds(database)
  const running = new Map<string, Promise<void>>()
  /** Latest comparison. Comparisons run one after the other. */
  let last: Promise<void> = Promise.resolve()

  async function known(entry: Entry, name: string | undefined) {
    const capabilities = await device()
    const id = name ?? toDeviceId(capabilities)
    return { capabilities, id, ...(await speeds.of(entry, id, capabilities)) }
  }

  async function pick(entry: Entry, name?: string): Promise<ImplementationChoice> {
    const { capabilities, measured } = await known(entry, name)
    return chooseImplementation(entry, capabilities, preference, measured)
  }

  async function measure(entry: Entry, name: string | undefined): Promise<void> {
    const { capabilities, id, tried } = await known(entry, name)
    const all = listComparable(entry, capabilities, preference)
    const isDecided = (one: Implementation) => tried.has(one.id)
    // This runs after every prediction, and mostly nothing is left to measure.
    if (all.length < 2 || all.every(isDecided)) return
    const fit = await eligible(database, all)
    const due = fit.filter((one) => !isDecided(one))
    const first = all[0]
    // A comparison needs the default choice and at least one other implementation.
    const counts = first && (isDecided(first) || due.includes(first))
    if (!counts || due.length === 0 || all.filter(isDecided).length + due.length < 2) return
    await race(options, entry, due, (implementation, found) =>
      speeds.learn({ tag: entry.tag, implementation, ...found }, id, capabilities),
    )
    const { implementation } = await pick(entry, name)
    for (const hosted of models.of(entry.tag)) {
      if (hosted.users === 0 && hosted.implementation.id !== implementation.id)
        hosted.close('replaced')
    }
  }

  return {
    pick,
    compare(entry, name) {
      const key = `${entry.tag} ${name ?? ''}`
      const under = running.get(key)
      if (under) return under
      const measuring = last
        .then(() => measure(entry, name))
        // A failed comparison leaves the choice unchanged.
        .catch(() => undefined)
        .finally(() => running.delete(key))
      running.set(key, measuring)
      last = measuring
      return measuring
    },
    async explain(entry) {
      await running.get(`${entry.tag} `)
      const { capabilities, id, measured } = await known(entry, undefined)
      const { chosen, reasons } = findImplementation(entry, capabilities, preference, measured)
      return {
        tag: entry.tag,
        chosen: chosen?.id ?? null,
        reasons,
        device: summary(id, capabilities),
      }
    },
  }
}

function summary(id: string, { webgpu, wasm, memory, cores }: Capabilities): DeviceSummary {
  const { vendor, architecture, description, software = false, features = [] } = webgpu ?? {}
  const name = [vendor, architecture, description].filter(Boolean).join(' ')
  return {
    id,
    gpu: webgpu && { name, software, features },
    wasm: { simd: wasm.simd, threads: wasm.threads },
    memory,
    cores,
  }
}
