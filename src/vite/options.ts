/** Options of the Vite plugin. */
import { InoriginError } from '../error.ts'

/** Options of `inorigin()`. */
export interface InoriginOptions {
  /**
   * `true` to include the embedded language models, the guide and the one that sees simple pictures,
   * 14 MB. Default: `true`.
   */
  guide?: boolean
  /** `true` to include WebLLM, 6 MB, and the list of its models. Default: `false`. */
  mlc?: boolean
  /**
   * `true` to include the runtimes for WebGPU, 44 MB. Without them, models run on WASM only. Default:
   * `true`.
   */
  webgpu?: boolean
  /**
   * Folder with models of your own, as passed to `inorigin add --public`, relative to the root.
   * Default: Vite's public folder.
   */
  models?: string
  /**
   * Path of a service worker of your own, relative to the root. It is bundled to `sw.js`, and
   * `attach()` is called before it, unless it imports `inorigin/sw` itself. `false` if something
   * else builds your service worker: call `attach()` in it, and pass `worker` to `serve()`. Default:
   * the library's own script.
   */
  serviceWorker?: string | false
  /** `true` to isolate pages by default, so that WASM uses threads. Default: `true`. */
  isolate?: boolean
  /**
   * `true` to keep all files of the build in the browser, so that its pages open without a network.
   * Default: `false`.
   */
  keepApp?: boolean
}

/** Options with their defaults. `models` is `null` for Vite's public folder. */
export interface PluginSettings extends Required<
  Omit<InoriginOptions, 'models' | 'serviceWorker'>
> {
  models: string | null
  /** Path of the app's own script; `null` for the library's. */
  serviceWorker: string | false | null
}

type Kind = 'boolean' | 'string'

const KINDS: Readonly<Record<keyof InoriginOptions, readonly Kind[]>> = {
  guide: ['boolean'],
  mlc: ['boolean'],
  webgpu: ['boolean'],
  models: ['string'],
  serviceWorker: ['string', 'boolean'],
  isolate: ['boolean'],
  keepApp: ['boolean'],
}

/** Checks the options and adds the defaults. Throws `invalid_request` that names the option. */
export function parsePluginOptions(options: InoriginOptions): PluginSettings {
  for (const [name, value] of Object.entries(options)) {
    const kinds = Object.entries(KINDS).find(([known]) => known === name)?.[1]
    if (!kinds) {
      const known = Object.keys(KINDS).join(', ')
      throw invalidOption(name, `inorigin() of Vite has no option ${name}. Options: ${known}.`)
    }
    if (value === undefined || kinds.some((kind) => typeof value === kind)) continue
    throw invalidOption(name, `${name} of inorigin() must be a ${kinds.join(' or ')}.`)
  }
  const { guide = true, mlc = false, webgpu = true, isolate = true, keepApp = false } = options
  const { models = null, serviceWorker = null } = options
  if ((serviceWorker as unknown) === true) {
    const what = 'serviceWorker of inorigin() must be the path of a script or false, not true.'
    throw invalidOption('serviceWorker', what)
  }
  if (mlc && !webgpu) {
    const what = 'mlc of inorigin() needs WebGPU, but webgpu is false. Leave one of them out.'
    throw invalidOption('webgpu', what)
  }
  if (keepApp && serviceWorker === false) {
    const what = 'keepApp of inorigin() needs a service worker, but serviceWorker is false.'
    throw invalidOption('keepApp', `${what} Call keepApp() of 'inorigin/sw' in your own one.`)
  }
  return { guide, mlc, webgpu, isolate, keepApp, models, serviceWorker }
}

function invalidOption(param: string, message: string): InoriginError {
  return new InoriginError('invalid_request', message, { param })
}
