// Measures llama.cpp, as the npm package node-llama-cpp carries it, on the CPU:
//
//	node peer.mjs MODEL.gguf PROMPT NEW THREADS REPEAT
//
// prints one JSON object: tokens a second in the prefill of PROMPT tokens and in
// the decoding of NEW ones, one value a repetition after a warm-up, and the
// seconds from the opening of the file to the logits of a first token.
//
// It calls the package's binding itself, which is one C++ call each for loading a
// model, making a context and decoding a batch, as llama-bench does. The package's
// own classes read the metadata once more in JavaScript and sample each token,
// which is no speed of llama.cpp: with them a load of a large vocabulary takes
// several times as long. The binding is internal to the package, so package.json
// asks for one exact version.
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const [file, prompt, fresh, threads, repeat] = [process.argv[2], ...process.argv.slice(3).map(Number)];
const batch = 512;
const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: threads});
const binding = llama._bindings;
const seconds = (since) => (performance.now() - since) / 1e3;

const begin = performance.now();
const model = new binding.AddonModel(file, {addonExports: binding, gpuLayers: 0, useMmap: true});
if (!await model.init()) throw new Error(`llama.cpp cannot load ${file}`);
const context = new binding.AddonContext(model, {
  contextSize: Math.max(prompt, fresh) + 64, batchSize: batch, sequences: 1, flashAttention: "auto", threads});
if (!await context.init()) throw new Error(`llama.cpp cannot make a context for ${file}`);
context.setThreads(threads);

// decode evaluates tokens at positions from pos on and wants the last logits.
async function decode(pos, tokens) {
  for (let at = 0; at < tokens.length; at += batch) {
    const part = tokens.slice(at, at + batch), last = at + part.length === tokens.length;
    context.initBatch(part.length);
    context.addToBatch(0, pos + at, Uint32Array.from(part), Uint32Array.from(last ? [part.length - 1] : []));
    await context.decodeBatch();
  }
}
await decode(0, [5]);
const first = seconds(begin);

const tokens = Array.from({length: prompt}, (_, i) => 5 + (i * 7) % 1000);
const pp = [], tg = [];
for (let r = 0; r <= repeat; r++) {
  context.disposeSequence(0); // forgets what is in the cache
  let since = performance.now();
  await decode(0, tokens);
  if (r > 0) pp.push(prompt / seconds(since));
  context.disposeSequence(0);
  await decode(0, [5]);
  since = performance.now();
  for (let i = 0; i < fresh; i++) await decode(1 + i, [40 + i]);
  if (r > 0) tg.push(fresh / seconds(since));
}
console.log(JSON.stringify({pp, tg, first_token_s: first}));
process.exit(0);
