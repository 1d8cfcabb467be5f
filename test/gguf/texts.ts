/** Texts in many scripts, with everything on which tokenizers differ. */
import { type Chance, createChance } from '../support/random.ts'

/**
 * Ranges of code points, assigned ones and others: alphabets, scripts without spaces, signs, emoji
 * and control characters. Letters that Unicode got after 2022 are left out, because llama.cpp does not
 * know them.
 */
const RANGES = (
  '20-7e a0-24f 250-2af 300-36f 370-3ff 400-52f 530-58f 590-5ff 600-6ff 700-74f 780-7bf ' +
  '900-97f 980-9ff a00-a7f b80-bff c00-c5b d00-d7f e00-e7f f00-fff 1000-109f 10a0-11ff ' +
  '1200-137f 13a0-13ff 1680-169f 1780-17ff 1800-18af 1e00-1fff 2000-218f 2190-23ff ' +
  '2460-27bf 2c00-2d2f 3000-318f 3200-4dbf 4e00-9fff a000-a48f a640-a69f a720-a7ca ' +
  'ab30-ab6f ac00-d7a3 e000-e0ff f900-fe6f ff00-ffef 10000-100ff 10330-1034f 10400-104ff ' +
  '10570-105bf 12000-123ff 16e40-16e9a 1d400-1d7ff 1f000-1f64f 1f680-1f6ff 1f900-1f9ff ' +
  '20000-2a6df 30000-3134f e0000-e01ef 0-1f 7f-9f'
)
  .split(' ')
  .map((range) => range.split('-').map((digits) => Number.parseInt(digits, 16)))

const SPACES = [
  ' |  |   |       |\t|\t\t\t|\n|\n\n|\n\n\n\n\n|\r|\r\n|\n \n| \n|\n  |\v|\f',
  '\u00A0|\u3000|\u2028|\u0085|\u1680|\u200B|\uFEFF',
].flatMap((listed) => listed.split('|'))

const WORDS = (
  "the a to in you that it's I'M we'RE they'll He'd don't O'Neill 'ſ naïve straße œuvre żółć " +
  'İstanbul ﬁne ǅ HTTPServer camelCase snake_case XMLHttpRequest привет γειά שלום مرحبا السَّلَامُ ' +
  'नमस्ते বাংলা வணக்கம் ไทยสวัสดีครับ မြန်မာ ភាសាខ្មែរ ქართული Հայերեն አማርኛ 你好世界 機器學習 こんにちは ' +
  'ｶﾀｶﾅ 안녕하세요 ᏣᎳᎩ ᐃᓄᒃᑎᑐᑦ e\u0301a\u0308 q\u0307\u0323 tiếng ０１２ ١٢٣٤٥ ②③ Ⅳ ½ x² €£ ™ … — ‘’ « ~ ~é ~= ' +
  '`code` === !== -> <<= :: #tag @user https://example.com/a?b=c&d=%20 C:\\path \\u0041 ▁ ▁▁ ▁word ' +
  '<0x0A> </b> {"key": [1, 2.5, null]} 👨‍👩‍👧‍👦 🏳️‍🌈 🇨🇭🇬🇧 👍🏽 ❤️ 1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🫨'
).split(' ')

const CODE = [
  'function f(x) {\n  return x*2;\n}\n',
  'def f(self, *args, **kw):\n    """doc"""\n\treturn None\n',
  "SELECT * FROM t WHERE a='b';",
  '| a | b |\n|---|---|\n| 1 | 2 |\n',
  '========',
  '////////',
  '!!!???...',
  'a'.repeat(30),
  'ab'.repeat(12),
  '0'.repeat(20),
]

/** Beginnings and parts of special tokens. */
const NEARLY_SPECIAL = ['<|', '|>', '<|im_start', 'im_start|>', '<s', '[/INST']

const HALF_PAIRS = ['\uD800', '\uDFFF', '\uD83D', '\uDE00']

/**
 * Returns texts, which are the same for the same seed. `specials` are the texts of special tokens,
 * which some of them contain.
 */
export function createTexts(count: number, seed: number, specials: readonly string[]): string[] {
  const chance = createChance(seed)
  return Array.from({ length: count }, () => {
    let text = ''
    for (let left = 1 + chance.below(14); left > 0; left -= 1)
      text += createPart(chance, specials) + (chance.often(0.3) ? ' ' : '')
    return text
  })
}

function createPart(chance: Chance, specials: readonly string[]): string {
  const kind = chance.below(100)
  if (kind < 24) return createRun(chance)
  if (kind < 56) return chance.pick(WORDS)
  if (kind < 68) return chance.pick(SPACES)
  if (kind < 78) return createNumber(chance)
  if (kind < 84) return chance.pick(CODE)
  if (kind < 92 && specials.length > 0) return chance.pick(specials)
  if (kind < 95) return chance.pick(NEARLY_SPECIAL)
  if (kind < 97) return chance.pick(HALF_PAIRS)
  return chance.pick(Array.from('.,;:!?\'"()[]{}<>/\\|@#$%^&*-_=+~`'))
}

/** Returns a few characters of one script. */
function createRun(chance: Chance): string {
  const [from = 0, to = 0] = chance.pick(RANGES)
  const points = Array.from(
    { length: 1 + chance.below(8) },
    () => from + chance.below(to - from + 1),
  )
  return String.fromCodePoint(...points)
}

function createNumber(chance: Chance): string {
  const digits = Array.from({ length: 1 + chance.below(12) }, () => chance.below(10)).join('')
  const forms = [
    digits,
    digits,
    `-${digits}`,
    `${digits}.${digits.slice(0, 3)}`,
    `$${digits}`,
    `0x${digits}aF`,
    digits.replaceAll(/(?=(?:\d{3})+$)/g, ','),
  ]
  return chance.pick(forms)
}
