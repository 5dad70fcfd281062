package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/tandemrun/tandem/engine"
)

// An observer is told which stream's block each task was for, when it could
// begin, and what it had waited for last.
func TestRecordParts(t *testing.T) {
	m := load(t, "q8_0")
	var mu sync.Mutex
	var records []engine.Record
	e := openWith(t, m, layout{units: 2, slots: 2, block: 4}, func(c *engine.Config) {
		c.Observe = func(r engine.Record) { mu.Lock(); records = append(records, r); mu.Unlock() }
	})
	a, b := stream(t, e), stream(t, e)
	var wg sync.WaitGroup
	for _, s := range []*engine.Stream{a, b} {
		wg.Go(func() {
			for range 2 { // 2 blocks of 4 rows, then one of 1
				tokens := []int32{2, 105, 4, 9, 7, 11, 13, 15}[:8-7*min(1, len(s.Tokens()))]
				if err := s.Forward(context.Background(), tokens, engine.Last, func(int, []float32) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(records) == 0 {
		t.Fatal("no records")
	}

	type key struct{ stream, block, chunk int }
	of, tasks := map[key]engine.Record{}, map[int]engine.Record{}
	units := map[int]int{} // unit of each chunk
	for _, r := range records {
		units[r.Chunk] = r.Unit
		rows := 0
		for _, p := range r.Parts {
			k := key{p.Stream, p.Block, r.Chunk}
			if _, twice := of[k]; twice {
				t.Errorf("%+v ran twice", k)
			}
			if _, twice := tasks[p.Task]; twice {
				t.Errorf("two tasks have the number %d", p.Task)
			}
			of[k], tasks[p.Task] = r, r
			rows += p.Rows
			if p.Pos != 4*p.Block || p.Rows != []int{4, 4, 1}[p.Block] {
				t.Errorf("block %d of stream %d: %d rows at %d", p.Block, p.Stream, p.Rows, p.Pos)
			}
		}
		if len(r.Parts) != r.Streams {
			t.Errorf("%d parts of %d streams", len(r.Parts), r.Streams)
		}
	}
	handoffs := 0
	for k, r := range of {
		i := slices.IndexFunc(r.Parts, func(p engine.RecordPart) bool { return p.Stream == k.stream })
		p := r.Parts[i]
		if p.Ready.Before(p.Submitted) || r.Start.Before(p.Ready) {
			t.Errorf("%+v: submitted %v, ready %v, started %v", k, p.Submitted, p.Ready, r.Start)
		}
		if p.After >= 0 {
			before, ok := tasks[p.After]
			if !ok || before.End.After(p.Ready) {
				t.Errorf("%+v was ready after task %d, which ended %v later (ran: %v)", k, p.After, before.End.Sub(p.Ready), ok)
			}
		} else if k.chunk != 0 {
			t.Errorf("%+v waited for nothing", k)
		}
		for _, i := range p.From {
			handoffs++
			if before, ok := tasks[i]; !ok || before.Unit == r.Unit || before.End.After(r.Start) {
				t.Errorf("%+v took rows from task %d, unit %d (ran: %v)", k, i, before.Unit, ok)
			}
		}
		if r.CopyOutTime > r.CopyTime || r.CopiedBytes == 0 && r.CopyTime != 0 {
			t.Errorf("%+v: copies of %v with %v at the end, %d bytes", k, r.CopyTime, r.CopyOutTime, r.CopiedBytes)
		}
	}
	if handoffs == 0 || len(units) != 4 {
		t.Errorf("%d handoffs, units of chunks %v", handoffs, units)
	}
}
