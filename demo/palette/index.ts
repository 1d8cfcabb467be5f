/** Shortcuts of the page, and the palette that lists what they do. */
import { byId } from '../dom.ts'
import { commandsWithKeys, matchesKeys, registerCommand, showKeys } from './commands.ts'

const PALETTE_KEYS = 'Ctrl+K'

/** Commands that press a button of the page. */
const BUTTONS: readonly [id: string, title: string, keys?: string][] = [
  ['new-chat', 'New chat', 'Alt+N'],
  ['tab-requests', 'Show the requests', 'Alt+R'],
  ['tab-predictors', 'Show the predictors', 'Alt+P'],
  ['tab-settings', 'Show the settings', 'Alt+S'],
  ['theme', 'Switch between light and dark'],
  ['attach', 'Add an image'],
  ['camera', 'Use the camera'],
  ['history-open', 'Show or hide the history', 'Alt+H'],
  ['models-open', 'Show all models', 'Alt+M'],
  ['tools-open', 'Edit the tools', 'Alt+T'],
  ['compare-open', 'Compare answers', 'Alt+C'],
  ['stop', 'Stop the answer'],
]

/** Creates the shortcuts. The palette and the help are loaded when they are opened. */
export function createPalette(): void {
  const openPalette = (): void => {
    void import('./palette.ts').then((loaded) => loaded.openPalette())
  }
  registerCommand({
    id: 'palette',
    title: 'Find a command',
    keys: PALETTE_KEYS,
    isEnabled: () => false,
    run: openPalette,
  })
  registerCommand({
    id: 'question',
    title: 'Write a question',
    keys: '/',
    run: () => byId('input', HTMLTextAreaElement).focus(),
  })
  for (const [id, title, keys] of BUTTONS) {
    const target = byId(id, HTMLButtonElement)
    const isEnabled = (): boolean => !target.disabled && !target.hidden
    registerCommand({ id, title, keys, isEnabled, run: () => press(target) })
  }
  registerCommand({
    id: 'help',
    title: 'Show the shortcuts',
    keys: '?',
    run: () => void import('./help.ts').then(({ openHelp }) => openHelp()),
  })

  const opener = byId('palette-open', HTMLButtonElement)
  opener.title = showKeys(PALETTE_KEYS)
  opener.addEventListener('click', openPalette)
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.repeat || event.isComposing) return
    const command = commandsWithKeys().find(({ keys = '' }) => matchesKeys(keys, event))
    if (!command) return
    // A single letter is text where text is written, and a dialog has its own keys.
    const isSingle = !command.keys?.includes('+')
    if (isSingle && isWriting(event.target)) return
    if (document.querySelector('dialog[open]') && command.id !== 'palette') return
    if (command.id !== 'palette' && !(command.isEnabled?.() ?? true)) return
    event.preventDefault()
    command.run()
  })
}

/** Presses a button. One in the panel, which may be closed on a narrow page, is shown first. */
function press(target: HTMLButtonElement): void {
  const isHidden = target.checkVisibility({ visibilityProperty: true }) === false
  if (isHidden && target.closest('#panel')) byId('panel-open', HTMLButtonElement).click()
  target.click()
}

function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches('input, textarea, select'))
  )
}
