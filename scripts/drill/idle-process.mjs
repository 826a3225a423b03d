/** A process that does nothing, to compare with: how late are its timers? Told to reset and report over IPC. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 10;
const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
histogram.enable();
const late = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);

process.on('message', (message) => {
  if (message === 'reset') histogram.reset();
  else
    process.send({
      p50: late(histogram.percentile(50)),
      p99: late(histogram.percentile(99)),
      p999: late(histogram.percentile(99.9)),
      max: late(histogram.max),
    });
});
process.on('disconnect', () => process.exit(0));
