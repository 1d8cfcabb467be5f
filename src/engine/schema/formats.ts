/**
 * Defines a pattern for each string format. A pattern may have fewer texts than its format, but
 * never other texts. For instance, there are no leap seconds and no quoted or non-ASCII e-mail
 * names.
 */
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
const NAME = '[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*'
const BYTE = '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
const IPV4 = `${BYTE}(?:\\.${BYTE}){3}`

const LEAP = '(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)'
const DATE = [
  '[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])',
  '(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)',
  `02-(?:0[1-9]|1[0-9]|2[0-8]))|${LEAP}-02-29`,
].join('|')
const TIME =
  '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?' +
  '(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])'

/** Returns a pattern of units from the greatest on. No unit between two others may be missing. */
const units = (a: string, b: string, c: string): string => {
  const count = '[0-9]{1,9}'
  const [last, two] = [`${count}${c}`, `${count}${b}(?:${count}${c})?`]
  return `(?:${count}${a}(?:${two})?|${two}|${last})`
}
const DURATION_DATE = units('Y', 'M', 'D')
const DURATION_TIME = `T${units('H', 'M', 'S')}`

const HEX = '[0-9A-Fa-f]'
const GROUP = `${HEX}{1,4}`
/** Pattern of all groups, or of `::` in place of at least two of them. */
const IPV6 = [
  `(?:${GROUP}:){7}${GROUP}`,
  ...[...Array(7).keys()].map((before) => {
    const head = before === 0 ? '' : `${GROUP}(?::${GROUP}){${before - 1}}`
    const most = 6 - before
    return `${head}::${most === 0 ? '' : `(?:${GROUP}(?::${GROUP}){0,${most - 1}})?`}`
  }),
].join('|')

const UNRESERVED = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%${HEX}{2})`
const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"

const PATTERNS: Readonly<Record<string, string>> = {
  date: DATE,
  time: TIME,
  'date-time': `(?:${DATE})T${TIME}`,
  duration: `P(?:${DURATION_DATE}(?:${DURATION_TIME})?|${DURATION_TIME}|[0-9]{1,9}W)`,
  // Each label stays below the limit of 63 characters, and the whole below 253.
  hostname: `${LABEL}(?:\\.${LABEL}){0,2}`,
  email: `${ATOM}+(?:\\.${ATOM}+)*@${NAME}(?:\\.${NAME})+`,
  ipv4: IPV4,
  ipv6: IPV6,
  uuid: `${HEX}{8}-${HEX}{4}-${HEX}{4}-${HEX}{4}-${HEX}{12}`,
  uri: [
    `[A-Za-z][A-Za-z0-9+.-]{0,15}://${NAME}(?:\\.${NAME})*(?::[1-9][0-9]{0,3})?`,
    `(?:/${UNRESERVED}*)*(?:\\?(?:${UNRESERVED}|[/?])*)?(?:#(?:${UNRESERVED}|[/?])*)?`,
  ].join(''),
}

/** Returns the pattern of a string format; `undefined` if the format is unknown. */
export const formatPattern = (format: string): string | undefined =>
  Object.hasOwn(PATTERNS, format) ? `^(?:${PATTERNS[format]})$` : undefined

/** Bounds of each number format. */
export const NUMBER_FORMATS: Readonly<Record<string, readonly [min: number, max: number]>> = {
  int32: [-2147483648, 2147483647],
  int64: [-9223372036854775808, 9223372036854774784],
  double: [-Infinity, Infinity],
}
