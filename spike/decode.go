package spike

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/sampler"
	"github.com/tandemrun/tandem/trace"
)

// A mark is what one step of a stream came to: the token, and a checksum of the
// bits of its logits (CRC-32C, which costs little beside the step).
type mark struct {
	token int32
	bits  uint32
}

// picker chooses greedily and keeps marks.
type picker struct{ marks []mark }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Pick is the most likely token.
func (p *picker) Pick(logits []float32) int32 {
	id := sampler.Best(logits)
	p.marks = append(p.marks, mark{id, checksum(logits)})
	return id
}

// checksum is the CRC-32C of the bits of logits.
func checksum(x []float32) uint32 {
	var sum uint32
	var buffer [4096]byte
	for piece := range slices.Chunk(x, len(buffer)/4) {
		for i, v := range piece {
			binary.LittleEndian.PutUint32(buffer[4*i:], math.Float32bits(v))
		}
		sum = crc32.Update(sum, castagnoli, buffer[:4*len(piece)])
	}
	return sum
}

// Rate is tokens a second of all streams together. Aggregate is all of them over
// the whole time, with its begin, in which the units fill, and its end, in which
// only some streams are left. Steady is while all streams decode; 0 if that is
// never.
type Rate struct {
	Aggregate float64 `json:"aggregate"`
	Steady    float64 `json:"steady"`
}

// a run is one trial of decoding.
type run struct {
	wall     time.Duration
	rate     Rate
	marks    [][]mark // by stream
	delay    time.Duration
	stalled  time.Duration // see stalls
	quiet    bool
	alone    bool // others had little of the CPUs meanwhile, as far as can be told
	overlap  float64
	both     time.Duration
	busy     []time.Duration // by unit of the rig
	merged   int             // most streams of a task
	copied   int64           // bytes copied between units
	passed   int64           // bytes taken from another unit without a copy
	copies   time.Duration
	windows  []window // of the time in which all streams decode
	line     *trace.Timeline
	forecast forecast // made right before it
}

// A window is a part of a run between two looks at how long threads waited.
type window struct {
	rate  float64 // tokens a second of all streams
	quiet bool
}

// decode generates n tokens in a stream for each prompt, all at once. Prompts
// are evaluated before, untimed.
func (s *session) decode(ctx context.Context, x *rig, prompts []Prompt, n, merge int) (run, error) {
	streams, err := x.prepare(ctx, prompts)
	defer closeStreams(streams)
	if err != nil {
		return run{}, err
	}
	return s.generate(ctx, x, streams, prompts, n, merge, 0)
}

// generate is decode with streams that have all but the last token of their
// prompts. The run is looked at in windows of so long, unless that is 0.
func (s *session) generate(ctx context.Context, x *rig, streams []*engine.Stream, prompts []Prompt, n, merge int, every time.Duration) (run, error) {
	var r run
	x.e.SetMerge(merge)
	x.record.Reset()
	times := make([][]time.Time, len(streams))
	pickers := make([]picker, len(streams))
	errs := make([]error, len(streams))
	var fs []func()
	for i, st := range streams {
		times[i] = make([]time.Time, 0, n)
		pickers[i].marks = make([]mark, 0, n)
		fs = append(fs, func() {
			if errs[i] = s.lab.Host(ctx); errs[i] != nil {
				return
			}
			var stopped error
			_, err := st.Generate(ctx, engine.Generation{Prompt: prompts[i].Tokens, Max: n, Picker: &pickers[i]}, func(engine.Token) bool {
				times[i] = append(times[i], x.e.Now())
				if len(times[i]) < n {
					stopped = s.lab.Host(ctx)
				}
				return stopped == nil
			})
			errs[i] = errors.Join(err, stopped)
		})
	}
	looks := s.look(every)
	alone := s.alone()
	start, done := x.e.Now(), s.watch()
	s.lab.All(fs...)
	seen := looks()
	if err := errors.Join(errs...); err != nil {
		return r, err
	}
	end := start
	for _, t := range times {
		if last := t[len(t)-1]; last.After(end) {
			end = last
		}
	}
	r.wall = end.Sub(start)
	r.delay, r.quiet = done(r.wall)
	r.alone = alone(r.wall)
	if _, known := s.lab.Delay(); known {
		r.stalled = stalls(times)
	}
	r.quiet = r.quiet && r.alone && undisturbed(r.stalled, r.wall)
	var from, to time.Time
	r.rate, from, to = rates(r.wall, times)
	r.windows = inWindows(seen, times, from, to)
	for i := range pickers {
		r.marks = append(r.marks, pickers[i].marks)
	}
	t, err := x.timeline("")
	if err != nil {
		return r, err
	}
	r.line = t
	r.overlap, r.both = t.Overlap()
	for _, u := range t.Usage() {
		r.busy = append(r.busy, u.Busy)
	}
	for _, task := range t.Tasks {
		r.merged = max(r.merged, len(task.Parts))
		r.copied += task.Copied
		r.passed += task.Passed
		r.copies += task.CopyIn + task.CopyOut
	}
	return r, nil
}

// rates counts tokens. All streams decode between the two times.
func rates(wall time.Duration, times [][]time.Time) (r Rate, from, to time.Time) {
	n := 0
	for i, t := range times {
		n += len(t)
		if first := t[0]; i == 0 || first.After(from) {
			from = first
		}
		if last := t[len(t)-1]; i == 0 || last.Before(to) {
			to = last
		}
	}
	if wall > 0 {
		r.Aggregate = float64(n) / wall.Seconds()
	}
	for _, t := range times {
		t = slices.DeleteFunc(slices.Clone(t), func(at time.Time) bool { return at.Before(from) || at.After(to) })
		if len(t) < 2 {
			r.Steady = 0
			break
		}
		r.Steady += float64(len(t)-1) / t[len(t)-1].Sub(t[0]).Seconds()
	}
	return r, from, to
}

// watch begins to look at how long threads of the process wait for a CPU; what
// it returns is called at the end, with the time that passed, and tells whether
// that was undisturbed by the rule of package probe.
func (s *session) watch() func(took time.Duration) (time.Duration, bool) {
	before, _ := s.lab.Delay()
	return func(took time.Duration) (time.Duration, bool) {
		after, known := s.lab.Delay()
		if !known {
			return 0, true
		}
		return after - before, undisturbed(after-before, took)
	}
}

// OthersMost is the share of the time of all CPUs that others may have in an
// undisturbed run. What they have on one core slows the next as well, if these are
// two threads of one, and takes memory bandwidth.
const OthersMost = 0.05

// othersTime is from how long on that is looked at: the system counts it to some
// 10 ms a CPU.
const othersTime = 250 * time.Millisecond

// alone begins to look at what others have of the CPUs; what it returns is called
// at the end, with the time that passed, and tells whether that was little.
func (s *session) alone() func(took time.Duration) bool {
	before, cpus, known := s.lab.Others()
	return func(took time.Duration) bool {
		after, _, still := s.lab.Others()
		return !known || !still || took < othersTime || float64(after-before) <= OthersMost*float64(cpus)*float64(took)
	}
}

// stalls is for how long tokens kept streams waiting beyond twice the median time
// between two, in the mean of the streams: a virtual machine's CPU may stand still
// for milliseconds, which no thread is told to have waited for.
func stalls(times [][]time.Time) time.Duration {
	var sum time.Duration
	for _, t := range times {
		var between []float64
		for i := 1; i < len(t); i++ {
			between = append(between, t[i].Sub(t[i-1]).Seconds())
		}
		most := 2 * median(between)
		for _, d := range between {
			if d > most {
				sum += time.Duration((d - most) * 1e9)
			}
		}
	}
	return sum / time.Duration(len(times))
}

// A Divergence is the first place at which two runs of a stream differ.
type Divergence struct {
	Stream   string `json:"stream"` // s1, s2, ...
	Prompt   string `json:"prompt"`
	Position int    `json:"position"` // of the generated tokens, from 0
	Expected int32  `json:"expected"`
	Got      int32  `json:"got"`
	// The tokens as the vocabulary has them, if there is one.
	ExpectedText string `json:"expected_text,omitempty"`
	GotText      string `json:"got_text,omitempty"`
}

// compare finds where a stream's tokens differ from the expected ones, and
// whether the bits of all logits are equal; behind a divergence they are not
// compared.
func compare(want, got []mark) (position int, bits bool) {
	bits = true
	for i := range want {
		if i >= len(got) || want[i].token != got[i].token {
			return i, bits && i < len(got) && want[i].bits == got[i].bits
		}
		bits = bits && want[i].bits == got[i].bits
	}
	return -1, bits
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}
