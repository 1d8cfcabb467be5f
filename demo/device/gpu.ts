/** Facts that the browser reports about its WebGPU adapter. */
export interface GpuFacts {
  name: string
  isSoftware: boolean
  features: string[]
  limits: [name: string, value: number][]
}

/** Resolves with the facts of the adapter; `undefined` if there is none. */
export async function readGpu(): Promise<GpuFacts | undefined> {
  if (!('gpu' in navigator)) return undefined
  const adapter = await navigator.gpu.requestAdapter().catch(() => null)
  if (!adapter) return undefined
  const { vendor, architecture, device, description, isFallbackAdapter } = adapter.info
  const name = [vendor, architecture, device, description].filter(Boolean).join(' ')
  return {
    name: name || 'an unnamed adapter',
    isSoftware: isFallbackAdapter,
    features: [...adapter.features].sort(),
    limits: readLimits(adapter.limits),
  }
}

/** Returns the limits by name. They are getters of the prototype, so they are no own properties. */
function readLimits(limits: GPUSupportedLimits): [name: string, value: number][] {
  const found: [string, number][] = []
  for (const name in limits) {
    const value: unknown = Reflect.get(limits, name)
    if (typeof value === 'number') found.push([name, value])
  }
  return found.sort(([one], [other]) => one.localeCompare(other))
}
