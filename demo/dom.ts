/** Returns the element with this id. Throws if the page has none, or one of another class. */
export function byId<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id)
  if (found instanceof kind) return found
  throw new Error(`The page has no ${kind.name} with the id ${id}.`)
}

/** Creates an element with a class and text. The text is never parsed as HTML. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  className: string,
  text = '',
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name)
  made.className = className
  made.textContent = text
  return made
}

/** Creates a button. */
export function button(text: string, className: string, onClick: () => void): HTMLButtonElement {
  const made = element('button', className, text)
  made.type = 'button'
  made.addEventListener('click', onClick)
  return made
}

/** Makes a button copy the text that `read` returns, and show that for a moment. */
export function copies(trigger: HTMLButtonElement, read: () => string): void {
  const label = trigger.textContent
  let timer: ReturnType<typeof setTimeout> | undefined
  const say = (text: string): void => {
    trigger.textContent = text
    clearTimeout(timer)
    timer = setTimeout(() => (trigger.textContent = label), 1_500)
  }
  trigger.addEventListener('click', () => {
    navigator.clipboard.writeText(read()).then(
      () => say('Copied'),
      () => say('Not allowed'),
    )
  })
}
