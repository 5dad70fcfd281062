package power

import (
	"sync"
	"time"
)

// A Log samples in the background and answers for any time since it began. It is
// safe for concurrent use.
type Log struct {
	meter *Meter
	stop  chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	samples []Sample
}

// Log begins to sample. Where nothing may tell watts it does nothing. The meter
// is the log's until it is closed.
func (m *Meter) Log(every time.Duration) *Log {
	l := &Log{meter: m, stop: make(chan struct{}), done: make(chan struct{})}
	if !m.Watts() {
		close(l.done)
		return l
	}
	go func() {
		defer close(l.done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			l.add(m.Sample(time.Now()))
			select {
			case <-tick.C:
			case <-l.stop:
				return
			}
		}
	}()
	return l
}

func (l *Log) add(s Sample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.samples = append(l.samples, s)
}

// most is how much of a time has to be known for that to stand for all of it.
const most = 0.9

// Joules is what a part drew between two moments, or false if that is not known
// of nearly all of the time. A sample that reaches beyond it counts by its share.
func (l *Log) Joules(p Part, from, to time.Time) (float64, bool) {
	if l.meter.Watts() {
		l.add(l.meter.Sample(time.Now())) // to the end
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var joules, known float64
	for _, s := range l.samples {
		begin := s.At.Add(-s.Length)
		if begin.Before(from) {
			begin = from
		}
		end := s.At
		if end.After(to) {
			end = to
		}
		w, ok := s.Watts[p]
		if d := end.Sub(begin).Seconds(); ok && d > 0 {
			joules, known = joules+w*d, known+d
		}
	}
	all := to.Sub(from).Seconds()
	if all <= 0 || known < most*all {
		return 0, false
	}
	return joules * all / known, true
}

// Close ends sampling. It leaves the meter open.
func (l *Log) Close() {
	close(l.stop)
	<-l.done
}
