package speed

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/tandemrun/tandem/engine"
	"github.com/tandemrun/tandem/gguf"
	"github.com/tandemrun/tandem/model"
	"github.com/tandemrun/tandem/model/catalog"
	"github.com/tandemrun/tandem/model/tiny"
	"github.com/tandemrun/tandem/unit"
	"github.com/tandemrun/tandem/unit/cpu"
	"github.com/tandemrun/tandem/unit/cpu/kernel"
)

// log is what an engine was asked to do.
type log struct {
	mu      sync.Mutex
	records []engine.Record
}

func (l *log) add(r engine.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
}

// rows counts the rows evaluated at positions from pos on.
func (l *log) rows(pos int) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		if r.Pos >= pos {
			n += r.Rows
		}
	}
	return n
}

func newBench(t *testing.T, streams, context_, block int, timeOps bool) (*Bench, *log) {
	t.Helper()
	f, err := gguf.Read(tiny.Name, tiny.File())
	if err != nil {
		t.Fatal(err)
	}
	m, err := catalog.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	u, err := cpu.New(cpu.Config{Name: "cpu", Threads: 2, ISA: kernel.Best()})
	if err != nil {
		t.Fatal(err)
	}
	l := &log{}
	e, err := engine.New(context.Background(), m, engine.Config{
		Ranges: []model.Range{{First: 0, Last: len(m.Layers)}}, Units: []unit.Unit{u},
		Slots: streams, Context: context_, Block: block, TimeOps: timeOps, Observe: l.add,
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGauge(GaugeConfig{Threads: 2, ISA: kernel.Best(), Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(g.Close(), e.Close(), f.Close()); err != nil {
			t.Error(err)
		}
	})
	return &Bench{Engine: e, Gauge: g, Program: tinyProgram(t, 0, -1), Repetitions: 3, TimeOps: timeOps}, l
}

func TestRun(t *testing.T) {
	weights, _ := tinyProgram(t, 0, -1).Bytes()
	for _, test := range []struct {
		test Test
		rows int // at the depth and behind it: the test and its warm-up
		work int64
	}{
		{Test{Prompt: 40}, 4 * 40, Operations(tinyProgram(t, 0, -1), 40, 1)},
		{Test{Prompt: 20, Depth: 100}, 4 * 20, Operations(tinyProgram(t, 0, -1), 20, 1)},
		{Test{Generate: 12}, 3*12 + warmSteps, 12 * weights},
		{Test{Generate: 5, Depth: 90, Streams: 3}, 4 * 5 * 3, 5 * weights},
	} {
		t.Run(test.test.Name(), func(t *testing.T) {
			b, l := newBench(t, 3, 128, 64, false)
			r, err := b.Run(context.Background(), test.test)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Samples) != 3 || r.Work != test.work || r.Ceiling() <= 0 || r.Share() <= 0 {
				t.Errorf("%d samples, work %d (want %d), ceiling %v, share %v", len(r.Samples), r.Work, test.work, r.Ceiling(), r.Share())
			}
			if n := len(r.Read) + len(r.Multiply); n != 4 {
				t.Errorf("%d ceilings measured, want one before each repetition and one after the last", n)
			}
			if got := l.rows(test.test.Depth); got != test.rows {
				t.Errorf("%d rows evaluated at position %d and up, want %d", got, test.test.Depth, test.rows)
			}
			if r.Ops != nil {
				t.Error("operations were timed")
			}
		})
	}
}

// A stream whose sliding windows have moved on evaluates the tokens up to the
// depth again: each repetition begins with the same caches.
func TestRunFarBehindDepth(t *testing.T) {
	b, l := newBench(t, 1, 400, 16, false)
	b.Repetitions = 2
	if _, err := b.Run(context.Background(), Test{Prompt: 300, Depth: 100}); err != nil {
		t.Fatal(err)
	}
	if got := l.rows(100); got != 3*300 {
		t.Errorf("%d rows behind the depth, want %d", got, 3*300)
	}
	if got := l.rows(0) - l.rows(100); got != 3*100 {
		t.Errorf("%d rows up to the depth, want %d", got, 3*100)
	}
}

func TestRunTimesOperations(t *testing.T) {
	b, _ := newBench(t, 1, 64, 64, true)
	r, err := b.Run(context.Background(), Test{Generate: 4, Depth: 30})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Read) != 4 || len(r.Multiply) != 4 {
		t.Errorf("%d and %d ceilings, want both kinds", len(r.Read), len(r.Multiply))
	}
	seen := map[string]bool{}
	var ops int64
	for _, x := range r.Ops {
		if seen[x.Name+x.Rows] {
			t.Errorf("%s (%s) is listed twice", x.Name, x.Rows)
		}
		seen[x.Name+x.Rows] = true
		if x.Name == "matmul" {
			ops += x.Ops
		}
	}
	// Depth and warm-up are not counted.
	if want := 3 * 4 * Operations(b.Program, 1, 1); ops != want {
		t.Errorf("%d operations of products, want %d", ops, want)
	}
}

func TestRunErrors(t *testing.T) {
	b, _ := newBench(t, 1, 32, 16, false)
	for _, test := range []Test{{}, {Prompt: 1, Generate: 1}, {Prompt: -1}, {Prompt: 1, Depth: -1}} {
		if _, err := b.Run(context.Background(), test); err == nil {
			t.Errorf("%+v runs", test)
		}
	}
	if _, err := b.Run(context.Background(), Test{Prompt: 33}); !errors.Is(err, engine.ErrContext) {
		t.Errorf("33 tokens in 32 positions: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	if _, err := b.Run(ctx, Test{Generate: 4}); !errors.Is(err, why) {
		t.Errorf("with a cancelled context: %v", err)
	}
	// The stream was given back each time.
	if _, err := b.Run(context.Background(), Test{Generate: 4}); err != nil {
		t.Error(err)
	}
}
