/**
 * Formats a date like Python's `strftime`. Names are in English, as in the training data, whatever
 * the browser's language.
 */
export function strftime(date: Date, format: string): string {
  const name = (options: Intl.DateTimeFormatOptions): string =>
    date.toLocaleDateString('en', options)
  const pad = (value: number): string => String(value).padStart(2, '0')
  const parts: Record<string, () => string> = {
    '%Y': () => String(date.getFullYear()),
    '%y': () => pad(date.getFullYear() % 100),
    '%m': () => pad(date.getMonth() + 1),
    '%d': () => pad(date.getDate()),
    '%B': () => name({ month: 'long' }),
    '%b': () => name({ month: 'short' }),
    '%A': () => name({ weekday: 'long' }),
    '%a': () => name({ weekday: 'short' }),
    '%H': () => pad(date.getHours()),
    '%I': () => pad(date.getHours() % 12 || 12),
    '%p': () => (date.getHours() < 12 ? 'AM' : 'PM'),
    '%M': () => pad(date.getMinutes()),
    '%S': () => pad(date.getSeconds()),
    '%%': () => '%',
  }
  return format.replace(/%-?[a-zA-Z%]/g, (token) => {
    const bare = token.replace('-', '')
    const text = parts[bare]?.()
    return text === undefined ? token : bare === token ? text : text.replace(/^0/, '')
  })
}
