/** The plugin: the library's files in Vite's servers and builds, and a `serve()` that finds them. */
import { createHash } from 'node:crypto'
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, extname, join, relative, resolve, sep } from 'node:path'
import type { Connect, Plugin, ResolvedConfig, Rollup } from 'vite'
import type { AppFiles } from '../../../sw/keep-app.ts'
import { init, isOwnScript } from '../../cli/init.ts'
import {
  collectLibraryFiles,
  DIST,
  FILE_LIST,
  findRuntime,
  INORIGIN_FOLDER,
  readVersion,
} from '../../cli/library-files.ts'
import { formatByteCount } from '../../cli/output.ts'
import { type Content, readContent } from '../../cli/write-file.ts'
import { refuse } from '../../draft/refuse.ts'
import { InoriginError } from '../../error.ts'

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
      if (app.serviceWorker === 'none') return writeClientModule(app, null)
      const isDeveloping = app.config.command === 'serve'
      return writeClientModule(app, isDeveloping ? JSON.stringify(app.base + SCRIPT) : emit())
    },
    configureServer({ middlewares, httpServer, config }) {
      middlewares.use(serveLibrary(app))
      httpServer?.once('listening', () => log(app, 'serves', `at ${config.base}`))
    },
    async writeBundle({ dir }) {
      // A build of a server has no pages. Vite 5 tells it by an option, later versions by a name.
      const isServer = this.environment
        ? this.environment.config.consumer === 'server'
        : Boolean(app.config.build.ssr)
      if (isServer || !dir) return
      await writeOutput(app, dir)
      log(app, 'added', `to ${relative(app.config.root, dir) || dir}`)
    },
  }
}

type App = ReturnType<typeof openApp>

/** Returns facts about the app, which the hooks read once its configuration is resolved. */
function openApp(settings: PluginSettings, config: ResolvedConfig) {
  const { guide, mlc, webgpu, keepApp, models, serviceWorker } = settings
  const choice = { guide, mlc, webgpu, dist: DIST, runtime: findRuntime() }
  const own = typeof serviceWorker === 'string' ? resolve(config.root, serviceWorker) : null
  const needsBundle = own !== null || (keepApp && config.command === 'build')
  const script = needsBundle ? 'bundled' : 'library'
  return {
    config,
    settings,
    choice,
    /** Files of `inorigin/` by name. */
    library: collectLibraryFiles(choice),
    /** Path that the development server serves the app at, with slashes at both ends. */
    base: new URL(config.base, 'http://localhost').pathname,
    /** Folder with the app's own models, which Vite does not serve; `null` for the public folder. */
    models: models === null ? null : resolve(config.root, models),
    serviceWorker: serviceWorker === false ? ('none' as const) : script,
    /** Bundles a script that keeps these files; `null` for none. */
    bundle: (keep: AppFiles | null) => bundleServiceWorker(own, keep, config),
  }
}

/**
 * Returns the module that pages get in place of `inorigin`: the package itself, with a `serve()` that
 * knows where the app's files are. `worker` is the expression for the URL of the script; `null` if
 * the app names it.
 */
function writeClientModule(app: App, worker: string | null): string {
  const path = JSON.stringify(join(DIST, 'index.js').replaceAll('\\', '/'))
  const catalog = `new URL('${INORIGIN_FOLDER}/catalog.json', script).href`
  const folder = join(app.models ?? app.config.publicDir, INORIGIN_FOLDER)
  const hasOwnCatalog = existsSync(join(folder, 'catalog.json'))
  const defaults = {
    isolate: `${app.settings.isolate}`,
    ...(worker !== null && { worker: 'script' }),
    ...(worker !== null && hasOwnCatalog && { catalog }),
  }
  // An option that is undefined must not hide the default.
  const toLine = ([name, value]: [string, string]) => `${name}: options.${name} ?? ${value},`
  return `import { serve as open } from ${path}
export * from ${path}
${worker === null ? '' : `const script = new URL(${worker}, location.href).href`}
export async function serve(options = {}) {
  return open({
    ...options,
    ${Object.entries(defaults).map(toLine).join('\n    ')}
  })
}
`
}

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.wasm': 'application/wasm',
}

function serveLibrary(app: App): Connect.NextHandleFunction {
  return (request, response, next) => {
    const [path = ''] = (request.originalUrl ?? request.url ?? '').split('?', 1)
    findContent(app, path).then((content) => {
      if (content === undefined) return next()
      // The list makes service workers keep files, which would be stale after an update.
      if (content === null) return response.writeHead(404).end()
      response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream')
      response.setHeader('cache-control', 'no-cache')
      response.end(readContent(content))
    }, next)
  }
}

/** Resolves with `undefined` for a file of the app, and with `null` for one that must be missing. */
async function findContent(app: App, path: string): Promise<Content | null | undefined> {
  const { base, library, models, serviceWorker } = app
  if (path === base + SCRIPT) {
    if (serviceWorker === 'none') return undefined
    if (serviceWorker === 'library') return { from: join(DIST, SCRIPT) }
    return { text: (await app.bundle(null)).code }
  }
  const folder = `${base}${INORIGIN_FOLDER}/`
  if (!path.startsWith(folder)) return undefined
  const name = decodeURIComponent(path.slice(folder.length))
  if (name === FILE_LIST) return null
  const own = models && !name.split('/').includes('..') && join(models, INORIGIN_FOLDER, name)
  const isOwn = own && existsSync(own) && statSync(own).isFile()
  return library.get(name) ?? (isOwn ? { from: own } : undefined)
}

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

type PluginSettings = ReturnType<typeof parsePluginOptions>

const KINDS: Readonly<Record<keyof InoriginOptions, readonly string[]>> = {
  guide: ['boolean'],
  mlc: ['boolean'],
  webgpu: ['boolean'],
  models: ['string'],
  serviceWorker: ['string', 'boolean'],
  isolate: ['boolean'],
  keepApp: ['boolean'],
}

/** Returns the options with their defaults: `null` is Vite's public folder, and the library's script. */
function parsePluginOptions(options: InoriginOptions) {
  for (const [name, value] of Object.entries(options)) {
    const kinds = Object.entries(KINDS).find(([known]) => known === name)?.[1]
    if (!kinds) {
      const known = Object.keys(KINDS).join(', ')
      throw invalidOption(name, `inorigin() of Vite has no option ${name}. Options: ${known}.`)
    }
    if (value === undefined || kinds.includes(typeof value)) continue
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

const invalidOption = (param: string, message: string) =>
  new InoriginError('invalid_request', message, { param })

/** Says what the plugin added and how large it is. `where` says where, such as `to dist/`. */
function log({ config, library, settings, serviceWorker }: App, verb: string, where: string): void {
  const sizes = Array.from(library, ([name, content]) => ({ name, bytes: countBytes(content) }))
  const sum = (isCounted: (name: string) => boolean): string => {
    const counted = sizes.filter(({ name }) => isCounted(name))
    return formatByteCount(counted.reduce((total, { bytes }) => total + bytes, 0))
  }
  const isRuntime = (name: string) => name.startsWith('ort/') || name.endsWith('.wasm')
  const isChat = (name: string) => /^models\/(guide|glance)\//.test(name)
  const parts = [
    `runtimes ${sum(isRuntime)}`,
    ...(sizes.some(({ name }) => isChat(name)) ? [`language models ${sum(isChat)}`] : []),
    `predictors ${sum((name) => name.startsWith('models/') && !isChat(name))}`,
    `scripts ${sum((name) => !isRuntime(name) && !name.startsWith('models/'))}`,
  ]
  const hasGpu = sizes.some(({ name }) => isRuntime(name) && name.includes('.jspi.'))
  const what = serviceWorker === 'none' ? 'inorigin/' : `${SCRIPT} and inorigin/`
  const lines = [
    `inorigin ${readVersion()}: ${verb} ${what} ${where}: ${library.size} files, ${sum(() => true)}`,
    `  ${parts.join(', ')}. A page loads one runtime of ${hasGpu ? '14 to 27' : '14'} MB, and the models it uses.`,
    settings.isolate
      ? '  serve() isolates pages, so that WASM uses threads. isolate: false turns it off.'
      : '  serve() does not isolate pages, so WASM uses one thread.',
  ]
  for (const line of lines) config.logger.info(line)
}

function countBytes(content: Content): number {
  if ('text' in content) return Buffer.byteLength(content.text)
  const { size } = statSync(content.from)
  return Math.min(content.end ?? size, size) - (content.start ?? 0)
}

const SCRIPT = 'sw.js'

/** Puts the library's files and the app's own models into a build, after Vite wrote the app's. */
async function writeOutput(app: App, folder: string): Promise<void> {
  const { choice, settings, models, serviceWorker, bundle } = app
  const ownModels = models && join(models, INORIGIN_FOLDER)
  if (ownModels && existsSync(ownModels))
    cpSync(ownModels, join(folder, INORIGIN_FOLDER), { recursive: true })
  init({ ...choice, publicDir: folder, sw: serviceWorker === 'library' ? SCRIPT : null })
  if (serviceWorker !== 'bundled') return
  const { code, map } = await bundle(settings.keepApp ? listAppFiles(folder) : null)
  writeFileSync(join(folder, SCRIPT), code)
  if (map !== null) writeFileSync(join(folder, `${SCRIPT}.map`), map)
}

/** Returns the files of the app in a build, which are all but the library's and source maps. */
function listAppFiles(folder: string): AppFiles {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.split(sep).join('/'))
    .filter((name) => name !== SCRIPT && !name.startsWith(`${INORIGIN_FOLDER}/`))
    .filter((name) => !name.endsWith('.map') && !/(^|\/)\./.test(name))
    .filter((name) => statSync(join(folder, name)).isFile())
    .toSorted()
  const version = createHash('sha256')
  for (const name of names) version.update(name).update(readFileSync(join(folder, name)))
  const files = names.map((name) => name.replace(/(^|\/)index\.html$/, '$1') || './')
  return { version: version.digest('hex'), files }
}

/**
 * Returns a warning if Vite's public folder still has files of `inorigin init`; `null` otherwise.
 * Throws `invalid_request` if a script of the app would be replaced.
 */
function checkPublicFolder(publicDir: string, writesScript: boolean): string | null {
  const script = join(publicDir, SCRIPT)
  const folder = join(publicDir, INORIGIN_FOLDER)
  if (publicDir === '') return null
  if (writesScript && existsSync(script) && !isOwnScript(script))
    throw refuse(
      `${script} exists, and inorigin() would replace it.`,
      "Move it out of the public folder and pass its path as `serviceWorker`, or pass false and call attach() of 'inorigin/sw' in it.",
    )
  if (!existsSync(join(folder, FILE_LIST))) return null
  return (
    `${folder} still has files of \`inorigin init\`, which inorigin() replaces. ` +
    `Delete ${script} and the files that ${join(folder, FILE_LIST)} lists.`
  )
}

const VIRTUAL = 'inorigin-service-worker-'

/**
 * Returns one classic script, because service workers of all browsers can run that. `map` is its
 * source map as JSON; `null` unless the build has source maps in files.
 */
async function bundleServiceWorker(
  own: string | null,
  keep: AppFiles | null,
  { root, mode, logLevel, resolve: { alias }, build: { sourcemap, minify } }: ResolvedConfig,
) {
  const { build } = await import('vite')
  const library = join(DIST, 'sw/index.js')
  const modules = writeModules(own, keep)
  const entry = `${VIRTUAL}entry`
  const result = await build({
    configFile: false,
    root,
    mode,
    logLevel: logLevel ?? 'warn',
    publicDir: false,
    define: { 'process.env.NODE_ENV': JSON.stringify(mode) },
    resolve: { alias: [...alias, { find: 'inorigin/sw', replacement: library }] },
    plugins: [
      {
        name: 'inorigin:service-worker',
        // Vite makes a path of the name of an entry.
        resolveId: (id) => (modules.has(basename(id)) ? `\0${basename(id)}` : undefined),
        load: (id) => modules.get(id.replace(/^\0/, '')),
      },
    ],
    build: {
      write: false,
      copyPublicDir: false,
      reportCompressedSize: false,
      sourcemap,
      minify,
      lib: { entry, formats: ['iife'], name: 'serviceWorker', fileName: () => SCRIPT },
    },
  })
  const outputs = (Array.isArray(result) ? result : [result]).flatMap((one) =>
    'output' in one ? one.output : [],
  ) as (Rollup.OutputAsset | Rollup.OutputChunk)[]
  const chunk = outputs.find((one) => one.type === 'chunk')
  const map = outputs.find((one) => one.type === 'asset' && one.fileName.endsWith('.map'))
  if (!chunk) throw new Error('The service worker was not bundled.')
  return { code: chunk.code, map: map?.type === 'asset' ? String(map.source) : null }
}

/**
 * Returns the modules of the script by name. Their order is that of their listeners: `attach()` adds
 * headers to pages, so it must come first, and the app's own listeners come before `keepApp()`.
 */
function writeModules(own: string | null, keep: AppFiles | null): Map<string, string> {
  const isAttached = own !== null && /['"]inorigin\/sw['"]/.test(readFileSync(own, 'utf8'))
  const modules = new Map<string, string>()
  if (!isAttached) modules.set(`${VIRTUAL}attach`, `import { attach } from 'inorigin/sw'\nattach()`)
  const files = JSON.stringify(keep)
  if (keep)
    modules.set(`${VIRTUAL}keep`, `import { keepApp } from 'inorigin/sw'\nkeepApp(${files})`)
  const order = [`${VIRTUAL}attach`, own, `${VIRTUAL}keep`]
  const imported = order.filter((name) => name !== null && (name === own || modules.has(name)))
  const entry = imported.map((name) => `import ${JSON.stringify(name)}`).join('\n')
  return modules.set(`${VIRTUAL}entry`, entry)
}
