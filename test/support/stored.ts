/** Files of the fault server as tags of a catalog, and what a page does with them. */
import type { ModelStorage, PredictorEntry, Server, Tag } from '../../src/index.ts'
import type { AnyPage } from './any-page.ts'
import type { ServedFile } from './content.ts'

export const MIB = 2 ** 20

/** Bytes of every chunk but the last. */
export const CHUNK = 16 * MIB

/** A predictor of that tag, which consists of those files. What they hold does not run. */
export function entryOf(tag: Tag, ...files: readonly ServedFile[]): PredictorEntry {
  return {
    type: 'predictor',
    tag,
    name: tag,
    created: '2026-01-01T00:00:00Z',
    signature: {
      inputs: [{ name: 'x', type: 'float32' }],
      outputs: [{ name: 'y', type: 'float32' }],
    },
    implementations: [
      {
        id: 'wasm',
        engine: 'onnx',
        device: 'wasm',
        resources: files.map(({ resource }, index) => {
          const { url, name, bytes, sha256 } = resource
          return { url, name, bytes, sha256, type: index === 0 ? 'onnx' : 'data' }
        }),
      },
    ],
  }
}

interface InPage {
  server: Server
}

/** Loads until it is loaded or fails; answers the code of the error, `null` when there is none. */
export function load(page: AnyPage, tag: Tag): Promise<string | null> {
  return page.evaluate(async (name) => {
    const { server } = globalThis as unknown as InPage
    return server.models.load(name).then(
      () => null,
      (error: { code?: string; name: string }) => error.code ?? error.name,
    )
  }, tag)
}

/** Calls a method of `server.storage` in the page; an error comes back as its plain form. */
export function storage<
  Name extends 'usage' | 'list' | 'resources' | 'pin' | 'unpin' | 'remove' | 'clear' | 'repair',
>(
  page: AnyPage,
  name: Name,
  ...args: Parameters<ModelStorage[Name]>
): Promise<Awaited<ReturnType<ModelStorage[Name]>>> {
  return page.evaluate(
    async ([method, given]) => {
      const { server } = globalThis as unknown as InPage
      const call = server.storage[method as 'remove'] as (...all: unknown[]) => Promise<unknown>
      return call(...(given as unknown[]))
    },
    [name, args] as [string, unknown[]],
  ) as Promise<Awaited<ReturnType<ModelStorage[Name]>>>
}

/**
 * The sha256 of a resource as the page is served it. `failed` when it is refused, or breaks off: headers
 * may go out before it is downloaded.
 */
export function digest(page: AnyPage, sha256: string): Promise<string> {
  return page.evaluate(async (name) => {
    const { server } = globalThis as unknown as InPage
    const response = await server.fetch(`/v1/resources/${name}`)
    const content = response.ok ? await response.arrayBuffer().catch(() => null) : null
    if (!content) return 'failed'
    const hash = await crypto.subtle.digest('SHA-256', content)
    return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('')
  }, sha256)
}
