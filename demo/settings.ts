import { byId } from './dom.ts'
import { completions } from './wire/completions.ts'
import { messages } from './wire/messages.ts'
import type { Settings, WireStyle } from './wire/style.ts'

const KEY = 'playground:settings'
const FIELDS = ['system', 'temperature', 'maxTokens', 'seed'] as const

export interface SettingsForm {
  /** Returns the current settings. Numbers are not checked here, because the server does that. */
  read(): Settings
  style(): WireStyle
}

/** Creates the settings of the panel, which are stored, and the switch between wire styles. */
export function createSettings(): SettingsForm {
  const form = byId('settings-form', HTMLFormElement)
  const style = byId('style', HTMLFieldSetElement)

  function field(name: (typeof FIELDS)[number]): HTMLInputElement | HTMLTextAreaElement {
    const found = form.elements.namedItem(name)
    if (found instanceof HTMLInputElement || found instanceof HTMLTextAreaElement) return found
    throw new Error(`The settings have no field ${name}.`)
  }

  function remember(): void {
    const values = FIELDS.map((name) => [name, field(name).value])
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(values)))
  }

  function number(name: 'temperature' | 'maxTokens' | 'seed'): number | undefined {
    const { value } = field(name)
    return value === '' ? undefined : Number(value)
  }

  const stored = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Record<string, string>
  for (const name of FIELDS) field(name).value = stored[name] ?? ''
  form.addEventListener('input', remember)
  // The browser clears the fields only after this event.
  form.addEventListener('reset', () => setTimeout(remember))
  form.addEventListener('submit', (event) => event.preventDefault())

  return {
    read() {
      const system = field('system').value.trim()
      return {
        system: system === '' ? undefined : system,
        temperature: number('temperature'),
        maxTokens: number('maxTokens'),
        seed: number('seed'),
      }
    },
    style() {
      const checked = style.querySelector<HTMLInputElement>('input:checked')
      return checked?.value === 'messages' ? messages : completions
    },
  }
}
