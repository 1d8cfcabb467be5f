/** Programs that the tests need and that are not on npm: where they are, and how they are installed. */
import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Returns every path that one of the commands would have in a folder of `PATH`, in order of the commands. */
export function onPath(commands: readonly string[]): string[] {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  return commands.flatMap((command) => folders.map((folder) => join(folder, command)))
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Ubuntu installs a `chromium-browser` that only says to install a snap, so being there is not enough. */
export function starts(path: string): boolean {
  if (!isExecutable(path)) return false
  // On Windows `--version` opens a window instead.
  return process.platform === 'win32' || spawnSync(path, ['--version']).status === 0
}

/** Returns whether this user can install Debian's packages. */
export function hasApt(): boolean {
  return process.getuid?.() === 0 && onPath(['apt-get']).some(isExecutable)
}

/** Installs a Debian package. The caller checks whether that has helped. */
export function installPackage(name: string): void {
  run('apt-get', ['update'])
  run('apt-get', ['install', '-y', '--no-install-recommends', name])
}

/** Runs a command with its output shown. Prints why, if it could not be started. */
export function run(command: string, args: readonly string[]): void {
  const { error } = spawnSync(command, args, { stdio: 'inherit' })
  if (error) say(`${command} could not be run: ${error.message}`)
}

export function say(line: string): void {
  process.stderr.write(`[browsers] ${line}\n`)
}
