/** Commands that the palette offers. Any part of the page can register its own. */

export interface Command {
  id: string
  /** Name in the palette, such as `New chat`. */
  title: string
  /** Keys that run it, such as `Ctrl+K`. On a Mac, `Ctrl` is the command key. */
  keys?: string
  /** Returns `false` while the command cannot run. Default: it always can. */
  isEnabled?(): boolean
  run(): void
}

const commands = new Map<string, Command>()

/** Registers a command. An earlier one with the same id is replaced. */
export function registerCommand(command: Command): void {
  commands.set(command.id, command)
}

/** Returns the commands that can run now and match all words of a text, in their order. */
export function findCommands(text = ''): Command[] {
  const words = text.toLowerCase().split(/\s+/)
  return [...commands.values()].filter(
    ({ title, isEnabled }) =>
      words.every((word) => title.toLowerCase().includes(word)) && (isEnabled?.() ?? true),
  )
}

/** Returns all commands that have keys, also those that cannot run now. */
export function commandsWithKeys(): Command[] {
  return [...commands.values()].filter(({ keys }) => keys !== undefined)
}

const isMac = (): boolean => /Mac|iPhone|iPad/.test(navigator.platform)

/** Returns keys as they are written on the keyboard of this device, such as `⌘K`. */
export function showKeys(keys: string): string {
  return isMac() ? keys.replace('Ctrl+', '⌘').replace('Alt+', '⌥') : keys.replaceAll('+', ' ')
}

/** Returns `true` if a key event is that of a command's keys. */
export function matchesKeys(keys: string, event: KeyboardEvent): boolean {
  const parts = keys.split('+')
  const key = parts.at(-1) ?? ''
  const control = isMac() ? event.metaKey : event.ctrlKey
  // Alt writes another letter on a Mac, so the code of the key identifies letters.
  const isKey = event.key.toLowerCase() === key.toLowerCase() || event.code === `Key${key}`
  return isKey && control === parts.includes('Ctrl') && event.altKey === parts.includes('Alt')
}
