// Places on a time axis. Even: as time passes. Compressed: long stretches in which nothing begins or ends take little
// room, so that a second of work shows beside a week of waiting. Pure.

const SHORTEST_MS = 1;

/** An axis from `start` to `end` (epoch ms) on which equal times are equally long. */
export function evenScale(start, end) {
  const span = Math.max(SHORTEST_MS, end - start);
  return { at: (time) => clamp((time - start) / span), time: (place) => start + place * span };
}

/**
 * An axis on which the stretches between `instants` are as long as the logarithm of their time says.
 * @param {Array<number>} instants epoch ms at which something begins or ends
 */
export function compressedScale(start, end, instants) {
  const stops = [...new Set([start, ...instants.filter((time) => time > start && time < end), Math.max(end, start + SHORTEST_MS)])].sort((a, b) => a - b);
  const weights = stops.slice(1).map((stop, index) => Math.log1p(stop - stops[index]));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const places = [0];
  for (const weight of weights) places.push(places.at(-1) + weight / total);
  return { at: (time) => between(time, stops, places), time: (place) => between(place, places, stops) };
}

/** Whether an axis from start to end hides most of what happens: nearly all of it is one stretch without change. */
export function worthCompressing(start, end, instants) {
  const stops = [start, ...instants.filter((time) => time > start && time < end).sort((a, b) => a - b), end];
  const longest = Math.max(...stops.slice(1).map((stop, index) => stop - stops[index]));
  return stops.length > 4 && longest > 0.8 * (end - start);
}

function between(value, from, to) {
  let index = 1;
  while (index < from.length - 1 && from[index] < value) index += 1;
  const share = clamp((value - from[index - 1]) / (from[index] - from[index - 1] || 1));
  return to[index - 1] + share * (to[index] - to[index - 1]);
}

const clamp = (share) => Math.min(1, Math.max(0, share));
