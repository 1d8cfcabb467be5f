/** Starts the server in a page with the models that `npm run pipelines` has added. */
import { serve, type Device, type Server } from '../../src/index.ts'

/** Starts the server. `?device=webgpu` or `?device=wasm` in the page's address restricts it. */
export function start(): Promise<Server> {
  const asked = new URLSearchParams(location.search).get('device')
  const device: Device | 'auto' = asked === 'webgpu' || asked === 'wasm' ? asked : 'auto'
  return serve({ catalog: './inorigin/catalog.json', device })
}

/** Returns the element. Throws if the page has none. */
export function find<T extends Element>(selector: string, type: new () => T): T {
  const element = document.querySelector(selector)
  if (element instanceof type) return element
  throw new Error(`The page has no ${selector}.`)
}

/** Shows a message below the controls. */
export function tell(message: string): void {
  find('#status', HTMLElement).textContent = message
}

/** Shows the values as JSON. */
export function showValues(values: unknown): void {
  find('#values', HTMLElement).textContent = JSON.stringify(values)
}

/** Runs an action and shows its error, with its code if it has one. */
export async function run(action: () => Promise<void>): Promise<void> {
  try {
    await action()
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    tell(code === undefined ? message : `${code}: ${message}`)
  }
}
