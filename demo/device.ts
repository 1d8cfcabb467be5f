import type { Server } from '../src/index.ts'
import { byId, element } from './dom.ts'

/** Shows the capabilities of this device. Returns a function that refreshes them. */
export function showDevice(starting: Promise<Server>): () => void {
  const list = byId('device', HTMLElement)

  function show(facts: readonly (readonly [name: string, value: string])[]): void {
    const parts = facts.flatMap(([name, value]) => [
      element('dt', '', name),
      element('dd', '', value),
    ])
    list.replaceChildren(...parts)
  }

  async function look(): Promise<void> {
    const adapter = ['WebGPU', await describeAdapter()] as const
    const threads = `up to ${navigator.hardwareConcurrency} threads`
    const wasm = [
      'WASM',
      crossOriginIsolated ? threads : '1 thread: the page is not cross-origin isolated',
    ] as const
    show([adapter, wasm, ['Server', 'starting']])
    const state = await starting.then(
      ({ controlled, baseURL }) => (controlled ? baseURL : 'only this page, through server.fetch'),
      () => 'did not start',
    )
    show([adapter, wasm, ['Server', state]])
  }

  return () => void look()
}

/** Returns a text for the WebGPU adapter of this device, or why there is none. */
export async function describeAdapter(): Promise<string> {
  if (!('gpu' in navigator)) return 'not supported by this browser'
  const adapter = await navigator.gpu.requestAdapter().catch(() => null)
  if (!adapter) return 'no adapter'
  const { vendor, architecture, description, isFallbackAdapter } = adapter.info
  const name =
    description || [vendor, architecture].filter(Boolean).join(' ') || 'an unnamed adapter'
  return isFallbackAdapter ? `${name} (software)` : name
}
