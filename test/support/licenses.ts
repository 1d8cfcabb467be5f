/** The file in which the package carries the licenses of its parts. */

/** Names and texts of its sections, in order. */
export function licenseSections(markdown: string): [string, string][] {
  // A license may have headings of its own; those of sections end with a version or are names of texts.
  const heading = /^## (?:(\S+) - \d\S* \([^)]+\)|([A-Z]\S+-\d\S*|MIT))\n/gm
  const starts = [...markdown.matchAll(heading)]
  return starts.map((start, index): [string, string] => {
    const end = starts[index + 1]?.index ?? markdown.length
    return [start[1] ?? start[2] ?? '', markdown.slice(start.index + start[0].length, end).trim()]
  })
}
