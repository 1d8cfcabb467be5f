/**
 * The module that pages get in place of `inorigin`: the package itself, with a `serve()` that knows
 * where the app's files are.
 */
import { join } from 'node:path'

export interface ClientModule {
  /** Folder `dist` of the built package. */
  dist: string
  /** Expression for the URL of the service worker script; `null` if the app names it. */
  worker: string | null
  isolate: boolean
  /** Path of the app's own catalog relative to the script; `null` if there is none. */
  catalog: string | null
}

/** Returns the code of the module. */
export function writeClientModule({ dist, worker, isolate, catalog }: ClientModule): string {
  const path = JSON.stringify(join(dist, 'index.js').replaceAll('\\', '/'))
  const defaults = {
    isolate: `${isolate}`,
    ...(worker !== null && { worker: 'script' }),
    ...(worker !== null && catalog !== null && { catalog: `new URL('${catalog}', script).href` }),
  }
  const lines = Object.entries(defaults).map(
    // An option that is undefined must not hide the default.
    ([name, value]) => `    ${name}: options.${name} ?? ${value},`,
  )
  return [
    `import { serve as open } from ${path}`,
    `export * from ${path}`,
    ...(worker === null ? [] : [`const script = new URL(${worker}, location.href).href`]),
    `export async function serve(options = {}) {`,
    `  return open({`,
    `    ...options,`,
    ...lines,
    `  })`,
    `}`,
    '',
  ].join('\n')
}
