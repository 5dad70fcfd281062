// Runs tandem and a peer on the same file in turn (A, B, A, B, ...):
//
//	node run.mjs TANDEM MODEL.gguf [PAIRS=5] [THREADS=2] [PROMPT=512] [NEW=64]
//
// prints a JSON object a pair to stderr and a table of medians and of ratios
// pair by pair to stdout. Run it on an idle machine: beside another busy job
// both fall apart.
import {execFileSync} from "node:child_process";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [tandem, file] = process.argv.slice(2);
const [pairs, threads, prompt, fresh] = [5, 2, 512, 64].map((d, i) => Number(process.argv[4 + i] ?? d));
const run = (command, ...args) => execFileSync(command, args.map(String), {encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 24});
const median = (x) => { const y = [...x].sort((a, b) => a - b); return (y[(y.length - 1) >> 1] + y[y.length >> 1]) / 2; };

function ours() {
  const rows = JSON.parse(run(tandem, "bench", "-m", file, "-p", prompt, "-n", fresh, "-r", 3, "-t", threads, "-o", "json"));
  const pp = rows.find((r) => r.n_prompt > 0), tg = rows.find((r) => r.n_gen > 0);
  const since = performance.now();
  run(tandem, "logits", "-m", file, "-t", threads, "--tokens", "5", "--top", 1);
  return {pp: median(pp.samples_ts), tg: median(tg.samples_ts), first: (performance.now() - since) / 1e3, row: {pp, tg}};
}
function peer() {
  const r = JSON.parse(run("node", join(here, "peer.mjs"), file, prompt, fresh, threads, 3));
  return {pp: median(r.pp), tg: median(r.tg), first: r.first_token_s};
}
const a = [], b = [];
for (let i = 0; i < pairs; i++) {
  a.push(ours());
  b.push(peer());
  console.error(JSON.stringify({pair: i + 1, tandem: a[i], peer: b[i]}));
}
const share = (name) => median(a.map((x) => x.row[name].share ?? NaN));
console.log(`| ${pairs} pairs, ${threads} threads | tandem | llama.cpp | ratio | least and largest ratio | share of the ceiling |`);
console.log("|---|---|---|---|---|---|");
for (const [key, name, digits, better] of [["pp", `prefill of ${prompt}, tok/s`, 1, 1], ["tg", `decode of ${fresh}, tok/s`, 2, 1], ["first", "start to first token, s", 2, -1]]) {
  const ratios = a.map((x, i) => (x[key] / b[i][key]) ** better);
  const s = key === "first" ? "" : `${(100 * share(key)).toFixed(0)} %`;
  console.log(`| ${name} | ${median(a.map((x) => x[key])).toFixed(digits)} | ${median(b.map((x) => x[key])).toFixed(digits)} | ${median(ratios).toFixed(2)} | ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)} | ${s} |`);
}
