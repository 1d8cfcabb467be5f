/**
 * Patterns of the string formats, as regular expressions of ECMAScript without anchors. A format has the texts that
 * both its specification and ajv-formats accept, so that an answer is valid for whoever reads it. Therefore there are
 * no quoted local parts of e-mail addresses, and no internationalized labels in host names, whose validity is not
 * regular.
 */
const LEAP_YEAR = '(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)'
const DATE =
  '(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|' +
  `02-(?:0[1-9]|1[0-9]|2[0-8]))|${LEAP_YEAR}-02-29)`
const HOUR = '(?:[01][0-9]|2[0-3])'
const CLOCK = `${HOUR}:[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?`
const ZONE = `(?:[Zz]|[+-]${HOUR}:[0-5][0-9])`

/** Returns the times of day that are 23:59:60 UTC, in the zones that are whole or half hours away from it. */
function leapSeconds(): string {
  const write = (minutes: number): string =>
    [Math.floor(minutes / 60) % 24, minutes % 60]
      .map((each) => `${each}`.padStart(2, '0'))
      .join(':')
  const at = (minutes: number, zone: string): string => `${write(minutes)}:60(?:\\.[0-9]+)?${zone}`
  const last = 23 * 60 + 59
  const local = Array.from({ length: 48 }, (_, index) => index * 30).flatMap((offset) => [
    at(last + offset, `\\+${write(offset)}`),
    at(last - offset, `\\-${write(offset)}`),
  ])
  return [at(last, '[Zz]'), ...local].join('|')
}

const TIME = `(?:${CLOCK}${ZONE}|${leapSeconds()})`

/** Returns a pattern of units from the greatest on, of which none between two others is missing. */
const units = (first: string, second: string, third: string): string =>
  `(?:[0-9]+${first}(?:[0-9]+${second}(?:[0-9]+${third})?)?|[0-9]+${second}(?:[0-9]+${third})?|[0-9]+${third})`
const DURATION_TIME = `T${units('H', 'M', 'S')}`

const ALNUM = '[A-Za-z0-9]'
const LDH = '[A-Za-z0-9-]'
/** A label of at most 63 characters. Hyphens as its third and fourth character announce another encoding. */
const LABEL = `${ALNUM}(?:${LDH}?${ALNUM}|${LDH}(?:${ALNUM}|-)${ALNUM}|${LDH}(?:${ALNUM}${LDH}|-${ALNUM})${LDH}{0,58}${ALNUM})?`
const HOSTNAME = `(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*`
const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
/** Labels of any length, since the engine has to look for a text that matches both this and a pattern. */
const DOMAIN = `${ALNUM}(?:${LDH}*${ALNUM})?`
const EMAIL = `${ATOM}(?:\\.${ATOM})*@(?:${DOMAIN}\\.)+${DOMAIN}`

const BYTE = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
const IPV4 = `${BYTE}(?:\\.${BYTE}){3}`
const HEX = '[0-9A-Fa-f]'
const GROUP = `${HEX}{1,4}`

/** Returns the pattern of eight groups, of which `::` stands for at least one, and an IPv4 address for the last two. */
function ipv6(): string {
  const tail = (groups: number): string =>
    groups < 2
      ? `${GROUP}`
      : `(?:(?:${GROUP}:){0,${groups - 1}}${GROUP}|(?:${GROUP}:){0,${groups - 2}}${IPV4})`
  const shortened = Array.from({ length: 8 }, (_, before) => {
    const head = before === 0 ? '' : `${GROUP}(?::${GROUP}){${before - 1}}`
    return before === 7 ? `${head}::` : `${head}::(?:${tail(7 - before)})?`
  })
  return `(?:(?:${GROUP}:){6}(?:${GROUP}:${GROUP}|${IPV4})|${shortened.join('|')})`
}
const IPV6 = ipv6()

const UNRESERVED = "-A-Za-z0-9._~!$&'()*+,;="
/** Characters of an IRI outside ASCII. */
const UCS =
  '\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}' +
  Array.from({ length: 14 }, (_, index) => {
    const plane = (index + 1).toString(16)
    return `\\u{${plane}${index === 13 ? '1' : '0'}000}-\\u{${plane}FFFD}`
  }).join('')
const PRIVATE = '\\u{E000}-\\u{F8FF}\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}'

/** Returns the patterns of what identifies a resource: absolute, and relative as well. */
function resources(more: string, inQuery: string): { absolute: string; reference: string } {
  const of = (characters: string): string => `(?:[${UNRESERVED}${characters}]|%${HEX}{2})`
  const segment = of(`${more}:@`)
  const host = `(?:\\[(?:${IPV6}|[Vv]${HEX}+\\.[${UNRESERVED}:]+)\\]|${of(more)}*)`
  const path = `(?:/${segment}*)*`
  const authority = `//(?:${of(`${more}:`)}*@)?${host}(?::[0-9]*)?${path}`
  const rooted = `/(?:${segment}+${path})?`
  const tail = `(?:\\?${of(`${more}${inQuery}:@/?`)}*)?(?:#${of(`${more}:@/?`)}*)?`
  const absolute = `[A-Za-z][A-Za-z0-9+.-]*:(?:${authority}|${rooted}|${segment}+${path})`
  const relative = `(?:${authority}|${rooted}|${of(`${more}@`)}+${path}|)`
  return { absolute: `${absolute}${tail}`, reference: `(?:${absolute}|${relative})${tail}` }
}
const URI = resources('', '')
const IRI = resources(UCS, PRIVATE)

const TEMPLATE_NAME = `(?:[A-Za-z0-9_]|%${HEX}{2})+(?::[1-9][0-9]{0,3}|\\*)?`
const POINTER = '(?:/(?:[^~/]|~[01])*)*'
const BASE64 = '(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?'

const PATTERNS = new Map(
  Object.entries({
    date: DATE,
    time: TIME,
    'date-time': `${DATE}[Tt]${TIME}`,
    'iso-time': `(?:${TIME}|${CLOCK})`,
    'iso-date-time': `${DATE}[Tt ](?:${TIME}|${CLOCK})`,
    duration: `P(?:${units('Y', 'M', 'D')}(?:${DURATION_TIME})?|${DURATION_TIME}|[0-9]+W)`,
    email: EMAIL,
    hostname: HOSTNAME,
    ipv4: IPV4,
    ipv6: IPV6,
    uri: URI.absolute,
    'uri-reference': URI.reference,
    iri: IRI.absolute,
    'iri-reference': IRI.reference,
    'uri-template': `(?:[^\\x00-\\x20"'<>%\\\\^\`{|}\\x7f]|%${HEX}{2}|\\{[+#./;?&]?${TEMPLATE_NAME}(?:,${TEMPLATE_NAME})*\\})*`,
    uuid: `${HEX}{8}(?:-${HEX}{4}){3}-${HEX}{12}`,
    'json-pointer': POINTER,
    'json-pointer-uri-fragment': `#(?:/(?:[A-Za-z0-9_.!$&'()*+,;:=@-]|%${HEX}{2}|~[01])*)*`,
    'relative-json-pointer': `(?:0|[1-9][0-9]*)(?:#|${POINTER})`,
    // Formats of zod. `byte` of OpenAPI is reported as unknown, because texts under it are often no base64.
    base64: BASE64,
    base64url: '(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2,3})?',
    cidrv4: `${IPV4}/(?:[0-9]|[12][0-9]|3[0-2])`,
    cidrv6: `${IPV6}/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])`,
    cuid: '[Cc][0-9a-z]{6,}',
    cuid2: '[0-9a-z]+',
    e164: '\\+[1-9][0-9]{6,14}',
    emoji:
      '(?=[^]*[\\p{Extended_Pictographic}\\p{Regional_Indicator}\\u20E3])' +
      '[\\p{Extended_Pictographic}\\p{Emoji_Component}]+',
    guid: `${HEX}{8}(?:-${HEX}{4}){3}-${HEX}{12}`,
    hex: `${HEX}*`,
    ksuid: '[A-Za-z0-9]{27}',
    lowercase: '[^A-Z]*',
    mac: '(?:[0-9A-F]{2}(?::[0-9A-F]{2}){5}|[0-9a-f]{2}(?::[0-9a-f]{2}){5})',
    nanoid: '[A-Za-z0-9_-]{21}',
    ulid: '[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}',
    uppercase: '[^a-z]*',
    xid: '[0-9a-vA-V]{20}',
  }),
)

const IDN_LABEL = '(?:[A-Za-z0-9-]|[^\\x00-\\x7F\\s])+'
const IDN_HOSTNAME = `${IDN_LABEL}(?:\\.${IDN_LABEL})*`

/** Patterns of formats that are not regular, with more texts than those. */
const LOOSE_PATTERNS = new Map(
  Object.entries({
    'idn-hostname': IDN_HOSTNAME,
    'idn-email': `[^\\s@"]+@${IDN_HOSTNAME}`,
    jwt: '[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]*',
    regex: '[^]*',
  }),
)

/** Formats that restrict no string. Those of zod stand beside a pattern that says the same. */
const FREE = new Set(
  'password binary int32 int64 float double starts_with ends_with includes'.split(' '),
)

/** Returns the pattern of a known format, if it has any, and whether the pattern has more texts than the format. */
export function findFormat(name: string): { source?: string; isLoose: boolean } | undefined {
  const known = PATTERNS.get(name)
  const source = known ?? LOOSE_PATTERNS.get(name)
  if (source === undefined) return FREE.has(name) ? { isLoose: false } : undefined
  return { source: `^(?:${source})$`, isLoose: known === undefined }
}
