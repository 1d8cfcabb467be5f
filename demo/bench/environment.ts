/** Properties of this browser and device. They name no person, no address and no full user agent. */
import type { Explanation, Server, Tag } from '../../src/index.ts'
import type { AdapterInfo, Environment } from './result.ts'

/** Parts of `navigator` that TypeScript's types lack, because only some browsers have them. */
interface NavigatorExtras {
  deviceMemory?: number
  userAgentData?: { brands: { brand: string; version: string }[]; platform: string }
}

/** Resolves with the properties of this browser and device. */
export async function readEnvironment(server: Server, tag: Tag): Promise<Environment> {
  const { deviceMemory = null } = navigator as NavigatorExtras
  const [explanation, stored] = await Promise.all([server.explain(tag), server.storage.list()])
  const files = stored.find((each) => each.tag === tag)?.resources ?? []
  return {
    ...readBrowser(),
    cores: navigator.hardwareConcurrency,
    deviceMemory,
    crossOriginIsolated,
    wasm: explanation.device.wasm,
    adapter: await readAdapter(),
    selfTest: describeSelfTest(
      explanation,
      files.map(({ name }) => name),
    ),
  }
}

/**
 * Returns `passed` if the model ran on the GPU, since the self-test precedes every ONNX model there.
 * Otherwise returns why the GPU was not used or not tested.
 */
export function describeSelfTest(
  { reasons }: Pick<Explanation, 'reasons'>,
  files: readonly string[],
): string {
  const used = reasons.find(({ chosen }) => chosen)
  if (used?.device !== 'webgpu') {
    const why = reasons.find(({ device }) => device === 'webgpu')?.why
    return `not run: ${why ?? 'the model has no implementation for the GPU'}`
  }
  return files.some((name) => name.endsWith('.onnx')) ? 'passed' : 'not run: the model is no ONNX'
}

type Browser = Pick<Environment, 'browser' | 'browserVersion' | 'platform'>

/** Browsers by their part of the user agent. The first that matches wins. */
const BROWSERS: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['Firefox', /(?:Firefox|FxiOS)\/(\d+)/],
  ['Edge', /Edg\/(\d+)/],
  ['Chrome', /(?:Chrome|CriOS)\/(\d+)/],
  ['Safari', /Version\/([\d.]+).*Safari/],
]

const PLATFORMS = ['Android', 'iPhone', 'iPad', 'Windows', 'Mac OS X', 'CrOS', 'Linux']

function readBrowser(): Browser {
  const { userAgent } = navigator
  const { userAgentData } = navigator as NavigatorExtras
  // Chromium lists its brands in random order, with one that means nothing.
  const brands = userAgentData?.brands.filter(({ brand }) => !/not.*brand/i.test(brand)) ?? []
  const brand = brands.find((each) => each.brand !== 'Chromium') ?? brands[0]
  const platform =
    userAgentData?.platform || PLATFORMS.find((name) => userAgent.includes(name)) || 'unknown'
  if (brand) return { browser: brand.brand, browserVersion: brand.version, platform }
  for (const [browser, pattern] of BROWSERS) {
    const browserVersion = pattern.exec(userAgent)?.[1]
    if (browserVersion) return { browser, browserVersion, platform }
  }
  return { browser: 'unknown', browserVersion: 'unknown', platform }
}

/** Features of adapters that make models faster. The others would only identify the device. */
const FAST_FEATURES = ['shader-f16', 'subgroups']

async function readAdapter(): Promise<AdapterInfo | null> {
  if (!('gpu' in navigator)) return null
  const adapter = await navigator.gpu.requestAdapter().catch(() => null)
  if (!adapter) return null
  const { vendor, architecture, device, description, isFallbackAdapter } = adapter.info
  const features = FAST_FEATURES.filter((name) => adapter.features.has(name))
  return { vendor, architecture, device, description, software: isFallbackAdapter, features }
}
