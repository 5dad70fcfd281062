// Runs tandem and a peer on the same file in turn (A, B, A, B, ...):
//
//	node run.mjs [--json] [--peer llama-bench] TANDEM MODEL.gguf [PAIRS=5] [THREADS=2] [PROMPT=512] [NEW=64]
//
// prints a JSON object a pair to stderr and to stdout a table of medians and of
// ratios pair by pair, or with --json all of it as one object. The peer is
// llama.cpp from the npm registry (peer.mjs), or the program that --peer names,
// which takes llama-bench's flags. Run it on an idle machine: beside another busy
// job both fall apart, so it says how many cores others kept busy.
import {execFileSync} from "node:child_process";
import {readFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {parseArgs} from "node:util";

const here = dirname(fileURLToPath(import.meta.url));
const {values: flags, positionals} = parseArgs({
  allowPositionals: true, options: {json: {type: "boolean"}, peer: {type: "string"}}});
const [tandem, file] = positionals;
const [pairs, threads, prompt, fresh] = [5, 2, 512, 64].map((d, i) => Number(positionals[2 + i] ?? d));
if (!file || [pairs, threads, prompt, fresh].some((n) => !(n >= 1))) {
  console.error("usage: node run.mjs [--json] [--peer llama-bench] TANDEM MODEL.gguf [PAIRS=5] [THREADS=2] [PROMPT=512] [NEW=64]");
  process.exit(2);
}
const repeat = 3;
const run = (command, ...args) => execFileSync(command, args.map(String), {encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 24});
const median = (x) => { const y = [...x].sort((a, b) => a - b); return (y[(y.length - 1) >> 1] + y[y.length >> 1]) / 2; };

// clocks are the machine's busy time and that of this process and the children
// it has waited for, in ticks (proc(5)); null where the system does not tell.
function clocks() {
  try {
    const [, user, nice, system, , , irq, soft, steal] = readFileSync("/proc/stat", "utf8").split("\n")[0].split(/\s+/).map(Number);
    const own = readFileSync("/proc/self/stat", "utf8").replace(/^.*\) /, "").split(" ").slice(11, 15).map(Number);
    return {all: user + nice + system + irq + soft + steal, own: own.reduce((a, b) => a + b)};
  } catch {
    return null;
  }
}
const ticks = 100; // a second, on every Linux that Node runs on

// watched runs f and adds how many cores others kept busy meanwhile.
function watched(f) {
  const before = clocks(), since = performance.now();
  const r = f();
  const after = clocks();
  if (after) r.others_cores = Math.max(0, (after.all - before.all) - (after.own - before.own)) / ticks / ((performance.now() - since) / 1e3);
  return r;
}

const ofBench = (rows) => ({row: {pp: rows.find((r) => r.n_prompt > 0), tg: rows.find((r) => r.n_gen > 0)}});
const lengths = ["-p", prompt, "-n", fresh, "-r", repeat, "-t", threads, "-o", "json"];
function ours() {
  const r = ofBench(JSON.parse(run(tandem, "bench", "-m", file, ...lengths)));
  const since = performance.now();
  run(tandem, "logits", "-m", file, "-t", threads, "--tokens", "5", "--top", 1);
  return {pp: median(r.row.pp.samples_ts), tg: median(r.row.tg.samples_ts), first: (performance.now() - since) / 1e3, ...r};
}
function peer() {
  if (flags.peer) {
    const {row} = ofBench(JSON.parse(run(flags.peer, "-m", file, ...lengths)));
    return {pp: median(row.pp.samples_ts), tg: median(row.tg.samples_ts), first: null};
  }
  const r = JSON.parse(run(process.execPath, join(here, "peer.mjs"), file, prompt, fresh, threads, repeat));
  return {pp: median(r.pp), tg: median(r.tg), first: r.first_token_s};
}

const a = [], b = [];
for (let i = 0; i < pairs; i++) {
  a.push(watched(ours));
  b.push(watched(peer));
  console.error(JSON.stringify({pair: i + 1, tandem: a[i], peer: b[i]}));
}

// One line a figure; a ratio above 1 is in tandem's favour.
const summary = [["pp", `prefill of ${prompt}, tok/s`, 1], ["tg", `decode of ${fresh}, tok/s`, 1], ["first", "load to first token, s", -1]].map(([key, name, better]) => {
  const [x, y] = [a, b].map((side) => side.map((r) => r[key]));
  const known = y.every((v) => v !== null);
  const ratios = known ? x.map((v, i) => (v / y[i]) ** better) : [];
  const row = a[0].row[key];
  return {
    name, tandem: median(x), peer: known ? median(y) : null, ratio: known ? median(ratios) : null, ratios,
    ceiling: row ? {value: median(a.map((r) => r.row[key].ceiling)), unit: row.ceiling_unit} : null,
    share: row ? median(a.map((r) => r.row[key].share)) : null,
  };
});
const busy = [...a, ...b].map((r) => r.others_cores).filter((n) => n !== undefined);
const others = busy.length ? {median: median(busy), most: Math.max(...busy)} : null;
if (flags.json) {
  console.log(JSON.stringify({file, pairs, threads, prompt, new: fresh, repeat, peer: flags.peer ?? "node-llama-cpp", summary, others_cores: others, runs: a.map((x, i) => ({tandem: x, peer: b[i]}))}, null, 2));
} else {
  const digits = (v, n) => v === null ? "" : v.toFixed(n);
  console.log(`| ${pairs} pairs, ${threads} threads | tandem | llama.cpp | ratio | least and largest ratio | share of the ceiling |`);
  console.log("|---|---|---|---|---|---|");
  for (const s of summary) {
    const n = s.tandem >= 100 ? 1 : 2;
    const range = s.ratio === null ? "" : `${Math.min(...s.ratios).toFixed(2)} to ${Math.max(...s.ratios).toFixed(2)}`;
    const share = s.share === null ? "" : `${(100 * s.share).toFixed(0)} % of ${s.ceiling.value.toFixed(0)} ${s.ceiling.unit}`;
    console.log(`| ${s.name} | ${digits(s.tandem, n)} | ${digits(s.peer, n)} | ${digits(s.ratio, 2)} | ${range} | ${share} |`);
  }
  if (others) console.log(`\nOthers kept ${others.median.toFixed(2)} cores busy in the median run, ${others.most.toFixed(2)} in the worst.`);
}
