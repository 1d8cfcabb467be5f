/** Added to the end of the product's workers: they report their times to the page that asks. */
import { ASK, CHANNEL, readTimes } from './startup-times.ts'

const channel = new BroadcastChannel(CHANNEL)
channel.onmessage = ({ data }) => {
  if (data === ASK) channel.postMessage(readTimes())
}
