/** Puts the Prompt API into a page: `inorigin/language-model`. */
import { assertKnownOptions, type OptionNames, parseTag } from '../../validate-arguments.ts'
import { InoriginError } from '../../error.ts'
import { cacheSuccess } from '../../values/promises.ts'
import { CreateMonitor } from './create-monitor.ts'
import { Endpoint } from './endpoint.ts'
import { defineInterface, type LanguageModelConstructor } from './language-model.ts'
import {
  type InstallOptions,
  type LanguageModelOptions,
  LanguageModelToolCall,
  LanguageModelToolError,
  LanguageModelToolSuccess,
} from './types.ts'

const OPTIONS: OptionNames<LanguageModelOptions> = {
  server: true,
  model: true,
  apiKey: true,
  languages: true,
  legacy: true,
}

const INSTALL_OPTIONS: OptionNames<InstallOptions> = { ...OPTIONS, force: true }

/**
 * Defines the global `LanguageModel`, unless the browser has its own. Returns the one that the page
 * has now.
 *
 * @example
 * ```ts
 * installLanguageModel({ server: serve, model: '@inorigin/guide' })
 * const session = await LanguageModel.create()
 * console.log(await session.prompt('What is inorigin?'))
 * ```
 * @throws InoriginError `invalid_request` that names the invalid or unknown option.
 */
export function installLanguageModel(options: InstallOptions): LanguageModelConstructor {
  assertKnownOptions(options, INSTALL_OPTIONS)
  const { force = false, ...rest } = options
  const defined = defineLanguageModel(rest)
  const page = globalThis as { LanguageModel?: LanguageModelConstructor }
  if (page.LanguageModel && !force) return page.LanguageModel
  const interfaces = {
    CreateMonitor,
    LanguageModelToolCall,
    LanguageModelToolSuccess,
    LanguageModelToolError,
    LanguageModel: defined,
  }
  for (const [name, value] of Object.entries(interfaces))
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
  return defined
}

/**
 * Returns a `LanguageModel` without making it global.
 *
 * @throws InoriginError `invalid_request` that names the invalid or unknown option.
 */
export function defineLanguageModel(options: LanguageModelOptions): LanguageModelConstructor {
  assertKnownOptions(options, OPTIONS)
  const { server, model, apiKey, languages, legacy = false } = options
  const tag = parseTag(model)
  if (typeof server !== 'function' && typeof server?.fetch !== 'function')
    throw new InoriginError(
      'invalid_request',
      'server must be what serve() resolves with, or a function that opens it.',
      { code: 'invalid_value', param: 'server' },
    )
  // A function opens the server once, and again after a failure.
  const open = cacheSuccess(typeof server === 'function' ? server : async () => server)
  return defineInterface({
    legacy,
    ...(languages && { languages: Intl.getCanonicalLocales([...languages]) }),
    open: async () => new Endpoint(await open(), tag, apiKey),
  })
}
