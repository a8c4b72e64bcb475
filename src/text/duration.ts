/** "840 ms", "1.8 s", "6 min 12 s", "2 h 3 min", "1 d 4 h". */
export function duration(ms: number): string {
  if (!(ms > 0)) return "0 s";
  if (ms < 1000) return ms < 999.5 ? `${Math.round(ms)} ms` : "1 s";
  if (ms < 9950) return `${Math.round(ms / 100) / 10} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return pair([Math.floor(seconds / 60), "min"], [seconds % 60, "s"]);
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return pair([Math.floor(minutes / 60), "h"], [minutes % 60, "min"]);
  const hours = Math.round(minutes / 60);
  return pair([Math.floor(hours / 24), "d"], [hours % 24, "h"]);
}

function pair(first: [number, string], second: [number, string]): string {
  const head = `${first[0]} ${first[1]}`;
  return second[0] === 0 ? head : `${head} ${second[0]} ${second[1]}`;
}
