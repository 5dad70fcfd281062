package spike

import (
	"slices"
	"time"
)

// shortWindow is the least time of a window: on a machine that is not idle a run
// is rarely undisturbed as a whole, but parts of it are. A window has two steps
// at least.
const shortWindow = 25 * time.Millisecond

// A look is how long threads of the process had waited for a CPU by then.
type look struct {
	at     time.Time
	waited time.Duration
}

// look begins to look at that from time to time; what it returns is called at
// the end and returns what was seen. Without a time, or where delays are not
// known, nothing is.
func (s *session) look(every time.Duration) func() []look {
	if _, known := s.lab.Delay(); !known || every <= 0 {
		return func() []look { return nil }
	}
	end, done := make(chan struct{}), make(chan []look)
	go func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		var seen []look
		for {
			waited, _ := s.lab.Delay()
			seen = append(seen, look{time.Now(), waited})
			select {
			case <-ticks.C:
			case <-end:
				done <- seen
				return
			}
		}
	}()
	return func() []look {
		close(end)
		return <-done
	}
}

// inWindows are the rates between looks, of those that lie in the time from when
// all streams have a token until the first has its last. A stream that is
// between two tokens has a part of the next.
func inWindows(seen []look, times [][]time.Time, from, to time.Time) []window {
	var out []window
	for i := 1; i < len(seen); i++ {
		a, b := seen[i-1], seen[i]
		d := b.at.Sub(a.at)
		if a.at.Before(from) || b.at.After(to) || d <= 0 {
			continue
		}
		var tokens float64
		for _, t := range times {
			tokens += progress(t, b.at) - progress(t, a.at)
		}
		out = append(out, window{tokens / d.Seconds(), !disturbed(seen, a.at, b.at)})
	}
	return out
}

// disturbed reports whether threads waited in a time between looks. The system
// counts a wait when it ends, so one that is seen in a later look reaches back by
// as much.
func disturbed(seen []look, from, to time.Time) bool {
	for i := 1; i < len(seen); i++ {
		a, b := seen[i-1], seen[i]
		waited := b.waited - a.waited
		if b.at.After(from) && a.at.Add(-waited).Before(to) && !undisturbed(waited, b.at.Sub(a.at)) {
			return true
		}
	}
	return false
}

// progress is how many tokens a stream has behind its first at a time between
// its first and last.
func progress(times []time.Time, at time.Time) float64 {
	i, found := slices.BinarySearchFunc(times, at, time.Time.Compare)
	if found || i == 0 {
		return float64(i)
	}
	if i == len(times) {
		return float64(i - 1)
	}
	return float64(i-1) + at.Sub(times[i-1]).Seconds()/times[i].Sub(times[i-1]).Seconds()
}
