import { byId } from './dom.ts'

type Theme = 'light' | 'dark'

const KEY = 'playground:theme'

/** Follows the theme of the system until the user selects the other one, which is stored. */
export function createTheme(): void {
  const toggle = byId('theme', HTMLButtonElement)
  const system = matchMedia('(prefers-color-scheme: dark)')
  const preferred = (): Theme => (system.matches ? 'dark' : 'light')
  let chosen = read()

  function apply(): void {
    if (chosen) document.documentElement.dataset['theme'] = chosen
    else delete document.documentElement.dataset['theme']
    const next = (chosen ?? preferred()) === 'dark' ? 'Light theme' : 'Dark theme'
    toggle.title = next
    toggle.setAttribute('aria-label', next)
  }

  toggle.addEventListener('click', () => {
    const next: Theme = (chosen ?? preferred()) === 'dark' ? 'light' : 'dark'
    chosen = next === preferred() ? undefined : next
    if (chosen) localStorage.setItem(KEY, chosen)
    else localStorage.removeItem(KEY)
    apply()
  })
  system.addEventListener('change', apply)
  apply()
}

function read(): Theme | undefined {
  const stored = localStorage.getItem(KEY)
  return stored === 'light' || stored === 'dark' ? stored : undefined
}
