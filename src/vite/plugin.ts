/** The plugin: the library's files in Vite's servers and builds, and a `serve()` that finds them. */
import { existsSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import type { Plugin, ResolvedConfig } from 'vite'
import type { AppFiles } from '../../sw/keep-app.ts'
import { collectLibraryFiles, INORIGIN_FOLDER, type LibraryChoice } from '../cli/library-files.ts'
import { DIST, findRuntime, readVersion } from '../cli/package-files.ts'
import type { Content } from '../cli/write-file.ts'
import { writeClientModule } from './client-module.ts'
import { serveLibrary } from './dev-server.ts'
import { type InoriginOptions, parsePluginOptions, type PluginSettings } from './options.ts'
import { checkPublicFolder, SCRIPT, writeOutput } from './output.ts'
import { type BundledScript, bundleServiceWorker } from './service-worker.ts'
import { summarize } from './summary.ts'

const MODULE = '\0inorigin'

/**
 * Returns the plugin. It serves and emits the service worker, the workers, the runtimes and the
 * models, and `serve()` of `inorigin` finds them, also below a `base`. Works in every framework
 * that is built on Vite.
 *
 * @example
 * ```ts
 * import { inorigin } from 'inorigin/vite'
 * import { defineConfig } from 'vite'
 *
 * export default defineConfig({ plugins: [inorigin()] })
 * ```
 * @throws InoriginError `invalid_request` for an unknown or invalid option.
 */
export function inorigin(options: InoriginOptions = {}): Plugin {
  const settings = parsePluginOptions(options)
  let app: App
  return {
    name: 'inorigin',
    enforce: 'pre',
    // The package is built already, and its scripts find each other by their names.
    config: () => ({ optimizeDeps: { exclude: ['inorigin'] } }),
    configResolved(config) {
      app = openApp(settings, config)
      const warning = checkPublicFolder(config.publicDir, app.serviceWorker !== 'none')
      if (warning) config.logger.warn(warning)
    },
    resolveId: (id, _importer, { ssr }) => (id === 'inorigin' && !ssr ? MODULE : undefined),
    load(id) {
      if (id !== MODULE) return undefined
      const emit = () => {
        const source = readFileSync(join(DIST, SCRIPT))
        const file = this.emitFile({ type: 'asset', fileName: SCRIPT, source })
        // The bundler replaces this by the script's place beside the importing one, for any base.
        return `import.meta.ROLLUP_FILE_URL_${file}`
      }
      const isDeveloping = app.config.command === 'serve'
      const url = isDeveloping ? () => JSON.stringify(app.base + SCRIPT) : emit
      return writeClientModule({
        dist: DIST,
        worker: app.serviceWorker === 'none' ? null : url(),
        isolate: settings.isolate,
        catalog: hasOwnCatalog(app) ? `${INORIGIN_FOLDER}/catalog.json` : null,
      })
    },
    configureServer({ middlewares, httpServer, config }) {
      const { base, library } = app
      const serviceWorker = () => readScript(app)
      middlewares.use(serveLibrary({ base, library, models: app.models, serviceWorker }))
      httpServer?.once('listening', () => log(app, 'serves', `at ${config.base}`))
    },
    async writeBundle({ dir }) {
      // A build of a server has no pages. Vite 5 tells it by an option, later versions by a name.
      const isServer = this.environment
        ? this.environment.config.consumer === 'server'
        : Boolean(app.config.build.ssr)
      if (isServer || !dir) return
      await writeOutput({ ...app.choice, ...app, keepApp: settings.keepApp, folder: dir })
      log(app, 'added', `to ${relative(app.config.root, dir) || dir}`)
    },
  }
}

/** Facts about the app, which the hooks read once its configuration is resolved. */
interface App {
  config: ResolvedConfig
  settings: PluginSettings
  choice: LibraryChoice
  /** Files of `inorigin/` by name. */
  library: ReadonlyMap<string, Content>
  /** Path that the development server serves the app at, with slashes at both ends. */
  base: string
  /** Folder with the app's own models, which Vite does not serve; `null` for the public folder. */
  models: string | null
  serviceWorker: 'library' | 'bundled' | 'none'
  bundle: (keep: AppFiles | null) => Promise<BundledScript>
}

function openApp(settings: PluginSettings, config: ResolvedConfig): App {
  const { guide, mlc, webgpu, keepApp, models, serviceWorker } = settings
  const choice = { guide, mlc, webgpu, dist: DIST, runtime: findRuntime() }
  const own = typeof serviceWorker === 'string' ? resolve(config.root, serviceWorker) : null
  const needsBundle = own !== null || (keepApp && config.command === 'build')
  return {
    config,
    settings,
    choice,
    library: collectLibraryFiles(choice),
    base: new URL(config.base, 'http://localhost').pathname,
    models: models === null ? null : resolve(config.root, models),
    serviceWorker: serviceWorker === false ? 'none' : needsBundle ? 'bundled' : 'library',
    bundle: (keep) => bundleServiceWorker({ own, keep, dist: DIST }, config),
  }
}

const hasOwnCatalog = ({ models, config }: App): boolean =>
  existsSync(join(models ?? config.publicDir, INORIGIN_FOLDER, 'catalog.json'))

/** Resolves with the script for the development server; `undefined` if something else serves it. */
async function readScript({ serviceWorker, bundle }: App): Promise<Content | undefined> {
  if (serviceWorker === 'none') return undefined
  if (serviceWorker === 'library') return { from: join(DIST, SCRIPT) }
  return { text: (await bundle(null)).code }
}

function log({ config, library, settings, serviceWorker }: App, verb: string, where: string): void {
  const script = serviceWorker === 'none' ? null : SCRIPT
  const { isolate } = settings
  const lines = summarize(verb, where, { version: readVersion(), library, isolate, script })
  for (const line of lines) config.logger.info(line)
}
