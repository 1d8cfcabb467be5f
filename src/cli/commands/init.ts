/** The command `inorigin init`. */
import { basename } from 'node:path'
import {
  createUsageError,
  deferInterrupts,
  defineCommand,
  flag,
  valued,
  wrongValueError,
} from '../command.ts'
import { init } from '../init.ts'
import { escapeControls, printLines } from '../output.ts'
import { DIST, findRuntime, readVersion } from '../library-files.ts'
import * as project from '../project-options.ts'
import { formatInitReport } from '../report.ts'
import { assertNoLinks } from '../write-file.ts'

const FOLDER_HELP = 'Folder that your web server serves at the root of your app, such as public'

export const INIT = defineCommand({
  name: 'init',
  operands: [{ name: 'folder', about: FOLDER_HELP, isRequired: false }],
  usage: '[options]',
  about: [
    "Copies the service worker script, the runtime and the embedded models into your app's",
    'public folder, where serve() finds them. package.json remembers the folder: without an',
    'argument, `inorigin init` refreshes it, for example after an update of the package.',
  ],
  options: {
    guide: flag(
      'Include the embedded language models, 14 MB (default); --no-guide leaves them out',
    ),
    mlc: flag('Include WebLLM (6 MB) and the list of its models; --no-mlc removes both'),
    webgpu: flag('Include the runtimes for WebGPU, 44 MB (default); --no-webgpu leaves them out'),
    sw: valued('<name>', 'File name of the service worker script (default: sw.js)'),
    'own-sw': flag("Write no script, because your own one calls attach() of 'inorigin/sw'"),
  },
  run({ guide, mlc, webgpu, sw, 'own-sw': ownSw }, [folder]) {
    const app = process.cwd()
    const before = project.readProjectOptions(app)
    const publicDir =
      folder === undefined ? project.getRememberedFolder(app) : project.toRelativePath(folder)
    if (!publicDir) throw createUsageError('Name your public folder, such as: inorigin init public')
    // The remembered options belong to the remembered folder, so another folder does not use them.
    const remembered = publicDir === before?.publicDir ? before : undefined
    const script = ownSw ? false : (sw ?? remembered?.sw ?? 'sw.js')
    if (script !== false) assertScriptName(script)
    assertNoLinks(app, project.PACKAGE_FILE)
    // An interrupt must not stop the command between two files. It takes only a second.
    deferInterrupts()
    const options = {
      guide: guide ?? remembered?.guide ?? true,
      mlc: mlc ?? remembered?.mlc ?? false,
      webgpu: webgpu ?? remembered?.webgpu ?? true,
    }
    if (options.mlc && !options.webgpu)
      throw createUsageError('WebLLM runs on WebGPU alone: leave --mlc or --no-webgpu out')
    const result = init({
      ...options,
      publicDir,
      sw: script || null,
      formerSw: remembered ? (remembered.sw ?? 'sw.js') || null : null,
      dist: DIST,
      runtime: findRuntime(),
    })
    const isRemembered = project.writeProjectOptions(app, { publicDir, sw: script, ...options })
    return printLines(
      ...formatInitReport(result, { version: readVersion(), sw: script, isRemembered }),
    )
  },
})

function assertScriptName(name: string): void {
  if (name === basename(name) && name.endsWith('.js') && escapeControls(name) === name) return
  throw wrongValueError('--sw', 'the name of a script, such as inorigin-sw.js', name)
}
