package plan

// A stream evaluates its prompt block by block and then one token after the
// other.
type stream struct {
	begun  bool
	ready  bool // its own work before the step is done
	late   bool // the unit it waited for last had other work; see Costs.Late
	prompt int  // tokens that are not in a block yet
	flying []*block
	awaits *block
	last   []*task // newest task of each chunk
	lines  []line  // by unit
	times  []int64 // of its tokens

	company *company // that its newest step made
	left    bool     // it has gone on since
}

// resume goes on until the stream has to wait.
func (s *stream) resume(f *flow) {
	if !s.begun {
		s.begun = true
		if f.free == 0 {
			f.seekers = append(f.seekers, s)
			return
		}
		f.free--
	}
	for {
		if !s.ready {
			s.ready = true
			host := f.c.Host
			if s.late {
				host += f.c.Late
			}
			if s.late = false; host > 0 {
				f.sleep(s, int64(host))
				return
			}
		}
		// A block behind another can only overlap it if there is another unit.
		for s.prompt > 0 && len(s.flying) < len(f.units) {
			n := min(s.prompt, f.s.Block)
			s.prompt -= n
			b := &block{s: s, rows: n, step: len(s.times) > 0 || f.w.Prompt == 1}
			if s.prompt == 0 {
				b.wanted = 1
			}
			s.flying = append(s.flying, b)
			f.submit(b)
		}
		if b := s.flying[0]; b.left > 0 {
			s.awaits = b
			return
		}
		s.flying = s.flying[1:]
		if len(s.flying) > 0 || s.prompt > 0 {
			continue
		}
		s.times = append(s.times, f.now)
		if len(s.times) == f.w.Tokens {
			s.leaveCompany(f)
			f.part()
			return
		}
		s.prompt, s.ready = 1, false
	}
}

// part gives a slot to who waits for one.
func (f *flow) part() {
	if len(f.seekers) == 0 {
		f.free++
		return
	}
	f.turns = append(f.turns, f.seekers[0])
	f.seekers = f.seekers[1:]
}
