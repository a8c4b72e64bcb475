// Plain JavaScript for Node 20. Keeps one processor busy until its standard input closes, which happens
// however its starter ends.
const SLICE_MS = 20;

process.stdin.on("end", () => process.exit()).resume();
console.log("busy");
burn();

function burn() {
  const until = performance.now() + SLICE_MS;
  while (performance.now() < until);
  setImmediate(burn);
}
