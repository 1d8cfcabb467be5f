import { byId } from './dom.ts'
import { Drawer } from './drawer.ts'

/** Key of the tab that was chosen last. */
const TAB = 'playground:tab'

export interface Panel {
  /** Calls these functions each time the tab that controls the element becomes visible. */
  onShow(name: string, refresh: readonly (() => void)[]): void
}

/** Creates the panel beside the chat. Each tab of the page controls the element that it names. */
export function createPanel(): Panel {
  const drawer = new Drawer({
    part: 'panel',
    opener: 'panel-open',
    closer: 'panel-close',
    isOpen: false,
  })
  const tabs = [...drawer.element.querySelectorAll<HTMLButtonElement>('[role=tab]')]
  const refreshers = new Map<string, (() => void)[]>()
  let shown = tabs.find((tab) => nameOf(tab) === localStorage.getItem(TAB)) ?? tabs[0]

  function tell(): void {
    if (drawer.isShown) refreshers.get(nameOf(shown))?.forEach((refresh) => refresh())
  }

  function show(): void {
    for (const each of tabs) {
      const selected = each === shown
      byId(nameOf(each), HTMLElement).hidden = !selected
      each.setAttribute('aria-selected', String(selected))
      each.tabIndex = selected ? 0 : -1
    }
  }

  function select(tab: HTMLButtonElement | undefined): void {
    shown = tab
    localStorage.setItem(TAB, nameOf(tab))
    show()
    tell()
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
  show()
  drawer.onShow(tell)

  return {
    onShow(tab, refresh) {
      refreshers.set(tab, [...(refreshers.get(tab) ?? []), ...refresh])
      if (drawer.isShown && tab === nameOf(shown)) for (const one of refresh) one()
    },
  }
}

/** Returns the id of the element that a tab controls. */
const nameOf = (tab: HTMLElement | undefined): string => tab?.getAttribute('aria-controls') ?? ''
