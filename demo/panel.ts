import { byId } from './dom.ts'

export interface Panel {
  /** Calls these functions each time the tab that controls the element becomes visible. */
  onShow(name: string, refresh: readonly (() => void)[]): void
}

/**
 * Creates the panel beside the chat. Each tab of the page controls the element that it names. On a
 * narrow page the panel opens over the chat.
 */
export function createPanel(): Panel {
  const panel = byId('panel', HTMLElement)
  const opener = byId('panel-open', HTMLButtonElement)
  const beside = matchMedia('(min-width: 66rem)')
  const behind = document.querySelectorAll<HTMLElement>('.bar, .chat')
  const tabs = [...panel.querySelectorAll<HTMLButtonElement>('[role=tab]')]
  const refreshers = new Map<string, (() => void)[]>()
  let open = false
  let shown = tabs[0]

  function tell(): void {
    if (open || beside.matches) refreshers.get(nameOf(shown))?.forEach((refresh) => refresh())
  }

  function select(tab: HTMLButtonElement | undefined): void {
    shown = tab
    for (const each of tabs) {
      const selected = each === tab
      byId(nameOf(each), HTMLElement).hidden = !selected
      each.setAttribute('aria-selected', String(selected))
      each.tabIndex = selected ? 0 : -1
    }
    tell()
  }

  function setOpen(next: boolean): void {
    open = next
    panel.classList.toggle('open', open)
    opener.setAttribute('aria-expanded', String(open))
    for (const part of behind) part.inert = open
    if (open) {
      tell()
      shown?.focus()
    } else opener.focus()
  }

  tabs.forEach((tab, index) => {
    tab.addEventListener('click', () => select(tab))
    tab.addEventListener('keydown', ({ key }) => {
      const step = key === 'ArrowRight' ? 1 : key === 'ArrowLeft' ? -1 : 0
      if (step === 0) return
      const next = tabs[(index + step + tabs.length) % tabs.length]
      select(next)
      next?.focus()
    })
  })
  opener.addEventListener('click', () => setOpen(true))
  byId('panel-close', HTMLButtonElement).addEventListener('click', () => setOpen(false))
  panel.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape' && open) setOpen(false)
  })
  document.addEventListener('pointerdown', ({ target }) => {
    if (open && target instanceof Node && !panel.contains(target)) setOpen(false)
  })
  beside.addEventListener('change', () => {
    if (open) setOpen(false)
    else tell()
  })

  return {
    onShow(tab, refresh) {
      refreshers.set(tab, [...(refreshers.get(tab) ?? []), ...refresh])
    },
  }
}

/** Returns the id of the element that a tab controls. */
const nameOf = (tab: HTMLElement | undefined): string => tab?.getAttribute('aria-controls') ?? ''
