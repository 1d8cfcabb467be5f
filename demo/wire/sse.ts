/** One server-sent event. Comments, such as heartbeats, are not events. */
export interface ServerSentEvent {
  /** Value of the `event:` field; `message` if there is none. */
  event: string
  data: string
}

/** Returns a function that takes pieces of an event stream and returns the events they complete. */
export function eventReader(): (text: string) => ServerSentEvent[] {
  let rest = ''
  return (text) => {
    rest += text
    // A carriage return at the end may be half of a line break.
    const whole = rest.endsWith('\r') ? rest.slice(0, -1) : rest
    const blocks = whole.replace(/\r\n?/g, '\n').split('\n\n')
    rest = (blocks.pop() ?? '') + rest.slice(whole.length)
    return blocks.flatMap(readBlock)
  }
}

function readBlock(block: string): ServerSentEvent[] {
  let event = 'message'
  const data: string[] = []
  for (const line of block.split('\n')) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? []
    if (name === 'event') event = value ?? ''
    if (name === 'data') data.push(value ?? '')
  }
  return data.length > 0 ? [{ event, data: data.join('\n') }] : []
}
