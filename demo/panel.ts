import { byId } from './dom.ts'

const TABS = ['wire', 'predictors', 'settings'] as const
type Tab = (typeof TABS)[number]

export interface Panel {
  /** Calls these functions each time the tab becomes visible. */
  onShow(tab: Tab, refresh: readonly (() => void)[]): void
}

/** Creates the panel beside the chat and its tabs. On a narrow page it opens over the chat. */
export function createPanel(): Panel {
  const panel = byId('panel', HTMLElement)
  const opener = byId('panel-open', HTMLButtonElement)
  const beside = matchMedia('(min-width: 66rem)')
  const behind = document.querySelectorAll<HTMLElement>('.bar, .chat')
  const tabs = TABS.map((name) => byId(`tab-${name}`, HTMLButtonElement))
  const refreshers = new Map<Tab, (() => void)[]>()
  let open = false
  let shown: Tab = 'wire'

  function tell(): void {
    if (open || beside.matches) refreshers.get(shown)?.forEach((refresh) => refresh())
  }

  function select(tab: Tab): void {
    shown = tab
    TABS.forEach((name, index) => {
      const selected = name === tab
      byId(name, HTMLElement).hidden = !selected
      tabs[index]?.setAttribute('aria-selected', String(selected))
      if (tabs[index]) tabs[index].tabIndex = selected ? 0 : -1
    })
    tell()
  }

  function setOpen(next: boolean): void {
    open = next
    panel.classList.toggle('open', open)
    opener.setAttribute('aria-expanded', String(open))
    for (const part of behind) part.inert = open
    if (open) {
      tell()
      byId(`tab-${shown}`, HTMLButtonElement).focus()
    } else opener.focus()
  }

  tabs.forEach((tab, index) => {
    tab.addEventListener('click', () => select(TABS[index] ?? 'wire'))
    tab.addEventListener('keydown', ({ key }) => {
      const step = key === 'ArrowRight' ? 1 : key === 'ArrowLeft' ? -1 : 0
      if (step === 0) return
      const next = (index + step + tabs.length) % tabs.length
      select(TABS[next] ?? 'wire')
      tabs[next]?.focus()
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
