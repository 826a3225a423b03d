import { MessageChannel } from 'node:worker_threads';

/**
 * Gives the memory of buffers back at once; they, and all views of them, are empty afterwards. Buffers without
 * memory, or given away, are left alone.
 *
 * An ArrayBuffer that nothing refers to goes only with a collection of V8's, which a thread that has become idle does
 * not come to. So the memory is transferred in a message to a port that is being closed: the message is never
 * received, and is deleted with the port at the end of this turn of the event loop.
 *
 * @param onGone called when the memory is gone
 */
export function release(buffers: readonly ArrayBuffer[], onGone?: () => void): void {
  const held = buffers.filter((buffer) => buffer.byteLength > 0);
  if (held.length === 0) return onGone?.();
  const { port1, port2 } = new MessageChannel();
  if (onGone !== undefined) port2.once('close', onGone);
  port2.close();
  port1.postMessage(null, held);
  port1.close();
}
