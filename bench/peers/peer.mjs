// Measures llama.cpp, as the npm package node-llama-cpp carries it, on the CPU:
//
//	node peer.mjs MODEL.gguf PROMPT NEW THREADS REPEAT
//
// prints one JSON object: tokens a second in the prefill of PROMPT tokens and in
// the decoding of NEW ones, one value a repetition after a warm-up, and the
// seconds from the start to the first token, loading included. Text is neither
// made nor read: tokens go straight to the context, and of each step the most
// likely token is asked for.
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const [file, prompt, fresh, threads, repeat] = [process.argv[2], ...process.argv.slice(3).map(Number)];
const seconds = (since) => (performance.now() - since) / 1e3;
const begin = performance.now();
const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: threads});
const model = await llama.loadModel({modelPath: file});
const context = await model.createContext({contextSize: prompt + fresh + 64, batchSize: 512, threads});
const sequence = context.getSequence();
const best = {generateNext: {token: true, options: {temperature: 0}}};
const tokens = Array.from({length: prompt}, (_, i) => 5 + (i * 7) % 1000);
await sequence.controlledEvaluate([[5, best]]);
const first = seconds(begin);
const pp = [], tg = [];
for (let r = 0; r <= repeat; r++) {
  await sequence.clearHistory();
  let since = performance.now();
  await sequence.controlledEvaluate([...tokens.slice(0, -1), [tokens.at(-1), best]]);
  if (r > 0) pp.push(prompt / seconds(since));
  await sequence.clearHistory();
  await sequence.controlledEvaluate([[5, best]]);
  since = performance.now();
  for (let i = 0; i < fresh; i++) await sequence.controlledEvaluate([[40 + i, best]]);
  if (r > 0) tg.push(fresh / seconds(since));
}
console.log(JSON.stringify({pp, tg, first_token_s: first}));
process.exit(0);
